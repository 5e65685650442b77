// Package commerce is the record domain: products, categories, orders,
// customers and invoices, what may be stored of them, and which events a
// stored change means. It is pure: every function computes from its
// arguments alone, money is exact, and the same inputs give the same bytes on
// every machine. Storage, queues, delivery and HTTP are left to the packages
// that call it.
//
// # What is stored
//
// A record is stored as the JSON of its GET shape: every field present, in
// the order of the struct, compact, absent values null. Two things make the
// stored text comparable byte by byte: free-form objects are kept with sorted
// names, and updatedAt is the last member. An invoice's isOverdue is always
// stored as false, because its value depends on the time of reading;
// [AppendShape] gives the text to show.
package commerce
