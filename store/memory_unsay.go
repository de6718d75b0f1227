package store

import (
	"database/sql"
	"maps"
	"slices"

	"nodest/memory"
)

// unsay removes what the memories of a user have of messages that maintenance
// removes: their texts, what was suggested because of them, and the facts that rest
// on nothing else.
func (s *session) unsay(userID string, messageIDs []string) error {
	in, which := among(messageIDs)
	var rows []struct{ RevisionID, CharacterID, Hash string }
	_, err := s.scan(s.raw("DELETE FROM memory_texts WHERE user_id = ? AND message_id "+in+" RETURNING revision_id, character_id, hash",
		text(userID), which), &rows)
	if err != nil {
		return err
	}
	type gone struct{ revisions, hashes []string }
	scopes := map[string]gone{} // by character
	for _, row := range rows {
		g := scopes[row.CharacterID]
		scopes[row.CharacterID] = gone{append(g.revisions, row.RevisionID), append(g.hashes, row.Hash)}
	}
	for _, characterID := range slices.Sorted(maps.Keys(scopes)) { // as locks are taken
		g := scopes[characterID]
		if err := s.unsayOf(memory.Scope{UserID: userID, CharacterID: characterID}, g.revisions, g.hashes); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) unsayOf(scope memory.Scope, revisions, hashes []string) error {
	if err := s.dropUses(scope.UserID, revisions); err != nil {
		return err
	}
	if err := s.dropVectors(scope.UserID, scope.CharacterID, hashes); err != nil {
		return err
	}
	if err := s.dropSuggestions(scope.UserID, scope.CharacterID, revisions, nil); err != nil {
		return err
	}
	roots, err := s.baseless(scope, revisions)
	if err != nil {
		return err
	}
	if _, err := s.purgeRoots(scope.UserID, scope.CharacterID, roots); err != nil {
		return err
	}
	_, _, err = s.raise(scope.UserID, scope.CharacterID, true)
	return err
}

// baseless returns the facts of a scope that rested on some of these texts and can
// hold no more: no version has a sighting of which all texts are left.
func (s *session) baseless(scope memory.Scope, gone []string) ([]string, error) {
	facts, err := s.restingOn(scope, gone)
	if err != nil {
		return nil, err
	}
	var revisions []string
	for _, versions := range facts {
		for _, m := range versions {
			for _, e := range m.Evidence {
				revisions = append(revisions, e.RevisionID)
			}
		}
	}
	slices.Sort(revisions)
	left := map[string]bool{}
	for part := range slices.Chunk(slices.Compact(revisions), 500) {
		in, which := among(part)
		var ids []string
		if _, err := s.scan(s.raw("SELECT revision_id FROM memory_texts WHERE user_id = ? AND revision_id "+in,
			text(scope.UserID), which), &ids); err != nil {
			return nil, err
		}
		for _, id := range ids {
			left[id] = true
		}
	}
	var roots []string
	for root, versions := range facts {
		holds := func(m memory.Memory) bool {
			return m.Holds(func(e memory.Evidence) bool { return left[e.RevisionID] })
		}
		if !slices.ContainsFunc(versions, holds) {
			roots = append(roots, root)
		}
	}
	return roots, nil
}

// restingOn returns all versions, with nothing but their evidence, of those facts of a
// scope that rest on some of these texts, by root.
func (s *session) restingOn(scope memory.Scope, revisions []string) (map[string][]memory.Memory, error) {
	facts, rests := map[string][]memory.Memory{}, map[string]bool{}
	these := make(map[string]bool, len(revisions))
	for _, id := range revisions {
		these[id] = true
	}
	err := s.rows("SELECT root_id, evidence FROM memories WHERE user_id = ? AND character_id = ?",
		[]any{text(scope.UserID), text(scope.CharacterID)}, func(rows *sql.Rows) error {
			var root string
			var evidence document
			if err := rows.Scan(&root, &evidence); err != nil {
				return err
			}
			var m memory.Memory
			if err := decode(evidence, &m.Evidence); err != nil {
				return err
			}
			for _, e := range m.Evidence {
				rests[root] = rests[root] || these[e.RevisionID]
			}
			facts[root] = append(facts[root], m)
			return nil
		})
	for root := range facts {
		if !rests[root] {
			delete(facts, root)
		}
	}
	return facts, err
}
