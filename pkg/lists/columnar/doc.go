// Package columnar answers lists: which documents match a filter and a search, how
// many they are, and which are on a page of an order. Answers are exact: totals are
// counts, orders are total, and a search finds substrings. A view has the same state
// whatever the order and number of times in which changes arrive, and queries run
// concurrently with one another and with changes. Storing documents is left to
// others; package segment, which imports this one, is their form at rest.
//
// A Schema declares the columns of one kind of documents, a Builder makes documents,
// and a View holds them and answers queries: see the example.
//
// # Inside a view
//
// Documents are in row groups of 4,096 rows, column by column. Rows are only appended;
// a change marks the old row as dead and appends a new one. Columns are slices of their
// numbers; a Keyword has codes into a dictionary. A search reads the text of a row group
// as one, and the rows of the last tokens are cached, as are those of the last values of a
// Text of which In compares each. Once a third of a row group is dead,
// its live rows are copied to the last one. A view without text answers what needs none.
//
// A query narrows, in each row group, the set of live rows by each part of the filter
// and then by the search. The page is cut out of the column's ordering, which every
// change keeps sorted.
//
// A segment's blocks become row groups as they are, except that codes change where
// the view has other values. Queries wait while they are added: about 1 ms for 1,000
// documents.
//
// # Format of a document
//
// There is one format, without a version and a checksum: what holds documents has both.
// Numbers are the varints of encoding/binary, "varint" with zigzag for signed ones, in
// their shortest form.
//
//	document  length of body (uvarint), body
//	body      deleted (1 byte: 0 or 1), sub (1 byte), id (16 bytes),
//	          revision (varint), visible (varint),
//	          values up to the end of the body; none when deleted
//	value     column (1 byte, 1 to 64, rising), kind (1 byte), content by kind:
//	          0 false, 1 true: nothing
//	          2 number: varint
//	          3 strings: their bytes (uvarint, not 0); of each length (uvarint), bytes
//
// A column that is null has no value. Bool has kinds 0 and 1, Number and Time 2,
// Keyword and Text 3. The strings of a Keyword rise and are distinct; those of a Text
// keep their order, are valid UTF-8 and have at most MaxText bytes together. Columns
// beyond the schema's are checked for their form only: a program reads what a later one
// wrote with columns added.
package columnar
