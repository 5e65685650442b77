// Package receipts answers the operations by which a back office posts records
// and learns what became of them. A receipt is answered once the message with
// the records is in the queue, from which ingest applies them as those of every
// other sender. What ingest refused of those senders is shown, too. A receipt of
// another organization, and to an application's token that of another sender, is
// answered exactly as one that does not exist.
package receipts

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
)

const (
	tag          = "Ingestion"
	receiptsPath = "/ingest/receipts"
	receiptPath  = receiptsPath + "/"

	beforeParam = "before"
	sourceParam = "sourceId"
	limitParam  = "limit"

	defaultListed = 20
	maxListed     = 100
	// listedRefusals is how many refusals a list shows of each receipt: all of
	// them would pass what an answer can hold.
	listedRefusals = 1
)

// Receipts are the latest receipts.
type Receipts struct {
	Data []receipt.Receipt `json:"data" doc:"The receipts, the latest first, each with only its first refusal."`
	Meta ReceiptsMeta      `json:"meta" doc:"How to go on."`
}

// ReceiptsMeta says how to go on.
type ReceiptsMeta struct {
	Next *value.ID `json:"next" doc:"The id to send as before for older entries, also if data has fewer than limit. null at the end."`
}

// Store keeps receipts.
type Store interface {
	CreateReceipt(ctx context.Context, s *receipt.Stored) error
	// Receipt returns nil when there is none.
	Receipt(ctx context.Context, organization, id value.ID) (*receipt.Stored, error)
	// Receipts returns the latest before an id, or of all when that is zero, and
	// the id before which to go on, zero at the end.
	Receipts(ctx context.Context, organization, before value.ID, limit int) (found []*receipt.Stored, next value.ID, err error)
}

// Queue takes the messages that bring records, for ingest.
type Queue interface {
	Send(ctx context.Context, organization, receipt value.ID, message []byte) error
}

// area holds what the operations share.
type area struct {
	store Store
	queue Queue
	clock func() time.Time
}

// Operations returns every operation of this area.
func Operations(store Store, queue Queue, clock func() time.Time) []api.Operation {
	a := &area{store, queue, clock}
	return []api.Operation{
		{
			ID: "postRecords", Method: http.MethodPost, Path: "/ingest/records", Tag: tag,
			Summary: "Store, replace and delete records",
			Description: "1 to 500 changes, applied in order, as from the queue of records; the body is at most 256 KiB. 202 once they are queued: " +
				"the receipt at Location shows when they are applied, usually within a second, and which were refused. A refused record does not hold up the " +
				"others. 400 if one has a wrong kind, op, version, siteIds, externalRef or id, or belongs to another organization: nothing is applied then, and details names " +
				"each by its path, such as records[3].kind. After an error or a lost answer send the request again with the same Idempotency-Key. " +
				"Records may then be applied twice, which changes nothing unless another sender changed them in between; a version prevents that, too.",
			Access: api.Manager, Scope: auth.RecordsWrite, Body: commerce.PostRecordsDto{}, Result: receipt.Receipt{}, Status: http.StatusAccepted,
			Handle: a.post,
		},
		{
			ID: "getReceipt", Method: http.MethodGet, Path: receiptPath + "{id}", Tag: tag,
			Summary: "Read a receipt",
			Description: "For 7 days. Users read every receipt of the organization, an application's token those of its own requests. A receipt that stays PENDING " +
				"for minutes belongs to a request that failed or got no answer, or waits for the service's operator, whose retry " +
				"completes it. Posting its records again is safe.",
			Access: api.Manager, Scope: auth.RecordsWrite, Result: receipt.Receipt{}, Handle: a.receipt,
		},
		a.list(), a.readFileOperation(),
	}
}

// post stores the receipt before it sends the message, which completes it. Of a
// receipt whose message was not sent nobody has the id, and it expires.
func (a *area) post(r *api.Request) (*api.Response, error) {
	message, count, err := commerce.PostedMessage(r.Organization(), r.Body)
	if err != nil {
		return nil, err
	}
	s := receipt.New(r.Organization(), r.Principal.ApplicationID, message, count, value.TimeOf(a.clock()))
	if err := a.store.CreateReceipt(r.Context(), s); err != nil {
		return nil, err
	}
	if err := a.queue.Send(r.Context(), r.Organization(), s.Receipt.ID, message); err != nil {
		return nil, err
	}
	return r.Created(receiptPath+s.Receipt.ID.String(), s.Receipt, "")
}

func (a *area) list() api.Operation {
	return api.Operation{
		ID: "listReceipts", Method: http.MethodGet, Path: receiptsPath, Tag: tag,
		Summary: "List receipts",
		Description: "The receipts of the last 7 days, the latest first; a receipt is listed within about a second. A request has one, a webhook of a source, and a message to the " +
			"service's queue of which records were refused, unless the message is not signed as the organization demands or names no organization: " +
			"of those only the service's operator knows. Users see every receipt of the organization, " +
			"an application's token those of its own requests: an answer to it may hold fewer than limit, even none, before meta.next is null. " +
			"A receipt that stays PENDING may belong to a request that failed.",
		Access: api.Manager, Scope: auth.RecordsWrite, Result: Receipts{},
		Params: []api.Param{
			{
				Name: limitParam, In: fault.InQuery, Type: "integer", Default: strconv.Itoa(defaultListed), Min: new(int64(1)), Max: new(int64(maxListed)),
				Description: "The most receipts in an answer.",
			},
			{
				Name: beforeParam, In: fault.InQuery, Type: "string", Format: "uuid",
				Description: "The cursor: meta.next of the previous answer. Absent: from the latest receipt on.",
			},
			{
				Name: sourceParam, In: fault.InQuery, Type: "string", Format: "uuid",
				Description: "The source whose webhooks brought the records. An answer may then hold fewer than limit, even none, before meta.next is null.",
			},
		},
		Handle: func(r *api.Request) (*api.Response, error) { return api.Answer(a.latest(r)) },
	}
}

func (a *area) latest(r *api.Request) (*Receipts, error) {
	before, _ := r.ID(beforeParam)
	source, ofSource := r.ID(sourceParam)
	found, next, err := a.store.Receipts(r.Context(), r.Organization(), before, r.Number(limitParam))
	if err != nil {
		return nil, err
	}
	answer := &Receipts{Data: []receipt.Receipt{}}
	if !next.IsZero() {
		answer.Meta.Next = &next
	}
	for _, s := range found {
		if sees(r, s) && (!ofSource || s.Receipt.SourceID != nil && *s.Receipt.SourceID == source) {
			shown := s.Receipt
			shown.Refusals = shown.Refusals[:min(len(shown.Refusals), listedRefusals)]
			answer.Data = append(answer.Data, shown)
		}
	}
	return answer, nil
}

// sees reports whether the caller may see a receipt of the organization.
func sees(r *api.Request, s *receipt.Stored) bool {
	return r.Principal.Kind != auth.KindApplication || s.ApplicationID == r.Principal.ApplicationID
}

func (a *area) receipt(r *api.Request) (*api.Response, error) {
	s, err := a.store.Receipt(r.Context(), r.Organization(), r.PathID("id"))
	if err != nil {
		return nil, err
	}
	if s == nil || !sees(r, s) {
		return nil, fault.Missing("receipt")
	}
	return api.OK(s.Receipt)
}
