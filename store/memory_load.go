package store

import (
	"maps"
	"slices"
	"strings"
	"time"

	"nodest/fault"
	"nodest/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/store/sqldb"
)

// counts is a condition on a fact that can count somewhere. One that the user
// retired has nobody who ended it.
func counts(table string) string {
	return strings.ReplaceAll("(@.status IN ('active', 'superseded') OR @.status = 'retired' AND @.ended_by IS NOT NULL)", "@", table)
}

// MemoryChanges reads the texts and the facts of a scope that changed, with plain
// scans: an index of a long life is loaded on the way of a message.
func (t *tx) MemoryChanges(characterID string, since, base int64, limit int) (*memory.Changes, error) {
	at, err := t.scope(characterID)
	if err != nil {
		return nil, err
	}
	c := &memory.Changes{Version: at.Version, Base: at.WholeVersion, Whole: base != at.WholeVersion || since > at.Version || since <= 0}
	if c.Whole {
		since = 0
	}
	if at.Version == since {
		return c, nil
	}
	if limit > 0 {
		if c.Version, err = t.versionAfter(characterID, since, limit, at.Version); err != nil {
			return nil, err
		}
		c.More = c.Version < at.Version
	}
	if err := t.changedTexts(c, characterID, since); err != nil {
		return nil, err
	}
	if err := t.changedFacts(c, characterID, since); err != nil {
		return nil, err
	}
	if c.Whole {
		c.Gone = nil
	}
	return c, t.addVectors(c, characterID)
}

// versionAfter returns the version by which limit texts, or limit facts, have changed since; last
// if there are fewer.
func (t *tx) versionAfter(characterID string, since int64, limit int, last int64) (int64, error) {
	for _, table := range []string{"memory_texts", "memories"} {
		found, err := sqldb.All[int64](t, "SELECT change FROM "+table+" WHERE "+ofScope+" AND change > ? ORDER BY change LIMIT 1 OFFSET ?",
			t.userID, characterID, since, limit-1)
		if err != nil {
			return 0, err
		}
		for _, version := range found {
			last = min(last, version)
		}
	}
	return last, nil
}

// textUnit is a text with what its unit is made of.
type textUnit struct {
	memory.Unit `db:"ID=revision_id Version=change Conversation=conversation_id Order=seq Speaker=role At=said_at"`
	MessageID   string
	IsForgotten bool
}

func (t *tx) changedTexts(c *memory.Changes, characterID string, since int64) error {
	ids, err := sqldb.All[string](t, "SELECT id FROM conversations WHERE user_id = ? AND character_id = ? AND deleted_at IS NOT NULL", t.userID, characterID)
	if err != nil {
		return err
	}
	deleted := setOf(ids) // those that are being loaded too
	buried, err := t.buried(characterID)
	if err != nil {
		return err
	}
	where := ""
	if c.Whole {
		where = " AND NOT t.is_forgotten"
	}
	return sqldb.Each(t, func(u *textUnit) error {
		switch {
		case deleted[u.Conversation]:
			return nil
		case u.IsForgotten || buried[u.ID] || buried[u.Hash]:
			c.Gone = append(c.Gone, u.ID)
			return nil
		}
		u.Layer, u.Text = memory.Exchange, memory.Clean(u.Speaker, u.Text)
		u.Evidence = []memory.Evidence{{ConversationID: u.Conversation, MessageID: u.MessageID, RevisionID: u.ID, Seq: u.Order}}
		c.Units = append(c.Units, u.Unit)
		return nil
	}, `SELECT t.revision_id, t.conversation_id, t.message_id, t.seq, t.session, t.role, t.name, t.terms, t.hash,
			t.change, t.said_at, t.is_forgotten, r.text
		FROM memory_texts t CROSS JOIN revisions r
		WHERE t.user_id = ? AND t.character_id = ? AND t.change > ? AND t.change <= ?
			AND r.user_id = t.user_id AND r.id = t.revision_id`+where,
		t.userID, characterID, since, c.Version)
}

// factUnit is a fact with what its unit is made of.
type factUnit struct {
	memory.Unit       `db:"Root=root_id Version=change Conversation=conversation_id Pinned=is_pinned At=last_seen_at ByHand=is_locked Shareable=is_shareable"`
	EventTime         *time.Time
	Subject           lang.Subject
	Kind              lang.Kind
	Retired, Searched bool
}

func (t *tx) changedFacts(c *memory.Changes, characterID string, since int64) error {
	return sqldb.Each(t, func(u *factUnit) error {
		// What the user retired is not searched, but it shows that its sources no longer hold.
		if !u.Searched && u.Retired && len(u.Evidence) > 0 {
			u.Text, u.Terms, u.Hash, u.Pinned = "", "", "", false
		} else if !u.Searched {
			c.Gone = append(c.Gone, u.ID)
			return nil
		}
		u.Layer = memory.Fact
		if u.EventTime != nil {
			u.At = *u.EventTime
		}
		for _, e := range u.Evidence {
			if !slices.Contains(u.Sources, e.RevisionID) {
				u.Sources = append(u.Sources, e.RevisionID)
			}
		}
		u.ByHand = u.ByHand || u.Origin == memory.ByUser
		u.Profile = u.Searched && memory.ForProfile(&memory.Memory{
			Text: u.Text, Pinned: u.Pinned, Subject: u.Subject, Kind: u.Kind, Origin: u.Origin,
		})
		c.Units = append(c.Units, u.Unit)
		return nil
	}, `SELECT f.id, f.root_id, f.conversation_id, f.text, f.terms, f.hash, f.change, f.event_time, f.last_seen_at, f.importance,
			f.is_pinned, f.subject, f.kind, f.origin, f.is_locked, f.is_shareable, f.status = 'retired' AS retired, f.evidence, `+counts("f")+` AS searched
		FROM memories f WHERE f.user_id = ? AND f.character_id = ? AND f.change > ? AND f.change <= ?`,
		t.userID, characterID, since, c.Version)
}

