package extract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/stream"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/extract"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// sometime is a Thursday, when these tests' chats start.
var sometime = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

// chatter is a user who chats with a character, on a real store with a clock that the
// test sets, and a model with scripted answers.
type chatter struct {
	*testing.T
	db              *store.DB
	clock           *atomic.Int64 // milliseconds
	user, character string
	chat            string
	service         *extract.Service
	scene           memory.Scene
	model           *scriptedModel
	events          *eventLog
}

type eventLog struct {
	mu        sync.Mutex
	all       []string
	suggested []json.RawMessage // data of all suggestions
}

func (l *eventLog) committed(_ string, events []*stream.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		if strings.HasPrefix(e.Type, "memory.") {
			var data struct {
				Op, Event string
			}
			if err := json.Unmarshal(e.Data, &data); err != nil {
				panic(err)
			}
			if e.Type == "memory.suggestion" {
				l.suggested = append(l.suggested, e.Data)
			}
			l.all = append(l.all, strings.TrimSpace(e.Type+" "+data.Op+data.Event+" by "+e.By))
		}
	}
}

// take returns the events since the last call.
func (l *eventLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// scriptedModel is a model that answers as the test says: facts to the first question,
// decisions to the second. Without a function it returns nothing to store.
type scriptedModel struct {
	facts     func(prompt string) (string, error)
	decisions func(prompt string) (string, error)
	prompts   []string
}

func (o *scriptedModel) Ask(_ context.Context, p llm.Prompt) (string, error) {
	o.prompts = append(o.prompts, p.Text)
	answer, nothing := o.facts, `{"facts":[]}`
	if strings.Contains(p.Text, `"memory":[`) {
		answer, nothing = o.decisions, `{"memory":[]}`
	}
	if answer == nil {
		return nothing, nil
	}
	return answer(p.Text)
}

// says makes a model always return the same answer.
func says(answer string) func(string) (string, error) {
	return func(string) (string, error) { return answer, nil }
}

// statement is one entry of an answer with facts.
func statement(text, subject, kind string, seqs ...int64) string {
	doc, err := json.Marshal(map[string]any{"text": text, "subject": subject, "kind": kind, "importance": 0.5, "seqs": seqs})
	if err != nil {
		panic(err)
	}
	return string(doc)
}

func facts(statements ...string) string { return `{"facts":[` + strings.Join(statements, ",") + `]}` }

// knownAs returns the number that a prompt gives a known text.
func knownAs(t testing.TB, prompt, text string) int {
	t.Helper()
	for line := range strings.Lines(prompt) {
		var known struct {
			ID   *int
			Text string
		}
		if json.Unmarshal([]byte(line), &known) == nil && known.ID != nil && known.Text == text {
			return *known.ID
		}
	}
	t.Errorf("the prompt does not list %q", text)
	return -1
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBothDatabases(t *testing.T, test func(*chatter)) {
	for _, database := range []string{"sqlite", "postgres"} {
		t.Run(database, func(t *testing.T) { test(newChatter(t, database)) })
	}
}

func newChatter(t *testing.T, database string) *chatter {
	t.Helper()
	c := &chatter{
		T: t, clock: &atomic.Int64{}, model: &scriptedModel{}, events: &eventLog{},
		scene: memory.Scene{Names: lang.Names{User: "Anna", Character: "小雪"}, Enabled: true, ExtractEvery: 5},
	}
	c.clock.Store(sometime.UnixMilli())
	o := store.Options{Now: func() time.Time { return time.UnixMilli(c.clock.Load()) }, Committed: c.events.committed}
	if database == "postgres" {
		c.db = storetest.OpenPostgres(t, o)
	} else {
		c.db = storetest.OpenWith(t, o)
	}
	c.user = storetest.User(t, c.db)
	c.character, c.chat = c.meet(c.user)
	c.service = c.serviceOn(c.db.Memory())
	return c
}

// serviceOn returns a service with the test's model and settings.
func (c *chatter) serviceOn(s memory.Store) *extract.Service {
	return extract.New(s, extract.Options{
		Scenes: func(context.Context, string, string, string) (memory.Scene, error) { return c.scene, nil },
		Model: func(context.Context, string, string) (llm.Asker, error) {
			if c.model == nil {
				return nil, nil
			}
			return c.model, nil
		},
	})
}

// meet stores a character and a chat for a user.
func (c *chatter) meet(user string) (ch, conv string) {
	c.Helper()
	ch, conv = newUUID(), newUUID()
	c.as(user, func(tx nodest.Tx) error {
		if err := tx.Characters.InsertCharacter(&character.Character{ID: ch, Name: "小雪"}); err != nil {
			return err
		}
		return tx.Chats.InsertConversation(&chat.Conversation{ID: conv, CharacterID: ch, Settings: []byte(`{}`)})
	})
	return ch, conv
}

func newUUID() string { return uuid.Must(uuid.NewV7()).String() }

func (c *chatter) update(fn func(tx nodest.Tx) error) {
	c.Helper()
	c.as(c.user, fn)
}

func (c *chatter) as(user string, fn func(tx nodest.Tx) error) {
	c.Helper()
	if err := c.db.Update(context.Background(), user, fn); err != nil {
		c.Fatal(err)
	}
}

func (c *chatter) view(fn func(tx nodest.Tx) error) {
	c.Helper()
	if err := c.db.View(context.Background(), c.user, fn); err != nil {
		c.Fatal(err)
	}
}

// refused runs an update that must fail with a code.
func (c *chatter) refused(code fault.Code, fn func(tx nodest.Tx) error) error {
	c.Helper()
	err := c.db.Update(context.Background(), c.user, fn)
	if !fault.Is(err, code) {
		c.Errorf("the error is %v, want %s", err, code)
	}
	return err
}

func (c *chatter) equal(what string, got, want any) {
	c.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		c.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// pass advances the clock.
func (c *chatter) pass(d time.Duration) { c.clock.Add(d.Milliseconds()) }

// say stores a message after the head of the chat, as the engine does.
func (c *chatter) say(role lang.Role, text string) *chat.Message {
	c.Helper()
	m := &chat.Message{
		ID: newUUID(), ConversationID: c.chat, Role: string(role), Status: chat.StatusComplete,
		Swipes: []chat.Swipe{{ID: newUUID(), RevisionID: newUUID(), Rev: 1, Text: text}},
	}
	c.update(func(tx nodest.Tx) error {
		chat, err := tx.Chats.LockConversation(c.chat)
		if err != nil {
			return err
		}
		m.ParentID = chat.HeadID
		if err := tx.Chats.InsertMessage(m); err != nil {
			return err
		}
		chat.Version++
		chat.HeadID = m.ID
		if err := tx.Chats.UpdateConversation(chat); err != nil {
			return err
		}
		return memory.TextAdded(tx.Memory, c.character, c.chat)
	})
	c.pass(time.Second)
	return m
}

// exchange stores a message of the user and a reply.
func (c *chatter) exchange(user, reply string) (said, answer *chat.Message) {
	c.Helper()
	return c.say(lang.RoleUser, user), c.say(lang.RoleCharacter, reply)
}

// smallTalk adds n exchanges that contain no facts.
func (c *chatter) smallTalk(n int) {
	c.Helper()
	for range n {
		c.exchange("hello!", "Hi, good to see you.")
	}
}

// change changes a message as the engine does for an edit, a swipe or a deletion.
func (c *chatter) change(m *chat.Message, change func(*chat.Message)) {
	c.Helper()
	c.update(func(tx nodest.Tx) error {
		chat, err := tx.Chats.LockConversation(c.chat)
		if err != nil {
			return err
		}
		stored, err := tx.Chats.Message(m.ID)
		if err != nil {
			return err
		}
		stored.Rev++
		change(stored)
		if err := tx.Chats.UpdateMessage(stored); err != nil {
			return err
		}
		*m = *stored
		chat.Version++
		if err := tx.Chats.UpdateConversation(chat); err != nil {
			return err
		}
		return memory.TextAdded(tx.Memory, c.character, c.chat)
	})
}

// edit gives a message a new text.
func (c *chatter) edit(m *chat.Message, text string) {
	c.Helper()
	c.change(m, func(m *chat.Message) {
		s := m.Chosen()
		s.Rev, s.RevisionID, s.Text = s.Rev+1, newUUID(), text
	})
}

// show makes the branch that ends in a message the shown one.
func (c *chatter) show(head *chat.Message) {
	c.Helper()
	c.update(func(tx nodest.Tx) error {
		chat, err := tx.Chats.LockConversation(c.chat)
		if err != nil {
			return err
		}
		chat.Version++
		chat.HeadID = head.ID
		return tx.Chats.UpdateConversation(chat)
	})
}

// claim returns the due extraction job, or nil.
func (c *chatter) claim() *jobs.Job {
	c.Helper()
	claimed, err := c.db.ClaimJobs(context.Background(), "runner", time.Minute, []jobs.Want{{Kind: memory.JobExtract, Free: 1, PerUser: 1}})
	if err != nil {
		c.Fatal(err)
	}
	if len(claimed) == 0 {
		return nil
	}
	return claimed[0]
}

// run does a job as a runner does.
func (c *chatter) run(s *extract.Service, j *jobs.Job) error {
	c.Helper()
	return s.Kinds()[0].Run(context.Background(), j)
}

// read runs all due extraction jobs and returns them.
func (c *chatter) read() (done []*jobs.Job) {
	c.Helper()
	for j := c.claim(); j != nil; j = c.claim() {
		if err := c.run(c.service, j); err != nil {
			c.Fatal(err)
		}
		c.view(func(tx nodest.Tx) (err error) {
			j, err = tx.Jobs.Job(j.ID)
			return err
		})
		done = append(done, j)
		if len(done) > 20 {
			c.Fatal("extraction never comes to an end")
		}
	}
	return done
}

// readNow requests an extraction and runs it.
func (c *chatter) readNow() []*jobs.Job {
	c.Helper()
	c.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, c.chat) })
	return c.read()
}

