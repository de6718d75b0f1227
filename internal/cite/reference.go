package cite

import (
	"log/slog"
	"math"
	"slices"
)

// The kinds of a Source.
const (
	KindWeb       = "web"
	KindFile      = "file"
	KindKnowledge = "knowledge"
)

// The ways in which a web source is known.
const (
	EvidencePage    = "page"    // it was opened
	EvidenceSnippet = "snippet" // only the description of a search result
)

// Source is something that can be cited: a page, a search result, a file, a piece of knowledge.
type Source struct {
	URL      string
	Title    string // the URL if empty
	DateTime string // when it was published; "" = unknown
	Kind     string // "" = KindWeb
	Evidence string // how a web source is known
	FileID   string
	ChunkID  string // a file's chunk
	Page     int    // a file's page, from 1; 0 = none

	// Chunks are what can be quoted, in the order of the text. Only their Text is read.
	Chunks []Chunk
	// Parts say where in a file each of Chunks is. One without a part is at ChunkID and Page.
	Parts []Part
}

// Part is a place in a file.
type Part struct {
	ChunkID string
	Page    int // from 1; 0 = none
}

// Add adds what can be quoted of another view of the same source.
func (s *Source) Add(more *Source) {
	known := make(map[string]bool, len(s.Chunks))
	for _, c := range s.Chunks {
		known[c.Text] = true
	}
	chunks, parts := slices.Clip(s.Chunks), slices.Clip(s.Parts)
	for len(parts) < len(chunks) {
		parts = append(parts, s.part(len(parts)))
	}
	for i, c := range more.Chunks {
		if !known[c.Text] {
			known[c.Text] = true
			chunks, parts = append(chunks, c), append(parts, more.part(i))
		}
	}
	s.Chunks, s.Parts = chunks, parts
}

// part is the place of a chunk of the source.
func (s *Source) part(chunk int) Part {
	if chunk < len(s.Parts) {
		return s.Parts[chunk]
	}
	return Part{s.ChunkID, s.Page}
}

func (s *Source) title() string {
	if s.Title == "" {
		return s.URL
	}
	return s.Title
}

// Reference is the source of what the text before the mark [^Marker] says.
type Reference struct {
	ExactQuote     string  `json:"exactQuote"` // literally part of the source
	URL            string  `json:"url"`
	Title          string  `json:"title"`
	DateTime       string  `json:"dateTime,omitempty"`
	RelevanceScore float64 `json:"relevanceScore,omitempty"` // at most 1; of words, if there were no vectors
	AnswerChunk    string  `json:"answerChunk,omitempty"`    // the line or sentence with the mark, the first one of several
	// AnswerChunkPosition is where AnswerChunk is in the answer without marks, in code points.
	AnswerChunkPosition *Span  `json:"answerChunkPosition,omitempty"`
	Kind                string `json:"kind"`
	Marker              int    `json:"marker"`
	Evidence            string `json:"evidence,omitempty"`
	FileID              string `json:"fileId,omitempty"`
	ChunkID             string `json:"chunkId,omitempty"`
	Page                int    `json:"page,omitempty"`
	Auto                bool   `json:"auto,omitempty"` // the mark was added, not written by the model
	Gone                bool   `json:"gone,omitempty"` // the file was deleted since, or the user may not read it any more

	// AnswerChunkPosition in the other units.
	AnswerBytes, AnswerUnits Span `json:"-"`
}

// Cited is an answer with marks. References are in the order of their markers: 1, 2, 3, …
type Cited struct {
	Answer     string
	References []Reference
	Relevance  Relevance // set by BuildReferences
}

// Relevance tells how near the sentences of an answer and those of its sources are: cosines, or shares of
// words in common. It is for the log.
type Relevance struct {
	Min, Max, Mean float64
	Count          int
}

func (r *Relevance) add(score float64) {
	if r.Count == 0 {
		r.Min, r.Max = score, score
	}
	r.Min, r.Max = min(r.Min, score), max(r.Max, score)
	r.Mean += score
	r.Count++
}

// finish makes a mean of the sum.
func (r *Relevance) finish() { r.Mean /= float64(max(r.Count, 1)) }

// LogValue has the numbers in short.
func (r Relevance) LogValue() slog.Value {
	short := func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
	return slog.GroupValue(slog.Float64("min", short(r.Min)), slog.Float64("max", short(r.Max)), slog.Float64("mean", short(r.Mean)), slog.Int("count", r.Count))
}

// newReference refers to a quote from a chunk of s. A source that is a file is addressed down to
// that chunk.
func newReference(s *Source, chunk int, quote string, score float64, answer Chunk) Reference {
	part := s.part(chunk)
	ref := Reference{
		ExactQuote: quote, URL: s.URL, Title: s.title(), DateTime: s.DateTime, RelevanceScore: score,
		AnswerChunk: answer.Text, AnswerChunkPosition: &answer.Points, AnswerBytes: answer.Bytes, AnswerUnits: answer.Units,
		Kind: s.Kind, Evidence: s.Evidence, FileID: s.FileID, ChunkID: part.ChunkID, Page: part.Page,
	}
	if part.ChunkID != "" {
		ref.URL += "#chunk=" + part.ChunkID
	}
	if ref.Kind == "" {
		ref.Kind = KindWeb
	}
	return ref
}
