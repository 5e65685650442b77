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
	errTimeFine  = errors.New("must have at most nine decimals of a second")
	errTimeRange = errors.New("must lie between the years 0001 and 9999")
)

// TimeOf converts t, cut to milliseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// ParseTime accepts RFC 3339 with any offset and at most nine decimals, or a
// plain date, which means midnight UTC. Decimals beyond milliseconds are cut.
// As RFC 3339 has it, T and Z may be lower case; many programs write an offset
// without its colon, which is taken, too. A leap second is refused.
func ParseTime(s string) (Time, error) {
	t, err := parseTime(s)
	return TimeOf(t), err
}

// ParseBound is ParseTime for an end of a span: a time between two milliseconds
// becomes the later one. No stored time lies between them, so that a span from
// or to it holds exactly the stored times that the finer one would.
func ParseBound(s string) (Time, error) {
	t, err := parseTime(s)
	return TimeOf(t.Add(time.Millisecond - 1)), err
}

func parseTime(s string) (t time.Time, err error) {
	text := strings.ToUpper(s)
	if len(s) == len(time.DateOnly) {
		text += "T00:00:00Z"
	} else if sign := len(text) - len("+0100"); sign > 0 && (text[sign] == '+' || text[sign] == '-') && isDigits(text[sign+1:]) {
		text = text[:sign+len("+01")] + ":" + text[sign+len("+01"):]
	}
	if err := t.UnmarshalText([]byte(text)); err != nil || !isStrict(text) {
		if strings.Contains(s, " ") {
			return time.Time{}, errTimeSpace
		}
		return time.Time{}, errTime
	}
	if _, decimals, _ := strings.Cut(text, "."); len(decimals) > 9 && isDigits(decimals[:10]) {
		return time.Time{}, errTimeFine
	}
	if t.UTC().Year() < 1 || t.UnixMilli() > maxTime {
		return time.Time{}, errTimeRange
	}
	return t, nil
}

// isStrict refuses what package time takes beyond RFC 3339: an hour of one
// digit, a decimal comma, and an offset of a day or more.
func isStrict(text string) bool {
	offset := text[len(text)-len("+01:00"):]
	return text[len("2006-01-02T15")] == ':' && !strings.Contains(text, ",") &&
		(strings.HasSuffix(text, "Z") || offset[1:3] <= "23" && offset[4:] <= "59")
}

// Std returns t as a standard library time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Add returns t moved by d, cut to milliseconds.
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
