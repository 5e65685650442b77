package dynamo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

func TestAWindowIsWrittenOnlyUnderItsConditions(t *testing.T) {
	table := dynamotest.NewTable(t)
	ctx := t.Context()
	check := func(what string, got window.Window, written bool, err error, want window.Window, wantWritten bool) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, got); diff != "" || written != wantWritten {
			t.Errorf("%s: written %v, want %v; window (-want +got):\n%s", what, written, wantWritten, diff)
		}
	}
	extension := window.Extension{Head: 100, Lease: 3, Limit: 10}
	got, written, err := table.ExtendWindow(ctx, "s", extension)
	check("extend without a window", got, written, err, window.Window{}, false)

	w := window.Window{Version: 5, Head: 100}
	w.Add(100, 4)
	w.Add(61, 2)
	got, written, err = table.ReplaceWindow(ctx, "s", 4, w)
	check("replace a window that is not there", got, written, err, window.Window{}, false)
	got, written, err = table.ReplaceWindow(ctx, "s", 0, w)
	check("create", got, written, err, w, true)
	got, err = table.Window(ctx, "s")
	check("read", got, true, err, w, true)
	got, err = table.Window(ctx, "another")
	check("read what is not there", got, true, err, window.Window{}, true)
	got, written, err = table.ReplaceWindow(ctx, "s", 0, window.Window{Version: 9})
	check("create again", got, written, err, w, false)

	extension.From, extension.Unused = 61, 1
	w.Add(100, 3)
	w.Add(61, -1)
	w.Version++
	got, written, err = table.ExtendWindow(ctx, "s", extension)
	check("extend and give back", got, written, err, w, true)
	extension.Unused = 0
	got, written, err = table.ExtendWindow(ctx, "s", extension)
	check("extend past the limit", got, written, err, w, false)
	extension.Lease = 2
	w.Add(100, 2)
	w.Version++
	got, written, err = table.ExtendWindow(ctx, "s", extension)
	check("extend to the limit", got, written, err, w, true)
	got, written, err = table.ExtendWindow(ctx, "s", window.Extension{Head: 101, Lease: 1, Limit: 100})
	check("extend another head", got, written, err, w, false)

	next := w
	next.Advance(101)
	next.Version++
	got, written, err = table.ReplaceWindow(ctx, "s", w.Version-1, next)
	check("replace another version", got, written, err, w, false)
	got, written, err = table.ReplaceWindow(ctx, "s", w.Version, next)
	check("replace", got, written, err, next, true)
}
