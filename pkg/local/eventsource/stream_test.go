package eventsource

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBatchesAreThoseOfLambda(t *testing.T) {
	keys := numbered(1, 9) // so that a key is its sequence number
	failing := func(answer string, calls int) func(int, []string) (string, error) {
		return func(call int, _ []string) (string, error) {
			if call > calls {
				return "", nil
			}
			return answer, nil
		}
	}
	for name, test := range map[string]struct {
		cfg    StreamConfig
		answer func(call int, keys []string) (string, error)
		want   [][]string
	}{
		"bounded":                      {StreamConfig{BatchSize: 3}, nil, [][]string{keys[:3], keys[3:6], keys[6:]}},
		"gathered in a window":         {StreamConfig{BatchSize: 5, MaximumBatchingWindow: time.Second}, nil, [][]string{keys[:5], keys[5:]}},
		"filtered":                     {StreamConfig{Filters: []string{`{"dynamodb":{"NewImage":{"PK":{"S":["002","007"]}}}}`}}, nil, [][]string{{"002", "007"}}},
		"from the lowest failure":      {StreamConfig{ReportBatchItemFailures: true}, failing(`{"batchItemFailures":[{"itemIdentifier":"5"},{"itemIdentifier":"3"}]}`, 1), [][]string{keys, keys[2:]}},
		"failures that are not asked":  {StreamConfig{}, failing(`{"batchItemFailures":[{"itemIdentifier":"5"}]}`, 1), [][]string{keys}},
		"all after an unknown failure": {StreamConfig{ReportBatchItemFailures: true}, failing(`{"batchItemFailures":[{"itemIdentifier":"99"}]}`, 1), [][]string{keys, keys}},
		"halved around a bad record": {StreamConfig{BisectBatch: true}, func(call int, keys []string) (string, error) {
			if slices.Contains(keys, "006") && call < 7 {
				return broken()
			}
			return "", nil
		}, [][]string{keys, keys[:4], keys[4:], keys[4:6], keys[4:5], keys[5:6], keys[5:6], keys[6:]}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *scene) {
				s.stream.put("t", "rec", keys...)
				h := &handler{answer: test.answer}
				feed, _ := s.run(test.cfg, h)
				pass(time.Minute)
				if diff := cmp.Diff(join(test.want), join(h.seen())); diff != "" {
					s.Errorf("batches (-want +got):\n%s", diff)
				}
				if got := feed.Position(); got != "8" {
					s.Errorf("position %q, want 8", got)
				}
			})
		})
	}
}

func TestAWindowIsOverInTime(t *testing.T) {
	inBubble(t, func(s *scene) {
		h, began := &handler{}, time.Now()
		s.stream.put("t", "rec", numbered(0, 2)...) // before the first poll
		s.run(StreamConfig{BatchSize: 5, MaximumBatchingWindow: 300 * time.Millisecond}, h)
		pass(time.Second)
		if len(h.begun) != 1 || h.begun[0].Sub(began) != 300*time.Millisecond {
			s.Errorf("calls at %v, want one after the window", h.begun)
		}
	})
}

func TestFailedBatchesAreRetriedWithGrowingPauses(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.stream.put("t", "rec", "a")
		h := &handler{answer: func(call int, _ []string) (string, error) {
			if call < 9 {
				return broken()
			}
			return "", nil
		}}
		s.run(StreamConfig{}, h)
		pass(time.Minute)
		var pauses []time.Duration
		for i := 1; i < len(h.begun); i++ {
			pauses = append(pauses, h.begun[i].Sub(h.begun[i-1])/time.Millisecond)
		}
		if want := []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000}; !slices.Equal(pauses, want) {
			s.Errorf("pauses %v ms, want %v", pauses, want)
		}
	})
}

func TestARestartGoesOnAtTheCheckpoint(t *testing.T) {
	inBubble(t, func(s *scene) {
		first := &handler{answer: func(_ int, keys []string) (string, error) {
			if slices.Contains(keys, "unfinished") {
				return broken()
			}
			return "", nil
		}}
		s.stream.put("t", "rec", "finished")
		_, stop := s.run(StreamConfig{}, first)
		synctest.Wait()
		s.stream.put("t", "rec", "unfinished")
		pass(time.Second)
		stop()
		second := &handler{}
		s.run(StreamConfig{}, second)
		synctest.Wait()
		if got := second.keys(); !slices.Equal(got, []string{"unfinished"}) {
			s.Errorf("after the restart: got %v, want what was not finished", got)
		}
	})
}

// Whenever the runner is killed, what its checkpoint is past has been processed, and the batch before it has not to come
// again.
func TestTheCheckpointIsWhatTheCallsBeforeHaveProcessed(t *testing.T) {
	inBubble(t, func(s *scene) {
		keys := numbered(1, 11) // so that a key is its sequence number
		s.stream.put("t", "rec", keys...)
		processed := "0"
		h := &handler{answer: func(call int, keys []string) (string, error) {
			text, err := os.ReadFile(filepath.Join(s.dir, "0"))
			if held := `{"streamArn":"arn","workers":["` + processed + `"]}`; call > 1 && string(text) != held || call == 1 && !os.IsNotExist(err) {
				s.Errorf("call %d: the checkpoint is %s, %v; want %s", call, text, err, held)
			}
			if call%3 == 2 {
				return broken()
			}
			processed = strings.TrimLeft(keys[len(keys)-1], "0")
			return "", nil
		}}
		s.run(StreamConfig{BatchSize: 2}, h)
		pass(time.Minute)
		if processed != "10" {
			s.Errorf("processed up to %s, want all", processed)
		}
	})
}

