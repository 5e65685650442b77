// Package indexing keeps the index that answers lists: exact, filtered,
// searched and ordered lists, which the table itself cannot give, for what
// they cost in reads and writes of it. It promises that a list shows every
// change about a second after the indexer saw it, whatever came twice, late or
// out of order; that it never shows another organization's documents, nor
// anything when it cannot tell; and that what is damaged is noticed and made
// again from the table. What a query means, and how segments look inside, is
// left to package index.
//
// # What lies where
//
// Every organization has an index for each list. Under its key are
//
//   - the tail: recent changes in the order in which they were appended,
//     one entry for what one batch of the stream brought;
//   - the manifest: which segments there are, and how far into the tail they
//     reach;
//   - the job: whether work is wanted, and who does it.
//
// Segments are immutable and lie in chunks under keys of their own. A list
// that grows with time is divided into parts, by month or by day, each with
// segments of its own. A part that has been quiet is sealed: the manifest has
// the exact number of its documents and the range of their times.
//
// # Who does what
//
// The [Writer] appends to tails. It costs one small write for a batch, however
// many documents there are in the index. It wants a job when a tail has grown.
//
// The [Maintainer] does jobs: it folds the tail into segments, merges segments
// of one tier into one of the next, counts quiet parts, and puts the manifest
// that results on the condition that it is still the one that it read. A job is
// bounded, and may die or run twice: chunks count only once a manifest names
// them. A rebuild makes segments from the table instead, over many jobs.
//
// The [Views] answer queries. A view follows its list's tail, by one read a
// second, and so needs no manifest any more for what it has loaded: merges go
// on beside it unseen. It loads a part when a query needs it and the summary
// of a sealed part does not tell enough.
//
// # Why not otherwise
//
// A manifest that holds the recent changes itself is written anew, as a whole,
// with each of them; the benchmark beside [dynamo.IndexStore.AppendTail] shows what
// that costs. Replaced chunks could be deleted, or marked to expire, but
// either costs as much as writing them: later chunks are written over them
// instead. Counting documents as they come and go would be cheap and wrong,
// for changes come twice; so parts are counted from their segments.
package indexing
