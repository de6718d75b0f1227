package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store"
)

func (e *env) version(character string) (version int64) {
	e.Helper()
	e.view(func(tx nodest.Tx) (err error) { version, err = tx.Memory.MemoryVersion(character); return err })
	return version
}

// addSegment stores a segment of the changes after from, up to to, with one part.
func (e *env) addSegment(character, name string, from, to int64, replaces ...string) {
	e.Helper()
	e.update(func(tx nodest.Tx) error {
		return tx.Memory.PutSegmentParts(character, name, 0, []byte("part of "+name))
	})
	e.update(func(tx nodest.Tx) error {
		return putSegment(tx, character, memory.Segment{ID: name, From: from, To: to, Units: 1}, replaces...)
	})
}

// segmentNames lists the segments of a character of which the part can be read, by range.
func (e *env) segmentNames(character string) string {
	e.Helper()
	var names []string
	e.view(func(tx nodest.Tx) error {
		c, err := tx.Memory.MemoryChanges(character, 0, 0, 1)
		if err != nil {
			return err
		}
		for _, s := range c.Segments {
			if _, err := tx.Memory.SegmentParts(character, s.ID, 0); err != nil {
				return err
			}
			names = append(names, nameOf(s.ID))
		}
		return nil
	})
	return strings.Join(names, " ")
}

func textsOf(units []recall.Unit) string {
	texts := make([]string, len(units))
	for i, u := range units {
		texts[i] = u.Text
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

func keyIDs(keys []memory.UnitKey) (ids []string) {
	for _, k := range keys {
		ids = append(ids, k.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestRowsOfASegmentAreNotLoadedUnlessTheyChange(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		first := e.say(conv, "", "first")
		one, two := fact("fact one", evidenceOf(first)), fact("fact two", evidenceOf(first))
		e.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(character, one, two) })
		e.embed(character)
		to := e.version(character)
		e.addSegment(character, named("a"), 0, to)
		c := e.changes(character, &memory.Changes{})
		e.equal("a whole load", []any{c.Whole, c.Partial, c.Segments, len(c.Units)},
			[]any{true, false, []memory.Segment{{ID: named("a"), To: to, Units: 1}}, 0})

		e.say(conv, first.ID, "second")
		e.update(func(tx nodest.Tx) error {
			pinned := true
			return tx.Memory.MarkFacts(character, []string{two.ID}, memory.Marks{Pinned: &pinned})
		})
		later := e.changes(character, c)
		e.equal("what changed", []any{later.Whole, textsOf(later.Units)}, []any{false, "fact two, second"})
		e.equal("a whole load again", textsOf(e.units(character)), "fact two, second")
		e.view(func(tx nodest.Tx) error {
			keys, err := tx.Memory.UnitKeys(character, 0, to)
			e.equal("rows that are left in the range", []any{keyIDs(keys), err}, []any{keyIDs([]memory.UnitKey{{ID: one.ID}, {ID: first.Swipes[0].RevisionID}}), nil})
			gaps, err := tx.Memory.Gaps(character)
			e.equal("gaps", []any{gaps, err}, []any{[]memory.Gap{{From: to, To: later.Version, Units: 2}}, nil})
			return nil
		})
	})
}

// The ranges are (from, to]; a purge in between leaves a gap.
func TestGapsBetweenSegmentsAreLoaded(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv, last := e.chat(character), ""
		for i := range 6 { // in the versions 1 to 6
			last = e.say(conv, last, fmt.Sprint(i+1)).ID
		}
		e.addSegment(character, named("b"), 4, 5)
		e.addSegment(character, named("a"), 1, 2)
		for _, limit := range []int{0, 1, 2} {
			c, loaded := &memory.Changes{More: true}, []recall.Unit(nil)
			for c.More {
				c = e.someChanges(character, c, limit)
				loaded = append(loaded, c.Units...)
			}
			e.equal(fmt.Sprint("in parts of ", limit), textsOf(loaded), "1, 3, 4, 6")
		}
		e.view(func(tx nodest.Tx) error {
			gaps, err := tx.Memory.Gaps(character)
			e.equal("gaps", []any{gaps, err}, []any{[]memory.Gap{{To: 1, Units: 1}, {From: 2, To: 4, Units: 2}, {From: 5, To: 8, Units: 1}}, nil})
			return nil
		})
		e.addSegment(character, named("ab"), 0, 5, named("a"), named("b"))
		e.equal("after a merge", []any{textsOf(e.units(character)), e.segmentNames(character), e.userRows("memory_segment_parts")}, []any{"6", "ab", int64(1)})
	})
}

