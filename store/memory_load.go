package store

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nodest/fault"
	"nodest/index"
	"nodest/memory"
	"nodest/memory/lang"
)

// counts is a condition on a fact that can count somewhere. One that the user
// retired has nobody who ended it.
func counts(table string) string {
	return strings.ReplaceAll("(@.status IN ('active', 'superseded') OR @.status = 'retired' AND @.ended_by IS NOT NULL)", "@", table)
}

// MemoryChanges reads the texts and the facts of a scope that changed, with plain
// scans: an index of a long life is loaded on the way of a message.
func (t *tx) MemoryChanges(characterID string, since int64) (*memory.Changes, error) {
	version, whole, err := t.scope(characterID)
	if err != nil {
		return nil, err
	}
	c := &memory.Changes{Version: version, Whole: since < whole || since > version || since <= 0}
	if c.Whole {
		since = 0
	}
	if version == since {
		return c, nil
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

// rows runs a query and calls scan for each row. Within it there are no other
// statements.
func (s *session) rows(query string, args []any, scan func(*sql.Rows) error) error {
	if err := s.ready(); err != nil {
		return err
	}
	var rows *sql.Rows
	var err error
	if s.binds == nil || slices.ContainsFunc(args, isSQL) {
		rows, err = s.db.QueryContext(s.ctx, query, args...)
	} else {
		rows, err = s.binds.QueryContext(s.ctx, query, args...)
	}
	if err != nil {
		return s.fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return s.fail(err)
		}
	}
	if err := rows.Err(); err != nil {
		return s.fail(err)
	}
	return nil
}

func (t *tx) changedTexts(c *memory.Changes, characterID string, since int64) error {
	deleted := map[string]bool{} // conversations; those that are being loaded too
	err := t.rows("SELECT id FROM conversations WHERE user_id = ? AND character_id = ? AND deleted_at IS NOT NULL",
		[]any{text(t.userID), text(characterID)}, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			deleted[id] = true
			return err
		})
	if err != nil {
		return err
	}
	buried, err := t.buried(characterID)
	if err != nil {
		return err
	}
	where := ""
	if c.Whole {
		where = " AND NOT t.is_forgotten"
	}
	return t.rows(`SELECT t.revision_id, t.conversation_id, t.message_id, t.seq, t.session, t.role, t.name, t.terms, t.hash,
			t.change, t.said_at, t.is_forgotten, r.text
		FROM memory_texts t CROSS JOIN revisions r
		WHERE t.user_id = ? AND t.character_id = ? AND t.change > ? AND r.user_id = t.user_id AND r.id = t.revision_id`+where,
		[]any{text(t.userID), text(characterID), since}, func(rows *sql.Rows) error {
			var u memory.Unit
			var e memory.Evidence
			var name, terms, words text
			var at int64
			var forgotten bool
			err := rows.Scan(&u.ID, &e.ConversationID, &e.MessageID, &e.Seq, &u.Session, &u.Speaker, &name, &terms, &u.Hash,
				&u.Version, &at, &forgotten, &words)
			if err != nil {
				return err
			}
			if deleted[e.ConversationID] {
				return nil
			}
			if forgotten || buried[u.ID] || buried[u.Hash] {
				c.Gone = append(c.Gone, u.ID)
				return nil
			}
			e.RevisionID = u.ID
			u.Layer, u.Conversation, u.Order, u.At = memory.Exchange, e.ConversationID, e.Seq, moment(at)
			u.Name, u.Terms, u.Text = string(name), string(terms), memory.Clean(u.Speaker, string(words))
			u.Evidence = []memory.Evidence{e}
			c.Units = append(c.Units, u)
			return nil
		})
}

