package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Layout tells which releases can read a manifest and its segments: it is the
// number of the byte formats, and how many columns the documents have. It is in
// the manifest's key, so that those of several layouts stand side by side.
type Layout struct{ Format, Columns int }

// legacyFormat is the last one of manifests whose key has no layout. They are read
// as if they had the columns of the schema; one with fewer cannot be read.
const legacyFormat = 3

// Layout is the layout that the list is written in.
func (k Key) Layout() Layout {
	return Layout{cmp.Or(k.List.Format, Format), k.List.Schema.Len()}
}

// Live is the manifest that queries are answered from.
func (l Layout) Live() string { return l.manifest(liveManifest) }

// Rebuild is the state of a rebuild.
func (l Layout) Rebuild() string { return l.manifest(rebuildManifest) }

func (l Layout) manifest(prefix string) string {
	if l.Format == legacyFormat {
		return prefix
	}
	return fmt.Sprintf("%s#%d.%d", prefix, l.Format, l.Columns)
}

// layoutOf is the layout of the live manifest with the name, and whether it can
// be read: it is of the list's format or the one before, and has no columns that
// the list lacks.
func (k Key) layoutOf(which string) (l Layout, readable bool) {
	own := k.Layout()
	l = Layout{legacyFormat, own.Columns}
	if which != liveManifest {
		if n, err := fmt.Sscanf(strings.TrimPrefix(which, liveManifest), "#%d.%d", &l.Format, &l.Columns); n != 2 || err != nil {
			return Layout{}, false
		}
	}
	return l, (l.Format == own.Format || l.Format == own.Format-1) && l.Columns > 0 && l.Columns <= own.Columns
}

// As is the index as a release with the layout has it: what the layout does not
// have is left out of the schema.
func (x Index) As(l Layout) Index {
	if l == x.Layout() {
		return x
	}
	list := *x.List
	list.Format, list.Schema = l.Format, x.List.Schema.First(l.Columns)
	x.List = &list
	return x
}

// Load reads the list's manifest and its version: the live one of its own layout
// or, where there is none, the best one that it can read; Layout tells which.
// Where there is nothing, the manifest is empty and the version 0. It fails with
// [columnar.ErrNewer] when only another release can read the list.
func (x Index) Load(ctx context.Context) (*Manifest, uint64, error) {
	stored, err := x.Reader.Manifest(ctx, x.Org, x.List.Name, x.Layout().Live())
	if err != nil {
		return nil, 0, err
	}
	if stored != nil {
		return x.decode(x.Layout(), stored)
	}
	all, err := x.Manifests(ctx)
	if err != nil {
		return nil, 0, err
	}
	return x.Best(ctx, all)
}

// Manifests reads the live manifests of all layouts, by name.
func (x Index) Manifests(ctx context.Context) (map[string]*StoredManifest, error) {
	return x.Reader.Manifests(ctx, x.Org, x.List.Name, liveManifest)
}

// Best decodes the manifest that [Index.Load] reads, of all that there are.
func (x Index) Best(ctx context.Context, all map[string]*StoredManifest) (*Manifest, uint64, error) {
	best, found := Layout{}, (*StoredManifest)(nil)
	for which, stored := range all {
		l, readable := x.layoutOf(which)
		if better := cmp.Or(cmp.Compare(l.Columns, best.Columns), cmp.Compare(l.Format, best.Format)) > 0; readable && better {
			best, found = l, stored
		}
	}
	if found != nil {
		return x.decode(best, found)
	}
	if len(all) > 0 {
		if err := x.hasWholeTail(ctx); err != nil {
			return nil, 0, err
		}
	}
	return &Manifest{Layout: x.Layout()}, 0, nil
}

// hasWholeTail fails unless the tail still has its first entry. A list that began
// while two releases ran side by side can be read from there without a manifest.
func (x Index) hasWholeTail(ctx context.Context) error {
	first, found := uint64(0), errors.New("enough")
	err := x.Reader.TailAfter(ctx, x.Org, x.List.Name, 0, true, func(e StoredEntry) error {
		first = e.Sequence
		return found
	})
	if err != nil && !errors.Is(err, found) {
		return err
	}
	if first != 1 {
		return fmt.Errorf("no manifest of layout %d.%d, and others: %w", x.Layout().Format, x.Layout().Columns, columnar.ErrNewer)
	}
	return nil
}

func (x Index) decode(l Layout, stored *StoredManifest) (*Manifest, uint64, error) {
	m, err := x.As(l).DecodeManifest(stored.Body)
	if err != nil {
		return nil, stored.Version, err
	}
	m.Layout, m.CoveredAt, m.Shared = l, stored.CoveredAt, stored.Shared
	return m, stored.Version, nil
}

// Readable returns the manifest with the name, decoded; nil when this release
// cannot read it.
func (x Index) Readable(which string, stored *StoredManifest) *Manifest {
	l, readable := x.layoutOf(which)
	if !readable {
		return nil
	}
	m, _, err := x.decode(l, stored)
	if err != nil {
		return nil
	}
	return m
}
