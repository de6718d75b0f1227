// Package index finds rows of memory and knowledge: by words (BM25 over stems and CJK bigrams,
// with the neighbours of a row) and by vectors (chromem-go, in memory). One Index holds the
// rows of one owner; a Cache loads indexes on first use, updates them to the owner's version,
// and drops the least recently used.
//
// Rows are the truth: an index can be dropped at any time. Terms makes the terms of rows and
// queries; Index.View ranks.
package index