func (t *tx) changedFacts(c *memory.Changes, characterID string, since int64) error {
	return t.rows(`SELECT f.id, f.root_id, f.conversation_id, f.text, f.terms, f.hash, f.change, f.event_time, f.last_seen_at,
			f.importance, f.is_pinned, f.subject, f.kind, f.origin, f.is_locked, f.status = 'retired', f.evidence, `+counts("f")+`
		FROM memories f WHERE f.user_id = ? AND f.character_id = ? AND f.change > ?`,
		[]any{text(t.userID), text(characterID), since}, func(rows *sql.Rows) error {
			u := memory.Unit{Layer: memory.Fact}
			var words, terms, subject, kind, origin text
			var evidence document
			var event *int64
			var seen int64
			var retired, searched bool
			err := rows.Scan(&u.ID, &u.Root, &u.Conversation, &words, &terms, &u.Hash, &u.Version, &event, &seen,
				&u.Importance, &u.Pinned, &subject, &kind, &origin, &u.ByHand, &retired, &evidence, &searched)
			if err != nil {
				return err
			}
			// What the user retired is not searched, but it shows that its sources no longer hold.
			if !searched && retired && evidence != nil {
				words, terms, u.Hash, u.Pinned = "", "", "", false
			} else if !searched {
				c.Gone = append(c.Gone, u.ID)
				return nil
			}
			if evidence != nil {
				if err := json.Unmarshal(evidence, &u.Evidence); err != nil {
					return fmt.Errorf("evidence of %s: %w", u.ID, err)
				}
			}
			if u.At = moment(seen); event != nil {
				u.At = *momentOrNil(event)
			}
			for _, e := range u.Evidence {
				if !slices.Contains(u.Sources, e.RevisionID) {
					u.Sources = append(u.Sources, e.RevisionID)
				}
			}
			u.Text, u.Terms, u.Origin = string(words), string(terms), memory.Origin(origin)
			u.ByHand = u.ByHand || u.Origin == memory.ByUser
			u.Profile = searched && memory.ForProfile(&memory.Memory{
				Text: u.Text, Pinned: u.Pinned, Subject: lang.Subject(subject), Kind: lang.Kind(kind), Origin: memory.Origin(origin),
			})
			c.Units = append(c.Units, u)
			return nil
		})
}

// buried are the texts that facts were taken from which the user had purged, by
// revision, and their words, by hash. They stay in the chat, and as evidence of other
// facts, but are not searched.
func (t *tx) buried(characterID string) (map[string]bool, error) {
	tombstones, err := t.Tombstones(characterID)
	if err != nil {
		return nil, err
	}
	gone := make(map[string]bool, 2*len(tombstones))
	for _, o := range tombstones {
		gone[o.ContentHash] = true
		for _, e := range o.Evidence {
			gone[e.RevisionID] = true
		}
	}
	return gone, nil
}

// addVectors gives units their vectors. Units of equal contents share them.
func (t *tx) addVectors(c *memory.Changes, characterID string) error {
	if len(c.Units) == 0 {
		return nil
	}
	vectors := make(map[string][]index.Kept, len(c.Units))
	read := func(where string, args ...any) error {
		model := ""
		return t.rows("SELECT hash, model, vector FROM memory_vectors WHERE user_id = ? AND character_id = ?"+where,
			append([]any{text(t.userID), text(characterID)}, args...), func(rows *sql.Rows) error {
				var hash string
				var of text
				var blob sql.RawBytes
				if err := rows.Scan(&hash, &of, &blob); err != nil {
					return err
				}
				if model != string(of) { // few models, many vectors: one string for all
					model = string(of)
				}
				vectors[hash] = append(vectors[hash], index.Kept{Model: model, Packed: bytes.Clone(blob)})
				return nil
			})
	}
	if c.Whole {
		if err := read(""); err != nil {
			return err
		}
	} else {
		hashes := make([]string, len(c.Units))
		for i, u := range c.Units {
			hashes[i] = u.Hash
		}
		slices.Sort(hashes)
		for part := range slices.Chunk(slices.Compact(hashes), 500) {
			in, which := t.anyOf(part)
			if err := read(" AND hash "+in, which); err != nil {
				return err
			}
		}
	}
	for i := range c.Units {
		c.Units[i].Vectors = vectors[c.Units[i].Hash]
	}
	return nil
}

// withoutVector is a condition on a text or fact; its argument is the model.
func withoutVector(table string) string {
	return strings.ReplaceAll("NOT EXISTS (SELECT 1 FROM memory_vectors v WHERE v.user_id = @.user_id"+
		" AND v.character_id = @.character_id AND v.hash = @.hash AND v.model = ?)", "@", table)
}

