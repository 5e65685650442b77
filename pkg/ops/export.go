package ops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
)

// An export is text, one JSON object a line: an [exportHeader], an
// [exportedRecord] for each record and tombstone by kind, shard and id, and an
// [exportTrailer]. Equal records give equal bytes.
const (
	exportFormat  = "commerce-export"
	exportVersion = 1
	// exportPage is how many records are read at a time.
	exportPage = 1000
)

type exportHeader struct {
	Format         string   `json:"format"`
	Version        int      `json:"version"`
	OrganizationID value.ID `json:"organizationId"`
}

// exportedRecord is a stored record. Its line ends with the member record, the
// stored document byte for byte; a tombstone has none.
type exportedRecord struct {
	Kind     commerce.Kind  `json:"kind"`
	ID       value.ID       `json:"id"`
	Revision int64          `json:"revision"` // milliseconds
	Version  *int64         `json:"version,omitzero"`
	Arrived  int64          `json:"arrived,omitzero"` // milliseconds
	SiteIDs  []value.ID     `json:"siteIds,omitempty"`
	Deleted  bool           `json:"deleted,omitzero"`
	Record   jsontext.Value `json:"record,omitzero"`
}

type exportTrailer struct {
	Records    int    `json:"records"`
	Tombstones int    `json:"tombstones"`
	SHA256     string `json:"sha256"` // of all lines before this one, in hexadecimal digits
}

// exportWriter writes lines and sums them up.
type exportWriter struct {
	out io.Writer
	sum hash.Hash
}

func (w *exportWriter) line(text []byte, err error) error {
	if err == nil {
		text = append(text, '\n')
		w.sum.Write(text)
		_, err = w.out.Write(text)
	}
	if err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

// Export writes the records and tombstones of an organization, each as of when
// it is read, in the order of their keys. It holds one page of them in memory
// and calls progress after each, with the number written so far.
func Export(ctx context.Context, table *dynamo.Table, org value.ID, out io.Writer, progress func(written int)) (records, tombstones int, err error) {
	w := &exportWriter{out, sha256.New()}
	if err := w.line(json.Marshal(exportHeader{exportFormat, exportVersion, org})); err != nil {
		return 0, 0, err
	}
	for _, kind := range commerce.Kinds() {
		for shard := range dynamo.Shards {
			for after, more := "", true; more; more = after != "" {
				page, next, err := table.RecordsPage(ctx, org, kind, shard, after, exportPage)
				if err != nil {
					return 0, 0, fmt.Errorf("read the %s of an organization: %w", kind.Plural(), err)
				}
				for _, s := range page {
					if err := w.line(exportLine(s)); err != nil {
						return 0, 0, err
					}
					if s.Deleted {
						tombstones++
					} else {
						records++
					}
				}
				after = next
				progress(records + tombstones)
			}
		}
	}
	sum := hex.EncodeToString(w.sum.Sum(nil))
	return records, tombstones, w.line(json.Marshal(exportTrailer{records, tombstones, sum}))
}

// exportLine encodes a record. The document is appended as it is, since an
// encoder would be free to write its text in another way.
func exportLine(s *commerce.Stored) ([]byte, error) {
	line, err := json.Marshal(exportedRecord{
		Kind: s.Kind, ID: s.ID, Revision: int64(s.Revision), Version: s.Version, Arrived: int64(s.Arrived),
		SiteIDs: s.SiteIDs, Deleted: s.Deleted,
	})
	if err != nil || s.Deleted {
		return line, err
	}
	if !s.Doc.IsValid() || bytes.ContainsAny(s.Doc, "\r\n") {
		return nil, fmt.Errorf("the document of %s %s is not one line of JSON", s.Kind, s.ID)
	}
	line = append(line[:len(line)-1], `,"record":`...)
	return append(append(line, s.Doc...), '}'), nil
}
