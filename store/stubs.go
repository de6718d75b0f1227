package store

import (
	"context"
	"errors"

	"nodest/nodest"
)

// What is not built yet. This file goes when the last one is there.

var errNotBuilt = errors.New("store: not built yet")

// A1
func (t *tx) StateAt(conversationID string, version int64) (*nodest.Conversation, error) {
	return nil, errNotBuilt
}
func (t *tx) PathAt(conversationID string, version int64, headID, beforeID string, limit int) ([]*nodest.Message, bool, error) {
	return nil, false, errNotBuilt
}
func (t *tx) Rewind(c *nodest.Conversation, version int64, headID string) ([]*nodest.Message, error) {
	return nil, errNotBuilt
}
func (t *tx) Rewinds(conversationID string) ([]nodest.Rewind, error) { return nil, errNotBuilt }
func (t *tx) Born(messageID string) (int64, error)                   { return 0, errNotBuilt }
func (t *tx) Count(conversationID, headID string) (int, error)       { return 0, errNotBuilt }
func (t *tx) InsertSave(s *nodest.Save) error                        { return errNotBuilt }
func (t *tx) Save(id string) (*nodest.Save, error)                   { return nil, errNotBuilt }
func (t *tx) DeleteSave(id string) error                             { return errNotBuilt }
func (t *tx) Saves(conversationID string, automatic bool, cursor string, limit int) ([]*nodest.Save, string, error) {
	return nil, "", errNotBuilt
}

// A2
func (db *DB) Copying(ctx context.Context, limit int) ([]nodest.ForkRef, error) { return nil, nil }
func (t *tx) Tips(conversationID, cursor string, limit int) ([]*nodest.Message, string, error) {
	return nil, "", errNotBuilt
}
func (t *tx) Texts(f nodest.TextFilter, cursor string, limit int) ([]*nodest.Message, string, error) {
	return nil, "", errNotBuilt
}
func (t *tx) InsertFork(c *nodest.Conversation, sourceID, messageID string, limit int) error {
	return errNotBuilt
}
func (t *tx) CopyMore(conversationID string, limit int) (bool, error) { return false, errNotBuilt }
func (t *tx) AppChat(key string) (string, error)                      { return "", errNotBuilt }
func (t *tx) PutAppChat(key, conversationID string) error             { return errNotBuilt }
func (t *tx) Dump(conversationID string, after int64, limit int) ([]*nodest.DumpedMessage, error) {
	return nil, errNotBuilt
}
func (t *tx) DumpStates(conversationID string, versions []int64) ([]*nodest.Conversation, error) {
	return nil, errNotBuilt
}
func (t *tx) BeginLoad(c *nodest.Conversation) error                             { return errNotBuilt }
func (t *tx) Load(conversationID string, messages []*nodest.DumpedMessage) error { return errNotBuilt }
func (t *tx) FinishLoad(c *nodest.Conversation, states []*nodest.Conversation, rewinds []nodest.Rewind) error {
	return errNotBuilt
}
