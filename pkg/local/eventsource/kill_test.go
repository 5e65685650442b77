package eventsource

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
)

// TestMain lets the test binary stand in for a runner that is killed: it writes the keys that its function gets into a
// file, one line a call.
func TestMain(m *testing.M) {
	if endpoint := os.Getenv("EVENTSOURCE_ENDPOINT"); endpoint != "" {
		fmt.Println(standIn(endpoint, os.Getenv("EVENTSOURCE_STREAM"), os.Getenv("EVENTSOURCE_DIR")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func standIn(endpoint, stream, dir string) error {
	out, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	invoke := func(_ context.Context, payload []byte) ([]byte, error) {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var line strings.Builder
		for _, one := range event.Records {
			line.WriteString(one.Change.Keys["PK"].String() + " ")
		}
		_, err := out.WriteString(line.String() + "\n")
		return nil, err
	}
	feed := NewFeed(streamsAt(endpoint), FeedConfig{StreamARN: stream})
	if err := feed.Add(Function{Name: "stand-in", Timeout: time.Minute, Invoke: invoke}, StreamConfig{Checkpoints: filepath.Join(dir, "checkpoints"), BatchSize: 3}); err != nil {
		return err
	}
	return feed.Run(context.Background())
}

func TestNothingIsLostWhenTheRunnerIsKilled(t *testing.T) {
	b := newTable(t)
	dir := t.TempDir()
	const kills, batch = 6, 3
	keys := numbered(0, 240)
	seen := func() []string {
		calls, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Fields(string(calls))
	}
	for kill := range kills {
		runner := exec.Command(os.Args[0])
		runner.Env = append(os.Environ(), "EVENTSOURCE_ENDPOINT="+*b.db.Options().BaseEndpoint, "EVENTSOURCE_STREAM="+b.arn, "EVENTSOURCE_DIR="+dir)
		var said bytes.Buffer
		runner.Stdout = &said
		if err := runner.Start(); err != nil {
			t.Fatal(err)
		}
		before := len(seen())
		for _, pk := range keys[kill*40 : (kill+1)*40] {
			b.put(t, pk, nil)
		}
		// The kill falls anywhere into the work; the last runner may finish it.
		enough := before + 5*(kill+1)
		if kill == kills-1 {
			enough = before
		}
		waitUntil(t, "some work", func() bool {
			now := seen()
			return len(now) > enough && (kill < kills-1 || now[len(now)-1] == keys[len(keys)-1])
		})
		if err := runner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := runner.Wait(); err == nil || said.Len() > 0 {
			t.Fatalf("the runner ended by itself: %v: %s", err, said.String())
		}
	}
	next, repeats := 0, 0
	for _, pk := range seen() {
		at := 0
		if _, err := fmt.Sscanf(pk, "%d", &at); err != nil {
			t.Fatal(err)
		}
		switch {
		case at > next:
			t.Fatalf("%03d came after %03d: what lies between is lost", at, next-1)
		case at < next:
			repeats++
		}
		next = max(next, at+1)
	}
	if next != len(keys) {
		t.Errorf("the last key is %03d, want %s", next-1, keys[len(keys)-1])
	}
	// A kill repeats at most the batch whose checkpoint was not written yet.
	if repeats > kills*batch {
		t.Errorf("%d records came twice after %d kills, want at most a batch of %d for each", repeats, kills, batch)
	}
}
