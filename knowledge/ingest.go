package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
	"nodest/knowledge/search"
)

// One transaction stores this much at most, so that others do not wait long for it.
const (
	textsAtOnce  = 32
	chunksAtOnce = 1000
	mostChunks   = 50_000 // chunks of a file
)

// textHash names what is embedded: 128 bits of its SHA-256.
func textHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// making is an edition in the making.
type making struct {
	*run
	file  *File
	rules chunk.Rules
	about bool  // chunks get context lines
	no    int64 // number of the edition
}

// errReplaced says that the content was replaced meanwhile; another job follows.
var errReplaced = errors.New("the file was replaced")

// runIngest makes an edition of a file: text, chunks and the index for words; then the job that
// embeds takes over. All of an edition is made again after a crash, in place of what was there.
func (s *Service) runIngest(ctx context.Context, r *run) error {
	err := s.store.View(ctx, r.job.UserID, func(tx Tx) error {
		f, err := tx.OwnFile(r.job.Subject)
		r.small = err == nil && f.Size <= smallFile
		return err
	})
	if err == nil {
		err = r.takePlace(ctx)
	}
	if err != nil {
		return err
	}
	defer r.leavePlace()
	m, err := r.begin(ctx)
	if err == nil && m != nil {
		err = m.make(ctx)
	}
	if errors.Is(err, errReplaced) {
		return nil
	}
	return err
}

// begin decides what there is to do. If the newest edition is what the file and the rules ask
// for, it ends the job, and returns nil.
func (r *run) begin(ctx context.Context) (m *making, err error) {
	again := false
	err = r.s.store.Update(ctx, r.job.UserID, func(tx Tx) error {
		m = &making{run: r}
		if m.file, err = tx.OwnFile(r.job.Subject); err != nil {
			return err
		}
		if err := tx.Jobs.NoteJob(r.job, r.note); err != nil { // it was cancelled
			return err
		}
		if m.rules, err = r.s.rulesOf(tx, m.file); err != nil {
			return err
		}
		if m.about, err = tx.WantsContext(m.file.ID); err != nil {
			return err
		}
		editions, err := tx.Editions(m.file.ID)
		if err != nil {
			return err
		}
		f := m.file
		if again = len(editions) > 0 && m.fits(&editions[0]); again {
			m = nil
			return r.embedNext(tx, f)
		}
		f.LastEdition++
		m.no = f.LastEdition
		f.State, f.Error, f.Progress = Parsing, nil, nil
		return putFile(tx, f)
	})
	if err == nil && again {
		r.s.rested(ctx, r.job.UserID, r.job.Subject)
	}
	return m, err
}

// fits reports whether an edition is complete, and what is wanted now.
func (m *making) fits(e *Edition) bool {
	return e.Chunks >= 0 && e.Edition == m.file.LastEdition && e.SHA256 == m.file.SHA256 && e.Name == m.file.Name &&
		e.Size == m.rules.Size && e.Overlap == m.rules.Overlap && e.ContextLines == m.about
}

func (s *Service) rulesOf(tx Tx, f *File) (chunk.Rules, error) {
	rules, err := tx.RulesOf(f.ID)
	if err != nil || rules == nil {
		return s.opts.Rules(f.ContentType), err
	}
	return *rules, nil
}

// embedNext ends the job and lets the one that embeds follow.
func (r *run) embedNext(tx Tx, f *File) error {
	if f.State != Ready {
		f.State, f.Error, f.Progress = Embedding, nil, nil
		if err := putFile(tx, f); err != nil {
			return err
		}
	}
	return errors.Join(tx.Jobs.Enqueue(jobs.Spec{Kind: EmbedKind, Subject: f.ID}), tx.Jobs.FinishJob(r.job))
}

func (m *making) make(ctx context.Context) error {
	doc, err := m.parse(ctx)
	if err != nil {
		return err
	}
	m.beat()
	if m.file.ContentType == "" {
		if m.rules, err = m.rulesFor(ctx, doc.Type); err != nil {
			return err
		}
	}
	e := &Edition{
		FileID: m.file.ID, Edition: m.no, SHA256: m.file.SHA256, Name: m.file.Name, Size: m.rules.Size, Overlap: m.rules.Overlap,
		Parser: doc.Parser, Type: doc.Type, Title: doc.Title, Language: doc.Language, Outline: doc.Outline, Pages: doc.Pages, Chunks: -1,
	}
	if err := m.storeText(ctx, e, doc); err != nil {
		return err
	}
	chunks := chunk.Cut(doc, m.rules)
	switch {
	case len(chunks) == 0:
		return &parse.Error{Code: parse.EmptyDocument, Detail: "the document has no text"}
	case len(chunks) > mostChunks:
		return &parse.Error{Code: parse.TextTooLong, Detail: "the document has more than 50,000 chunks"}
	}
	var warnings []string
	if m.about {
		missing, err := m.addContext(ctx, doc, chunks)
		if err != nil {
			return err
		}
		if e.ContextLines = missing == 0; missing > 0 {
			warnings = append(warnings, fmt.Sprint(missing, withoutContext))
		}
	}
	if err := m.storeChunks(ctx, chunks); err != nil {
		return err
	}
	e.Chunks = len(chunks)
	segment, whole, err := search.Encode(ctx, m.file.Name, doc.Text, chunks)
	if err != nil {
		return err
	}
	if !whole {
		warnings = append(warnings, wordsNotIndexed)
	}
	return m.complete(ctx, e, segment, warnings)
}

