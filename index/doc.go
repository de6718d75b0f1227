// Package index finds rows of memory and knowledge again: by words (BM25 over
// stems and CJK bigrams, with the neighbours of a row in view) and by vectors
// (chromem-go, in memory). One Index holds the rows of one owner; a Cache loads
// indexes on first use, brings them up to the owner's version, and forgets the
// ones used longest ago.
//
// Rows are the truth: an index can be thrown away at any time. Analyser makes the
// terms that are stored with a row and those of a query; Index.View ranks.
//
// It implements the memory specification 2.4 and 2.5 as far as neither knows what a
// memory is.
package index
