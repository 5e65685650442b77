// Package importer turns files into ingestion records and sends them on: JSON
// Lines, CSV in the service's own shapes or by a mapping, and what Shopify,
// WooCommerce, Medusa and Vendure export. What a column of a format becomes is
// said by a program in jq in the folder formats; Go reads the files, finds the
// rows of one record and runs the program on them. A column that a program does
// not name goes into the record's attributes or metadata. The same files give the same
// records, with the same identifiers, on every run and every machine. Amounts
// stay exact. Text that is not UTF-8 is read as Windows-1252 and warned of. A bad
// row is named by file and line, and its neighbours are imported. Files are read
// row by row, those of Vendure whole; what is held grows with the categories and,
// of WooCommerce, with the variable products, whose variations may come anywhere
// below them. The caller provides the queue or the service; [ReadPart] sends nothing.
package importer