func TestOfManyLooseRowsTheNewestAreLoaded(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		const all, most = 8003, 8000
		character := e.character()
		facts := make([]*memory.Memory, all)
		for i := range facts {
			facts[i] = fact(fmt.Sprint("fact ", i))
			facts[i].Importance = float64(i)
		}
		e.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(character, facts...) })
		e.update(func(tx nodest.Tx) error {
			if err := store.Exec(tx, "UPDATE memories SET change = 1 + CAST(importance AS BIGINT) WHERE user_id = ?", e.user); err != nil {
				return err
			}
			return store.Exec(tx, "UPDATE memory_scopes SET version = ? WHERE user_id = ?", all, e.user)
		})
		c := e.someChanges(character, &memory.Changes{}, 3000)
		oldest := slices.MinFunc(c.Units, func(a, b recall.Unit) int { return cmp.Compare(a.Version, b.Version) })
		e.equal("the first part", []any{c.Whole, c.Partial, c.More, oldest.Text, len(c.Units)}, []any{true, true, true, "fact 3", 3000})
		n := len(c.Units)
		for c.More {
			c = e.someChanges(character, c, 3000)
			n += len(c.Units)
		}
		e.equal("rows of all parts", []any{n, c.Version}, []any{most, int64(all)})
		e.addSegment(character, named("a"), 0, 3)
		e.equal("when no more are loose", e.someChanges(character, &memory.Changes{}, 1).Partial, false)
	})
}

// segmented is a memory of which each version has a segment of its own: two texts, a fact, the fact
// when it was pinned, and a last text.
type segmented struct {
	character, chat, text string
	last                  *chat.Message
	fact                  *memory.Memory
}

const allSegments = "before text fact pinned last"

func (e *env) segmented() segmented {
	e.Helper()
	s := segmented{character: e.character()}
	s.chat = e.chat(s.character)
	before := e.say(s.chat, "", "before")
	text := e.say(s.chat, before.ID, "the text")
	s.text, s.fact = text.Swipes[0].RevisionID, fact("a fact", evidenceOf(before))
	e.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(s.character, s.fact) })
	e.update(func(tx nodest.Tx) error {
		pinned := true
		return tx.Memory.MarkFacts(s.character, []string{s.fact.ID}, memory.Marks{Pinned: &pinned})
	})
	s.last = e.say(s.chat, text.ID, "last")
	for i, name := range strings.Fields(allSegments) {
		e.addSegment(s.character, named(name), int64(i), int64(i+1))
	}
	return s
}

func TestAPurgeDropsTheSegmentsThatMayHaveTheWordsAndNoOthers(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		for _, tt := range []struct {
			name  string
			purge func(tx nodest.Tx, s segmented) error
			left  string
		}{
			{"a text", func(tx nodest.Tx, s segmented) error { return tx.Memory.ForgetTexts(s.character, s.text) }, "before fact pinned last"},
			{"a fact, and what it was before", func(tx nodest.Tx, s segmented) error { return tx.Memory.PurgeFacts(s.character, s.fact.ID) }, "before text last"},
			{"words that were forgotten", func(tx nodest.Tx, s segmented) error {
				return tx.Memory.PutTombstone(s.character, memory.Tombstone{ContentHash: lang.ContentHash("the text")})
			}, "before fact pinned last"},
			{"the source of a fact", func(tx nodest.Tx, s segmented) error {
				return tx.Memory.PutTombstone(s.character, memory.Tombstone{ContentHash: "x", Evidence: []memory.Evidence{{RevisionID: s.text}}})
			}, "before fact pinned last"},
			{"everything", func(tx nodest.Tx, s segmented) error { return tx.Memory.PurgeScope(s.character) }, ""},
			{"nothing", func(tx nodest.Tx, s segmented) error { return tx.Memory.PurgeFacts(s.character, id()) }, allSegments},
			{"a chat that can be seen no more", func(tx nodest.Tx, s segmented) error { return tx.Chats.DeleteConversation(s.chat) }, allSegments},
		} {
			s, other := e.segmented(), e.segmented()
			parts := e.userRows("memory_segment_parts")
			e.update(func(tx nodest.Tx) error { return tt.purge(tx, s) })
			e.equal(tt.name, e.segmentNames(s.character), tt.left)
			e.equal(tt.name+": another character", e.segmentNames(other.character), allSegments)
			e.equal(tt.name+": parts", e.userRows("memory_segment_parts"), parts-int64(5-len(strings.Fields(tt.left))))
		}
	})
}

