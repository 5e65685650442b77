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
// a plain date, which means midnight UTC. As RFC 3339 has it, T and Z may be
// lower case. A leap second is refused.
func ParseTime(s string) (Time, error) {
	c := clockText{rest: strings.ToUpper(s)}
	year, month, day := c.number(4, 9999), c.after('-', 12), c.after('-', 31)
	if month == 0 || day == 0 || day > daysIn(year, time.Month(month)) {
		c.bad = true
	}
	if c.rest == "" && !c.bad {
		return rangedTime(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC))
	}
	if strings.ContainsRune(s, ' ') {
		return 0, errTimeSpace
	}
	hour, minute, second := c.after('T', 23), c.after(':', 59), c.after(':', 59)
	milliseconds, fine := c.fraction()
	offset := c.offset()
	switch {
	case c.bad || c.rest != "":
		return 0, errTime
	case fine:
		return 0, errTimeFine
	}
	return rangedTime(time.Date(year, time.Month(month), day, hour, minute-offset, second, milliseconds*1e6, time.UTC))
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// clockText reads a time from the front of a text; bad stays once it is set.
type clockText struct {
	rest string
	bad  bool
}

// number reads exactly so many digits, at most the most.
func (c *clockText) number(digits, most int) (n int) {
	if len(c.rest) < digits {
		c.bad = true
		return 0
	}
	for _, d := range []byte(c.rest[:digits]) {
		if d < '0' || d > '9' {
			c.bad = true
		}
		n = n*10 + int(d-'0')
	}
	c.rest = c.rest[digits:]
	c.bad = c.bad || n > most
	return n
}

// after reads a mark and the two digits behind it.
func (c *clockText) after(mark byte, most int) int {
	if c.rest == "" || c.rest[0] != mark {
		c.bad = true
		return 0
	}
	c.rest = c.rest[1:]
	return c.number(2, most)
}

// fraction reads decimals of a second as milliseconds; fine tells that there
// are more than three.
func (c *clockText) fraction() (milliseconds int, fine bool) {
	if c.rest == "" || c.rest[0] != '.' {
		return 0, false
	}
	digits := len(c.rest) - 1 - len(strings.TrimLeft(c.rest[1:], "0123456789"))
	c.rest = c.rest[1:]
	unit := 100
	for _, d := range []byte(c.rest[:digits]) {
		milliseconds += int(d-'0') * unit
		unit /= 10
	}
	c.rest = c.rest[digits:]
	c.bad = c.bad || digits == 0
	return milliseconds, digits > 3
}

// offset reads Z or the distance from UTC in minutes.
func (c *clockText) offset() int {
	if c.rest == "Z" {
		c.rest = ""
		return 0
	}
	sign := 1
	if strings.HasPrefix(c.rest, "-") {
		sign = -1
	} else if !strings.HasPrefix(c.rest, "+") {
		c.bad = true
		return 0
	}
	hours := c.after(c.rest[0], 23)
	return sign * (hours*60 + c.after(':', 59))
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
