package importer

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
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

	places [][]Place // of the records, by message
	end    int       // source rows up to and with the batch's last record
}

// records reads one of the messages.
func (b *Batch) records(message int) []Record {
	var sent struct {
		Records []Record `json:"records"`
	}
	_ = json.Unmarshal(b.Messages[message], &sent) // the packer wrote it
	return sent.Records
}

// packer fills batches.
type packer struct {
	head    []byte // an envelope up to its first record
	batch   Batch
	bytes   int
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

// takes reports whether a record of the size can be sent at all.
func (p *packer) takes(size int) bool {
	return len(p.head)+size+len(",")+len(envelopeTail) <= p.most
}

// fits reports whether one more record of the size can join the batch.
func (p *packer) fits(size int) bool {
	grown := p.bytes + size + len(",")
	if p.needsMessage(size) {
		if len(p.batch.Messages) == maxBatchMessages {
			return false
		}
		grown += len(p.head) + len(envelopeTail)
	}
	return grown <= maxBatchBytes
}

// needsMessage reports whether a record of the size needs a further message.
func (p *packer) needsMessage(size int) bool {
	n := len(p.batch.Messages)
	return n == 0 || p.records == maxEnvelopeRecords || len(p.batch.Messages[n-1])+size+len(",")+len(envelopeTail) > p.most
}

// add puts a record, row number end of the source, into the batch; it must fit.
func (p *packer) add(record []byte, place Place, end int) {
	if p.needsMessage(len(record)) {
		p.batch.Messages = append(p.batch.Messages, append([]byte(nil), p.head...))
		p.batch.places = append(p.batch.places, nil)
		p.bytes += len(p.head) + len(envelopeTail)
		p.records = 0
	}
	n := len(p.batch.Messages) - 1
	last := &p.batch.Messages[n]
	p.batch.places[n] = append(p.batch.places[n], place)
	if p.records > 0 {
		*last = append(*last, ',')
	}
	*last = append(*last, record...)
	p.bytes += len(record) + len(",")
	p.records++
	p.batch.Records++
	p.batch.end = end
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

// message is an envelope of one record.
func (p *packer) message(record []byte) []byte {
	return slices.Concat(p.head, record, []byte(envelopeTail))
}
