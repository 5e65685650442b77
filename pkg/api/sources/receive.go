package sources

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/commerce/shop"
	"github.com/commerce-integration/service/pkg/webhook/source"
)

const (
	maxBody = 1 << 20 // bytes of a webhook
	// maxSenders bounds the senders of wrong signatures that an instance remembers.
	maxSenders = 10_000
	// maxAttempts is how many wrong signatures of an address for an id an instance
	// looks at in attemptsWindow. The table is not written for them.
	maxAttempts    = 60
	attemptsWindow = time.Minute

	maxMessageBytes  = 1<<20 - 4<<10 // of SQS's mebibyte, with the attributes
	maxParallelItems = 16
)

// Received is the answer to a webhook.
type Received struct {
	ReceiptID value.ID `json:"receiptId" doc:"The receipt of the records, or of the webhook if it changes none."`
}

// ShopWebhook documents the body of a webhook, which is the system's.
type ShopWebhook struct {
	ID any `json:"id" required:"false" doc:"The id of the object in the shop. The other members are those of the topic."`
}

func (a *area) receiving() api.Operation {
	return api.Operation{
		ID: "receiveWebhook", Method: http.MethodPost, Path: source.Path + "{id}", Tag: tag,
		Summary: "Receive a webhook of a shop",
		Description: "For Shopify and WooCommerce, which sign their webhooks; the URL is that of a source. The body is at most 1 MiB. 202 once its changes are queued, " +
			"also for a topic that changes no record; its receipt names the topic. 200 for WooCommerce's ping, which is not signed. 401 for a signature that is none of the source's, " +
			"and for an id that is none. 60 of those in 60 s from an address are answered 429 further on.",
		Params: []api.Param{{Name: "id", In: fault.InPath, Type: "string", Format: "uuid", Required: true, Description: "The source."}},
		Body:   ShopWebhook{}, Foreign: true, MostBody: maxBody, Result: Received{}, Status: http.StatusAccepted, Counted: true,
		Errors: []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable}, Handle: a.receive,
	}
}

// sender is an address that sends to an id, the zero one for every text that is none.
type sender struct {
	id      value.ID
	address string
}

// attempts are the wrong signatures of a sender.
type attempts struct {
	since time.Time
	n     int
}

var (
	errSignature = fault.New(fault.Unauthenticated, "invalid_signature", "the body is not signed by a secret of the source: check the URL and the secret in the shop")
	ping         = regexp.MustCompile(`^webhook_id=[0-9]+$`)
)

// receive takes a webhook. Before its signature is checked nothing that it says
// counts, and afterwards nothing that it says decides whose the records are.
func (a *area) receive(r *api.Request) (*api.Response, error) {
	if ping.Match(r.Body) { // which is not JSON, and so no webhook
		return &api.Response{Status: http.StatusOK}, nil
	}
	s, err := a.verify(r)
	if err != nil {
		return nil, err
	}
	if err := r.Admit(auth.Principal{Kind: auth.KindSource, OrganizationID: s.OrganizationID, SourceID: s.ID, RateLimit: source.RateLimit}); err != nil {
		return nil, err
	}
	topic, delivery := s.Topic(r.Header)
	e, err := shop.Read(s.Kind, s.IDPrefix, topic, r.Body)
	if err != nil {
		return nil, fault.New(fault.Invalid, fault.CodeValidation, "the body is not one of the topic %s: %s", topic, err)
	}
	w := &webhook{area: a, ctx: r.Context(), source: s, topic: topic, delivery: delivery, event: e}
	switch {
	case e == nil:
		err = w.send(nil)
	case e.Level != nil:
		w.version = s.Version(r.Header, e, a.now())
		err = w.level()
	default:
		w.version = s.Version(r.Header, e, a.now())
		err = w.object()
	}
	if err != nil {
		return nil, err
	}
	return r.Created("/ingest/receipts/"+w.receipt.String(), Received{w.receipt}, "")
}

// verify returns the source whose secret signed the body. An id that is none takes
// the same way as a wrong signature: no source has the zero id.
func (a *area) verify(r *api.Request) (*source.Source, error) {
	id, _ := value.ParseID(r.PathText("id"))
	now, from := a.clock(), sender{id, r.SourceAddress()}
	tried := a.attempts.Get(from)
	if wait := tried.since.Add(attemptsWindow).Sub(now); wait <= 0 {
		tried = attempts{since: now}
	} else if tried.n >= maxAttempts {
		f := fault.New(fault.RateLimited, "rate_limited", "too many wrong signatures; wait as Retry-After says")
		f.RetryAfter = max(wait, time.Second)
		return nil, f
	}
	s, err := a.store.SourceByID(r.Context(), id)
	if err != nil {
		return nil, err
	}
	system, secrets := shop.Shopify, [][]byte{[]byte("none")}
	if s != nil {
		system = s.Kind
		if secrets, err = s.Open(a.box.Open, value.TimeOf(now)); err != nil {
			return nil, err
		}
	}
	if signed := source.Verify(system, r.Header, r.Body, secrets...); !signed || s == nil {
		tried.n++
		a.attempts.Set(from, tried)
		return nil, errSignature
	}
	return s, nil
}

