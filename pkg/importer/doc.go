// Package importer turns files into ingestion records and sends them on: JSON
// Lines and CSV in the service's own shapes, the Northwind sample database and
// Shopify's product export. The same files give the same records, with the
// same identifiers, on every run and every machine. Amounts stay exact. A bad
// row is named by file and line, and its neighbours are imported. The caller
// provides the queue.
package importer
