package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
)

func (x fixture) evidence() memory.Evidence {
	return memory.Evidence{ConversationID: x.conversation, MessageID: x.message, RevisionID: x.revision, Seq: 1}
}

func (x fixture) memory() *memory.Memory {
	return &memory.Memory{
		ID: x.fact, RootID: x.fact, Version: 1, Text: "private", Subject: lang.AboutUser, Kind: lang.KindOther,
		Evidence: []memory.Evidence{x.evidence()}, Origin: memory.ByRule, Standing: memory.Standing{Status: memory.Active},
		Source: x.save, // any id
	}
}

func (x fixture) suggested() *memory.Suggested {
	return &memory.Suggested{ID: x.suggestion, State: memory.SuggestionOpen,
		Suggestion: memory.Suggestion{MemoryID: x.fact, Event: memory.EventDelete}}
}

var privateGist = lang.GistOf("User sails", lang.AboutUser)

// fillMemory inserts the memory rows of a fixture.
func fillMemory(tx nodest.Tx, x fixture) error {
	for _, err := range []error{
		tx.Memory.InsertFacts(x.character, x.memory()),
		tx.Memory.PutTombstone(x.character, memory.Tombstone{ContentHash: "private", Gist: &privateGist}),
		errOf(tx.Memory.LockReading(x.conversation)), tx.Memory.PutReading(x.conversation, memory.Reading{Calls: 2}),
		tx.Memory.InsertSuggestion(x.character, x.suggested()),
		tx.Memory.PutVectors(x.character, "m", map[string][]float32{x.fact: {1}, x.revision: {1}}),
		tx.Memory.PutSegmentParts(x.character, segmentID, 0, []byte("private")),
		putSegment(tx, x.character, memory.Segment{ID: segmentID, To: 1, Units: 1}),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// segmentID is the same for all users.
var segmentID = named("segment")

// putSegment adds a segment of which the parts are stored.
func putSegment(tx nodest.Tx, character string, s memory.Segment, replaces ...string) error {
	c, err := tx.Memory.MemoryChanges(character, 0, 0, 1)
	if err != nil {
		return err
	}
	return tx.Memory.PutSegment(character, c.Base, s, replaces...)
}

func init() { addIntrusions(memoryIntrusions) }

// ownCharacter stores a character of the intruder.
func ownCharacter(e *env, tx nodest.Tx) string {
	e.Helper()
	c := &character.Character{ID: id(), Name: "own"}
	if err := tx.Characters.InsertCharacter(c); err != nil {
		e.Fatal(err)
	}
	return c.ID
}

var memoryIntrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"LockMemory": func(e *env, tx nodest.Tx, x fixture) error { return wantNotFound(e, tx.Memory.LockMemory(x.character)) },
	"TalkedIn": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Memory.TalkedIn(x.character, x.conversation))
	},
	"MemoryVersion": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.MemoryVersion(x.character)
		return wantNotFound(e, err)
	},
	"MemoryChanges": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.MemoryChanges(x.character, 0, 0, 0)
		return wantNotFound(e, err)
	},
	"WithoutVector": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.WithoutVector(x.character, "m", 0, 5)
		return wantNotFound(e, err)
	},
	"MemoryUnits":     intrudeUnits(func(tx nodest.Tx) unitReader { return tx.Memory.MemoryUnits }),
	"UnitsForSegment": intrudeUnits(func(tx nodest.Tx) unitReader { return tx.Memory.UnitsForSegment }),
	"SegmentParts": func(e *env, tx nodest.Tx, x fixture) error {
		for _, character := range []string{x.character, ownCharacter(e, tx)} {
			if _, err := tx.Memory.SegmentParts(character, segmentID, 0); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"UnitVectors": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := tx.Memory.UnitVectors(x.character, "m", x.revision, x.fact); wantNotFound(e, err) != nil {
			return err
		}
		vectors, err := tx.Memory.UnitVectors(ownCharacter(e, tx), "m", x.revision, x.fact)
		return wantEmpty(e, len(vectors) == 0, err)
	},
	"Segments": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := tx.Memory.Segments(x.character)
		return wantNotFound(e, err)
	},
	"CountUnits": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := tx.Memory.CountUnits(x.character, 0, 100); wantNotFound(e, err) != nil {
			return err
		}
		n, err := tx.Memory.CountUnits(ownCharacter(e, tx), 0, 100)
		return wantEmpty(e, n == 0, err)
	},
	"Gaps": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.Gaps(x.character)
		return wantNotFound(e, err)
	},
	"UnitKeys": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.UnitKeys(x.character, 0, 100)
		return wantNotFound(e, err)
	},
	"PutSegmentParts": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, tx.Memory.PutSegmentParts(x.character, segmentID, 1, []byte("mine"))); err != nil {
			return err
		}
		return tx.Memory.PutSegmentParts(ownCharacter(e, tx), segmentID, 1, []byte("mine"))
	},
	"PutSegment": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Memory.PutSegment(x.character, 1, memory.Segment{ID: named("other"), From: 1, To: 2}, segmentID))
	},
	"DropSegments": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, tx.Memory.DropSegments(x.character)); err != nil {
			return err
		}
		return tx.Memory.DropSegments(ownCharacter(e, tx))
	},
	"DropLooseParts": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, tx.Memory.DropLooseParts(x.character)); err != nil {
			return err
		}
		return tx.Memory.DropLooseParts(ownCharacter(e, tx))
	},
	"Embedded": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := tx.Memory.Embedded(x.character)
		return wantNotFound(e, err)
	},
	"SetEmbedded": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Memory.SetEmbedded(x.character, "other", 1))
	},
	"PutVectors": func(e *env, tx nodest.Tx, x fixture) error {
		vectors := map[string][]float32{x.fact: {2}, x.revision: {2}}
		if err := wantNotFound(e, tx.Memory.PutVectors(x.character, "m", vectors)); err != nil {
			return err
		}
		return tx.Memory.PutVectors(ownCharacter(e, tx), "m", vectors)
	},
	"MemoryJobs": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := tx.Memory.MemoryJobs(x.character, "", 5)
		return wantNotFound(e, err)
	},

	"Shown": func(e *env, tx nodest.Tx, x fixture) error {
		for _, here := range []*memory.Place{nil, {ConversationID: x.conversation, HeadID: x.message},
			{ConversationID: x.conversation, HeadID: x.message, Version: 1}} {
			shown, err := tx.Memory.Shown(here, []memory.Evidence{x.evidence()})
			if err := wantEmpty(e, !slices.Contains(shown, true), err); err != nil {
				return err
			}
		}
		// Another user's message on a branch of one's own conversation.
		c := ownChat(e, tx)
		_, err := tx.Memory.Shown(&memory.Place{ConversationID: c, HeadID: x.message},
			[]memory.Evidence{{ConversationID: c, MessageID: x.message, RevisionID: x.revision, Seq: 1}})
		return wantNotFound(e, err)
	},
	"Said": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.Said(x.conversation, memory.SaidFilter{})
		return wantNotFound(e, err)
	},
	"SaidByID": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := tx.Memory.SaidByID(x.character, x.revision); wantNotFound(e, err) != nil {
			return err
		}
		said, err := tx.Memory.SaidByID(ownCharacter(e, tx), x.revision)
		return wantEmpty(e, len(said) == 0, err)
	},
	"MarkRead": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Memory.MarkRead(x.conversation, x.revision))
	},
	"MarkUnread": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Memory.MarkUnread(x.conversation))
	},
	"ForgetTexts": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, tx.Memory.ForgetTexts(x.character, x.revision)); err != nil {
			return err
		}
		return tx.Memory.ForgetTexts(ownCharacter(e, tx), x.revision)
	},
	"PutUses": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Memory.PutUses(x.conversation, x.generation, "", nil))
	},
	"Recalled": func(e *env, tx nodest.Tx, x fixture) error {
		units, profile, err := tx.Memory.Recalled(x.conversation, x.generation)
		return wantEmpty(e, len(units) == 0 && !profile, err)
	},
	"Uses": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.Uses(x.message)
		return wantNotFound(e, err)
	},

	"InsertFacts": func(e *env, tx nodest.Tx, x fixture) error {
		m := x.memory()
		m.ID, m.RootID = id(), id()
		if err := wantNotFound(e, tx.Memory.InsertFacts(x.character, m)); err != nil {
			return err
		}
		return tx.Memory.InsertFacts(ownCharacter(e, tx), x.memory())
	},
	"MarkFacts": func(e *env, tx nodest.Tx, x fixture) error {
		marks := memory.Marks{Status: memory.Retired}
		if err := wantNotFound(e, tx.Memory.MarkFacts(x.character, []string{x.fact}, marks)); err != nil {
			return err
		}
		return tx.Memory.MarkFacts(ownCharacter(e, tx), []string{x.fact}, marks)
	},
	"Known": func(e *env, tx nodest.Tx, x fixture) error {
		ids, hashes := []string{x.fact}, []string{lang.ContentHash("private"), "private"}
		if _, err := tx.Memory.Known(x.character, ids, hashes); wantNotFound(e, err) != nil {
			return err
		}
		known, err := tx.Memory.Known(ownCharacter(e, tx), ids, hashes)
		return wantEmpty(e, len(known) == 0, err)
	},
	"UpdateFact": func(e *env, tx nodest.Tx, x fixture) error {
		m := x.memory()
		m.Status = memory.Retired
		for _, character := range []string{x.character, ownCharacter(e, tx)} {
			if err := wantNotFound(e, tx.Memory.UpdateFact(character, m)); err != nil {
				return err
			}
		}
		return nil
	},
	"Fact": func(e *env, tx nodest.Tx, x fixture) error {
		for _, character := range []string{x.character, ownCharacter(e, tx)} {
			if _, err := tx.Memory.Fact(character, x.fact); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"Reading": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.Reading(x.conversation)
		return wantNotFound(e, err)
	},
	"LockReading": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.LockReading(x.conversation)
		return wantNotFound(e, err)
	},
	"PutReading": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Memory.PutReading(x.conversation, memory.Reading{Calls: 1}))
	},
	"FactVersions": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := tx.Memory.FactVersions(x.character, x.fact); wantNotFound(e, err) != nil {
			return err
		}
		items, err := tx.Memory.FactVersions(ownCharacter(e, tx), x.fact)
		return wantEmpty(e, len(items) == 0, err)
	},
	"FactsFrom": func(e *env, tx nodest.Tx, x fixture) error {
		roots, err := tx.Memory.FactsFrom(x.memory().Source)
		return wantEmpty(e, len(roots) == 0, err)
	},
	"Facts": func(e *env, tx nodest.Tx, x fixture) error {
		if _, _, err := tx.Memory.Facts(x.character, memory.Filter{Status: memory.AnyStatus}, "", 5); wantNotFound(e, err) != nil {
			return err
		}
		items, _, err := tx.Memory.Facts(ownCharacter(e, tx), memory.Filter{Status: memory.AnyStatus}, "", 5)
		return wantEmpty(e, len(items) == 0, err)
	},
	"PurgeFacts": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, tx.Memory.PurgeFacts(x.character, x.fact)); err != nil {
			return err
		}
		return tx.Memory.PurgeFacts(ownCharacter(e, tx), x.fact)
	},
	"PurgeTexts": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := tx.Memory.PurgeTexts(x.character, 10); wantNotFound(e, err) != nil {
			return err
		}
		_, err := tx.Memory.PurgeTexts(ownCharacter(e, tx), 10)
		return err
	},
	"PurgeScope": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, tx.Memory.PurgeScope(x.character)); err != nil {
			return err
		}
		return tx.Memory.PurgeScope(ownCharacter(e, tx))
	},

	"Tombstones": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.Tombstones(x.character)
		return wantNotFound(e, err)
	},
	"Gists": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := tx.Memory.Gists(x.character, privateGist.Keys())
		return wantNotFound(e, err)
	},
	"PutTombstone": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Memory.PutTombstone(x.character, memory.Tombstone{ContentHash: "private"}))
	},
	"InsertSuggestion": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, tx.Memory.InsertSuggestion(x.character, x.suggested())); err != nil {
			return err
		}
		return tx.Memory.InsertSuggestion(ownCharacter(e, tx), x.suggested())
	},
	"Suggestion": func(e *env, tx nodest.Tx, x fixture) error {
		for _, character := range []string{x.character, ownCharacter(e, tx)} {
			if _, err := tx.Memory.Suggestion(character, x.suggestion); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"UpdateSuggestion": func(e *env, tx nodest.Tx, x fixture) error {
		for _, character := range []string{x.character, ownCharacter(e, tx)} {
			if err := wantNotFound(e, tx.Memory.UpdateSuggestion(character, x.suggested())); err != nil {
				return err
			}
		}
		return nil
	},
	"Suggestions": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := tx.Memory.Suggestions(x.character, "", "", 5)
		return wantNotFound(e, err)
	},
	"SuggestionKeys": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Memory.SuggestionKeys(x.character)
		return wantNotFound(e, err)
	},
}

