package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/summary"
	"nodest/nodest"
	"nodest/store"
)

// summary returns a summary of messages, made at a version as the engine makes it.
func (e *env) summary(generation int, version int64, over ...*chat.Message) *chat.KeptSummary {
	first, last := over[0], over[len(over)-1]
	return &chat.KeptSummary{
		Summary: &summary.Summary{
			ID: id(), Text: fmt.Sprint("summary ", generation), At: e.clock.now().UTC(), Count: len(over), Generation: generation,
			Method: summary.MethodModel, Model: "m", Digest: "d", BaseID: "b",
			Range: summary.Range{Start: 0, End: len(over) - 1, StartID: first.ID, EndID: last.ID, StartSeq: first.Seq, EndSeq: last.Seq},
		},
		ConversationID: first.ConversationID, MadeVersion: version, HeadSeq: last.Seq + 2, ViewLength: 77,
	}
}

// summarise stores a summary.
func (e *env) summarise(generation int, version int64, over ...*chat.Message) *chat.KeptSummary {
	e.Helper()
	k := e.summary(generation, version, over...)
	e.update(func(tx nodest.Tx) error { return tx.Chats.InsertSummary(k) })
	return k
}

func (e *env) summaryAt(id string, version int64) (k *chat.KeptSummary) {
	e.Helper()
	e.view(func(tx nodest.Tx) (err error) {
		k, err = tx.Chats.Summary(id, version)
		return err
	})
	return k
}

// countRows counts all users' rows in a table.
func countRows(e *env, table string) int64 {
	e.Helper()
	n, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM "+table)
	if err != nil {
		e.Fatal(err)
	}
	return n[0]
}

// describeSummary returns everything that is stored of a summary.
func describeSummary(k *chat.KeptSummary) string {
	deleted := "-"
	if k.DeletedAt != nil {
		deleted = k.DeletedAt.UTC().String()
	}
	said := *k.Summary
	said.Since = 0
	return fmt.Sprintf("%+v %s %d %d %d %s", said, k.ConversationID, k.MadeVersion, k.HeadSeq, k.ViewLength, deleted)
}

func TestASummaryIsReadAtAVersion(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		said := e.talk(e.conversation(), "", 5)
		k := e.summarise(1, 6, said[:3]...)
		e.equal("as stored", describeSummary(e.summaryAt(k.ID, 0)), describeSummary(k))
		change := func(version int64, text string) {
			other := *k.Summary
			other.Text, other.Method, other.Stale = text, summary.MethodUser, true
			e.update(func(tx nodest.Tx) error { return tx.Chats.UpdateSummary(version, &other) })
		}
		change(8, "first try")
		change(8, "of eight")
		change(11, "of eleven")
		for version, want := range map[int64]string{6: "summary 1 llm", 7: "summary 1 llm", 8: "of eight user", 10: "of eight user", 11: "of eleven user", 0: "of eleven user"} {
			at := e.summaryAt(k.ID, version)
			e.equal(fmt.Sprint("at ", version), []any{at.Text + " " + string(at.Method), at.Stale}, []any{want, false})
		}
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.Summary(k.ID, 5); return err })
		now := e.summaryAt(k.ID, 0)
		e.view(func(tx nodest.Tx) error {
			text, err := tx.Chats.SummaryText(k.ID, now.Since)
			e.equal("its text", text, now.Text)
			return err
		})
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return errOf(tx.Chats.SummaryText(k.ID, now.Since+1)) })

		restore := func(version, next int64) {
			e.update(func(tx nodest.Tx) error { return tx.Chats.RestoreSummary(k.ID, version, next) })
		}
		restore(7, 12)
		e.equal("restored", e.summaryAt(k.ID, 0).Text, "summary 1")
		e.equal("before it", e.summaryAt(k.ID, 11).Text, "of eleven")
		restore(6, 13) // it already has this text
		e.equal("texts", countRows(e, "summary_texts"), int64(4))
		unknown := &summary.Summary{ID: id()}
		for _, fn := range []func(tx nodest.Tx) error{
			func(tx nodest.Tx) error { return tx.Chats.UpdateSummary(20, unknown) },
			func(tx nodest.Tx) error { return tx.Chats.DeleteSummary(unknown.ID, 1) },
			func(tx nodest.Tx) error { return tx.Chats.RestoreSummary(unknown.ID, 6, 20) },
			func(tx nodest.Tx) error { return tx.Chats.RestoreSummary(k.ID, 5, 20) },
		} {
			e.refused(fault.NotFound, fn)
		}
	})
}

