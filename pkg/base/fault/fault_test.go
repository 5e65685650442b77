package fault

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestAFaultIsFoundInAChain(t *testing.T) {
	f := New(NotFound, CodeNotFound, "no such %s", "order")
	wrapped := fmt.Errorf("read: %w", f)
	if got, ok := As(wrapped); !ok || got != f {
		t.Errorf("As(%v) = %v, %v", wrapped, got, ok)
	}
	if !Is(wrapped, NotFound) || Is(wrapped, Conflict) {
		t.Errorf("Is(%v): NotFound %v, Conflict %v", wrapped, Is(wrapped, NotFound), Is(wrapped, Conflict))
	}
	for _, err := range []error{nil, io.EOF, fmt.Errorf("wrapped: %w", io.EOF)} {
		if got, ok := As(err); ok || got != nil || Is(err, Internal) {
			t.Errorf("As(%v) = %v, %v; want none, and no kind", err, got, ok)
		}
	}
}

func TestTheCauseIsKeptAndNotShown(t *testing.T) {
	f := Busy(io.ErrUnexpectedEOF)
	if !errors.Is(f, io.ErrUnexpectedEOF) || f.RetryAfter != time.Second || f.Kind != Unavailable {
		t.Errorf("Busy = %+v", f)
	}
	if want := "unavailable: the service is busy; send the request again: unexpected EOF"; f.Error() != want {
		t.Errorf("Error() = %q, want %q", f.Error(), want)
	}
	if want := "the service is busy; send the request again"; f.Message != want {
		t.Errorf("Message = %q, want %q", f.Message, want)
	}
}

func TestAValidationRepeatsItsFirstDetail(t *testing.T) {
	first := Detail{Field: "limit", In: InQuery, Code: DetailOutOfRange, Message: "must be between 1 and 100"}
	f := Validation(first, Detail{Field: "page", In: InQuery, Code: DetailFormat, Message: "must be a number"})
	if f.Kind != Invalid || f.Code != CodeValidation || f.Message != "limit must be between 1 and 100" || len(f.Details) != 2 {
		t.Errorf("Validation = %+v", f)
	}
	if got := Field(InQuery, "limit", DetailOutOfRange, "must be between %d and %d", 1, 100); got.Message != f.Message || got.Details[0] != first {
		t.Errorf("Field = %+v", got)
	}
	if got := Missing("order"); got.Kind != NotFound || got.Message != "no such order" || got.Error() != "not_found: no such order" {
		t.Errorf("Missing = %+v", got)
	}
}

// An answer repeats names and values of the request, which may be of any number and length.
func TestAFaultIsBoundedWhateverItRepeats(t *testing.T) {
	for _, n := range []int{MaxDetails, MaxDetails + 1} {
		if got := Validation(make([]Detail, n)...); len(got.Details) != MaxDetails {
			t.Errorf("%d details: got %d, want %d", n, len(got.Details), MaxDetails)
		}
	}
	for _, unit := range []string{"x", "é", "\U0001F600", "\xff"} {
		text := func(n int) string { return strings.Repeat(unit, n) }
		for _, row := range []struct{ field, message, wantField, wantMessage string }{
			{text(200), text(1000), text(200), text(1000)},
			{text(201), text(1001), text(199) + "…", text(999) + "…"},
			{text(200_000), text(200_000), text(199) + "…", text(999) + "…"},
		} {
			f := Field(InBody, row.field, DetailUnknown, "%s", row.message)
			if d := f.Details[0]; d.Field != row.wantField || d.Message != row.wantMessage || f.Message != d.Field+" "+d.Message {
				t.Errorf("%q × %d: got %d and %d bytes", unit, utf8.RuneCountInString(row.field), len(d.Field), len(d.Message))
			}
			if got := New(Invalid, CodeValidation, "%s", row.message); got.Message != row.wantMessage {
				t.Errorf("New of %q × %d: got %d bytes", unit, utf8.RuneCountInString(row.message), len(got.Message))
			}
		}
	}
}

func TestAPanicIsReturnedAsAnError(t *testing.T) {
	do := func(f func() error) (err error) {
		defer Recovered(&err)
		return f()
	}
	if err := do(func() error { panic("no such shard") }); err == nil || err.Error() != "panic: no such shard" {
		t.Errorf("got %v, want the panic", err)
	}
	if err := do(func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the error that was returned", err)
	}
	if err := do(func() error { return nil }); err != nil {
		t.Errorf("got %v, want none", err)
	}
}
