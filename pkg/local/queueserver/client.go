package queueserver

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Client receives and deletes messages as an SQS client does, without HTTP. It is for event sources of the server's own
// process, which are Lambda's part and not the service's.
type Client struct{ server *Server }

// Client returns a client of the server.
func (s *Server) Client() *Client { return &Client{s} }

// ReceiveMessage is SQS's. It takes no options, and no deprecated names of attributes.
func (c *Client) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	asked := &receiveMessageInput{
		queueRef: queueRef{aws.ToString(in.QueueUrl)}, MessageAttributeNames: in.MessageAttributeNames, WaitTimeSeconds: aws.Int64(int64(in.WaitTimeSeconds)),
	}
	for _, name := range in.MessageSystemAttributeNames {
		asked.MessageSystemAttributeNames = append(asked.MessageSystemAttributeNames, string(name))
	}
	if in.MaxNumberOfMessages != 0 {
		asked.MaxNumberOfMessages = aws.Int64(int64(in.MaxNumberOfMessages))
	}
	found, err := c.server.receiveMessage(call{Context: ctx}, asked)
	if err != nil {
		return nil, err
	}
	out := &sqs.ReceiveMessageOutput{Messages: make([]types.Message, len(found.Messages))}
	for i := range found.Messages {
		m := &found.Messages[i]
		out.Messages[i] = types.Message{
			MessageId: &m.MessageID, ReceiptHandle: &m.ReceiptHandle, Body: &m.Body, MD5OfBody: &m.MD5OfBody, Attributes: m.Attributes,
		}
		if len(m.MessageAttributes) == 0 {
			continue
		}
		out.Messages[i].MD5OfMessageAttributes = &m.MD5OfMessageAttributes
		out.Messages[i].MessageAttributes = make(map[string]types.MessageAttributeValue, len(m.MessageAttributes))
		for name, a := range m.MessageAttributes {
			out.Messages[i].MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String(a.DataType), StringValue: a.StringValue, BinaryValue: a.BinaryValue}
		}
	}
	return out, nil
}

// DeleteMessageBatch is SQS's, without options.
func (c *Client) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	asked := &receiptBatchInput{queueRef: queueRef{aws.ToString(in.QueueUrl)}, Entries: make([]receiptEntry, len(in.Entries))}
	for i, e := range in.Entries {
		asked.Entries[i] = receiptEntry{ID: aws.ToString(e.Id), ReceiptHandle: aws.ToString(e.ReceiptHandle)}
	}
	result, err := c.server.onReceipts((*change).acknowledge)(call{Context: ctx}, asked)
	if err != nil {
		return nil, err
	}
	out := &sqs.DeleteMessageBatchOutput{}
	for i := range result.Successful {
		out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: &result.Successful[i].ID})
	}
	for i := range result.Failed {
		f := &result.Failed[i]
		out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: &f.ID, SenderFault: f.SenderFault, Code: &f.Code, Message: &f.Message})
	}
	return out, nil
}
