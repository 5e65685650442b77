// Package commerce is the record domain: products, categories, orders,
// customers, invoices and stock. It checks and completes records that back offices
// send, decides which change wins, derives events from stored changes, and
// declares the list of each kind. It is pure: every function computes from its
// arguments alone, money is exact, and the same inputs give the same bytes on
// every machine.
//
// # Kinds
//
// Each kind has a file (product.go, order.go, …) with its GET shape, its input
// and one definition, which [Kinds] lists. The types of a list's columns, its
// filters and the documents of its index follow from the fields of the shape.
//
// # What is stored
//
// A record is stored as the JSON of its GET shape: every field present, in
// the order of the struct, compact, absent values null. Stored texts can be
// compared byte by byte, because the names in free-form objects are sorted and
// updatedAt is the last member. An invoice's isOverdue is stored as false,
// since it depends on the time of reading; [AppendShape] gives the text to show.
package commerce
