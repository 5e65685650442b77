package openapi

import (
	"strings"

	"github.com/commerce-integration/service/pkg/auth"
)

// guide is what the document says of all operations together.
func guide() string {
	return description + "\n\n" + requests + "\n\n" + permissions() + "\n\n" + versions
}

const description = `A multi-tenant commerce back-office interface: a read API for products, categories,
orders, customers, invoices and stock, applications with API keys for developers, and signed webhooks for every change.

Enumerations are open (x-extensible-enum): a client must expect values that it does not know. A field that has no value
is null, never absent; its type says whether it can be. Amounts are JSON numbers with at most four decimals and are
exact; read them into a decimal type. A double keeps each of them, but not what is computed with it.
Integers are written in digits alone, 5 and not 5.0. Times have milliseconds: further decimals are cut from a time in a body,
and make an end of a span in a query the next millisecond.`

const requests = `## Requests

What an operation does not know is refused with 400 and never ignored, so that a misspelt filter cannot answer the whole
list: a parameter or a field that is not declared, one that is given twice (a parameter that takes several values may be),
an empty parameter (a blank search apart). details names the faults of the query or of the body, at most 20. In a body an
absent field takes its default; in a PATCH it stays as it is, and null clears it where its type takes null. In text
control characters are refused, but for tab, line feed and carriage return where several lines are allowed. A number that
overflows a double, such as 1e400, is refused, too.`

const versions = `## Versions

Changes add only: operations, optional parameters and fields, values of enumerations, types of events. What must go is
announced at least twelve months before: its operation is deprecated in this document and in the changelog, and its every
answer carries Deprecation (RFC 9745: since when), Sunset (RFC 8594: from when on it may be gone) and a Link with
rel="deprecation" to what takes its place. No path or header names a version; apiVersion in a webhook's payload names
that of the payload's shape.`

// permissions tells the scopes of each role.
func permissions() string {
	var b strings.Builder
	b.WriteString("## Who may do what\n\nEach operation names the credentials and the scope that it takes, and the roles that have it. A user has the scopes of\n" +
		"the token's roles, several being a union, narrowed by its scope claim; unknown roles give nothing. A token without\n" +
		"roles has the scopes that its scope claim names; with neither claim, those of DEVELOPER, or of the deployment's\n" +
		"default role:\n")
	for _, role := range auth.Roles() {
		b.WriteString("\n- `" + string(role) + "`: " + strings.ReplaceAll(role.Scopes().String(), " ", ", "))
	}
	b.WriteString("\n\nAn API key has some or all of the read scopes. On the read API it decides alone when a token is sent beside\n" +
		"it; elsewhere it is ignored. A user or a key that is limited to sites reads what these show, and manages nothing:\n" +
		"applications, keys and webhooks reach the records of every site.\n\n" +
		"What a request mints, grants, rotates, subscribes to or shows takes every scope that can be reached by it, beside the\n" +
		"operation's own; 403 insufficient_scope names those that are lacking.")
	return b.String()
}
