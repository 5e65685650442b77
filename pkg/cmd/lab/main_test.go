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
		"outage":  {[]string{"chaos", "--chaos", "1m", "--outage", "1m"}, "--outage 1m0s: must be shorter than --chaos, 1m0s"},
		"clocks":  {[]string{"chaos", "--clocks", "-1s"}, "--clocks -1s: must not be negative"},
		"section": {[]string{"bench", "--only", "nonsense"}, `unknown section "nonsense"`},
		"command": {[]string{"delivery"}, `unknown command "delivery"`},
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
