package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// The messages below another are found across branches, without texts, and are hidden and shown again as
// one. A message that was deleted before stays deleted, and every version shows what it showed.
func TestWhatIsBelowAMessageIsHiddenAndShownTogether(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		root := e.say(conversation, "", "root")
		a := e.say(conversation, root.ID, "a")
		b := e.say(conversation, a.ID, "b")
		c := e.say(conversation, a.ID, "c") // branches off
		d := e.say(conversation, c.ID, "d")
		beside := e.say(conversation, root.ID, "beside a")
		set := func(deleted bool, messages ...*chat.Message) int64 {
			return e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
				if now := tx.Now(); deleted {
					return tx.Chats.SetDeleted(&now, messages...)
				}
				return tx.Chats.SetDeleted(nil, messages...)
			})
		}
		below := func(m *chat.Message, deletedIn int64) (found []*chat.Message) {
			e.view(func(tx nodest.Tx) (err error) {
				found, err = tx.Chats.Below(m, deletedIn)
				return err
			})
			for _, m := range found {
				e.equal("texts", len(m.Swipes), 0)
			}
			return found
		}
		shown := func(want ...string) {
			e.view(func(tx nodest.Tx) error {
				items, _, err := tx.Chats.Path(conversation, d.ID, "", 10)
				e.equal("path", texts(items), want)
				return err
			})
		}
		e.equal("below root", chat.IDsOf(below(root, 0)), []string{a.ID, b.ID, c.ID, d.ID, beside.ID})
		e.equal("below d", chat.IDsOf(below(d, 0)), []string{})
		set(true, b)
		gone := append([]*chat.Message{a}, below(a, 0)...)
		e.equal("below a", chat.IDsOf(gone), []string{a.ID, c.ID, d.ID})
		version := set(true, gone...)
		shown("root")
		e.equal("deleted with a", chat.IDsOf(below(a, version)), []string{c.ID, d.ID})
		set(false, gone...)
		shown("root", "a", "c", "d")
		e.equal("rev", gone[2].Rev, 3)
		e.equal("b stays deleted", chat.IDsOf(below(a, 0)), []string{c.ID, d.ID})
		e.view(func(tx nodest.Tx) error {
			items, _, err := tx.Chats.PathAt(conversation, version, d.ID, "", 10)
			e.equal("path then", texts(items), []string{"root"})
			return err
		})
	})
}

// The text that a message shows is found without the other swipes of the message.
func TestTheShownTextIsFoundByItsPosition(t *testing.T) {
	t.Parallel()
	plan, err := store.Plan(storetest.Open(t), "SELECT "+store.ShownText+" FROM messages m WHERE m.user_id = 'u' AND m.id = 'm'")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(plan, "\n"); !strings.Contains(got, "revisions_message (user_id=? AND message_id=? AND position=?)") {
		t.Error(got)
	}
}

// Hiding many messages, showing them again and a rewind to before it take a few statements for each 500 of them,
// and every version shows what it showed.
func TestManyMessagesAreHiddenByFewStatements(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	e := &env{T: t, db: db, user: storetest.User(t, db)}
	const n, most = 2000, 40
	conversation := e.conversation()
	line := make([]*chat.Message, n)
	for i := range line {
		line[i] = message(conversation, "", "text")
		if i > 0 {
			line[i].ParentID = line[i-1].ID
		}
	}
	shown := e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error { return tx.Chats.InsertMessage(line...) })
	head := line[n-1].ID
	change := func(what string, fn func(tx nodest.Tx, c *chat.Conversation) (changed int, err error)) int64 {
		before := db.Statements()
		version := e.nextVersion(conversation, func(tx nodest.Tx, c *chat.Conversation) error {
			changed, err := fn(tx, c)
			e.equal(what, changed, n)
			return err
		})
		if ran := db.Statements() - before; ran > most {
			t.Errorf("%s: %d statements, want at most %d", what, ran, most)
		}
		return version
	}
	set := func(at *time.Time, deletedIn int64) func(tx nodest.Tx, c *chat.Conversation) (int, error) {
		return func(tx nodest.Tx, _ *chat.Conversation) (int, error) {
			first, err := tx.Chats.Message(line[0].ID)
			if err != nil {
				return 0, err
			}
			below, err := tx.Chats.Below(first, deletedIn)
			if err != nil {
				return 0, err
			}
			all := append([]*chat.Message{first}, below...)
			return len(all), tx.Chats.SetDeleted(at, all...)
		}
	}
	hidden := change("hidden", set(&start, 0))
	change("shown", set(nil, hidden))
	change("hidden again", set(&start, 0))
	change("moved by a rewind", func(tx nodest.Tx, c *chat.Conversation) (int, error) {
		changed, moved, err := tx.Chats.Rewind(c, shown, head)
		e.equal("changed", len(changed), 0)
		return len(moved), err
	})
	for i, want := range []int{n, 0, n, 0, n} {
		there, version := 0, shown+int64(i)
		e.view(func(tx nodest.Tx) error {
			for before, more := "", true; more; {
				items, left, err := tx.Chats.PathAt(conversation, version, head, before, 500)
				if err != nil || len(items) == 0 {
					return err
				}
				there, before, more = there+len(items), items[0].ID, left
			}
			return nil
		})
		e.equal(fmt.Sprintf("messages of version %d", version), there, want)
	}
}

// A version has one state of a message, also where its transaction hides the message and shows it again.
func TestAMessageIsHiddenAndShownInOneVersion(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		m := e.say(conversation, "", "text")
		version := e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
			now := tx.Now()
			if err := tx.Chats.SetDeleted(&now, m); err != nil {
				return err
			}
			return tx.Chats.SetDeleted(nil, m)
		})
		e.view(func(tx nodest.Tx) error {
			items, err := tx.Chats.MessagesAt(conversation, version, []string{m.ID})
			e.equal("the message", fmt.Sprint(items[0].Rev, items[0].DeletedAt == nil, items[0].Text()), fmt.Sprint(3, true, "text"))
			return err
		})
	})
}

// Hidden messages are counted on the path alone, and deleted ones are not.
func TestHiddenMessagesOfAPathAreCounted(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		line := e.talk(conversation, "", 9)
		branch := e.talk(conversation, line[3].ID, 4)
		hide := func(m *chat.Message) { m.Hidden = true }
		for _, m := range []*chat.Message{line[1], line[3], line[5], line[8], branch[0], branch[2]} {
			e.change(m.ID, hide)
		}
		e.change(line[1].ID, deleteMessage)
		fork := e.fork(conversation, branch[3].ID)
		for _, at := range []struct{ conversation, head string }{
			{conversation, line[8].ID}, {conversation, line[4].ID}, {conversation, line[0].ID}, {conversation, branch[3].ID}, {conversation, branch[1].ID}, {fork.ID, fork.HeadID},
		} {
			want := 0
			for _, m := range e.path(at.conversation, at.head) {
				if m.Hidden {
					want++
				}
			}
			e.view(func(tx nodest.Tx) error {
				n, err := tx.Chats.CountHidden(at.conversation, at.head)
				e.equal("hidden", n, want)
				return err
			})
		}
	})
}