// WithoutVector returns contents without a vector of a model, each once.
func (t *tx) WithoutVector(characterID, model string, limit int) ([]memory.Content, error) {
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	limit = pageLength(limit)
	out, seen := []memory.Content{}, map[string]bool{}
	add := func(hash, words string) {
		if !seen[hash] && len(out) < limit {
			seen[hash] = true
			out = append(out, memory.Content{Hash: hash, Text: words})
		}
	}
	err := t.rows(`SELECT t.hash, t.text FROM memories t WHERE t.user_id = ? AND t.id IN (SELECT MIN(t.id) FROM memories t
			WHERE t.user_id = ? AND t.character_id = ? AND `+counts("t")+` AND `+withoutVector("t")+` GROUP BY t.hash LIMIT ?)`,
		[]any{text(t.userID), text(t.userID), text(characterID), text(model), limit}, func(rows *sql.Rows) error {
			var hash string
			var words text
			err := rows.Scan(&hash, &words)
			add(hash, string(words))
			return err
		})
	if err != nil || len(out) == limit {
		return out, err
	}
	err = t.rows(`SELECT t.hash, t.role, r.text FROM memory_texts t JOIN revisions r ON r.user_id = t.user_id AND r.id = t.revision_id
		WHERE t.user_id = ? AND t.revision_id IN (SELECT MIN(t.revision_id) FROM memory_texts t
			WHERE t.user_id = ? AND t.character_id = ? AND t.hash <> '' AND `+withoutVector("t")+` GROUP BY t.hash LIMIT ?)`,
		[]any{text(t.userID), text(t.userID), text(characterID), text(model), limit}, func(rows *sql.Rows) error {
			var hash, role string
			var words text
			err := rows.Scan(&hash, &role, &words)
			add(hash, memory.Clean(lang.Role(role), string(words)))
			return err
		})
	return out, err
}

// PutVectors stores vectors of contents that are there.
func (t *tx) PutVectors(characterID, model string, vectors map[string][]float32) error {
	if err := t.LockMemory(characterID); err != nil || len(vectors) == 0 {
		return err
	}
	hashes := make([]string, 0, len(vectors))
	for hash := range vectors {
		hashes = append(hashes, hash)
	}
	slices.Sort(hashes)
	for part := range slices.Chunk(hashes, 200) {
		there, err := t.contents(characterID, part)
		if err != nil {
			return err
		}
		if err := t.putVectors(characterID, model, there, vectors); err != nil {
			return err
		}
	}
	return nil
}

// contents returns those of hashes that a text or a fact has.
func (t *tx) contents(characterID string, hashes []string) (there []string, err error) {
	in, which := among(hashes)
	of := []any{text(t.userID), text(characterID), which}
	_, err = t.scan(t.raw("SELECT hash FROM memory_texts WHERE user_id = ? AND character_id = ? AND hash "+in+
		" UNION SELECT hash FROM memories WHERE user_id = ? AND character_id = ? AND hash "+in, append(of, of...)...), &there)
	return there, err
}

func (t *tx) putVectors(characterID, model string, hashes []string, vectors map[string][]float32) error {
	if len(hashes) == 0 {
		return nil
	}
	in, which := among(hashes)
	_, err := t.exec(t.raw("DELETE FROM memory_vectors WHERE user_id = ? AND character_id = ? AND hash "+in,
		text(t.userID), text(characterID), which))
	if err != nil {
		return err
	}
	args := make([]any, 0, 5*len(hashes))
	for _, hash := range hashes {
		packed := index.Pack(vectors[hash])
		if packed == nil {
			return fault.New(fault.UpstreamBadAnswer, "an embedding of %s contains only zeros", model)
		}
		args = append(args, text(t.userID), text(characterID), text(hash), text(model), []byte(packed))
	}
	n := t.news(characterID)
	n.hashes = append(n.hashes, hashes...)
	_, err = t.exec(t.raw("INSERT INTO memory_vectors (user_id, character_id, hash, model, vector) "+values(5, len(args)), args...))
	return err
}
