package ops

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
)

const (
	// maxExportLine bounds a line in bytes: several times that of the largest
	// record with the most sites.
	maxExportLine = 4 << 20
	// importBatch is how many records are read and written together.
	importBatch = 100
	// maxImportTries bounds how often a batch is read again because another
	// writer changed one of its records.
	maxImportTries = 10
)

// ReadExport reads an export up to its end and hands each record to each, with
// the organization of the export. An error names the line. Only its nil tells
// that the export is whole.
func ReadExport(in io.Reader, each func(*commerce.Stored) error) (org value.ID, err error) {
	lines, sum := bufio.NewScanner(in), sha256.New()
	lines.Buffer(nil, maxExportLine)
	var header exportHeader
	var read, want exportTrailer
	for number := 1; lines.Scan(); number++ {
		line := lines.Bytes()
		switch {
		case want.SHA256 != "":
			err = errors.New("it is behind the export's last line")
		case number == 1:
			if err = json.Unmarshal(line, &header); err != nil || header.Format != exportFormat {
				return org, fmt.Errorf("line 1 is not the first line of an export")
			}
			if header.Version != exportVersion {
				return org, fmt.Errorf("line 1: the export has version %d; this command reads version %d", header.Version, exportVersion)
			}
		case bytes.HasPrefix(line, []byte(`{"records":`)):
			read.SHA256 = hex.EncodeToString(sum.Sum(nil))
			err = json.Unmarshal(line, &want, json.RejectUnknownMembers(true))
		default:
			var s *commerce.Stored
			if s, err = decodeExported(header.OrganizationID, line); err == nil {
				if s.Deleted {
					read.Tombstones++
				} else {
					read.Records++
				}
				err = each(s)
			}
		}
		if err != nil {
			return org, fmt.Errorf("line %d: %w", number, err)
		}
		sum.Write(line)
		sum.Write([]byte{'\n'})
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return org, fmt.Errorf("a line has more than %d bytes", maxExportLine)
	case err != nil:
		return org, fmt.Errorf("read the export: %w", err)
	case want.SHA256 == "":
		return org, errors.New("the export is cut off: its last line, with the checksum, is missing")
	case read != want:
		return org, fmt.Errorf("the export is damaged: its last line says %+v, it has %+v", want, read)
	}
	return header.OrganizationID, nil
}

// exportedStart is how every stored document begins.
func exportedStart(id, org value.ID) string {
	return `{"id":"` + id.String() + `","organizationId":"` + org.String() + `"`
}

