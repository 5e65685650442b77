package commerce

import (
	"cmp"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json"
)

const (
	// AdjustmentAge is for how long an adjustmentId counts once.
	AdjustmentAge = 24 * time.Hour
	// StockInterval is the least time between two records of a row that adjustments
	// make: lists, the feed and webhooks get no more of them.
	StockInterval = time.Second

	maxAdjustmentID = 120 // code points

	// reasonBelowMin is the code of an adjustment that would leave less than its min.
	reasonBelowMin = "below_min"
)

// StockRow is a row of stock as the table holds it: its record, and the ledger of the
// adjustments that the record does not have yet.
type StockRow struct {
	Record  *Stored         // nil when there was none; a tombstone too
	Ahead   value.Amount    // the sum of the adjustments in the ledger
	Token   uint64          // of the ledger's last write; 0: there is none
	Counted map[string]bool // adjustmentIds that counted, of those that were looked for
}

// Adjusted is what adjustments make of a row.
type Adjusted struct {
	Counted []string     // adjustmentIds that count now
	Record  *Stored      // to store, with all of the ledger; nil: the ledger takes them
	Ahead   value.Amount // what the ledger then holds
	Refused []error      // of each change, nil where it counts, now or before
	// Later is to be sent with a delay of [StockInterval], and then makes the record of
	// what the ledger holds; nil where nothing has to, or another message will.
	Later *Change
}

// adjustment is the record of an adjust.
type adjustment struct {
	ID             value.ID      `json:"id,omitzero"`
	OrganizationID value.ID      `json:"organizationId,omitzero"`
	ProductID      value.ID      `json:"productId"`
	SiteID         *value.ID     `json:"siteId"`
	LocationRef    *string       `json:"locationRef"`
	Delta          *value.Amount `json:"delta"`
	AdjustmentID   string        `json:"adjustmentId"`
	Min            *value.Amount `json:"min,omitzero"`
}

func parseAdjustment(c Change) (a adjustment, err error) {
	if err = strictjson.Unmarshal(c.Record, &a, strictjson.TrimText()); err != nil {
		return a, under("record", err)
	}
	d := draft{organization: c.OrganizationID}
	d.require("productId", !a.ProductID.IsZero())
	d.location(&a.LocationRef)
	d.require("delta", a.Delta != nil)
	d.require("adjustmentId", a.AdjustmentID != "")
	if utf8.RuneCountInString(a.AdjustmentID) > maxAdjustmentID {
		d.refuse("adjustmentId", fault.DetailOutOfRange, "must have at most %d characters", maxAdjustmentID)
	}
	return a, under("record", d.details.Err())
}

// AdjustmentID returns the adjustmentId of an adjust; "" of one that is refused.
func AdjustmentID(c Change) string {
	a, err := parseAdjustment(c)
	if err != nil {
		return ""
	}
	return a.AdjustmentID
}

// Current is the record with what the ledger holds.
func (r *StockRow) Current() (*Stored, error) {
	if r.Ahead == 0 {
		return r.Record, nil
	}
	current, err := r.revised(r.Ahead, r.Record.Revision)
	if err == nil {
		current.Unpublished = true
	}
	return current, err
}

// live reports whether there is a row.
func (r *StockRow) live() bool { return r.Record != nil && !r.Record.Deleted }

// stockOf is the row that a record shows; zero where there is none.
func stockOf(record *Stored) (s Stock, err error) {
	if record != nil && !record.Deleted {
		if err = json.Unmarshal(record.Doc, &s); err != nil {
			err = unreadable(record, err)
		}
	}
	return s, err
}

