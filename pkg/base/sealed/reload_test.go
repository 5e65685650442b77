package sealed_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/sealed"
)

// vault is a source whose keys are rotated.
type vault struct {
	mu    sync.Mutex
	keys  [][]byte
	err   error
	reads int
}

func (v *vault) read(context.Context) ([][]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reads++
	return v.keys, v.err
}

func (v *vault) set(err error, keys ...[]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys, v.err = keys, err
}

func (v *vault) readings() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.reads
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func load(t *testing.T, v *vault, c *clock) *sealed.Box {
	t.Helper()
	box, err := sealed.Load(t.Context(), v.read, c.now)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestABoxReadsItsKeysAgainForATextOfAKeyThatItHasNot(t *testing.T) {
	v, c := &vault{keys: [][]byte{key(1)}}, newClock()
	box := load(t, v, c)
	old := box.Seal([]byte("old"), "p")
	v.set(nil, key(2), key(1))
	text := newBox(t, key(2), key(1)).Seal([]byte("new"), "p")
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if got, err := box.Open(text, "p"); err != nil || string(got) != "new" {
				t.Errorf("a text of the new key: %q, %v", got, err)
			}
		})
	}
	callers.Wait()
	if got, err := box.Open(old, "p"); err != nil || string(got) != "old" {
		t.Errorf("a text of the key before: %q, %v", got, err)
	}
	if n := v.readings(); n != 2 {
		t.Errorf("%d readings, want one at the start and one for all callers", n)
	}
	if !box.Current(text) || box.Current(old) || box.Current("") {
		t.Errorf("current: %t of the new text, %t of the old, %t of none", box.Current(text), box.Current(old), box.Current(""))
	}
}

func TestTextsOfUnknownKeysCauseAtMostOneReadingAMinute(t *testing.T) {
	v, c := &vault{keys: [][]byte{key(1)}}, newClock()
	box := load(t, v, c)
	text := newBox(t, key(3)).Seal([]byte("x"), "p")
	open := func(wantReadings int, want error) {
		t.Helper()
		if _, err := box.Open(text, "p"); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if n := v.readings(); n != wantReadings {
			t.Errorf("%d readings, want %d", n, wantReadings)
		}
	}
	open(2, sealed.ErrUnopened)
	open(2, sealed.ErrUnopened)
	v.set(nil, key(3), key(1))
	c.pass(time.Minute - time.Nanosecond)
	open(2, sealed.ErrUnopened)
	c.pass(time.Nanosecond)
	open(3, nil)
}

func TestABoxSealsUnderTheNewKeyFiveMinutesAfterARotationAtTheLatest(t *testing.T) {
	v, c := &vault{keys: [][]byte{key(1)}}, newClock()
	box, next := load(t, v, c), newBox(t, key(2))
	v.set(nil, key(2), key(1))
	c.pass(sealed.KeysMaxAge - time.Nanosecond)
	if text := box.Seal([]byte("x"), "p"); next.Current(text) {
		t.Error("the keys were read again before they were old")
	}
	c.pass(time.Nanosecond)
	if text := box.Seal([]byte("x"), "p"); !next.Current(text) {
		t.Error("sealed under the key before after five minutes")
	}
	if text := string(box.SealBytes([]byte("x"), "p")); !next.Current(text) {
		t.Error("bytes sealed under the key before")
	}
}

func TestABoxGoesOnWithItsKeysWhileTheSourceFails(t *testing.T) {
	v, c := &vault{keys: [][]byte{key(1)}}, newClock()
	box := load(t, v, c)
	v.set(errors.New("away"))
	c.pass(sealed.KeysMaxAge)
	for range 3 {
		text := box.Seal([]byte("x"), "p")
		if got, err := box.Open(text, "p"); err != nil || string(got) != "x" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if n := v.readings(); n != 2 {
		t.Errorf("%d readings, want one more within the pause", n)
	}
	v.set(nil, key(2), key(1))
	c.pass(time.Minute)
	if text := box.Seal([]byte("x"), "p"); !newBox(t, key(2)).Current(text) {
		t.Error("still sealed under the key before after the pause")
	}
	v.set(errors.New("away"))
	if _, err := sealed.Load(t.Context(), v.read, c.now); err == nil {
		t.Error("a box without keys was made")
	}
}
