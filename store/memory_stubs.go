package store

import (
	"context"
	"errors"

	"nodest/jobs"
	"nodest/memory"
)

var errStub = errors.New("store: not built yet")

// Memory is the store of memory.Service.
func (db *DB) Memory() memory.Store { return nil }

func (t *tx) MemoryVersion(characterID string) (int64, error) { return 0, errStub }
func (t *tx) MemoryChanges(characterID string, since int64) (*memory.Changes, error) {
	return nil, errStub
}
func (t *tx) WithoutVector(characterID, model string, limit int) ([]memory.Content, error) {
	return nil, errStub
}
func (t *tx) PutVectors(characterID, model string, vectors map[string][]float32) error {
	return errStub
}
func (t *tx) MemoryJobs(characterID, cursor string, limit int) ([]*jobs.Job, string, error) {
	return nil, "", errStub
}
func (t *tx) Shown(here *memory.Place, texts []memory.Evidence) ([]bool, error) { return nil, errStub }
func (t *tx) Said(conversationID string, f memory.SaidFilter) ([]memory.Said, error) {
	return nil, errStub
}
func (t *tx) SaidByID(characterID string, revisionIDs ...string) ([]memory.Said, error) {
	return nil, errStub
}
func (t *tx) MarkRead(conversationID string, revisionIDs ...string) error   { return errStub }
func (t *tx) ForgetTexts(characterID string, revisionIDs ...string) error   { return errStub }
func (t *tx) PutUses(messageID, revisionID string, uses []memory.Use) error { return errStub }
func (t *tx) Uses(messageID string) ([]memory.Use, error)                   { return nil, errStub }
func (t *tx) InsertFact(characterID string, m *memory.Memory) error         { return errStub }
func (t *tx) UpdateFact(characterID string, m *memory.Memory) error         { return errStub }
func (t *tx) Fact(characterID, id string) (*memory.Memory, error)           { return nil, errStub }
func (t *tx) FactVersions(characterID string, r ...string) ([]memory.Memory, error) {
	return nil, errStub
}
func (t *tx) Facts(characterID string, f memory.Filter, cursor string, limit int) ([]memory.Memory, string, error) {
	return nil, "", errStub
}
func (t *tx) PurgeFacts(characterID string, rootIDs ...string) error         { return errStub }
func (t *tx) PurgeScope(characterID string) (facts, texts int, err error)    { return 0, 0, errStub }
func (t *tx) Tombstones(characterID string) ([]memory.Tombstone, error)      { return nil, errStub }
func (t *tx) PutTombstone(characterID string, o memory.Tombstone) error      { return errStub }
func (t *tx) InsertSuggestion(characterID string, s *memory.Suggested) error { return errStub }
func (t *tx) Suggestion(characterID, id string) (*memory.Suggested, error)   { return nil, errStub }
func (t *tx) UpdateSuggestion(characterID string, s *memory.Suggested) error { return errStub }
func (t *tx) Suggestions(characterID, state, cursor string, limit int) ([]memory.Suggested, string, error) {
	return nil, "", errStub
}
func (t *tx) SuggestionKeys(characterID string) (map[string]bool, error) { return nil, errStub }

// unembedded is Store.Unembedded.
func (db *DB) unembedded(ctx context.Context, model string, limit int) ([]memory.Scope, error) {
	return nil, errStub
}
