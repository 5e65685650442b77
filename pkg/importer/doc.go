// Package importer turns files into ingestion records and sends them on: JSON
// Lines and CSV in the service's own shapes, the Northwind sample database and
// Shopify's product export. The same files give the same records, with the
// same identifiers, on every run and every machine; amounts stay exact; a bad
// row is named by file and line and never costs its neighbours. Reaching a
// queue, and what becomes of a record there, is left to the caller.
package importer
