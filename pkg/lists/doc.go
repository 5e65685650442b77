// Package lists is what all lists share: their parameters, pages, orders
// and filters. A List is declared as data; from the declaration follow the
// parsing of a query string, the query that an index answers, the links
// between pages and the documentation of every parameter. What needs more
// than the query string (who asks, what time it is, a tree of categories) is
// left to the list's owner, which reads those values by name and adds filters.
package lists
