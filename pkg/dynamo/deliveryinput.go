package dynamo

import (
	"context"
	"fmt"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/webhook"
)

// DeliveryInputs reads what the attempts of the deliveries need, strongly
// consistent, and answers in the order of the references. Several may share an
// endpoint and a payload, which must not be changed.
func (t *DeliveryStore) DeliveryInputs(ctx context.Context, refs []webhook.DeliveryRef) ([]webhook.DeliveryInput, error) {
	keys := make([]key, 0, 4*len(refs))
	for _, r := range refs {
		k := inputKeys(r)
		keys = append(keys, k[:]...)
	}
	items, err := t.batchGetLive(ctx, keys)
	if err != nil {
		return nil, err
	}
	var (
		deliveries   = make(map[key]*webhook.Delivery, len(refs))
		payloads     = map[key][]byte{}
		endpoints    = map[key]*webhook.Endpoint{}
		applications = map[key]webhook.ApplicationState{}
	)
	for _, it := range items {
		k := keyOf(it)
		switch getString(it, attrType) {
		case typeDelivery:
			deliveries[k], err = decodeDelivery(it)
		case typePayload:
			payloads[k], err = t.decodePayload(it)
		case typeEndpoint:
			endpoints[k], err = decodeEndpoint(it)
		case typeApplication:
			var app *account.Application
			if app, err = decodeDoc[account.Application](it); err == nil {
				applications[k] = stateOf(app)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	inputs := make([]webhook.DeliveryInput, len(refs))
	for i, r := range refs {
		k := inputKeys(r)
		if d := deliveries[k[0]]; d != nil && !r.Names(d) {
			return nil, fmt.Errorf("the message %s names another event than its delivery", r.Body())
		}
		inputs[i] = webhook.DeliveryInput{
			Delivery: deliveries[k[0]], Payload: payloads[k[1]], Endpoint: endpoints[k[2]], Application: applications[k[3]],
		}
	}
	return inputs, nil
}

// inputKeys are the keys of a delivery, its payload, its endpoint and its
// application, all under the reference's organization.
func inputKeys(r webhook.DeliveryRef) [4]key {
	org := r.OrganizationID
	return [4]key{
		deliveryKey(org, r.DeliveryID), payloadKey(org, r.EventID),
		endpointKey(org, r.EndpointID), applicationKey(org, r.ApplicationID),
	}
}
