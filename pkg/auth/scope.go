package auth

import (
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/account"
)

// Scope is one permission: an area and read or write.
type Scope string

// The scopes.
const (
	DevelopersRead  Scope = "developers:read"
	DevelopersWrite Scope = "developers:write"
	WebhooksRead    Scope = "webhooks:read"
	WebhooksWrite   Scope = "webhooks:write"
	RecordsWrite    Scope = "records:write"
	ProductsRead    Scope = "products:read"
	CategoriesRead  Scope = "categories:read"
	OrdersRead      Scope = "orders:read"
	CustomersRead   Scope = "customers:read"
	InvoicesRead    Scope = "invoices:read"
	StockRead       Scope = "stock:read"
)

// DevelopersAdmin permits to suspend and to activate an application. Roles
// grant it, to OWNER and ADMIN; no scope claim, key or application token can
// name it, and [AllScopes] leaves it out.
const DevelopersAdmin Scope = "developers:admin"

// Scopes is a sorted set of scopes.
type Scopes []Scope

// ReadScopes are the scopes of the read API, the most that an API key can hold.
// [account.TokenScopes] are those of an application's token.
func ReadScopes() Scopes { return ScopesNamed(account.ReadScopes()) }

// ReadScope is the scope that reads a kind of records, by its plural.
func ReadScope(plural string) Scope { return Scope(plural + ":read") }

// AllScopes is every scope that a claim can name.
func AllScopes() Scopes { return NewScopes(append(developerScopes(), RecordsWrite)...) }

// developerScopes are all but the one that changes records.
func developerScopes() Scopes {
	return NewScopes(append(ReadScopes(), DevelopersRead, DevelopersWrite, WebhooksRead, WebhooksWrite)...)
}

// NewScopes makes the set of the given scopes.
func NewScopes(scopes ...Scope) Scopes {
	s := slices.Clone(scopes)
	slices.Sort(s)
	return slices.Compact(s)
}

// ParseScopes reads a space-separated list; it is not checked against the
// known scopes, and an unknown one permits nothing.
func ParseScopes(text string) Scopes {
	return NewScopes(ScopesNamed(strings.Fields(text))...)
}

// ScopesNamed turns names into scopes, in their order.
func ScopesNamed(names []string) Scopes {
	scopes := make(Scopes, len(names))
	for i, name := range names {
		scopes[i] = Scope(name)
	}
	return scopes
}

// Has reports whether the set permits the scope.
func (s Scopes) Has(scope Scope) bool { return slices.Contains(s, scope) }

// Intersect returns the scopes in both sets.
func (s Scopes) Intersect(other Scopes) Scopes {
	return slices.DeleteFunc(append(Scopes{}, s...), func(scope Scope) bool { return !other.Has(scope) })
}

// Names are the names of the scopes, in their order.
func (s Scopes) Names() []string {
	names := make([]string, len(s))
	for i, scope := range s {
		names[i] = string(scope)
	}
	return names
}

func (s Scopes) String() string { return strings.Join(s.Names(), " ") }
