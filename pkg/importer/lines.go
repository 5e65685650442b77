package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/strictjson"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json/jsontext"
)

// maxLine bounds a line, and so the memory that one line may take; no record
// that the service accepts comes near it.
const maxLine = 1 << 20

// lines reads JSON Lines: one ingestion record per line, or one plain record
// per line when kind is given. Blank lines count and hold nothing.
func lines(name string, r io.Reader, kind commerce.Kind) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for number := 1; ; number++ {
			text, err := readLine(in)
			place := Place{File: name, Line: number}
			if err != nil && !errors.Is(err, errLongLine) {
				if !errors.Is(err, io.EOF) {
					yield(Record{}, fmt.Errorf("read %s: %w", place, err))
				}
				return
			}
			if err == nil && len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			if !yield(parseLine(place, text, err, kind)) {
				return
			}
		}
	}
}

var errLongLine = errors.New("the line is longer than 1 MiB")

// readLine returns the next line without its end. A line past the bound is
// read to its end and given up. The end of input after the last line is io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (err != io.EOF || len(line) == 0 && !long):
			return nil, err
		case long:
			return nil, errLongLine
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}

// line is an ingestion record as a line of a file gives it. An absent op is a
// put; it may have an organizationId, as a single-record message does.
type line struct {
	Kind           commerce.Kind  `json:"kind"`
	Op             commerce.Op    `json:"op"`
	OrganizationID *value.ID      `json:"organizationId"`
	Record         jsontext.Value `json:"record"`
	SiteIDs        jsontext.Value `json:"siteIds"`
	Version        *int64         `json:"version"`
	Silent         bool           `json:"silent"`
}

func parseLine(place Place, text []byte, err error, kind commerce.Kind) (Record, error) {
	if err != nil {
		return Record{}, &Rejection{Place: place, Reason: "too_large", Message: err.Error()}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if kind != "" {
		var body jsontext.Value
		if err := strictjson.Unmarshal(text, &body); err != nil {
			return Record{}, reject(place, err)
		}
		return checked(Record{Kind: kind, Body: body, Place: place})
	}
	var l line
	if err := strictjson.Unmarshal(text, &l); err != nil {
		return Record{}, reject(place, err)
	}
	return checked(Record{
		Kind: l.Kind, Op: l.Op, Body: l.Record, SiteIDs: l.SiteIDs, Version: l.Version, Silent: l.Silent,
		OrganizationID: l.OrganizationID, Place: place,
	})
}

// checked refuses what no ingestion record can be, whatever its kind.
func checked(r Record) (Record, error) {
	if r.Op == "" {
		r.Op = commerce.OpPut
	}
	switch {
	case r.Kind == "":
		return Record{}, &Rejection{Place: r.Place, Reason: fault.CodeValidation, Field: "kind", Message: "is required"}
	case r.Body.Kind() != '{':
		return Record{}, &Rejection{Place: r.Place, Reason: fault.CodeValidation, Field: "record", Message: "must be an object"}
	}
	return r, nil
}
