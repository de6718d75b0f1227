package knowledge

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/fair"
	"nodest/internal/fault"
	"nodest/internal/feedback"
	"nodest/internal/op"
	"nodest/knowledge/search"
	"nodest/llm"
	"nodest/llm/offline"
)

// longestQuery is how much of a question is used, in code points.
const longestQuery = 8000

// Search ranks the chunks of the files that the user may read.
//
// Errors: NotFound if one of the knowledge bases is not the user's to read; Invalid.
func (s *Service) Search(ctx context.Context, userID string, in SearchRequest) (*SearchResult, error) {
	if in.TopK == 0 {
		in.TopK = 15
	}
	switch {
	case strings.TrimSpace(in.Query) == "":
		return nil, fault.InvalidField("query", "required", "required: what to look for")
	case in.TopK < 1 || in.TopK > 100:
		return nil, fault.InvalidField("topK", "range", "must be from 1 to 100")
	case in.Mode != "" && in.Mode != search.Hybrid && in.Mode != search.Lexical && in.Mode != search.Vector:
		return nil, fault.InvalidField("mode", "enum", "must be %s, %s or %s", search.Hybrid, search.Lexical, search.Vector)
	}
	return s.SearchIn(ctx, userID, Scope{
		BaseIDs: in.BaseIDs, FilesOnly: in.FileOnly, FileIDs: in.FileIDs, Types: in.Types, Folder: in.Folder, After: in.After,
	}, in)
}

