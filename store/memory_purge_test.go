package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store"
)

// mentions lists the columns of the memory tables that contain a word or an id.
func (e *env) mentions(word string) (places []string) {
	e.Helper()
	for table, columns := range tables(e.T, e.db) {
		if !strings.HasPrefix(table, "memor") {
			continue
		}
		for _, c := range columns {
			if c == "vector" || c == "unit_id" { // numbers; and the id of what was sent once, without its words
				continue
			}
			query, args := "SELECT COUNT(*) FROM "+table+" WHERE CAST("+c+" AS TEXT) LIKE ?", []any{"%" + word + "%"}
			if id, err := uuid.Parse(word); err == nil && !store.OnPostgres(e.db) { // stores the bytes
				query, args = query+" OR instr(CAST("+c+" AS BLOB), ?) > 0", append(args, id[:])
			}
			n, err := store.Query[int64](e.db, query, args...)
			if err != nil {
				e.Fatal(err)
			}
			if n[0] > 0 {
				places = append(places, table+"."+c)
			}
		}
	}
	slices.Sort(places)
	return places
}

// rememberedChat is a chat of two texts, with a fact in two versions and a row of
// every kind that memory can have.
type rememberedChat struct {
	character, chat string
	messages        []*chat.Message
	first, second   *memory.Memory
}

func (e *env) remember(words string) *rememberedChat {
	e.Helper()
	r := &rememberedChat{character: e.character()}
	r.chat = e.chat(r.character)
	r.messages = append(r.messages, e.say(r.chat, "", words+" zebra"))
	r.first, r.second = fact(words+" old", evidenceOf(r.messages[0])), fact(words+" new", evidenceOf(r.messages[0]))
	r.second.RootID, r.second.Version = r.first.ID, 2
	r.first.Status = memory.Superseded
	e.update(func(tx nodest.Tx) error {
		for _, err := range []error{
			tx.Memory.InsertFacts(r.character, r.first), tx.Memory.InsertFacts(r.character, r.second),
			tx.Memory.InsertSuggestion(r.character, &memory.Suggested{ID: id(), State: memory.SuggestionOpen,
				Suggestion: memory.Suggestion{MemoryID: r.second.ID, Event: memory.EventUpdate, Text: words + " suggested"}}),
			tx.Memory.PutTombstone(r.character, memory.Tombstone{ContentHash: lang.ContentHash(words + " grave")}),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	r.messages = append(r.messages, e.say(r.chat, r.messages[0].ID, words+" answer", memory.Use{ID: r.second.ID, Layer: recall.Fact, Rank: 1},
		memory.Use{ID: r.messages[0].Swipes[0].RevisionID, Layer: recall.Exchange, Rank: 2}))
	e.embed(r.character)
	return r
}

// vectors counts the vectors of the user.
func (e *env) vectors() int64 {
	e.Helper()
	n := e.queryInts("SELECT (SELECT COUNT(vector) FROM memory_texts WHERE user_id = ?) + (SELECT COUNT(vector) FROM memories WHERE user_id = ?)", e.user, e.user)
	return n[0]
}

// embed stores a vector for every unit of a character that has none, up to a limit.
func (e *env) embed(character string) {
	e.Helper()
	e.update(func(tx nodest.Tx) error {
		contents, err := tx.Memory.WithoutVector(character, "m", 0, 100)
		vectors := map[string][]float32{}
		for _, c := range contents {
			for _, id := range c.IDs {
				vectors[id] = []float32{1}
			}
		}
		if err != nil {
			return err
		}
		return tx.Memory.PutVectors(character, "m", vectors)
	})
}

func TestNothingIsLeftOfAPurgedFact(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		r, other := e.remember("mine"), e.remember("other")
		e.update(func(tx nodest.Tx) error { return tx.Memory.PurgeFacts(r.character, r.first.ID, id()) })
		for _, word := range []string{r.first.ID, r.second.ID, "mine old", "mine new", "suggested", lang.ContentHash("mine old"), lang.ContentHash("mine new")} {
			want := []string(nil)
			if word == "suggested" { // that of the other chat stays
				want = []string{"memory_suggestions.text"}
			}
			e.equal("places of "+word, e.mentions(word), want)
		}
		e.equal("use of the text", e.uses(r.messages[1].ID), []string{"2 exchange"})
		e.equal("uses of the other", e.uses(other.messages[1].ID), []string{"1 fact", "2 exchange"})
		e.equal("vectors", e.vectors(), int64(2+4))
		e.equal("facts", e.userRows("memories"), int64(2))
	})
}

func (e *env) uses(message string) (lines []string) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		uses, err := tx.Memory.Uses(message)
		for _, u := range uses {
			lines = append(lines, fmt.Sprint(u.Rank, " ", u.Layer))
		}
		return err
	})
	return lines
}

