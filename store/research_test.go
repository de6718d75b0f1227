package store_test

import (
	"context"
	"errors"
	"testing"

	"nodest/internal/fault"
	"nodest/knowledge"
	"nodest/nodest"
	"nodest/store"
	"nodest/websearch/research"
)

// A run cannot get words of a file that was deleted meanwhile: nothing would remove the run with it.
func TestAResearchHasNoWordsOfADeletedFile(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		file, run := id(), id()
		e.update(func(tx nodest.Tx) error {
			k := store.Knowledge(tx)
			return errors.Join(store.Research(tx).AddResearch(&research.Run{ID: run, State: research.Running, CreatedAt: start}),
				k.InsertFile(&knowledge.File{ID: file, Name: "a.md", Original: knowledge.Original{SHA256: "a", ContentID: id()}, State: knowledge.Ready}),
				store.Research(tx).PutResearchFiles(run, file), k.DeleteFile(file))
		})
		e.code(fault.NotFound, e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
			return store.Research(tx).PutResearchFiles(run, file)
		}))
	})
}
