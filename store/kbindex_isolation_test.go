package store_test

import (
	"context"
	"errors"
	"testing"

	"nodest/internal/index"
	"nodest/knowledge"
	"nodest/nodest"
	"nodest/store"
)

// privateModel is the embedding model of the fixture.
const privateModel = "test:private"

func (x fixture) keptEdition() *knowledge.Edition {
	return &knowledge.Edition{FileID: x.file, Edition: 1, Name: "private", Title: "private", Chars: 7, Chunks: 1}
}

func (x fixture) keptChunk() knowledge.StoredChunk {
	return knowledge.StoredChunk{FileID: x.file, Edition: 1, End: 7, Heading: "private", Kind: "text", Hash: "private"}
}

// fillIndex inserts what is made of the file of a fixture, and a question about it.
func fillIndex(tx nodest.Tx, x fixture) error {
	k := store.Knowledge(tx)
	return errors.Join(
		k.PutTexts(x.file, 1, 0, []string{"private"}),
		k.PutChunks([]knowledge.StoredChunk{x.keptChunk()}),
		k.PutContexts(x.file, 1, map[string]string{"private": "private"}),
		k.PutEdition(x.keptEdition()),
		k.PutFileSegment(x.file, 1, []byte("private")),
		k.PutChunkVectors(x.file, privateModel, map[string]index.Packed{"private": {1, 2, 3}}),
		k.PutSpace(knowledge.Space{Model: privateModel, Dim: 3, State: knowledge.SpaceActive}),
		k.InsertQuery(&knowledge.Query{ID: x.query, ConversationID: &x.conversation, Question: "private", Answer: "private"}),
	)
}

func init() { addIntrusions(indexIntrusions) }

var indexIntrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"Editions": func(e *env, tx nodest.Tx, x fixture) error {
		editions, err := store.Knowledge(tx).Editions(x.file)
		return wantEmpty(e, len(editions) == 0, err)
	},
	"PutTexts": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).PutTexts(x.file, 1, 0, []string{"intruder"}))
	},
	"PutChunks": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).PutChunks([]knowledge.StoredChunk{x.keptChunk()}))
	},
	"Contexts": func(e *env, tx nodest.Tx, x fixture) error {
		lines, err := store.Knowledge(tx).Contexts(x.file, []string{"private"})
		return wantEmpty(e, len(lines) == 0, err)
	},
	"PutContexts": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).PutContexts(x.file, 1, map[string]string{"private": "intruder"}))
	},
	"PutEdition": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).PutEdition(x.keptEdition()))
	},
	"PutFileSegment": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).PutFileSegment(x.file, 1, []byte("intruder")))
	},
	"PutProgress": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).PutProgress(x.file, knowledge.Progress{Done: 1}))
	},
	"DropEditions": func(e *env, tx nodest.Tx, x fixture) error {
		n, err := store.Knowledge(tx).DropEditions(x.file, 9, 9)
		return wantEmpty(e, n == 0, err)
	},
	"PurgeIndex": func(e *env, tx nodest.Tx, x fixture) error {
		n, err := store.Knowledge(tx).PurgeIndex(x.file, 9)
		return wantEmpty(e, n == 0, err)
	},
	"Unembedded": func(e *env, tx nodest.Tx, x fixture) error {
		chunks, err := store.Knowledge(tx).Unembedded(x.file, 1, "another", -1, 9)
		return wantEmpty(e, len(chunks) == 0, err)
	},
	"PutChunkVectors": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).PutChunkVectors(x.file, privateModel, map[string]index.Packed{"intruder": {1}}))
	},
	"EditionCoverage": func(e *env, tx nodest.Tx, x fixture) error {
		done, rejected, err := store.Knowledge(tx).EditionCoverage(x.file, 1, privateModel)
		return wantEmpty(e, done+rejected == 0, err)
	},
	"Incomplete": func(e *env, tx nodest.Tx, _ fixture) error {
		files, err := store.Knowledge(tx).Incomplete("another", "", 9)
		return wantEmpty(e, len(files) == 0, err)
	},
	"Wordless": func(e *env, tx nodest.Tx, _ fixture) error {
		files, err := store.Knowledge(tx).Wordless("", 9)
		return wantEmpty(e, len(files) == 0, err)
	},
	"Busy": func(e *env, tx nodest.Tx, x fixture) error {
		busy, err := store.Knowledge(tx).Busy(x.base)
		return wantEmpty(e, !busy, err)
	},
	"SpaceCoverage": func(e *env, tx nodest.Tx, x fixture) error {
		for _, base := range []string{"", x.base} {
			done, total, err := store.Knowledge(tx).SpaceCoverage(privateModel, base)
			if err := wantEmpty(e, done+total == 0, err); err != nil {
				return err
			}
		}
		return nil
	},
	"DropVectors": func(e *env, tx nodest.Tx, _ fixture) error {
		next, err := store.Knowledge(tx).DropVectors(nil, "", 1)
		return wantEmpty(e, next == "", err)
	},
	"Spaces": func(e *env, tx nodest.Tx, _ fixture) error {
		spaces, err := store.Knowledge(tx).Spaces()
		return wantEmpty(e, len(spaces) == 0, err)
	},
	"PutSpace": func(_ *env, tx nodest.Tx, _ fixture) error {
		return store.Knowledge(tx).PutSpace(knowledge.Space{Model: privateModel, State: knowledge.SpaceStopped})
	},
	"FixLength": func(e *env, tx nodest.Tx, _ fixture) error {
		_, err := store.Knowledge(tx).FixLength(privateModel, 3)
		return wantNotFound(e, err)
	},
	"DropSpace": func(_ *env, tx nodest.Tx, _ fixture) error { return store.Knowledge(tx).DropSpace(privateModel) },
	"Unfinished": func(e *env, tx nodest.Tx, _ fixture) error {
		ids, err := store.Knowledge(tx).Unfinished(9)
		return wantEmpty(e, len(ids) == 0, err)
	},
	"Refused": func(e *env, tx nodest.Tx, _ fixture) error {
		ids, err := store.Knowledge(tx).Refused([]string{"upstream_auth"}, 9)
		return wantEmpty(e, len(ids) == 0, err)
	},
	"OwnConversation": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).OwnConversation(x.conversation))
	},
	"InsertQuery": func(e *env, tx nodest.Tx, x fixture) error {
		k := store.Knowledge(tx)
		if err := k.InsertQuery(&knowledge.Query{ID: x.query, Question: "intruder"}); err != nil {
			return err
		}
		return wantNotFound(e, k.InsertQuery(&knowledge.Query{ID: id(), ConversationID: &x.conversation, Question: "intruder"}))
	},
	"IndexRows": func(e *env, tx nodest.Tx, x fixture) error {
		rows, err := store.Knowledge(tx).IndexRows(x.file)
		for _, n := range rows {
			if err := wantEmpty(e, n == 0, err); err != nil {
				return err
			}
		}
		return err
	},
	"ActiveModel": func(e *env, tx nodest.Tx, x fixture) error {
		model, err := store.Knowledge(tx).ActiveModel(x.user, []string{x.file})
		return wantEmpty(e, model == "", err)
	},
	"FileSegments": func(e *env, tx nodest.Tx, x fixture) error {
		segments, err := store.Knowledge(tx).FileSegments(x.user, []string{x.file})
		return wantEmpty(e, len(segments) == 0, err)
	},
	"Vectors": func(e *env, tx nodest.Tx, x fixture) error {
		vectors, err := store.Knowledge(tx).Vectors(x.user, privateModel, []string{x.file})
		return wantEmpty(e, len(vectors) == 0, err)
	},
	"Passages": func(e *env, tx nodest.Tx, x fixture) error {
		chunks, err := store.Knowledge(tx).Passages(x.user, []knowledge.ChunkID{{FileID: x.file, Edition: 1}})
		return wantEmpty(e, len(chunks) == 0, err)
	},
	"ChunkRange": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).ChunkRange(x.user, x.file, 1, privateModel, 0, 9)
		return wantNotFound(e, err)
	},
	"ChunksBetween": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).ChunksBetween(x.user, x.file, 1, 0, 9)
		return wantNotFound(e, err)
	},
	"EditionOf": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).EditionOf(x.user, x.file, 1)
		return wantNotFound(e, err)
	},
	"TextRange": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).TextRange(x.user, x.file, 1, 0, -1)
		return wantNotFound(e, err)
	},
}

// A file that was shared can be read by the other user as its owner reads it, and nothing of
// it be changed.
func TestWhatIsMadeOfASharedFileCanBeRead(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		owner := fill(e, newUser(e)) // it is shared with e.user
		for _, reader := range []string{owner.user, e.user} {
			err := e.db.Knowledge().View(context.Background(), reader, func(k knowledge.Tx) error {
				segments, err1 := k.FileSegments(owner.user, []string{owner.file})
				vectors, err2 := k.Vectors(owner.user, privateModel, []string{owner.file})
				chunks, err3 := k.Passages(owner.user, []knowledge.ChunkID{{FileID: owner.file, Edition: 1}})
				text, err4 := k.TextRange(owner.user, owner.file, 1, 2, 5)
				model, err5 := k.ActiveModel(owner.user, []string{owner.file})
				if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
					return err
				}
				e.equal("segment", string(segments[0].Data), "private")
				e.equal("vectors", []any{len(vectors[0].Vectors), vectors[0].Whole}, []any{1, true})
				e.equal("chunk", chunks[0].Text, "private")
				e.equal("text", text, "iva")
				e.equal("model", model, privateModel)
				return nil
			})
			if err != nil {
				e.Fatal(err)
			}
		}
	})
}
