package queueserver

import (
	"crypto/md5"
	"encoding/hex"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

const maxAttributes = 10

func (s *Server) sendMessage(_ *http.Request, in *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
	out := &sqs.SendMessageOutput{MD5OfMessageBody: hexMD5(aws.ToString(in.MessageBody))}
	return out, s.onQueue(in.QueueUrl, func(c change, q *queue) (err error) {
		out.MessageId, err = c.accept(q, &types.SendMessageBatchRequestEntry{
			MessageBody: in.MessageBody, DelaySeconds: in.DelaySeconds, MessageAttributes: in.MessageAttributes, MessageGroupId: in.MessageGroupId,
		})
		return err
	})
}

func (s *Server) sendMessageBatch(_ *http.Request, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	id := func(e *types.SendMessageBatchRequestEntry) *string { return e.Id }
	return out, s.onQueue(in.QueueUrl, func(c change, q *queue) (err error) {
		total := 0
		for i := range in.Entries {
			total += sizeOf(&in.Entries[i])
		}
		if total > maxMessage {
			return &types.BatchRequestTooLong{Message: aws.String("Batch requests cannot be longer than 1048576 bytes.")}
		}
		out.Successful, out.Failed, err = each(in.Entries, id, func(e *types.SendMessageBatchRequestEntry) (types.SendMessageBatchResultEntry, error) {
			sent, err := c.accept(q, e)
			return types.SendMessageBatchResultEntry{Id: e.Id, MessageId: sent, MD5OfMessageBody: hexMD5(aws.ToString(e.MessageBody))}, err
		})
		return err
	})
}

// accept checks a message, enters it into the queue and returns its id.
func (c change) accept(q *queue, e *types.SendMessageBatchRequestEntry) (*string, error) {
	if err := check(q, e); err != nil {
		return nil, err
	}
	delay := q.settings.delay
	if e.DelaySeconds != 0 {
		delay = int64(e.DelaySeconds) * 1000
	}
	m := &message{
		ID: uuid.NewString(), Body: *e.MessageBody, Group: aws.ToString(e.MessageGroupId), Attributes: e.MessageAttributes,
		Sent: c.now, State: messageState{Visible: c.now + delay},
	}
	c.send(q, m)
	return &m.ID, nil
}

func check(q *queue, e *types.SendMessageBatchRequestEntry) error {
	if aws.ToString(e.MessageBody) == "" {
		return missing("MessageBody")
	}
	if !validText(*e.MessageBody) {
		return &types.InvalidMessageContents{Message: aws.String("Invalid characters found. Valid unicode characters are" +
			" #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")}
	}
	if sizeOf(e) > q.settings.maxSize {
		return invalid("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", q.settings.maxSize)
	}
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	if group := aws.ToString(e.MessageGroupId); len(group) > 128 || strings.IndexFunc(group, invisible) >= 0 {
		return invalid("MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
	}
	if err := between("DelaySeconds", e.DelaySeconds, 0, 900); err != nil {
		return err
	}
	return checkAttributes(e.MessageAttributes)
}

func checkAttributes(attributes map[string]types.MessageAttributeValue) error {
	if len(attributes) > maxAttributes {
		return invalid("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(attributes), maxAttributes)
	}
	for name, a := range attributes {
		kind, _, _ := strings.Cut(aws.ToString(a.DataType), ".")
		text := aws.ToString(a.StringValue)
		switch {
		case name == "" || len(name) > 256 || !onlyNameCharacters(strings.ReplaceAll(name, ".", "")):
			return invalid("Message (user) attribute name %q must have 1 to 256 alphanumeric characters, hyphens, underscores and periods.", name)
		case kind == "Binary" && len(a.BinaryValue) > 0 && text == "",
			(kind == "String" || kind == "Number") && text != "" && a.BinaryValue == nil && validText(text):
		default:
			return invalid("Message (user) attribute '%s' must have a type (Binary, Number, String) and a non-empty value of it.", name)
		}
	}
	return nil
}

// sizeOf returns how many bytes a message has, its attributes included.
func sizeOf(e *types.SendMessageBatchRequestEntry) int {
	size := len(aws.ToString(e.MessageBody))
	for name, a := range e.MessageAttributes {
		size += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return size
}

// validText reports whether a text has only the characters of XML 1.0: Amazon SQS accepts no others.
func validText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
	}) < 0
}

func hexMD5(body string) *string {
	sum := md5.Sum([]byte(body))
	return aws.String(hex.EncodeToString(sum[:]))
}
