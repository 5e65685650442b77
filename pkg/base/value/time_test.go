package value

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

func TestTimesAreReadInUTC(t *testing.T) {
	for s, want := range map[string]string{
		"2026-11-21":                    "2026-11-21T00:00:00.000Z",
		"2026-11-21T06:35:41.242Z":      "2026-11-21T06:35:41.242Z",
		"2026-11-21T06:35:41Z":          "2026-11-21T06:35:41.000Z",
		"2026-11-21t06:35:41z":          "2026-11-21T06:35:41.000Z",
		"2026-11-21T06:35:41.2Z":        "2026-11-21T06:35:41.200Z",
		"2026-11-21T06:35:41.24+01:00":  "2026-11-21T05:35:41.240Z",
		"2026-11-21T00:30:00-05:30":     "2026-11-21T06:00:00.000Z",
		"2024-02-29":                    "2024-02-29T00:00:00.000Z",
		"0001-01-01":                    "0001-01-01T00:00:00.000Z",
		"9999-12-31T23:59:59.999Z":      "9999-12-31T23:59:59.999Z",
		"2026-11-21T06:35:41.242-00:00": "2026-11-21T06:35:41.242Z",

		// What generated clients write.
		"2026-11-21T06:35:41.242000Z":      "2026-11-21T06:35:41.242Z",
		"2026-11-21T06:35:41.242999999Z":   "2026-11-21T06:35:41.242Z",
		"2026-11-21T06:35:41.242000+01:00": "2026-11-21T05:35:41.242Z",
		"2026-11-21T06:35:41.242000+0000":  "2026-11-21T06:35:41.242Z",
		"2026-11-21T06:35:41-0530":         "2026-11-21T12:05:41.000Z",
		"1969-12-31T23:59:59.9999Z":        "1969-12-31T23:59:59.999Z",
		"9999-12-31T23:59:59.999999999Z":   "9999-12-31T23:59:59.999Z",
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := ParseTime(s); err != nil || got.String() != want {
				t.Errorf("ParseTime(%q) = %s, %v; want %s", s, got, err, want)
			}
		})
	}
}

func TestABoundBetweenTwoMillisecondsIsTheLaterOne(t *testing.T) {
	for s, want := range map[string]string{
		"2026-11-21T06:35:41.242Z":        "2026-11-21T06:35:41.242Z",
		"2026-11-21T06:35:41.242000+0000": "2026-11-21T06:35:41.242Z",
		"2026-11-21T06:35:41.242000001Z":  "2026-11-21T06:35:41.243Z",
		"2026-11-21T06:35:41.2429+01:00":  "2026-11-21T05:35:41.243Z",
		"2026-11-21T23:59:59.999999Z":     "2026-11-22T00:00:00.000Z",
		"1969-12-31T23:59:59.9999Z":       "1970-01-01T00:00:00.000Z",
		"9999-12-31T23:59:59.999999Z":     "10000-01-01T00:00:00.000Z",
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := ParseBound(s); err != nil || got.String() != want {
				t.Errorf("ParseBound(%q) = %s, %v; want %s", s, got, err, want)
			}
		})
	}
	if _, err := ParseBound("0000-12-31"); err != errTimeRange {
		t.Errorf("ParseBound of the year 0 = %v", err)
	}
}

func TestWhatIsNoTimeIsRefused(t *testing.T) {
	for s, want := range map[string]error{
		"": errTime, "yesterday": errTime, "2026": errTime, "2026-11": errTime, "2026-11-31": errTime, "2026-02-29": errTime, "26-11-2026": errTime,
		"2026-11-21T06:35Z": errTime, "2026-11-21T06:35:41": errTime, "2026-11-21T24:00:00Z": errTime,
		"2026-11-21T06:35:60Z": errTime, "2026-11-21T06:35:41,5Z": errTime, "2026-11-21T06:35:41.Z": errTime,
		"2026-11-21T6:35:41.50Z": errTime, "2026-11-21T06:5:41.50Z": errTime, "2026-11-21T06:35:41+24:00": errTime, "2026-11-21T06:35:41+2400": errTime, "2026-11-21T06:35:41+00100": errTime, "2026-11-21T06:35:41 0000": errTimeSpace, "2026-11-21T06:35:410000": errTime, "+0000": errTime, "2026-11-21T06:35:41+01": errTime, "1795242941242": errTime, "2026-11-21T06:35:41+25:00": errTime,
		"2026-11-21 06:35:41Z": errTimeSpace, "2026-11-21T06:35:41 01:00": errTimeSpace,
		"2026-11-21T06:35:41.2420000000Z": errTimeFine, "2026-11-21T06:35:41.2420000000+0100": errTimeFine,
		"0000-12-31": errTimeRange, "0001-01-01T00:00:00+01:00": errTimeRange, "9999-12-31T23:59:59-01:00": errTimeRange,
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := ParseTime(s); err != want {
				t.Errorf("ParseTime(%q) = %s, %v; want %v", s, got, err, want)
			}
		})
	}
}

func TestTimesAreWrittenAsTheyAreRead(t *testing.T) {
	first := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	rapid.Check(t, func(t *rapid.T) {
		at := Time(rapid.Int64Range(first, maxTime).Draw(t, "time"))
		text := at.String()
		if len(text) != len("2026-11-21T06:35:41.242Z") || text != at.Std().Format(timeLayout) {
			t.Fatalf("%d is written %s", at, text)
		}
		if back, err := ParseTime(text); err != nil || back != at {
			t.Fatalf("%s reads back as %d, %v; want %d", text, back, err, at)
		}
		var back Time
		b, err := json.Marshal(at)
		if err != nil || string(b) != `"`+text+`"` {
			t.Fatalf("%d as JSON is %s, %v", at, b, err)
		}
		if err := json.Unmarshal(b, &back); err != nil || back != at {
			t.Fatalf("%s reads back as %d, %v", b, back, err)
		}
	})
}

func TestTimesDropWhatIsFinerThanAMillisecond(t *testing.T) {
	std := time.Date(2026, 11, 21, 7, 35, 41, 242_999_999, time.FixedZone("", 3600))
	at := TimeOf(std)
	if want := "2026-11-21T06:35:41.242Z"; at.String() != want {
		t.Errorf("TimeOf(%s) = %s, want %s", std, at, want)
	}
	if got := at.Add(1_999_999 * time.Nanosecond); got != at+1 {
		t.Errorf("Add = %s", got)
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"2026-11-21", "2026-11-21T06:35:41.242Z", "2026-11-21T06:35:41+01:00", "2026-11-21T06:35:41.2425Z", "2026-11-21T06:35:41+0100", "0000-00-00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := ParseTime(s)
		if err != nil {
			return
		}
		if again, err := ParseTime(at.String()); err != nil || again != at {
			t.Fatalf("%q = %s, which reads as %s, %v", s, at, again, err)
		}
		if bound, err := ParseBound(s); err != nil || bound < at || bound > at+1 {
			t.Fatalf("%q = %s, as a bound %s, %v", s, at, bound, err)
		}
		if strings.Contains(s, "T") {
			std, err := time.Parse(time.RFC3339, s)
			if err != nil {
				std, err = time.Parse("2006-01-02T15:04:05-0700", s)
			}
			if err != nil || std.UnixMilli() != int64(at) {
				t.Fatalf("%q = %s, want %s, %v", s, at, std, err)
			}
		}
	})
}

func BenchmarkParseTime(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseTime("2026-11-21T06:35:41.242Z"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTimeAppendText(b *testing.B) {
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst, _ = Time(1_795_242_941_242).AppendText(dst[:0])
	}
}
