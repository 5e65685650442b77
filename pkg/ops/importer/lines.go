package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/commerce"
)

// maxLine bounds a line, and so the memory that one line may take; no record
// that the service accepts comes near it.
const maxLine = 1 << 20

// readLines reads JSON Lines: one ingestion record per line, or one plain
// record per line when kind is given. Blank lines count and hold nothing.
func readLines(name string, r io.Reader, kind commerce.Kind, emit emitter) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		place := Place{File: name, Line: number}
		text, err := readLine(in)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLongLine):
			err = emit(Record{}, &Rejection{Place: place, Reason: "too_large", Message: err.Error()})
		case err != nil:
			return fmt.Errorf("read %s: %w", place, err)
		case len(bytes.TrimSpace(text)) > 0:
			place.Read = &Read{Rows: []string{string(text)}}
			err = emit(parseLine(place, text, kind))
		}
		if err != nil {
			return err
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

// parseLine reads an ingestion record. An absent op is a put; the record may
// have an organizationId, as a message of one record does.
func parseLine(place Place, text []byte, kind commerce.Kind) (Record, error) {
	r := Record{Kind: kind}
	into := any(&r)
	if kind != "" {
		into = &r.Body
	}
	if err := strictjson.Unmarshal(withoutRefused(bytes.TrimPrefix(text, []byte("\ufeff"))), into); err != nil {
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
