// Package indexing keeps the views that answer lists. Its writer turns the
// table's stream into a change log per list, and its views are filled from
// the table once, then follow the log: a change is visible in every view
// about a second after it was logged, whatever was replayed or reordered on
// the way. What a query means is left to package index, and whose view is
// asked to the caller, which names the organization.
package indexing
