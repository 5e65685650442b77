package template

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/app/state"
)

// The tests of this file hold the stack's own template to what sam validate
// and cfn-lint do not see.

const root = "../../.."

func stack(t *testing.T) (*Model, *node, string) {
	t.Helper()
	file := filepath.Join(root, "template.yaml")
	m, err := Load(file, map[string]string{"JwtIssuer": "https://issuer.example", "JwtAudience": "commerce"})
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := readYAML(source)
	if err != nil {
		t.Fatal(err)
	}
	return m, n, string(source)
}

// stateStack is the template of the state's stack.
func stateStack(t *testing.T) *node {
	t.Helper()
	n, err := readYAML(state.Template)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// mentions reports what is named by Ref, GetAtt, Sub, If and Condition
// anywhere below n.
func mentions(n *node, names map[string]bool) {
	if name, argument, ok := n.intrinsic(); ok {
		switch name {
		case "Ref", "Condition":
			names[argument.text] = true
		case "Fn::GetAtt", "Fn::If":
			names[argument.list()[0].text] = true
		case "Fn::Sub":
			for _, match := range regexp.MustCompile(`\$\{([\w:]+)`).FindAllStringSubmatch(argument.text, -1) {
				names[match[1]] = true
			}
		}
	}
	for key, value := range n.pairs() {
		if key == "Condition" && value.kind == scalar { // of a resource or an output
			names[value.text] = true
		}
		mentions(value, names)
	}
	for _, entry := range n.list() {
		mentions(entry, names)
	}
}

func TestEveryParameterAndConditionIsUsed(t *testing.T) {
	_, service, _ := stack(t)
	for _, n := range []*node{service, stateStack(t)} {
		used := map[string]bool{}
		mentions(n, used)
		for _, section := range []string{"Parameters", "Conditions"} {
			for name := range n.get(section).pairs() {
				if !used[name] {
					t.Errorf("%s: nothing uses %s", section, name)
				}
			}
		}
	}
}

func TestEveryPathDeclaresWhatAPIGatewayWouldAnswerItself(t *testing.T) {
	m, _, _ := stack(t)
	methods := map[string]map[string]Route{}
	for _, r := range m.API.Routes {
		if methods[r.Path] == nil {
			methods[r.Path] = map[string]Route{}
		}
		methods[r.Path][r.Method] = r
	}
	for _, path := range []string{"/", "/{proxy+}"} {
		if methods[path] == nil {
			t.Errorf("%s is not declared", path)
		}
	}
	for path, declared := range methods {
		other, ok := declared[AnyMethod]
		if !ok || other.Authorizer != "" {
			t.Errorf("%s: want ANY without an authorizer, got %+v", path, other)
		}
		get, hasGet := declared["GET"]
		head, hasHead := declared["HEAD"]
		if hasGet != hasHead || get.Authorizer != head.Authorizer {
			t.Errorf("%s: HEAD and GET differ: %+v, %+v", path, head, get)
		}
		for method, route := range declared {
			if route.Function != other.Function {
				t.Errorf("%s %s goes to %s, ANY to %s", method, path, route.Function, other.Function)
			}
		}
	}
}

func TestEveryRouteBelongsToItsAreaAndAuthorizer(t *testing.T) {
	m, _, _ := stack(t)
	for _, r := range m.API.Routes {
		function, authorizer := "api", ""
		switch {
		case strings.HasPrefix(r.Path, "/developers/webhooks/"), r.Path == "/developers/applications/{id}/alerts":
			function, authorizer = "webhooks", "JwtOnly"
		case strings.HasPrefix(r.Path, "/developers/applications"):
			function, authorizer = "developers", "JwtOnly"
		case strings.HasPrefix(r.Path, "/oauth/"), strings.HasPrefix(r.Path, "/.well-known/"):
			function = "developers"
		case strings.HasPrefix(r.Path, "/ingest/"):
			function, authorizer = "receipts", "JwtOnly"
		case slices.Contains([]string{"/", "/portal", "/portal/{proxy+}", "/docs", "/docs/{proxy+}", "/llms.txt", "/openapi.json"}, r.Path):
			function = "portal"
		case strings.HasPrefix(r.Path, "/api/"):
			authorizer = "Any"
		}
		if r.Method == AnyMethod {
			authorizer = ""
		}
		if r.Function != function || r.Authorizer != authorizer {
			t.Errorf("%s %s: function %q, authorizer %q; want %q, %q", r.Method, r.Path, r.Function, r.Authorizer, function, authorizer)
		}
	}
}

// API Gateway refuses two parameters of different names in the same place.
func TestSiblingPathParametersHaveOneName(t *testing.T) {
	m, _, _ := stack(t)
	names := map[string]string{}
	for _, r := range m.API.Routes {
		segments := strings.Split(r.Path, "/")
		for i, segment := range segments {
			if !strings.HasPrefix(segment, "{") || strings.HasSuffix(segment, "+}") {
				continue
			}
			parent := strings.Join(segments[:i], "/")
			if before := names[parent]; before != "" && before != segment {
				t.Errorf("below %s: both %s and %s", parent, before, segment)
			}
			names[parent] = segment
		}
	}
}

func TestEveryGatewayResponseIsDeclaredInTheErrorShape(t *testing.T) {
	m, n, _ := stack(t)
	declared := n.get("Resources", "Api", "Properties", "GatewayResponses")
	for name, response := range m.API.Responses {
		if declared.get(name) == nil {
			t.Errorf("%s is not declared", name)
		}
		var body struct {
			StatusCode int    `json:"statusCode"`
			Error      string `json:"error"`
			Code       string `json:"code"`
			Message    string `json:"message"`
			Details    []any  `json:"details"`
			RequestID  string `json:"requestId"`
		}
		text := response.Templates["application/json"]
		if err := json.Unmarshal([]byte(text), &body, json.RejectUnknownMembers(true)); err != nil {
			t.Errorf("%s: %v in %s", name, err, text)
			continue
		}
		if body.StatusCode != response.Status || body.Error == "" || body.Code == "" || body.Message == "" || body.Details == nil {
			t.Errorf("%s: status %d, body %s", name, response.Status, text)
		}
		if body.RequestID != "$context.requestId" || response.Headers["X-Request-Id"] != "context.requestId" || response.Headers["X-Content-Type-Options"] != "'nosniff'" {
			t.Errorf("%s: request id or nosniff is missing from %s or %v", name, text, response.Headers)
		}
		if challenge := response.Headers["WWW-Authenticate"]; (challenge == "'Bearer'") != (response.Status == 401) {
			t.Errorf("%s: status %d with WWW-Authenticate %q", name, response.Status, challenge)
		}
		if wait := response.Headers["Retry-After"]; (wait != "") != (response.Status == 429 || response.Status == 503) {
			t.Errorf("%s: status %d with Retry-After %q", name, response.Status, wait)
		}
		if strings.Contains(text, "$context.error.") {
			t.Errorf("%s shows API Gateway's own message: %s", name, text)
		}
	}
}

func TestTableStreamsWholeImages(t *testing.T) {
	m, _, _ := stack(t)
	if m.Table.StreamView != "NEW_AND_OLD_IMAGES" || m.Table.TTL != "expiresAtEpoch" {
		t.Errorf("table has stream %q and TTL on %q", m.Table.StreamView, m.Table.TTL)
	}
	keys := map[string]bool{m.Table.Key.Partition: true, m.Table.Key.Sort: true}
	for _, index := range m.Table.Indexes {
		keys[index.Key.Partition], keys[index.Key.Sort] = true, true
	}
	for _, attribute := range m.Table.Attributes {
		if !keys[attribute.Name] || attribute.Type != "S" {
			t.Errorf("attribute %+v: want a string that some key has", attribute)
		}
		delete(keys, attribute.Name)
	}
	if len(keys) > 0 {
		t.Errorf("key attributes without a definition: %v", slices.Collect(maps.Keys(keys)))
	}
}

func TestQueueSourcesLeaveTimeForRetries(t *testing.T) {
	m, _, _ := stack(t)
	for _, f := range m.Functions {
		for _, source := range f.Queues {
			queue := m.Queues[source.Queue]
			if queue.VisibilityTimeout < 6*f.Timeout {
				t.Errorf("%s: visibility %v is less than six timeouts of %s (%v)", queue.LogicalID, queue.VisibilityTimeout, f.Name, f.Timeout)
			}
			if !source.ReportFailures {
				t.Errorf("%s does not report batch item failures", source.ID)
			}
			dead, ok := m.Queues[queue.DeadLetterQueue]
			if !ok || queue.MaxReceiveCount == 0 || dead.Retention != 14*24*time.Hour {
				t.Errorf("%s: dead letter queue %+v after %d receives", queue.LogicalID, dead, queue.MaxReceiveCount)
			}
		}
	}
	for id, queue := range m.Queues {
		if queue.MaxMessageSize != 1<<20 {
			t.Errorf("%s takes messages of %d bytes, want 1 MiB", id, queue.MaxMessageSize)
		}
	}
}

// A message that our own code cannot process must not lie unseen.
func TestEveryDeadLetterQueueHasItsAlarm(t *testing.T) {
	m, n, source := stack(t)
	watched := map[string]bool{}
	for _, resource := range n.get("Resources").pairs() {
		alarm := resource.get("Properties")
		if resource.get("Type").text != "AWS::CloudWatch::Alarm" || alarm.get("MetricName") == nil || alarm.get("MetricName").text != "ApproximateNumberOfMessagesVisible" {
			continue
		}
		if threshold := alarm.get("Threshold").text; threshold != "0" {
			t.Errorf("an alarm on messages that are there: threshold %s, want 0", threshold)
		}
		mentions(alarm.get("Dimensions"), watched)
	}
	dead := map[string]bool{"ParkQueue": true}
	for _, queue := range m.Queues {
		if queue.DeadLetterQueue != "" {
			dead[queue.DeadLetterQueue] = true
		}
	}
	for id := range dead {
		if !watched[id+"Name"] {
			t.Errorf("no alarm watches %s", id)
		}
		if !strings.Contains(source, `"${`+id+`Name}"`) {
			t.Errorf("the dashboard does not show %s", id)
		}
	}
	if len(dead) != 4 {
		t.Errorf("dead letter queues %v, want those of records, deliveries and index jobs, and the park", dead)
	}
}

// Past about 120,000 messages in flight a queue hands out nothing, without an
// error.
func TestQueuesAreWatchedForMessagesInFlight(t *testing.T) {
	_, n, _ := stack(t)
	watched := map[string]bool{}
	for _, resource := range n.get("Resources").pairs() {
		if metric := resource.get("Properties", "MetricName"); metric != nil && metric.text == "ApproximateNumberOfMessagesNotVisible" {
			mentions(resource.get("Properties", "Dimensions"), watched)
		}
	}
	for _, id := range []string{"RecordsQueue", "DeliveriesQueue", "SlowDeliveriesQueue"} {
		if !watched[id+"Name"] {
			t.Errorf("no alarm watches the messages in flight of %s", id)
		}
	}
}

// Batches of one shard side by side are for a function that needs no order:
// the dispatcher's events have none, the indexer's would meet at one tail.
func TestOnlyTheDispatcherTakesBatchesOfAShardSideBySide(t *testing.T) {
	m, _, _ := stack(t)
	for name, want := range map[string]int{"dispatcher": 10, "indexer": 1} {
		for _, source := range m.Functions[name].Streams {
			if source.ParallelizationFactor != want {
				t.Errorf("%s of %s: factor %d, want %d", source.ID, name, source.ParallelizationFactor, want)
			}
		}
	}
}

func TestStreamSourcesNeverGiveUpAndFilterByItemType(t *testing.T) {
	m, _, _ := stack(t)
	want := map[string][]string{
		"dispatcher": {
			`{"dynamodb":{"NewImage":{"t":{"S":["rec"]}}}}`,
			`{"dynamodb":{"NewImage":{"t":{"S":["end"]},"status":{"S":["DISABLED"]}}}}`,
			`{"dynamodb":{"NewImage":{"alert":{"S":["endpoint.failing","endpoint.disabling","endpoint.recovered","event.failed"]}}}}`,
			`{"dynamodb":{"NewImage":{"t":{"S":["beat"]}}}}`,
		},
		"indexer": {`{"dynamodb":{"NewImage":{"t":{"S":["rec","evt","beat"]}}}}`},
	}
	got := map[string][]string{}
	for _, f := range m.Functions {
		for _, source := range f.Streams {
			got[f.Name] = source.Filters
			if !source.Bisect || !source.ReportFailures {
				t.Errorf("%s of %s: %+v", source.ID, f.Name, source)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("stream filters %v, want %v", got, want)
	}
}

func TestEveryVariableIsReadByTheFunctions(t *testing.T) {
	m, _, _ := stack(t)
	sources, err := filepath.Glob(filepath.Join(root, "pkg", "app", "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources of the configuration: %v", err)
	}
	var code strings.Builder
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	for name := range m.Functions["api"].Environment {
		readBySDK := strings.HasPrefix(name, "AWS_")
		if !readBySDK && !strings.Contains(code.String(), `"`+name+`"`) {
			t.Errorf("nothing reads the variable %s", name)
		}
	}
}

func TestNothingNamesAnAccountOrRegion(t *testing.T) {
	_, _, source := stack(t)
	if found := regexp.MustCompile(`\b\d{12}\b|\b(us|eu|ap)-[a-z]+-\d\b`).FindString(source + string(state.Template)); found != "" {
		t.Errorf("the template names %s", found)
	}
}
