// Package shelf has what a character can look up for one reply: the texts of its documents for
// the prompt, and two tools that search and read its knowledge bases.
package shelf

import (
	"context"
	"slices"
	"strings"
	"sync"

	"nodest/framework"
	"nodest/internal/cite"
	"nodest/internal/markup"
	"nodest/internal/op"
	"nodest/knowledge"
)

// Limits of the documents of a character in a prompt.
const (
	blockTokens = 16_000 // full texts together, and a quarter of the context
	shortText   = 600    // code points of a document that does not fit
	shortTitles = 40     // headings of it
	aboutLength = 300    // code points of what a knowledge base is said to contain
)

// Shelf is what a character can look up for one reply: the documents and knowledge bases that
// are bound to it and switched on. Every call checks again what the acting user may read. It
// is safe for concurrent use.
type Shelf struct {
	svc                 *knowledge.Service
	userID, characterID string
	words               words
	feedback            bool // evaluations move what is found
	files               []shelved
	bases               []knowledge.BoundBase

	mu   sync.Mutex
	left int // code points that may still be read
}

// shelved is a document whose text is in the prompt.
type shelved struct {
	knowledge.BoundFile
	edition *knowledge.Edition // nil = it has no text yet
	text    string
	chunks  []knowledge.StoredChunk // none of a demoted one
	demoted bool                    // too long: only its beginning is in the prompt, and the tools find the rest
}

// Room is how much a model reads.
type Room struct {
	Context   int    // tokens of request and reply
	Tokenizer string // counts them: framework.TokenizerFor

	NoFeedback bool // evaluations move nothing of what it finds
}

// Open reads what a character has. lang ("en" or "zh") is the language of the words around
// it. It returns nil for a character without any document.
//
// Errors: NotFound for the character.
func Open(ctx context.Context, svc *knowledge.Service, userID, characterID, lang string, room Room) (*Shelf, error) {
	sh := &Shelf{svc: svc, userID: userID, characterID: characterID, words: wordsOf(lang), feedback: !room.NoFeedback, left: readPerTurn}
	err := svc.View(ctx, userID, func(tx knowledge.Tx) error {
		bound, err := tx.Bound(characterID)
		if err != nil {
			return err
		}
		sh.files, sh.bases = nil, slices.DeleteFunc(bound.Bases, func(b knowledge.BoundBase) bool { return !b.Enabled })
		left := Room{Context: min(room.Context/4, blockTokens), Tokenizer: room.Tokenizer}
		for _, f := range bound.Files {
			if !f.Enabled {
				continue
			}
			d, err := shelve(svc, tx, f, &left)
			if err != nil {
				return err
			}
			sh.files = append(sh.files, *d)
		}
		return nil
	})
	if err != nil || len(sh.files)+len(sh.bases) == 0 {
		return nil, err
	}
	return sh, nil
}

// shelve reads the text of a document as far as there is room, and takes from it.
func shelve(svc *knowledge.Service, tx knowledge.Tx, f knowledge.BoundFile, room *Room) (*shelved, error) {
	d := &shelved{BoundFile: f}
	if f.Edition == 0 {
		return d, nil
	}
	var err error
	if d.edition, err = tx.EditionOf(f.OwnerID, f.ID, f.Edition); err != nil {
		return nil, err
	}
	const most = 8 // code points of a token; no text that is worth reading has more
	if d.edition.Chars <= most*room.Context {
		if d.text, err = tx.TextRange(f.OwnerID, f.ID, f.Edition, 0, -1); err != nil {
			return nil, err
		}
		if n := svc.CountTokens(&f, room.Tokenizer, d.text); n <= room.Context {
			room.Context -= n
			d.chunks, err = tx.ChunkRange(f.OwnerID, f.ID, f.Edition, "", 0, d.edition.Chunks)
			return d, err
		}
	}
	d.demoted = true
	d.text, err = tx.TextRange(f.OwnerID, f.ID, f.Edition, 0, shortText)
	return d, err
}

