package shelf

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"nodest/internal/cite"
	"nodest/internal/markup"
	"nodest/internal/op"
	"nodest/knowledge"
)

// excerptsPerFile bounds the excerpts of one file in the answer of a search, unless few files
// match.
const excerptsPerFile = 5

// Shown is the answer of a tool.
type Shown struct {
	Query    string      // the words that were searched for
	Hits     int         // number of hits of a search
	Files    []ShownFile // best first
	Chunks   []string    // ids of the chunks in it
	Degraded []string    // kinds of search that could not be done

	// Text writes the answer in at most room code points, and numbers its sources.
	Text func(room int, number func(cite.Source) int) string
}

// ShownFile is a file in the answer of a tool.
type ShownFile struct {
	ID        string
	Name      string
	Relevance float64 // its relevance in a search
}

// Search carries out searchKnowledgeBase: arguments is a JSON object. Numbers out of range are
// brought into it.
//
// Errors: Invalid for an argument of the wrong type; NotFound for a knowledge base that the
// character does not have.
func (sh *Shelf) Search(ctx context.Context, round int, arguments json.RawMessage) (*Shown, error) {
	var in struct {
		Query            string   `json:"query"`
		TopK             float64  `json:"topK"`
		KnowledgeBaseIDs []string `json:"knowledgeBaseIds"`
	}
	if err := op.DecodeLenient("arguments", arguments, &in); err != nil {
		return nil, err
	}
	topK := usualTopK
	if in.TopK != 0 {
		topK = int(max(minTopK, min(maxTopK, in.TopK)))
	}
	found, err := sh.find(ctx, in.Query, in.KnowledgeBaseIDs, topK)
	if err != nil {
		return nil, err
	}
	shown := &Shown{Query: in.Query, Hits: len(found.Chunks), Files: filesOf(found), Degraded: found.Degraded}
	for i := range found.Chunks {
		shown.Chunks = append(shown.Chunks, found.Chunks[i].ID)
	}
	shown.Text = func(room int, number func(cite.Source) int) string {
		return sh.results(found, in.Query, round, room, number)
	}
	return shown, nil
}

// find searches what the character has now, or those of its knowledge bases.
func (sh *Shelf) find(ctx context.Context, query string, baseIDs []string, topK int) (*knowledge.SearchResult, error) {
	return sh.svc.SearchIn(ctx, sh.userID, sh.scope(baseIDs), knowledge.SearchRequest{Query: query, TopK: topK, PerFile: excerptsPerFile, CharacterID: sh.characterID, NoFeedback: !sh.feedback})
}

func (sh *Shelf) scope(baseIDs []string) knowledge.Scope {
	scope := knowledge.Scope{CharacterID: sh.characterID, BaseIDs: baseIDs}
	if len(baseIDs) == 0 {
		scope.BaseIDs, scope.FilesOnly = nil, slices.ContainsFunc(sh.files, func(d shelved) bool { return d.demoted })
	}
	return scope
}

// Vector returns the vector that a query is searched by; nil = words alone are searched.
func (sh *Shelf) Vector(ctx context.Context, query string) ([]float32, error) {
	return sh.svc.VectorOf(ctx, sh.userID, sh.scope(nil), query)
}

// results is the answer of a search, with as many excerpts as there is room for.
func (sh *Shelf) results(found *knowledge.SearchResult, query string, round, room int, number func(cite.Source) int) string {
	excerpts := len(found.Chunks)
	for {
		var m markup.Builder
		sh.writeResults(&m, found, query, round, excerpts, number)
		text := m.String()
		if excerpts == 0 || len([]rune(text)) <= room {
			return text
		}
		excerpts = min(excerpts-1, excerpts*3/4)
	}
}

