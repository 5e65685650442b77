package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestFunctionsDoNotStartWithoutTheirTable(t *testing.T) {
	if _, err := app.ConfigFrom(environment()); err == nil || !strings.Contains(err.Error(), "TABLE_NAME is not set") {
		t.Errorf("got %v, want an error that names the variable", err)
	}
}

func TestPortsThatNoWebhookGoesToAreReadFromAList(t *testing.T) {
	for _, c := range []struct {
		text string
		want []uint16
	}{
		{"", nil},
		{"22", []uint16{22}},
		{"22, 8080,65535", []uint16{22, 8080, 65535}},
	} {
		t.Run(c.text, func(t *testing.T) {
			cfg, err := app.ConfigFrom(environment("TABLE_NAME", "t", "REFUSED_PORTS", c.text))
			if err != nil || !slices.Equal(cfg.RefusedPorts, c.want) {
				t.Errorf("%q: got %v, %v; want %v", c.text, cfg.RefusedPorts, err, c.want)
			}
		})
	}
	for _, text := range []string{"ssh", "22,", "65536", "-1", "22;23"} {
		t.Run(text, func(t *testing.T) {
			if _, err := app.ConfigFrom(environment("TABLE_NAME", "t", "REFUSED_PORTS", text)); err == nil || !strings.Contains(err.Error(), "REFUSED_PORTS") {
				t.Errorf("%q: got %v, want an error that names the variable", text, err)
			}
		})
	}
}

func TestTheTemplateRefusesThePortsThatTheClientDoes(t *testing.T) {
	declared := dynamotest.Model(t).Functions["worker"].Environment
	cfg, err := app.ConfigFrom(environment("TABLE_NAME", "t", "REFUSED_PORTS", declared["REFUSED_PORTS"]))
	if err != nil {
		t.Fatal(err)
	}
	want := outbound.RefusedPorts()
	slices.Sort(cfg.RefusedPorts)
	slices.Sort(want)
	if !slices.Equal(cfg.RefusedPorts, want) {
		t.Errorf("got %v, want %v", cfg.RefusedPorts, want)
	}
}
