package memory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"nodest/character"
	"nodest/chat"
	"nodest/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// rig is a real store with a service over it, and what the engine does to chats.
type rig struct {
	testing.TB
	db    *store.DB
	svc   *memory.Service
	user  string
	now   time.Time     // of everything that is stored next
	clock *atomic.Int64 // of the store, which users share, in ms

	pause time.Duration // before a message; 5 h, so that each is a session of its own
}

var sharing = memory.Scene{Names: lang.Names{User: "Ann", Character: "Reed"}, Recall: true, Limit: 10, Share: true}

func newRig(t testing.TB, o memory.Options) *rig {
	t.Helper()
	r := &rig{TB: t, now: noon, pause: 5 * time.Hour, clock: new(atomic.Int64)}
	r.clock.Store(noon.UnixMilli())
	r.db = storetest.OpenWith(t, store.Options{Now: func() time.Time { return time.UnixMilli(r.clock.Load()) }})
	r.user = storetest.User(t, r.db)
	if o.Scenes == nil {
		o.Scenes = func(context.Context, string, string, string) (memory.Scene, error) { return sharing, nil }
	}
	r.svc = memory.New(r.db.Memory(), o)
	return r
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// as is the rig of another user on the same store.
func (r *rig) as(user string) *rig {
	other := *r
	other.user = user
	return &other
}

func (r *rig) update(fn func(tx nodest.Tx) error) {
	r.Helper()
	if err := r.db.Update(context.Background(), r.user, fn); err != nil {
		r.Fatal(err)
	}
}

// character stores one of the card.
func (r *rig) character() string {
	r.Helper()
	c := cardOf()
	r.update(func(tx nodest.Tx) error { return tx.Characters.InsertCharacter(c) })
	return c.ID
}

// cardOf is a character as everybody imports it: all have one card.
func cardOf() *character.Character {
	return &character.Character{
		ID: newID(), Name: "Reed", Dialect: "nodest", RoleCard: []byte(`{}`), WorldBook: []byte(`{}`), Preset: []byte(`{}`),
		AuthorNote: []byte(`{}`), RegexScripts: []byte(`[]`), Settings: []byte(`{}`),
	}
}

func (r *rig) conversation(character string) string {
	r.Helper()
	c := &chat.Conversation{ID: newID(), CharacterID: character, Settings: []byte(`{}`)}
	r.update(func(tx nodest.Tx) error { return tx.Chats.InsertConversation(c) })
	return c.ID
}

// say stores a message below parent and shows it: "Ann: text" or "Reed: text".
func (r *rig) say(conversation, parent, line string) *chat.Message {
	r.Helper()
	r.now = r.now.Add(r.pause)
	r.clock.Store(r.now.UnixMilli())
	var m *chat.Message
	r.update(func(tx nodest.Tx) (err error) {
		m, err = sayIn(tx, conversation, parent, line)
		return err
	})
	return m
}

func sayIn(tx nodest.Tx, conversation, parent, line string) (*chat.Message, error) {
	c, err := tx.Chats.LockConversation(conversation)
	if err != nil {
		return nil, err
	}
	name, text, _ := strings.Cut(line, ": ")
	role := chat.RoleAssistant
	if name == "Ann" {
		role = chat.RoleUser
	}
	m := &chat.Message{
		ID: newID(), ConversationID: conversation, ParentID: parent, Role: role, Name: name,
		Status: chat.StatusComplete, Swipes: []chat.Swipe{{ID: newID(), RevisionID: newID(), Rev: 1, Text: text}},
	}
	if err := tx.Chats.InsertMessage(m); err != nil {
		return nil, err
	}
	c.Version++
	c.HeadID = m.ID
	return m, tx.Chats.UpdateConversation(c)
}

// change changes a message as the engine does.
func (r *rig) change(id string, change func(m *chat.Message)) {
	r.Helper()
	r.update(func(tx nodest.Tx) error {
		m, err := tx.Chats.Message(id)
		if err != nil {
			return err
		}
		c, err := tx.Chats.LockConversation(m.ConversationID)
		if err != nil {
			return err
		}
		change(m)
		m.Rev++
		if err := tx.Chats.UpdateMessage(m); err != nil {
			return err
		}
		c.Version++
		return tx.Chats.UpdateConversation(c)
	})
}

func editTo(text string) func(*chat.Message) {
	return func(m *chat.Message) {
		s := m.Chosen()
		s.Text, s.RevisionID = text, newID()
		s.Rev++
	}
}

func swipeTo(text string) func(*chat.Message) {
	return func(m *chat.Message) {
		m.Swipes = append(m.Swipes, chat.Swipe{ID: newID(), RevisionID: newID(), Rev: 1, Text: text})
		m.SwipeIndex = len(m.Swipes) - 1
	}
}

func (r *rig) show(conversation, head string) {
	r.Helper()
	r.update(func(tx nodest.Tx) error {
		c, err := tx.Chats.LockConversation(conversation)
		if err != nil {
			return err
		}
		c.Version++
		c.HeadID = head
		return tx.Chats.UpdateConversation(c)
	})
}

// rewind shows again what a version showed.
func (r *rig) rewind(conversation string, version int64) {
	r.Helper()
	r.update(func(tx nodest.Tx) error {
		c, err := tx.Chats.LockConversation(conversation)
		if err != nil {
			return err
		}
		then, err := tx.Chats.StateAt(conversation, version)
		if err != nil {
			return err
		}
		if _, err := tx.Chats.Rewind(c, version, then.HeadID); err != nil {
			return err
		}
		c.HeadID = then.HeadID
		c.Version++
		return tx.Chats.UpdateConversation(c)
	})
}

func (r *rig) version(conversation string) (version int64) {
	r.Helper()
	r.update(func(tx nodest.Tx) error {
		c, err := tx.Chats.Conversation(conversation)
		if err == nil {
			version = c.Version
		}
		return err
	})
	return version
}

// learn stores a fact that rests on messages.
func (r *rig) learn(character, text string, change func(*memory.Memory), from ...*chat.Message) *memory.Memory {
	r.Helper()
	id := newID()
	m := &memory.Memory{
		ID: id, RootID: id, Version: 1, Text: text, Subject: lang.AboutUser, Kind: lang.KindOther, Importance: 0.5,
		Origin: memory.ByModel, Status: memory.Active, SeenCount: 1, LastSeenAt: r.now, ContentHash: memory.ContentHash(text),
		CreatedAt: r.now, UpdatedAt: r.now, Evidence: evidenceOf(from...),
	}
	if change != nil {
		change(m)
	}
	r.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(character, m) })
	return m
}

