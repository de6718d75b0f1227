package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/cite"
	"nodest/internal/codec"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
)

// log returns the user's events after a position.
func (e *env) log(after int64) []*stream.Event {
	e.Helper()
	events, err := e.db.Events(context.Background(), e.user, after, 500)
	if err != nil {
		e.Fatal(err)
	}
	return events
}

// logRows are the rows of the user's log, as texts.
func (e *env) logRows() []string {
	e.Helper()
	rows, err := store.Query[[]byte](e.db, "SELECT entries FROM events WHERE user_id = ? ORDER BY seq", e.user)
	if err != nil {
		e.Fatal(err)
	}
	texts := make([]string, len(rows))
	for i, row := range rows {
		lines, err := codec.Unpack(row)
		if err != nil {
			e.Fatal(err)
		}
		texts[i] = string(lines)
	}
	return texts
}

// A text is stored in its revision alone; what is sent later is what was sent at once.
func TestTheLogHasNoTextsOfMessages(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		long, thought := strings.Repeat("<quick> & \"brown\" \u2028 fox 狐 ", 40), "a \x01 thought"
		swipes := []chat.Swipe{
			{Text: long, Reasoning: thought, Blocks: []chat.Block{{Part: "mem", Text: "in a block"}}}, {Text: "id"}, {Text: long[:30]},
		}
		m := &chat.Message{ID: id(), ConversationID: conversation, Role: "assistant", Swipes: swipes}
		before := len(e.log(0))
		e.update(func(tx nodest.Tx) error {
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			conv, err := tx.Chats.Conversation(conversation)
			if err != nil {
				return err
			}
			conv.LastMessage = m.Preview()
			return tx.Emit(chat.MessageEvent(e.user, "message.created", "phone", m), chat.ConversationEvent(e.user, "chat.updated", "phone", conv))
		})
		e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			m.Swipes[0].Text, m.Swipes[0].RevisionID = "edited", id()
			m.Rev++
			if err := tx.Chats.UpdateMessage(m); err != nil {
				return err
			}
			return tx.Emit(chat.MessageEvent(e.user, "message.updated", "phone", m))
		})
		for _, row := range e.logRows() {
			for _, text := range []string{"quick", "thought", "in a block", "edited"} {
				if strings.Contains(row, text) {
					e.Errorf("the log has %q: %s", text, row)
				}
			}
		}
		published, logged := e.published.of(e.user), e.log(0)
		e.equal("events", len(logged), before+3)
		for i, want := range published[len(published)-3:] {
			e.equal("frame", string(logged[before+i].Frame()), string(want.Frame()))
		}
		e.update(func(tx nodest.Tx) error {
			return store.Exec(tx, "DELETE FROM revisions WHERE user_id = ? AND text = 'edited'", e.user)
		})
		e.equal("type of an event of which a text is gone", e.log(0)[before+2].Type, stream.Skip)
	})
}

func TestTheLogHasARowForATransaction(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		var m *chat.Message
		e.update(func(tx nodest.Tx) error {
			m = &chat.Message{ID: id(), ConversationID: conversation, Role: "user", Swipes: []chat.Swipe{{Text: "a text"}}}
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			conv, err := tx.Chats.Conversation(conversation)
			if err != nil {
				return err
			}
			return tx.Emit(chat.MessageEvent(e.user, "message.created", "phone", m), chat.ConversationEvent(e.user, "chat.updated", "phone", conv))
		})
		rows := e.logRows()
		e.equal("rows of a transaction", len(rows), 1)
		published, logged := e.published.of(e.user), e.log(0)
		e.equal("events", len(logged), 2)
		for i, want := range published {
			e.equal("frame", string(logged[i].Frame()), string(want.Frame()))
		}
	})
}

// An event that is sent later carries the message as it was: later events tell of its changes.
func TestTheLogShowsMessagesAsTheyWere(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		m := e.say(conversation, "", "first")
		e.update(func(tx nodest.Tx) error { return tx.Emit(chat.MessageEvent(e.user, "message.created", "", m)) })
		from := e.log(0)
		was := from[len(from)-1]
		e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			m.Swipes[0].Text, m.Swipes[0].RevisionID = "edited", id()
			m.Rev++
			return tx.Chats.UpdateMessage(m)
		})
		e.equal("the event", string(e.log(was.Seq - 1)[0].Frame()), string(was.Frame()))
	})
}

