package faults

import (
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Headers of the protocol.
const (
	headerTarget    = "X-Amz-Target"
	headerChecksum  = "X-Amz-Crc32"
	headerRequestID = "X-Amzn-Requestid"
	contentType     = "application/x-amz-json-1.0"
)

// answer is a response, whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) ok() bool { return a.status == http.StatusOK }

// setBody replaces the body of an answer that the server gave.
func (a *answer) setBody(body []byte) {
	a.body = body
	a.header.Set(headerChecksum, strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
}

// send writes the answer. When cut is set it writes half of it and cuts the
// connection.
func (a *answer) send(w http.ResponseWriter, cut bool) {
	for name, values := range a.header {
		if name != "Content-Length" && name != "Transfer-Encoding" && name != "Connection" {
			w.Header()[name] = values
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	if !cut {
		_, _ = w.Write(a.body) // a client that is gone does not care
		return
	}
	_, _ = w.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Error namespaces, as DynamoDB writes them in __type.
const (
	modelNamespace        = "com.amazonaws.dynamodb.v20120810#"
	availabilityNamespace = "com.amazon.coral.availability#"
)

// reason is why one item of a transaction or one statement of a batch failed.
type reason struct {
	Code    string
	Message string `json:",omitzero"`
}

// failure makes an error of the protocol.
func failure(status int, kind, message string) *answer {
	return answerWith(status, map[string]any{"__type": kind, "message": message})
}

// answerWith makes an answer that the server did not give.
func answerWith(status int, members map[string]any) *answer {
	a := &answer{status: status, header: http.Header{}}
	a.header.Set("Content-Type", contentType)
	a.header.Set(headerRequestID, requestID)
	a.setBody(encode(members))
	return a
}

// requestID shows in a client's error that the proxy made it up.
const requestID = "INJECTEDBYFAULTPROXY"

func internalError() *answer {
	return failure(http.StatusInternalServerError, modelNamespace+"InternalServerError", "Internal server error")
}

// throttled refuses a request in one of the ways in which DynamoDB throttles.
func throttled(o operation, body []byte, random *rand.Rand) *answer {
	switch n := random.IntN(3); {
	case n == 0 && o.transaction && o.writes:
		return cancelled(body, random, reason{"ThrottlingError", "Throughput exceeds the current capacity of your table or index."})
	case n == 1:
		return failure(http.StatusBadRequest, availabilityNamespace+"ThrottlingException",
			"Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly.")
	default:
		return failure(http.StatusBadRequest, modelNamespace+"ProvisionedThroughputExceededException",
			"The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.")
	}
}

const ongoing = "Transaction is ongoing for the item"

// conflicting refuses what met another transaction.
func conflicting(o operation, body []byte, random *rand.Rand) *answer {
	if o.transaction {
		return cancelled(body, random, reason{"TransactionConflict", ongoing})
	}
	return failure(http.StatusBadRequest, modelNamespace+"TransactionConflictException", ongoing)
}

// cancelled refuses a transaction because of one of its items.
func cancelled(body []byte, random *rand.Rand, because reason) *answer {
	var request struct{ TransactItems []jsontext.Value }
	if err := json.Unmarshal(body, &request); err != nil || len(request.TransactItems) == 0 {
		return internalError()
	}
	items := len(request.TransactItems)
	reasons, codes := slices.Repeat([]reason{{Code: "None"}}, items), slices.Repeat([]string{"None"}, items)
	hit := random.IntN(items)
	reasons[hit], codes[hit] = because, because.Code
	return answerWith(http.StatusBadRequest, map[string]any{
		"__type":              modelNamespace + "TransactionCanceledException",
		"Message":             "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]",
		"CancellationReasons": reasons,
	})
}
