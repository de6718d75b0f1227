package store_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/cite"
	"nodest/nodest"
	"nodest/op"
	"nodest/store"
	"nodest/stream"
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

func TestTheLogDoesNotRepeatWhatIsStored(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		const text = "a text that is stored once"
		var m *chat.Message
		e.update(func(tx nodest.Tx) error {
			m = &chat.Message{ID: id(), ConversationID: conversation, Role: "user", Swipes: []chat.Swipe{{Text: strings.Repeat(text, 100)}}}
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			conv, err := tx.Chats.Conversation(conversation)
			if err != nil {
				return err
			}
			return tx.Emit(chat.MessageEvent(e.user, "message.created", "phone", m), chat.ConversationEvent(e.user, "chat.updated", "phone", conv))
		})
		rows, err := store.Query[string](e.db, "SELECT entries FROM events WHERE user_id = ?", e.user)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("rows of a transaction", len(rows), 1)
		if len(rows[0]) > 140 || strings.Contains(rows[0], text) {
			e.Errorf("the log has %d bytes: %s", len(rows[0]), rows[0])
		}
		published, logged := e.published.of(e.user), e.log(0)
		e.equal("events", len(logged), 2)
		for i, want := range published {
			e.equal("frame", string(logged[i].Frame()), string(want.Frame()))
		}
	})
}

// An event that is sent later carries the message as it is then, also a deleted one. A message
// that is gone for good leaves its place in the log.
func TestTheLogShowsMessagesAsTheyAre(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		m := e.say(conversation, "", "first")
		e.update(func(tx nodest.Tx) error { return tx.Emit(chat.MessageEvent(e.user, "message.created", "", m)) })
		from := e.log(0)
		after := from[len(from)-1].Seq - 1
		shows := func(want string) {
			e.Helper()
			var data struct{ Message struct{ Text string } }
			events := e.log(after)
			e.equal("type", events[0].Type, "message.created")
			if err := json.Unmarshal(events[0].Data, &data); err != nil {
				e.Fatal(err)
			}
			e.equal("text", data.Message.Text, want)
		}
		shows("first")
		e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			m.Swipes[0].Text, m.Swipes[0].RevisionID = "edited", id()
			m.Rev++
			now := tx.Now()
			m.DeletedAt = &now
			return tx.Chats.UpdateMessage(m)
		})
		shows("edited")
		for _, table := range []string{"swipes", "revisions", "message_states", "messages"} {
			e.update(func(tx nodest.Tx) error { return store.Exec(tx, "DELETE FROM "+table+" WHERE user_id = ?", e.user) })
		}
		gone := e.log(after)
		e.equal("events", len(gone), 1)
		e.equal("type", gone[0].Type, stream.Skip)
		e.equal("seq", gone[0].Seq, after+1)
		e.equal("data", string(gone[0].Data), "{}")
	})
}

// Another user's message is nothing to the log, even if an event names it.
func TestTheLogShowsOnlyTheUsersOwn(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		m := e.say(conversation, "", "secret")
		other := newUser(e)
		if err := e.db.Update(context.Background(), other, func(tx nodest.Tx) error {
			return tx.Emit(chat.MessageEvent(other, "message.updated", "", m), &stream.Event{Type: "chat.updated", ConversationID: conversation})
		}); err != nil {
			e.Fatal(err)
		}
		events, err := e.db.Events(context.Background(), other, 0, 10)
		if err != nil {
			e.Fatal(err)
		}
		for _, ev := range events {
			e.equal("type", ev.Type, stream.Skip)
		}
		e.equal("events", len(events), 2)
	})
}

func TestAPageOfTheLogBeginsAnywhere(t *testing.T) {
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
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		generation, quote := id(), "a quote of a page"
		cited := &chat.Citations{References: []cite.Reference{{ExactQuote: quote}}, Report: &cite.Report{}}
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
		rows, err := store.Query[string](e.db, "SELECT entries FROM events WHERE user_id = ?", e.user)
		if err != nil {
			e.Fatal(err)
		}
		if strings.Contains(rows[0], quote) {
			e.Errorf("the log has %s", rows[0])
		}
		e.equal("data", string(e.log(0)[0].Data), string(ev.Data))
	})
}
