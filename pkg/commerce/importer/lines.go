package importer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/commerce"
)

// maxLine bounds a line; no record that the service accepts comes near it.
const maxLine = 1 << 20

// readLines reads JSON Lines: one ingestion record per line, or one plain
// record per line when kind is given. Blank lines count and hold nothing.
func readLines(name string, r io.Reader, kind commerce.Kind, emit emitter) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		place := Place{File: name, Line: number}
		text, end := in.ReadBytes('\n')
		if end != nil && end != io.EOF {
			return fmt.Errorf("read %s: %w", place, end)
		}
		var err error
		switch text = bytes.TrimRight(text, "\r\n"); {
		case len(text) > maxLine:
			err = emit(Record{}, &Rejection{Place: place, Reason: "too_large", Message: "the line is longer than 1 MiB"})
		case len(bytes.TrimSpace(text)) > 0:
			place.Read = &Read{Rows: [][]string{{string(text)}}}
			err = emit(parseLine(place, text, kind))
		}
		if err != nil || end != nil {
			return err
		}
	}
}

// parseLine reads an ingestion record. An absent op is a put; the record may
// have an organizationId, as a message of one record does.
func parseLine(place Place, text []byte, kind commerce.Kind) (Record, error) {
	r := Record{Kind: kind}
	into := any(&r)
	if kind != "" {
		into = &r.Body
	}
	if err := strictjson.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), into); err != nil {
		return Record{}, reject(place, err)
	}
	r.Place = place
	if r.Op == "" {
		r.Op = commerce.OpPut
	}
	switch {
	case r.Kind == "":
		return Record{}, rejectField(place, "kind", "is required")
	case r.Body.Kind() != '{':
		return Record{}, rejectField(place, "record", "must be an object")
	}
	return r, nil
}