// Another user's references are nothing to the log, even if an event names them.
func TestTheLogShowsOnlyTheUsersOwn(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		m := e.say(e.conversation(), "", "secret")
		other := newUser(e)
		if err := e.db.Update(context.Background(), other, func(tx nodest.Tx) error {
			return tx.Emit(&stream.Event{Type: "gen.references", MessageID: m.ID, GenerationID: m.GenerationID})
		}); err != nil {
			e.Fatal(err)
		}
		events, err := e.db.Events(context.Background(), other, 0, 10)
		if err != nil || len(events) != 1 || events[0].Type != stream.Skip {
			e.Fatal(events, err)
		}
	})
}

func TestAPageOfTheLogBeginsAnywhere(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		before := int64(0)
		if log := e.log(0); len(log) > 0 {
			before = log[len(log)-1].Seq
		}
		for _, n := range []int{1, 250, 3} { // a row has 100 at most
			e.update(func(tx nodest.Tx) error {
				for range n {
					if err := tx.Emit(&stream.Event{Type: "a"}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for after := range int64(255) {
			for _, limit := range []int{1, 7, 500} {
				events, err := e.db.Events(context.Background(), e.user, before+after, limit)
				if err != nil {
					e.Fatal(err)
				}
				if len(events) != min(limit, 254-int(after)) && after < 254 || after == 254 && len(events) > 0 {
					e.Errorf("%d events after %d of 254, at most %d", len(events), after, limit)
				}
				for i, ev := range events {
					if ev.Seq != before+after+int64(i)+1 {
						e.Errorf("event %d after %d is %d", i, after, ev.Seq)
					}
				}
			}
		}
	})
}

func TestTheLogDoesNotRepeatReferences(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		generation, quote := id(), "a quote of a page"
		cited := &cite.Citations{References: []cite.Reference{{ExactQuote: quote}}, Report: &cite.Report{}}
		var ev *stream.Event
		e.update(func(tx nodest.Tx) error {
			m := &chat.Message{ID: id(), ConversationID: conversation, Role: "assistant", Swipes: []chat.Swipe{{Text: "reply[^1]", GenerationID: generation, Citations: cited}}}
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			ev = op.Event(e.user, "gen.references", "", nodest.ReferencesData{References: cited.References, Report: cited.Report})
			ev.ConversationID, ev.MessageID, ev.GenerationID = conversation, m.ID, generation
			return tx.Emit(ev)
		})
		rows := e.logRows()
		if strings.Contains(rows[0], quote) {
			e.Errorf("the log has %s", rows[0])
		}
		e.equal("data", string(e.log(0)[0].Data), string(ev.Data))
	})
}

// The list of memories that were found for a reply is stored once, with its scores; the log names it again
// when it is read. A list that differs from it stays in the log: that of a continuation, and one that was cut.
func TestTheLogDoesNotRepeatWhatWasRecalled(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.chat(e.character())
		a, b, c := exchange(2), exchange(1), profile(3)
		found := []string{b.ID, a.ID}
		for name, x := range map[string]struct {
			continued string
			sent      []string
			inLog     bool
		}{
			"a reply":        {"", found, false},
			"a continuation": {id(), found, true},
			"a list cut":     {"", found[:1], true},
		} {
			generation, after := id(), int64(len(e.log(0)))
			data := nodest.ContextData{Memories: x.sent, Profile: []string{c.ID}, Warnings: []string{"tools_unavailable"}}
			ev := op.Event(e.user, "gen.context", "", data)
			ev.ConversationID, ev.GenerationID = conversation, generation
			e.update(func(tx nodest.Tx) error {
				return errors.Join(tx.Memory.PutUses(conversation, generation, x.continued, []memory.Use{b, a, c}), tx.Emit(ev))
			})
			rows := e.logRows()
			e.equal(name+" in the log", strings.Contains(rows[len(rows)-1], b.ID), x.inLog)
			got := e.log(after)
			e.equal(name, string(got[len(got)-1].Data), string(ev.Data))
		}
	})
}
