//go:build emulate

package template_test

import (
	"debug/elf"
	"debug/gosym"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/local/template"
)

// The linker leaves out code that a program cannot reach, so a binary contains only those operations of the SDK's clients
// that it may call. Its function needs the permissions for these, and no others.

const checkout = "../../.."

// deployed is the template's model.
func deployed(t *testing.T) *template.Model {
	t.Helper()
	m, err := template.Load(filepath.Join(checkout, "template.yaml"), map[string]string{"JwtIssuer": "i", "JwtAudience": "a"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// operation is the name of a client's method.
var operation = regexp.MustCompile(`^github\.com/aws/aws-sdk-go-v2/service/(dynamodb|sqs|secretsmanager)\.\(\*Client\)\.([A-Z]\w+)$`)

// allowances are the actions that each operation needs. The service does not mean to use an operation that is not here.
func allowances() map[string][]string {
	return map[string][]string{
		"dynamodb.GetItem":      {"dynamodb:GetItem"},
		"dynamodb.BatchGetItem": {"dynamodb:BatchGetItem"},
		"dynamodb.Query":        {"dynamodb:Query"},
		"dynamodb.PutItem":      {"dynamodb:PutItem"},
		"dynamodb.UpdateItem":   {"dynamodb:UpdateItem"},
		"dynamodb.DeleteItem":   {"dynamodb:DeleteItem"},
		// But ingest's, no transaction checks an item that it does not write, which needs dynamodb:ConditionCheckItem.
		"dynamodb.TransactWriteItems":      {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"},
		"dynamodb.BatchExecuteStatement":   {"dynamodb:PartiQLInsert"}, // of items that must not replace others
		"dynamodb.DescribeEndpoints":       {},                         // linked with every operation, called for none of ours
		"sqs.SendMessageBatch":             {"sqs:SendMessage"},
		"sqs.ChangeMessageVisibilityBatch": {"sqs:ChangeMessageVisibility"},
		"sqs.GetQueueAttributes":           {"sqs:GetQueueAttributes"},
		"secretsmanager.GetSecretValue":    {"secretsmanager:GetSecretValue"},
	}
}

// partly are the actions that a function needs of an operation, where it does not need all, or others.
func partly() map[string]map[string][]string {
	return map[string]map[string][]string{
		"worker":  {"dynamodb.TransactWriteItems": {"dynamodb:UpdateItem"}},                     // of endpoints
		"indexer": {"dynamodb.TransactWriteItems": {"dynamodb:PutItem", "dynamodb:UpdateItem"}}, // of tallies, of endpoints
		// Of stock, whose records a transaction checks while only the ledger changes.
		"ingest": {"dynamodb.TransactWriteItems": {"dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"}},
	}
}

// linkedOnly are operations that are in a binary although it never calls them: the linker keeps the methods of a type by
// their name where it cannot tell which of them an interface calls. A change can write or remove an item, but a request
// for an index job never removes one. The queues of deliveries can count their messages, but only the worker does.
func linkedOnly() map[string][]string {
	return map[string][]string{
		"authorizer": {"dynamodb.Query"}, "ingest": {"dynamodb.Query"},
		"api": {"dynamodb.DeleteItem"}, "indexer": {"dynamodb.BatchGetItem", "dynamodb.DeleteItem", "sqs.GetQueueAttributes"},
		"portal":     {"dynamodb.DeleteItem", "dynamodb.PutItem", "dynamodb.Query", "dynamodb.UpdateItem"}, // it has no client
		"dispatcher": {"sqs.GetQueueAttributes"}, "webhooks": {"sqs.GetQueueAttributes"},
		"worker": {"dynamodb.Query"},
	}
}

func TestABinaryMayDoWhatItCallsAndNothingElse(t *testing.T) {
	for name, declared := range deployed(t).Functions {
		want := map[string]bool{}
		for _, op := range operations(t, name) {
			needed, known := allowances()[op]
			if !known {
				t.Errorf("%s calls %s, for which no permission is known here", name, op)
			}
			if slices.Contains(linkedOnly()[name], op) {
				continue
			}
			if own, has := partly()[name][op]; has {
				needed = own
			}
			for _, action := range needed {
				want[action] = true
			}
		}
		for _, action := range sourceActions(declared) {
			want[action] = true
		}
		got := map[string]bool{}
		for _, p := range declared.Permissions {
			got[p.Action] = true
			if !want[p.Action] {
				t.Errorf("%s may %s and never does", name, p.Action)
			}
		}
		for action := range want {
			if !got[action] {
				t.Errorf("%s must be allowed %s", name, action)
			}
		}
	}
}

// sourceActions are the actions of Lambda on behalf of a function.
func sourceActions(f template.Function) []string {
	var actions []string
	if len(f.Queues) > 0 {
		actions = append(actions, "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
	}
	if len(f.Streams) > 0 {
		actions = append(actions, "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams")
	}
	return actions
}

// indexReader is the name of a method that reads the secondary index.
var indexReader = regexp.MustCompile(`/pkg/dynamo\.\(\*\w+\)\.(Due|DueJobs|Unsent|Held)$`)

func TestABinaryMayQueryTheIndexIfItDoes(t *testing.T) {
	functions := deployed(t).Functions
	index := "arn:aws:dynamodb:local:000000000000:table/" + functions["api"].Environment["TABLE_NAME"] + "/index/GSI1"
	for name, declared := range functions {
		reads := slices.ContainsFunc(symbols(t, name), func(symbol string) bool {
			return indexReader.MatchString(symbol)
		})
		may := slices.ContainsFunc(declared.Permissions, func(p template.Permission) bool { return p.Action == "dynamodb:Query" && p.Resource == index })
		if may != reads {
			t.Errorf("%s reads the index: %t, may do so: %t", name, reads, may)
		}
	}
}

// sender is the name of a method that sends to a queue. Deliveries have two.
var sender = regexp.MustCompile(`/pkg/queue\.\(?\*?(Deliveries\)?\.(?:Send|Move)|Records\)?\.(?:Move|SendLater)|IndexJobs\)?\.Send|Posts\)?\.Send|Park\)?\.Park|Rejects\)?\.Reject)$`)

func TestABinaryMaySendToTheQueuesThatItSendsTo(t *testing.T) {
	deliveries := []string{"DeliveriesQueue", "SlowDeliveriesQueue"}
	queues := map[string][]string{
		"Deliveries.Send": deliveries, "Deliveries.Move": deliveries, "Records.Move": {"ImportsQueue"},
		"Records.SendLater": {"RecordsQueue"}, "Posts.Send": {"RecordsQueue"},
		"IndexJobs.Send": {"IndexJobsQueue"}, "Park.Park": {"ParkQueue"}, "Rejects.Reject": {"RecordsDLQ"},
	}
	model := deployed(t)
	sent := map[string]bool{} // by method
	for name, declared := range model.Functions {
		want := map[string]bool{}
		for _, symbol := range symbols(t, name) {
			if match := sender.FindStringSubmatch(symbol); match != nil {
				method := strings.ReplaceAll(match[1], ")", "")
				sent[method] = true
				for _, queue := range queues[method] {
					want[queue] = true
				}
			}
		}
		for _, of := range queues {
			for _, queue := range of {
				if may := slices.Contains(declared.Permissions, template.Permission{Action: "sqs:SendMessage", Resource: model.Queues[queue].ARN}); may != want[queue] {
					t.Errorf("%s sends to %s: %t, may do so: %t", name, queue, want[queue], may)
				}
			}
		}
	}
	if len(sent) != len(queues) {
		t.Errorf("found senders by %v only: the names of methods have changed", sent)
	}
}

// operations lists the operations of AWS clients in a function's binary.
func operations(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	for _, symbol := range symbols(t, name) {
		if match := operation.FindStringSubmatch(symbol); match != nil {
			found = append(found, match[1]+"."+match[2])
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s calls nothing of AWS: the names of its functions cannot be read", name)
	}
	return found
}

// symbols lists the functions in a binary. Their names stay in it when it is
// stripped, for stack traces.
func symbols(t *testing.T, name string) []string {
	t.Helper()
	file, err := elf.Open(filepath.Join(checkout, "dist", name, "bootstrap"))
	if err != nil {
		t.Fatalf("run make emulate, which builds the functions: %v", err)
	}
	defer file.Close()
	lines, err := file.Section(".gopclntab").Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, file.Section(".text").Addr))
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(table.Funcs))
	for i, f := range table.Funcs {
		names[i] = f.Name
	}
	return names
}
