package store_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store"
)

const day = 24 * time.Hour

func (e *env) maintain() store.Removed {
	e.Helper()
	removed, ran, err := store.Maintain(context.Background(), e.db)
	if err != nil {
		e.Fatal(err)
	}
	e.equal("ran", ran, true)
	return removed
}

func TestMaintenanceRemovesExpiredRows(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		x := fill(e, e.user)
		e.equal("removed at once", e.maintain(), store.Removed{})
		e.clock.advance(2 * day)
		e.equal("removed after two days", e.maintain(), store.Removed{"keys": 1, "loads": 1, "tickets": 1, "hosts": 1, "uploads": 1})
		e.update(func(tx nodest.Tx) error {
			if err := tx.Characters.DeleteResource(character.WorldBook, x.book); err != nil {
				return err
			}
			return tx.Characters.DeleteCharacter(x.character) // with its conversation
		})
		e.clock.advance(30*day - time.Millisecond)
		// The job of the last maintenance stays: it is the server's own, and done.
		e.equal("removed a moment before 30 days", e.maintain(), store.Removed{"events": 1, "prompts": 1, "web pages": 1})
		e.clock.advance(time.Millisecond)
		e.equal("removed after 30 days", e.maintain(), store.Removed{"messages": 1, "conversations": 1, "characters": 1, "resources": 1,
			"posts": 1, "attachments": 1, "imports": 1})
		for table, n := range count(e, e.user) {
			switch table {
			case "tokens", "provider_keys", "settings", "user_variables", "devices", "tavern_imports", "tavern_reports", "tavern_files", "usage_days", "quotas", "streams", "circle_states", "circle_spends",
				"files", "file_parts", "knowledge_bases", "knowledge_base_files", "knowledge_grants", "knowledge_documents", "knowledge_texts",
				"knowledge_chunks", "knowledge_contexts", "knowledge_segments", "knowledge_vectors", "knowledge_spaces":
				if n == 0 {
					e.Errorf("the rows of %s are gone", table)
				}
			default:
				if n != 0 {
					e.Errorf("%d rows are left in %s", n, table)
				}
			}
		}
	})
}

func TestDeletedMessagesAreRemovedButThePathStays(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		a := e.say(conversation, "", "a")
		b := e.say(conversation, a.ID, "b")
		c := e.say(conversation, b.ID, "c")
		side := e.say(conversation, b.ID, "side")
		below := e.say(conversation, side.ID, "below")
		for _, m := range []*chat.Message{b, side, below} {
			e.update(func(tx nodest.Tx) error {
				now := tx.Now()
				m.Rev, m.DeletedAt = 2, &now
				return tx.Chats.UpdateMessage(m)
			})
		}
		e.clock.advance(30 * day)
		// The deleted message is still the head, so its row stays.
		e.equal("removed", e.maintain(), store.Removed{"events": 5, "texts": 3})
		e.nextVersion(conversation, func(_ nodest.Tx, stored *chat.Conversation) error {
			stored.HeadID = c.ID
			return nil
		})
		e.equal("removed", e.maintain(), store.Removed{"messages": 2})
		e.view(func(tx nodest.Tx) error {
			items, more, err := tx.Chats.Path(conversation, c.ID, "", 10)
			e.equal("path", texts(items), []string{"a", "c"})
			e.equal("more", more, false)
			if err != nil {
				return err
			}
			hollow, err := tx.Chats.Message(b.ID)
			e.equal("swipes of b", len(hollow.Swipes), 0)
			return err
		})
	})
}

func TestWhatASavePointNeedsStays(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		said := e.talk(conversation, "", 3)
		book := &character.Resource{ID: id(), Kind: character.WorldBook, Name: "n"}
		pins := &character.Pins{Resources: []character.ResourceStamp{{Kind: book.Kind, ID: book.ID, Version: 1}}}
		save := &chat.Save{ID: id(), ConversationID: conversation, Version: 4, HeadID: said[2].ID, Pins: pins}
		automatic := &chat.Save{ID: id(), ConversationID: conversation, Version: 4, HeadID: said[2].ID, Automatic: true}
		e.update(func(tx nodest.Tx) error {
			return errors.Join(tx.Characters.InsertResource(book), tx.Chats.InsertSave(save), tx.Chats.InsertSave(automatic))
		})
		e.clock.advance(time.Hour)
		e.update(func(tx nodest.Tx) error { return tx.Characters.DeleteResource(book.Kind, book.ID) })
		for _, m := range said[1:] {
			e.change(m.ID, func(m *chat.Message) { now := e.clock.now(); m.DeletedAt = &now })
		}
		e.nextVersion(conversation, func(_ nodest.Tx, c *chat.Conversation) error {
			c.HeadID = said[0].ID
			return nil
		})
		e.clock.advance(30*day - time.Hour)
		e.equal("removed", e.maintain(), store.Removed{"events": 1, "saves": 1})
		e.clock.advance(time.Hour)
		e.equal("removed", e.maintain(), store.Removed{})
		e.view(func(tx nodest.Tx) error {
			items, _, err := tx.Chats.PathAt(conversation, save.Version, save.HeadID, "", 5)
			e.equal("the save point", texts(items), texts(said))
			return err
		})
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteSave(save.ID) })
		e.equal("removed", e.maintain(), store.Removed{"texts": 2, "messages": 2, "resources": 1})
	})
}