// SearchIn is Search in the files of a scope; of the request it reads the question and how to
// rank, without checks. A scope whose index is larger than the memory for it takes as long as
// reading it; a search that ctx ends fails, and does not return a part.
func (s *Service) SearchIn(ctx context.Context, userID string, scope Scope, in SearchRequest) (*SearchResult, error) {
	f := &finder{s: s, userID: userID, in: in, out: &SearchResult{}}
	if err := f.look(ctx, scope); err != nil {
		return nil, err
	}
	if len(f.refs) == 0 {
		return f.out, nil
	}
	f.ask(ctx)
	found, err := f.rank(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.reorder(ctx, found); err != nil {
		return nil, err
	}
	return f.out, f.answer(ctx, found)
}

// VectorOf returns the vector that SearchIn searches a scope by for a question; nil = words alone
// are searched.
func (s *Service) VectorOf(ctx context.Context, userID string, scope Scope, question string) ([]float32, error) {
	f := &finder{s: s, userID: userID, in: SearchRequest{Query: question}, out: &SearchResult{}}
	if err := f.look(ctx, scope); err != nil {
		return nil, err
	}
	f.ask(ctx)
	return f.asked, nil
}

// finder is one search.
type finder struct {
	s      *Service
	userID string
	in     SearchRequest
	out    *SearchResult

	refs  []FileRef // the files that are searched
	model string    // whose vectors are searched; "" = none
	asked []float32 // vector of the question; nil = none
	known map[search.Ref]*StoredChunk
}

// look finds the files, fresh for each search, and the model that most of them have vectors of.
func (f *finder) look(ctx context.Context, scope Scope) error {
	return f.s.store.View(ctx, f.userID, func(tx Tx) error {
		refs, err := tx.Allowed(scope)
		if err != nil {
			return err
		}
		f.refs, f.out.Pending = nil, nil
		for _, r := range refs {
			switch {
			case r.Edition > 0:
				f.refs = append(f.refs, r)
			case r.State != Failed:
				f.out.Pending = append(f.out.Pending, PendingFile{r.ID, r.Name, r.State})
			}
		}
		f.model, err = f.searched(tx)
		return err
	})
}

// searched returns the active model of the owner with most of the files.
func (f *finder) searched(tx Tx) (string, error) {
	files := map[string]int{}
	for owner, places := range byOwner(f.refs) {
		ids := make([]string, len(places))
		for n, i := range places {
			ids[n] = f.refs[i].ID
		}
		model, err := tx.ActiveModel(owner, ids)
		if err != nil {
			return "", err
		}
		if model != "" {
			files[model] += len(places)
		}
	}
	best := ""
	for model, n := range files {
		if best == "" || n > files[best] || n == files[best] && model < best {
			best = model
		}
	}
	return best, nil
}

// ask embeds the question; without a vector it is searched by words.
func (f *finder) ask(ctx context.Context) {
	vectors := f.in.Mode != search.Lexical && f.model != ""
	if vectors {
		f.asked = f.s.queryVector(ctx, f.userID, f.model, f.text())
	}
	if f.asked == nil && (vectors || f.in.Mode == search.Vector) {
		f.out.Degraded = append(f.out.Degraded, "vector")
		f.in.Mode = search.Lexical
	}
}

// leastOfSearch is what a search counts at least, in bytes: so many run at once as the machine can
// work on, and one more of a user who runs none.
func leastOfSearch(p Pipeline) int64 {
	return int64(p.CacheBytes / max(2, runtime.GOMAXPROCS(0)))
}

// turnWait is how long a search, or a question, waits behind others.
const turnWait = 10 * time.Second

// turn waits for the user's turn at one of its gates.
func (e *engine) turn(ctx context.Context, g *fair.Gate, userID string, weight int64) (leave func(), err error) {
	crowded := fault.New(fault.RateLimited, "too many searches of documents at once").After(time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, e.turnWait, crowded)
	defer cancel()
	return g.Enter(ctx, userID, weight, true)
}

// rank searches when there is memory for it.
func (f *finder) rank(ctx context.Context) (*search.Result, error) {
	lib := f.s.library(f.userID, f.refs, f.model, len(f.asked))
	leave, err := f.s.engine.turn(ctx, f.s.engine.searches, f.userID, lib.weight())
	if err != nil {
		return nil, err
	}
	defer leave()
	return search.Search(ctx, lib, f.query())
}

// text is the question as it is used.
func (f *finder) text() string {
	return op.Truncate(norm.NFKC.String(strings.TrimSpace(f.in.Query)), longestQuery)
}

func embedQuery(ctx context.Context, e llm.Embedder, text string) []float32 {
	found, err := e.Embed(ctx, llm.Query, []string{text})
	if err != nil || len(found.Vectors) != 1 {
		return nil
	}
	return found.Vectors[0]
}

func (f *finder) query() search.Query {
	q := search.Query{
		Text: f.in.Query, More: f.in.More, Vector: f.asked, Mode: f.in.Mode, TopK: f.in.TopK,
		MinSimilarity: f.s.opts.MinSimilarity, PerFile: f.in.PerFile,
	}
	if f.s.opts.Rerank != nil {
		q.TopK = max(f.topK(), mostReranked)
	}
	if f.model == offline.EmbeddingModel {
		q.VectorWeight, q.MinSimilarity = search.SpellingWeight, max(q.MinSimilarity, search.SpellingSimilarity)
	}
	if !f.s.opts.NoRerank {
		q.Texts = f.passages
	}
	if !f.in.NoFeedback {
		q.Known = f.judged
	}
	return q
}

// judged is what evaluations say of chunks: search.Query.Known.
func (f *finder) judged(ctx context.Context, refs []search.Ref) ([]search.Known, error) {
	ids := make([]string, len(refs))
	for i, r := range refs {
		ids[i] = f.idOf(r)
	}
	votes, err := op.Read(ctx, f.s.store, f.userID, func(tx Tx) (map[string][]feedback.Vote, error) {
		return tx.Feedback.Votes(f.in.CharacterID, feedback.Chunk, ids...)
	})
	now, known := time.Now(), make([]search.Known, len(refs))
	for i, id := range ids {
		known[i] = search.Known{Factor: feedback.Factor(votes[id], now), Judged: len(votes[id]) > 0}
	}
	return known, err
}

// idOf names a chunk.
func (f *finder) idOf(r search.Ref) string {
	file := f.refs[r.File]
	return ChunkID{file.ID, file.Edition, r.Chunk}.String()
}

// read reads chunks that were not read yet, with few queries.
func (f *finder) read(ctx context.Context, refs []search.Ref) error {
	if f.known == nil {
		f.known = map[search.Ref]*StoredChunk{}
	}
	owners := map[string][]ChunkID{}
	at := map[ChunkID]search.Ref{}
	for _, r := range refs {
		if file := f.refs[r.File]; f.known[r] == nil {
			id := ChunkID{file.ID, file.Edition, r.Chunk}
			owners[file.OwnerID], at[id] = append(owners[file.OwnerID], id), r
		}
	}
	if len(owners) == 0 {
		return nil
	}
	return f.s.store.View(ctx, f.userID, func(tx Tx) error {
		for owner, ids := range owners {
			chunks, err := tx.Passages(owner, ids)
			if err != nil {
				return err
			}
			for _, c := range chunks {
				f.known[at[c.ID()]] = &c
			}
		}
		return nil
	})
}

// passages are the texts of chunks for reranking: search.Query.Texts.
func (f *finder) passages(ctx context.Context, refs []search.Ref) ([]search.Passage, error) {
	if err := f.read(ctx, refs); err != nil {
		return nil, err
	}
	texts := make([]search.Passage, len(refs))
	for i, r := range refs {
		if c := f.known[r]; c != nil {
			texts[i] = search.Passage{Name: f.refs[r.File].Name, Heading: c.Heading, Context: c.Context, Text: c.Text}
		}
	}
	return texts, nil
}

// answer turns hits into chunks and files. A chunk that was removed meanwhile is left out.
func (f *finder) answer(ctx context.Context, found *search.Result) error {
	refs := make([]search.Ref, len(found.Hits))
	for i, h := range found.Hits {
		refs[i] = h.Ref
	}
	if err := f.read(ctx, refs); err != nil {
		return err
	}
	for _, h := range found.Hits {
		c := f.known[h.Ref]
		if c == nil {
			continue
		}
		c.Embedded = h.Vector > 0
		f.out.Chunks = append(f.out.Chunks, FoundChunk{Chunk: *c.chunk(), Similarity: h.Similarity, Lexical: h.Lexical, Vector: h.Vector, Factor: h.Factor})
	}
	for _, hit := range found.Files {
		r := f.refs[hit.File]
		f.out.Files = append(f.out.Files, FoundFile{File: r.file(f.userID), BaseName: r.BaseName, Relevance: hit.Relevance})
	}
	f.out.Truncated, f.out.Dropped = found.Truncated, found.Dropped
	f.out.Degraded = append(f.out.Degraded, found.Degraded...)
	slices.Sort(f.out.Degraded)
	f.out.Degraded = slices.Compact(f.out.Degraded)
	return nil
}

// file is what a search knows of a file.
func (r *FileRef) file(userID string) *File {
	f := &File{
		ID: r.ID, OwnerID: r.OwnerID, Access: AccessRead, Name: r.Name, Original: Original{ContentType: r.ContentType},
		State: r.State, Extract: Extract{Chars: r.Chars, Chunks: r.Chunks}, Edition: r.Edition, UpdatedAt: r.UpdatedAt,
	}
	if r.OwnerID == userID {
		f.Access = AccessOwner
	}
	return f
}

// chunk is the chunk on the wire.
func (c *StoredChunk) chunk() *Chunk {
	return &Chunk{
		ID: c.ID().String(), FileID: c.FileID, Index: c.Index, Start: c.Start, End: c.End,
		Text: c.Text, Heading: c.Heading, Page: c.Page, Kind: cmp.Or(c.Kind, "text"), Embedded: c.Embedded,
	}
}
