package value

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"

	"github.com/google/uuid"
)

// ID is a UUID of any version (RFC 9562), written in lower case.
type ID [16]byte

var errID = errors.New("must be a UUID such as 0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")

// NewID returns a fresh version 7 UUID, which sorts by its creation time.
func NewID() ID { return ID(uuid.Must(uuid.NewV7())) }

// NewRandomID returns a fresh version 4 UUID, which shows nothing of its
// creation time.
func NewRandomID() ID { return ID(uuid.New()) }

// DeriveID returns the version 5 UUID of name in namespace: the same inputs
// give the same identifier on every machine.
func DeriveID(namespace ID, name string) ID {
	return ID(uuid.NewSHA1(uuid.UUID(namespace), []byte(name)))
}

// TimedID returns the version 7 UUID of a time with bits of a hash, of 16 bytes or
// more, in the place of the random ones: the same inputs give the same identifier,
// which sorts by the time.
func TimedID(at Time, hash []byte) ID {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(at, 0))) //nolint:gosec // not negative
	id := ID(hash[:len(ID{})])
	copy(id[:6], ms[2:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// Time returns the time that a version 7 UUID begins with; 0 for the zero ID.
func (id ID) Time() Time {
	return Time(binary.BigEndian.Uint64(id[:]) >> 16) //nolint:gosec // 48 bits
}

// IsTimed reports whether id is a version 7 UUID.
func (id ID) IsTimed() bool { return id[6]>>4 == 7 }

// ParseID accepts the 36-character form in any case, and nothing else.
func ParseID(s string) (ID, error) {
	var id ID
	err := id.UnmarshalText([]byte(s))
	return id, err
}

// MustID is ParseID for constants and tests; it panics on a bad UUID.
func MustID(s string) ID {
	id, err := ParseID(s)
	if err != nil {
		panic(s + ": " + err.Error())
	}
	return id
}

func (id ID) String() string { return string(id.append(make([]byte, 0, idLength))) }

const idLength = len("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")

func (id ID) append(b []byte) []byte {
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

// IsZero reports whether id is the nil UUID, which no resource has.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders identifiers as their text forms are ordered.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// AppendText implements [encoding.TextAppender].
func (id ID) AppendText(b []byte) ([]byte, error) { return id.append(b), nil }

// MarshalText implements [encoding.TextMarshaler].
func (id ID) MarshalText() ([]byte, error) { return id.append(make([]byte, 0, idLength)), nil }

// UnmarshalText implements [encoding.TextUnmarshaler] with the rules of [ParseID].
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) != idLength {
		return errID
	}
	u, err := uuid.ParseBytes(b)
	if err != nil {
		return errID
	}
	*id = ID(u)
	return nil
}