func (sh *Shelf) writeResults(m *markup.Builder, found *knowledge.SearchResult, query string, round, excerpts int, number func(cite.Source) int) {
	attrs := []markup.Attr{markup.Str("query", query), markup.Num("totalCount", len(found.Files)), markup.Num("round", round)}
	for _, d := range found.Degraded {
		attrs = append(attrs, markup.Str("degraded", d))
		break // an element has an attribute once
	}
	const root = "knowledge_base_search_results"
	m.Open(root, attrs...)
	instruction := sh.words.found
	if len(found.Files) == 0 {
		instruction = sh.words.nothing
	}
	m.Text("instruction", instruction)
	best := map[string][]*knowledge.FoundChunk{}
	for i := range found.Chunks[:excerpts] {
		c := &found.Chunks[i]
		best[c.FileID] = append(best[c.FileID], c)
	}
	for _, f := range found.Files {
		if len(best[f.File.ID]) == 0 {
			continue
		}
		m.Open("file", markup.Str("id", f.File.ID), markup.Str("name", f.File.Name), markup.Str("type", f.File.ContentType),
			markup.Share("relevance", f.Relevance), markup.Str("knowledgeBase", f.BaseName))
		for _, c := range best[f.File.ID] {
			writeExcerpt(m, f.File, c, number)
		}
		m.Shut("file")
	}
	sh.writePending(m, found.Pending)
	m.Shut(root)
}

// writeExcerpt writes a chunk that was found.
func writeExcerpt(m *markup.Builder, f *knowledge.File, c *knowledge.FoundChunk, number func(cite.Source) int) {
	ref := number(cite.Source{
		Kind: cite.KindKnowledge, URL: knowledge.FileURL(f.ID), Title: f.Name, FileID: f.ID, ChunkID: c.ID, Page: c.Page,
		Chunks: []cite.Chunk{{Text: c.Text}}, Parts: []cite.Part{{ChunkID: c.ID, Page: c.Page}},
	})
	attrs := []markup.Attr{markup.Num("ref", ref), markup.Str("id", c.ID), markup.Share("similarity", c.Similarity)}
	if c.Heading != "" {
		attrs = append(attrs, markup.Str("heading", c.Heading))
	}
	if c.Page > 0 {
		attrs = append(attrs, markup.Str("page", strconv.Itoa(c.Page)))
	}
	m.Text("chunk", c.Text, attrs...)
}

// maxPending bounds the list of files that cannot be searched yet.
const maxPending = 10

func (sh *Shelf) writePending(m *markup.Builder, files []knowledge.PendingFile) {
	if len(files) == 0 {
		return
	}
	m.Open("pending", markup.Str("note", sh.words.pending), markup.Num("files", len(files)))
	for _, p := range files[:min(len(files), maxPending)] {
		m.Empty("file", markup.Str("id", p.FileID), markup.Str("name", p.Name), markup.Str("state", p.State))
	}
	m.Shut("pending")
}

// injectedTopK is how many chunks are searched for a model without tools.
const injectedTopK = 8

// Inject searches once for a model that does not call tools; nil = nothing was found.
func (sh *Shelf) Inject(ctx context.Context, query string) (*Shown, error) {
	found, err := sh.find(ctx, query, nil, injectedTopK)
	if err != nil || len(found.Chunks) == 0 {
		return nil, err
	}
	pieces, err := sh.svc.Widen(ctx, sh.userID, knowledge.Scope{CharacterID: sh.characterID, FilesOnly: true}, found, knowledge.ExcerptRoom)
	if err != nil {
		return nil, err
	}
	shown := &Shown{Query: query, Hits: len(found.Chunks), Files: filesOf(found), Chunks: chunkIDsOf(pieces), Degraded: found.Degraded}
	shown.Text = func(room int, number func(cite.Source) int) string {
		var m markup.Builder
		m.Text("instruction", sh.words.injected)
		knowledge.WritePieces(&m, pieces, min(room, knowledge.ExcerptRoom), number)
		return m.String()
	}
	return shown, nil
}

func filesOf(found *knowledge.SearchResult) (files []ShownFile) {
	for _, f := range found.Files {
		files = append(files, ShownFile{f.File.ID, f.File.Name, f.Relevance})
	}
	return files
}

func chunkIDsOf(pieces []knowledge.Piece) (ids []string) {
	for _, p := range pieces {
		for i := range p.Chunks {
			ids = append(ids, p.Chunks[i].ID().String())
		}
	}
	return ids
}
