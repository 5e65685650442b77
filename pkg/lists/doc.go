// Package lists declares lists as data: their filters, orders, search and
// paging. A declaration gives the documentation of every parameter, the parsing
// of their values and the query of an index. The list's owner adds the filters
// that need more than the query string (the caller, the time, a tree of
// categories); package api checks the names of parameters and answers pages.
//
// This folder is pure and lies below the domain, which declares its lists with
// it: columnar answers queries from columns in memory, segment encodes them.
// The index as it is stored and kept up to date, which knows the domain, is
// package index.
package lists
