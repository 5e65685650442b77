package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// report is what sections write.
type report struct {
	out, log io.Writer
	tables   []*table
}

// table begins a table of the current section.
func (r *report) table(title string, columns ...string) *table {
	t := newTable(title, columns...)
	r.tables = append(r.tables, t)
	return t
}

func (r *report) progress(format string, args ...any) {
	fmt.Fprintf(r.log, format+"\n", args...)
}

// section measures a part of a report.
type section[B any] struct {
	name  string
	about string
	run   func(ctx context.Context, bench B) error
}

// runSections runs the sections one after another and writes the tables of
// each when it ends.
func runSections[B any](ctx context.Context, r *report, bench B, chosen []section[B]) error {
	for _, s := range chosen {
		r.progress("%s …", s.about)
		started := time.Now()
		if err := s.run(ctx, bench); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.progress("%s took %.1f s", s.name, time.Since(started).Seconds())
		for _, t := range r.tables {
			t.print(r.out)
		}
		r.tables = nil
	}
	return nil
}

// choose finds sections by name; no names choose all.
func choose[B any](all []section[B], names []string) ([]section[B], error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []section[B]
	for _, name := range names {
		i := slices.IndexFunc(all, func(s section[B]) bool { return s.name == name })
		if i < 0 {
			var known []string
			for _, s := range all {
				known = append(known, s.name)
			}
			return nil, fmt.Errorf("there is no section %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// describe tells the names of sections and what they are about.
func describe[B any](all []section[B]) [][2]string {
	var names [][2]string
	for _, s := range all {
		names = append(names, [2]string{s.name, s.about})
	}
	return names
}
