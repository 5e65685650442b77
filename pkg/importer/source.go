package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/commerce-integration/service/pkg/commerce"
)

// Format is the form of a source's files.
type Format string

// The formats.
const (
	JSONLines Format = "jsonl"
	CSV       Format = "csv"
	Northwind Format = "northwind"
	Shopify   Format = "shopify"
)

// Stdin is the path that means the standard input.
const Stdin = "-"

// Source is a set of files to import. It is read any number of times, by one
// goroutine at a time; the standard input and a pipe only once.
type Source struct {
	Format Format
	Kind   commerce.Kind // of every record: required by CSV, optional for JSON Lines
	Input  io.Reader

	paths  []string
	stream bool // can be read only once
	size   int64
	read   int64
}

// Open checks that the paths can be read. Northwind takes one directory, the
// others take files; input is what the path [Stdin] reads.
func Open(format Format, kind commerce.Kind, paths []string, input io.Reader) (*Source, error) {
	s := &Source{Format: format, Kind: kind, Input: input, paths: paths}
	if err := s.checkArguments(); err != nil {
		return nil, err
	}
	if format == Northwind {
		s.paths = northwindFiles(paths[0])
	}
	for _, path := range s.paths {
		if path == Stdin {
			s.stream = true
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("open source: %w", err)
		}
		if info.IsDir() {
			return nil, fmt.Errorf("open source: %s is a directory; name its files", path)
		}
		s.stream = s.stream || !info.Mode().IsRegular()
		s.size += info.Size()
	}
	return s, nil
}

func (s *Source) checkArguments() error {
	switch {
	case !slices.Contains([]Format{JSONLines, CSV, Northwind, Shopify}, s.Format):
		return fmt.Errorf("format %q is none of jsonl, csv, northwind, shopify", s.Format)
	case len(s.paths) == 0:
		return fmt.Errorf("format %s needs a path", s.Format)
	case s.Format == CSV && s.Kind == "":
		return fmt.Errorf("format csv needs a kind: its rows do not say theirs")
	case s.Kind != "" && (s.Format == Northwind || s.Format == Shopify):
		return fmt.Errorf("format %s knows the kinds of its records; leave the kind out", s.Format)
	case s.Format == Northwind && len(s.paths) != 1:
		return fmt.Errorf("format northwind takes one directory, not %d paths", len(s.paths))
	case slices.Contains(s.paths, Stdin) && (s.Format == Northwind || len(s.paths) > 1):
		return fmt.Errorf("the standard input can only be the one file of a source")
	}
	return nil
}

// Size is the sum of the files' sizes in bytes; 0 when it cannot be known.
func (s *Source) Size() int64 { return s.size }

// Read is how many bytes the current pass over [Source.Records] has taken.
func (s *Source) Read() int64 { return s.read }

// Fingerprint names the source by format, kind and the content of its files,
// so that two sources with one fingerprint give the same records in the same
// order. It is empty when the source can be read only once, as the standard
// input and a pipe can.
func (s *Source) Fingerprint() (string, error) {
	if s.stream {
		return "", nil
	}
	total := sha256.New()
	fmt.Fprintf(total, "%s %s %d\n", s.Format, s.Kind, len(s.paths))
	for _, path := range s.paths {
		file, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("fingerprint of the source: %w", err)
		}
		sum := sha256.New()
		_, err = io.Copy(sum, file)
		file.Close()
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
		s.read = 0
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
			switch s.Format {
			case Shopify:
				return readShopify(name, r, emit)
			case CSV:
				return readRows(name, r, s.Kind, emit)
			default:
				return readLines(name, r, s.Kind, emit)
			}
		}); err != nil {
			return err
		}
	}
	return nil
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
