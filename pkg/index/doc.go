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
// without it noticing. A sealed partition has not changed since it was counted.
// Its summary in the manifest has the number of its documents and the bounds of
// their ids and times; a query that needs no row of it needs no more.
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
// clocks of the indexers say. So a change in the view is in the answer, if the
// query holds for it; any other has its entry still to come, at that time
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
// the segments and says how far into the tail they reach; the job, while there
// is one; and the chunks of the segments, under keys of their own. A list that
// grows with time is divided into partitions, by month or by day, each with its
// own segments. Documents without a time are in partition 0.
//
// Numbers are uvarints (u) or zigzag varints (v). A body that was damaged, or is
// another list's or at another position, is refused by its checksum: that of a chunk
// is a part of its content ID.
//
//	tail entry   ┌─────────┬─────────┬─────────┐
//	             │ kind  1 │ content │ crc   4 │
//	             └─────────┴─────────┴─────────┘
//	content      kind 0, plain, and 1, packed by zstd: of each document its
//	             partition v and encoded form; kind 2, rebuilt: version u,
//	             format u, columns u
//	crc          CRC-32C, little endian, of organization 16, list's name,
//	             sequence 8 (big endian), and the entry before crc
//
//	manifest     ┌──────────────┬─────────┐
//	             │ JSON by zstd │ crc   4 │
//	             └──────────────┴─────────┘
//	JSON         Manifest, or RebuildState for a rebuild under way
//	crc          CRC-32C, little endian, of organization 16, name of the
//	             manifest, list's name, and the manifest before crc
//
// # Upgrades
//
// A release has a [Layout]: the number of the byte formats, and how many columns the
// documents have. It is in the key of the live manifest, MANIFEST#6.12, and of the
// state of a rebuild. A release reads its own layout and, of the same format, those
// with fewer columns; it writes its own only.
//
// A list that has another layout is rebuilt from the table, next to the old one, when
// a query or a job comes to it. Until then a manifest with fewer columns answers the
// queries that use none of the new ones. Other queries, and all where the format
// has changed, are Unavailable. The new manifest names chunks of its own; the tail is
// the same for all layouts, and an entry says when a layout's manifest was replaced.
//
// So a release and the one before it may serve one table, each from its own manifest,
// and an upgrade can be rolled back: the earlier release goes on from its manifest and
// the tail. A manifest that nobody has put for 14 days, and that the release's own one
// has replaced for as long, is deleted by a job, and its chunks are freed. A change
// that a program of the earlier release indexes meanwhile lacks the new columns until
// the record changes again, or commerce reindex; that should follow the last such
// program. The tail has no layout: a new kind of entry is first read, and written only
// by the release after.
//
// # Fields of organizations
//
// An organization declares keys of its records, each with a type, and gets a number for
// each, never twice. Documents have the values in one column, under these numbers, so that
// no layout and no schema depends on an organization. The manifest says up to which
// number all documents have the values; a query that uses a later one is Unavailable.
//
// A list that lacks a field is rebuilt by a job. The indexer keeps fields for a minute,
// so the job waits until every indexer has the new ones: the rebuild takes the end of the
// tail only then, and no entry behind it lacks their values. A rebuild for another reason
// counts the fields that are known as long by then. The request that declares a
// field stores it first and requests the job then; if it dies in between, any later job
// of the list, or whoever looks at the fields, makes up for that.
//
// # Alternatives that lost
//
// A manifest that holds the recent changes itself is written whole with each of
// them, which costs a write unit for each KB that it holds. Replaced
// chunks could be deleted or made to expire, but either costs as much as
// writing them, so later chunks overwrite them. Counting documents as they come
// and go would be cheap and wrong, since changes come twice; so partitions are
// counted from their segments.
package index
