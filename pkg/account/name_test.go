package account_test

import (
	"testing"

	"github.com/commerce-integration/service/pkg/account"
)

// The page that asks for consent shows a name before everything else.
func TestANameTurnsNoTextAround(t *testing.T) {
	for _, name := range []string{"Till \u202egnp.exe", "Till\u2066", "\u200b"} {
		if _, err := account.ParseCreateApplication([]byte(`{"name":"` + name + `"}`)); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}
