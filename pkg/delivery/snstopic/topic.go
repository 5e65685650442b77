// Package snstopic publishes alerts to an SNS topic, for the operator: by mail,
// to a chat or a pager. The message is the event's payload, as endpoints get it,
// with attributes by which subscriptions choose, and no signature: the topic's
// policy says who may publish. A message may come twice with the same eventId;
// a FIFO topic drops the second within five minutes.
package snstopic

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/commerce-integration/service/pkg/commerce"
)

// Topic is an SNS topic. It is safe for concurrent use.
type Topic struct {
	client *sns.Client
	arn    string
}

// New returns the topic with the ARN.
func New(client *sns.Client, arn string) *Topic { return &Topic{client, arn} }

// Publish publishes an alert. The client has repeated what may pass.
func (t *Topic) Publish(ctx context.Context, alert *commerce.WebhookPayload) error {
	body, err := alert.Encode()
	if err != nil {
		return err
	}
	in := &sns.PublishInput{
		TopicArn: &t.arn, Message: aws.String(string(body)),
		Subject: aws.String(alert.Type + " " + alert.ObjectID.String()),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"type": text(alert.Type), "eventId": text(alert.ID.String()), "organizationId": text(alert.OrganizationID.String()),
		},
	}
	if strings.HasSuffix(t.arn, ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(alert.ObjectID.String()), aws.String(alert.ID.String())
	}
	if _, err := t.client.Publish(ctx, in); err != nil {
		return fmt.Errorf("publish %s %s: %w", alert.Type, alert.ID, err)
	}
	return nil
}

func text(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}
