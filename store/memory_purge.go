package store

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"nodest/memory"
	"nodest/memory/lang"
	"nodest/store/sqldb"
)

func (t factTx) PurgeFacts(characterID string, rootIDs ...string) error {
	if err := t.memory.LockMemory(characterID); err != nil {
		return err
	}
	gone, err := t.purgeRoots(memory.Scope{UserID: t.userID, CharacterID: characterID}, rootIDs)
	t.memory.noteGone(characterID, gone)
	return err
}

// lived is the changes from the one that added a row to its last one. A segment whose range has
// one of them may contain the words of the row.
type lived struct{ FirstChange, Change int64 }

// noteGone notes that words of rows were removed for good.
func (t *memoryTx) noteGone(characterID string, gone []lived) {
	if len(gone) > 0 {
		n := t.news(characterID)
		n.gone = append(n.gone, gone...)
	}
}

// each runs statements that all have the same arguments.
func (s *session) each(statements []string, args ...any) error {
	for _, statement := range statements {
		if _, err := s.Exec(statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// purgeRoots is PurgeFacts for the server too; gone is the rows that there were.
func (s *session) purgeRoots(scope memory.Scope, rootIDs []string) (gone []lived, err error) {
	var ids, hashes []string
	note := func(r *struct {
		ID, Hash string
		lived
	},
	) error {
		ids, hashes, gone = append(ids, r.ID), append(hashes, r.Hash), append(gone, r.lived)
		return nil
	}
	err = sqldb.Each(s, note, "DELETE FROM memories WHERE "+ofScope+" AND root_id IN (?) RETURNING id, hash, first_change, change",
		scope.UserID, scope.CharacterID, rootIDs)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return gone, cmp.Or(
		s.Run("DELETE FROM memory_suggestions WHERE user_id = ? AND memory_id IN (?)", scope.UserID, ids),
		s.dropReplies(scope.UserID, ids...),
		s.dropRecordsOfUnits(scope.UserID, "?", ids),
		s.dropSuggestions(scope, nil, hashes),
	)
}

// ForgetTexts removes texts from the memory, and the suggestions based on them. A mark
// that they were forgotten stays, so that no copy of the chat brings them back.
func (t *textTx) ForgetTexts(characterID string, revisionIDs ...string) error {
	if err := t.memory.LockMemory(characterID); err != nil {
		return err
	}
	scope := memory.Scope{UserID: t.userID, CharacterID: characterID}
	n := t.memory.news(characterID)
	forget := func(r *struct {
		RevisionID string
		lived
	},
	) error {
		n.texts, n.gone = append(n.texts, r.RevisionID), append(n.gone, r.lived)
		return nil
	}
	err := sqldb.Each(t, forget, "UPDATE memory_texts SET is_forgotten = TRUE, is_read = TRUE, hash = '', name = '', model = 0, vector = NULL"+
		" WHERE "+ofScope+" AND NOT is_forgotten AND revision_id IN (?) RETURNING revision_id, first_change, change", t.userID, characterID, revisionIDs)
	if err != nil {
		return err
	}
	return cmp.Or(t.dropRecordsOfUnits(t.userID, "?", revisionIDs), t.dropSuggestions(scope, revisionIDs, nil), t.dropLines(scope, revisionIDs, nil))
}

// bury marks the texts that a fact which is purged was taken from, and removes them and those of the
// same words from the search.
func (t *textTx) bury(characterID, hash string, revisionIDs []string) error {
	gone, err := sqldb.All[lived](t, "UPDATE memory_texts SET is_buried = TRUE WHERE "+ofScope+" AND NOT is_buried AND revision_id IN (?)"+
		" RETURNING first_change, change", t.userID, characterID, revisionIDs)
	t.memory.noteGone(characterID, gone)
	n := t.memory.news(characterID)
	n.buried, n.sources = append(n.buried, hash), append(n.sources, revisionIDs...)
	return err
}

// noteSame notes that the texts with words that were buried are gone, and removes lines with them, and the words of their
// sources from the logs. It reads all rows of the scope, once for all words of the transaction.
func (t *memoryTx) noteSame(characterID string, n *scopeNews) error {
	if len(n.buried) == 0 {
		return nil
	}
	same, err := sqldb.All[lived](t, "SELECT first_change, change FROM memory_texts WHERE "+ofScope+" AND NOT is_buried AND hash IN (?)", t.userID, characterID, n.buried)
	n.gone = append(n.gone, same...)
	return cmp.Or(err, t.dropFromLogs("user_id = ? AND object_id IN (?)", t.userID, n.sources),
		t.dropLines(memory.Scope{UserID: t.userID, CharacterID: characterID}, n.sources, n.buried))
}

// partsPurged is how many parts of segments PurgeTexts removes: about as many bytes as of texts.
const partsPurged = 64

// PurgeTexts removes some texts of a scope, those that have not changed for longest. No segment is
// listed behind that, so that none is read; of their parts it removes some, too.
func (t factTx) PurgeTexts(characterID string, most int) (left bool, err error) {
	if err := t.memory.LockMemory(characterID); err != nil {
		return false, err
	}
	if _, err := t.raise(memory.Scope{UserID: t.userID, CharacterID: characterID}, true); err != nil {
		return false, err
	}
	if err := t.Run("DELETE FROM memory_segments WHERE "+ofScope, t.userID, characterID); err != nil {
		return false, err
	}
	parts, err := t.Exec("DELETE FROM memory_segment_parts WHERE "+ofScope+" AND (segment_id, part) IN ("+
		"SELECT segment_id, part FROM memory_segment_parts WHERE "+ofScope+" ORDER BY segment_id, part LIMIT ?)",
		t.userID, characterID, t.userID, characterID, partsPurged)
	if err != nil {
		return false, err
	}
	texts, err := sqldb.All[string](t, "SELECT revision_id FROM memory_texts WHERE "+ofScope+" ORDER BY change LIMIT ?", t.userID, characterID, most)
	if err == nil && len(texts) > 0 {
		if err = t.dropRecordsOfUnits(t.userID, "?", texts); err == nil {
			err = t.Run("DELETE FROM memory_texts WHERE user_id = ? AND revision_id IN (?)", t.userID, texts)
		}
	}
	return len(texts) == most || parts == partsPurged, err
}

func (t factTx) PurgeScope(characterID string) error {
	if err := t.memory.LockMemory(characterID); err != nil {
		return err
	}
	told, err := sqldb.All[string](t, "SELECT id FROM memories WHERE "+ofScope+" UNION ALL SELECT id FROM memory_suggestions WHERE "+ofScope,
		t.userID, characterID, t.userID, characterID)
	if err != nil {
		return err
	}
	t.memory.noteGone(characterID, []lived{{0, math.MaxInt64}})
	return cmp.Or(
		t.dropReplies(t.userID, told...),
		t.dropPromptsOf(memory.Scope{UserID: t.userID, CharacterID: characterID}),
		t.dropRecordsOfUnits(t.userID, "SELECT revision_id FROM memory_texts WHERE "+ofScope+" UNION ALL SELECT id FROM memories WHERE "+ofScope,
			t.userID, characterID, t.userID, characterID),
		t.each([]string{
			"DELETE FROM memory_documents WHERE " + ofScope,
			"DELETE FROM dream_runs WHERE " + ofScope,
			"DELETE FROM memory_suggestions WHERE " + ofScope,
			"DELETE FROM memory_tombstone_words WHERE " + ofScope,
			"DELETE FROM memory_tombstones WHERE " + ofScope,
			"DELETE FROM memories WHERE " + ofScope,
			"DELETE FROM memory_texts WHERE " + ofScope,
		}, t.userID, characterID),
	)
}

// Suggestions contain texts of memories too. What is purged or forgotten must be removed from them as well.

// dropSuggestions removes the suggestions of a scope that were made of one of these
// texts, or that say what one of these contents says.
func (s *session) dropSuggestions(scope memory.Scope, revisionIDs, hashes []string) error {
	of, says := setOf(revisionIDs), setOf(hashes)
	var gone []string
	err := sqldb.Each(s, func(r *memory.Suggested) error {
		made := slices.ContainsFunc(r.Evidence, func(e memory.Evidence) bool { return of[e.RevisionID] })
		if made || r.Text != "" && says[lang.ContentHash(r.Text)] {
			gone = append(gone, r.ID)
		}
		return nil
	}, "SELECT id, text, evidence FROM memory_suggestions WHERE "+ofScope, scope.UserID, scope.CharacterID)
	if err != nil || len(gone) == 0 {
		return err
	}
	return cmp.Or(s.Run("DELETE FROM memory_suggestions WHERE user_id = ? AND id IN (?)", scope.UserID, gone), s.dropReplies(scope.UserID, gone...))
}

func setOf(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}

// forgetWhere removes from the memories of a user what came from texts that maintenance removes, those whose
// column has one of some values: what was said, suggestions based on it, and facts with no other evidence.
func (s *session) forgetWhere(userID, column string, values []string) error {
	if err := s.dropUsesFor(userID, column, values); err != nil {
		return err
	}
	scopes := map[string]goneTexts{} // by character
	err := sqldb.Each(s, func(r *struct {
		RevisionID, CharacterID string
		lived
	},
	) error {
		g := scopes[r.CharacterID]
		scopes[r.CharacterID] = goneTexts{append(g.revisions, r.RevisionID), append(g.lived, r.lived)}
		return nil
	}, "DELETE FROM memory_texts WHERE user_id = ? AND revision_id IN (SELECT id FROM revisions WHERE user_id = ? AND "+column+" IN (?))"+
		" RETURNING revision_id, character_id, first_change, change", userID, userID, values)
	if err != nil {
		return err
	}
	for _, characterID := range slices.Sorted(maps.Keys(scopes)) { // as locks are taken
		gone := scopes[characterID]
		err := cmp.Or(s.dropRecordsOfUnits(userID, "?", gone.revisions), s.forgetTexts(memory.Scope{UserID: userID, CharacterID: characterID}, gone))
		if err != nil {
			return err
		}
	}
	return nil
}

// goneTexts are texts of a scope that were removed.
type goneTexts struct {
	revisions []string
	lived     []lived
}

func (s *session) forgetTexts(scope memory.Scope, g goneTexts) error {
	if err := cmp.Or(s.dropSuggestions(scope, g.revisions, nil), s.dropLines(scope, g.revisions, nil)); err != nil {
		return err
	}
	roots, err := s.baseless(scope, g.revisions)
	if err != nil {
		return err
	}
	facts, err := s.purgeRoots(scope, roots)
	if err == nil {
		_, err = s.raise(scope, true)
	}
	return cmp.Or(err, s.dropSegments(scope, slices.Concat(g.lived, facts)))
}

// baseless returns the facts of a scope that were based on some of these texts and have
// lost their evidence: no version has a sighting of which all texts are left.
func (s *session) baseless(scope memory.Scope, gone []string) (roots []string, err error) {
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
	ids, err := sqldb.All[string](s, "SELECT revision_id FROM memory_texts WHERE user_id = ? AND revision_id IN (?)",
		scope.UserID, slices.Compact(revisions))
	left := setOf(ids)
	for root, versions := range facts {
		holds := func(m memory.Memory) bool {
			return m.Holds(func(e memory.Evidence) bool { return left[e.RevisionID] })
		}
		if !slices.ContainsFunc(versions, holds) {
			roots = append(roots, root)
		}
	}
	return roots, err
}

// restingOn returns all versions (only their evidence) of the facts of a scope that are
// based on some of these texts, by root.
func (s *session) restingOn(scope memory.Scope, revisions []string) (map[string][]memory.Memory, error) {
	facts, rests, these := map[string][]memory.Memory{}, map[string]bool{}, setOf(revisions)
	err := sqldb.Each(s, func(m *memory.Memory) error {
		for _, e := range m.Evidence {
			rests[m.RootID] = rests[m.RootID] || these[e.RevisionID]
		}
		facts[m.RootID] = append(facts[m.RootID], *m)
		return nil
	}, "SELECT root_id, evidence FROM memories WHERE "+ofScope, scope.UserID, scope.CharacterID)
	maps.DeleteFunc(facts, func(root string, _ []memory.Memory) bool { return !rests[root] })
	return facts, err
}