func TestALoadThatIsNeverFinishedIsRemoved(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		source := e.conversation()
		e.talk(source, "", 3)
		c := &chat.Conversation{ID: id()}
		e.load(c, withFreshIDs(e.dump(source), map[string]string{}), 2)
		e.clock.advance(30*day - time.Second)
		e.equal("removed", e.maintain(), store.Removed{"events": 1})
		e.clock.advance(time.Second)
		e.equal("removed", e.maintain(), store.Removed{"messages": 3, "conversations": 1})
	})
}

// emitMany adds n events to the log of the user, 50 at a time.
func (e *env) emitMany(n int) {
	e.Helper()
	for ; n > 0; n -= 50 {
		e.update(func(tx nodest.Tx) error {
			for range min(n, 50) {
				if err := tx.Emit(&stream.Event{Type: "a"}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// oldest checks which events the log still has.
func (e *env) oldest(want int64) {
	e.Helper()
	position, oldest, err := e.db.Position(context.Background(), e.user)
	if err != nil {
		e.Fatal(err)
	}
	e.equal("oldest", oldest, want)
	events, err := e.db.Events(context.Background(), e.user, 0, 1)
	switch {
	case err != nil:
		e.Fatal(err)
	case want > position.Seq:
		e.equal("events", len(events), 0)
	case len(events) != 1:
		e.Error("no event is left")
	default:
		e.equal("first event", events[0].Seq, want)
	}
}

func TestEventsAreKeptForSevenDays(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.emitMany(1700)
		e.clock.advance(4 * day)
		e.emitMany(400)
		e.clock.advance(3*day - time.Millisecond)
		e.equal("removed a moment before 7 days", e.maintain()["events"], 0)
		e.oldest(1)
		e.clock.advance(time.Millisecond)
		e.equal("rows removed after 7 days", e.maintain()["events"], 1700/50)
		e.oldest(1701)
		e.clock.advance(4 * day)
		e.equal("rows removed of the rest", e.maintain()["events"], 400/50)
		e.oldest(2101)
		e.emitMany(1)
		e.oldest(2101)
	})
}

func TestTheNewestEventsAreKept(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.emitMany(20_000)
		e.equal("removed of 20,000", e.maintain()["events"], 0)
		e.emitMany(1030)
		e.equal("rows removed of 21,030", e.maintain()["events"], 1000/50)
		e.oldest(1001) // 30 more than necessary: they are in the row of the first that stays
	})
}

// TestLimitsTellWhatIsKept checks the list in docs/limits.md against the rules.
func TestLimitsTellWhatIsKept(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range (store.Retention{}).Rules() {
		if !strings.Contains(string(doc), "| "+k.What+" | "+k.How+" |") {
			t.Errorf("docs/limits.md lacks %q: %q", k.What, k.How)
		}
	}
}

func TestOnlyOneProcessMaintains(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		for range 40 {
			e.update(func(tx nodest.Tx) error { return answered(tx, id(), `1`) })
		}
		e.clock.advance(3 * day)
		var keys, failed atomic.Int64
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				removed, _, err := store.Maintain(context.Background(), e.db)
				if err != nil {
					failed.Add(1)
					e.Error(err)
				}
				keys.Add(removed["keys"])
			})
		}
		group.Wait()
		e.equal("keys removed by all", keys.Load(), 40)
		open, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM jobs WHERE state <> 'done'")
		if err != nil {
			e.Fatal(err)
		}
		e.equal("open jobs", open, []int64{0})
	})
}

func TestInterruptedMaintenanceIsTakenOver(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		// A process claimed the job and died.
		job := store.ClaimMaintenance(e.T, e.db)
		_, ran, err := store.Maintain(context.Background(), e.db)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("ran while another holds it", ran, false)
		e.clock.advance(time.Hour)
		e.maintain()
		states, err := store.Query[string](e.db, "SELECT state || ' ' || CAST(attempt AS TEXT) FROM jobs WHERE id = ?", job)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("the job", states, []string{"done 2"})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, _, err := store.Maintain(ctx, e.db); err == nil {
			e.Error("maintenance with a cancelled context succeeded")
		}
		if err := e.db.InsertTicket(context.Background(), &account.Ticket{Hash: []byte{1}, UserID: e.user}); err != nil {
			e.Fatal(err)
		}
		e.equal("tickets", e.maintain()["tickets"], 1)
		_, err = e.db.TakeTicket(context.Background(), "", []byte{1}, start)
		e.code(fault.NotFound, err)
	})
}
