package memory_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// segmented makes segments of all that is remembered before each question: whatever the tests
// promise must hold for them too.
var segmented = os.Getenv("NODEST_SEGMENTED") != ""

// fixture is a real store with a memory service, and changes chats as the engine
// does.
type fixture struct {
	testing.TB
	db    *store.DB
	svc   *memory.Service
	user  string
	now   time.Time     // the time of what is stored next
	clock *atomic.Int64 // the clock of the store in ms, shared by all users

	interval time.Duration // added to now before each message; the default of 5 h makes each a session of its own
}

var sharing = memory.Scene{Names: lang.Names{User: "Ann", Character: "Reed"}, Recall: true, Limit: 10, Share: true}

func newFixture(t testing.TB, o memory.Options) *fixture {
	t.Helper()
	return newFixtureOn(t, o, storetest.OpenWith)
}

func newFixtureOn(t testing.TB, o memory.Options, open func(testing.TB, store.Options) *store.DB) *fixture {
	t.Helper()
	r := &fixture{TB: t, now: noon, interval: 5 * time.Hour, clock: new(atomic.Int64)}
	r.clock.Store(noon.UnixMilli())
	r.db = open(t, store.Options{Now: func() time.Time { return time.UnixMilli(r.clock.Load()) }})
	r.user = storetest.User(t, r.db)
	if o.Scenes == nil {
		o.Scenes = func(context.Context, string, string, string) (memory.Scene, error) { return sharing, nil }
	}
	if segmented && o.Loose == 0 {
		o.Loose = 1
	}
	r.svc = memory.New(r.db.Memory(), o)
	return r
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// asUser is the fixture of another user on the same store.
func (r *fixture) asUser(user string) *fixture {
	other := *r
	other.user = user
	return &other
}

func (r *fixture) update(fn func(tx nodest.Tx) error) {
	r.Helper()
	if err := r.db.Update(context.Background(), r.user, fn); err != nil {
		r.Fatal(err)
	}
}

// character stores a new character.
func (r *fixture) character() string {
	r.Helper()
	c := newCharacter()
	r.update(func(tx nodest.Tx) error { return tx.Characters.InsertCharacter(c) })
	return c.ID
}

// newCharacter is a character of the card that all users have.
func newCharacter() *character.Character {
	return &character.Character{
		ID: newID(), Name: "Reed", Dialect: "nodest", RoleCard: []byte(`{}`), WorldBook: []byte(`{}`), Preset: []byte(`{}`),
		AuthorNote: []byte(`{}`), RegexScripts: []byte(`[]`), Settings: []byte(`{}`),
	}
}

func (r *fixture) conversation(character string) string {
	r.Helper()
	c := &chat.Conversation{ID: newID(), CharacterID: character, Settings: []byte(`{}`)}
	r.update(func(tx nodest.Tx) error { return tx.Chats.InsertConversation(c) })
	return c.ID
}

// addMessage stores a message below parent and shows it: "Ann: text" or "Reed: text".
func (r *fixture) addMessage(conversation, parent, line string) *chat.Message {
	r.Helper()
	r.now = r.now.Add(r.interval)
	r.clock.Store(r.now.UnixMilli())
	var m *chat.Message
	r.update(func(tx nodest.Tx) (err error) {
		m, err = insertMessage(tx, conversation, parent, line)
		return err
	})
	return m
}

func insertMessage(tx nodest.Tx, conversation, parent, line string) (*chat.Message, error) {
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

// changeMessage changes a message as the engine does.
func (r *fixture) changeMessage(id string, change func(m *chat.Message)) {
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

func (r *fixture) setHead(conversation, head string) {
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
func (r *fixture) rewind(conversation string, version int64) {
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
		if _, _, err := tx.Chats.Rewind(c, version, then.HeadID); err != nil {
			return err
		}
		c.HeadID = then.HeadID
		c.Version++
		return tx.Chats.UpdateConversation(c)
	})
}

func (r *fixture) version(conversation string) (version int64) {
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

// addFact stores a fact with messages as its evidence.
func (r *fixture) addFact(character, text string, change func(*memory.Memory), from ...*chat.Message) *memory.Memory {
	r.Helper()
	id := newID()
	m := &memory.Memory{
		ID: id, RootID: id, Version: 1, Text: text, Subject: lang.AboutUser, Kind: lang.KindOther, Importance: 0.5,
		Origin: memory.ByModel, Standing: memory.Standing{Status: memory.Active}, Sightings: memory.Sightings{SeenCount: 1, LastSeenAt: r.now}, ContentHash: lang.ContentHash(text),
		CreatedAt: r.now, UpdatedAt: r.now, Evidence: evidenceOf(from...),
	}
	if change != nil {
		change(m)
	}
	r.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(character, m) })
	return m
}

func (r *fixture) updateFact(character string, m *memory.Memory, change func(*memory.Memory)) {
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

// asked is a question to a memory.
type asked struct {
	memory.Ask
	recall.Query
}

// recall returns the texts of what is found, sorted.
func (r *fixture) recall(a asked) []string {
	r.Helper()
	texts := hitTexts(r.hits(a))
	slices.Sort(texts)
	return texts
}

func (r *fixture) hits(a asked) []recall.Hit {
	r.Helper()
	if a.Now.IsZero() {
		a.Now = r.now
	}
	if segmented {
		if err := r.svc.Compact(r.Context(), memory.Scope{UserID: r.user, CharacterID: a.CharacterID}); err != nil {
			r.Fatal(err)
		}
	}
	hits, err := r.svc.Recall(r.Context(), r.user, a.Ask, a.Query)
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

func hitTexts(hits []recall.Hit) (all []string) {
	for _, h := range hits {
		all = append(all, h.Text)
	}
	return all
}

func (r *fixture) wantRecall(what string, a asked, want ...string) {
	r.Helper()
	slices.Sort(want)
	if got := r.recall(a); !slices.Equal(got, want) {
		r.Errorf("%s: found %q, want %q", what, got, want)
	}
}

// vectorsIn counts the units of a scope that have a vector of a model, and all units.
func (r *fixture) vectorsIn(character, model string) (with, all int) {
	r.Helper()
	if segmented {
		r.Skip("counts units that are in no segment")
	}
	r.update(func(tx nodest.Tx) error {
		c, err := tx.Memory.MemoryChanges(character, 0, 0, 0)
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

func harbourLines(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("Ann: The harbour of town%d has pier%d and mole%d.", i, i*7, i*13)
	}
	return all
}

// noon is a Wednesday.
var noon = time.Date(2023, 5, 10, 12, 0, 0, 0, time.UTC)
