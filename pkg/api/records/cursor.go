package records

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

const (
	// cursorVersion rises with the form of cursors.
	cursorVersion = 3
	// cursorDays is for how long a cursor can be continued: a day less than
	// deletions are kept, because one may reach its list late.
	cursorDays = 89

	// activeMargin is more than it takes from the time of an entry until a view
	// shows it: 10 s of tries to append it, 10 s in which reads may lack an entry
	// before it, 1 s until the next look, and clocks that differ by some seconds.
	activeMargin = 40 * time.Second
	// quietTime is for how long the activity alone is looked at. It bounds how late
	// a change is in the feed where clocks differ by more, or where an earlier
	// release's indexer, which knows of no activity, appended it.
	quietTime = 10 * time.Minute
)

// cursor says how far a client has read each list of the feed. It is not secret
// and no credential: it holds times and ids that the client has seen, and every
// access takes the organization from the principal.
type cursor struct {
	changes   uint64 // answered before, each of which has a cursor of its own
	issuedAt  value.Time
	turn      int        // the list to read next
	active    value.Time // the organization's activity before the last look at all lists
	checkedAt value.Time // when that was; 0: the look is not complete
	positions []position // of each kind, then of the deletions
}

// quiet reports whether no list has anything that the last look did not show: that
// was long after the activity which still is the organization's.
func (c *cursor) quiet(active, now value.Time) bool {
	return active == c.active && active.Add(activeMargin) < c.checkedAt && now < c.checkedAt.Add(quietTime)
}

// position is how far a list was read. The client has what became visible before
// From. While To is not 0, it also has, of what became visible from From on and
// before To, the records with ids up to After.
type position struct {
	From, To value.Time
	After    value.ID
}

// cursorText writes bytes so that texts of them have their order: a tool that keeps
// the greatest cursor which it has seen keeps the last one.
var cursorText = base64.NewEncoding(".0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz").WithPadding(base64.NoPadding).Strict()

var cursorTable = crc32.MakeTable(crc32.Castagnoli)

// scopeSum distinguishes the parts of the lists that feeds show: a feed of another
// part would miss what this one left out.
func scopeSum(r *api.Request) (sum [8]byte) {
	sites := slices.SortedFunc(slices.Values(r.Principal.SiteIDs), value.ID.Compare)
	all := sha256.Sum256(fmt.Appendf(nil, "%s %v %t %v", r.Organization(), r.Site, r.Principal.SiteIDs != nil, sites))
	copy(sum[:], all[:])
	return sum
}

// kindBits has a bit for each of the kinds.
func kindBits(kinds []commerce.Kind) (set uint64) {
	for i, kind := range commerce.Kinds() {
		if slices.Contains(kinds, kind) {
			set |= 1 << i
		}
	}
	return set
}

// append appends the cursor of a feed of the kinds as it is sent: the number of
// changes in 6 bytes, by which cursors are ordered, the version, the scope, a bit for each kind,
// the turn, the times, the positions, each with its id while To is not 0, and the
// CRC-32C of all that. Numbers but the first and the last are varints.
func (c *cursor) append(dst []byte, scope [8]byte, kinds uint64) []byte {
	data := binary.BigEndian.AppendUint64(make([]byte, 0, 256), c.changes)[2:]
	data = append(append(data, cursorVersion), scope[:]...)
	data = append(binary.AppendUvarint(data, kinds), uint8(c.turn)) //nolint:gosec // of six lists
	for _, at := range []value.Time{c.issuedAt, c.active, c.checkedAt} {
		data = binary.AppendVarint(data, int64(at))
	}
	for _, p := range c.positions {
		data = binary.AppendVarint(binary.AppendVarint(data, int64(p.From)), int64(p.To))
		if p.To != 0 {
			data = append(data, p.After[:]...)
		}
	}
	return cursorText.AppendEncode(dst, binary.BigEndian.AppendUint32(data, crc32.Checksum(data, cursorTable)))
}

// decodeCursor reads a cursor for a feed of the kinds. It may lack some of them,
// which begin with their first record; so a new kind breaks no cursor. The error
// is a fault that says whether the text is not a cursor, or one that cannot be
// continued here or any more.
func decodeCursor(text string, scope [8]byte, kinds []commerce.Kind, now value.Time) (*cursor, error) {
	const sum = crc32.Size
	data, err := cursorText.DecodeString(text)
	if err != nil || len(data) < 6+1+sum || crc32.Checksum(data[:len(data)-sum], cursorTable) != binary.BigEndian.Uint32(data[len(data)-sum:]) {
		return nil, fault.Field(fault.InQuery, afterParam, fault.DetailFormat, "must be a cursor that meta.next or a change gave, or now")
	}
	in := strictbinary.Reader{Data: data[:len(data)-sum]}
	c := &cursor{changes: binary.BigEndian.Uint64(append([]byte{0, 0}, in.Take(6)...))}
	version, of, given, turn := in.Byte(), in.Take(8), in.Uvarint(), in.Byte()
	c.issuedAt, c.active, c.checkedAt = value.Time(in.Varint()), value.Time(in.Varint()), value.Time(in.Varint())
	if version != cursorVersion || c.issuedAt.Add(cursorDays*24*time.Hour) < now {
		return nil, fault.New(fault.Invalid, "cursor_expired",
			"the cursor is older than %d days, or of an earlier form; begin anew, without after, and with an empty copy", cursorDays)
	}
	c.positions = make([]position, bits.OnesCount64(given)+1)
	c.turn = int(turn) % len(c.positions)
	for i := range c.positions {
		p := &c.positions[i]
		if p.From, p.To = value.Time(in.Varint()), value.Time(in.Varint()); p.To != 0 {
			copy(p.After[:], in.Take(uint64(len(p.After))))
		}
	}
	if in.Bad || len(in.Data) > 0 || !bytes.Equal(of, scope[:]) || given&^kindBits(kinds) != 0 {
		return nil, fault.New(fault.Invalid, "cursor_mismatch",
			"the cursor is of more kinds, of other sites, or of another organization; send those that it was made with, or begin anew, without after")
	}
	for i, kind := range kinds {
		if given&kindBits([]commerce.Kind{kind}) == 0 {
			c.positions, c.checkedAt = slices.Insert(c.positions, i, position{}), 0
		}
	}
	return c, nil
}
