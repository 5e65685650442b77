package bench

import (
	"testing"
)

func TestItemsAreReadFromRequests(t *testing.T) {
	const row = `"PK":{"S":"ORG#o#EVENT#1"},"SK":{"S":"r"}`
	for _, tt := range []struct{ operation, body, kind string }{
		{"PutItem", `{"TableName":"t","Item":{` + row + `,"doc":{"S":"x"}}}`, kindRow},
		{"GetItem", `{"Key":{` + row + `}}`, kindRow},
		{"BatchGetItem", `{"RequestItems":{"t":{"ConsistentRead":true,"Keys":[{` + row + `}]}}}`, kindRow},
		{"BatchWriteItem", `{"RequestItems":{"t":[{"PutRequest":{"Item":{` + row + `}}}]}}`, kindRow},
		{"BatchWriteItem", `{"RequestItems":{"t":[{"DeleteRequest":{"Key":{` + row + `}}}]}}`, kindRow},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{"Item":{` + row + `}}}]}`, kindRow},
		{"TransactWriteItems", `{"TransactItems":[{"ConditionCheck":{"Key":{` + row + `}}}]}`, kindRow},
		{"BatchExecuteStatement", `{"Statements":[{"Statement":"INSERT INTO \"t\" VALUE {'PK': ?, 'SK': ?}","Parameters":[{"S":"ORG#o#PAYLOAD#e"},{"S":"PAYLOAD"}]}]}`, kindPayload},
		{"Query", `{"KeyConditionExpression":"PK = :pk AND SK > :a","ExpressionAttributeValues":{":pk":{"S":"IDX#o#products"},":a":{"S":"T#1"}}}`, kindIndex},
	} {
		all, err := touches(tt.operation, []byte(tt.body))
		if err != nil || len(all) != 1 || all[0].kind() != tt.kind || all[0].units != 1 {
			t.Errorf("%s %s: got %+v, %v, want one item of a unit, %s", tt.operation, tt.body, all, err, tt.kind)
		}
	}
}

func TestKindsAreToldByKeys(t *testing.T) {
	for key, want := range map[string]string{
		"ORG#o#PRODUCT#a": kindRecord, "ORG#o#COUNTERS": kindTally, "ORG#o#STATS#e": kindTally, "ORG#o#DEV": kindEndpoint,
		"JOB#1": kindIndex, "RATE#a": kindOther, "ORG#o#KEYS#a": kindOther, "DUE#0": kindOther,
	} {
		if got := (&touched{pk: key}).kind(); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

func TestARequestIsMadeToAskWhatItConsumes(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:        `{"ReturnConsumedCapacity":"TOTAL"}`,
		`{"a":1}`:   `{"ReturnConsumedCapacity":"TOTAL","a":1}`,
		` { "a":1}`: `{"ReturnConsumedCapacity":"TOTAL","a":1}`,
	} {
		if got := string(asking([]byte(body))); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

func TestUnitsOfACallAreDividedBySize(t *testing.T) {
	body := `{"TransactItems":[{"Put":{"Item":{"PK":{"S":"ORG#o#EVENT#1"},"SK":{"S":"r"}}}},{"Update":{"Key":{"PK":{"S":"ORG#o#COUNTERS"},"SK":{"S":"e"}}}}]}`
	sums, err := usages([]*tapped{{operation: "TransactWriteItems", body: []byte(body), units: 4}})
	if err != nil || sums[kindRow].writes != 2 || sums[kindTally].writes != 2 || sums[kindRow].items != 1 {
		t.Errorf("got row %+v and tally %+v, %v, want 2 of 4 units each", sums[kindRow], sums[kindTally], err)
	}
}

func TestWritesWaitForThoseOfTheSameItem(t *testing.T) {
	put := func(sk string) *tapped {
		return &tapped{operation: "PutItem", body: []byte(`{"Item":{"PK":{"S":"p"},"SK":{"S":"` + sk + `"}}}`)}
	}
	p, err := planned([]*tapped{put("a"), {operation: "GetItem"}, put("b"), put("a"), {operation: "PutItem", refused: true}})
	if err != nil || len(p.calls) != 3 || len(p.after[0]) != 0 || len(p.after[1]) != 0 || len(p.after[2]) != 1 || p.after[2][0] != 0 {
		t.Errorf("got %d calls after %v, %v, want the third after the first", len(p.calls), p.after, err)
	}
}
