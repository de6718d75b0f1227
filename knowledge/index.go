package knowledge

// IndexTx stores what is made of files: documents, chunks, segments and vectors.
type IndexTx interface {
	// PurgeIndex removes at most limit rows that were made of a deleted own file, and returns
	// how many these were.
	PurgeIndex(fileID string, limit int) (removed int, err error)
}
