package knowledge

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"nodest/cite"
	"nodest/fault"
	"nodest/markup"
	"nodest/op"
)

// What may be read, in code points.
const (
	readPerFile = 12_000
	readPerCall = 24_000
	readPerTurn = 60_000
	readAtLeast = 1000 // with less left, nothing more is read
	aroundReach = 2    // chunks before and after one whose surroundings are read
)

// piece is a part of a file that is read.
type piece struct {
	file    FileRef
	edition int64
	from    int // code points of the text
	text    string
	chars   int  // of the whole file
	inside  bool // an excerpt from the middle, which is not continued
	chunks  []StoredChunk
}

// Read carries out readKnowledge: arguments is a JSON object.
//
// Errors: Invalid for an argument that is missing or of the wrong type; TooLarge when this
// turn has read as much as it may.
func (sh *Shelf) Read(ctx context.Context, arguments json.RawMessage) (*Shown, error) {
	var in struct {
		FileIDs        []string `json:"fileIds"`
		AroundChunkIDs []string `json:"aroundChunkIds"`
		Cursor         string   `json:"cursor"`
	}
	if err := op.DecodeLenient("arguments", arguments, &in); err != nil {
		return nil, err
	}
	at, err := parseCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	ids := unique(in.FileIDs)
	ids = ids[:min(len(ids), maxRead)]
	if at != nil {
		ids = []string{at.FileID}
	}
	if len(ids) == 0 {
		return nil, fault.InvalidField("fileIds", "required", "give the id of a file")
	}
	room := sh.roomLeft()
	if room < readAtLeast {
		return nil, fault.New(fault.TooLarge, "no more text can be read in this turn: answer with what you have")
	}
	var pieces []piece
	var unknown []string
	err = sh.svc.store.View(ctx, sh.userID, func(tx Tx) error {
		pieces, unknown, err = sh.pieces(tx, ids, in.AroundChunkIDs, at, room)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sh.shownOf(pieces, unknown, room), nil
}

// unique is a list without repetitions.
func unique(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// roomLeft is what one call may read.
func (sh *Shelf) roomLeft() int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return min(readPerCall, sh.left)
}

func (sh *Shelf) spend(n int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.left -= n
}

// shownOf is the answer with pieces. What is written last counts towards the turn.
func (sh *Shelf) shownOf(pieces []piece, unknown []string, most int) *Shown {
	shown := &Shown{Hits: len(pieces), Chunks: chunkIDsOf(pieces)}
	for _, p := range pieces {
		shown.Files = append(shown.Files, ShownFile{ID: p.file.ID, Name: p.file.Name})
	}
	spent := 0
	shown.Text = func(room int, number func(cite.Source) int) string {
		const root = "knowledge_base_files"
		var m markup.Builder
		m.Open(root, markup.Num("totalCount", len(pieces)))
		m.Text("instruction", sh.words.read)
		n := writePieces(&m, pieces, min(room, most), number)
		sh.spend(n - spent)
		spent = n
		for _, id := range unknown {
			m.Empty("file", markup.Str("id", op.Truncate(id, 64)), markup.Str("error", "not_found"))
		}
		m.Shut(root)
		return m.String()
	}
	return shown
}

// pieces reads files from their beginning, from a cursor, or around chunks, as far as they are
// enabled for the character. The ids of others are unknown.
func (sh *Shelf) pieces(tx Tx, fileIDs, chunkIDs []string, at *ChunkID, room int) (pieces []piece, unknown []string, err error) {
	allowed, err := allowedFiles(tx, Scope{CharacterID: sh.characterID, FilesOnly: true, FileIDs: fileIDs})
	if err != nil {
		return nil, nil, err
	}
	for _, id := range fileIDs {
		if _, ok := allowed[id]; !ok {
			unknown = append(unknown, id)
		}
	}
	var chunks []ChunkID
	for _, s := range chunkIDs[:min(len(chunkIDs), maxAround)] {
		if id, err := ParseChunkID(s); err == nil && slices.Contains(fileIDs, id.FileID) {
			chunks = append(chunks, id)
		}
	}
	if len(chunks) > 0 {
		pieces, err = surroundings(tx, allowed, chunks, aroundReach)
		return pieces, unknown, err
	}
	each := min(readPerFile, room/max(1, len(allowed)))
	for _, id := range fileIDs {
		f, ok := allowed[id]
		if !ok {
			continue
		}
		from := 0
		if at != nil && at.Edition == f.Edition {
			from = at.Index
		}
		p, err := readPart(tx, f, from, each)
		if err != nil {
			return nil, nil, err
		}
		pieces = append(pieces, *p)
	}
	return pieces, unknown, nil
}

// allowedFiles are the files of a scope that have a text, by id.
func allowedFiles(tx Tx, scope Scope) (map[string]FileRef, error) {
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

// readPart reads the text of a file from a position on, up to the end of a paragraph.
func readPart(tx Tx, f FileRef, from, most int) (*piece, error) {
	e, err := tx.EditionOf(f.OwnerID, f.ID, f.Edition)
	if err != nil {
		return nil, err
	}
	from = min(max(from, 0), e.Chars)
	text, err := tx.TextRange(f.OwnerID, f.ID, f.Edition, from, min(e.Chars, from+most))
	if err != nil {
		return nil, err
	}
	p := &piece{file: f, edition: f.Edition, from: from, text: text, chars: e.Chars}
	p.chunks, err = tx.ChunksBetween(f.OwnerID, f.ID, f.Edition, from, from+pointsIn(text))
	return p, err
}

// surroundings reads chunks with those next to them. Neighbours are one piece, without the text
// in which they overlap. What was replaced meanwhile is left out.
func surroundings(tx Tx, allowed map[string]FileRef, ids []ChunkID, reach int) (pieces []piece, err error) {
	for _, fileID := range fileIDsOf(ids) {
		f, ok := allowed[fileID]
		if !ok {
			continue
		}
		passages, err := around(tx, f, ids, reach)
		if err != nil {
			return nil, err
		}
		for _, passage := range passages {
			p := piece{file: f, edition: f.Edition, from: passage.Start, text: passage.Text, chars: f.Chars, inside: true}
			if p.chunks, err = tx.Passages(f.OwnerID, passage.Chunks); err != nil {
				return nil, err
			}
			slices.SortFunc(p.chunks, func(a, b StoredChunk) int { return cmp.Compare(a.Index, b.Index) })
			pieces = append(pieces, p)
		}
	}
	return pieces, nil
}

// pieceOverhead is what the markup of a piece takes, in code points.
const pieceOverhead = 200

// writePieces writes pieces into room code points, which they share. It returns how many of
// their text were written.
func writePieces(m *markup.Builder, pieces []piece, room int, number func(cite.Source) int) (written int) {
	for i := range pieces {
		p := &pieces[i]
		text := p.text
		if most := room/(len(pieces)-i) - pieceOverhead; pointsIn(text) > most || !p.inside && p.from+pointsIn(text) < p.chars {
			text = cutAtEnd(op.Truncate(text, max(most, 0)))
		}
		n := pointsIn(text)
		room -= n + pieceOverhead
		written += n
		ref := number(sourceOf(cite.KindKnowledge, p.file.ID, p.file.Name, p.chunksUpTo(p.from+n)))
		attrs := []markup.Attr{markup.Str("id", p.file.ID), markup.Str("name", p.file.Name), markup.Num("ref", ref), markup.Num("chars", p.chars)}
		if !p.inside {
			parts := max(1, (p.chars+readPerFile-1)/readPerFile)
			attrs = append(attrs, markup.Str("part", strconv.Itoa(min(parts, p.from/readPerFile+1))+"/"+strconv.Itoa(parts)))
			if end := p.from + n; end < p.chars {
				attrs = append(attrs, markup.Str("next", ChunkID{p.file.ID, p.edition, end}.String()))
			}
		}
		m.Text("file", text, attrs...)
	}
	return written
}

// chunksUpTo are the chunks that begin before a position.
func (p *piece) chunksUpTo(end int) []StoredChunk {
	n, _ := slices.BinarySearchFunc(p.chunks, end, func(c StoredChunk, end int) int { return cmp.Compare(c.Start, end) })
	return p.chunks[:n]
}

// parseCursor reads the value of next: a file, an edition and a position. nil = "".
func parseCursor(s string) (*ChunkID, error) {
	if s == "" {
		return nil, nil
	}
	at, err := ParseChunkID(s)
	if err != nil {
		return nil, fault.InvalidField("cursor", "format", "give the value of next from an earlier answer")
	}
	return &at, nil
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
