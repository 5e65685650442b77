// Package segment encodes documents as segments, the files of an index: immutable,
// sorted by key and compressed. It decodes them to row groups for a columnar.View and
// merges several into one. Where segments are stored is left to others.
//
// There is one format. A segment in another one, or with other columns than the program
// has, is refused with ErrVersion or ErrNewer: the documents must be encoded again then.
// What is damaged, cut off or impossible is refused with ErrFormat.
//
// # Format
//
// A segment has a core and, where the schema has a Text, a group of text, each stored on
// its own:
//
//	┌─────────────────────────────────────────────────────────────────────────┐
//	│ "cseg" <4b> │ format = 3 <1b> │ group <1b> │ segment id <16b>            │
//	├─────────────────────────────────────────────────────────────────────────┤
//	│ schema <8b> │ documents <4b> │ deleted ones <4b>                         │
//	├─────────────────────────────────────────────────────────────────────────┤
//	│ core:  frame of dictionaries │ frame of block 0 │ frame of block 1 │ ... │
//	│ text:  frame of text 0 │ frame of text 1 │ ...                           │
//	├─────────────────────────────────────────────────────────────────────────┤
//	│ CRC-32C of all before <4b>                                               │
//	└─────────────────────────────────────────────────────────────────────────┘
//
// group is 0 for the core, 1 for text. The segment id is made of the content of both
// groups by SHA-256 and the same in both; schema is made
// of the schema's name and the names, types and flags of its columns by SHA-256. A
// block, and its text, is the next 4,096 documents, the last fewer. Integers are little
// endian.
//
//	frame        │ size uncompressed <4b> │ size <4b> │ zstd │
//
//	dictionaries one for each Keyword column:
//	             │ count <4b> │ length of each value <numbers of 4b> │ values │
//	value        the strings of a document, each behind its length <uvarint>
//
//	block        │ deleted <bits> │ first byte of all ids │ second │ ... │ 16th │
//	             │ sub of each document <1b> │ revision <numbers of 8b> │
//	             │ visible <numbers of 8b> │ column │ column │ ...
//	column       Keyword:       │ codes <numbers of 4b> │
//	             Bool:          │ nulls <bits> │ true <bits> │
//	             Number, Time:  │ nulls <bits> │ values <numbers of 8b> │
//	bits         a bit for each row, from the lowest up, in whole bytes
//	numbers      │ lowest byte of all numbers │ next byte of all numbers │ ...
//
//	text         for the columns with Search, and then for the others:
//	             │ length of each row <numbers of 4b> │ row │ row │ ...
//	row          for each column: │ value │ 0xff │ value │ 0xff │ ... │ 0xfe │
//
// A code is 0 for no value, n+1 for value n. Values are in the order in which they
// first occur. Columns of text are in the order of the schema. Deleted documents have
// no values. The number of a row without a value is 0.
//
// Rows and columns are not stored as differences: where bytes of
// equal weight stand together, zstd finds that they hardly differ, and that a time is
// the one of another column.
//
// A segment has at most MaxRows documents, a group at most MaxGroup bytes before
// compression, a frame at most 32,768 times its compressed size. The size of a block
// follows from its rows, so that a reader never reserves memory for what cannot follow.
package segment
