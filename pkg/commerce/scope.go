package commerce

import (
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// SiteScope says which sites a reader asks for and may see.
type SiteScope struct {
	Site  *value.ID  // asked for by siteId or X-Site-Id; the credential must cover it
	Sites []value.ID // that the credential covers; nil: every site
}

// noSite says how visible a record is that names no site.
type noSite uint8

const (
	noSiteHidden noSite = iota // readers of every site only
	noSiteShared               // everybody: it belongs to every site
	noSiteGlobal               // everybody by id; in the list as includeGlobal says
)

const (
	filterGlobal = "includeGlobal"
	columnSite   = "siteId"
	columnSites  = "siteIds"

	columnReference = "externalRef" // of products, beside their shape
)

// sites are those whose records are shown; every is true when none is asked
// for and the credential covers all.
func (s SiteScope) sites() (ids []value.ID, every bool) {
	if s.Site != nil {
		return []value.ID{*s.Site}, false
	}
	return s.Sites, s.Sites == nil
}

// Shows reports whether a live record may be seen by its identifier: a
// record of one of the sites, or of none where its kind allows it.
func (s SiteScope) Shows(r *Stored) (bool, error) {
	sites, every := s.sites()
	if every {
		return true, nil
	}
	d := r.Kind.known()
	own := r.SiteIDs
	if !d.sites {
		members, err := splitObject(r.Doc)
		if err != nil {
			return false, unreadable(r, err)
		}
		site, err := siteOf(members)
		if err != nil {
			return false, unreadable(r, err)
		}
		if site != nil {
			own = []value.ID{*site}
		}
	}
	if own == nil {
		return d.noSite != noSiteHidden, nil
	}
	return slices.ContainsFunc(own, func(id value.ID) bool { return slices.Contains(sites, id) }), nil
}

// filter is [SiteScope.Shows] of a kind's list.
func (s SiteScope) filter(d *definition, q *lists.Query) columnar.Filter {
	name := columnSite
	if d.sites {
		name = columnSites
	}
	col := d.list.Schema.Col(name)
	sites, every := s.sites()
	unsited := every || d.noSite == noSiteShared
	if d.noSite == noSiteGlobal {
		unsited = q.Bool(filterGlobal, s.Site == nil)
	}
	switch {
	case every && unsited:
		return columnar.All()
	case every:
		return columnar.Not(columnar.Null(col))
	case unsited:
		return columnar.Any(columnar.In(col, lists.Keys(sites)...), columnar.Null(col))
	}
	return columnar.In(col, lists.Keys(sites)...)
}
