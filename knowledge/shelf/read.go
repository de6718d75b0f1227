package shelf

import (
	"context"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/markup"
	"nodest/internal/op"
	"nodest/knowledge"
)

// Bounds of one reading, in code points.
const (
	readPerCall = 24_000
	readPerTurn = 60_000
	readAtLeast = 1000 // with less left, nothing more is read
	aroundReach = 2    // chunks before and after one whose surroundings are read
)

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
	var pieces []knowledge.Piece
	var unknown []string
	err = sh.svc.View(ctx, sh.userID, func(tx knowledge.Tx) error {
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
func (sh *Shelf) shownOf(pieces []knowledge.Piece, unknown []string, most int) *Shown {
	shown := &Shown{Hits: len(pieces), Chunks: chunkIDsOf(pieces)}
	for _, p := range pieces {
		shown.Files = append(shown.Files, ShownFile{ID: p.File.ID, Name: p.File.Name})
	}
	spent := 0
	shown.Text = func(room int, number func(cite.Source) int) string {
		const root = "knowledge_base_files"
		var m markup.Builder
		m.Open(root, markup.Num("totalCount", len(pieces)))
		m.Text("instruction", sh.words.read)
		n := knowledge.WritePieces(&m, pieces, min(room, most), number)
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
func (sh *Shelf) pieces(tx knowledge.Tx, fileIDs, chunkIDs []string, at *knowledge.ChunkID, room int) (pieces []knowledge.Piece, unknown []string, err error) {
	allowed, err := knowledge.FilesWithText(tx, knowledge.Scope{CharacterID: sh.characterID, FilesOnly: true, FileIDs: fileIDs})
	if err != nil {
		return nil, nil, err
	}
	for _, id := range fileIDs {
		if _, ok := allowed[id]; !ok {
			unknown = append(unknown, id)
		}
	}
	var chunks []knowledge.ChunkID
	for _, s := range chunkIDs[:min(len(chunkIDs), maxAround)] {
		if id, err := knowledge.ParseChunkID(s); err == nil && slices.Contains(fileIDs, id.FileID) {
			chunks = append(chunks, id)
		}
	}
	if len(chunks) > 0 {
		pieces, err = knowledge.Surroundings(tx, allowed, chunks, aroundReach)
		return pieces, unknown, err
	}
	each := min(knowledge.PartLength, room/max(1, len(allowed)))
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

// readPart reads the text of a file from a position on, up to the end of a paragraph.
func readPart(tx knowledge.Tx, f knowledge.FileRef, from, most int) (*knowledge.Piece, error) {
	e, err := tx.EditionOf(f.OwnerID, f.ID, f.Edition)
	if err != nil {
		return nil, err
	}
	from = min(max(from, 0), e.Chars)
	text, err := tx.TextRange(f.OwnerID, f.ID, f.Edition, from, min(e.Chars, from+most))
	if err != nil {
		return nil, err
	}
	p := &knowledge.Piece{File: f, From: from, Text: text, Chars: e.Chars}
	p.Chunks, err = tx.ChunksBetween(f.OwnerID, f.ID, f.Edition, from, from+utf8.RuneCountInString(text))
	return p, err
}

// parseCursor reads the value of next: a file, an edition and a position. nil = "".
func parseCursor(s string) (*knowledge.ChunkID, error) {
	if s == "" {
		return nil, nil
	}
	at, err := knowledge.ParseChunkID(s)
	if err != nil {
		return nil, fault.InvalidField("cursor", "format", "give the value of next from an earlier answer")
	}
	return &at, nil
}
