// Package app serves the NodeST app: characters and chats under keys of the app's own,
// replies in one answer, and histories that are changed by index.
package app

import (
	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/op"
	"nodest/nodest"
)

// Tx is what a transaction offers for the app of the acting user.
type Tx struct {
	op.Tx
	Characters character.Tx
	Chats      chat.Tx
	KeyTx
}

// KeyTx keeps the app's keys of conversations and characters.
type KeyTx interface {
	// AppChat returns the conversation of a key; fault.NotFound without one or when it
	// was deleted.
	AppChat(key string) (conversationID string, err error)
	// PutAppChat sets it, over an older one.
	PutAppChat(key, conversationID string) error
	// AppCharacter returns the character of a key; fault.NotFound without one or when it
	// was deleted.
	AppCharacter(key string) (characterID string, err error)
	// PutAppCharacter sets it, over an older one. A character that has a hundred keys keeps those.
	PutAppCharacter(key, characterID string) error
}

// Store keeps what a Service needs; package store provides it.
type Store = op.Store[Tx]

// Service has the operations of the app. It is safe for concurrent use.
type Service struct {
	store    Store
	chats    *chat.Service
	archives *archive.Service
	engine   *nodest.Engine
}

// New returns a Service.
func New(store Store, chats *chat.Service, archives *archive.Service, engine *nodest.Engine) *Service {
	return &Service{store, chats, archives, engine}
}