// Searchable reports whether the tools can find anything: there is a knowledge base with a
// file, or a document that is not in the prompt as a whole.
func (sh *Shelf) Searchable() bool {
	return slices.ContainsFunc(sh.bases, func(b knowledge.BoundBase) bool { return b.Files > 0 }) ||
		slices.ContainsFunc(sh.files, func(d shelved) bool { return d.demoted })
}

// About is what the knowledge bases are called and said to contain.
func (sh *Shelf) About() (texts []string) {
	for _, b := range sh.bases {
		texts = append(texts, b.Name, b.Description)
	}
	return texts
}

// Block is the part of the prompt that tells what the character has: the full texts of its
// documents, and the names of its knowledge bases. number gives a source its number.
func (sh *Shelf) Block(number func(cite.Source) int) []framework.KnowledgePart {
	fixed := func(write func(m *markup.Builder)) framework.KnowledgePart {
		var m markup.Builder
		write(&m)
		return framework.KnowledgePart{Text: strings.TrimSuffix(m.String(), "\n"), Fixed: true}
	}
	parts := []framework.KnowledgePart{fixed(func(m *markup.Builder) { m.Text("instruction", sh.instruction()) })}
	if len(sh.files) > 0 {
		parts = append(parts, fixed(func(m *markup.Builder) { m.Open("files", markup.Num("totalCount", len(sh.files))) }))
		for i := range sh.files {
			parts = append(parts, sh.files[i].part(number))
		}
		parts = append(parts, fixed(func(m *markup.Builder) { m.Shut("files") }))
	}
	if len(sh.bases) > 0 {
		parts = append(parts, fixed(func(m *markup.Builder) {
			m.Open("knowledge_bases", markup.Num("totalCount", len(sh.bases)))
			for _, b := range sh.bases {
				m.Empty("knowledge_base", markup.Str("id", b.ID), markup.Str("name", b.Name), markup.Str("description", op.Truncate(b.Description, aboutLength)),
					markup.Num("files", b.Files), markup.Str("languages", strings.Join(b.Languages, " ")))
			}
			m.Shut("knowledge_bases")
		}))
	}
	return parts
}

func (sh *Shelf) instruction() string {
	switch {
	case len(sh.bases) == 0:
		return sh.words.files
	case len(sh.files) == 0:
		return sh.words.bases
	}
	return sh.words.both
}

// part is a document of the block.
func (d *shelved) part(number func(cite.Source) int) framework.KnowledgePart {
	p := framework.KnowledgePart{ID: d.ID, Name: d.Name}
	var m markup.Builder
	switch {
	case d.edition == nil && d.State == knowledge.Failed:
		m.Empty("file", markup.Str("id", d.ID), markup.Str("name", d.Name), markup.Str("error", "failed"))
	case d.edition == nil:
		m.Empty("file", markup.Str("id", d.ID), markup.Str("name", d.Name), markup.Str("error", "still_processing"))
	case d.demoted:
		m.WriteString(d.short())
	default:
		ref := number(d.source())
		m.Text("file", d.text, markup.Str("id", d.ID), markup.Str("name", d.Name), markup.Num("ref", ref))
		p.Short = strings.TrimSuffix(d.short(), "\n")
	}
	p.Text = strings.TrimSuffix(m.String(), "\n")
	return p
}

// short is a document by its headings and its beginning.
func (d *shelved) short() string {
	var m markup.Builder
	m.Open("file", markup.Str("id", d.ID), markup.Str("name", d.Name), markup.Str("shortened", "true"), markup.Num("chars", d.edition.Chars))
	if titles := d.edition.Outline; len(titles) > 0 {
		lines := make([]string, 0, shortTitles)
		for _, h := range titles[:min(len(titles), shortTitles)] {
			lines = append(lines, strings.Repeat("  ", max(0, min(h.Level, 6)-1))+h.Title)
		}
		m.Text("outline", strings.Join(lines, "\n"))
	}
	m.Text("beginning", op.Truncate(d.text, shortText))
	m.Shut("file")
	return m.String()
}

// source is the document as what a reply can cite.
func (d *shelved) source() cite.Source {
	return knowledge.SourceOf(cite.KindFile, d.ID, d.Name, d.chunks)
}
