package faults

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// reason is why an item of a transaction or a statement of a batch failed.
type reason struct {
	Code    string
	Message string `json:",omitzero"`
}

const (
	namespace = "com.amazonaws.dynamodb.v20120810#" // of errors in __type
	tooMuch   = "Throughput exceeds the current capacity of your table or index."
	ongoing   = "Transaction is ongoing for the item"
)

// answer makes an answer that the server did not give. Its request id shows that in a client's error.
func answer(status int, members any) *http.Response {
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"INJECTEDBYFAULTPROXY"}}
	return withBody(&http.Response{StatusCode: status, Header: header}, members)
}

// withBody replaces an answer's body.
func withBody(a *http.Response, members any) *http.Response {
	body := encode(members)
	a.Header.Del("X-Amz-Crc32") // of the server's body
	a.Header.Del("Content-Length")
	a.Body, a.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return a
}

func internalError() *http.Response {
	return refused(http.StatusInternalServerError, namespace+"InternalServerError", "Internal server error")
}

func refused(status int, kind, message string) *http.Response {
	return answer(status, map[string]any{"__type": kind, "message": message})
}

// throttled refuses a request in one of DynamoDB's ways.
func (c call) throttled() *http.Response {
	switch n := c.coin.IntN(3); {
	case n == 0 && operations[c.op].transaction:
		return c.cancelled(reason{"ThrottlingError", tooMuch})
	case n == 1:
		return refused(http.StatusBadRequest, "com.amazon.coral.availability#ThrottlingException", tooMuch)
	default:
		return refused(http.StatusBadRequest, namespace+"ProvisionedThroughputExceededException", tooMuch)
	}
}

// conflicting refuses what met another transaction.
func (c call) conflicting() *http.Response {
	if operations[c.op].transaction {
		return c.cancelled(reason{"TransactionConflict", ongoing})
	}
	return refused(http.StatusBadRequest, namespace+"TransactionConflictException", ongoing)
}

// cancelled refuses a transaction because of one of its items.
func (c call) cancelled(because reason) *http.Response {
	var request struct{ TransactItems []jsontext.Value }
	if err := json.Unmarshal(c.body, &request); err != nil || len(request.TransactItems) == 0 {
		return internalError()
	}
	items := len(request.TransactItems)
	reasons, codes := slices.Repeat([]reason{{Code: "None"}}, items), slices.Repeat([]string{"None"}, items)
	hit := c.coin.IntN(items)
	reasons[hit], codes[hit] = because, because.Code
	return answer(http.StatusBadRequest, map[string]any{
		"__type":              namespace + "TransactionCanceledException",
		"Message":             "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]",
		"CancellationReasons": reasons,
	})
}

// encode writes JSON that was read or made here.
func encode(v any) jsontext.Value {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("JSON that was made here cannot be written: " + err.Error())
	}
	return body
}
