package kb

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/bench/figure"
	"nodest/internal/index"
	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
	"nodest/knowledge/search"
	"nodest/llm"
	"nodest/llm/offline"
)

// question is a question with the passage that answers it.
type question struct {
	ID           string `json:"id"`
	Lang         string `json:"lang"`
	Question     string `json:"question"`
	Answerable   bool   `json:"answerable"`
	File         string `json:"file"`
	Quote        string `json:"quote"`
	CrossLingual bool   `json:"cross_lingual"`
}

func readQuestions(name string) (all []question, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("%s, question %d: %w", name, len(all)+1, err)
		}
		all = append(all, q)
	}
	return all, lines.Err()
}

// library is a folder of documents, ready to be searched.
type library struct {
	files    search.Files
	byName   map[string]int
	types    []string
	parsed   map[string]parsed
	made     map[string][]float32 // vectors by the text that was embedded
	chunks   [][]chunk.Chunk
	bare     map[search.Ref]string // texts as passages are compared
	ingest   ingestion
	embedder llm.Embedder
}

// readLibrary parses, cuts and embeds what is in a folder.
func readLibrary(ctx context.Context, folder string, embedder llm.Embedder) (*library, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	l := &library{byName: map[string]int{}, parsed: map[string]parsed{}, made: map[string][]float32{}, bare: map[search.Ref]string{}, ingest: ingestion{Failed: map[string]int{}}, embedder: embedder}
	var took spent
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		if err := l.read(ctx, folder, e.Name(), &took); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	if len(l.files) == 0 {
		return nil, fmt.Errorf("no documents in %s", folder)
	}
	i, all := &l.ingest, (took.parse + took.index + took.embed).Seconds()
	i.ParseMs, i.IndexMs, i.EmbedMs = figure.Millis(took.parse), figure.Millis(took.index), figure.Millis(took.embed)
	i.FilesPerSecond, i.MBPerSecond, i.ChunksPerSecond = float64(i.Files)/all, float64(took.bytes)/1e6/all, float64(i.Chunks)/all
	i.SegmentBytes, i.StoredBytes = took.memory/max(1, i.Chunks), took.stored/max(1, i.Chunks)
	return l, nil
}

// parsed is what parsing a document gave.
type parsed struct {
	data []byte // the file's bytes
	doc  *parse.Document
	err  error
}

// spent adds up what reading documents takes.
type spent struct {
	parse, index, embed   time.Duration
	bytes, memory, stored int
}

func (l *library) read(ctx context.Context, folder, name string, took *spent) error {
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	l.ingest.Files++
	took.bytes += len(data)
	begun := time.Now()
	doc, err := parse.Parse(ctx, parse.Input{Name: name, Data: data, CacheDir: filepath.Join(os.TempDir(), "nodest-pdfium")})
	took.parse += time.Since(begun)
	l.parsed[name] = parsed{data, doc, err}
	if bad := (*parse.Error)(nil); errors.As(err, &bad) {
		l.ingest.Failed[bad.Code]++
		return nil
	}
	if err != nil {
		return err
	}
	begun = time.Now()
	chunks := chunk.Cut(doc, chunk.Default)
	stored, _, err := search.Encode(ctx, name, doc.Text, chunks)
	if err != nil {
		return err
	}
	segment, err := search.Decode(stored)
	if err != nil {
		return err
	}
	took.index += time.Since(begun)
	begun = time.Now()
	packed, err := l.embed(ctx, name, chunks)
	if err != nil {
		return err
	}
	took.embed += time.Since(begun)
	took.memory, took.stored = took.memory+segment.Bytes(), took.stored+len(stored)
	l.ingest.Chunks += len(chunks)
	l.byName[name] = len(l.files)
	l.files = append(l.files, search.File{ID: name, Segment: segment, Vectors: search.NewVectors(packed)})
	l.types, l.chunks = append(l.types, doc.Type), append(l.chunks, chunks)
	return nil
}