func decodeExported(org value.ID, line []byte) (*commerce.Stored, error) {
	var r exportedRecord
	if err := json.Unmarshal(line, &r, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	s := &commerce.Stored{
		Kind: r.Kind, ID: r.ID, OrganizationID: org, Doc: r.Record, SiteIDs: r.SiteIDs,
		Revision: value.Time(r.Revision), Version: r.Version, Arrived: value.Time(r.Arrived), Deleted: r.Deleted,
	}
	switch {
	case r.Kind == "" || r.ID.IsZero() || r.Revision <= 0:
		return nil, errors.New("kind, id and revision are required")
	case r.Deleted == (r.Record != nil):
		return nil, fmt.Errorf("%s %s: it must have a record or be deleted", r.Kind, r.ID)
	case r.Deleted:
		return s, nil
	case !bytes.HasPrefix(r.Record, []byte(exportedStart(r.ID, org))):
		return nil, fmt.Errorf("%s %s: its record does not begin with its id and organization", r.Kind, r.ID)
	}
	_, err := s.Record()
	return s, err
}

// ImportSummary counts what became of an export's records and tombstones.
type ImportSummary struct {
	Stored  int `json:"stored"`
	Same    int `json:"same"`    // were there already
	Newer   int `json:"newer"`   // are there in a later state, or in another one of the same revision, which stays
	Expired int `json:"expired"` // tombstones that nothing keeps any more
}

// Import stores the records of an export with their revisions. Records that
// reached the table since stay, so to repeat it changes nothing.
type Import struct {
	Table        *dynamo.Table
	Organization value.ID // owns the records; may be another than the export's
	Events       bool     // the changes emit events
	Progress     func(read int)
	Now          func() time.Time

	read    int
	batch   []*commerce.Stored
	summary ImportSummary
}

// Run reads and stores an export.
func (m *Import) Run(ctx context.Context, in io.Reader) (ImportSummary, error) {
	_, err := ReadExport(in, func(s *commerce.Stored) error {
		m.batch = append(m.batch, m.adopt(s))
		if len(m.batch) < importBatch {
			return nil
		}
		return m.flush(ctx)
	})
	if err == nil {
		err = m.flush(ctx)
	}
	return m.summary, err
}

// adopt gives a record to the organization.
func (m *Import) adopt(s *commerce.Stored) *commerce.Stored {
	if !s.Deleted {
		was, is := exportedStart(s.ID, s.OrganizationID), exportedStart(s.ID, m.Organization)
		s.Doc = append([]byte(is), s.Doc[len(was):]...)
	}
	s.OrganizationID, s.Silent = m.Organization, !m.Events
	return s
}

func (m *Import) flush(ctx context.Context) error {
	left := m.batch
	m.read, m.batch = m.read+len(left), nil
	for tries := 0; len(left) > 0; tries++ {
		if tries == maxImportTries {
			return fmt.Errorf("%s %s: other writers are always faster", left[0].Kind, left[0].ID)
		}
		var err error
		if left, err = m.store(ctx, left); err != nil {
			return err
		}
	}
	m.Progress(m.read)
	return nil
}

// store stores those of the records that are later than what the table has, and
// returns those that another writer changed meanwhile.
func (m *Import) store(ctx context.Context, records []*commerce.Stored) (changed []*commerce.Stored, err error) {
	refs := make([]dynamo.RecordRef, len(records))
	for i, s := range records {
		refs[i] = dynamo.RecordRef{OrganizationID: s.OrganizationID, Kind: s.Kind, ID: s.ID}
	}
	var fresh []*commerce.Stored
	for i, found := range m.Table.ReadRecords(ctx, refs) {
		if found.Err != nil {
			return nil, found.Err
		}
		s := records[i]
		if at, deleted := s.ExpiresAt(); deleted && at.Std().Before(m.Now()) {
			m.summary.Expired++
			continue
		}
		switch {
		case found.Stored == nil:
			fresh = append(fresh, s)
		case sameState(found.Stored, s):
			m.summary.Same++
		case !replaces(s, found.Stored):
			m.summary.Newer++
		default:
			if changed, err = m.stored(changed, s, m.Table.PutRecord(ctx, found.Stored, s)); err != nil {
				return nil, err
			}
		}
	}
	for i, created := range m.Table.CreateRecords(ctx, fresh) {
		if changed, err = m.stored(changed, fresh[i], created); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// stored counts a write, or keeps the record of one that met another writer.
func (m *Import) stored(changed []*commerce.Stored, s *commerce.Stored, err error) ([]*commerce.Stored, error) {
	switch {
	case err == nil:
		m.summary.Stored++
	case errors.Is(err, fault.ErrChanged):
		changed = append(changed, s)
	default:
		return nil, err
	}
	return changed, nil
}

// replaces reports whether an exported record is a later state than the stored
// one: it has a later revision and no earlier version of the sender's, or a
// later version of the same content.
func replaces(exported, stored *commerce.Stored) bool {
	was, is := versionOf(stored), versionOf(exported)
	if exported.Revision == stored.Revision {
		return is > was && exported.Deleted == stored.Deleted && bytes.Equal(exported.Doc, stored.Doc)
	}
	return exported.Revision > stored.Revision && is >= was
}

func versionOf(s *commerce.Stored) int64 {
	if s.Version == nil {
		return -1 << 63
	}
	return *s.Version
}

func sameState(a, b *commerce.Stored) bool {
	one, errOne := exportLine(a)
	other, errOther := exportLine(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}
