package api

import (
	"encoding/json"
	"maps"
	"slices"

	"nodest/internal/cite"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/knowledge/parse"
)

// pageOf is pages for a page that is returned by value.
func pageOf[T, W any](wire func(T) W) func(op.Page[T], error) (any, error) {
	return func(p op.Page[T], err error) (any, error) { return Pages(wire)(&p, err) }
}

// Queued is the answer to what is finished in the background. Known says that nothing is
// to be done: the object was there already, and REST answers 200.
type Queued struct {
	Body  any
	Known bool
}

// MarshalJSON implements json.Marshaler.
func (q Queued) MarshalJSON() ([]byte, error) { return json.Marshal(q.Body) }

var queuedOf = Result(func(f *knowledge.File) Queued {
	return Queued{Body: map[string]any{"file": knowledge.WireFile(f)}, Known: f.Duplicate}
})

type wireText struct {
	Edition int64           `json:"edition"`
	Title   string          `json:"title"`
	Text    string          `json:"text"`
	Offset  int             `json:"offset"`
	Total   int             `json:"total"`
	Outline []parse.Heading `json:"outline"`
	Pages   []parse.Page    `json:"pages"`
}

func wireTextOf(t *knowledge.Text) wireText {
	return wireText{t.Edition, t.Title, t.Text, t.Offset, t.Total, OrEmpty(t.Outline), OrEmpty(t.Pages)}
}

// wireChunk is a chunk without what only some lists have.
type wireChunk struct {
	ID      string `json:"id"`
	FileID  string `json:"fileId"`
	Index   int    `json:"index"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Text    string `json:"text"`
	Heading string `json:"heading"`
	Page    int    `json:"page,omitempty"`
	Kind    string `json:"kind"`
}

func wireChunkOf(c *knowledge.Chunk) wireChunk {
	return wireChunk{c.ID, c.FileID, c.Index, c.Start, c.End, c.Text, c.Heading, c.Page, c.Kind}
}

type wireFileChunk struct {
	wireChunk
	Embedded bool `json:"embedded"`
}

func wireFileChunkOf(c *knowledge.Chunk) wireFileChunk {
	return wireFileChunk{wireChunkOf(c), c.Embedded}
}

// wireBound is what a character knows.
type wireBound struct {
	Files []any `json:"files"`
	Bases []any `json:"knowledgeBases"`
}

func wireBoundOf(b *knowledge.Bound) wireBound {
	w := wireBound{[]any{}, []any{}}
	for i := range b.Files {
		w.Files = append(w.Files, knowledge.WireBoundFile(&b.Files[i]))
	}
	for i := range b.Bases {
		w.Bases = append(w.Bases, knowledge.WireBoundBase(&b.Bases[i]))
	}
	return w
}

type wireFoundFile struct {
	ID            string  `json:"id"`
	Name          string  `json:"name"`
	ContentType   string  `json:"contentType"`
	KnowledgeBase string  `json:"knowledgeBase"`
	Relevance     float64 `json:"relevance"`
}

type wireFoundChunk struct {
	wireChunk
	Similarity  float64 `json:"similarity"`
	LexicalRank int     `json:"lexicalRank,omitempty"`
	VectorRank  int     `json:"vectorRank,omitempty"`
	Factor      float64 `json:"factor"`
}

type wireSearched struct {
	Files     []wireFoundFile         `json:"files"`
	Chunks    []wireFoundChunk        `json:"chunks"`
	Pending   []knowledge.PendingFile `json:"pending"`
	Truncated bool                    `json:"truncated"`
	Dropped   int                     `json:"dropped"`
	Degraded  []string                `json:"degraded"`
}

func wireSearchedOf(r *knowledge.SearchResult) wireSearched {
	w := wireSearched{
		Files: []wireFoundFile{}, Chunks: []wireFoundChunk{}, Pending: OrEmpty(r.Pending),
		Truncated: r.Truncated, Dropped: r.Dropped, Degraded: OrEmpty(r.Degraded),
	}
	for _, f := range r.Files {
		w.Files = append(w.Files, wireFoundFile{f.File.ID, f.File.Name, f.File.ContentType, f.BaseName, f.Relevance})
	}
	for i := range r.Chunks {
		c := &r.Chunks[i]
		w.Chunks = append(w.Chunks, wireFoundChunk{wireChunkOf(&c.Chunk), c.Similarity, c.Lexical, c.Vector, c.Factor})
	}
	return w
}

type wireAnswer struct {
	Answer     string           `json:"answer"`
	References []cite.Reference `json:"references"`
	Model      string           `json:"model"`
	Offline    bool             `json:"offline"`
	Usage      json.RawMessage  `json:"usage,omitempty"`
}

func wireAnswerOf(a *knowledge.Answer) wireAnswer {
	return wireAnswer{a.Answer, OrEmpty(a.References), a.Model, a.Offline, a.Usage}
}

// unpacked is the answer to an archive; failed has the reasons by name.
type unpacked struct {
	Files  []any        `json:"files"`
	Failed []failedFile `json:"failed"`
}

type failedFile struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

func unpackedOf(files []*knowledge.File, failed map[string]string) unpacked {
	w := unpacked{[]any{}, []failedFile{}}
	for _, f := range files {
		w.Files = append(w.Files, knowledge.WireFile(f))
	}
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		w.Failed = append(w.Failed, failedFile{name, failed[name]})
	}
	return w
}
