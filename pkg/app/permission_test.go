package app_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// permitted are the dependencies of one function, whose requests to the table
// fail the test unless the template permits them, partition keys included.
func permitted(t testing.TB, s *servicetest.Service, function string, base *app.Dependencies) *app.Dependencies {
	t.Helper()
	own := *base
	watch := &policy{t: t, function: function, permissions: dynamotest.Model(t).Functions[function].Permissions, client: s.Client().Options().HTTPClient}
	own.Table = dynamo.New(dynamodb.New(s.Client().Options(), func(o *dynamodb.Options) { o.HTTPClient = watch }), base.Table.Name(), s.Time)
	return &own
}

// policy is the function's, as IAM evaluates it for each request.
type policy struct {
	t           testing.TB
	function    string
	permissions []template.Permission
	client      dynamodb.HTTPClient
}

func (p *policy) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	accesses, err := accessesOf(operation, body)
	if err != nil {
		p.t.Errorf("%s: %s: %v", p.function, operation, err)
	}
	ofIndex := bytes.Contains(body, []byte(`"IndexName":`)) // whose permissions have no condition
	for _, a := range accesses {
		if !slices.ContainsFunc(p.permissions, func(permission template.Permission) bool {
			return strings.Contains(permission.Resource, "/index/") == ofIndex && permission.Covers(a.action, a.key)
		}) {
			p.t.Errorf("%s: the template does not permit %s of the partition %s", p.function, a.action, a.key)
		}
	}
	return p.client.Do(r)
}

// access is an action on the items of a partition.
type access struct{ action, key string }

// accessesOf reads what a request asks for. Of PartiQL it reads the action
// alone, for which no function has a condition.
func accessesOf(operation string, body []byte) ([]access, error) {
	type attributes map[string]struct{ S string }
	type write struct{ Item, Key attributes }
	var in struct {
		write

		RequestItems              map[string]struct{ Keys []attributes }
		TransactItems             []map[string]write
		ExpressionAttributeValues attributes
		Statements                []struct{ Statement string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	of := func(w write) string { return w.Item["PK"].S + w.Key["PK"].S }
	var all []access
	switch operation {
	case "Query":
		all = append(all, access{"dynamodb:Query", in.ExpressionAttributeValues[":pk"].S})
	case "BatchGetItem":
		for _, table := range in.RequestItems {
			for _, key := range table.Keys {
				all = append(all, access{"dynamodb:BatchGetItem", key["PK"].S})
			}
		}
	case "TransactWriteItems":
		for _, item := range in.TransactItems {
			for kind, w := range item {
				all = append(all, access{"dynamodb:" + kind + "Item", of(w)})
			}
		}
	case "BatchExecuteStatement":
		for _, s := range in.Statements {
			verb, _, _ := strings.Cut(s.Statement, " ")
			all = append(all, access{"dynamodb:PartiQL" + verb[:1] + strings.ToLower(verb[1:]), ""})
		}
	default:
		all = append(all, access{"dynamodb:" + operation, of(in.write)})
	}
	for _, a := range all {
		if a.key == "" && operation != "BatchExecuteStatement" {
			return nil, errors.New("no partition key was found")
		}
	}
	return all, nil
}

// TestFunctionsOfTheAPIReachNoOtherItems states what the conditions are
// for; [permitted] holds them to what the functions ask for.
func TestTheAuthorizerAndTheAPIReachNoOtherItems(t *testing.T) {
	const org = "ORG#0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00#"
	for function, refused := range map[string][]access{
		"authorizer": {
			{"dynamodb:UpdateItem", org + "DEV"},
			{"dynamodb:UpdateItem", "RATE#key"},
			{"dynamodb:GetItem", org + "PRODUCT#0"},
			{"dynamodb:GetItem", "IDX#x#orders"},
			{"dynamodb:Query", org + "DEV"},
			{"dynamodb:PutItem", "KEY#text"},
			{"dynamodb:BatchGetItem", org + "COUNTERS"},
		},
		"developers": {
			{"dynamodb:GetItem", org + "PRODUCT#0"},
			{"dynamodb:Query", org + "EVENT#0"},
			{"dynamodb:GetItem", org + "PAYLOAD#x"},
			{"dynamodb:GetItem", "IDX#x#orders"},
			{"dynamodb:PutItem", "ORGANIZATIONS"},
		},
		"receipts": {
			{"dynamodb:GetItem", org + "PRODUCT#0"},
			{"dynamodb:Query", org + "DEV"},
			{"dynamodb:Query", org + "EVENT#0"},
			{"dynamodb:Query", org + "REQUEST#x"},
			{"dynamodb:PutItem", org + "PRODUCT#0"},
		},
		"webhooks": {
			{"dynamodb:GetItem", org + "PRODUCT#0"},
			{"dynamodb:UpdateItem", org + "CUSTOMER#0"},
			{"dynamodb:PutItem", org + "ORDER#0"},
			{"dynamodb:GetItem", org + "KEYS#x"},
			{"dynamodb:PutItem", "KEY#text"},
			{"dynamodb:GetItem", "CLIENT#x"},
			{"dynamodb:GetItem", "SIGNING"},
		},
		"api": {
			{"dynamodb:GetItem", "KEY#text"},
			{"dynamodb:GetItem", "SIGNING"},
			{"dynamodb:GetItem", org + "DEV"},
			{"dynamodb:Query", org + "DEV"},
			{"dynamodb:GetItem", org + "PAYLOAD#x"},
			{"dynamodb:Query", org + "EVENT#0"},
			{"dynamodb:GetItem", org + "REQUEST#x"},
			{"dynamodb:Query", "ORGANIZATIONS"},
			{"dynamodb:UpdateItem", org + "PRODUCT#0"},
			{"dynamodb:UpdateItem", "IDX#x#orders"},
			{"dynamodb:PutItem", org + "PRODUCT#0"},
			{"dynamodb:PutItem", "RATE#x"},
		},
	} {
		permissions := dynamotest.Model(t).Functions[function].Permissions
		for _, a := range refused {
			t.Run(function+" "+a.action+" "+a.key, func(t *testing.T) {
				if slices.ContainsFunc(permissions, func(p template.Permission) bool { return p.Covers(a.action, a.key) }) {
					t.Error("is permitted")
				}
			})
		}
	}
}
