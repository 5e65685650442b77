package importer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
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
	Northwind   Format = "northwind"
	Shopify     Format = "shopify"
	WooCommerce Format = "woocommerce"
	Medusa      Format = "medusa"
	Vendure     Format = "vendure"
)

// Formats lists the formats.
func Formats() []Format {
	return []Format{Shopify, WooCommerce, Medusa, Vendure, Northwind, CSV, JSONLines}
}

// Stdin is the path that means the standard input.
const Stdin = "-"

// Source is a set of files to import. It is read any number of times, by one
// goroutine at a time; the standard input and a pipe only once.
type Source struct {
	Format Format
	Kind   commerce.Kind // of every record: required by CSV, optional for JSON Lines
	Input  io.Reader

	// Mapping says which field each column of a CSV file is; without it the
	// columns are named as the fields.
	Mapping *Mapping
	// IDFrom is the column of a CSV file that identifiers are derived from.
	IDFrom string
	// Currency is the organization's, for a file with prices in several.
	Currency string
	// Warn is told of what the import mended; nil tells nobody.
	Warn func(Place, string)

	categories map[value.ID]bool // that this pass has emitted

	dropped []string // what NotImported returns

	paths  []string
	stream bool // can be read only once
	size   int64
	read   int64
}

// Open checks that the paths can be read. Northwind takes one directory, the
// others take files; input is what the path [Stdin] reads.
func Open(format Format, kind commerce.Kind, paths []string, input io.Reader) (*Source, error) {
	s := &Source{Format: format, Kind: kind, Input: input, paths: paths}
	if format == Northwind {
		if len(paths) != 1 {
			return nil, fmt.Errorf("format northwind takes one directory, not %d paths", len(paths))
		}
		s.paths = northwindFiles(paths[0])
	}
	err := s.stat()
	if err == nil {
		err = s.checkArguments(paths)
	}
	return s, err
}

// stat finds out how long the files are, and whether they are there at all.
func (s *Source) stat() error {
	for _, path := range s.paths {
		if path == Stdin {
			s.stream = true
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("open source: %w", err)
		}
		if info.IsDir() {
			return fmt.Errorf("open source: %s is a directory; name its files", path)
		}
		s.stream = s.stream || !info.Mode().IsRegular()
		s.size += info.Size()
	}
	return nil
}

// ErrUnknownFormat says that a format is none of [Formats], or that a source does
// not tell its own.
var ErrUnknownFormat = errors.New("unknown format")

// ErrNoKind says that a CSV source was opened without a kind.
var ErrNoKind = errors.New("format csv needs a kind: its rows do not say theirs")

func (s *Source) checkArguments(paths []string) error {
	switch {
	case !slices.Contains(Formats(), s.Format):
		return fmt.Errorf("%w %q", ErrUnknownFormat, s.Format)
	case len(paths) == 0:
		return fmt.Errorf("format %s needs a path", s.Format)
	case s.Format == CSV && s.Kind == "":
		return ErrNoKind
	case s.Kind != "" && s.Format != CSV && s.Format != JSONLines:
		return fmt.Errorf("format %s knows the kinds of its records; leave the kind out", s.Format)
	case slices.Contains(paths, Stdin) && (s.Format == Northwind || len(paths) > 1):
		return fmt.Errorf("the standard input can only be the one file of a source")
	}
	return nil
}

// Detect tells the format of a source by its first path: a name, a directory,
// or the header of a CSV file. A file of no known shop system is CSV.
func Detect(path string) (Format, error) {
	if IsNorthwind(path) {
		return Northwind, nil
	}
	s := &Source{paths: []string{path}}
	if err := s.stat(); err != nil {
		return "", err
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson":
		return JSONLines, nil
	case ".csv", ".tsv", ".txt":
		format := CSV
		if s.stream {
			return format, nil // a header that is read here would be missing later
		}
		return format, s.readFile(path, func(name string, r io.Reader) error {
			sh, err := openSheet(name, r, 0)
			if err != nil {
				return err
			}
			format = cmp.Or(shopFormat(sh), CSV)
			return nil
		})
	}
	return "", fmt.Errorf("%w of %s", ErrUnknownFormat, path)
}

// Size is the sum of the files' sizes in bytes; 0 when it cannot be known.
func (s *Source) Size() int64 { return s.size }

// Read is how many bytes the current pass over [Source.Records] has taken.
func (s *Source) Read() int64 { return s.read }

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
// order. It is empty when the source can be read only once, as the standard
// input and a pipe can.
func (s *Source) Fingerprint() (string, error) {
	if s.stream {
		return "", nil
	}
	total := sha256.New()
	fmt.Fprintf(total, "%s %s %q %q %s %d\n", s.Format, s.Kind, s.IDFrom, s.Currency, encode(s.Mapping), len(s.paths))
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
		s.read, s.categories, s.dropped = 0, map[value.ID]bool{}, nil
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

// errStopped means that nobody wants more records.
var errStopped = errors.New("importer: stopped")

func (s *Source) readAll(emit emitter) error {
	if s.Format == Northwind {
		return s.readNorthwind(emit)
	}
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
	separator, read := rune(0), s.readShop
	if s.Format == CSV {
		read = s.readRows
	}
	if s.Mapping != nil && s.Mapping.Separator != "" {
		separator = s.Mapping.separator()
	}
	if s.Format == Vendure { // which aligns its columns
		r = newUnpadded(r)
	}
	sh, err := openSheet(name, r, separator)
	if err != nil {
		return err
	}
	sh.warn = s.warn
	defer s.noteDropped(sh)
	return read(sh, emit)
}

func (s *Source) warn(place Place, message string) {
	if s.Warn != nil {
		s.Warn(place, message)
	}
}

// ends reports whether err ends a source, as a rejection does not.
func ends(err error) bool {
	var rejected *Rejection
	return err != nil && !errors.As(err, &rejected)
}

// readFile opens the file for read and counts the bytes that it takes.
func (s *Source) readFile(path string, read func(name string, r io.Reader) error) error {
	in := s.Input
	if path != Stdin {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("open source: %w", err)
		}
		defer file.Close()
		in = file
	}
	return read(filepath.Base(path), countingReader{in, &s.read})
}

type countingReader struct {
	r io.Reader
	n *int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}

// northwindFiles are the files of the Northwind directory, in the order that
// the format's program has.
func northwindFiles(dir string) (paths []string) {
	for _, file := range []string{"categories.csv", "products.csv", "customers.csv", "orders.csv", "order_details.csv"} {
		paths = append(paths, filepath.Join(dir, file))
	}
	return paths
}

// IsNorthwind reports whether dir holds the files of the Northwind database.
func IsNorthwind(dir string) bool {
	return !slices.ContainsFunc(northwindFiles(dir), func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.Mode().IsRegular()
	})
}
