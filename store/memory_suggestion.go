package store

import (
	"github.com/uptrace/bun"

	"nodest/fault"
	"nodest/memory"
)

type suggestionRow struct {
	bun.BaseModel `bun:"table:memory_suggestions"`
	ID            string `bun:"id,pk"`
	UserID        string
	CharacterID   text
	MemoryID      text
	Event         text
	Text          text
	Reason        text
	Evidence      document
	State         text
	CreatedAt     int64
}

func (r *suggestionRow) suggested() (memory.Suggested, error) {
	s := memory.Suggested{
		ID: r.ID, State: string(r.State), CreatedAt: moment(r.CreatedAt),
		Suggestion: memory.Suggestion{
			MemoryID: string(r.MemoryID), Event: memory.Event(r.Event), Text: string(r.Text), Reason: string(r.Reason),
		},
	}
	return s, decode(r.Evidence, &s.Evidence)
}

func (t *tx) suggestionRow(characterID string, s *memory.Suggested) (*suggestionRow, error) {
	if err := t.writable(); err != nil {
		return nil, err
	}
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	t.fillTimes(&s.CreatedAt)
	evidence, err := encodeList(s.Evidence)
	return &suggestionRow{
		ID: s.ID, UserID: t.userID, CharacterID: text(characterID), MemoryID: text(s.MemoryID), Event: text(s.Event),
		Text: text(s.Text), Reason: text(s.Reason), Evidence: evidence, State: text(s.State), CreatedAt: millis(s.CreatedAt),
	}, err
}

// InsertSuggestion stores one.
func (t *tx) InsertSuggestion(characterID string, s *memory.Suggested) error {
	row, err := t.suggestionRow(characterID, s)
	if err != nil {
		return err
	}
	return t.insert(row)
}

// UpdateSuggestion stores what s is now.
func (t *tx) UpdateSuggestion(characterID string, s *memory.Suggested) error {
	row, err := t.suggestionRow(characterID, s)
	if err != nil {
		return err
	}
	n, err := t.update(row, []string{"id", "user_id", "character_id", "created_at"},
		"WHERE user_id = ? AND id = ? AND character_id = ?", text(t.userID), text(s.ID), text(characterID))
	if err == nil && n == 0 {
		return errNoSuggestion()
	}
	return err
}

func errNoSuggestion() error { return fault.New(fault.NotFound, "no such suggestion") }

// Suggestion returns one.
func (t *tx) Suggestion(characterID, id string) (*memory.Suggested, error) {
	items, err := t.suggestions(characterID, "AND id = ?", text(id))
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, errNoSuggestion()
	}
	return &items[0], nil
}

func (t *tx) suggestions(characterID, rest string, args ...any) ([]memory.Suggested, error) {
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	var rows []*suggestionRow
	_, err := t.scan(t.raw("SELECT * FROM memory_suggestions WHERE user_id = ? AND character_id = ? "+rest,
		append([]any{text(t.userID), text(characterID)}, args...)...), &rows)
	if err != nil {
		return nil, err
	}
	items := make([]memory.Suggested, len(rows))
	for i, row := range rows {
		if items[i], err = row.suggested(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Suggestions lists newest first.
func (t *tx) Suggestions(characterID, state, cursor string, limit int) ([]memory.Suggested, string, error) {
	where, args := "", []any{}
	if state != "" {
		where, args = "AND state = ?", append(args, text(state))
	}
	if cursor != "" {
		after, err := parseCursor(cursor)
		if err != nil {
			return nil, "", err
		}
		where, args = where+" AND id < ?", append(args, text(after.id))
	}
	limit = pageLength(limit)
	items, err := t.suggestions(characterID, where+" ORDER BY id DESC LIMIT ?", append(args, limit+1)...)
	if err != nil {
		return nil, "", err
	}
	items, next := cut(items, limit, func(s memory.Suggested) place { return place{0, s.ID} })
	return items, next, nil
}

// SuggestionKeys returns the keys of all that were ever made.
func (t *tx) SuggestionKeys(characterID string) (map[string]bool, error) {
	items, err := t.suggestions(characterID, "")
	if err != nil {
		return nil, err
	}
	keys := make(map[string]bool, len(items))
	for _, s := range items {
		keys[s.Key()] = true
	}
	return keys, nil
}
