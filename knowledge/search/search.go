// Package search ranks the chunks of documents for a question: by words and by vectors. It
// does no I/O. Each file has a segment of its own, so that a search reads exactly the files
// that the asking user may read, and word frequencies are counted inside that set.
package search

import (
	"context"

	"nodest/index"
	"nodest/knowledge/chunk"
)

// Modes of a search.
const (
	Hybrid  = "hybrid"
	Lexical = "lexical"
	Vector  = "vector"
)

// Segment is the index of one edition of a file for search by words. It is immutable and safe
// for concurrent use.
type Segment struct{ todo int }

// Encode builds the segment of a file from its text and chunks, as it is stored.
func Encode(name, text string, chunks []chunk.Chunk) []byte { panic("not yet") }

// Decode reads what Encode wrote; an error means that it must be built again.
func Decode(data []byte) (*Segment, error) { panic("not yet") }

// Bytes estimates the memory that a segment takes.
func (s *Segment) Bytes() int { panic("not yet") }

// Chunks returns how many chunks the file has.
func (s *Segment) Chunks() int { panic("not yet") }

// File is a file to search.
type File struct {
	ID      string
	Segment *Segment
	Vectors []index.Packed // of its chunks in one space, by their index; nil where one is missing
}

// Query is a question. The zero value of everything but Text is usable.
type Query struct {
	Text   string    // at most 8,000 code points are used
	More   []string  // further wordings; they only add
	Vector []float32 // of Text, in the space of the files' vectors; nil = words only
	Mode   string    // "" = Hybrid
	TopK   int       // chunks; 0 = 15

	// MinSimilarity drops hits that only their vector found and whose cosine is below; 0 = off.
	MinSimilarity float64
	// PerFile bounds the chunks of one file unless fewer than three files match; 0 = no bound.
	PerFile int
	// Rerank orders the best 30 by what their texts say. Texts returns the texts of chunks, and
	// their headings; nil = no reranking.
	Texts func(ctx context.Context, refs []Ref) ([]Passage, error)
}

// Ref names a chunk by its file's place in the list that was searched, and its index.
type Ref struct{ File, Chunk int }

// Passage is the text of a chunk.
type Passage struct{ Name, Heading, Text string }

// Hit is a chunk that was found.
type Hit struct {
	Ref
	Similarity float64 // cosine; of a search by words BM25 divided by the best of the query
	Lexical    int     // rank by words, from 1; 0 = not found by words
	Vector     int     // likewise by vectors
}

// FileHit is a file that was found, with the mean of its best three chunks.
type FileHit struct {
	File      int
	Relevance float64
}

// Result is what was found, best first.
type Result struct {
	Hits      []Hit
	Files     []FileHit
	Dropped   int      // hits below MinSimilarity
	Truncated bool     // the question was longer than what is used
	Degraded  []string // legs that failed: "rerank"
}

// Search ranks the chunks of files.
func Search(ctx context.Context, files []File, q Query) (*Result, error) { panic("not yet") }