// all returns the versions of a scope, oldest first.
func (c *chatter) all(f memory.Filter) []memory.Memory {
	c.Helper()
	var items []memory.Memory
	c.view(func(tx nodest.Tx) error {
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := tx.Memory.Facts(c.character, f, cursor, 200)
			if err != nil {
				return err
			}
			items, cursor = append(items, page...), next
		}
		return nil
	})
	slices.Reverse(items)
	return items
}

// known returns the texts of the active facts, oldest first.
func (c *chatter) known() []string {
	c.Helper()
	texts := []string{}
	for _, m := range c.all(memory.Filter{}) {
		texts = append(texts, m.Text)
	}
	return texts
}

// the returns the newest version with a text.
func (c *chatter) the(text string) *memory.Memory {
	c.Helper()
	items := c.all(memory.Filter{Status: memory.AnyStatus})
	for i := range slices.Backward(items) {
		if items[i].Text == text {
			return &items[i]
		}
	}
	c.Fatalf("nothing says %q", text)
	return nil
}

// counting returns the facts that apply on the shown branch.
func (c *chatter) counting() []string {
	c.Helper()
	texts := []string{}
	c.view(func(tx nodest.Tx) error {
		roots := map[string][]memory.Memory{}
		for _, m := range c.all(memory.Filter{Status: memory.AnyStatus}) {
			roots[m.RootID] = append(roots[m.RootID], m)
		}
		for _, root := range slices.Sorted(maps.Keys(roots)) {
			slices.SortFunc(roots[root], func(a, b memory.Memory) int { return a.Version - b.Version })
			m := memory.Current(roots[root], func(e memory.Evidence) bool {
				shown, err := tx.Memory.Shown(nil, []memory.Evidence{e})
				return err == nil && shown[0]
			})
			if m != nil {
				texts = append(texts, m.Text)
			}
		}
		return nil
	})
	return texts
}

