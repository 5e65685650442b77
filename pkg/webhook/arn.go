package webhook

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// MaxARNBody is the most bytes of a body that a queue or a bus gets: both take
// 1 MiB, with attributes, type and envelope.
const MaxARNBody = 1_000_000

// ARN names a queue of SQS or a bus of EventBridge as an endpoint's target.
type ARN struct {
	text                  string
	Bus                   bool // of EventBridge; otherwise a queue of SQS
	Region, Account, Name string
}

// arnForm is strict about the region, which becomes a part of a host name.
var arnForm = regexp.MustCompile(`^arn:aws:(?:sqs:([a-z]{2}(?:-[a-z]+)+-[0-9]):([0-9]{12}):([A-Za-z0-9_-]{1,80}(?:\.fifo)?)` +
	`|events:([a-z]{2}(?:-[a-z]+)+-[0-9]):([0-9]{12}):event-bus/([A-Za-z0-9._-]{1,256}))$`)

// ParseARN reads an endpoint's url; false: it is not the ARN of a queue or bus.
func ParseARN(url string) (ARN, bool) {
	m := arnForm.FindStringSubmatch(url)
	switch {
	case m == nil:
		return ARN{}, false
	case m[3] != "":
		return ARN{text: url, Region: m[1], Account: m[2], Name: m[3]}, true
	}
	return ARN{text: url, Bus: true, Region: m[4], Account: m[5], Name: m[6]}, true
}

func (a ARN) String() string { return a.text }

// ARNRules are what a deployment permits of ARNs. The zero value permits none.
type ARNRules struct {
	Permitted bool
	Except    string // the account whose queues and buses are refused; "" is none
}

// Refusal says why an endpoint of the organization must not have the ARN, in
// words that follow "must"; "" when it may. The service sends to every
// organization's queues as the same caller, so that a queue's policy cannot
// distinguish organizations. The queue's name does: only its owner
// can have chosen a name that ends with the organization's id.
func (r ARNRules) Refusal(a ARN, org value.ID) string {
	switch {
	case !r.Permitted:
		return "start with https://: this deployment sends to no ARN"
	case strings.HasSuffix(a.Name, ".fifo"):
		return "name a standard queue: events come in no order, and a FIFO queue drops what is sent a second time"
	case !strings.HasSuffix(a.Name, org.String()):
		return "name a queue or bus whose own name ends with your organization's id, " + org.String() + ": so its owner says whose events it takes"
	case a.Account == r.Except:
		return "be of another AWS account than the service's"
	}
	return ""
}

// Body is the payload as a queue or bus takes it. One of more than
// [MaxARNBody] becomes thin: of its object only id and updatedAt are left, and
// nothing of previousAttributes. The two characters that SQS refuses are escaped.
func (a ARN) Body(payload []byte) ([]byte, error) {
	if len(payload) > MaxARNBody {
		return commerce.SelectFields(payload, thinFields())
	}
	if a.Bus {
		return payload, nil
	}
	payload = bytes.ReplaceAll(payload, []byte("\uFFFE"), []byte(`\ufffe`))
	return bytes.ReplaceAll(payload, []byte("\uFFFF"), []byte(`\uffff`)), nil
}
