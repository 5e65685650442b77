package auth

// Role is a user's role in the organization, from the token's roles claim.
type Role string

// The roles.
const (
	Owner         Role = "OWNER"
	Admin         Role = "ADMIN"
	DeveloperRole Role = "DEVELOPER"
	Viewer        Role = "VIEWER"
)

// Roles are all roles, from the one that may do the most.
func Roles() []Role { return []Role{Owner, Admin, DeveloperRole, Viewer} }

// Scopes returns what the role permits; an unknown role permits nothing.
func (r Role) Scopes() Scopes {
	switch r {
	case Owner, Admin:
		return NewScopes(append(AllScopes(), DevelopersAdmin)...)
	case DeveloperRole:
		return developerScopes()
	case Viewer:
		return NewScopes(append(ReadScopes(), DevelopersRead, WebhooksRead)...)
	}
	return Scopes{}
}

// scopesOf applies the rules of a user's token. Several roles are a union,
// which a scope claim narrows; a scope claim without roles narrows the set of
// all scopes; a token with neither gets the default role's. No claim can name
// [DevelopersAdmin]: a role grants it, unless the scope claim leaves out
// developers:write.
func scopesOf(roles []string, hasRoles bool, scope string, hasScope bool, fallback Role) Scopes {
	granted := Scopes{}
	switch {
	case hasRoles:
		for _, role := range roles {
			granted = append(granted, Role(role).Scopes()...)
		}
		granted = NewScopes(granted...)
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
		narrowed = NewScopes(append(narrowed, DevelopersAdmin)...)
	}
	return narrowed
}
