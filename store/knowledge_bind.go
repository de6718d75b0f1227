package store

import "nodest/knowledge"

// Bound returns what a character has.
func (t knowledgeTx) Bound(characterID string) (*knowledge.Bound, error) { panic("not yet") }

// PutBoundFile gives a character a file.
func (t knowledgeTx) PutBoundFile(characterID string, f *knowledge.File, enabled bool, position int) error {
	panic("not yet")
}

// PutBoundBase gives a character a knowledge base.
func (t knowledgeTx) PutBoundBase(characterID string, b *knowledge.Base, enabled bool) error {
	panic("not yet")
}

// DropBoundFile takes a file from a character.
func (t knowledgeTx) DropBoundFile(characterID, fileID string) error { panic("not yet") }

// DropBoundBase takes a knowledge base from a character.
func (t knowledgeTx) DropBoundBase(characterID, baseID string) error { panic("not yet") }