// Adjust makes adjustments of a row in their order. One that counted before does
// nothing; one that is refused leaves the others alone. A row that is not there begins
// at 0. The error says that the stored document cannot be read.
func (r *StockRow) Adjust(changes []Change, now value.Time) (*Adjusted, error) {
	stock, err := stockOf(r.Record)
	if err != nil {
		return nil, err
	}
	next := &Adjusted{Ahead: r.Ahead, Refused: make([]error, len(changes))}
	counted, first, repeated := maps.Clone(r.Counted), adjustment{}, false
	for i, c := range changes {
		a, err := parseAdjustment(c)
		switch {
		case err != nil:
			next.Refused[i] = err
		case *a.Delta == 0:
			repeated = repeated || a.AdjustmentID == stock.UpdatedAt.String()
		case counted[a.AdjustmentID]:
			repeated = true
		default:
			if next.Refused[i] = stock.checkAdjusted(next.Ahead+*a.Delta, a.Min); next.Refused[i] == nil {
				counted[a.AdjustmentID], first, next.Ahead = true, a, next.Ahead+*a.Delta
				next.Counted = append(next.Counted, a.AdjustmentID)
			}
		}
	}
	switch {
	case !r.live() && len(next.Counted) == 0, r.live() && next.Ahead == 0:
	case !r.live():
		next.Record, err = r.begun(changes[0].OrganizationID, &first, next.Ahead, now)
		next.Ahead = 0
	case now >= r.Record.Revision.Add(StockInterval):
		next.Record, err = r.revised(next.Ahead, now)
		next.Ahead = 0
	case r.Ahead == 0 || repeated: // a process may have died before it sent what was repeated
		next.Later = r.later(&stock)
	}
	return next, err
}

// checkAdjusted refuses to change what is on hand by so much in all.
func (s *Stock) checkAdjusted(by value.Amount, least *value.Amount) error {
	onHand, inRange := s.OnHand.Add(by)
	_, alsoAvailable := onHand.Add(-s.Reserved)
	switch {
	case !inRange || !alsoAvailable:
		return fault.Field(fault.InBody, "record.delta", fault.DetailOutOfRange, "must leave onHand, and available, in the range of quantities")
	case least != nil && onHand < *least:
		return refused(fault.Conflict, reasonBelowMin, "record.min", "is %s, and %s would be on hand", least, onHand)
	}
	return nil
}

// begun is the first record of a row, or the first since it was deleted.
func (r *StockRow) begun(organization value.ID, a *adjustment, onHand value.Amount, now value.Time) (*Stored, error) {
	next := revise(r.Record, Change{Kind: KindStock, OrganizationID: organization}, now)
	next.ID, next.Adjusted = StockID(organization, a.ProductID, a.SiteID, a.LocationRef), true
	doc, err := Encode(&Stock{
		ID: next.ID, OrganizationID: organization, ProductID: a.ProductID, SiteID: a.SiteID, LocationRef: a.LocationRef,
		OnHand: onHand, Available: onHand, CreatedAt: now, UpdatedAt: next.Revision,
	})
	next.Doc = doc
	return next, err
}

// revised is the record of a row with so much more on hand.
func (r *StockRow) revised(delta value.Amount, revision value.Time) (*Stored, error) {
	s, err := stockOf(r.Record)
	if err != nil {
		return nil, err
	}
	next := *r.Record
	next.Revision, next.Silent, next.Adjusted, next.LowAt = revision, false, true, nil
	s.OnHand, s.Available, s.UpdatedAt = s.OnHand+delta, s.Available+delta, revision
	next.Doc, err = Encode(&s)
	return &next, err
}

// later is an adjustment by 0 that names the record which the ledger is ahead of: as
// soon as there is another record, it does nothing.
func (r *StockRow) later(s *Stock) *Change {
	record, err := Encode(&adjustment{
		ProductID: s.ProductID, SiteID: s.SiteID, LocationRef: s.LocationRef, Delta: new(value.Amount), AdjustmentID: s.UpdatedAt.String(),
	})
	if err != nil {
		panic(err) // it has fields of types that can be encoded
	}
	return &Change{OrganizationID: r.Record.OrganizationID, Kind: KindStock, Op: OpAdjust, Record: record}
}

// SetThreshold gives a row of stock of which less is available than in the old one what
// is available of its product when its stock is low: the product's reorderPoint, or its
// minStockLevel; none where it has neither, or there is no such product. read reads the
// product, which is nil when there is none. No other change can cross the threshold.
func SetThreshold(old, next *Stored, read func(product value.ID) (*Stored, error)) error {
	if next.Kind != KindStock || next.Deleted || next.Silent || old == nil || old.Deleted {
		return nil
	}
	was, err := stockOf(old)
	if err != nil {
		return err
	}
	is, err := stockOf(next)
	if err != nil || !old.Unpublished && is.Available >= was.Available {
		return err
	}
	product, err := read(is.ProductID)
	if err != nil || product == nil {
		return err
	}
	var p Product
	if err := json.Unmarshal(product.Doc, &p); err != nil {
		return unreadable(product, err)
	}
	next.LowAt = cmp.Or(p.ReorderPoint, p.MinStockLevel)
	return nil
}
