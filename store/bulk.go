package store

import (
	"reflect"
	"slices"
)

// bulk gathers the rows of many messages, so that they are stored with few
// statements.
type bulk struct {
	messages  []*messageRow
	swipes    []*swipeRow
	revisions []*revisionRow
	states    []*messageStateRow
	texts     []*textRow
}

func (t *tx) putBulk(b *bulk) error {
	if err := insertAll(t, b.messages); err != nil {
		return err
	}
	if err := t.analyze("messages"); err != nil {
		return err
	}
	if err := insertAll(t, b.revisions); err != nil {
		return err
	}
	if err := insertAll(t, b.swipes); err != nil {
		return err
	}
	t.texts = append(t.texts, b.texts...)
	return insertAll(t, b.states)
}

// insertAll stores rows with statements that are as long as statements that are
// kept parsed may be.
func insertAll[T any](t *tx, rows []T) error {
	n := mostBound / len(t.form(reflect.TypeFor[T]()).fields)
	for part := range slices.Chunk(rows, n) {
		if err := t.insert(&part); err != nil {
			return err
		}
	}
	return nil
}
