package store

import (
	"slices"
	"strings"

	"nodest/memory"
)

// Texts of memories stand in suggestions and in the answers of commands too. What
// is purged or forgotten must go from there as well.

// dropSuggestions removes the suggestions of a scope that were made of one of these
// texts, or that say what one of these contents says.
func (s *session) dropSuggestions(userID, characterID string, revisionIDs, hashes []string) error {
	var rows []struct {
		ID       string
		Text     text
		Evidence document
	}
	_, err := s.scan(s.raw("SELECT id, text, evidence FROM memory_suggestions WHERE user_id = ? AND character_id = ?", text(userID), text(characterID)), &rows)
	if err != nil || len(rows) == 0 {
		return err
	}
	of := setOf(revisionIDs)
	says := setOf(hashes)
	var gone []string
	for _, row := range rows {
		var evidence []memory.Evidence
		if err := decode(row.Evidence, &evidence); err != nil {
			return err
		}
		made := slices.ContainsFunc(evidence, func(e memory.Evidence) bool { return of[e.RevisionID] })
		if made || row.Text != "" && says[memory.ContentHash(string(row.Text))] {
			gone = append(gone, row.ID)
		}
	}
	for part := range slices.Chunk(gone, 500) {
		in, which := among(part)
		if _, err := s.exec(s.raw("DELETE FROM memory_suggestions WHERE user_id = ? AND id "+in, text(userID), which)); err != nil {
			return err
		}
	}
	return s.dropReplies(userID, gone)
}

// dropReplies removes the answers of commands that name one of these memories or
// suggestions. Their keys stay, so that no command is carried out a second time.
func (s *session) dropReplies(userID string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	var rows []struct {
		CallKey text
		Reply   document
	}
	_, err := s.scan(s.raw(`SELECT call_key, reply FROM call_keys WHERE user_id = ? AND (reply LIKE '%"rootId":%' OR reply LIKE '%"memoryId":%')`,
		text(userID)), &rows)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(string(row.Reply), id) }) {
			continue
		}
		_, err := s.exec(s.raw("UPDATE call_keys SET reply = NULL WHERE user_id = ? AND call_key = ?", text(userID), row.CallKey))
		if err != nil {
			return err
		}
	}
	return nil
}

func setOf(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}
