package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"nodest/cognition"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/memory/dream"
	"nodest/memory/lang"
	"nodest/nodest"
	"nodest/store"
)

// fillDreams inserts the documents of a fixture.
func fillDreams(tx nodest.Tx, x fixture) error {
	d := store.Dreams(tx)
	return errors.Join(
		d.PutMemoryDocument(x.character, &dream.Document{Path: "user.md", Author: dream.ByDream, RunID: x.turn, Lines: []dream.Line{{ID: "L1", Text: "private"}}}),
		d.SetReflected(x.conversation, 0, 1), d.AddDreamRun(&dream.Run{ID: x.turn, CharacterID: x.character, Failure: "private"}),
	)
}

func init() { addIntrusions(dreamIntrusions) }

var dreamIntrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"MemoryDocuments": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := store.Dreams(tx).MemoryDocuments(x.character); wantNotFound(e, err) != nil {
			return err
		}
		all, err := store.Dreams(tx).MemoryDocuments(ownCharacter(e, tx))
		return wantEmpty(e, len(all) == 0, err)
	},
	"MemoryDocument": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Dreams(tx).MemoryDocument(x.character, "user.md", 0)
		return wantNotFound(e, err)
	},
	"PutMemoryDocument": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Dreams(tx).PutMemoryDocument(x.character, &dream.Document{Path: "user.md", Newest: 1}))
	},
	"LockMemoryDocument": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Dreams(tx).LockMemoryDocument(x.character, "user.md", true))
	},
	"DeleteMemoryDocument": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Dreams(tx).DeleteMemoryDocument(x.character, "user.md"))
	},
	"DocumentVersions": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := store.Dreams(tx).DocumentVersions(x.character, "user.md", "", 5)
		return wantNotFound(e, err)
	},
	"TracesBehind": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Dreams(tx).TracesBehind(x.character, 5)
		return wantNotFound(e, err)
	},
	"LastSaidTo": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Dreams(tx).LastSaidTo(x.character)
		return wantNotFound(e, err)
	},
	"SetReflected": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Dreams(tx).SetReflected(x.conversation, 1, 2))
	},
	"OpenReflections": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := store.Dreams(tx).OpenReflections(x.character, 5); wantNotFound(e, err) != nil {
			return err
		}
		open, err := store.Dreams(tx).OpenReflections(ownCharacter(e, tx), 5)
		return wantEmpty(e, len(open) == 0, err)
	},
	"ConsumeReflections": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Dreams(tx).ConsumeReflections(&cognition.Event{ConversationID: x.conversation, Ordinal: 1}))
	},
	"UnreadBefore": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Dreams(tx).UnreadBefore(x.character, start)
		return wantNotFound(e, err)
	},
	"EventsToReflect": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Dreams(tx).EventsToReflect(x.conversation, 5, cognition.TypeEvaluation)
		return wantNotFound(e, err)
	},
	"AddDreamRun": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Dreams(tx).AddDreamRun(&dream.Run{ID: x.conversation, CharacterID: x.character}))
	},
	"PutDreamRun": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Dreams(tx).PutDreamRun(&dream.Run{ID: x.turn, CharacterID: x.character}))
	},
	"DreamRun": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := store.Dreams(tx).DreamRun(x.character, x.turn); wantNotFound(e, err) != nil {
			return err
		}
		_, err := store.Dreams(tx).DreamRun(ownCharacter(e, tx), x.turn)
		return wantNotFound(e, err)
	},
	"DreamRuns": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := store.Dreams(tx).DreamRuns(x.character, "", 5)
		return wantNotFound(e, err)
	},
	"DreamsSince": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := store.Dreams(tx).DreamsSince(x.character, start)
		return wantNotFound(e, err)
	},
	"VersionsOfDocuments": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Dreams(tx).VersionsOfDocuments(x.character)
		return wantNotFound(e, err)
	},
}

// If two write a document, the one who read the older version is told.
func TestADocumentIsWrittenOnWhatIsInForce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		c := e.character()
		put := func(newest int64, text string) error {
			return e.db.Update(t.Context(), e.user, func(tx nodest.Tx) error {
				return store.Dreams(tx).PutMemoryDocument(c, &dream.Document{Path: "user.md", Newest: newest, Author: dream.ByUser, Lines: []dream.Line{{ID: "L1", Text: text}}})
			})
		}
		for i, c := range []struct {
			newest int64
			ok     bool
		}{{1, false}, {0, true}, {0, false}, {1, true}, {1, false}, {2, true}} {
			if err := put(c.newest, "x"); (err == nil) != c.ok || err != nil && !fault.Is(err, fault.PreconditionFailed) {
				e.Errorf("%d: %v", i, err)
			}
		}
	})
}

