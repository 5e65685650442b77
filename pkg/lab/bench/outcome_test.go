package bench

import (
	"bufio"
	"net/http"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestPercentilesAreExact(t *testing.T) {
	var o Outcome
	for i := 1; i <= 200; i++ {
		o.latencies = append(o.latencies, time.Duration(i)*time.Millisecond)
	}
	for p, want := range map[float64]int64{0: 1, 0.5: 1, 50: 100, 99: 198, 99.1: 199, 99.5: 199, 100: 200} {
		if got := o.Percentile(p).Milliseconds(); got != want {
			t.Errorf("percentile %v of 1 to 200 ms: got %d ms, want %d", p, got, want)
		}
	}
	if got := (&Outcome{}).Percentile(99); got != 0 {
		t.Errorf("percentile 99 of nothing: got %s, want 0", got)
	}
}

func TestARateOfNothingIsNotKnown(t *testing.T) {
	some, none := &Outcome{Requests: 3, Duration: time.Second}, &Outcome{Duration: time.Second}
	if half, unknown := some.of(&Outcome{Requests: 6, Duration: time.Second}), some.of(none); half != "50%" || unknown != "?" {
		t.Errorf("got %s and %s, want 50%% and ?", half, unknown)
	}
}

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

func TestTheProcessorTimeOfAProcessAndItsChildrenIsRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells it in /proc")
	}
	before := processorNow()
	child := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read end")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "done\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	if used := processorNow().since(before); used.own <= 0 || used.table <= 0 {
		t.Errorf("got %+v after some work of both, want more than nothing", used)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // its last read fails
}
