package memory

// FactsTx does to many facts at a time what FactTx does to one, with few statements.
type FactsTx interface {
	// InsertFacts is InsertFact for versions that are all new.
	InsertFacts(characterID string, facts []*Memory) error
	// MarkFacts changes versions by their ids and gives them Now as UpdatedAt. Whoever
	// makes one active knows that no other active fact has its ContentHash.
	MarkFacts(characterID string, ids []string, marks Marks) error
	// Known tells what a scope has by one of these ids or with one of these
	// ContentHashes.
	Known(characterID string, ids, hashes []string) ([]Known, error)
}

// Marks are what MarkFacts writes; the zero members stay.
type Marks struct {
	Pinned *bool
	Locked *bool
	Status Status // Active or Retired; who ended it or came after it is no longer known
}

// Known is a version of a fact, or words that were forgotten.
type Known struct {
	ID     string // "" of what was forgotten
	Hash   string
	Status Status // Deleted: words that were forgotten
}