func TestNothingIsLeftOfAForgottenText(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		r := e.remember("mine")
		revision := r.messages[0].Swipes[0].RevisionID
		before := e.changes(r.character, &memory.Changes{})
		e.update(func(tx nodest.Tx) error { return tx.Memory.ForgetTexts(r.character, revision, id()) })
		e.equal("places of its words", append(e.mentions("zebra"), e.mentions(lang.ContentHash("mine zebra"))...), []string(nil))
		e.equal("places of its id", e.mentions(revision), []string{"memories.evidence", "memory_texts.revision_id"})
		e.equal("uses", e.uses(r.messages[1].ID), []string{"1 fact"})
		c := e.changes(r.character, before)
		e.equal("change", []any{c.Whole, c.Gone, len(c.Units)}, []any{true, []string(nil), len(before.Units) - 1})
		e.view(func(tx nodest.Tx) error {
			shown, err := tx.Memory.Shown(nil, []memory.Evidence{evidenceOf(r.messages[0]), evidenceOf(r.messages[1])})
			e.equal("shown", []any{shown, err}, []any{[]bool{false, true}, nil})
			said, err := tx.Memory.SaidByID(r.character, revision)
			e.equal("said", []any{len(said), err}, []any{0, nil})
			m, err := tx.Chats.Message(r.messages[0].ID)
			e.equal("the chat", []any{m.Text(), err}, []any{"mine zebra", nil})
			return nil
		})
		e.equal("the only text", e.memoryTexts(r.chat), []string{"2 1 user Ada mine answer false"})
		e.embed(r.character)
		e.equal("its vector", e.vectors(), int64(3))
	})
}

// The texts of a long memory are removed some at a time, and with them what was made of them.
func TestTextsArePurgedInParts(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		r, other := e.remember("mine"), e.remember("other")
		for i, texts := range []int64{1, 0, 0} {
			var left bool
			e.update(func(tx nodest.Tx) (err error) { left, err = tx.Memory.PurgeTexts(r.character, 1); return err })
			e.equal("texts", []any{e.userRows("memory_texts"), left}, []any{2 + texts, i < 2})
		}
		e.equal("units of the other", len(e.units(other.character)), 4)
	})
}

func TestNothingIsLeftOfAPurgedScope(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		r, other := e.remember("mine"), e.remember("other")
		e.update(func(tx nodest.Tx) error {
			return tx.Memory.PurgeScope(r.character)
		})
		e.equal("places of its character", e.mentions(r.character), []string{"memory_scopes.character_id"})
		e.equal("uses of the other", e.uses(other.messages[1].ID), []string{"1 fact", "2 exchange"})
		for table, n := range map[string]int64{"memories": 2, "memory_texts": 2, "memory_suggestions": 1, "memory_tombstones": 1} {
			e.equal("rows of the other in "+table, e.userRows(table), n)
		}
		e.equal("units of the other", len(e.units(other.character)), 4)

		fork := &chat.Conversation{ID: id(), CharacterID: r.character}
		e.forkTo(fork, r.chat, r.messages[1].ID)
		e.equal("units of a fork", len(e.units(r.character)), 0)
		e.change(r.messages[0].ID, edit("said anew"))
		e.equal("units of later texts", len(e.units(r.character)), 1)
	})
}

func TestMaintenanceRemovesMemoriesOfDeletedChats(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		r := e.remember("mine")
		kept := e.say(e.chat(r.character), "", "something else")
		both := fact("both", evidenceOf(r.messages[1]), evidenceOf(kept))
		both.Evidence[1].Sighting = 1
		alone := fact("written by the user")
		e.learn(r.character, both)
		e.learn(r.character, alone)
		e.embed(r.character)
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(r.chat) })
		e.equal("units after the deletion", names(e.units(r.character)), []string{"both", "mine new", "mine old", "something else", "written by the user"})
		e.maintain()
		e.equal("texts before 30 days", e.userRows("memory_texts"), int64(3))
		before := e.changes(r.character, &memory.Changes{})
		e.clock.advance(31 * day)
		e.maintain()
		c := e.changes(r.character, before)
		e.equal("units after maintenance", []any{c.Whole, names(c.Units)}, []any{true, []string{"both", "something else", "written by the user"}})
		e.equal("places of its words", e.mentions("mine"), []string(nil))
		for table, n := range map[string]int64{"memories": 2, "memory_texts": 1, "memory_suggestions": 0} {
			e.equal("rows in "+table, e.userRows(table), n)
		}
	})
}

func TestMaintenanceRemovesMemoriesOfDeletedMessages(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		r := e.remember("mine")
		e.change(r.messages[0].ID, deleteMessage)
		e.clock.advance(40 * day)
		e.equal("messages that lost their texts", e.maintain()["texts"], 1)
		e.equal("units", names(e.units(r.character)), []string{"mine answer"})
		e.equal("places of its words", append(e.mentions("zebra"), e.mentions("mine new")...), []string(nil))
		e.equal("uses", e.uses(r.messages[1].ID), []string(nil))
		e.equal("vectors", e.vectors(), int64(1))
	})
}

