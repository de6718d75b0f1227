package memory

// FactsTx is FactTx for many facts, with few statements.
type FactsTx interface {
	// InsertFacts is InsertFact for versions that are all new.
	InsertFacts(characterID string, facts []*Memory) error
	// MarkFacts changes versions by id and sets UpdatedAt to Now. Before making one active, the
	// caller checks that no other active fact has its ContentHash.
	MarkFacts(characterID string, ids []string, marks Marks) error
	// Known returns the versions and tombstones of a scope with one of these ids or
	// ContentHashes.
	Known(characterID string, ids, hashes []string) ([]Known, error)
}

// Marks are what MarkFacts writes; zero members are unchanged.
type Marks struct {
	Pinned *bool
	Locked *bool
	Status Status // Active or Retired; who ended it or came after it is no longer known
}

// Known is a version of a fact, or forgotten words.
type Known struct {
	ID     string // "" of what was forgotten
	Hash   string
	Status Status // Deleted: words that were forgotten
}
