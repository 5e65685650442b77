package queueserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const (
	contentType  = "application/x-amz-json-1.0"
	targetPrefix = "AmazonSQS."
	// maxRequest bounds a request's body in bytes: 1 MiB of text, each byte of it escaped as six, with room for names.
	maxRequest = 8 << 20
)

// call is one request, as the operations see it.
type call struct {
	context.Context
	base string // scheme and host of the queue URLs
}

type operation func(c call, body []byte) (any, error)

// bind makes an operation of a method with its own input and output.
func bind[In, Out any](method func(call, *In) (Out, error)) operation {
	return func(c call, body []byte) (any, error) {
		in := new(In)
		if err := json.Unmarshal(body, in); err != nil {
			return nil, errSyntax(err)
		}
		return method(c, in)
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
		"DeleteQueue":                  bind(s.deleteQueue),
		"PurgeQueue":                   bind(s.purgeQueue),
		"GetQueueAttributes":           bind(s.getQueueAttributes),
		"SetQueueAttributes":           bind(s.setQueueAttributes),
		"TagQueue":                     bind(s.tagQueue),
		"UntagQueue":                   bind(s.untagQueue),
		"ListQueueTags":                bind(s.listQueueTags),
		"ListDeadLetterSourceQueues":   bind(s.listDeadLetterSourceQueues),
		"SendMessage":                  bind(s.sendMessage),
		"SendMessageBatch":             bind(s.sendMessageBatch),
		"ReceiveMessage":               bind(s.receiveMessage),
		"DeleteMessage":                bind(s.onReceipt((*change).acknowledge)),
		"DeleteMessageBatch":           bind(s.onReceipts((*change).acknowledge)),
		"ChangeMessageVisibility":      bind(s.onReceipt((*change).changeVisibility)),
		"ChangeMessageVisibilityBatch": bind(s.onReceipts((*change).changeVisibility)),
		"StartMessageMoveTask":         bind(s.startMessageMoveTask),
		"ListMessageMoveTasks":         bind(s.listMessageMoveTasks),
		"CancelMessageMoveTask":        bind(s.cancelMessageMoveTask),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := uuid.NewString()
		w.Header().Set("X-Amzn-Requestid", id)
		out, err := serve(operations, w, r)
		if err != nil {
			s.refuse(w, r, id, err)
			return
		}
		answer(w, http.StatusOK, out)
	})
}

func serve(operations map[string]operation, w http.ResponseWriter, r *http.Request) (any, error) {
	target := r.Header.Get("X-Amz-Target")
	if target == "" {
		return nil, modelled("UnsupportedOperation", "This server speaks the AWS JSON 1.0 protocol only: the request has no X-Amz-Target header.")
	}
	name, _ := strings.CutPrefix(target, targetPrefix)
	op := operations[name]
	if op == nil || name == target {
		return nil, errOperation(target)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, errParameter("One or more parameters are invalid. Reason: The request must be shorter than %d bytes.", tooLong.Limit)
	}
	if err != nil {
		return nil, errSyntax(err)
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return op(call{Context: r.Context(), base: scheme + "://" + r.Host}, body)
}

// refuse answers an error; an error that is not the protocol's is logged and answered as a fault of the server.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, id string, err error) {
	refusal := errInternal()
	if !errors.As(err, &refusal) {
		s.config.Logger.Error("queue request failed", "target", r.Header.Get("X-Amz-Target"), "request", id, "error", err)
	}
	fault := "Sender"
	if refusal.status >= http.StatusInternalServerError {
		fault = "Receiver"
	}
	w.Header().Set("X-Amzn-Query-Error", refusal.code+";"+fault)
	// A message may quote the request, which need not be text.
	message := strings.ToValidUTF8(refusal.message, "\uFFFD")
	answer(w, refusal.status, map[string]string{"__type": refusal.shape, "message": message})
}

// answer writes a response. An error here is the connection's, which the client sees.
func answer(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", body, err)) // no shape of ours can fail to encode
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
