package memory_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"nodest/chat"
	"nodest/fault"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store/storetest"
)

// owner is a scope of the test below; its mark stands in all that is said there.
type owner struct {
	*rig
	character, chat, mark string
	head                  *chat.Message
	count                 int
}

// act does one random thing in a scope, whose words those of all other scopes are but
// for the mark.
func (o *owner) act(r *rand.Rand) {
	o.Helper()
	parent := ""
	if o.head != nil {
		parent = o.head.ID
	}
	o.count++
	line := fmt.Sprintf("the lighthouse lantern number%d is %s", o.count, o.mark)
	switch op := r.IntN(8); {
	case op < 4 || o.head == nil:
		o.head = o.say(o.chat, parent, "Ann: "+line)
	case op == 4:
		o.change(o.head.ID, editTo(line))
	case op == 5:
		o.change(o.head.ID, swipeTo(line))
	case op == 6:
		o.learn(o.character, line, nil, o.head)
	default:
		o.learn(o.character, line, func(m *memory.Memory) { m.Pinned = true })
	}
}

// ask recalls what all scopes have and looks for what is not of this one.
func (o *owner) ask(r *rand.Rand) {
	o.Helper()
	hits, err := o.svc.Recall(o.Context(), o.user, memory.Ask{
		CharacterID: o.character, Now: noon, Text: "the lantern of the lighthouse", Everything: r.IntN(2) == 0, Limit: 50,
	})
	if err != nil {
		o.Error(err)
	}
	for _, h := range hits {
		if !strings.HasSuffix(h.Text, o.mark) {
			o.Errorf("%s finds %q", o.mark, h.Text)
		}
	}
	if o.count > 0 && len(hits) == 0 {
		o.Errorf("%s finds nothing", o.mark)
	}
}

// TestNobodyRecallsWhatIsNotTheirs has users with characters of one card do random
// things side by side, with a cache that is too small for two of them.
func TestNobodyRecallsWhatIsNotTheirs(t *testing.T) {
	r := newRig(t, memory.Options{CacheBytes: 20_000})
	var owners []*owner
	for user := range 4 {
		as := r.as(storetest.User(t, r.db))
		for character := range 3 {
			o := &owner{rig: as.as(as.user), character: as.character(), mark: fmt.Sprintf("mark%dof%d", character, user)}
			o.chat = o.conversation(o.character)
			owners = append(owners, o)
		}
	}
	var wait sync.WaitGroup
	for i, o := range owners {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 5))
			for range 25 {
				o.act(random)
				o.ask(random)
			}
		})
	}
	for range 4 { // and readers of every scope
		wait.Go(func() {
			for _, o := range owners {
				if _, err := o.svc.Recall(o.Context(), o.user, memory.Ask{CharacterID: o.character, Now: noon, Text: "lantern"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	for i, o := range owners {
		other := owners[(i+3)%len(owners)] // of another user
		if _, err := r.svc.Recall(t.Context(), o.user, memory.Ask{CharacterID: other.character, Text: "lantern"}); !fault.Is(err, fault.NotFound) {
			t.Errorf("another user's character: %v", err)
		}
	}
}

// TestManyCharactersFitIntoTheBudget touches many scopes in turn.
func TestManyCharactersFitIntoTheBudget(t *testing.T) {
	const characters, budget = 1000, 200_000
	r := newRig(t, memory.Options{CacheBytes: budget})
	var ids []string
	r.update(func(tx nodest.Tx) error {
		for i := range characters {
			c := cardOf()
			chat := &chat.Conversation{ID: newID(), CharacterID: c.ID, Settings: []byte(`{}`)}
			if err := tx.Characters.InsertCharacter(c); err != nil {
				return err
			}
			if err := tx.Chats.InsertConversation(chat); err != nil {
				return err
			}
			if _, err := sayIn(tx, chat.ID, "", fmt.Sprintf("Ann: My boat is called boat%d.", i)); err != nil {
				return err
			}
			ids = append(ids, c.ID)
		}
		return nil
	})
	for i, id := range ids {
		if got, want := r.recall(memory.Ask{CharacterID: id, Text: "the boat"}), fmt.Sprintf("My boat is called boat%d.", i); len(got) != 1 || got[0] != want {
			t.Fatalf("character %d finds %q", i, got)
		}
		if n, bytes := r.svc.Held(); bytes > budget || n > characters/2 {
			t.Fatalf("after %d characters %d indexes take %d bytes", i+1, n, bytes)
		}
	}
}
