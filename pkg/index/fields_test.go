package index_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/indexer"
)

// fieldReads counts reads of fields, which fail while broken.
type fieldReads struct {
	n      int
	broken bool
}

func (r *fieldReads) Fields(context.Context, value.ID) (commerce.Fields, error) {
	if r.n++; r.broken {
		return commerce.Fields{}, errors.New("busy")
	}
	return commerce.Fields{Last: r.n}, nil
}

func TestFieldsAreReadOnceInAnAgeAndOrganization(t *testing.T) {
	w, reads := newMemoryHarness(), &fieldReads{}
	cache := index.NewFieldCache(reads, time.Minute, w.clock)
	for _, row := range []struct {
		passed time.Duration
		org    value.ID
		broken bool
		want   int // Last; 0 is an error
	}{
		{0, w.org, false, 1},
		{time.Minute - 1, w.org, true, 1},
		{0, value.NewID(), false, 2},
		{1, w.org, true, 0},
		{0, w.org, false, 4}, // an error is not kept
	} {
		w.advance(row.passed)
		reads.broken = row.broken
		if got, err := cache.Fields(t.Context(), row.org); got.Last != row.want || (err != nil) != (row.want == 0) {
			t.Errorf("%+v: got %+v, %v", row, got, err)
		}
	}
}

// productChange is a stream of one change of a product.
type productChange struct{ dynamo.Stream }

func (productChange) RecordChange(*events.DynamoDBEventRecord) (*commerce.StoredChange, error) {
	doc := []byte(`{"id":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5","name":"cup","attributes":{}}`)
	return &commerce.StoredChange{New: &commerce.Stored{Kind: commerce.KindProduct, ID: value.NewID(), OrganizationID: value.NewID(), Doc: doc, Revision: 1}}, nil
}

func TestARecordWhoseFieldsCannotBeReadComesAgain(t *testing.T) {
	w, park := newMemoryHarness(), &parked{}
	for _, broken := range []bool{true, false} {
		decode := indexer.DecodeFor(index.NewLists(nil, 1), productChange{}, &fieldReads{broken: broken})
		batch := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{Change: events.DynamoDBStreamRecord{SequenceNumber: "7"}}}}
		response, err := indexer.New(w.storage, decode, park, w, slog.New(slog.DiscardHandler)).Handle(t.Context(), batch)
		if failed := len(response.BatchItemFailures) == 1; err != nil || failed != broken || park.n != 0 {
			t.Errorf("broken %t: %+v, %v, %d parked", broken, response, err, park.n)
		}
	}
}
