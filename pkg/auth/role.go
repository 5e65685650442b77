package auth

import "slices"

// Role is a user's role in the organization, from the token's roles claim.
type Role string

// The roles.
const (
	Owner         Role = "OWNER"
	Admin         Role = "ADMIN"
	DeveloperRole Role = "DEVELOPER"
	Viewer        Role = "VIEWER"
)

// Scopes is the one table of what each role permits. An unknown role permits
// nothing.
func (r Role) Scopes() Scopes {
	switch r {
	case Owner, Admin:
		return append(AllScopes(), DevelopersAdmin).sorted()
	case DeveloperRole:
		return AllScopes()
	case Viewer:
		return append(ReadScopes(), DevelopersRead, WebhooksRead).sorted()
	}
	return Scopes{}
}

// scopesOf applies the rules of a user's token. Several roles are a union,
// and a scope claim narrows it; a scope claim without roles narrows the set
// of all scopes; only a token with neither gets the default role's. No claim
// names [DevelopersAdmin]: it comes from a role, as long as developers:write
// is left.
func scopesOf(roles []string, hasRoles bool, scope string, hasScope bool, fallback Role) Scopes {
	granted := Scopes{}
	switch {
	case hasRoles:
		for _, role := range roles {
			granted = append(granted, Role(role).Scopes()...)
		}
		granted = granted.sorted()
	case hasScope:
		granted = AllScopes()
	default:
		granted = fallback.Scopes()
	}
	if !hasScope {
		return granted
	}
	narrowed := granted.Intersect(ParseScopes(scope).Intersect(AllScopes()))
	if granted.Has(DevelopersAdmin) && narrowed.Has(DevelopersWrite) {
		narrowed = append(narrowed, DevelopersAdmin).sorted()
	}
	return narrowed
}

func (s Scopes) sorted() Scopes {
	slices.Sort(s)
	return slices.Compact(s)
}
