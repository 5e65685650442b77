package queueserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

const (
	contentType  = "application/x-amz-json-1.0"
	targetPrefix = "AmazonSQS."
	// maxRequest bounds a request's body in bytes: 1 MiB of text, each byte of it escaped as six, with room for names.
	maxRequest = 8 << 20
)

// An operation answers a request. The types of the SDK are the protocol's shapes: their fields have its names.
type operation func(r *http.Request, body []byte) (any, error)

// bind makes an operation of a method with its own input and output.
func bind[In, Out any](method func(*http.Request, *In) (Out, error)) operation {
	return func(r *http.Request, body []byte) (any, error) {
		in := new(In)
		if err := json.Unmarshal(body, in); err != nil {
			return nil, refused("MalformedInput", "%v", err)
		}
		return method(r, in)
	}
}

// Handler returns the server's endpoint. It takes every path: queues are named by their URL in the request's body, and
// the URLs it gives out are http://<Host of the request>/<account>/<name>. A long poll holds its request for up to 20
// seconds, which a WriteTimeout must allow.
func (s *Server) Handler() http.Handler {
	operations := map[string]operation{
		"CreateQueue":                  bind(s.createQueue),
		"GetQueueUrl":                  bind(s.getQueueURL),
		"ListQueues":                   bind(s.listQueues),
		"GetQueueAttributes":           bind(s.getQueueAttributes),
		"SetQueueAttributes":           bind(s.setQueueAttributes),
		"SendMessage":                  bind(s.sendMessage),
		"SendMessageBatch":             bind(s.sendMessageBatch),
		"ReceiveMessage":               bind(s.receiveMessage),
		"DeleteMessage":                bind(s.deleteMessage),
		"DeleteMessageBatch":           bind(s.deleteMessageBatch),
		"ChangeMessageVisibility":      bind(s.changeMessageVisibility),
		"ChangeMessageVisibilityBatch": bind(s.changeMessageVisibilityBatch),
		"StartMessageMoveTask":         bind(s.startMessageMoveTask),
		"ListMessageMoveTasks":         bind(s.listMessageMoveTasks),
		"CancelMessageMoveTask":        bind(s.cancelMessageMoveTask),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
		out, err := serve(operations[name], w, r)
		if err != nil {
			s.refuse(w, name, err)
			return
		}
		answer(w, http.StatusOK, out)
	})
}

func serve(op operation, w http.ResponseWriter, r *http.Request) (any, error) {
	if op == nil {
		return nil, refused("InvalidAction", "This server has no operation %q of the AWS JSON 1.0 protocol.", r.Header.Get("X-Amz-Target"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, invalid("One or more parameters are invalid. Reason: The request must be shorter than %d bytes.", tooLong.Limit)
	}
	if err != nil {
		return nil, refused("MalformedInput", "%v", err)
	}
	return op(r, body)
}

// answer writes a response. An error here is the connection's, which the client sees.
func answer(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body, json.OmitZeroStructFields(true))
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", body, err)) // no shape of ours can fail to encode
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
