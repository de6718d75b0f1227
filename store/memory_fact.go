package store

import (
	"slices"

	"github.com/uptrace/bun"

	"nodest/fault"
	"nodest/index"
	"nodest/memory"
	"nodest/memory/lang"
)

// factRow is one version of a fact.
type factRow struct {
	bun.BaseModel  `bun:"table:memories,alias:f"`
	ID             string `bun:"id,pk"`
	UserID         string
	CharacterID    text
	ConversationID text
	RootID         text
	Version        int
	Text           text
	Terms          text
	Hash           string
	Subject        text
	Kind           text
	Importance     float64
	EventTime      *int64
	Evidence       document
	EndedBy        document
	Origin         text
	IsPinned       bool
	IsLocked       bool
	Status         text
	SupersededBy   text
	SeenCount      int
	LastSeenAt     int64
	LastUsedAt     *int64
	Change         int64
	CreatedAt      int64
	UpdatedAt      int64
}

func (r *factRow) memory() (*memory.Memory, error) {
	m := &memory.Memory{
		ID: r.ID, RootID: string(r.RootID), Version: r.Version, ConversationID: string(r.ConversationID), Text: string(r.Text),
		Subject: lang.Subject(r.Subject), Kind: lang.Kind(r.Kind), Importance: r.Importance,
		EventTime: momentOrNil(r.EventTime), Origin: memory.Origin(r.Origin), Pinned: r.IsPinned, Locked: r.IsLocked,
		Status: memory.Status(r.Status), SupersededBy: string(r.SupersededBy), SeenCount: r.SeenCount,
		LastSeenAt: moment(r.LastSeenAt), LastUsedAt: momentOrNil(r.LastUsedAt), ContentHash: r.Hash,
		CreatedAt: moment(r.CreatedAt), UpdatedAt: moment(r.UpdatedAt), Evidence: []memory.Evidence{},
	}
	if err := decode(r.Evidence, &m.Evidence); err != nil {
		return nil, err
	}
	return m, decode(r.EndedBy, &m.EndedBy)
}

// factRow makes the row of m without its terms. Times that are not set become Now.
func (t *tx) factRow(characterID string, m *memory.Memory) (*factRow, error) {
	t.fillTimes(&m.CreatedAt, &m.UpdatedAt)
	evidence, err := encodeList(m.Evidence)
	if err != nil {
		return nil, err
	}
	endedBy, err := encodeList(m.EndedBy)
	if err != nil {
		return nil, err
	}
	m.ContentHash = memory.ContentHash(m.Text)
	return &factRow{
		ID: m.ID, UserID: t.userID, CharacterID: text(characterID), ConversationID: text(m.ConversationID),
		RootID: text(m.RootID), Version: m.Version, Text: text(m.Text), Hash: m.ContentHash, Subject: text(m.Subject),
		Kind: text(m.Kind), Importance: m.Importance, EventTime: millisOrNull(m.EventTime), Evidence: evidence,
		EndedBy: endedBy, Origin: text(m.Origin), IsPinned: m.Pinned, IsLocked: m.Locked, Status: text(m.Status),
		SupersededBy: text(m.SupersededBy), SeenCount: m.SeenCount, LastSeenAt: millis(m.LastSeenAt),
		LastUsedAt: millisOrNull(m.LastUsedAt), CreatedAt: millis(m.CreatedAt), UpdatedAt: millis(m.UpdatedAt),
	}, nil
}

// encodeList is encode for lists, of which the empty ones are NULL.
func encodeList[T any](items []T) (document, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return encode(items)
}

// InsertFact stores a version of a fact.
func (t *tx) InsertFact(characterID string, m *memory.Memory) error {
	row, err := t.checkFact(characterID, m)
	if err != nil {
		return err
	}
	row.Terms = text(index.Join(m.Text))
	if err := t.insert(row); err != nil {
		return err
	}
	n := t.news(characterID)
	n.facts = append(n.facts, m.ID)
	return nil
}