func TestAListOfSummariesHasTheNewest(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.chat(e.character())
		said := e.talk(conv, "", 2)
		e.update(func(tx nodest.Tx) error {
			for n := range 203 {
				if err := tx.Chats.InsertSummary(e.summary(n+1, 1, said...)); err != nil {
					return err
				}
			}
			return nil
		})
		e.view(func(tx nodest.Tx) error {
			items, err := tx.Chats.Summaries(conv)
			if len(items) != 200 || items[0].Generation != 203 {
				e.Errorf("%d summaries", len(items))
			}
			return err
		})
	})
}

func TestSummaryGenerationsAreUnique(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv, other := e.chat(character), e.chat(character)
		said, elsewhere := e.talk(conv, "", 4), e.talk(other, "", 4)
		state := func(want string) {
			e.Helper()
			e.view(func(tx nodest.Tx) error {
				items, err := tx.Chats.Summaries(conv)
				newest, err2 := tx.Chats.LatestGeneration(conv)
				at, err3 := tx.Characters.LastSummarised(character)
				var generations []int
				for _, k := range items {
					generations = append(generations, k.Generation)
				}
				ago := "never"
				if !at.IsZero() {
					ago = at.Sub(start).String()
				}
				e.equal("generations, the highest, the last", fmt.Sprint(generations, " ", newest, " ", ago), want)
				return errors.Join(err, err2, err3)
			})
		}
		state("[] 0 never")
		e.summarise(1, 5, said[:1]...)
		e.clock.advance(time.Minute)
		second := e.summarise(2, 5, said[:2]...)
		state("[2 1] 2 1m0s")
		e.clock.advance(time.Minute)
		e.summarise(1, 5, elsewhere[:2]...)
		state("[2 1] 2 2m0s")
		e.refused(fault.Conflict, func(tx nodest.Tx) error { return tx.Chats.InsertSummary(e.summary(2, 5, said...)) })
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteSummary(second.ID, 4) })
		state("[1] 2 2m0s")
		e.refused(fault.Conflict, func(tx nodest.Tx) error { return tx.Chats.InsertSummary(e.summary(2, 5, said...)) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.DeleteSummary(second.ID, 4) })
		e.clock.advance(time.Minute)
		e.summarise(3, 5, said[:3]...)
		state("[3 1] 3 3m0s")
		e.update(func(tx nodest.Tx) error { return tx.Chats.RestoreSummary(second.ID, 5, 6) })
		state("[3 2 1] 3 3m0s")
	})
}

func TestASummaryBelongsToTheBranchItEndsOn(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.conversation()
		trunk := e.talk(conv, "", 6)
		branch := e.talk(conv, trunk[2].ID, 4)
		ids := map[string]string{}
		for generation, over := range [][]*chat.Message{trunk[:2], trunk[:5], append(slices.Clone(trunk[:3]), branch[:2]...)} {
			ids[e.summarise(generation+1, 11, over...).ID] = fmt.Sprint(generation + 1)
		}
		on := func(head *chat.Message) (found string) {
			e.view(func(tx nodest.Tx) error {
				refs, err := tx.Chats.SummariesOn(conv, head.ID)
				for _, r := range refs {
					found += ids[r.ID]
					if r.Deleted {
						found += fmt.Sprint("x", r.HeadSeq)
					}
				}
				return err
			})
			return found
		}
		for _, tt := range []struct {
			head *chat.Message
			want string
		}{{trunk[0], ""}, {trunk[1], "1"}, {trunk[3], "1"}, {trunk[4], "21"}, {trunk[5], "21"}, {branch[0], "1"}, {branch[1], "31"}, {branch[3], "31"}} {
			e.equal("summaries on "+tt.head.Text(), on(tt.head), tt.want)
		}
		for id, generation := range ids {
			if generation == "2" {
				e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteSummary(id, 10) })
			}
		}
		e.equal("with a deleted one", on(trunk[5]), "2x101")
		other := e.talk(e.conversation(), "", 2)
		e.equal("of another conversation", on(other[1]), "")
	})
}

