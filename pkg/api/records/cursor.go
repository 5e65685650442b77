package records

import (
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
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

const (
	// cursorVersion rises with the form of cursors.
	cursorVersion = 2
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

// cursorHead is the beginning of a cursor's stored form. Its positions and the
// CRC-32C of all that follow, big endian.
type cursorHead struct {
	Version                     uint8
	Scope                       [8]byte
	Kinds                       uint64 // a bit for each, by its place in commerce.Kinds
	Turn                        uint8
	IssuedAt, Active, CheckedAt value.Time
}

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

// encode returns the cursor of a feed of the kinds as it is sent.
func (c *cursor) encode(scope [8]byte, kinds []commerce.Kind) string {
	// Values of fixed size do not fail.
	data, _ := binary.Append(nil, binary.BigEndian, cursorHead{
		cursorVersion, scope, kindBits(kinds), uint8(c.turn), c.issuedAt, c.active, c.checkedAt, //nolint:gosec // of six lists
	})
	data, _ = binary.Append(data, binary.BigEndian, c.positions)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(data, crc32.Checksum(data, cursorTable)))
}

// decodeCursor reads a cursor for a feed of the kinds. It may lack some of them,
// which begin with their first record; so a new kind breaks no cursor. The error
// is a fault that says whether the text is not a cursor, or one that cannot be
// continued here or any more.
func decodeCursor(text string, scope [8]byte, kinds []commerce.Kind, now value.Time) (*cursor, error) {
	const sum = crc32.Size
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) < 1+sum || crc32.Checksum(data[:len(data)-sum], cursorTable) != binary.BigEndian.Uint32(data[len(data)-sum:]) {
		return nil, fault.Field(fault.InQuery, afterParam, fault.DetailFormat, "must be a cursor that meta.next gave, or now")
	}
	var head cursorHead
	n, err := binary.Decode(data, binary.BigEndian, &head)
	if err != nil || head.Version != cursorVersion || head.IssuedAt.Add(cursorDays*24*time.Hour) < now {
		return nil, fault.New(fault.Invalid, "cursor_expired",
			"the cursor is older than %d days, or of an earlier form; begin anew, without after, and with an empty copy", cursorDays)
	}
	left := data[n : len(data)-sum]
	positions := make([]position, bits.OnesCount64(head.Kinds)+1)
	if head.Scope != scope || head.Kinds&^kindBits(kinds) != 0 || binary.Size(positions) != len(left) {
		return nil, fault.New(fault.Invalid, "cursor_mismatch",
			"the cursor is of more kinds, of other sites, or of another organization; send those that it was made with, or begin anew, without after")
	}
	if _, err := binary.Decode(left, binary.BigEndian, positions); err != nil {
		return nil, fmt.Errorf("decode the positions of a cursor: %w", err)
	}
	for i, kind := range kinds {
		if head.Kinds&kindBits([]commerce.Kind{kind}) == 0 {
			positions = slices.Insert(positions, i, position{})
			head.CheckedAt = 0
		}
	}
	return &cursor{
		issuedAt: head.IssuedAt, turn: int(head.Turn) % len(positions), active: head.Active, checkedAt: head.CheckedAt, positions: positions,
	}, nil
}
