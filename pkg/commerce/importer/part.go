package importer

import (
	"errors"
	"iter"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Part is what some rows of a source give.
type Part struct {
	Records  []string // JSON texts, as a message of many holds them
	Rejected []*Rejection
	Next     int // the rows of the source that are dealt with; 0 at the end
}

// ReadPart checks the rows behind the first [Config.Skip] as [Run] does, sends none,
// and ends when what they give has so many bytes.
func ReadPart(records iter.Seq2[Record, error], organizationID value.ID, cfg Config, most int) (part Part, err error) {
	r, rows, size := newRun(organizationID, nil, cfg), 0, 0
	for record, err := range records {
		if rows++; rows <= cfg.Skip && !ends(err) {
			continue
		}
		var encoded []byte
		if err == nil {
			encoded, err = r.prepare(record)
		}
		if ends(err) {
			return part, err
		}
		var bad *Rejection
		if errors.As(err, &bad) {
			for _, row := range bad.Rows() {
				size += len(strings.Join(row, `","`))
			}
		}
		if size += len(encoded); size > most && rows > cfg.Skip+1 {
			part.Next = rows - 1
			return part, nil
		}
		if bad != nil {
			part.Rejected = append(part.Rejected, bad)
		} else {
			part.Records = append(part.Records, string(encoded))
		}
	}
	return part, nil
}

// Rows are the cells that were read of the record; none where a row cannot be read as CSV.
func (r *Rejection) Rows() [][]string {
	if r.Place.Read == nil {
		return [][]string{}
	}
	return r.Place.Read.Rows
}
