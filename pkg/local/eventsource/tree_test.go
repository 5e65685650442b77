package eventsource

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// streamRecords are records with everything that a table can hold.
func streamRecords() []types.Record {
	full := map[string]types.AttributeValue{
		"s": &types.AttributeValueMemberS{Value: "é<&>\"\\"}, "n": &types.AttributeValueMemberN{Value: "12.50"},
		"b": &types.AttributeValueMemberB{Value: []byte{0, 1, 255}}, "t": &types.AttributeValueMemberBOOL{Value: true},
		"f": &types.AttributeValueMemberBOOL{}, "0": &types.AttributeValueMemberNULL{Value: true},
		"ss": &types.AttributeValueMemberSS{Value: []string{"x", "y"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
		"bs": &types.AttributeValueMemberBS{Value: [][]byte{{7}, {8}}},
		"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{
			&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "v"}}},
			&types.AttributeValueMemberN{Value: "1"},
		}},
		"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "v"}}},
		"e": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}, "el": &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
	}
	keys := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "ORG#1"}}
	record := func(name types.OperationType, old, next map[string]types.AttributeValue) types.Record {
		return types.Record{
			AwsRegion: aws.String("eu-central-1"), EventID: aws.String("7"), EventName: name, EventSource: aws.String("aws:dynamodb"), EventVersion: aws.String("1.1"),
			Dynamodb: &types.StreamRecord{
				ApproximateCreationDateTime: aws.Time(time.Unix(1_767_225_600, 0)), Keys: keys, OldImage: old, NewImage: next,
				SequenceNumber: aws.String("00042"), SizeBytes: aws.Int64(99), StreamViewType: types.StreamViewTypeNewAndOldImages,
			},
		}
	}
	inserted, modified, removed := record("INSERT", nil, full), record("MODIFY", full, keys), record("REMOVE", full, nil)
	removed.UserIdentity = &types.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")}
	return []types.Record{inserted, modified, removed}
}

func changesFrom(t *testing.T, records ...types.Record) []*change {
	t.Helper()
	var changes []*change
	for _, from := range records {
		c, err := recordFormat{streamARN: "arn:stream"}.change(from)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c)
	}
	return changes
}

func TestAFilterSeesAChangeAsItsJSON(t *testing.T) {
	patterns := []string{
		`{"awsRegion":["eu-central-1"]}`, `{"eventID":["7"]}`, `{"eventName":["MODIFY"]}`, `{"eventSource":["aws:dynamodb"]}`, `{"eventVersion":["1.1"]}`,
		`{"eventSourceARN":["arn:stream"]}`, `{"other":["x"]}`, `{"userIdentity":{"type":["Service"]}}`, `{"userIdentity":{"principalId":["x"]}}`,
		`{"dynamodb":{"ApproximateCreationDateTime":[1767225600]}}`,
		`{"dynamodb":{"SequenceNumber":["00042"]}}`, `{"dynamodb":{"SizeBytes":[99]}}`, `{"dynamodb":{"StreamViewType":["NEW_AND_OLD_IMAGES"]}}`,
		`{"dynamodb":{"Keys":{"PK":{"S":["ORG#1"]}}}}`, `{"dynamodb":{"Keys":{"PK":{"N":["1"]}}}}`, `{"dynamodb":{"Keys":{"SK":{"S":["x"]}}}}`,
		`{"dynamodb":{"NewImage":{"s":{"S":["é<&>\"\\"]}}}}`, `{"dynamodb":{"NewImage":{"s":{"N":["é"]}}}}`, `{"dynamodb":{"OldImage":{"s":["é"]}}}`,
		`{"dynamodb":{"NewImage":{"n":{"N":["12.50"]}}}}`, `{"dynamodb":{"NewImage":{"n":{"N":[12.5]}}}}`, `{"dynamodb":{"NewImage":{"b":{"B":["AAH/"]}}}}`,
		`{"dynamodb":{"NewImage":{"t":{"BOOL":[true]}}}}`, `{"dynamodb":{"NewImage":{"f":{"BOOL":[false]}}}}`, `{"dynamodb":{"NewImage":{"0":{"NULL":[true]}}}}`,
		`{"dynamodb":{"NewImage":{"ss":{"SS":["y"]}}}}`, `{"dynamodb":{"NewImage":{"ns":{"NS":["2"]}}}}`, `{"dynamodb":{"NewImage":{"bs":{"BS":["CA=="]}}}}`,
		`{"dynamodb":{"NewImage":{"l":{"L":{"M":{"k":{"S":["v"]}}}}}}}`, `{"dynamodb":{"NewImage":{"l":{"L":{"N":["1"]}}}}}`, `{"dynamodb":{"NewImage":{"l":{"L":["1"]}}}}`,
		`{"dynamodb":{"NewImage":{"m":{"M":{"k":{"S":["v"]}}}}}}`, `{"dynamodb":{"NewImage":{"e":{"M":{"k":["v"]}}}}}`, `{"dynamodb":{"NewImage":{"el":{"L":["v"]}}}}`,
	}
	for _, source := range patterns {
		f, err := parseFilter([]string{source})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changesFrom(t, streamRecords()...) {
			encoded, err := c.encoded()
			if err != nil {
				t.Fatal(err)
			}
			var tree any
			if err := json.Unmarshal(encoded, &tree); err != nil {
				t.Fatal(err)
			}
			if got, want := f.passes(c), f.passes(tree); got != want {
				t.Errorf("%s of %s: got %t, of its JSON %t", source, c.event.EventName, got, want)
			}
		}
	}
}

