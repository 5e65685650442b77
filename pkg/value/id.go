package value

import (
	"bytes"
	"errors"

	"github.com/google/uuid"
)

// ID is a UUID of any version (RFC 9562), written in lower case.
type ID [16]byte

var errID = errors.New("must be a UUID such as 0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")

// NewID returns a fresh version 7 UUID, which sorts by its creation time.
func NewID() ID { return ID(uuid.Must(uuid.NewV7())) }

// NewRandomID returns a fresh version 4 UUID, which tells nothing of its
// creation time.
func NewRandomID() ID { return ID(uuid.New()) }

// DeriveID returns the version 5 UUID of name in namespace: the same inputs
// give the same identifier on every machine.
func DeriveID(namespace ID, name string) ID {
	return ID(uuid.NewSHA1(uuid.UUID(namespace), []byte(name)))
}

// ParseID accepts the 36-character form in any case, and nothing else.
func ParseID(s string) (ID, error) {
	if len(s) != 36 {
		return ID{}, errID
	}
	u, err := uuid.Parse(s)
	if err != nil {
		return ID{}, errID
	}
	return ID(u), nil
}

// MustID is ParseID for constants and tests; it panics on a bad UUID.
func MustID(s string) ID {
	id, err := ParseID(s)
	if err != nil {
		panic(s + ": " + err.Error())
	}
	return id
}

func (id ID) String() string { return uuid.UUID(id).String() }

// IsZero reports whether id is the nil UUID, which no resource has.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders identifiers as their text forms are ordered.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// AppendText implements [encoding.TextAppender].
func (id ID) AppendText(b []byte) ([]byte, error) {
	text, err := uuid.UUID(id).MarshalText()
	return append(b, text...), err
}

// MarshalText implements [encoding.TextMarshaler].
func (id ID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText implements [encoding.TextUnmarshaler] with the rules of [ParseID].
func (id *ID) UnmarshalText(b []byte) error {
	parsed, err := ParseID(string(b))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
