package template

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// smallState and small are stacks with one of each construct that the model knows.
const smallState = `
Parameters:
  Patience: {Type: Number, Default: 42}
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: P, AttributeType: S}]
      KeySchema: [{AttributeName: P, KeyType: HASH}]
      StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES}
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: !Ref Patience
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 3}
  Dead:
    Type: AWS::SQS::Queue
Outputs:
  TableName: {Value: !Ref Table}
  TableStreamArn: {Value: !GetAtt Table.StreamArn}
  QueueName: {Value: !GetAtt Queue.QueueName}
  DeadName: {Value: !GetAtt Dead.QueueName}
  DeadUrl: {Value: !Ref Dead}
`

const small = `
Parameters:
  TableName: {Type: String}
  TableStreamArn: {Type: String}
  QueueName: {Type: String}
  DeadName: {Type: String}
  Size: {Type: Number, Default: 5}
  Mode: {Type: String, Default: slow, AllowedValues: [slow, fast]}
  Name: {Type: String}
Conditions:
  Fast: !Equals [!Ref Mode, fast]
  Slow: !Not [!Condition Fast]
  Both: !And [!Condition Fast, !Condition Slow]
  One: !Or [!Condition Fast, !Condition Slow]
Globals:
  Function:
    Timeout: 7
    Environment:
      Variables:
        A: global
        B: global
Resources:
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: s
      BinaryMediaTypes: ['*~1*']
      Auth:
        Authorizers:
          Users:
            FunctionPayloadType: REQUEST
            FunctionArn: !GetAtt WebFunction.Arn
            Identity: {Headers: [Authorization], QueryStrings: [k]}
      DefinitionBody:
        paths:
          /a/{id}:
            get: &users
              security: [{Users: []}]
              x-amazon-apigateway-integration: &web
                type: aws_proxy
                uri: !Sub arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${WebFunction.Arn}/invocations
            delete: *users
            x-amazon-apigateway-any-method: {x-amazon-apigateway-integration: *web}
      GatewayResponses:
        DEFAULT_4XX:
          StatusCode: 418
          ResponseParameters: {Headers: {X: context.requestId}}
          ResponseTemplates: {application/json: teapot}
        UNAUTHORIZED:
          StatusCode: 401
  WebFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: dist/web/
      MemorySize: !Ref Size
      Policies:
        - Statement:
            - Effect: Allow
              Action: [t:Get, t:Put]
              Resource: !Sub 'arn:${AWS::Partition}:dynamodb:::table/${TableName}'
            - {Effect: Allow, Action: q:Send, Resource: [&queue !Sub 'arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:${QueueName}', !Sub '${DeadName}/x']}
      Environment:
        Variables:
          B: own
          REF: !Ref Name
          ATT: !GetAtt Api.Stage
          SUB: !Sub '${Name}-${TableName}-${!Literal}-${AWS::Region}'
          IF: !If [Fast, !Ref Size, slowly]
          ONE: !If [One, 'yes', 'no']
          BOTH: !If [Both, 'yes', 'no']
          NONE: !Ref AWS::NoValue
          LONG: {'Fn::Sub': '${Size}'}
      Events:
        Tick: {Type: Schedule, Properties: {Schedule: rate(5 minutes)}}
  FromQueue:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref WebFunction
      EventSourceArn: *queue
      ScalingConfig: {MaximumConcurrency: 4}
  FromTable:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref WebFunction
      EventSourceArn: !Ref TableStreamArn
      StartingPosition: TRIM_HORIZON
      MaximumBatchingWindowInSeconds: 2
      MaximumRecordAgeInSeconds: -1
      BisectBatchOnFunctionError: true
      FunctionResponseTypes: [ReportBatchItemFailures]
      FilterCriteria: {Filters: [{Pattern: '{"a":["b"]}'}]}
`

func resolved(t *testing.T, source string, values map[string]string) *Model {
	t.Helper()
	m, err := Resolve([]byte(source), []byte(smallState), values)
	if err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	return m
}

