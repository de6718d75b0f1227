package store

import (
	"cmp"
	"slices"

	"nodest/internal/fault"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/store/sqldb"
)

// factTx stores facts, suggestions and what was forgotten.
type factTx struct{ *tx }

// factRow is one version of a fact.
type factRow struct {
	memory.Memory `db:"Source=source_id SupersededBy=superseded_by_id Pinned=is_pinned Locked=is_locked Shareable=is_shareable ContentHash=hash"`
	UserID        string
	CharacterID   string
	FirstChange   int64
	Change        int64
	storedVector
}

func (r *factRow) memory() memory.Memory {
	if r.Evidence == nil {
		r.Evidence = []memory.Evidence{}
	}
	return r.Memory
}

// factRow makes the row of m. Times that are not set become Now.
func (t factTx) factRow(characterID string, m *memory.Memory) *factRow {
	t.fillTimes(&m.CreatedAt, &m.UpdatedAt)
	m.ContentHash = lang.ContentHash(m.Text)
	return &factRow{Memory: *m, UserID: t.userID, CharacterID: characterID}
}

func (t factTx) InsertFacts(characterID string, facts ...*memory.Memory) error {
	rows := make([]*factRow, len(facts))
	active := map[string]string{} // ids by the words
	var hashes []string
	for i, m := range facts {
		row := t.factRow(characterID, m)
		rows[i] = row
		if m.Status != memory.Active {
			continue
		}
		if other := active[row.ContentHash]; other != "" {
			return errSaysTheSame(other)
		}
		active[row.ContentHash], hashes = m.ID, append(hashes, row.ContentHash)
	}
	if err := t.nobodySays(characterID, "", hashes); err != nil {
		return err
	}
	if err := t.Insert("memories", rows); err != nil {
		return err
	}
	n := t.memory.news(characterID)
	for _, m := range facts {
		n.facts = append(n.facts, m.ID)
	}
	return nil
}

// nobodySays returns fault.NotFound for a character that is not the user's, and
// fault.Conflict when an active fact of the scope, other than one, has one of these
// hashes. It asks before anything is written, because a statement that fails ends the
// transaction.
func (t factTx) nobodySays(characterID, but string, hashes []string) error {
	other, err := sqldb.Value[string](t.characters.with(characterID), "SELECT id FROM memories WHERE "+ofScope+" AND status = 'active' AND hash IN (?) AND id <> ? LIMIT 1",
		t.userID, characterID, hashes, but)
	if err == nil && other != "" {
		return errSaysTheSame(other)
	}
	return err
}

func errSaysTheSame(id string) error {
	return fault.New(fault.Conflict, "another memory says the same thing").With("memoryId", id)
}

// UpdateFact stores everything of m but its text, its place among the versions, and
// when it was used.
func (t factTx) UpdateFact(characterID string, m *memory.Memory) error {
	row := t.factRow(characterID, m)
	var hashes []string
	if m.Status == memory.Active {
		hashes = append(hashes, row.ContentHash)
	}
	if err := t.nobodySays(characterID, m.ID, hashes); err != nil {
		return err
	}
	err := t.UpdateOne("memory", "memories", row, []string{"id", "user_id", "character_id", "root_id", "version", "text", "hash", "first_change", "change", "last_used_at", "created_at", "model", "vector"},
		"WHERE user_id = ? AND id = ? AND character_id = ?", t.userID, m.ID, characterID)
	if err != nil {
		return err
	}
	news := t.memory.news(characterID)
	news.facts = append(news.facts, m.ID)
	return nil
}

func (t factTx) MarkFacts(characterID string, ids []string, marks memory.Marks) error {
	set, args := "updated_at = ?", []any{t.Now()}
	if marks.Pinned != nil {
		set, args = set+", is_pinned = ?", append(args, *marks.Pinned)
	}
	if marks.Locked != nil {
		set, args = set+", is_locked = ?", append(args, *marks.Locked)
	}
	if marks.Status != "" {
		set, args = set+", status = ?, superseded_by_id = NULL, ended_by = NULL", append(args, marks.Status)
	}
	n := t.memory.news(characterID)
	n.facts = append(n.facts, ids...)
	return t.characters.with(characterID).Run("UPDATE memories SET "+set+" WHERE "+ofScope+" AND id IN (?)", append(args, t.userID, characterID, ids)...)
}