// embed embeds chunks as the product does: with the name of their file and their heading.
func (l *library) embed(ctx context.Context, name string, chunks []chunk.Chunk) ([]index.Packed, error) {
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = name
		if c.Heading != "" {
			texts[i] += " › " + c.Heading
		}
		texts[i] += "\n" + c.Text
	}
	packed := make([]index.Packed, 0, len(chunks))
	for some := range slices.Chunk(texts, embeddedAtOnce) {
		found, err := l.embedder.Embed(ctx, llm.Passage, some)
		if err != nil {
			return nil, err
		}
		for i, v := range found.Vectors {
			packed = append(packed, index.Pack(v))
			l.made[some[i]] = v
		}
	}
	return packed, nil
}

// embeddedAtOnce is how many texts one call embeds.
const embeddedAtOnce = 50

func (l *library) typeOf(file string) string {
	if at, ok := l.byName[file]; ok {
		return l.types[at]
	}
	return "not parsed"
}

// passages are the texts of chunks.
func (l *library) passages(_ context.Context, refs []search.Ref) ([]search.Passage, error) {
	all := make([]search.Passage, len(refs))
	for i, r := range refs {
		c := &l.chunks[r.File][r.Chunk]
		all[i] = search.Passage{Name: l.files[r.File].ID, Heading: c.Heading, Text: c.Text}
	}
	return all, nil
}

// gold returns the chunks with the passage that answers a question.
func (l *library) gold(q *question) map[search.Ref]bool {
	gold := map[search.Ref]bool{}
	file, ok := l.byName[q.File]
	if !ok {
		return gold
	}
	quote := []rune(bareText(q.Quote))
	for i, c := range l.chunks[file] {
		ref := search.Ref{File: file, Chunk: i}
		text, ok := l.bare[ref]
		if !ok {
			text = bareText(c.Text)
			l.bare[ref] = text
		}
		if hasMost(text, quote) {
			gold[ref] = true
		}
	}
	return gold
}

// bareText is a text as passages are compared: NFKC, straight quotes, lower case, without soft
// hyphens and blanks.
func bareText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || r == '\u00ad':
			return -1
		case r == '“' || r == '”':
			return '"'
		case r == '‘' || r == '’':
			return '\''
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(text))
}

// hasMost reports whether a text has a quote, or 60 % of one that crosses its border.
func hasMost(text string, quote []rune) bool {
	if strings.Contains(text, string(quote)) {
		return true
	}
	for n := len(quote) - 1; 10*n >= 6*len(quote) && n > 0; n-- {
		if strings.HasSuffix(text, string(quote[:n])) || strings.HasPrefix(text, string(quote[len(quote)-n:])) {
			return true
		}
	}
	return false
}

// ranks are the ranks of a question's file and passage, from 1; 0 = not found.
type ranks struct{ file, quote int }

// depth is how many chunks a question is answered with.
const depth = 50

// ask searches for a question and returns how long that took.
func (l *library) ask(ctx context.Context, q *question, gold map[search.Ref]bool, o Options) (rank ranks, took time.Duration, err error) {
	begun := time.Now()
	asked := search.Query{Text: q.Question, Mode: o.Mode, TopK: depth}
	if _, ok := l.embedder.(offline.Embedder); ok { // as the product does
		asked.VectorWeight, asked.MinSimilarity = search.SpellingWeight, search.SpellingSimilarity
	}
	if o.Mode != search.Lexical {
		v, err := l.embedder.Embed(ctx, llm.Query, []string{q.Question})
		if err != nil {
			return rank, 0, err
		}
		asked.Vector = v.Vectors[0]
	}
	if o.Rerank == rerankLocal {
		asked.Texts = l.passages
	}
	r, err := search.Search(ctx, l.files, asked)
	if err != nil {
		return rank, 0, err
	}
	took = time.Since(begun)
	for i, f := range r.Files {
		if l.files[f.File].ID == q.File {
			rank.file = i + 1
		}
	}
	for i, h := range r.Hits {
		if gold[h.Ref] {
			rank.quote = i + 1
			break
		}
	}
	return rank, took, nil
}
