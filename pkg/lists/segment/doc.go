// Package segment encodes documents as segments, the files of an index: immutable,
// sorted by key and compressed. It decodes them to row groups for a columnar.View and
// merges several into one. Where segments are stored is left to others.
//
// A program that reads a segment accepts one form only, but for the choices of zstd
// and of references (see numbers), and refuses with ErrVersion what was written with
// other columns than it has: the documents must be encoded again then.
//
// # Format
//
// A segment has a core and up to two groups of text, each stored on its own:
//
//	┌─────────────────────────────────────────────────────────────────────────┐
//	│ "cseg" <4b> │ format = 1 <1b> │ group <1b> │ segment id <16b>            │
//	├─────────────────────────────────────────────────────────────────────────┤
//	│ len(schema name) <uvarint> │ schema name │ columns <8b>                  │
//	├─────────────────────────────────────────────────────────────────────────┤
//	│ core:  documents <uvarint> │ deleted ones <uvarint>                      │
//	│        frame of dictionaries │ frame of block 0 │ frame of block 1 │ ... │
//	│ text:  frame of lengths │ frame of text 0 │ frame of text 1 │ ...        │
//	├─────────────────────────────────────────────────────────────────────────┤
//	│ CRC-32C of all before <4b, little endian>                                │
//	└─────────────────────────────────────────────────────────────────────────┘
//
// group is 0 for the core, 1 for text with Search, 2 for other text. The segment id
// is made of the content of all groups by SHA-256 and the same in all; columns is
// made of the names, types and flags of the columns by SHA-256. A block, and its
// text, is the next 4,096 documents, the last fewer. Varints are those of
// encoding/binary ("varint" with zigzag), in their shortest form.
//
//	frame        │ size uncompressed <uvarint> │ size <uvarint> │ zstd │
//
//	dictionaries one for each Keyword column:
//	             │ count <uvarint> │ length of each value <uvarint> │ values │
//	             │ count of sets <uvarint> │ set │ set │ ...
//	set          │ count <uvarint> │ first member <uvarint> │ of each other: members
//	             skipped since the one before <uvarint> │
//
//	block        │ flags <1b>: 1 some documents are deleted, 2 some have a sub │
//	             │ deleted <bits>, if flagged │
//	             │ first 8 bytes of the ids, big endian, sign bit flipped <numbers> │
//	             │ 9th byte of all ids │ 10th │ ... │ 16th │
//	             │ subs <1b each>, if flagged │
//	             │ revision <numbers> │ visible <numbers> │ column │ column │ ...
//	column       Keyword:       │ codes <numbers> │
//	             Bool:          │ nulls │ true <bits> │
//	             Number, Time:  │ nulls │ values <numbers> │
//	nulls        │ 0: none <1b> │  or  │ 1: some <1b> │ which <bits> │  or  │ 2: all <1b> │
//	bits         a bit for each row, from the lowest up
//	numbers      │ reference <1b> │ width <1b> │ base <varint> │
//	             │ lowest byte of all differences │ next byte │ ... (width times)
//
//	lengths      for each block: the bytes of each row <numbers>
//	text         for each row, for each column: │ value │ 0xff │ ... │ 0xfe │
//
// Values of a dictionary rise by their bytes, sets by the numbers of their members. A
// code is 0 for no value, 2v+2 for value v alone, 2s+1 for set s. All values and sets
// occur. Columns of text are ordered as Schema.TextColumns says; rows of deleted
// documents have no text.
//
// The difference of a number is
//
//	reference 0   number - base; base is the least number
//	reference 1   zigzag(number - the one before); base is the first number
//	reference 2+  number - number of another column in the row - base; base is the
//	              least. The columns: the moment in the first 48 bits of the id,
//	              revision, visible, then the Number and Time columns before this one
//
// Sums wrap around as int64 do. The difference of a row without a value is 0; a
// column without any value has reference 0 and base 0. The highest byte of the
// differences is not 0 in all rows.
//
// A segment has at most MaxRows documents, a group at most MaxGroup bytes before
// compression, a frame at most 32,768 times its compressed size. The size of a block
// is bounded by its rows, that of text by the lengths, so that a reader never
// reserves memory for what cannot follow.
package segment
