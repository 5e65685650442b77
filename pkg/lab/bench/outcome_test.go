package bench

import (
	"net/http"
	"testing"
	"time"
)

func TestOnlyAPageWithEntriesAndATotalPasses(t *testing.T) {
	plain := http.Header{"Content-Type": {"application/json"}}
	for body, ok := range map[string]bool{
		`{"data":[{"id":"a"}],"meta":{"page":1,"limit":20,"total":1,"totalPages":1}}`: true,
		`{"data":[],"meta":{"page":1,"limit":20,"total":0,"totalPages":0}}`:           false,
		`{"data":[{"id":"a"}],"meta":{"page":1,"limit":20}}`:                          false,
		`{"data":[{"id":"a"}],"meta":{"page":1,"limit":20,"total":0,"totalPages":0}}`: false,
		`{"statusCode":503}`: false,
		``:                   false,
	} {
		if err := checkPage(plain, []byte(body)); (err == nil) != ok {
			t.Errorf("page %q: got error %v, want acceptance to be %v", body, err, ok)
		}
	}
	if err := checkPage(http.Header{"Content-Type": {"text/html"}}, []byte(`{"data":[{"id":"a"}],"meta":{"total":1}}`)); err == nil {
		t.Error("a page of another media type was accepted")
	}
}

func TestNumbersAreWrittenForReading(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d): got %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{40 * time.Millisecond: "40 ms", 1250 * time.Microsecond: "1.25 ms", 50 * time.Microsecond: "50 µs"} {
		if got := milliseconds(d); got != want {
			t.Errorf("milliseconds(%v): got %s, want %s", d, got, want)
		}
	}
}