func (r *rig) updateFact(character string, m *memory.Memory, change func(*memory.Memory)) {
	r.Helper()
	change(m)
	r.update(func(tx nodest.Tx) error { return tx.Memory.UpdateFact(character, m) })
}

func evidenceOf(from ...*chat.Message) []memory.Evidence {
	var evidence []memory.Evidence
	for _, m := range from {
		evidence = append(evidence, memory.Evidence{ConversationID: m.ConversationID, MessageID: m.ID, RevisionID: m.Chosen().RevisionID, Seq: m.Seq})
	}
	return evidence
}

// recall returns the texts of what is found, sorted.
func (r *rig) recall(a memory.Ask) []string {
	r.Helper()
	texts := []string{}
	for _, h := range r.hits(a) {
		texts = append(texts, h.Text)
	}
	slices.Sort(texts)
	return texts
}

func (r *rig) hits(a memory.Ask) []memory.Hit {
	r.Helper()
	if a.Now.IsZero() {
		a.Now = r.now
	}
	hits, err := r.svc.Recall(r.Context(), r.user, a)
	if err != nil {
		r.Fatal(err)
	}
	for _, h := range hits {
		if sum := h.Parts.Vector + h.Parts.Lexical + h.Parts.Recency + h.Parts.Importance; max(sum-h.Score, h.Score-sum) > 1e-4 {
			r.Errorf("the parts of %q make %v, its score is %v", h.Text, sum, h.Score)
		}
	}
	return hits
}

func (r *rig) expect(what string, a memory.Ask, want ...string) {
	r.Helper()
	slices.Sort(want)
	if got := r.recall(a); !slices.Equal(got, want) {
		r.Errorf("%s: found %q, want %q", what, got, want)
	}
}

// vectorsIn counts units of a scope with a vector of a model, and all of them.
func (r *rig) vectorsIn(character, model string) (with, all int) {
	r.Helper()
	r.update(func(tx nodest.Tx) error {
		c, err := tx.Memory.MemoryChanges(character, 0)
		if err != nil {
			return err
		}
		all = len(c.Units)
		for _, u := range c.Units {
			if slices.ContainsFunc(u.Vectors, func(v index.Kept) bool { return v.Model == model }) {
				with++
			}
		}
		return nil
	})
	return with, all
}

func lines(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("Ann: The harbour of town%d has pier%d and mole%d.", i, i*7, i*13)
	}
	return all
}

// noon is a Wednesday.
var noon = time.Date(2023, 5, 10, 12, 0, 0, 0, time.UTC)
