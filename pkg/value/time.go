package value

import (
	"errors"
	"strings"
	"time"
)

// Time is an instant in UTC as milliseconds since the Unix epoch. Its text
// form always has three decimals and ends in Z: 2026-11-21T06:35:41.242Z.
type Time int64

// timeLayout is the one output form.
const timeLayout = "2006-01-02T15:04:05.000Z"

// maxTime is the last millisecond whose year has four digits.
var maxTime = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC).UnixMilli()

var (
	errTime      = errors.New("must be a date (2026-11-21) or an RFC 3339 time (2026-11-21T06:35:41.242Z)")
	errTimeSpace = errors.New("must be an RFC 3339 time without spaces: in a query string encode + as %2B")
	errTimeFine  = errors.New("must have at most three decimals of a second")
	errTimeRange = errors.New("must lie between the years 0001 and 9999")
)

// TimeOf converts t, dropping what is finer than a millisecond.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// ParseTime accepts RFC 3339 with any offset and at most three decimals, or
// a plain date, which means midnight UTC.
func ParseTime(s string) (Time, error) {
	if len(s) == len(time.DateOnly) {
		t, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return 0, errTime
		}
		return rangedTime(t)
	}
	if strings.ContainsRune(s, ' ') {
		return 0, errTimeSpace
	}
	if len(s) < len("2006-01-02T15:04:05Z") || s[10] != 'T' || strings.ContainsRune(s, ',') {
		return 0, errTime
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, errTime
	}
	if fraction := strings.IndexByte(s, '.'); fraction >= 0 {
		digits := strings.IndexAny(s[fraction:], "Zz+-") - 1
		if digits > 3 {
			return 0, errTimeFine
		}
	}
	return rangedTime(t)
}

func rangedTime(t time.Time) (Time, error) {
	ms := t.UnixMilli()
	if t.UTC().Year() < 1 || ms > maxTime {
		return 0, errTimeRange
	}
	return Time(ms), nil
}

// Std returns t as a standard library time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Add returns t moved by d, dropping what is finer than a millisecond.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

func (t Time) String() string { return t.Std().Format(timeLayout) }

// AppendText implements [encoding.TextAppender].
func (t Time) AppendText(b []byte) ([]byte, error) { return t.Std().AppendFormat(b, timeLayout), nil }

// MarshalText implements [encoding.TextMarshaler].
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText implements [encoding.TextUnmarshaler] with the rules of [ParseTime].
func (t *Time) UnmarshalText(b []byte) error {
	parsed, err := ParseTime(string(b))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}
