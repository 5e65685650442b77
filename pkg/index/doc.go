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
// The compactor does index jobs. It flushes the tail into segments, merges
// eight segments of one size tier into one of the next, counts partitions that
// have been quiet, and puts the new manifest on the condition that the one it
// read is still live. A job is bounded, and may die or run twice: chunks count
// only once a live manifest names them. A rebuild makes segments from the table
// instead, over many jobs.
//
// A view holds what its queries needed so far, from segments, and the changes
// of the tail since. It reads the manifest only to load more: merges go on
// without it noticing. A sealed partition has not changed since it was counted;
// a query that needs no row of it takes its summary from the manifest.
//
// Changes may come twice, late and out of order. The higher revision of a
// document wins everywhere; of equal revisions the tombstone.
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
//	             partition v and encoded form; kind 2, rebuilt: version u
//	length       of the content before it is packed
//	crc          CRC-32C of organization 16, list's name, sequence 8 (big
//	             endian), and the entry before crc
//
//	manifest     ┌───────────┬─────────────────┬────────┬───────────┐
//	             │ version 1 │ organization 16 │ name u │ name      │
//	             ├───────────┼─────────────────┼────────┴───────────┤
//	             │ covered u │ rebuild ID   16 │ partitions      n× │
//	             ├───────────┴─────────────────┼────────────────────┤
//	             │ free chunks              n× │ crc              4 │
//	             └─────────────────────────────┴────────────────────┘
//	partition    number v (rising), sealed 1, counted u, live u, summary,
//	             segments n×
//	summary      documents u; if any, min v and max v of Visible; Time columns
//	             n×: nulls u; if there are others, min v and max v
//	segment      rows u, tombstones u, bytes u of each column group, chunks n×
//	chunk        number u, content ID 8, size u
//	free chunk   chunk, since v (milliseconds since 1970)
//	crc          CRC-32C of everything before it
//
//	rebuild      ┌─────────┬─────────┬───────┬──────────┬─────────┐
//	             │ shard u │ after u │ after │ manifest │ crc   4 │
//	             └─────────┴─────────┴───────┴──────────┴─────────┘
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
