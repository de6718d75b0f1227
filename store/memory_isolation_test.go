package store_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"nodest/fault"
	"nodest/memory"
	"nodest/nodest"
)

func (x things) evidence() memory.Evidence {
	return memory.Evidence{ConversationID: x.conversation, MessageID: x.message, RevisionID: x.revision, Seq: 1}
}

func (x things) memory() *memory.Memory {
	return &memory.Memory{
		ID: x.fact, RootID: x.fact, Version: 1, Text: "private", Subject: memory.AboutUser, Kind: memory.OtherSort,
		Evidence: []memory.Evidence{x.evidence()}, Origin: memory.ByRule, Status: memory.Active,
	}
}

func (x things) suggested() *memory.Suggested {
	return &memory.Suggested{ID: x.suggestion, State: memory.SuggestionOpen,
		Suggestion: memory.Suggestion{MemoryID: x.fact, Event: memory.EventDelete}}
}

// fillMemory gives what fill made a memory.
func fillMemory(tx nodest.Tx, x things) error {
	for _, err := range []error{
		tx.InsertFact(x.character, x.memory()),
		tx.PutTombstone(x.character, memory.Tombstone{ContentHash: "private"}),
		last(tx.LockReading(x.conversation)), tx.PutReading(x.conversation, memory.Reading{Calls: 2}),
		tx.InsertSuggestion(x.character, x.suggested()),
		tx.PutUses(x.message, x.revision, []memory.Use{{ID: x.fact, Layer: memory.Fact, Rank: 1}}),
		tx.PutVectors(x.character, "m", map[string][]float32{memory.ContentHash("private"): {1}}),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func init() { maps.Copy(intrusions, memoryIntrusions) }

// own is a character of the intruder's.
func own(e *env, tx nodest.Tx) string {
	e.Helper()
	c := &nodest.Character{ID: id(), Name: "own"}
	if err := tx.InsertCharacter(c); err != nil {
		e.Fatal(err)
	}
	return c.ID
}

var memoryIntrusions = map[string]func(e *env, tx nodest.Tx, x things) error{
	"LockMemory": func(e *env, tx nodest.Tx, x things) error { return unknown(e, tx.LockMemory(x.character)) },
	"MemoryVersion": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.MemoryVersion(x.character)
		return unknown(e, err)
	},
	"MemoryChanges": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.MemoryChanges(x.character, 0)
		return unknown(e, err)
	},
	"WithoutVector": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.WithoutVector(x.character, "m", 5)
		return unknown(e, err)
	},
	"PutVectors": func(e *env, tx nodest.Tx, x things) error {
		vectors := map[string][]float32{memory.ContentHash("private"): {2}}
		if err := unknown(e, tx.PutVectors(x.character, "m", vectors)); err != nil {
			return err
		}
		return tx.PutVectors(own(e, tx), "m", vectors)
	},
	"MemoryJobs": func(e *env, tx nodest.Tx, x things) error {
		_, _, err := tx.MemoryJobs(x.character, "", 5)
		return unknown(e, err)
	},

	"Shown": func(e *env, tx nodest.Tx, x things) error {
		for _, here := range []*memory.Place{nil, {ConversationID: x.conversation, HeadID: x.message},
			{ConversationID: x.conversation, HeadID: x.message, Version: 1}} {
			shown, err := tx.Shown(here, []memory.Evidence{x.evidence()})
			if err := nothing(e, !slices.Contains(shown, true), err); err != nil {
				return err
			}
		}
		// The other's message on a branch of one's own conversation.
		c := &nodest.Conversation{ID: id()}
		if err := tx.InsertConversation(c); err != nil {
			return err
		}
		_, err := tx.Shown(&memory.Place{ConversationID: c.ID, HeadID: x.message},
			[]memory.Evidence{{ConversationID: c.ID, MessageID: x.message, RevisionID: x.revision, Seq: 1}})
		return unknown(e, err)
	},
	"Said": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.Said(x.conversation, memory.SaidFilter{})
		return unknown(e, err)
	},
	"SaidByID": func(e *env, tx nodest.Tx, x things) error {
		if _, err := tx.SaidByID(x.character, x.revision); unknown(e, err) != nil {
			return err
		}
		said, err := tx.SaidByID(own(e, tx), x.revision)
		return nothing(e, len(said) == 0, err)
	},
	"MarkRead":   func(e *env, tx nodest.Tx, x things) error { return unknown(e, tx.MarkRead(x.conversation, x.revision)) },
	"MarkUnread": func(e *env, tx nodest.Tx, x things) error { return unknown(e, tx.MarkUnread(x.conversation)) },
	"ForgetTexts": func(e *env, tx nodest.Tx, x things) error {
		if err := unknown(e, tx.ForgetTexts(x.character, x.revision)); err != nil {
			return err
		}
		return tx.ForgetTexts(own(e, tx), x.revision)
	},
	"PutUses": func(e *env, tx nodest.Tx, x things) error {
		return unknown(e, tx.PutUses(x.message, x.revision, []memory.Use{{ID: "intruder", Rank: 1}}))
	},
	"Uses": func(e *env, tx nodest.Tx, x things) error { _, err := tx.Uses(x.message); return unknown(e, err) },

	"InsertFact": func(e *env, tx nodest.Tx, x things) error {
		m := x.memory()
		m.ID, m.RootID = id(), id()
		if err := unknown(e, tx.InsertFact(x.character, m)); err != nil {
			return err
		}
		return tx.InsertFact(own(e, tx), x.memory())
	},
	"InsertFacts": func(e *env, tx nodest.Tx, x things) error {
		m := x.memory()
		m.ID, m.RootID = id(), id()
		if err := unknown(e, tx.InsertFacts(x.character, []*memory.Memory{m})); err != nil {
			return err
		}
		return tx.InsertFacts(own(e, tx), []*memory.Memory{x.memory()})
	},
	"MarkFacts": func(e *env, tx nodest.Tx, x things) error {
		marks := memory.Marks{Status: memory.Retired}
		if err := unknown(e, tx.MarkFacts(x.character, []string{x.fact}, marks)); err != nil {
			return err
		}
		return tx.MarkFacts(own(e, tx), []string{x.fact}, marks)
	},
	"Known": func(e *env, tx nodest.Tx, x things) error {
		ids, hashes := []string{x.fact}, []string{memory.ContentHash("private"), "private"}
		if _, err := tx.Known(x.character, ids, hashes); unknown(e, err) != nil {
			return err
		}
		known, err := tx.Known(own(e, tx), ids, hashes)
		return nothing(e, len(known) == 0, err)
	},
	"UpdateFact": func(e *env, tx nodest.Tx, x things) error {
		m := x.memory()
		m.Status = memory.Retired
		for _, character := range []string{x.character, own(e, tx)} {
			if err := unknown(e, tx.UpdateFact(character, m)); err != nil {
				return err
			}
		}
		return nil
	},
	"Fact": func(e *env, tx nodest.Tx, x things) error {
		for _, character := range []string{x.character, own(e, tx)} {
			if _, err := tx.Fact(character, x.fact); unknown(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"Reading": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.Reading(x.conversation)
		return unknown(e, err)
	},
	"LockReading": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.LockReading(x.conversation)
		return unknown(e, err)
	},
	"PutReading": func(e *env, tx nodest.Tx, x things) error {
		return unknown(e, tx.PutReading(x.conversation, memory.Reading{Calls: 1}))
	},
	"FactVersions": func(e *env, tx nodest.Tx, x things) error {
		if _, err := tx.FactVersions(x.character, x.fact); unknown(e, err) != nil {
			return err
		}
		items, err := tx.FactVersions(own(e, tx), x.fact)
		return nothing(e, len(items) == 0, err)
	},
	"Facts": func(e *env, tx nodest.Tx, x things) error {
		if _, _, err := tx.Facts(x.character, memory.Filter{Status: memory.AnyStatus}, "", 5); unknown(e, err) != nil {
			return err
		}
		items, _, err := tx.Facts(own(e, tx), memory.Filter{Status: memory.AnyStatus}, "", 5)
		return nothing(e, len(items) == 0, err)
	},
	"PurgeFacts": func(e *env, tx nodest.Tx, x things) error {
		if err := unknown(e, tx.PurgeFacts(x.character, x.fact)); err != nil {
			return err
		}
		return tx.PurgeFacts(own(e, tx), x.fact)
	},
	"PurgeScope": func(e *env, tx nodest.Tx, x things) error {
		if _, _, err := tx.PurgeScope(x.character); unknown(e, err) != nil {
			return err
		}
		facts, texts, err := tx.PurgeScope(own(e, tx))
		return nothing(e, facts+texts == 0, err)
	},

	"Tombstones": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.Tombstones(x.character)
		return unknown(e, err)
	},
	"PutTombstone": func(e *env, tx nodest.Tx, x things) error {
		return unknown(e, tx.PutTombstone(x.character, memory.Tombstone{ContentHash: "private"}))
	},
	"InsertSuggestion": func(e *env, tx nodest.Tx, x things) error {
		if err := unknown(e, tx.InsertSuggestion(x.character, x.suggested())); err != nil {
			return err
		}
		return tx.InsertSuggestion(own(e, tx), x.suggested())
	},
	"Suggestion": func(e *env, tx nodest.Tx, x things) error {
		for _, character := range []string{x.character, own(e, tx)} {
			if _, err := tx.Suggestion(character, x.suggestion); unknown(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"UpdateSuggestion": func(e *env, tx nodest.Tx, x things) error {
		for _, character := range []string{x.character, own(e, tx)} {
			if err := unknown(e, tx.UpdateSuggestion(character, x.suggested())); err != nil {
				return err
			}
		}
		return nil
	},
	"Suggestions": func(e *env, tx nodest.Tx, x things) error {
		_, _, err := tx.Suggestions(x.character, "", "", 5)
		return unknown(e, err)
	},
	"SuggestionKeys": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.SuggestionKeys(x.character)
		return unknown(e, err)
	},
}

func TestScopesWithoutVectorsAreThoseOfAllUsers(t *testing.T) {
	conform(t, func(e *env) {
		a, b := fill(e, e.user), fill(e, newUser(e))
		scopes, err := e.db.Memory().Unembedded(context.Background(), "other", memory.Scope{}, 10)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("scopes", len(scopes), 2)
		for _, x := range []things{a, b} {
			e.equal("scope of "+x.user, slices.Contains(scopes, memory.Scope{UserID: x.user, CharacterID: x.character}), true)
		}
		rest, err := e.db.Memory().Unembedded(context.Background(), "other", scopes[0], 10)
		e.equal("scopes after the first", []any{rest, err}, []any{scopes[1:], nil})
		scopes, err = e.db.Memory().Unembedded(context.Background(), "m", memory.Scope{}, 10)
		e.equal("scopes in which all is done", []any{scopes, err}, []any{[]memory.Scope(nil), nil})
		e.update(func(tx nodest.Tx) error { return tx.DeleteCharacter(a.character) })
		scopes, _ = e.db.Memory().Unembedded(context.Background(), "other", memory.Scope{}, 10)
		e.equal("scopes after a deletion", scopes, []memory.Scope{{UserID: b.user, CharacterID: b.character}})
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.MemoryVersion(a.character); return err })
	})
}
