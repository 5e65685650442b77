package importer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// Format is the form of a source's files.
type Format string

// The formats.
const (
	JSONLines   Format = "jsonl"
	CSV         Format = "csv"
	Shopify     Format = "shopify"
	WooCommerce Format = "woocommerce"
	Medusa      Format = "medusa"
	Vendure     Format = "vendure"
)

// Formats lists the formats.
func Formats() []Format {
	return []Format{Shopify, WooCommerce, Medusa, Vendure, CSV, JSONLines}
}

// Source is a set of files to import. It is read any number of times, by one
// goroutine at a time; a pipe only once.
type Source struct {
	Format Format
	Kind   commerce.Kind // of every record: required by CSV, optional for JSON Lines

	// Mapping says which field each column of a CSV file is; without it the
	// columns are named as the fields.
	Mapping *Mapping
	// Currency is the organization's, for a file with prices in several.
	Currency string
	// Header names the columns of a source that [OpenContent] made.
	Header []string
	// Warn is told of cells that are read otherwise than they are written.
	Warn func(Place, string)

	categories map[value.ID]bool // that this pass has emitted

	dropped []string // what NotImported returns

	paths   []string
	content []byte // of the only path, if it was given
	stream  bool   // can be read only once
}

// Open checks that the paths can be read. Without a format the first of them tells it:
// by its name, or by the header of a CSV file.
func Open(format Format, kind commerce.Kind, paths []string) (*Source, error) {
	s := &Source{Format: format, Kind: kind, Warn: func(Place, string) {}, paths: paths}
	err := s.stat()
	if err == nil && format == "" {
		s.Format, err = s.detect(paths[0])
	}
	if err == nil {
		err = s.checkArguments()
	}
	return s, err
}

// OpenContent is the source of a CSV file that is at hand. It finds out the format
// by the header; the kind is that of a file of no shop system.
func OpenContent(name string, content []byte, kind commerce.Kind) (*Source, error) {
	sh, err := openSheet(name, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	s := &Source{Format: cmp.Or(shopFormat(sh), CSV), Kind: kind, Warn: func(Place, string) {}, paths: []string{name}, content: content, Header: sh.header}
	return s, s.checkArguments()
}

// stat finds out whether the files are there.
func (s *Source) stat() error {
	for _, path := range s.paths {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("open source: %w", err)
		}
		if info.IsDir() {
			return fmt.Errorf("open source: %s is a directory; name its files", path)
		}
		s.stream = s.stream || !info.Mode().IsRegular()
	}
	return nil
}

func (s *Source) checkArguments() error {
	switch {
	case !slices.Contains(Formats(), s.Format):
		return fmt.Errorf("unknown format %q", s.Format)
	case s.Format == CSV && s.Kind == "":
		return fmt.Errorf("%s has the header of no known shop system: it needs a kind, if its columns are named as fields, or a mapping", s.paths[0])
	case s.Kind != "" && s.Format != CSV && s.Format != JSONLines:
		return fmt.Errorf("format %s knows the kinds of its records; leave the kind out", s.Format)
	}
	return nil
}

// detect tells the format of a path. A file of no known shop system is CSV.
func (s *Source) detect(path string) (Format, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson":
		return JSONLines, nil
	case ".csv", ".tsv", ".txt":
		format := CSV
		if s.stream {
			return format, nil // a header that is read here would be missing later
		}
		return format, s.readFile(path, func(name string, r io.Reader) error {
			sh, err := openSheet(name, r)
			if err != nil {
				return err
			}
			format = cmp.Or(shopFormat(sh), CSV)
			return nil
		})
	}
	return "", fmt.Errorf("the name of %s does not tell its format, one of %v: name it", path, Formats())
}

// NotImported are the columns that have values which the last pass over
// [Source.Records] put into no record.
func (s *Source) NotImported() []string { return s.dropped }

func (s *Source) noteDropped(sh *sheet) {
	for i, column := range sh.header {
		if sh.filled[i] && !sh.used[i] && column != RefusedColumn && !slices.Contains(s.dropped, column) {
			s.dropped = append(s.dropped, column)
		}
	}
}

// Fingerprint names the source by format, kind and the content of its files,
// so that two sources with one fingerprint give the same records in the same
// order. It is empty when the source can be read only once, as a pipe can.
func (s *Source) Fingerprint() (string, error) {
	if s.stream {
		return "", nil
	}
	total := sha256.New()
	fmt.Fprintf(total, "%s %s %q %s %d\n", s.Format, s.Kind, s.Currency, encode(s.Mapping), len(s.paths))
	for _, path := range s.paths {
		sum := sha256.New()
		err := s.readFile(path, func(_ string, r io.Reader) error {
			_, err := io.Copy(sum, r)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("fingerprint of the source: %w", err)
		}
		total.Write(sum.Sum(nil))
	}
	return hex.EncodeToString(total.Sum(nil)), nil
}

// Records yields the records in the order of the files. An error that is a
// [*Rejection] is of one row and the next follows it; any other ends the
// sequence.
func (s *Source) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		s.categories, s.dropped = map[value.ID]bool{}, nil
		err := s.readAll(func(r Record, err error) error {
			if ends(err) {
				return err
			}
			if !yield(r, err) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(Record{}, err)
		}
	}
}

// emitter takes a record or the rejection of a row. A reader returns an error
// of its emitter at once.
type emitter func(Record, error) error

// orReject emits an error that is the rejection of a row.
func (emit emitter) orReject(err error) error {
	if err == nil || ends(err) {
		return err
	}
	return emit(Record{}, err)
}

// errStopped means that nobody wants more records.
var errStopped = errors.New("importer: stopped")

func (s *Source) readAll(emit emitter) error {
	for _, path := range s.paths {
		if err := s.readFile(path, func(name string, r io.Reader) error {
			if s.Format == JSONLines {
				return readLines(name, r, s.Kind, emit)
			}
			return s.readSheet(name, r, emit)
		}); err != nil {
			return err
		}
	}
	return nil
}

// readSheet reads a CSV file.
func (s *Source) readSheet(name string, r io.Reader, emit emitter) error {
	read := s.readShop
	if s.Format == CSV {
		read = s.readRows
	}
	if s.Format == Vendure { // which aligns its columns
		text, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		text = blanksBehindQuote.ReplaceAll(text, []byte(`"$1`))
		r = bytes.NewReader(blanksBeforeQuote.ReplaceAll(text, []byte(`$1"`)))
	}
	sh, err := openSheet(name, r)
	if err != nil {
		return err
	}
	sh.warn = s.Warn
	defer s.noteDropped(sh)
	return read(sh, emit)
}

// Blanks beside the quotes of a field are no CSV.
var (
	blanksBehindQuote = regexp.MustCompile(`"[ \t]+([,\r\n]|$)`)
	blanksBeforeQuote = regexp.MustCompile(`(^|[,\n])[ \t]+"`)
)

// ends reports whether err ends a source, as a rejection does not.
func ends(err error) bool {
	var rejected *Rejection
	return err != nil && !errors.As(err, &rejected)
}

// readFile opens the file for read.
func (s *Source) readFile(path string, read func(name string, r io.Reader) error) error {
	if s.content != nil {
		return read(path, bytes.NewReader(s.content))
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open source: %w", err)
	}
	defer file.Close()
	return read(filepath.Base(path), file)
}
