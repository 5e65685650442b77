package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Format is the number of the byte formats of manifests, segments and rebuilds
// together. A release reads this one only.
const Format = 6

// Layout is the form of a manifest and its segments: the number of the byte formats,
// and how many columns the documents have. It is in the manifest's key, so that those
// of several layouts stand side by side.
type Layout struct{ Format, Columns int }

// ErrNotBuilt says that the list has manifests, and this release can read none of
// them. It has to be built from the table in the release's own layout.
var ErrNotBuilt = errors.New("the list is not built yet in the layout of this release")

// Layout is the layout that the list is written in.
func (k Key) Layout() Layout {
	return Layout{cmp.Or(k.List.Format, Format), k.List.Schema.Len()}
}

// Live is the manifest that queries are answered from.
func (l Layout) Live() string { return l.manifest(liveManifest) }

// Rebuild is the state of a rebuild.
func (l Layout) Rebuild() string { return l.manifest(rebuildManifest) }

func (l Layout) manifest(prefix string) string {
	return fmt.Sprintf("%s#%d.%d", prefix, l.Format, l.Columns)
}

// layoutOf is the layout of the live manifest with the name; zero when the name has
// none.
func layoutOf(which string) (l Layout) {
	if n, err := fmt.Sscanf(strings.TrimPrefix(which, liveManifest), "#%d.%d", &l.Format, &l.Columns); n != 2 || err != nil {
		return Layout{}
	}
	return l
}

// readable reports whether the list can be read in a layout: it has the list's format
// and no columns that the list lacks.
func (k Key) readable(l Layout) bool {
	own := k.Layout()
	return l.Format == own.Format && l.Columns > 0 && l.Columns <= own.Columns
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
// or, where there is none, the one with the most columns that it can read; Layout
// says which. Where there is nothing, the manifest is empty and the version 0. It
// fails with [ErrNotBuilt] when there are only others.
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
	return x.Best(all)
}

// Manifests reads the live manifests of all layouts, by name.
func (x Index) Manifests(ctx context.Context) (map[string]*StoredManifest, error) {
	return x.Reader.Manifests(ctx, x.Org, x.List.Name, liveManifest)
}

// Best decodes the manifest that [Index.Load] reads, of all that there are.
func (x Index) Best(all map[string]*StoredManifest) (*Manifest, uint64, error) {
	best := Layout{}
	for which := range all {
		if l := layoutOf(which); x.readable(l) && l.Columns > best.Columns {
			best = l
		}
	}
	switch {
	case best.Columns > 0:
		return x.decode(best, all[best.Live()])
	case len(all) > 0:
		return nil, 0, ErrNotBuilt
	}
	return &Manifest{Layout: x.Layout()}, 0, nil
}

func (x Index) decode(l Layout, stored *StoredManifest) (*Manifest, uint64, error) {
	m, err := x.As(l).DecodeManifest(stored.Body)
	if err != nil {
		return nil, stored.Version, err
	}
	m.Layout, m.CoveredAt = l, stored.CoveredAt
	return m, stored.Version, nil
}

// Chunks are the chunks that the manifest with the name has, free ones included, in
// whatever layout; none when it cannot be read.
func (k Key) Chunks(which string, stored *StoredManifest) (chunks []Chunk) {
	m, err := k.decodeManifest(layoutOf(which), stored.Body)
	if err != nil {
		return nil
	}
	for _, c := range m.Free {
		chunks = append(chunks, c.Chunk)
	}
	for _, p := range m.Partitions {
		for _, s := range p.Segments {
			chunks = append(chunks, s.Chunks...)
		}
	}
	return chunks
}