func TestMaintenanceDropsTheSegmentsOfMessages(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := e.segmented()
		e.update(func(tx nodest.Tx) error {
			now := tx.Now()
			s.last.Rev, s.last.DeletedAt = 2, &now
			return tx.Chats.UpdateMessage(s.last)
		})
		e.clock.advance(31 * day)
		e.maintain()
		e.equal("segments", e.segmentNames(s.character), "before text fact pinned")
		e.equal("parts", e.userRows("memory_segment_parts"), int64(4))
	})
}

// A segment that was begun before a purge may have words that were purged since.
func TestASegmentConflictsWithWhatHappenedSinceItWasBegun(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := e.segmented()
		base := e.changes(s.character, &memory.Changes{}).Base
		put := func(o memory.Segment, replaces ...string) func(tx nodest.Tx) error {
			return func(tx nodest.Tx) error { return tx.Memory.PutSegment(s.character, base, o, replaces...) }
		}
		e.refused(fault.Conflict, put(memory.Segment{ID: named("more"), From: 4, To: 6}))
		e.refused(fault.Conflict, put(memory.Segment{ID: named("all"), To: 5}, named("before"), named("text"), named("fact"), named("last")))
		e.equal("segments", e.segmentNames(s.character), allSegments)
		e.say(s.chat, s.last.ID, "a message is no conflict")
		e.update(put(memory.Segment{ID: named("more"), From: 5, To: 6}))

		base = e.changes(s.character, &memory.Changes{}).Base
		e.update(func(tx nodest.Tx) error { return tx.Memory.ForgetTexts(s.character, s.last.Swipes[0].RevisionID) })
		e.refused(fault.Conflict, put(memory.Segment{ID: named("late"), From: 6, To: 7}))
	})
}

// A purge that waits for a new segment sees it.
func TestAPurgeDuringPutSegmentDropsTheSegment(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		first := e.say(conv, "", "first")
		last := e.say(conv, first.ID, "last")
		e.update(func(tx nodest.Tx) error {
			now := tx.Now()
			last.Rev, last.DeletedAt = 2, &now
			return tx.Chats.UpdateMessage(last)
		})
		e.clock.advance(31 * day)
		e.update(func(tx nodest.Tx) error {
			return tx.Memory.PutSegmentParts(character, named("a"), 0, []byte("first last"))
		})
		base, ended := e.changes(character, &memory.Changes{}).Base, make(chan error, 1)
		e.update(func(tx nodest.Tx) error {
			if err := tx.Memory.PutSegment(character, base, memory.Segment{ID: named("a"), To: 2}); err != nil {
				return err
			}
			go func() {
				_, _, err := store.Maintain(context.Background(), e.db)
				ended <- err
			}()
			e.waitsForALock("INSERT INTO memory_scopes")
			return nil
		})
		if err := <-ended; err != nil {
			e.Fatal(err)
		}
		e.equal("segments, parts, texts", []any{e.segmentNames(character), e.userRows("memory_segment_parts"), textsOf(e.units(character))}, []any{"", int64(0), "first"})
	})
}

func TestPartsOfAnUnfinishedSegmentAreNotSeenAndGo(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := e.segmented()
		begin := func() {
			e.update(func(tx nodest.Tx) error {
				return tx.Memory.PutSegmentParts(s.character, named("begun"), 1, []byte("one"), []byte("two"))
			})
		}
		begin()
		read := func(part int) func(tx nodest.Tx) error {
			return func(tx nodest.Tx) error {
				_, err := tx.Memory.SegmentParts(s.character, named("begun"), part)
				return err
			}
		}
		e.refused(fault.NotFound, read(1))
		e.equal("segments", e.segmentNames(s.character), allSegments)
		e.update(func(tx nodest.Tx) error { return tx.Memory.DropLooseParts(s.character) })
		e.equal("parts", e.userRows("memory_segment_parts"), int64(5))
		begin()
		e.update(func(tx nodest.Tx) error { return tx.Memory.ForgetTexts(s.character, s.text) })
		e.equal("parts after a purge", e.userRows("memory_segment_parts"), int64(4))
		begin()
		e.update(func(tx nodest.Tx) error {
			return putSegment(tx, s.character, memory.Segment{ID: named("begun"), From: 5, To: 6})
		})
		e.view(func(tx nodest.Tx) error {
			parts, err := tx.Memory.SegmentParts(s.character, named("begun"), 2, 1)
			e.equal("parts in the order asked", []any{parts, err}, []any{[][]byte{[]byte("two"), []byte("one")}, nil})
			return nil
		})
		e.refused(fault.NotFound, read(0))
	})
}

