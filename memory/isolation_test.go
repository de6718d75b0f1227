package memory_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store/storetest"
)

// scopeUser is one user and character of the test below; all texts of its scope
// contain its mark.
type scopeUser struct {
	*fixture
	character, chat, mark string
	head                  *chat.Message
	count                 int
}

// doSomething does one random thing in its scope; except for the mark, all scopes use
// the same words.
func (o *scopeUser) doSomething(r *rand.Rand) {
	o.Helper()
	parent := ""
	if o.head != nil {
		parent = o.head.ID
	}
	o.count++
	line := fmt.Sprintf("the lighthouse lantern number%d is %s", o.count, o.mark)
	switch op := r.IntN(8); {
	case op < 4 || o.head == nil:
		o.head = o.addMessage(o.chat, parent, "Ann: "+line)
	case op == 4:
		o.changeMessage(o.head.ID, editTo(line))
	case op == 5:
		o.changeMessage(o.head.ID, swipeTo(line))
	case op == 6:
		o.addFact(o.character, line, nil, o.head)
	default:
		o.addFact(o.character, line, func(m *memory.Memory) { m.Pinned = true })
	}
}

// checkRecall recalls what all scopes have and checks that nothing of another scope
// is found.
func (o *scopeUser) checkRecall(r *rand.Rand) {
	o.Helper()
	hits, err := o.svc.Recall(o.Context(), o.user, memory.Ask{CharacterID: o.character}, recall.Query{Now: noon, Text: "the lantern of the lighthouse", Limit: 50, Mode: []recall.Mode{recall.Prompt, recall.Ranked}[r.IntN(2)]})
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

// Users whose characters have the same card never recall each other's texts, with
// random concurrent operations and a cache too small for two scopes.
func TestRecallIsIsolatedBetweenUsers(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{CacheBytes: 20_000})
	var owners []*scopeUser
	for user := range 4 {
		as := r.asUser(storetest.User(t, r.db))
		for character := range 3 {
			o := &scopeUser{fixture: as.asUser(as.user), character: as.character(), mark: fmt.Sprintf("mark%dof%d", character, user)}
			o.chat = o.conversation(o.character)
			owners = append(owners, o)
		}
	}
	var wait sync.WaitGroup
	for i, o := range owners {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 5))
			for range 25 {
				o.doSomething(random)
				o.checkRecall(random)
			}
		})
	}
	for range 4 { // readers of every scope
		wait.Go(func() {
			for _, o := range owners {
				if _, err := o.svc.Recall(o.Context(), o.user, memory.Ask{CharacterID: o.character}, recall.Query{Now: noon, Text: "lantern"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	for i, o := range owners {
		other := owners[(i+3)%len(owners)] // belongs to another user
		if _, err := r.svc.Recall(t.Context(), o.user, memory.Ask{CharacterID: other.character}, recall.Query{Text: "lantern"}); !fault.Is(err, fault.NotFound) {
			t.Errorf("another user's character: %v", err)
		}
	}
}

// Recall in many scopes in turn keeps the cache within its budget.
func TestTheCacheKeepsItsBudget(t *testing.T) {
	t.Parallel()
	const characters, budget = 1000, 200_000
	r := newFixture(t, memory.Options{CacheBytes: budget})
	var ids []string
	r.update(func(tx nodest.Tx) error {
		for i := range characters {
			c := newCharacter()
			chat := &chat.Conversation{ID: newID(), CharacterID: c.ID, Settings: []byte(`{}`)}
			if err := tx.Characters.InsertCharacter(c); err != nil {
				return err
			}
			if err := tx.Chats.InsertConversation(chat); err != nil {
				return err
			}
			if _, err := insertMessage(tx, chat.ID, "", fmt.Sprintf("Ann: My boat is called boat%d.", i)); err != nil {
				return err
			}
			ids = append(ids, c.ID)
		}
		return nil
	})
	for i, id := range ids {
		if got, want := r.recall(asked{memory.Ask{CharacterID: id}, recall.Query{Text: "the boat"}}), fmt.Sprintf("My boat is called boat%d.", i); len(got) != 1 || got[0] != want {
			t.Fatalf("character %d finds %q", i, got)
		}
		if n, bytes := r.svc.Held(); bytes > budget || n > characters/2 {
			t.Fatalf("after %d characters %d indexes take %d bytes", i+1, n, bytes)
		}
	}
}
