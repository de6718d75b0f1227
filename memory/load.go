package memory

import (
	"context"
	"strings"

	"nodest/index"
)

type loader struct{ store Store }

// key names a scope in the cache; ids have no byte 0.
func (s Scope) key() string { return s.UserID + "\x00" + s.CharacterID }

func scopeOf(key string) Scope {
	user, character, _ := strings.Cut(key, "\x00")
	return Scope{user, character}
}

func (l loader) Load(ctx context.Context, key string, since int64) (index.Delta, error) {
	var changes *Changes
	scope := scopeOf(key)
	err := l.store.View(ctx, scope.UserID, func(tx Tx) (err error) {
		changes, err = tx.MemoryChanges(scope.CharacterID, since)
		return err
	})
	if err != nil {
		return index.Delta{}, err
	}
	d := index.Delta{Version: changes.Version, Removed: changes.Gone, Whole: changes.Whole, Rows: make([]index.Row, len(changes.Units))}
	for i := range changes.Units {
		d.Rows[i] = changes.Units[i].Row()
	}
	return d, nil
}