func TestAnInvocationInProgressIsFinished(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.stream.put("t", "rec", "a")
		leave := make(chan struct{})
		feed, stop := s.run(StreamConfig{}, &handler{answer: func(int, []string) (string, error) {
			<-leave
			return "", nil
		}})
		synctest.Wait()
		ended := make(chan struct{})
		go func() { stop(); close(ended) }()
		pass(time.Second)
		select {
		case <-ended:
			s.Error("Run ended with an invocation in progress")
		default:
		}
		close(leave)
		<-ended
		if got := feed.Position(); got != "1" {
			s.Errorf("position %q after the invocation in progress succeeded, want 1", got)
		}
	})
}

func TestTheFeedSurvivesAnUnreachableStream(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.stream.failures = 5 // each kind of request
		h := &handler{}
		s.run(StreamConfig{}, h)
		for _, key := range numbered(0, 3) {
			pass(5 * time.Second)
			s.stream.put("t", "rec", key)
		}
		pass(time.Minute)
		if got := h.keys(); !slices.Equal(got, numbered(0, 3)) || s.stream.failures != 0 {
			s.Errorf("got %v after all but %d failures, want each key once", got, s.stream.failures)
		}
	})
}

func TestAQuietStreamIsPolledFourTimesASecondAndAtANudge(t *testing.T) {
	inBubble(t, func(s *scene) {
		first, second := &handler{}, &handler{}
		feed, _ := s.run(StreamConfig{}, first, second)
		pass(time.Minute + time.Millisecond)
		if got := s.stream.polled(); got != 241 {
			s.Errorf("%d polls in a minute for two sources, want 241", got)
		}
		s.stream.put("t", "rec", "a")
		feed.Nudge()
		synctest.Wait()
		if len(first.keys()) != 1 || len(second.keys()) != 1 {
			s.Errorf("after a nudge: got %v and %v, want the change without a pause", first.keys(), second.keys())
		}
	})
}

func TestAPageThatIsFullIsFollowedAtOnce(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.stream.put("t", "rec", numbered(0, 3*pageRecords)...)
		h := &handler{}
		s.run(StreamConfig{BatchSize: 1000}, h)
		synctest.Wait()
		if got := len(h.keys()); got != 3*pageRecords {
			s.Errorf("got %d records before any pause, want all", got)
		}
	})
}

func TestATrimmedCheckpointGoesOnAtTheHorizon(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.stream.put("t", "rec", numbered(1, 6)...)
		h := &handler{}
		_, stop := s.run(StreamConfig{}, h)
		synctest.Wait()
		stop()
		s.stream.trimmed = "5"
		s.stream.put("t", "rec", "last")
		feed, _ := s.run(StreamConfig{}, h)
		synctest.Wait()
		if got := h.keys(); len(got) != 6 || got[5] != "last" || feed.Position() != "6" {
			s.Errorf("got %v up to %s, want each once and last at the end", got, feed.Position())
		}
	})
}

func TestACheckpointThatCannotBeWrittenEndsTheFeed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	stream := &scripted{}
	stream.put("t", "rec", "a")
	feed := NewFeed(stream, FeedConfig{StreamARN: "arn"})
	if err := feed.Add((&handler{}).function(), StreamConfig{Checkpoints: filepath.Join(dir, "c")}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := feed.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "writing the checkpoints") {
		t.Errorf("Run = %v, want the checkpoint's error", err)
	}
}

func TestWhatCountsAsACheckpoint(t *testing.T) {
	for content, want := range map[string][]string{
		``:  {"", "", ""},
		`{`: {"", "", ""},
		`{"streamArn":"another","workers":["9","9","9"]}`: {"", "", ""},
		`{"streamArn":"arn","workers":["7","","5"]}`:      {"7", "", "5"},
		// Another number of workers begins at the lowest.
		`{"streamArn":"arn","workers":["7","5"]}`:                {"5", "5", "5"},
		`{"streamArn":"arn","workers":["7",""]}`:                 {"", "", ""},
		`{"streamArn":"arn","workers":["10","9"]}`:               {"9", "9", "9"},
		`{"streamArn":"arn","workers":["100000000000","99999"]}`: {"99999", "99999", "99999"},
	} {
		file := filepath.Join(t.TempDir(), "checkpoints")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := openCheckpoints(file, "arn", 3)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.held.Workers); diff != "" {
			t.Errorf("three workers after %s (-want +got):\n%s", content, diff)
		}
	}
}

func TestAShorterCheckpointIsWrittenOverALongerOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoints")
	if err := os.WriteFile(file, []byte(`{"streamArn":"another","workers":["99999","99999"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, sequence := range []string{"7", "8"} {
		c, err := openCheckpoints(file, "arn", 1)
		if err == nil {
			err = errors.Join(c.set(0, sequence, 0), c.close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, err = openCheckpoints(file, "arn", 1); err != nil || c.at(0) != sequence {
			t.Errorf("read again: %v, %v; want %s", c, err, sequence)
		}
	}
}