func names(units []recall.Unit) (texts []string) {
	for _, u := range units {
		texts = append(texts, u.Text)
	}
	slices.Sort(texts)
	return texts
}

func TestSuggestionsAreStoredAndListed(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		m := e.say(e.chat(character), "", "hm")
		var all []memory.Suggested
		for i := range 4 {
			s := memory.Suggested{ID: id(), State: []string{memory.SuggestionOpen, memory.SuggestionRejected}[i%2],
				Suggestion: memory.Suggestion{MemoryID: id(), Event: memory.EventUpdate, Text: fmt.Sprint("text ", i), Reason: "because",
					Evidence: []memory.Evidence{evidenceOf(m)}}}
			e.update(func(tx nodest.Tx) error { return tx.Memory.InsertSuggestion(character, &s) })
			all = append(all, s)
		}
		list := func(state string, limit int) (texts []string) {
			e.view(func(tx nodest.Tx) error {
				for cursor := ""; ; {
					items, next, err := tx.Memory.Suggestions(character, state, cursor, limit)
					for _, s := range items {
						texts = append(texts, s.Text)
					}
					if cursor = next; next == "" {
						return err
					}
				}
			})
			return texts
		}
		e.equal("all", list("", 1), []string{"text 3", "text 2", "text 1", "text 0"})
		e.equal("open", list(memory.SuggestionOpen, 0), []string{"text 2", "text 0"})
		all[2].State = memory.SuggestionAccepted
		e.update(func(tx nodest.Tx) error { return tx.Memory.UpdateSuggestion(character, &all[2]) })
		e.equal("open", list(memory.SuggestionOpen, 0), []string{"text 0"})
		e.view(func(tx nodest.Tx) error {
			s, err := tx.Memory.Suggestion(character, all[2].ID)
			e.equal("one", []any{*s, err}, []any{all[2], nil})
			keys, err := tx.Memory.SuggestionKeys(character)
			for _, s := range all {
				e.equal("key", keys[s.Key()], true)
			}
			return err
		})
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Memory.Suggestion(character, id()); return err })
	})
}

func TestATombstoneKeepsAllItsEvidence(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		m := e.say(e.chat(character), "", "hm")
		a, b := evidenceOf(m), evidenceOf(m)
		b.RevisionID = id()
		for _, evidence := range [][]memory.Evidence{{a}, {a, b}, nil} {
			e.update(func(tx nodest.Tx) error {
				return tx.Memory.PutTombstone(character, memory.Tombstone{ContentHash: "h", Evidence: evidence})
			})
		}
		e.view(func(tx nodest.Tx) error {
			stones, err := tx.Memory.Tombstones(character)
			e.equal("tombstones", []any{stones, err}, []any{[]memory.Tombstone{{ContentHash: "h", Evidence: []memory.Evidence{a, b}, CreatedAt: start}}, nil})
			return nil
		})
	})
}

// A memory larger than one statement's parameter limit is read in one call.
func TestALargeMemoryIsReadInOneCall(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		e.say(e.chat(character), "", "before")
		e.embedAll(character)
		before := e.changes(character, &memory.Changes{})
		all := e.loadTalk(character, 1100)
		e.embedAll(character)
		c := e.changes(character, before)
		e.equal("units", []any{c.Whole, len(c.Units)}, []any{true, len(before.Units) + 1100})
		for _, u := range c.Units {
			e.equal("vectors", u.Vectors, []index.Kept{{Model: "m", Packed: index.Pack([]float32{1})}})
		}
		var evidence []memory.Evidence
		var revisions []string
		for _, m := range all {
			evidence, revisions = append(evidence, evidenceOf(m)), append(revisions, m.Swipes[0].RevisionID)
		}
		e.view(func(tx nodest.Tx) error {
			shown, err := tx.Memory.Shown(nil, evidence)
			e.equal("shown", []any{slices.Contains(shown, false), err}, []any{false, nil})
			said, err := tx.Memory.SaidByID(character, revisions...)
			e.equal("said", []any{len(said), err}, []any{1100, nil})
			return nil
		})
		e.clock.advance(time.Minute)
		e.update(func(tx nodest.Tx) error { return tx.Memory.ForgetTexts(character, revisions...) })
		e.equal("units in the end", len(e.units(character)), len(before.Units))
		e.equal("vectors in the end", e.vectors(), int64(len(before.Units)))
	})
}

func (e *env) embedAll(character string) {
	e.Helper()
	for n := e.vectors(); ; {
		e.embed(character)
		if after := e.vectors(); after == n {
			return
		} else {
			n = after
		}
	}
}
