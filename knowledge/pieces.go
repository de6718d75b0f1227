package knowledge

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"nodest/internal/cite"
	"nodest/internal/markup"
	"nodest/internal/op"
)

// Lengths of texts that models get, in code points.
const (
	PartLength    = 12_000 // a part of a file that is read from its beginning
	ExcerptRoom   = 6000   // the passages that are searched for a model without tools
	pieceOverhead = 200    // the markup of a piece
)

// Piece is a part of a file as models read it.
type Piece struct {
	File   FileRef
	From   int // code points of the text
	Text   string
	Chars  int  // length of the whole file
	Inside bool // an excerpt from the middle, which is not continued
	Chunks []StoredChunk
}

// FilesWithText returns the files of a scope that have a text, by id.
func FilesWithText(tx Tx, scope Scope) (map[string]FileRef, error) {
	refs, err := tx.Allowed(scope)
	if err != nil {
		return nil, err
	}
	files := make(map[string]FileRef, len(refs))
	for _, f := range refs {
		if f.Edition > 0 {
			files[f.ID] = f
		}
	}
	return files, nil
}

// Surroundings reads chunks of files with those next to them. Neighbours are one piece, without
// the text in which they overlap. What was replaced meanwhile is left out.
func Surroundings(tx Tx, files map[string]FileRef, ids []ChunkID, reach int) (pieces []Piece, err error) {
	for _, fileID := range fileIDsOf(ids) {
		f, ok := files[fileID]
		if !ok {
			continue
		}
		some, err := around(tx, f, ids, reach)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, some...)
	}
	return pieces, nil
}

// around returns chunks of a file with their neighbours on both sides, merged where these follow one
// another or overlap, in the order of the text. Chunks of other files and editions, and those that do
// not exist, are left out.
func around(tx Tx, f FileRef, ids []ChunkID, neighbours int) (pieces []Piece, err error) {
	all := map[int]StoredChunk{}
	for _, id := range ids {
		if id.FileID != f.ID || id.Edition != f.Edition {
			continue
		}
		some, err := tx.ChunkRange(f.OwnerID, f.ID, f.Edition, "", max(0, id.Index-neighbours), id.Index+neighbours+1)
		if err != nil {
			return nil, err
		}
		for _, c := range some {
			all[c.Index] = c
		}
	}
	end := 0 // where the last piece ends
	for _, i := range slices.Sorted(maps.Keys(all)) {
		c := all[i]
		if _, follows := all[i-1]; !follows && c.Start > end || len(pieces) == 0 {
			pieces = append(pieces, Piece{File: f, From: c.Start, Chars: f.Chars, Inside: true})
		}
		p := &pieces[len(pieces)-1]
		p.Chunks, end = append(p.Chunks, c), max(end, c.End)
	}
	for i := range pieces {
		p := &pieces[i]
		last := slices.MaxFunc(p.Chunks, func(a, b StoredChunk) int { return cmp.Compare(a.End, b.End) })
		if p.Text, err = tx.TextRange(f.OwnerID, f.ID, f.Edition, p.From, last.End); err != nil {
			return nil, err
		}
	}
	return pieces, nil
}

// fileIDsOf are the files of chunks, each once.
func fileIDsOf(ids []ChunkID) (files []string) {
	for _, id := range ids {
		if !slices.Contains(files, id.FileID) {
			files = append(files, id.FileID)
		}
	}
	return files
}

// Widen reads the chunks that were found, best first, as far as there is room for them, and with
// their neighbours if there is room for all of these.
func (s *Service) Widen(ctx context.Context, userID string, scope Scope, found *SearchResult, room int) (pieces []Piece, err error) {
	var ids []ChunkID
	left := room
	for i := range found.Chunks {
		c := &found.Chunks[i]
		id, err := ParseChunkID(c.ID)
		if err != nil {
			return nil, err
		}
		if n := c.End - c.Start; n+pieceOverhead <= left || len(ids) == 0 {
			ids, left = append(ids, id), left-n-pieceOverhead
		}
	}
	scope.FileIDs = fileIDsOf(ids)
	err = s.View(ctx, userID, func(tx Tx) error {
		files, err := FilesWithText(tx, scope)
		if err != nil {
			return err
		}
		for _, reach := range []int{1, 0} {
			if pieces, err = Surroundings(tx, files, ids, reach); err != nil || lengthOf(pieces) <= room {
				return err
			}
		}
		return nil
	})
	return pieces, err
}

func lengthOf(pieces []Piece) (n int) {
	for _, p := range pieces {
		n += pointsIn(p.Text) + pieceOverhead
	}
	return n
}

// WritePieces writes pieces into room code points, which they share. It returns how many of
// their text were written.
func WritePieces(m *markup.Builder, pieces []Piece, room int, number func(cite.Source) int) (written int) {
	for i := range pieces {
		p := &pieces[i]
		text := p.Text
		if most := room/(len(pieces)-i) - pieceOverhead; pointsIn(text) > most || !p.Inside && p.From+pointsIn(text) < p.Chars {
			text = cutAtEnd(op.Truncate(text, max(most, 0)))
		}
		n := pointsIn(text)
		room -= n + pieceOverhead
		written += n
		ref := number(SourceOf(cite.KindKnowledge, p.File.ID, p.File.Name, p.chunksUpTo(p.From+n)))
		attrs := []markup.Attr{markup.Str("id", p.File.ID), markup.Str("name", p.File.Name), markup.Num("ref", ref), markup.Num("chars", p.Chars)}
		if !p.Inside {
			parts := max(1, (p.Chars+PartLength-1)/PartLength)
			attrs = append(attrs, markup.Str("part", strconv.Itoa(min(parts, p.From/PartLength+1))+"/"+strconv.Itoa(parts)))
			if end := p.From + n; end < p.Chars {
				attrs = append(attrs, markup.Str("next", ChunkID{p.File.ID, p.File.Edition, end}.String()))
			}
		}
		m.Text("file", text, attrs...)
	}
	return written
}

// chunksUpTo are the chunks that begin before a position.
func (p *Piece) chunksUpTo(end int) []StoredChunk {
	n, _ := slices.BinarySearchFunc(p.Chunks, end, func(c StoredChunk, end int) int { return cmp.Compare(c.Start, end) })
	return p.Chunks[:n]
}

// SourceOf are chunks of one file as a source that a reply can cite.
func SourceOf(kind, fileID, name string, chunks []StoredChunk) cite.Source {
	s := cite.Source{Kind: kind, URL: FileURL(fileID), Title: name, FileID: fileID}
	for i := range chunks {
		c := &chunks[i]
		s.Chunks = append(s.Chunks, cite.Chunk{Text: c.Text})
		s.Parts = append(s.Parts, cite.Part{ChunkID: c.ID().String(), Page: c.Page})
	}
	if len(s.Parts) > 0 {
		s.ChunkID, s.Page = s.Parts[0].ChunkID, s.Parts[0].Page
	}
	return s
}

// FileURL is the address of a file in references. Only this product understands it.
func FileURL(fileID string) string { return "nodest:file/" + fileID }
