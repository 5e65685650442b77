// Package index is what the three programs of the list index share: the
// declaration of the lists, the byte formats, and reading an index from
// storage. The table cannot answer exact lists that are filtered, searched and
// ordered in any way; an index for each organization and list can, for few
// reads and writes of the table.
//
// # The life of a change
//
//	table's stream: records, deliveries
//	      │
//	      ▼
//	  indexer ─── requests a job when the tail has grown ───► job
//	      │ one entry per batch and list                       │
//	      ▼                                                    ▼
//	tail  1 2 3 4 5 6 7 8 ── flush: entries 1 to 6 ────► compactor ◄─┐
//	            │                                              │     │ merge,
//	            │ follows the tail,                            ▼     │ count
//	            │ once a second                            segments ─┘
//	            ▼                                              ▲
//	          view ◄─── loads what queries need ───────────────┤ names
//	            │                                          manifest
//	            ▼                                          covered = 6
//	      list operations
//
// The indexer decodes stream records into list changes and appends them to the
// list's tail. From that moment on the change is in the list: every view
// follows the tail, by one read a second, so that a list shows a change about
// a second after the indexer saw it.
//
// The compactor does index jobs. It flushes the tail into segments, merges eight
// segments of one size tier into one of the next, divides partitions that have
// grown large, counts those that have been quiet, and puts the new manifest on
// the condition that the one it read is still live. A job is bounded, and may die
// or run twice: chunks count only once a live manifest names them. A rebuild
// makes segments from the table instead, over many jobs. A job that thousands of
// runs in a row do not end is stalled: it runs once a day, until a run ends it or
// a rebuild is requested by hand.
//
// A view holds what its queries needed so far, from segments, and the changes
// of the tail since. It reads the manifest only to load more: merges go on
// without it noticing. A sealed partition has not changed since it was counted;
// a query that needs no row of it takes its summary from the manifest, which
// tells how many documents have each value of a column with few values.
//
// Changes may come twice, late and out of order. The higher revision of a
// document wins everywhere; of equal revisions the tombstone.
//
// # Going on from a time
//
// A client that keeps a copy asks for what became visible since its last read.
// The time to ask from is that of the last tail entry in the view, plus a
// millisecond. AppendTail gives an entry a time after that of the entry before
// it, by the same conditional write that gives it its number, whatever the
// clocks of the indexers say. So what is in the view is in the answer, if the
// query holds for it; and what is not has its entry still to come, at that time
// or later, however late an indexer is.
//
// The time belongs to one tail, not to a clock, and holds for that list alone.
// The manifest keeps that of the last entry that it covers, so that it is known
// after the entries have expired. Flushes and merges change no document's time.
// A replay gives its documents a later time, so that they come again. A rebuild
// keeps the time of each revision that the index has, also when it adds a
// column; what only the table has gets the time of the rebuild, and later that
// of its entry. An index that cannot be read has no times to keep: then a
// revision gets the time 26 hours after its change, by when the stream has
// delivered it.
//
// This assumes that every change reaches the indexer. One that did not, and
// that a rebuild finds, may be missed by a client that reads while the rebuild
// runs; and one that came out of the park after more than 26 hours, if its index
// becomes unreadable before the client's next read.
//
// A walk over several pages may meet several views. So each page but the first
// reads the tail first, strongly consistent, and shows at least what the first
// page's view had: the time of the first page holds for the walk.
//
// # Reading now
//
// A query that asks for the list as it is now reads the tail first, strongly
// consistent: for at least one read unit, where following costs half of one, at
// most once a second. It shows each entry that was appended before it came.
// That is not each change of the table. The indexer and the dispatcher follow
// the stream side by side. A change has one write to go into the tail, and a
// queue, a worker and a request to go to a receiver, so that the tail has it
// first, unless the indexer is late.
//
// # What is stored
//
// For each organization and list there are the tail; the manifest, which names
// the segments and tells how far into the tail they reach; the job, while there
// is one; and the chunks of the segments, under keys of their own. A list that
// grows with time is divided into partitions, by month or by day, each with its
// own segments. Documents without a time are in partition 0.
//
// Numbers are uvarints (u) or zigzag varints (v), fixed numbers are little
// endian, n× is a count (u) and so many elements. A body that was damaged, or
// is another list's or at another position, is refused by its checksum.
//
//	tail entry   ┌─────────┬──────────┬─────────┬─────────┐
//	             │ kind  1 │ length u │ content │ crc   4 │
//	             └─────────┴──────────┴─────────┴─────────┘
//	content      kind 0, plain, and 1, packed by zstd: of each document its
//	             partition v and encoded form; kind 3, rebuilt: version u,
//	             format u, columns u; kind 2, of format 3 and before:
//	             version u
//	length       of the content before it is packed
//	crc          CRC-32C of organization 16, list's name, sequence 8 (big
//	             endian), and the entry before crc
//
//	manifest     ┌───────────┬───────────┬─────────────────┬────────┬──────┐
//	             │ format  1 │ columns u │ organization 16 │ name u │ name │
//	             ├───────────┼───────────┴─────────────────┼────────┴──────┤
//	             │ kind    1 │ length                    u │ content       │
//	             ├───────────┴─────────────────────────────┼───────────────┤
//	             │ crc                                   4 │               │
//	             └─────────────────────────────────────────┴───────────────┘
//	kind, length as in a tail entry
//	content      covered u, rebuild ID 16, partitions n×, free chunks n×
//	partition    number v, sealed 1, least ID 16, counted u, live u, summary,
//	             segments n×; by number and least ID, which is 0 in the first of
//	             a number
//	summary      documents u; if any, min v and max v of Visible; Time columns
//	             n×: nulls u; if there are others, min v and max v; Keyword
//	             columns n× (none when not known): counted 1; if so, values n×
//	value        length u, bytes, documents u; of each Time column in which
//	             some documents of the summary are null and others not: nulls u
//	segment      rows u, tombstones u, bytes u of each column group, those
//	             before compression u of each (0 when not known), chunks n×
//	chunk        number u, content ID 8, size u
//	free chunk   chunk, since v (milliseconds since 1970)
//	crc          CRC-32C of everything before it
//
// Format 4 is described. Formats 1 to 3 lie under a key without a layout and lack
// the columns. Format 2 has the content without kind and length, not packed, and
// no least IDs, which are 0. Format 1 is format 2 without Keyword columns and
// without the bytes before compression; it is read as if neither were known.
//
//	rebuild      ┌─────────┬─────────┬───────┬──────────┬─────────┐
//	             │ shard u │ after u │ after │ manifest │ crc   4 │
//	             └─────────┴─────────┴───────┴──────────┴─────────┘
//
// # Upgrades
//
// While a release is rolled out, and rolled back, its programs and those of the
// release before read and write the same lists. What tells them apart is the
// [Layout]: the number of the byte formats, and how many columns the documents
// have. It is in the key of the live manifest, MANIFEST#4.12, and of the state of a
// rebuild. A release writes manifests and segments of its own layout. Of others it
// reads the format before, and fewer columns. What a later release wrote is never
// damage: where nothing else can be read, queries are busy and jobs do nothing.
//
//   - Queries read the manifest of their own layout; until it exists, the best
//     other one.
//   - The first job of a new format takes over the manifest of the format before:
//     it puts its own beside it, which names the same chunks. Before that it marks
//     the other one as shared. No job overwrites or deletes a chunk that a shared
//     manifest names or named. From then on, each release maintains its own
//     manifest. They have one tail, whose entries tell both of every change, and
//     one job, which either does for its own; a rebuild is left to its release.
//   - A list with a new column is rebuilt from the table, beside the manifest
//     without it. That one answers the queries that do not use the column; the
//     others are busy until then. A change that a program of the earlier release
//     indexes meanwhile lacks the column until the record changes again, or
//     commerce reindex; the first rebuild should follow the last such program.
//   - A manifest that nobody has put for 14 days is deleted by the job of another
//     layout, which frees the chunks that it alone named, if it can read it. So an
//     upgrade can be rolled back, and a canary may run, for two weeks. Rolled back,
//     a release first reads what the tail has gathered meanwhile, until a job has
//     flushed it.
//
// A release may change the formats of manifests and segments if it raises
// [Format], reads the one before, and keeps the checksums where they are. A new
// kind of tail entry, which has no layout, is first read, and written only by the
// release after.
//
// Two-step upgrades, of readers first and then, by a parameter, of writers, need
// no second manifest, but an operator for each format and for each new column,
// and have no way back after the second step.
//
// # Alternatives that lost
//
// A manifest that holds the recent changes itself is written whole with each of
// them: go test -bench Tail in package dynamo shows what that costs. Replaced
// chunks could be deleted or made to expire, but either costs as much as
// writing them, so later chunks overwrite them. Counting documents as they come
// and go would be cheap and wrong, since changes come twice; so partitions are
// counted from their segments.
package index