func TestUnitsAreReadAsTheyAreNow(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv, away := e.chat(character), e.chat(character)
		ids := map[string]string{} // by the text
		last := &chat.Message{}
		for _, text := range []string{"shown", "forgotten", "buried", "the source", "again"} {
			last = e.say(conv, last.ID, text)
			ids[text] = last.Swipes[0].RevisionID
		}
		ids["away"] = e.say(away, "", "away").Swipes[0].RevisionID
		for _, text := range []string{"active", "superseded", "deleted", "retired"} {
			m := fact("fact "+text, evidenceOf(last))
			m.Status = memory.Status(text)
			ids[m.Text] = e.learn(character, m).ID
		}
		e.embed(character)
		e.update(func(tx nodest.Tx) error {
			return errors.Join(tx.Memory.ForgetTexts(character, ids["forgotten"]),
				tx.Memory.PutTombstone(character, memory.Tombstone{ContentHash: lang.ContentHash("buried"), Evidence: []memory.Evidence{{RevisionID: ids["the source"]}}}),
				tx.Chats.DeleteConversation(away))
		})
		all := append(slices.Collect(maps.Values(ids)), id())
		e.view(func(tx nodest.Tx) error {
			units, err := tx.Memory.MemoryUnits(character, all...)
			e.equal("units", []any{textsOf(units), err}, []any{", again, fact active, fact superseded, shown", nil})
			describe := func(units []recall.Unit) (lines []string) {
				for _, u := range units {
					u.Terms, u.Vectors = "", nil // only an index needs them
					lines = append(lines, describeUnit(u))
				}
				slices.Sort(lines)
				return lines
			}
			e.equal("units as in a load", describe(units), describe(e.units(character)))
			units, err = tx.Memory.UnitsForSegment(character, all...)
			e.equal("for a segment", []any{textsOf(units), err}, []any{", again, away, fact active, fact superseded, shown", nil})
			for _, u := range units {
				if u.Text != "" && len(u.Vectors) != 1 {
					t.Errorf("%q has %d vectors", u.Text, len(u.Vectors))
				}
			}
			keys, err := tx.Memory.UnitKeys(character, 0, 1000)
			e.equal("keys", []any{len(keys), slices.Contains(keyIDs(keys), ids["forgotten"]), slices.Contains(keyIDs(keys), ids["fact deleted"]), err},
				[]any{7, false, false, nil}) // "buried" is among them: it is not looked up by its words
			return nil
		})
	})
}

// The texts that a fork copies are loaded when it is shown, in parts as they were copied.
func TestTheTextsOfAForkAreInSegmentsBeforeItIsShown(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		all := e.talk(conv, "", 5)
		fork := &chat.Conversation{ID: id(), CharacterID: character}
		from := e.beginFork(fork, conv, all[4].ID, 3)
		to := e.version(character)
		e.addSegment(character, named("a"), 0, to)
		e.equal("loose rows", len(e.units(character)), 0)
		e.view(func(tx nodest.Tx) error {
			keys, err := tx.Memory.UnitKeys(character, 0, to)
			e.equal("rows in the range", []any{len(keys), err}, []any{5 + 3, nil})
			return nil
		})
		e.finishFork(fork, from, 3)
		e.equal("loose rows when the fork is shown", len(e.units(character)), 2)
	})
}

func TestWithoutVectorReadsOldestChangesFirstAndEachContentOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv, last := e.chat(character), ""
		say := func(text string) { last = e.say(conv, last, text).ID }
		say("first")
		for range 9 {
			say("copy")
		}
		e.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(character, fact("a fact")) })
		between := e.version(character)
		say("last")
		without := func(since int64, limit int) string {
			var texts []string
			e.view(func(tx nodest.Tx) error {
				contents, err := tx.Memory.WithoutVector(character, "m", since, limit)
				for _, c := range contents {
					texts = append(texts, c.Text)
				}
				return err
			})
			return strings.Join(texts, ", ")
		}
		e.equal("all", without(0, 10), "first, copy, a fact, last")
		e.equal("with a limit", without(0, 3), "first, copy, a fact")
		e.equal("since a change", without(between, 10), "last")
		e.equal("since the one before", without(between-1, 10), "a fact, last")
	})
}
