package store_test

import (
	"testing"

	"nodest/chat"
	"nodest/nodest"
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