// A function of this process must not notice that there was no JSON.
func TestATypedEventIsWhatAFunctionReadsFromTheJSON(t *testing.T) {
	alike := cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(x, y events.DynamoDBAttributeValue) bool {
		a, errA := x.MarshalJSON()
		b, errB := y.MarshalJSON()
		return errA == nil && errB == nil && bytes.Equal(a, b)
	})}
	var asText, asType []record
	for _, c := range changesFrom(t, streamRecords()...) {
		for to, asJSON := range map[*[]record]bool{&asText: true, &asType: false} {
			r, err := c.record(asJSON)
			if err != nil {
				t.Fatal(err)
			}
			*to = append(*to, r)
		}
	}
	var read events.DynamoDBEvent
	decode(t, envelope(asText), func(event events.DynamoDBEvent) { read = event })
	if diff := cmp.Diff(read, changesOf(asType), alike); diff != "" {
		t.Errorf("changes (-read from JSON +typed):\n%s", diff)
	}

	asText, asType = nil, nil
	for _, from := range []sqstypes.Message{
		{MessageId: aws.String("1"), ReceiptHandle: aws.String("r"), Body: aws.String("é<&>\""), MD5OfBody: aws.String("m")},
		{
			MessageId: aws.String("2"), ReceiptHandle: aws.String("r"), Body: aws.String("{}"), MD5OfBody: aws.String("m"), MD5OfMessageAttributes: aws.String("n"),
			Attributes: map[string]string{"SentTimestamp": "1"}, MessageAttributes: map[string]sqstypes.MessageAttributeValue{
				"s": {DataType: aws.String("String"), StringValue: aws.String("late")}, "b": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
			},
		},
	} {
		for to, asJSON := range map[*[]record]bool{&asText: true, &asType: false} {
			converted, err := messageFormat{"arn:queue", "eu-central-1", asJSON}.convert(from)
			if err != nil {
				t.Fatal(err)
			}
			*to = append(*to, converted)
		}
	}
	var messages events.SQSEvent
	decode(t, envelope(asText), func(event events.SQSEvent) { messages = event })
	if diff := cmp.Diff(messages, messagesOf(asType), alike); diff != "" {
		t.Errorf("messages (-read from JSON +typed):\n%s", diff)
	}
}

// decode reads an event as Lambda's library does.
func decode[E any](t *testing.T, payload []byte, take func(E)) {
	t.Helper()
	_, err := lambda.NewHandler(func(event E) error { take(event); return nil }).Invoke(context.Background(), payload)
	if err != nil {
		t.Fatal(err)
	}
}

// Batches for functions that take the type are closed by an estimate.
func TestTheWeightOfAChangeIsAboutTheSizeOfItsJSON(t *testing.T) {
	document := map[string]types.AttributeValue{
		"doc": &types.AttributeValueMemberS{Value: `{"items":[` + strings.Repeat(`{"name":"Tea","quantity":2},`, 200) + `]}`},
		"raw": &types.AttributeValueMemberB{Value: bytes.Repeat([]byte{1}, 3000)},
		"l":   &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: strings.Repeat("x", 1000)}}},
		"set": &types.AttributeValueMemberSS{Value: []string{strings.Repeat("x", 1000), strings.Repeat("y", 1000)}},
		"num": &types.AttributeValueMemberNS{Value: []string{"1", "2"}}, "bin": &types.AttributeValueMemberBS{Value: [][]byte{bytes.Repeat([]byte{1}, 999)}},
		"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"n": &types.AttributeValueMemberN{Value: "12"}}},
	}
	records := streamRecords()
	records[1].Dynamodb.OldImage, records[1].Dynamodb.NewImage = document, document
	c := changesFrom(t, records[1])[0]
	encoded, err := c.encoded()
	if err != nil {
		t.Fatal(err)
	}
	if share := float64(c.weight) / float64(len(encoded)); share < 0.97 || share > 1.03 {
		t.Errorf("weight %d, its JSON has %d bytes, want within 3%%", c.weight, len(encoded))
	}
}