// buried are the texts that facts were taken from which the user had purged, by
// revision, and their words, by hash. They stay in the chat, and as evidence of other
// facts, but are not searched.
func (t *tx) buried(characterID string) (map[string]bool, error) {
	tombstones, err := t.Tombstones(characterID)
	gone := make(map[string]bool, 2*len(tombstones))
	for _, o := range tombstones {
		gone[o.ContentHash] = true
		for _, e := range o.Evidence {
			gone[e.RevisionID] = true
		}
	}
	return gone, err
}

// vectorRow is the vector of a content by a model.
type vectorRow struct {
	UserID, CharacterID, Hash, Model string
	Vector                           index.Packed
}

// addVectors gives units their vectors. Units of equal contents share them.
func (t *tx) addVectors(c *memory.Changes, characterID string) error {
	if len(c.Units) == 0 {
		return nil
	}
	query, args := "SELECT hash, model, vector FROM memory_vectors WHERE "+ofScope, []any{t.userID, characterID}
	if !c.Whole || c.More {
		hashes := make([]string, len(c.Units))
		for i, u := range c.Units {
			hashes[i] = u.Hash
		}
		slices.Sort(hashes)
		query, args = query+" AND hash IN (?)", append(args, slices.Compact(hashes))
	}
	vectors := make(map[string][]index.Kept, len(c.Units))
	model := ""
	err := sqldb.Each(t, func(r *vectorRow) error {
		if model != r.Model { // few models, many vectors: one string for all
			model = r.Model
		}
		vectors[r.Hash] = append(vectors[r.Hash], index.Kept{Model: model, Packed: r.Vector})
		return nil
	}, query, args...)
	for i := range c.Units {
		c.Units[i].Vectors = vectors[c.Units[i].Hash]
	}
	return err
}

// withoutVector is a condition on a text or fact; its argument is the model. It looks up one key
// per row: PostgreSQL turns a NOT EXISTS into a join, for which, as long as it has no statistics,
// it compares each row with all vectors of the character.
func withoutVector(table string) string {
	return strings.ReplaceAll("(SELECT v.model FROM memory_vectors v WHERE v.user_id = @.user_id"+
		" AND v.character_id = @.character_id AND v.hash = @.hash AND v.model = ?) IS NULL", "@", table)
}

// WithoutVector returns contents without a vector of a model, each once.
func (t *tx) WithoutVector(characterID, model string, limit int) ([]memory.Content, error) {
	limit = sqldb.Length(limit)
	seen := map[string]bool{}
	out := []memory.Content{}
	err := sqldb.Each(t.withCharacter(characterID), func(r *struct {
		Hash, Text string
		Role       lang.Role // "" of a fact
	},
	) error {
		if seen[r.Hash] {
			return nil
		}
		if r.Role != "" {
			r.Text = memory.Clean(r.Role, r.Text)
		}
		seen[r.Hash], out = true, append(out, memory.Content{Hash: r.Hash, Text: r.Text})
		return nil
	}, `SELECT t.hash, t.text, '' AS role FROM memories t WHERE t.user_id = ? AND t.id IN (SELECT MIN(t.id) FROM memories t
			WHERE t.user_id = ? AND t.character_id = ? AND `+counts("t")+` AND `+withoutVector("t")+` GROUP BY t.hash LIMIT ?)
		UNION ALL
		SELECT t.hash, r.text, t.role FROM memory_texts t JOIN revisions r ON r.user_id = t.user_id AND r.id = t.revision_id
		WHERE t.user_id = ? AND t.revision_id IN (SELECT MIN(t.revision_id) FROM memory_texts t
			WHERE t.user_id = ? AND t.character_id = ? AND t.hash <> '' AND `+withoutVector("t")+` GROUP BY t.hash LIMIT ?)
		LIMIT ?`,
		t.userID, t.userID, characterID, model, limit, t.userID, t.userID, characterID, model, limit, limit)
	return out, err
}

// PutVectors stores vectors of contents that are there.
func (t *tx) PutVectors(characterID, model string, vectors map[string][]float32) error {
	if err := t.LockMemory(characterID); err != nil || len(vectors) == 0 {
		return err
	}
	wanted := slices.Sorted(maps.Keys(vectors))
	hashes, err := sqldb.All[string](t, "SELECT hash FROM memory_texts WHERE "+ofScope+" AND hash IN (?)"+
		" UNION SELECT hash FROM memories WHERE "+ofScope+" AND hash IN (?)", t.userID, characterID, wanted, t.userID, characterID, wanted)
	if err != nil {
		return err
	}
	if _, err := t.Exec("DELETE FROM memory_vectors WHERE "+ofScope+" AND hash IN (?)", t.userID, characterID, hashes); err != nil {
		return err
	}
	rows := make([]vectorRow, len(hashes))
	for i, hash := range hashes {
		packed := index.Pack(vectors[hash])
		if packed == nil {
			return fault.New(fault.UpstreamBadAnswer, "an embedding of %s contains only zeros", model)
		}
		rows[i] = vectorRow{t.userID, characterID, hash, model, packed}
	}
	n := t.news(characterID)
	n.hashes = append(n.hashes, hashes...)
	return t.Insert("memory_vectors", rows)
}
