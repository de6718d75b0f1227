package store_test

import (
	"errors"
	"strings"
	"testing"

	"nodest/internal/index"
	"nodest/knowledge"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// TestDocumentsAreCounted counts files by state, and finds what belongs to no document.
func TestDocumentsAreCounted(t *testing.T) {
	t.Parallel()
	for database, place := range map[string]func(testing.TB) string{"sqlite": storetest.Dir, "postgres": storetest.PostgresURL} {
		t.Run(database, func(t *testing.T) {
			o := store.Options{Log: quiet}
			if o.Dir = place(t); strings.HasPrefix(o.Dir, "postgres") {
				o.URL, o.Dir = o.Dir, ""
			}
			db := storetest.OpenWith(t, o)
			e := &env{T: t, db: db, user: storetest.User(t, db)}
			ready, failed := id(), id()
			e.update(func(tx nodest.Tx) error {
				k := store.Knowledge(tx)
				return errors.Join(
					k.InsertFile(&knowledge.File{ID: ready, Name: "a.md", Original: knowledge.Original{SHA256: "a", ContentID: id()}, State: knowledge.Ready, Edition: 2, LastEdition: 2}),
					k.InsertFile(&knowledge.File{ID: failed, Name: "b.md", Original: knowledge.Original{SHA256: "b", ContentID: id()}, State: knowledge.Failed}),
					k.PutChunks([]knowledge.StoredChunk{{FileID: ready, Edition: 2, Hash: "one"}}),
					k.PutEdition(&knowledge.Edition{FileID: ready, Edition: 2, Chunks: 1}),
					k.PutFileSegment(ready, 2, []byte("index")),
					k.PutSpace(knowledge.Space{Model: "test", Dim: 1, State: knowledge.SpaceActive}),
					k.PutChunkVectors(ready, "test", map[string]index.Packed{"one": {1}}),
					k.PutFileSegment(failed, 1, []byte("index")), // may go on
				)
			})
			count := func() *store.Documents {
				t.Helper()
				d, err := store.CountDocuments(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			e.equal("in order", *count(), store.Documents{Files: map[string]int64{"failed": 1, "ready": 1}})
			e.update(func(tx nodest.Tx) error {
				k := store.Knowledge(tx)
				return errors.Join(
					k.PutFileSegment(ready, 1, []byte("old index")),
					k.PutChunkVectors(ready, "test", map[string]index.Packed{"two": {1}, "three": {1}}),
					k.PutChunkVectors(ready, "retired", map[string]index.Packed{"one": {1}}),
					k.PutPart(id(), 0, []byte("abandoned")),
				)
			})
			d := count()
			e.equal("orphans", d.Orphans, map[string]int64{"knowledge_segments": 1, "knowledge_vectors": 3})
			e.equal("abandoned", d.Abandoned, int64(1))
			e.equal("deleted", d.Deleted, int64(0))
		})
	}
}
