package commerce

import (
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// SQS refuses a message with a character that JSON takes.
func TestAPostedMessageHasNoCharacterThatSQSRefuses(t *testing.T) {
	body := `{"records":[{"kind":"product","op":"put","record":{"id":"` + testID.String() + "\",\"name\":\"a\ufffeb\uffffc\"}}]}"
	message, _, err := PostedMessage(testOrg, []byte(body))
	if err != nil || strings.ContainsAny(string(message), "\ufffe\uffff") || !strings.Contains(string(message), `a\ufffeb\uffffc`) {
		t.Errorf("got %s, %v", message, err)
	}
	changes, refusals := ParseMessage(message)
	if len(changes) != 1 || len(refusals) != 0 || changes[0].OrganizationID != testOrg {
		t.Errorf("read as %+v, %+v", changes, refusals)
	}
}

func TestARequestNamesAtMost20Faults(t *testing.T) {
	for _, row := range []struct{ records, want int }{{19, 19}, {20, 20}, {21, 20}} {
		_, _, err := PostedMessage(testOrg, []byte(`{"records":[`+strings.TrimSuffix(strings.Repeat(`{"kind":"order","op":"put","record":{}},`, row.records), ",")+`]}`))
		if f, is := fault.As(err); !is || len(f.Details) != row.want {
			t.Errorf("%d wrong records: got %v, want %d details", row.records, err, row.want)
		}
	}
}
