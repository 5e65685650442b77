package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestWrongArgumentsAreRefusedBeforeAnythingIsBuilt(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"argument": {[]string{"bench", "reads"}, `unknown command "reads"`},
		"flag":     {[]string{"chaos", "--outage", "1m"}, "unknown flag: --outage"},
		"command":  {[]string{"delivery"}, `unknown command "delivery"`},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRootCommand()
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&out)
			root.SetArgs(tt.args)
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("lab %q: got %v, want %q", tt.args, err, tt.want)
			}
		})
	}
}
