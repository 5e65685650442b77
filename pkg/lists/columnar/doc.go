// Package columnar answers the lists: which documents hold for a filter and a search,
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
// Many documents are kept as segments, which views load and which merge into
// others. Each is in up to three groups, of which a query needs some:
//
//	encoded := index.EncodeSegment(products, docs)
//	segment, err := index.DecodeSegment(products, encoded.Groups[index.Core])
//	view.Load(segment)
//	if products.Needs(&query).Has(index.SearchText) {
//		err = view.Fill(segment, index.SearchText, encoded.Groups[index.SearchText])
//	}
//
// # Inside a view
//
// Documents lie in chunks of 4,096 rows, column by column. Rows are only added; a
// change kills the old row and adds a new one. A full chunk is packed: whole
// numbers in one, two or four bytes as differences from the least. The first search
// signs it: for each pair of bytes that stand side by side in a value there is the
// set of the rows that have it. So a search reads no text for tokens of one or two
// bytes, and for longer ones only that of rows that have all their pairs. A chunk
// of which a third is dead is evacuated to the last one. A query narrows, chunk by
// chunk, the set of live rows by each part of the filter and then by the search; the
// page is cut out of the column's ordering, which is kept sorted through every
// change.
//
// A segment's blocks become chunks as they are, but that codes change where the
// view has other values. What is superseded dies, and the orderings are merged with
// those of the new documents in a table beside the one that queries read, which it
// then replaces. A chunk that came without text stays where it is until it has it,
// and while there is one, nothing is ordered by that text.
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
//
// # Format of a segment
//
// A segment is a view's table at rest: documents of distinct keys, deleted ones
// among them, in the order of their keys, in blocks of 4,096 rows, the last of
// which may have fewer. EncodeSegment writes up to three groups. Apart from zstd,
// which may compress in many ways, and from which column's numbers are differences
// from which, there is one form for the same documents, and no other is accepted. A
// program refuses with ErrVersion what was written with other columns than it has:
// the documents are to be encoded again.
//
//	group     "cseg", format (1 byte, 1), group (1 byte: 0 core, 1 search text,
//	          2 other text), segment (16 bytes, the same in all groups of one, made
//	          of their content by SHA-256), length of the schema's name (uvarint),
//	          name, columns (8 bytes, of the SHA-256 over their names, types and
//	          flags), content by group, CRC-32C of all bytes before it (4 bytes,
//	          little endian)
//	core      count of documents (uvarint), how many of them are deleted (uvarint),
//	          frame of dictionaries, a frame for each block
//	text      frame of lengths, a frame for each block
//	frame     length without compression (uvarint), length (uvarint), zstd
//
// Dictionaries follow one another in the order of the Keyword columns. They hold
// the values that occur and the sets of two or more that documents have; values
// rise by their bytes, sets by their members' numbers. A code is 0 for no value,
// 2v+2 for value number v alone, and 2s+1 for set number s.
//
//	dictionary  count of values (uvarint), length of each (uvarint), their bytes,
//	            count of sets (uvarint), sets
//	set         count of members (uvarint), the first member's number (uvarint), for
//	            each other the numbers left out since the one before it (uvarint)
//	block       flags (1 byte: 1 some rows are of deleted documents, 2 some have a
//	            sub, others refused),
//	            rows that are deleted (bits; if flagged, and not none),
//	            first 8 bytes of the ids, big endian, the highest bit turned
//	            (numbers), the other 8 bytes: of all rows the first, then the second
//	            and so on, subs (a byte for each row; if flagged, and not all 0),
//	            revision (numbers), visible (numbers), columns that are not Text
//	column      Keyword: codes (numbers)
//	            Bool: nulls, rows that are true (bits)
//	            Number, Time: nulls, values (numbers)
//	nulls       0 no row is null (1 byte), 1 some (1 byte), which (bits), or 2 all
//	bits        a bit for each row from the lowest up, in as many bytes as it takes
//	numbers     reference (1 byte), width (1 byte, 0 to 8), base (varint), and of
//	            each row's difference the lowest bytes, the next and so on, width
//	            times; the highest are not all 0
//
// A difference is a number less the base, which is the least (reference 0); less
// the row before, zigzag, where the base stands before the first row with a value
// and is its number (1); or less another column of the block and less the base,
// which is the least of what is left (from 2 on: the moment in the first 48 bits of
// the id, revision, visible, then the Number and Time columns before it). Sums wrap
// around as int64 do. Deleted documents have an id, a revision and a visible, and
// no other value. A row without a value has difference 0; where no row has one,
// reference and base are 0 too.
//
// A block of text is its rows one behind the other: for every column of the group
// each value, valid UTF-8, and the byte 0xff, and then 0xfe. The columns with Sort
// come first, then those with Match, each as declared. Rows of deleted documents
// are empty. The lengths are, block by block, numbers.
//
// A segment has at most MaxRows documents, and a group at most MaxGroup bytes
// before compression, a frame no more than 32,768 times what is left of it. How
// long a block may be follows from its rows, and how long its text is from the
// lengths: no memory is reserved for what cannot come.
package columnar
