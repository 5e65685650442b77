package dynamo

import (
	"context"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// attrPacked is the body of an event's deliveries, packed by zstd, where that
// makes it smaller. Otherwise attrBody is the body, as it is of one that costs a
// single write unit of 1 KB anyway, key and names included.
const (
	attrPacked = "z"
	unitBody   = 900
)

// PutPayload keeps the body of an event's deliveries. One that exists already
// stays, so that every attempt sends the same bytes even when a later release
// would write them otherwise.
func (t *Table) PutPayload(ctx context.Context, org, event value.ID, body []byte) error {
	_, _, err := t.putItem(ctx, "put a payload", t.put(t.encodePayload(org, event, body), ifAbsent))
	return err
}

func (t *Table) encodePayload(org, event value.ID, body []byte) item {
	it := payloadKey(org, event).newItem(typePayload)
	it[attrExpires] = num(t.now().Add(webhook.PayloadRetention).Unix())
	if len(body) > unitBody {
		encoder, _ := t.packer()
		packed := encoder.EncodeAll(body, make([]byte, 0, len(body)))
		if len(packed) < len(body) {
			it[attrPacked] = binary(packed)
			return it
		}
	}
	it[attrBody] = binary(body)
	return it
}

// Payload reads the body of an event's deliveries; nil when there is none.
func (t *Table) Payload(ctx context.Context, org, event value.ID) ([]byte, error) {
	return read(ctx, t, payloadKey(org, event), t.decodePayload)
}

// decodePayload returns nil for an absent item.
func (t *Table) decodePayload(it item) ([]byte, error) {
	packed := getBinary(it, attrPacked)
	if packed == nil {
		return getBinary(it, attrBody), nil
	}
	_, decoder := t.packer()
	body, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("unpack a body of %d bytes: %w", len(packed), err)
	}
	return body, nil
}

// maxUnpacked bounds what a stored body may unpack to, in bytes: more than
// twice that of the largest event.
const maxUnpacked = 1 << 20

// newPacker makes what packs and unpacks bodies. Both are safe for concurrent use.
func newPacker() (*zstd.Encoder, *zstd.Decoder) {
	// A body is small, and many are packed one after the other: the window is
	// as large as the largest of them, and each is written in one frame.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		panic(err) // the options are constant
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		panic(err) // as above
	}
	return encoder, decoder
}