func (t factTx) Known(characterID string, ids, hashes []string) ([]memory.Known, error) {
	const look = `SELECT id, hash, status FROM memories WHERE ` + ofScope + ` AND id IN (?)
		UNION ALL SELECT id, hash, status FROM memories WHERE ` + ofScope + ` AND hash IN (?)
		UNION ALL SELECT NULL, hash, 'deleted' FROM memory_tombstones WHERE ` + ofScope + ` AND hash IN (?)`
	return sqldb.All[memory.Known](t.characters.with(characterID), look, t.userID, characterID, ids, t.userID, characterID, hashes, t.userID, characterID, hashes)
}

func (t factTx) Fact(characterID, id string) (*memory.Memory, error) {
	of := func(r *factRow) *memory.Memory { m := r.memory(); return &m }
	return sqldb.Find(t.characters.with(characterID), "memory", of, selectFacts+" AND f.id = ?", t.userID, characterID, id)
}

const selectFacts = "SELECT f.* FROM memories f WHERE f.user_id = ? AND f.character_id = ?"

func (t factTx) FactVersions(characterID string, rootIDs ...string) ([]memory.Memory, error) {
	return sqldb.Map(t.characters.with(characterID), (*factRow).memory, selectFacts+" AND f.root_id IN (?) ORDER BY f.root_id, f.version",
		t.userID, characterID, rootIDs)
}

func (t factTx) FactsFrom(source string) (map[string][]string, error) {
	roots := map[string][]string{}
	note := func(r *struct{ CharacterID, RootID string }) error {
		roots[r.CharacterID] = append(roots[r.CharacterID], r.RootID)
		return nil
	}
	return roots, sqldb.Each(t, note, `SELECT DISTINCT f.character_id, f.root_id FROM memories f
		JOIN characters c ON c.user_id = f.user_id AND c.id = f.character_id AND c.deleted_at IS NULL
		WHERE f.user_id = ? AND f.source_id = ?`, t.userID, source)
}

func (t factTx) Facts(characterID string, f memory.Filter, cursor string, limit int) ([]memory.Memory, string, error) {
	query, args := selectFacts, []any{t.userID, characterID}
	more := func(wanted bool, column string, arg any) {
		if wanted {
			query, args = query+" AND f."+column+" = ?", append(args, arg)
		}
	}
	f.Status = cmp.Or(f.Status, memory.Active)
	more(f.Status != memory.AnyStatus, "status", f.Status)
	more(f.Kind != "", "kind", f.Kind)
	more(f.Subject != "", "subject", f.Subject)
	more(f.ConversationID != "", "conversation_id", f.ConversationID)
	more(f.ContentHash != "", "hash", f.ContentHash)
	more(f.Pinned != nil, "is_pinned", f.Pinned)
	more(f.Shareable, "is_shareable", true)
	return sqldb.Page(t.characters.with(characterID), (*factRow).memory, "f.id", cursor, limit, query, args...)
}

type suggestionRow struct {
	memory.Suggested
	UserID, CharacterID string
}

func (t factTx) suggestionRow(characterID string, s *memory.Suggested) *suggestionRow {
	t.fillTimes(&s.CreatedAt)
	return &suggestionRow{*s, t.userID, characterID}
}

func (t factTx) InsertSuggestion(characterID string, s *memory.Suggested) error {
	return t.characters.with(characterID).Insert("memory_suggestions", t.suggestionRow(characterID, s))
}

func (t factTx) UpdateSuggestion(characterID string, s *memory.Suggested) error {
	return t.characters.with(characterID).UpdateOne("suggestion", "memory_suggestions", t.suggestionRow(characterID, s), []string{"id", "user_id", "character_id", "created_at"},
		"WHERE user_id = ? AND id = ? AND character_id = ?", t.userID, s.ID, characterID)
}

const selectSuggestions = "SELECT * FROM memory_suggestions WHERE user_id = ? AND character_id = ?"