// The coverage of a summary, on random branches and at random versions, equals a walk
// over the states of its messages.
func TestCoverageOnRandomHistories(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := newRandomHistory(e)
		for range 30 {
			s.step()
		}
		met := map[chat.Coverage]int{}
		for range atLeast(60, 400) {
			if s.rnd.IntN(10) == 0 {
				s.restore()
			} else {
				s.step()
			}
			for range 3 {
				s.compareCoverage(met)
			}
		}
		for how := chat.CoverageOff; how <= chat.CoverageIntact; how++ {
			if met[how] == 0 {
				e.Errorf("coverage %d was never met", how)
			}
		}
	})
}

func (s *randomHistory) compareCoverage(met map[chat.Coverage]int) {
	s.Helper()
	newest := int64(len(s.heads) - 1)
	c := chat.Covered{ConversationID: s.conv, Since: 1 + s.rnd.Int64N(newest)}
	at, head := int64(0), s.anyMessage()
	if s.rnd.IntN(2) == 0 {
		at = c.Since + s.rnd.Int64N(newest-c.Since+1)
		head = s.heads[at]
	}
	s.view(func(tx nodest.Tx) error {
		path, _, err := tx.Chats.PathAt(s.conv, c.Since, s.heads[c.Since], "", 1000)
		if err != nil || len(path) == 0 {
			return err
		}
		c.EndID, c.StartSeq = path[s.rnd.IntN(len(path))].ID, path[s.rnd.IntN(len(path))].Seq
		got, err := tx.Chats.Coverage(c, head, at)
		if err != nil {
			return err
		}
		want, err := s.walkCoverage(tx, c, head, at)
		s.equal(fmt.Sprint("coverage of ", c, " below ", head, " at ", at), got, want)
		met[got]++
		return err
	})
}

// walkCoverage computes the coverage by walking the branch.
func (s *randomHistory) walkCoverage(tx nodest.Tx, c chat.Covered, head string, at int64) (chat.Coverage, error) {
	rows, err := store.QueryIn[struct {
		ID, ParentID string
		Seq          int64
	}](tx, "SELECT id, seq, parent_id FROM messages WHERE conversation_id = ?", s.conv)
	if err != nil {
		return 0, err
	}
	parents, seqs := map[string]string{}, map[string]int64{}
	for _, row := range rows {
		parents[row.ID], seqs[row.ID] = row.ParentID, row.Seq
	}
	on := head
	for on != "" && on != c.EndID {
		on = parents[on]
	}
	if on == "" {
		return chat.CoverageOff, nil
	}
	if at == 0 {
		at = 1 << 40
	}
	coverage := chat.CoverageIntact
	for ; on != "" && seqs[on] >= c.StartSeq; on = parents[on] {
		then, err := s.stateOf(tx, on, c.Since)
		if err != nil {
			return 0, err
		}
		now, err := s.stateOf(tx, on, at)
		switch wasGone, isGone := strings.HasSuffix(then, "x"), strings.HasSuffix(now, "x"); {
		case err != nil:
			return 0, err
		case then == now, wasGone && isGone:
		case isGone && then != "-":
			return chat.CoverageBroken, nil
		default:
			coverage = chat.CoverageChanged
		}
	}
	return coverage, nil
}

// stateOf returns the revision that a message showed at a version, with x if it was
// deleted.
func (s *randomHistory) stateOf(tx nodest.Tx, message string, version int64) (string, error) {
	states, err := store.QueryIn[string](tx, "SELECT revision_id || CASE WHEN is_deleted THEN 'x' ELSE '-' END FROM message_states"+
		" WHERE conversation_id = ? AND message_id = ? AND version <= ? ORDER BY version DESC LIMIT 1", s.conv, message, version)
	if err != nil || len(states) > 0 {
		return strings.Join(states, ""), err
	}
	only, err := store.QueryIn[string](tx, "SELECT "+store.ShownText+" || '-' FROM messages m WHERE m.id = ? AND m.since > 0 AND m.since <= ?", message, version)
	return strings.Join(only, ""), err
}