func TestModelHoldsWhatTheTemplateDeclares(t *testing.T) {
	m := resolved(t, small, map[string]string{"Name": "n", "Table": "real-table"})

	wantFunction := Function{
		Name: "web", LogicalID: "WebFunction", Timeout: 7 * time.Second, MemoryMB: 5,
		Environment: map[string]string{
			"A": "global", "B": "own", "REF": "n", "ATT": "Api.Stage", "SUB": "n-real-table-${Literal}-local",
			"IF": "slowly", "ONE": "yes", "BOTH": "no", "NONE": "", "LONG": "5",
		},
		Permissions: []Permission{
			{Action: "t:Get", Resource: "arn:aws:dynamodb:::table/real-table"},
			{Action: "t:Put", Resource: "arn:aws:dynamodb:::table/real-table"},
			{Action: "q:Send", Resource: "arn:aws:sqs:local:000000000000:Queue"},
			{Action: "q:Send", Resource: "Dead/x"},
		},
		Queues: []QueueSource{{ID: "FromQueue", Queue: "Queue", BatchSize: 10, MaxConcurrency: 4}},
		Streams: []StreamSource{{
			ID: "FromTable", BatchSize: 100, Window: 2 * time.Second,
			ParallelizationFactor: 1, Bisect: true,
			ReportFailures: true, Filters: []string{`{"a":["b"]}`},
		}},
		Schedules: []Schedule{{ID: "WebFunctionTick", Every: 5 * time.Minute}},
	}
	if diff := cmp.Diff(map[string]Function{"web": wantFunction}, m.Functions); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}

	wantRoutes := []Route{
		{Method: "ANY", Path: "/a/{id}", Function: "web"},
		{Method: "DELETE", Path: "/a/{id}", Function: "web", Authorizer: "Users"},
		{Method: "GET", Path: "/a/{id}", Function: "web", Authorizer: "Users"},
	}
	if diff := cmp.Diff(wantRoutes, m.API.Routes); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	wantAuthorizer := Authorizer{
		Name: "Users", Function: "web", TTL: 300 * time.Second,
		Headers: []string{"Authorization"}, QueryStrings: []string{"k"},
	}
	if diff := cmp.Diff(map[string]Authorizer{"Users": wantAuthorizer}, m.API.Authorizers); diff != "" {
		t.Errorf("authorizers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"*/*"}, m.API.BinaryMediaTypes); diff != "" {
		t.Errorf("binary media types (-want +got):\n%s", diff)
	}

	const day = 24 * time.Hour
	wantQueues := map[string]Queue{
		"Queue": {
			LogicalID: "Queue", ARN: "arn:aws:sqs:local:000000000000:Queue", VisibilityTimeout: 42 * time.Second, Retention: 4 * day,
			MaxMessageSize: 1 << 20, DeadLetterQueue: "Dead", MaxReceiveCount: 3,
		},
		"Dead": {LogicalID: "Dead", ARN: "arn:aws:sqs:local:000000000000:Dead", VisibilityTimeout: 30 * time.Second, Retention: 4 * day, MaxMessageSize: 1 << 20},
	}
	if diff := cmp.Diff(wantQueues, m.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	wantTable := Table{
		LogicalID: "Table", StreamARN: "Table.StreamArn", Attributes: []Attribute{{Name: "P", Type: "S"}},
		Key: Key{Partition: "P"}, StreamView: "NEW_AND_OLD_IMAGES",
	}
	if diff := cmp.Diff(wantTable, m.Table); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestValuesOverrideDefaults(t *testing.T) {
	m := resolved(t, small, map[string]string{"Name": "n", "Mode": "fast", "Size": "9", "AWS::Region": "mars"})
	got := m.Functions["web"].Environment
	if got["IF"] != "9" || got["SUB"] != "n-Table-${Literal}-mars" || m.Parameters["Mode"] != "fast" {
		t.Errorf("IF = %q, SUB = %q, Mode = %q", got["IF"], got["SUB"], m.Parameters["Mode"])
	}
}

func TestUndeclaredGatewayResponsesFallBack(t *testing.T) {
	m := resolved(t, small, map[string]string{"Name": "n"})
	teapot := GatewayResponse{
		Status: 418, Headers: map[string]string{"X": "context.requestId"},
		Templates: map[string]string{"application/json": "teapot"},
	}
	plain := map[string]string{"application/json": `{"message":$context.error.messageString}`}
	for name, want := range map[string]GatewayResponse{
		"THROTTLED":           teapot,
		"UNAUTHORIZED":        {Status: 401, Headers: map[string]string{}, Templates: plain},
		"INTEGRATION_TIMEOUT": {Status: 504, Headers: map[string]string{}, Templates: plain},
	} {
		if diff := cmp.Diff(want, m.API.Responses[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMistakesAreRefused(t *testing.T) {
	for _, test := range []struct {
		name, old, new, want string
	}{
		{"no YAML", "Parameters:", "Parameters: [", "parse YAML"},
		{"missing parameter", "\n  Name: {Type: String}", "\n  Other: {Type: String}", "parameter Other has no default"},
		{"value not allowed", "Default: slow", "Default: other", `Mode is "other", must be one of slow, fast`},
		{"missing output", "DeadName: {Value: !GetAtt Dead.QueueName}", "", "parameter DeadName has no default"},
		{"unknown output", "!GetAtt Table.StreamArn", "!GetAtt Tabel.StreamArn", "Tabel.StreamArn is neither a parameter nor a resource"},
		{"unknown alias", "*users", "*nobody", "no anchor nobody"},
		{"unknown reference", "!Ref Size", "!Ref Sise", "Sise is neither a parameter nor a resource"},
		{"unknown condition", "!If [Fast", "!If [Quick", "no such condition"},
		{"unknown intrinsic", "!Ref Size", "!Base64 x", "cannot resolve Fn::Base64"},
		{"open substitution", "${Name}-", "${Name-", "neither a parameter nor a resource"},
		{"not a number", "Timeout: 7", "Timeout: 7s", `"7s" is no whole number`},
		{"not a boolean", "BisectBatchOnFunctionError: true", "BisectBatchOnFunctionError: maybe", `"maybe" is neither`},
		{"key twice", "            delete: *users", "            get: *users", "already defined"},
		{"unknown function", "${WebFunction.Arn}", "${Api.Arn}", "names no function"},
		{"unknown authorizer", "security: [{Users: []}]", "security: [{Guests: []}]", "no authorizer Guests"},
		{"two authorizers", "security: [{Users: []}]", "security: [{Users: []}, {Users: []}]", "more than one authorizer"},
		{"token authorizer", "FunctionPayloadType: REQUEST", "FunctionPayloadType: TOKEN", "only REQUEST"},
		{"other integration", "type: aws_proxy", "type: http", "only aws_proxy"},
		{"unknown gateway response", "UNAUTHORIZED:", "UNAUTHORISED:", "UNAUTHORISED is no type of gateway response"},
		{"unknown source", "EventSourceArn: *queue", "EventSourceArn: !GetAtt Api.Arn", "neither the table nor a queue"},
		{"no stream", "{StreamViewType: NEW_AND_OLD_IMAGES}", "{}", "has no stream"},
		{"cron schedule", "rate(5 minutes)", "cron(0 * * * ? *)", "only rates like"},
		{"singular schedule", "rate(5 minutes)", "rate(5 minute)", "only rates like"},
		{"plural schedule", "rate(5 minutes)", "rate(1 minutes)", "only rates like"},
		{"schedule of no time", "rate(5 minutes)", "rate(0 minutes)", "only rates like"},
		{"retries with an end", "MaximumRecordAgeInSeconds: -1", "MaximumRetryAttempts: 3", "MaximumRetryAttempts 3 is not supported"},
		{"only changes to come", "TRIM_HORIZON", "LATEST", `FromTable: StartingPosition "LATEST" is not supported, only TRIM_HORIZON`},
		{"no starting position", "StartingPosition: TRIM_HORIZON", "Enabled: true", `FromTable: StartingPosition "" is not supported`},
		{"age", "MaximumRecordAgeInSeconds: -1", "MaximumRecordAgeInSeconds: 60", "MaximumRecordAgeInSeconds 60 is not supported"},
		{"filter of a queue", "ScalingConfig:", "FilterCriteria: {}\n      ScalingConfig:", "FilterCriteria is not supported for a queue"},
		{"policy by name", "        - Statement:", "        - SomePolicy: {}\n          Statements:", "a policy without statements"},
		{"denial", "{Effect: Allow, Action: q:Send", "{Effect: Deny, Action: q:Send", `effect "Deny" is not supported`},
		{"other event", "Type: Schedule", "Type: S3", "only Schedule"},
	} {
		t.Run(test.name, func(t *testing.T) {
			source, state := strings.Replace(small, test.old, test.new, 1), strings.Replace(smallState, test.old, test.new, 1)
			if source == small && state == smallState {
				t.Fatalf("%q does not occur", test.old)
			}
			values := map[string]string{}
			if test.name != "missing parameter" {
				values["Name"] = "n"
			}
			_, err := Resolve([]byte(source), []byte(state), values)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q for %q: got %v, want an error with %q", test.new, test.old, err, test.want)
			}
		})
	}
}

func TestValueThatNothingIsNamedByIsRefused(t *testing.T) {
	_, err := Resolve([]byte(small), []byte(smallState), map[string]string{"Name": "n", "Tabel": "x"})
	if err == nil || !strings.Contains(err.Error(), "Tabel") {
		t.Errorf("got %v, want an error naming Tabel", err)
	}
}
