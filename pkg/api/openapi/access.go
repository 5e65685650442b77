package openapi

import (
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
)

// access says who may ask for the operation: the kinds of credentials, the scope
// and the roles that have it, and what a limit to sites means. It is empty for an
// operation that takes no credentials.
func access(op *api.Operation) string {
	if op.Access == api.Public {
		return ""
	}
	scopes := op.AnyScope
	if op.Scope != "" {
		scopes = auth.Scopes{op.Scope}
	}
	text := "Credentials: " + join(holders(op.Access, scopes), "or") + "."
	if len(scopes) > 0 {
		text += " Scope: " + join(quoted(scopes), "or") + "; of users, " + join(quoted(rolesOf(scopes)), "and") + " have it."
	}
	switch {
	case op.Sited():
		text += " Sites: a credential that is limited to sites sees what one of them shows; to ask for another site is 403."
	case !op.Limited():
		text += " Sites: a credential that is limited to sites is refused with 403."
	}
	return text
}

// holders are the kinds of credentials that the operation takes and that can
// have one of the scopes.
func holders(access api.Access, scopes auth.Scopes) []string {
	granted := make(auth.Scopes, 0, len(account.TokenScopes()))
	for _, scope := range account.TokenScopes() {
		granted = append(granted, auth.Scope(scope))
	}
	can := func(all auth.Scopes) bool { return len(scopes) == 0 || len(scopes.Intersect(all)) > 0 }
	var kinds []string
	if access == api.Reader && can(auth.ReadScopes()) {
		kinds = append(kinds, "an API key")
	}
	kinds = append(kinds, "a user's token")
	if access != api.Developer && access != api.User && can(granted) {
		kinds = append(kinds, "an application's token")
	}
	if access == api.Subscriber {
		kinds = append(kinds, "that of a portal session")
	}
	return kinds
}

// rolesOf are the roles that have one of the scopes.
func rolesOf(scopes auth.Scopes) []auth.Role {
	return slices.DeleteFunc(auth.Roles(), func(role auth.Role) bool { return len(role.Scopes().Intersect(scopes)) == 0 })
}

func quoted[T ~string](names []T) []string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = "`" + string(name) + "`"
	}
	return texts
}

// join writes a list as a sentence has it.
func join(texts []string, conjunction string) string {
	last := len(texts) - 1
	if last == 0 {
		return texts[0]
	}
	return strings.Join(texts[:last], ", ") + " " + conjunction + " " + texts[last]
}