func (t factTx) Suggestion(characterID, id string) (*memory.Suggested, error) {
	return sqldb.Find(t.characters.with(characterID), "suggestion", func(r *suggestionRow) *memory.Suggested { return &r.Suggested },
		selectSuggestions+" AND id = ?", t.userID, characterID, id)
}

func (t factTx) Suggestions(characterID, state, cursor string, limit int) ([]memory.Suggested, string, error) {
	query, args := selectSuggestions, []any{t.userID, characterID}
	if state != "" {
		query, args = query+" AND state = ?", append(args, state)
	}
	return sqldb.Page(t.characters.with(characterID), func(r *suggestionRow) memory.Suggested { return r.Suggested }, "id", cursor, limit, query, args...)
}

func (t factTx) SuggestionKeys(characterID string) (map[string]bool, error) {
	keys := map[string]bool{}
	note := func(r *suggestionRow) error { keys[r.Key()] = true; return nil }
	return keys, sqldb.Each(t.characters.with(characterID), note, selectSuggestions, t.userID, characterID)
}

func (t factTx) Tombstones(characterID string) ([]memory.Tombstone, error) {
	return sqldb.All[memory.Tombstone](t.characters.with(characterID), "SELECT hash AS content_hash, evidence, gist, created_at FROM memory_tombstones"+
		" WHERE user_id = ? AND character_id = ? ORDER BY created_at, hash", t.userID, characterID)
}

// gistsAtOnce is how many gists a question is compared with.
const gistsAtOnce = 500

func (t factTx) Gists(characterID string, keys []string) (some bool, found []memory.Tombstone, err error) {
	s := t.characters.with(characterID)
	any, err := sqldb.All[string](s, "SELECT word FROM memory_tombstone_words WHERE "+ofScope+" LIMIT 1", t.userID, characterID)
	if err != nil || len(any) == 0 || len(keys) == 0 {
		return len(any) > 0, nil, err
	}
	found, err = sqldb.All[memory.Tombstone](s, `SELECT o.hash AS content_hash, o.evidence, o.gist, o.created_at FROM memory_tombstones o
		WHERE o.user_id = ? AND o.character_id = ? AND o.gist IS NOT NULL AND o.hash IN (SELECT w.hash FROM memory_tombstone_words w
			WHERE w.user_id = ? AND w.character_id = ? AND w.word IN (?))
		ORDER BY o.created_at DESC, o.hash LIMIT ?`, t.userID, characterID, t.userID, characterID, keys, gistsAtOnce)
	return true, found, err
}

// PutTombstone stores one. Where there is one of that content it forbids both
// evidences. The texts that it buries leave the search.
func (t factTx) PutTombstone(characterID string, o memory.Tombstone) error {
	known, err := sqldb.Value[[]memory.Evidence](t.characters.with(characterID), "SELECT evidence FROM memory_tombstones WHERE user_id = ? AND character_id = ? AND hash = ?",
		t.userID, characterID, o.ContentHash)
	if err != nil {
		return err
	}
	revisions := make([]string, len(o.Evidence))
	for i, e := range o.Evidence {
		revisions[i] = e.RevisionID
		if !slices.Contains(known, e) {
			known = append(known, e)
		}
	}
	if err := t.texts.bury(characterID, o.ContentHash, revisions); err != nil {
		return err
	}
	t.fillTimes(&o.CreatedAt)
	err = t.Run(`INSERT INTO memory_tombstones (user_id, character_id, hash, evidence, gist, created_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (user_id, character_id, hash) DO UPDATE SET evidence = EXCLUDED.evidence, created_at = EXCLUDED.created_at,
			gist = COALESCE(EXCLUDED.gist, memory_tombstones.gist)`,
		sqldb.ID(t.userID), sqldb.ID(characterID), o.ContentHash, known, o.Gist, o.CreatedAt)
	if err != nil || o.Gist == nil {
		return err
	}
	for _, key := range o.Gist.Keys() {
		err = cmp.Or(err, t.Run("INSERT INTO memory_tombstone_words (user_id, character_id, word, hash) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			sqldb.ID(t.userID), sqldb.ID(characterID), key, o.ContentHash))
	}
	return err
}