// checkFact returns the row of m, or fault.Conflict when another active fact of the
// scope says the same. It asks before it writes, because a statement that fails ends
// the transaction.
func (t *tx) checkFact(characterID string, m *memory.Memory) (*factRow, error) {
	if err := t.writable(); err != nil {
		return nil, err
	}
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	row, err := t.factRow(characterID, m)
	if err != nil || m.Status != memory.Active {
		return row, err
	}
	var other string
	found, err := t.scan(t.raw("SELECT id FROM memories WHERE user_id = ? AND character_id = ? AND hash = ? AND status = 'active'"+
		" AND id <> ?", text(t.userID), text(characterID), row.Hash, text(m.ID)), &other)
	if err == nil && found {
		err = errSaysTheSame(other)
	}
	return row, err
}

// UpdateFact stores everything of m but its text, its place among the versions, and
// when it was used.
func (t *tx) UpdateFact(characterID string, m *memory.Memory) error {
	row, err := t.checkFact(characterID, m)
	if err != nil {
		return err
	}
	n, err := t.update(row, []string{"id", "user_id", "character_id", "root_id", "version", "text", "terms", "hash", "change", "last_used_at", "created_at"},
		"WHERE user_id = ? AND id = ? AND character_id = ?", text(t.userID), text(m.ID), text(characterID))
	if err != nil {
		return err
	}
	if n == 0 {
		return errNoFact()
	}
	news := t.news(characterID)
	news.facts = append(news.facts, m.ID)
	return nil
}

func errNoFact() error { return fault.New(fault.NotFound, "no such memory") }

// Fact returns one version.
func (t *tx) Fact(characterID, id string) (*memory.Memory, error) {
	items, err := t.facts(characterID, ofScope+" AND f.id = ?", text(id))
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, errNoFact()
	}
	return &items[0], nil
}

// facts reads the versions that the end of the statement selects; it begins with a
// condition on the scope.
func (t *tx) facts(characterID, where string, args ...any) ([]memory.Memory, error) {
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	var rows []*factRow
	_, err := t.scan(t.raw("SELECT f.* FROM memories f WHERE "+where,
		append([]any{text(t.userID), text(characterID)}, args...)...), &rows)
	if err != nil {
		return nil, err
	}
	items := make([]memory.Memory, len(rows))
	for i, row := range rows {
		m, err := row.memory()
		if err != nil {
			return nil, err
		}
		items[i] = *m
	}
	return items, nil
}

// FactVersions returns all versions of facts, by root and version.
func (t *tx) FactVersions(characterID string, rootIDs ...string) ([]memory.Memory, error) {
	items := []memory.Memory{}
	roots := slices.Compact(slices.Sorted(slices.Values(rootIDs)))
	for part := range slices.Chunk(roots, 500) {
		in, which := among(part)
		some, err := t.facts(characterID, ofScope+" AND f.root_id "+in+" ORDER BY f.root_id, f.version", which)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
	}
	return items, nil
}

// Facts lists versions, newest first.
func (t *tx) Facts(characterID string, f memory.Filter, cursor string, limit int) ([]memory.Memory, string, error) {
	where, args := ofScope, []any{}
	more := func(condition string, arg any) { where, args = where+" AND "+condition, append(args, arg) }
	switch f.Status {
	case memory.AnyStatus:
	case "":
		more("f.status = ?", text(memory.Active))
	default:
		more("f.status = ?", text(f.Status))
	}
	if f.Kind != "" {
		more("f.kind = ?", text(f.Kind))
	}
	if f.Subject != "" {
		more("f.subject = ?", text(f.Subject))
	}
	if f.ConversationID != "" {
		more("f.conversation_id = ?", text(f.ConversationID))
	}
	if f.ContentHash != "" {
		more("f.hash = ?", text(f.ContentHash))
	}
	if f.Pinned != nil {
		more("f.is_pinned = ?", *f.Pinned)
	}
	if cursor != "" {
		after, err := parseCursor(cursor)
		if err != nil {
			return nil, "", err
		}
		more("f.id < ?", text(after.id))
	}
	limit = pageLength(limit)
	items, err := t.facts(characterID, where+" ORDER BY f.id DESC LIMIT ?", append(args, limit+1)...)
	if err != nil {
		return nil, "", err
	}
	items, next := cut(items, limit, func(m memory.Memory) place { return place{0, m.ID} })
	return items, next, nil
}
