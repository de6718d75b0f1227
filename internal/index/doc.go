// Package index is the search engine of memories and documents: terms of texts, BM25, vectors, and
// segments, which hold the rows of an owner in memory (Builder) or as they are stored (docs/disk.md). An
// Index searches the segments of one memory, the newest of which is in memory, with chromem-go for its
// vectors; a Cache loads indexes on first use, and drops the least recently used. A Question scores the
// chunks of many documents, each a segment of its own (Document).
//
// Rows are the truth: an index can be dropped at any time. The package must not know whose rows they
// are, nor what a ranking makes of their scores.
package index
