package store

import "nodest/memory"

func (t *tx) InsertSummary(conversationID string, s *memory.Summary) error { return errStub }
func (t *tx) UpdateSummary(conversationID string, s *memory.Summary) error { return errStub }
func (t *tx) Summary(id string) (string, *memory.Summary, error)           { return "", nil, errStub }
func (t *tx) Summaries(conversationID string) ([]*memory.Summary, error)   { return nil, errStub }
func (t *tx) DeleteSummary(id string) error                                { return errStub }
func (t *tx) LatestGeneration(conversationID string) (int, error)          { return 0, errStub }
func (t *tx) ChangedSince(conversationID string, version, upTo int64) (bool, error) {
	return false, errStub
}
