package knowledge

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// MostText is how many code points of a text one call returns at most.
const MostText = 1_000_000

// Text returns a part of the text of a file, from a code point on: of the edition that is searched,
// or where there is none of the one that is being made. limit 0 = MostText. NotFound if the file has
// no text yet.
func (s *Service) Text(ctx context.Context, userID, id string, offset, limit int) (*Text, error) {
	var check op.Checks
	op.Between(&check, "offset", &offset, 0, math.MaxInt32)
	op.Between(&check, "limit", &limit, 0, MostText)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return op.Read(ctx, s.store, userID, func(tx Tx) (*Text, error) {
		f, err := tx.File(id)
		if err != nil {
			return nil, err
		}
		e, err := tx.EditionOf(f.OwnerID, f.ID, cmp.Or(f.Edition, f.LastEdition))
		if err != nil {
			return nil, err
		}
		text, err := tx.TextRange(f.OwnerID, f.ID, e.Edition, offset, min(e.Chars, offset+cmp.Or(limit, MostText)))
		return &Text{Edition: e.Edition, Title: e.Title, Text: text, Offset: offset, Total: e.Chars, Outline: e.Outline, Pages: e.Pages}, err
	})
}

// Chunks lists the chunks of a file in their order.
func (s *Service) Chunks(ctx context.Context, userID, id, cursor string, limit int) (op.Page[*Chunk], error) {
	var page op.Page[*Chunk]
	limit, err := op.CheckLimit(limit)
	if err != nil {
		return page, err
	}
	from := 0
	if cursor != "" {
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 {
			return page, fault.InvalidField("cursor", "value", "not a cursor of this list")
		}
	}
	return op.Read(ctx, s.store, userID, func(tx Tx) (page op.Page[*Chunk], err error) {
		page.Items = []*Chunk{}
		f, err := tx.File(id)
		if err != nil || f.Edition == 0 {
			return page, err
		}
		model, err := tx.ActiveModel(f.OwnerID, []string{f.ID})
		if err != nil {
			return page, err
		}
		chunks, err := tx.ChunkRange(f.OwnerID, f.ID, f.Edition, model, from, from+limit)
		for i := range chunks {
			page.Items = append(page.Items, chunks[i].chunk())
		}
		if len(chunks) == limit && from+limit < f.Chunks {
			page.NextCursor = strconv.Itoa(from + limit)
		}
		return page, err
	})
}

// cutAtEnd cuts a text behind its last paragraph, or its last line or sentence, if that leaves
// at least half of it.
func cutAtEnd(text string) string {
	for _, end := range []string{"\n\n", "\n", "。", ". "} {
		if at := strings.LastIndex(text, end); at >= len(text)/2 {
			return text[:at+len(end)]
		}
	}
	return text
}