// parse reads the content and has it parsed.
func (m *making) parse(ctx context.Context) (*parse.Document, error) {
	data := make([]byte, 0, m.file.Size)
	for part := 0; int64(len(data)) < m.file.Size; part++ {
		err := m.s.store.View(ctx, m.job.UserID, func(tx Tx) error {
			some, err := tx.FilePart(m.file, part)
			data = append(data, some...)
			return err
		})
		if err != nil { // NotFound too: it was deleted, or replaced, which has another job
			return nil, err
		}
	}
	doc, err := m.s.opts.Parser(ctx, parse.Input{Name: m.file.Name, DeclaredType: m.file.Declared, Data: data})
	if err == nil && strings.TrimSpace(doc.Text) == "" {
		err = &parse.Error{Code: parse.EmptyDocument, Detail: "the document has no text"}
	}
	return doc, err
}

// rulesFor asks for the rules again, now that the type is known.
func (m *making) rulesFor(ctx context.Context, contentType string) (rules chunk.Rules, err error) {
	err = m.s.store.View(ctx, m.job.UserID, func(tx Tx) error {
		f := *m.file
		f.ContentType = contentType
		rules, err = m.s.rulesOf(tx, &f)
		return err
	})
	return rules, err
}

// update changes the file in a transaction, unless it was replaced.
func (m *making) update(ctx context.Context, fn func(tx Tx, f *File) error) error {
	return m.s.store.Update(ctx, m.job.UserID, func(tx Tx) error {
		f, err := tx.OwnFile(m.file.ID)
		if err != nil {
			return err
		}
		if f.SHA256 != m.file.SHA256 || f.LastEdition != m.no {
			return errReplaced
		}
		return fn(tx, f)
	})
}

// storeText stores the text; then it can be read.
func (m *making) storeText(ctx context.Context, e *Edition, doc *parse.Document) error {
	parts := cutText(doc.Text)
	for from := 0; from < len(parts); from += textsAtOnce {
		some := parts[from:min(len(parts), from+textsAtOnce)]
		if err := m.update(ctx, func(tx Tx, _ *File) error { return tx.PutTexts(e.FileID, e.Edition, from, some) }); err != nil {
			return err
		}
		m.beat()
	}
	for _, part := range parts {
		e.Chars += pointsIn(part)
	}
	return m.update(ctx, func(tx Tx, f *File) error {
		if err := tx.PutEdition(e); err != nil {
			return err
		}
		f.State, f.Warnings = Chunking, slices.Clone(doc.Warnings)
		if f.Edition == 0 {
			f.describe(e)
		}
		return putFile(tx, f)
	})
}

// describe gives the file what is shown of the edition that is searched.
func (f *File) describe(e *Edition) {
	f.ContentType, f.Language, f.Chars, f.Chunks = e.Type, e.Language, e.Chars, max(0, e.Chunks)
}

func (m *making) storeChunks(ctx context.Context, chunks []chunk.Chunk) error {
	told := time.Now()
	for from := 0; from < len(chunks); from += chunksAtOnce {
		some := chunks[from:min(len(chunks), from+chunksAtOnce)]
		rows := make([]StoredChunk, len(some))
		for i, c := range some {
			rows[i] = StoredChunk{
				FileID: m.file.ID, Edition: m.no, Index: from + i, Start: c.Start, End: c.End, Heading: c.Heading, Page: c.Page, Kind: c.Kind,
				Context: c.Context, Hash: textHash(embedded(m.file.Name, c.Heading, c.Context, c.Text)),
			}
		}
		var tell func()
		err := m.update(ctx, func(tx Tx, _ *File) (err error) {
			if err := tx.PutChunks(rows); err != nil {
				return err
			}
			tell, err = m.progress(tx, Chunking, from+len(some), len(chunks))
			return err
		})
		if err != nil {
			return err
		}
		m.beat()
		if time.Since(told) > time.Second {
			tell()
			told = time.Now()
		}
	}
	return nil
}

// wordsNotIndexed warns that a file has more different words than its index.
const wordsNotIndexed = "some_words_not_indexed"

// complete stores the index of an edition. The first one of a file is searched from then on.
func (m *making) complete(ctx context.Context, e *Edition, segment []byte, warnings []string) error {
	return m.update(ctx, func(tx Tx, f *File) error {
		if err := errors.Join(tx.PutEdition(e), tx.PutFileSegment(e.FileID, e.Edition, segment)); err != nil {
			return err
		}
		if f.Edition == 0 {
			f.Edition = e.Edition
			f.describe(e)
		}
		f.State, f.Warnings = Embedding, append(f.Warnings, warnings...)
		return m.embedNext(tx, f)
	})
}

// sweepFile lets a file go on that is being processed without a job. If its last job failed,
// because the server crashed each time, so does the file; one that failed because the disk was full is
// done again.
func (s *Service) sweepFile(tx Tx, id string) error {
	f, err := tx.OwnFile(id)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	}
	last, _, err := tx.Jobs.Jobs(jobs.Filter{Subject: id}, "", 1)
	if err != nil {
		return err
	}
	if len(last) > 0 && last[0].State == jobs.Failed && last[0].Error != nil && last[0].Error.Code != fault.StorageFull {
		f.State, f.Progress = Failed, nil
		f.Error = &FileError{Code: "stalled", Detail: last[0].Error.Message, Retryable: true}
		return putFile(tx, f)
	}
	return ingest(tx, id)
}