func TestSummariesAreLoadedWithTheirConversation(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.conversation()
		said := e.talk(conv, "", 5)
		first, second := e.summarise(1, 6, said[:2]...), e.summarise(2, 6, said[:4]...)
		again := *first.Summary
		again.Text = "again"
		e.update(func(tx nodest.Tx) error {
			return errors.Join(tx.Chats.UpdateSummary(6, second.Summary), tx.Chats.UpdateSummary(9, &again), tx.Chats.DeleteSummary(second.ID, 5))
		})
		dump := func(conv string) (items []*chat.DumpedSummary) {
			e.view(func(tx nodest.Tx) (err error) { items, err = tx.Chats.DumpSummaries(conv); return err })
			return items
		}
		lines := func(conv string, all []*chat.DumpedSummary) (lines []string) {
			for _, d := range all {
				for _, text := range d.Texts {
					lines = append(lines, fmt.Sprint(text.Version, " ", describeSummary(&chat.KeptSummary{
						Summary: text.Summary, ConversationID: conv, MadeVersion: d.MadeVersion,
						HeadSeq: d.HeadSeq, ViewLength: d.ViewLength, DeletedAt: d.DeletedAt,
					})))
				}
			}
			return lines
		}
		dumped := dump(conv)
		want := lines(conv, dumped)
		e.equal("texts", len(want), 3)

		names, c := map[string]string{}, &chat.Conversation{ID: id(), Version: 9}
		e.load(c, withFreshIDs(e.dump(conv), names), 5)
		for _, d := range dumped {
			fresh := id()
			for i := range want {
				want[i] = strings.NewReplacer(conv, c.ID, d.Newest().ID, fresh).Replace(want[i])
			}
			for _, text := range d.Texts {
				text.Summary.ID = fresh
			}
		}
		e.update(func(tx nodest.Tx) error { return tx.Chats.FinishLoad(c, nil, nil) })
		e.update(func(tx nodest.Tx) error { return tx.Chats.LoadSummaries(c.ID, dumped) })
		e.equal("loaded", strings.Join(lines(c.ID, dump(c.ID)), "\n"), strings.Join(want, "\n"))
		e.equal("those of the first", len(dump(conv)), 2)
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.LoadSummaries(id(), dumped) })
	})
}

func TestNothingIsLeftOfTheSummariesOfADeletedChat(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv, kept := e.conversation(), e.conversation()
		k := e.summarise(1, 4, e.talk(conv, "", 3)...)
		other := e.summarise(1, 4, e.talk(kept, "", 3)...)
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(conv) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.Summary(k.ID, 0); return err })
		e.clock.advance(31 * day)
		e.maintain() // removes the messages
		e.maintain()
		for _, table := range []string{"summaries", "summary_texts"} {
			e.equal("rows of "+table, countRows(e, table), int64(1))
		}
		e.equal("the other", e.summaryAt(other.ID, 0).Text, "summary 1")
	})
}

func TestAVersionKeepsItsActiveSummary(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.conversation()
		said := e.talk(conv, "", 3)
		k := e.summarise(1, 4, said[:2]...)
		var before time.Time
		e.update(func(tx nodest.Tx) error {
			c, err := tx.Chats.LockConversation(conv)
			if err != nil {
				return err
			}
			before = c.UpdatedAt
			c.SummaryID = k.ID
			c.Version++
			return tx.Chats.ChooseSummary(c)
		})
		e.clock.advance(time.Hour)
		e.say(conv, said[2].ID, "on")
		e.view(func(tx nodest.Tx) error {
			then, err := tx.Chats.StateAt(conv, 4)
			chosen, err2 := tx.Chats.StateAt(conv, 5)
			now, err3 := tx.Chats.Conversation(conv)
			e.equal("summaries", []any{then.SummaryID, chosen.SummaryID, now.SummaryID}, []any{"", k.ID, k.ID})
			e.equal("updated", now.UpdatedAt.Sub(before), time.Hour)
			return errors.Join(err, err2, err3)
		})
	})
}

func TestASummaryWithoutAVersionIsReadAtAnyVersion(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		k := e.summarise(1, 0, e.talk(e.conversation(), "", 3)...)
		e.equal("at the first version", describeSummary(e.summaryAt(k.ID, 1)), describeSummary(k))
	})
}
