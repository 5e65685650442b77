// Package index answers the lists: which documents hold for a filter and a search,
// how many they are, and which of them stand on a page of an order. It promises
// exact answers (a total is a count, an order is total, a search is a substring
// search), the same state whatever the order and number of times in which changes
// arrive, and queries that run beside one another and beside changes. Where
// documents come from, how they are stored and fetched, and what the records that
// they stand for look like is left to others.
//
// A Schema declares the columns of one kind of documents:
//
//	var products = index.MustSchema("product",
//		index.Column{Name: "categoryId", Type: index.Keyword},
//		index.Column{Name: "isActive", Type: index.Bool},
//		index.Column{Name: "createdAt", Type: index.Time, Sort: true},
//		index.Column{Name: "name", Type: index.Text, Search: true, Sort: true},
//		index.Column{Name: "sku", Type: index.Text, Search: true, Sort: true, Match: true},
//	)
//	var name, sku = products.Col("name"), products.Col("sku")
//
// A Builder makes documents, a View holds them and answers queries:
//
//	doc := products.Build(id, 0).Text(name, "Linen shirt").Text(sku, "LS-1").Document(revision, visible)
//	view := index.NewView(products)
//	view.Apply([]index.Document{doc})
//	page := view.Query(index.Query{
//		Filter: index.All(index.In(sku, "ls-1"), index.Not(index.Null(name))),
//		Search: fold.Tokens("shirt"), OrderBy: name, Limit: 20,
//	})
//
// # Inside a view
//
// Documents lie in chunks of 4,096 rows, column by column. Rows are only added; a
// change kills the old row and adds a new one. A full chunk is packed: whole
// numbers in one, two or four bytes as differences from the least. It is also
// signed: for groups of three bytes there is a set of the rows whose text may
// contain them, so that a search reads the text of few rows. A chunk of which a
// third is dead is evacuated to the last one. A query narrows, chunk by chunk, the
// set of live rows by each part of the filter and then by the search; the page is
// cut out of the column's ordering, which is kept sorted through every change.
//
// # Format of a document
//
// AppendDocument writes, and DecodeDocument accepts, exactly one form for each
// document. Numbers are the varints of encoding/binary, "varint" with zigzag for
// signed ones, always in their shortest form.
//
//	document  version (1 byte, 1), length of body (uvarint), body,
//	          CRC-32C of all bytes before it (4 bytes, little endian)
//	body      flags (1 byte: 1 deleted, 2 has a sub, others refused),
//	          id (16 bytes), sub (1 byte, not 0; if flagged),
//	          revision (varint), visible (varint),
//	          values up to the end of the body; none when deleted
//	value     column (1 byte, 1 to 64, rising), kind (1 byte), content by kind:
//	          0 false, 1 true: nothing
//	          2 number: varint
//	          3 one string: length (uvarint), bytes
//	          4 strings: count (uvarint, at least 2), each as of kind 3
//
// A column that is null has no value. Bool has kinds 0 and 1, Number and Time 2,
// Keyword and Text 3 and 4. The strings of a Keyword rise and are distinct; those
// of a Text keep their order, are valid UTF-8 and have at most MaxText bytes
// together. Columns beyond the schema's are checked for their form only: a program
// reads what a later one wrote with columns added.
package index