// A line goes from all versions with a memory, a text, a chat or a whole memory that it rests on.
func TestPurgesReachTheLinesOfDocuments(t *testing.T) {
	t.Parallel()
	for name, purge := range map[string]func(e *env, r *rememberedChat){
		"a fact": func(e *env, r *rememberedChat) {
			e.update(func(tx nodest.Tx) error {
				return tx.Memory.PutTombstone(r.character, memory.Tombstone{ContentHash: lang.ContentHash("mine old"), Evidence: []memory.Evidence{evidenceOf(r.messages[0])}})
			})
		},
		"the words of a fact": func(e *env, r *rememberedChat) {
			e.update(func(tx nodest.Tx) error {
				return tx.Memory.PutTombstone(r.character, memory.Tombstone{ContentHash: lang.ContentHash("mine zebra line")})
			})
		},
		"a text": func(e *env, r *rememberedChat) {
			e.update(func(tx nodest.Tx) error {
				return tx.Memory.ForgetTexts(r.character, r.messages[0].Swipes[0].RevisionID)
			})
		},
		"a chat": func(e *env, r *rememberedChat) {
			e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(r.chat) })
			e.clock.advance(31 * day)
			e.maintain()
		},
		"everything": func(e *env, r *rememberedChat) {
			e.update(func(tx nodest.Tx) error { return tx.Memory.PurgeScope(r.character) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothDatabases(t, func(e *env) {
				r := e.remember("mine")
				line := dream.Line{ID: "L1", Text: "mine zebra line", Author: dream.ByDream, Evidence: []memory.Evidence{evidenceOf(r.messages[0])}}
				other := dream.Line{ID: "L2", Text: "the line of the user", Author: dream.ByUser}
				e.update(func(tx nodest.Tx) error {
					d := &dream.Document{Path: "user.md", Author: dream.ByDream, Lines: []dream.Line{line, other}}
					if err := store.Dreams(tx).PutMemoryDocument(r.character, d); err != nil {
						return err
					}
					return store.Dreams(tx).PutMemoryDocument(r.character, d)
				})
				e.equal("before", e.lines(r.character), []string{"mine zebra line", "the line of the user"})
				elsewhere := e.conversation()
				note := cognition.Note{Text: "mine zebra note", Messages: []cognition.Message{{Sequence: 1, MessageID: r.messages[0].ID, RevisionID: r.messages[0].Swipes[0].RevisionID}}}
				reflection := &cognition.Reflection{SequenceRange: [2]int64{1, 2}, Notes: []cognition.Note{note}}
				reflection.Summarise()
				e.update(func(tx nodest.Tx) error { return tx.Cognition.AppendEvents(r.chat, cognition.New(r.chat, reflection)) })
				prompt := func(conversation string, of ...string) string {
					p := &nodest.StoredPrompt{ID: e.idNow(), ConversationID: conversation, GenerationID: named("g"), Body: []byte("{}"), FileIDs: of}
					e.update(func(tx nodest.Tx) error { return tx.PutPrompt(p) })
					return p.ID
				}
				with, without := prompt(elsewhere, r.character), prompt(elsewhere)
				purge(e, r)
				e.refused(fault.NotFound, func(tx nodest.Tx) error { return errOf(tx.Prompt(with)) })
				if name != "a chat" { // which takes a month
					e.view(func(tx nodest.Tx) error { return errOf(tx.Prompt(without)) })
				}
				left := []string{"the line of the user"}
				if name == "everything" {
					left = nil
				}
				e.equal("after", e.lines(r.character), left)
				if name == "a chat" || name == "the words of a fact" { // the log went with it; its texts were not named
					return
				}
				e.view(func(tx nodest.Tx) error {
					events, err := tx.Cognition.Events(r.chat, 0, 10)
					if len(events) != 1 || strings.Contains(string(events[0].Body), "zebra") {
						e.Errorf("the log has %d events, with the words", len(events))
					}
					return err
				})
			})
		})
	}
}

// lines returns the texts of the lines of both versions, each once.
func (e *env) lines(character string) (texts []string) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		for version := int64(1); version <= 2; version++ {
			d, err := store.Dreams(tx).MemoryDocument(character, "user.md", version)
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, l := range d.Lines {
				texts = append(texts, l.Text)
			}
		}
		return nil
	})
	slices.Sort(texts)
	return slices.Compact(texts)
}
