package worker

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/delivery/arntarget"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/webhook"
)

// send asks the receiver of a delivery once, by HTTP or through the target
// of an ARN, with a signature of the time start. An error is our fault.
func (w *Worker) send(ctx context.Context, in *webhook.DeliveryInput, start time.Time, timeout time.Duration) (outbound.Outcome, error) {
	endpoint, d := in.Endpoint, in.Delivery
	body, err := d.Body(in.Payload)
	if err != nil {
		return outbound.Outcome{}, err
	}
	arn, isARN := webhook.ParseARN(endpoint.URL)
	isARN = isARN && w.cfg.ARNs != nil
	if isARN {
		if body, err = arn.Body(body); err != nil {
			return outbound.Outcome{}, err
		}
	}
	header, err := w.header(endpoint, d.EventID, start, body)
	if err != nil {
		return outbound.Outcome{}, err
	}
	if isARN {
		return w.cfg.ARNs.Send(ctx, endpoint.OrganizationID, arn, arntarget.Event{Type: d.Type, Header: header, Body: body}, timeout), nil
	}
	return w.client.Post(ctx, endpoint.URL, header, body, timeout), nil
}