type unitReader = func(characterID string, ids ...string) ([]recall.Unit, error)

func intrudeUnits(of func(nodest.Tx) unitReader) func(e *env, tx nodest.Tx, x fixture) error {
	return func(e *env, tx nodest.Tx, x fixture) error {
		read := of(tx)
		if _, err := read(x.character, x.revision, x.fact); wantNotFound(e, err) != nil {
			return err
		}
		units, err := read(ownCharacter(e, tx), x.revision, x.fact)
		return wantEmpty(e, len(units) == 0, err)
	}
}

func TestUnembeddedListsTheScopesOfAllUsers(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		a, b := fill(e, e.user), fill(e, newUser(e))
		scopes, err := e.db.Memory().Unembedded(context.Background(), "other", memory.Scope{}, 10)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("scopes", len(scopes), 2)
		for _, x := range []fixture{a, b} {
			e.equal("scope of "+x.user, slices.Contains(scopes, memory.Scope{UserID: x.user, CharacterID: x.character}), true)
		}
		rest, err := e.db.Memory().Unembedded(context.Background(), "other", scopes[0], 10)
		e.equal("scopes after the first", []any{rest, err}, []any{scopes[1:], nil})
		for _, x := range []fixture{a, b} {
			err := e.db.Update(context.Background(), x.user, func(tx nodest.Tx) error {
				version, err := tx.Memory.MemoryVersion(x.character)
				return errors.Join(err, tx.Memory.SetEmbedded(x.character, "m", version))
			})
			if err != nil {
				e.Fatal(err)
			}
		}
		scopes, err = e.db.Memory().Unembedded(context.Background(), "m", memory.Scope{}, 10)
		e.equal("scopes without missing vectors", []any{scopes, err}, []any{[]memory.Scope(nil), nil})
		e.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(a.character) })
		scopes, _ = e.db.Memory().Unembedded(context.Background(), "other", memory.Scope{}, 10)
		e.equal("scopes after a deletion", scopes, []memory.Scope{{UserID: b.user, CharacterID: b.character}})
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Memory.MemoryVersion(a.character); return err })
	})
}
