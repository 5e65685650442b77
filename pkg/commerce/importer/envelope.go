package importer

import (
	"cmp"
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// The bounds of a batch. SQS takes a mebibyte in a message and in a batch of at
// most ten messages. An envelope may hold 500 records; a hundred spread an
// import over more consumers and cost less to repeat when one of them fails.
const (
	maxBatchBytes      = 1<<20 - 4<<10 // the rest is for what the transport adds
	maxBatchMessages   = 10
	maxEnvelopeRecords = 100
)

// Batch is messages that go out in one call, in the order of their records.
type Batch struct {
	Messages [][]byte // envelopes, each one message's body
	Records  int      // in all messages

	sent [][]sentRecord // by message
	end  int            // source rows up to and with the batch's last record
}

type sentRecord struct {
	kind  commerce.Kind
	place Place
}

// packer fills batches.
type packer struct {
	head    []byte // an envelope up to its first record
	batch   Batch
	bytes   int // of the batch, with the ends of its envelopes
	records int // in the last message
	most    int // bytes in a message
}

const envelopeTail = `]}`

func newPacker(organizationID value.ID, maxMessage int) *packer {
	return &packer{
		head: []byte(`{"organizationId":"` + organizationID.String() + `","records":[`),
		most: min(cmp.Or(maxMessage, maxBatchBytes), maxBatchBytes),
	}
}

// message is an envelope of one record.
func (p *packer) message(record []byte) []byte {
	return slices.Concat(p.head, record, []byte(envelopeTail))
}

// add puts a record, row number end of the source, into the batch, unless it does not fit.
func (p *packer) add(encoded []byte, record *Record, end int) bool {
	n := len(p.batch.Messages)
	size, fresh := len(encoded)+len(","), n == 0 || p.records == maxEnvelopeRecords
	if !fresh {
		fresh = len(p.batch.Messages[n-1])+size+len(envelopeTail) > p.most
	}
	if fresh {
		size += len(p.head) + len(envelopeTail)
	}
	if p.bytes+size > maxBatchBytes || fresh && n == maxBatchMessages {
		return false
	}
	if fresh {
		p.batch.Messages = append(p.batch.Messages, slices.Clone(p.head))
		p.batch.sent = append(p.batch.sent, nil)
		p.records, n = 0, n+1
	}
	last := &p.batch.Messages[n-1]
	if p.records > 0 {
		*last = append(*last, ',')
	}
	*last = append(*last, encoded...)
	p.batch.sent[n-1] = append(p.batch.sent[n-1], sentRecord{record.Kind, record.Place})
	p.bytes += size
	p.records++
	p.batch.Records++
	p.batch.end = end
	return true
}

// take returns the batch with its envelopes closed and starts the next.
func (p *packer) take() Batch {
	batch := p.batch
	for i := range batch.Messages {
		batch.Messages[i] = append(batch.Messages[i], envelopeTail...)
	}
	p.batch, p.bytes, p.records = Batch{}, 0, 0
	return batch
}