func (c *chatter) suggestions() []memory.Suggested {
	c.Helper()
	var items []memory.Suggested
	c.view(func(tx nodest.Tx) (err error) {
		items, _, err = tx.Memory.Suggestions(c.character, "", "", 200)
		return err
	})
	slices.Reverse(items)
	return items
}

// unread returns the number of texts that extraction has not read.
func (c *chatter) unread() int {
	c.Helper()
	n := 0
	c.view(func(tx nodest.Tx) error {
		texts, err := tx.Memory.Said(c.chat, memory.SaidFilter{Unread: true})
		n = len(texts)
		return err
	})
	return n
}

// progress returns the progress that a job reported.
func progress(t testing.TB, j *jobs.Job) map[string]any {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal(j.Progress, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// remembering returns a recall service with the test's settings.
func (c *chatter) remembering() *memory.Service {
	return memory.New(c.db.Memory(), memory.Options{
		Scenes: func(context.Context, string, string, string) (memory.Scene, error) { return c.scene, nil },
		Log:    slog.New(slog.DiscardHandler),
	})
}

// ask returns the texts that a question recalls.
func (c *chatter) ask(s *memory.Service, q recall.Query) []string {
	c.Helper()
	scene := &memory.Scene{Names: lang.Names{User: "Ann", Character: "Reed"}, Recall: true, Limit: 10, Share: true}
	hits, err := s.Recall(c.Context(), c.user, memory.Ask{CharacterID: c.character, Scene: scene}, q)
	if err != nil {
		c.Fatal(err)
	}
	texts := []string{}
	for i := range hits {
		texts = append(texts, hits[i].Shown())
	}
	return texts
}
