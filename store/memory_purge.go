package store

import (
	"slices"

	"nodest/memory"
)

// PurgeFacts removes facts in all versions and everything that was made of them.
func (t *tx) PurgeFacts(characterID string, rootIDs ...string) error {
	if err := t.LockMemory(characterID); err != nil {
		return err
	}
	gone, err := t.purgeRoots(t.userID, characterID, rootIDs)
	if gone {
		t.news(characterID).whole = true
	}
	return err
}

// purgeRoots is PurgeFacts for the server too; gone says that there was one.
func (s *session) purgeRoots(userID, characterID string, rootIDs []string) (gone bool, err error) {
	for part := range slices.Chunk(rootIDs, 200) {
		in, which := among(part)
		var rows []struct{ ID, Hash string }
		_, err := s.scan(s.raw("DELETE FROM memories WHERE "+ofScope+" AND root_id "+in+" RETURNING id, hash",
			text(userID), text(characterID), which), &rows)
		if err != nil {
			return gone, err
		}
		var hashes []string
		for some := range slices.Chunk(rows, 500) {
			ids := make([]string, len(some))
			for i, row := range some {
				ids[i], hashes = row.ID, append(hashes, row.Hash)
			}
			in, which := among(ids)
			_, err := s.exec(s.raw("DELETE FROM memory_suggestions WHERE user_id = ? AND memory_id "+in, text(userID), which))
			if err != nil {
				return gone, err
			}
			if err := s.dropUses(userID, ids); err != nil {
				return gone, err
			}
			if err := s.dropReplies(userID, ids); err != nil {
				return gone, err
			}
		}
		gone = gone || len(rows) > 0
		if err := s.dropSuggestions(userID, characterID, nil, hashes); err != nil {
			return gone, err
		}
		if err := s.dropVectors(userID, characterID, hashes); err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// dropUses removes the notes that units were sent.
func (s *session) dropUses(userID string, unitIDs []string) error {
	for part := range slices.Chunk(unitIDs, 500) {
		in, which := among(part)
		if _, err := s.exec(s.raw("DELETE FROM memory_uses WHERE user_id = ? AND unit_id "+in, text(userID), which)); err != nil {
			return err
		}
	}
	return nil
}

// dropVectors removes the vectors of contents that no row of the scope has any more.
func (s *session) dropVectors(userID, characterID string, hashes []string) error {
	for part := range slices.Chunk(hashes, 500) {
		in, which := among(part)
		_, err := s.exec(s.raw("DELETE FROM memory_vectors WHERE user_id = ? AND character_id = ? AND hash "+in+`
				AND NOT EXISTS (SELECT 1 FROM memory_texts t WHERE t.user_id = memory_vectors.user_id
					AND t.character_id = memory_vectors.character_id AND t.hash = memory_vectors.hash)
				AND NOT EXISTS (SELECT 1 FROM memories f WHERE f.user_id = memory_vectors.user_id
					AND f.character_id = memory_vectors.character_id AND f.hash = memory_vectors.hash)`,
			text(userID), text(characterID), which))
		if err != nil {
			return err
		}
	}
	return nil
}

// ForgetTexts takes texts out of the memory, and the suggestions that were made of
// them. What stays of each is that it was forgotten, so that no copy of the chat
// brings it back.
func (t *tx) ForgetTexts(characterID string, revisionIDs ...string) error {
	if err := t.LockMemory(characterID); err != nil {
		return err
	}
	for part := range slices.Chunk(revisionIDs, 500) {
		in, which := among(part)
		of := []any{text(t.userID), text(characterID), which}
		var rows []struct{ RevisionID, Hash string }
		_, err := t.scan(t.raw("SELECT revision_id, hash FROM memory_texts WHERE "+ofScope+
			" AND NOT is_forgotten AND revision_id "+in, of...), &rows)
		if err != nil {
			return err
		}
		_, err = t.exec(t.raw("UPDATE memory_texts SET is_forgotten = TRUE, is_read = TRUE, terms = '', hash = '', name = ''"+
			" WHERE "+ofScope+" AND NOT is_forgotten AND revision_id "+in, of...))
		if err != nil {
			return err
		}
		if err := t.dropUses(t.userID, part); err != nil {
			return err
		}
		var hashes []string
		for _, row := range rows {
			n := t.news(characterID)
			n.texts, hashes = append(n.texts, row.RevisionID), append(hashes, row.Hash)
		}
		if err := t.dropVectors(t.userID, characterID, hashes); err != nil {
			return err
		}
	}
	return t.dropSuggestions(t.userID, characterID, revisionIDs, nil)
}

// PurgeScope empties the memory of a scope.
func (t *tx) PurgeScope(characterID string) (facts, texts int, err error) {
	if err := t.LockMemory(characterID); err != nil {
		return 0, 0, err
	}
	of := []any{text(t.userID), text(characterID)}
	_, err = t.scan(t.raw("SELECT COUNT(DISTINCT root_id) FROM memories WHERE user_id = ? AND character_id = ?", of...), &facts)
	if err != nil {
		return 0, 0, err
	}
	_, err = t.scan(t.raw("SELECT COUNT(*) FROM memory_texts WHERE user_id = ? AND character_id = ? AND NOT is_forgotten", of...), &texts)
	if err != nil {
		return 0, 0, err
	}
	var told []string
	_, err = t.scan(t.raw("SELECT id FROM memories WHERE user_id = ? AND character_id = ?"+
		" UNION ALL SELECT id FROM memory_suggestions WHERE user_id = ? AND character_id = ?", append(of, of...)...), &told)
	if err != nil {
		return 0, 0, err
	}
	if err := t.dropReplies(t.userID, told); err != nil {
		return 0, 0, err
	}
	t.news(characterID).whole = true
	const units = "DELETE FROM memory_uses WHERE user_id = ? AND unit_id IN "
	for _, statement := range []struct {
		query string
		args  []any
	}{
		{units + "(SELECT id FROM memories WHERE user_id = ? AND character_id = ?)", append([]any{text(t.userID)}, of...)},
		{units + "(SELECT revision_id FROM memory_texts WHERE user_id = ? AND character_id = ?)", append([]any{text(t.userID)}, of...)},
		{"DELETE FROM memory_suggestions WHERE user_id = ? AND character_id = ?", of},
		{"DELETE FROM memory_tombstones WHERE user_id = ? AND character_id = ?", of},
		{"DELETE FROM memory_vectors WHERE user_id = ? AND character_id = ?", of},
		{"DELETE FROM memories WHERE user_id = ? AND character_id = ?", of},
		{"DELETE FROM memory_texts WHERE user_id = ? AND character_id = ?", of},
	} {
		if _, err := t.exec(t.raw(statement.query, statement.args...)); err != nil {
			return 0, 0, err
		}
	}
	return facts, texts, nil
}

// Tombstones returns those of a scope, oldest first.
func (t *tx) Tombstones(characterID string) ([]memory.Tombstone, error) {
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	var rows []struct {
		Hash      string
		Evidence  document
		CreatedAt int64
	}
	_, err := t.scan(t.raw("SELECT hash, evidence, created_at FROM memory_tombstones WHERE user_id = ? AND character_id = ?"+
		" ORDER BY created_at, hash", text(t.userID), text(characterID)), &rows)
	if err != nil {
		return nil, err
	}
	items := make([]memory.Tombstone, len(rows))
	for i, row := range rows {
		items[i] = memory.Tombstone{ContentHash: row.Hash, CreatedAt: moment(row.CreatedAt)}
		if err := decode(row.Evidence, &items[i].Evidence); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// PutTombstone stores one. Where there is one of that content it forbids both
// evidences.
func (t *tx) PutTombstone(characterID string, o memory.Tombstone) error {
	if err := t.writable(); err != nil {
		return err
	}
	if err := t.ownsCharacter(characterID); err != nil {
		return err
	}
	var before document
	_, err := t.scan(t.raw("SELECT evidence FROM memory_tombstones WHERE user_id = ? AND character_id = ? AND hash = ?",
		text(t.userID), text(characterID), text(o.ContentHash)), &before)
	if err != nil {
		return err
	}
	var known []memory.Evidence
	if err := decode(before, &known); err != nil {
		return err
	}
	for _, e := range o.Evidence {
		if !slices.Contains(known, e) {
			known = append(known, e)
		}
	}
	evidence, err := encodeList(known)
	if err != nil {
		return err
	}
	t.fillTimes(&o.CreatedAt)
	_, err = t.exec(t.raw(`INSERT INTO memory_tombstones (user_id, character_id, hash, evidence, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (user_id, character_id, hash) DO UPDATE SET evidence = EXCLUDED.evidence, created_at = EXCLUDED.created_at`,
		text(t.userID), text(characterID), text(o.ContentHash), evidence, millis(o.CreatedAt)))
	return err
}
