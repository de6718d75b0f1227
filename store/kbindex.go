package store

// indexTx stores what is made of files.
type indexTx struct{ *tx }

// PurgeIndex removes rows that were made of a deleted file.
func (t indexTx) PurgeIndex(fileID string, limit int) (removed int, err error) { return 0, nil }
