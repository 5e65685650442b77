package bench

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// perMessage is how many records a back office puts into one message: below
// the bounds of 500 records and 1 MiB.
const perMessage = 400

// envelope is a message of the records queue with many records.
type envelope struct {
	OrganizationID value.ID `json:"organizationId"`
	Records        []change `json:"records"`
}

// single is a message with one record.
type single struct {
	OrganizationID value.ID `json:"organizationId"`
	change
}

type change struct {
	Kind   commerce.Kind  `json:"kind"`
	Op     commerce.Op    `json:"op"`
	Record jsontext.Value `json:"record"`
	Silent bool           `json:"silent"`
}

// put is the change that stores a product. A silent one means no event.
func put(p *commerce.Product, silent bool) (change, error) {
	record, err := json.Marshal(p)
	if err != nil {
		return change{}, fmt.Errorf("encode product %s: %w", p.ID, err)
	}
	return change{commerce.KindProduct, commerce.OpPut, record, silent}, nil
}

// sendProducts puts products into one message of the queue.
func sendProducts(ctx context.Context, client *sqs.Client, queueURL string, products []*commerce.Product, silent bool) error {
	organization := products[0].OrganizationID
	message := envelope{OrganizationID: organization}
	for _, p := range products {
		c, err := put(p, silent)
		if err != nil {
			return err
		}
		message.Records = append(message.Records, c)
	}
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	text, group := string(body), organization.String()
	if _, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: &text, MessageGroupId: &group}); err != nil {
		return fmt.Errorf("send %d products: %w", len(products), err)
	}
	return nil
}