// webhook is a verified webhook on its way to the queue.
type webhook struct {
	*area
	ctx             context.Context
	source          *source.Source
	topic, delivery string
	event           *shop.Event // nil: it changes no record
	version         *int64
	receipt         value.ID // the first one
}

// object queues what follows for the records of an object.
func (w *webhook) object() error {
	var plan *source.Plan
	change := func(do func(*source.Object) bool) error {
		return w.store.ChangeShopObject(w.ctx, w.source, w.event.Kind, w.event.Object, do)
	}
	err := change(func(o *source.Object) bool {
		if plan = o.Plan(w.event, w.version, w.delivery); plan != nil {
			*o = plan.Next
		}
		return plan != nil
	})
	if err != nil {
		return err
	}
	if plan == nil {
		return w.send(nil)
	}
	changes, err := w.link(plan)
	if err == nil {
		err = w.outdate(changes)
	}
	if err == nil {
		err = w.send(changes)
	}
	if err != nil || !plan.Next.Unsettled {
		return err
	}
	return change(func(o *source.Object) bool {
		same := o.Mark == plan.Next.Mark
		if same {
			*o = plan.Settled
		}
		return same
	})
}

// link adds the levels that came before the new parts of an object to its changes.
func (w *webhook) link(plan *source.Plan) ([]source.Change, error) {
	levels := make([][]source.Change, len(plan.New))
	err := parallel.UntilError(w.ctx, maxParallelItems, slices.All(plan.New), func(ctx context.Context, n int, p source.Part) error {
		return w.store.ChangeShopItem(ctx, w.source, p.Item, func(i *source.Item) (changed bool) {
			levels[n], changed = i.Link(p.ID)
			return changed
		})
	})
	return slices.Concat(plan.Changes, slices.Concat(levels...)), err
}

// outdate gives the deletion of a variation of WooCommerce, which has webhooks of its
// own, the version of the last of them where that is later.
func (w *webhook) outdate(changes []source.Change) error {
	return parallel.UntilError(w.ctx, maxParallelItems, slices.All(changes), func(ctx context.Context, i int, c source.Change) error {
		if w.source.Kind != shop.WooCommerce || c.Key == "" || c.Key == w.event.Object {
			return nil
		}
		return w.store.ChangeShopObject(ctx, w.source, c.Kind, c.Key, func(o *source.Object) bool {
			if o.Version != nil && (c.Version == nil || *c.Version < *o.Version) {
				changes[i].Version = o.Version
			}
			return false
		})
	})
}

// level queues the stock of a level, or lets it wait for its variant.
func (w *webhook) level() error {
	var changes []source.Change
	l := w.event.Level
	err := w.store.ChangeShopItem(w.ctx, w.source, l.Item, func(i *source.Item) (changed bool) {
		changes, changed = i.Take(l.Location, source.Level{Version: w.version, Available: l.Available})
		return changed
	})
	if err != nil {
		return err
	}
	return w.send(changes)
}

// send queues the changes in as few messages as they fit in, each with a receipt.
// Without changes there is a receipt alone.
func (w *webhook) send(changes []source.Change) error {
	var records [][]byte
	size := 0
	for _, c := range changes {
		text, err := json.Marshal(c)
		text = commerce.ForQueue(text)
		switch {
		case err != nil:
			return err
		case len(text) > maxMessageBytes:
			return fault.New(fault.TooLarge, "payload_too_large", "a record of the webhook is larger than a message can be")
		}
		if len(records) == commerce.MaxMessageRecords || size+len(text) > maxMessageBytes {
			if err := w.sendMessage(records); err != nil {
				return err
			}
			records, size = nil, 0
		}
		records, size = append(records, text), size+len(text)+len(",")
	}
	return w.sendMessage(records)
}

func (w *webhook) sendMessage(records [][]byte) error {
	org := w.source.OrganizationID
	message := commerce.MessageOfMany(org, slices.Concat([]byte("["), bytes.Join(records, []byte(",")), []byte("]")))
	s := receipt.NewWebhook(org, w.source.ID, w.topic, message, len(records), w.now())
	if w.receipt.IsZero() {
		w.receipt = s.Receipt.ID
	}
	if err := w.store.CreateReceipt(w.ctx, s); err != nil || len(records) == 0 {
		return err
	}
	return w.queue.Send(w.ctx, org, s.Receipt.ID, message)
}
