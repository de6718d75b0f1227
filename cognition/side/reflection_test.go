package side_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := storetest.DropSchemas(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// talk is a conversation whose side branches ask a scripted model.
type talk struct {
	*testing.T
	db                    *store.DB
	user, character, chat string

	mu      sync.Mutex
	asked   []string // the instructions of the requests
	answers func(ctx context.Context, p llm.Prompt) (string, error)
}

// newTalk begins a conversation with settings of its character: its greeting and two messages.
func newTalk(t *testing.T, db *store.DB, settings string) *talk {
	t.Helper()
	k := &talk{T: t, db: db, user: storetest.User(t, db)}
	k.reply(`{"extractions":[]}`)
	c := &op.Call{UserID: k.user}
	characters := character.New(db.Characters(), character.Options{})
	ch, err := characters.Create(t.Context(), c, character.Input{RoleCard: []byte(`{"name":"Alice"}`)})
	k.must(err)
	_, _, err = characters.PutSettings(t.Context(), c, ch.ID, json.RawMessage(settings), 0)
	k.must(err)
	conv, err := chat.New(db.Chats(), characters, chat.Options{Memory: true}).CreateConversation(t.Context(), c, chat.ConversationInput{CharacterID: ch.ID})
	k.must(err)
	k.character, k.chat = ch.ID, conv.ID
	k.says(chat.RoleUser, "When does the ferry sail?")
	k.says(chat.RoleAssistant, "It sails at nine.")
	return k
}

func (k *talk) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

func (k *talk) update(fn func(tx nodest.Tx) error) {
	k.Helper()
	k.must(k.db.Update(k.Context(), k.user, fn))
}

func (k *talk) says(role, text string) {
	k.Helper()
	k.update(func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(k.chat)
		if err != nil {
			return err
		}
		conv.Version++
		m := &chat.Message{
			ID: op.NewID(), ConversationID: conv.ID, ParentID: conv.HeadID, Role: role, Status: chat.StatusComplete, Rev: 1, Dates: chat.Dates{CreatedAt: tx.Now()},
			Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: text, CreatedAt: tx.Now()}},
		}
		if err := tx.Chats.InsertMessage(m); err != nil {
			return err
		}
		conv.HeadID, conv.UpdatedAt = m.ID, tx.Now()
		return tx.Chats.UpdateConversation(conv)
	})
}

// logs adds events to the log.
func (k *talk) logs(bodies ...cognition.Body) {
	k.Helper()
	k.update(func(tx nodest.Tx) error {
		for _, b := range bodies {
			if err := tx.Cognition.AppendEvents(k.chat, cognition.New(k.chat, b)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *talk) reply(text string) {
	k.answers = func(context.Context, llm.Prompt) (string, error) { return text, nil }
}

func (k *talk) ask(ctx context.Context, p llm.Prompt) (string, error) {
	k.mu.Lock()
	k.asked = append(k.asked, p.Messages[len(p.Messages)-1].Text)
	answers := k.answers
	k.mu.Unlock()
	return answers(ctx, p)
}

// service is a new one, as after a restart.
func (k *talk) service(of side.Store) *side.Service {
	return side.New(of, side.Options{Model: func(context.Context, string) (llm.Asker, string, error) { return llm.AskerFunc(k.ask), "m", nil }})
}

func (k *talk) compress() { k.service(k.db.Side()).BeforeSummary(k.Context(), k.user, k.chat) }

// calls are the requests since the last call of it.
func (k *talk) calls() int {
	n := len(k.asked)
	k.asked = nil
	return n
}

func (k *talk) state() (s cognition.State) {
	k.Helper()
	k.update(func(tx nodest.Tx) (err error) {
		s, err = tx.Cognition.SideState(k.chat)
		return err
	})
	return s
}

func (k *talk) pending() (all []cognition.ExtractionPending) {
	k.Helper()
	for _, e := range k.events(cognition.TypePending) {
		var p cognition.ExtractionPending
		k.must(cognition.Read(e, &p))
		all = append(all, p)
	}
	return all
}

func (k *talk) events(types ...string) (all []*cognition.Event) {
	k.Helper()
	k.update(func(tx nodest.Tx) (err error) {
		all, err = tx.Cognition.Events(k.chat, 0, 1000, types...)
		return err
	})
	return all
}

// states are the contents of the extractions with their states.
func (k *talk) states() (all []string) {
	k.Helper()
	page, err := k.service(k.db.Side()).List(k.Context(), k.user, k.chat, "", 0, 0)
	k.must(err)
	for _, x := range page.Items {
		all = append(all, said(x.Payload)+" "+x.State)
	}
	return all
}

func (k *talk) memories() (all []string) {
	k.Helper()
	k.update(func(tx nodest.Tx) error {
		all = nil
		return memory.EachFact(tx.Memory, k.character, memory.Filter{}, func(m *memory.Memory) bool {
			all = append(all, m.Text)
			return true
		})
	})
	return all
}

// work claims the job of the conversation that is due, if there is one, and runs it.
func (k *talk) work(of side.Store) error {
	k.Helper()
	claimed, err := k.db.ClaimJobs(k.Context(), "p", time.Hour, []jobs.Want{{Kind: side.JobSide, Free: 100, PerUser: 100}})
	k.must(err)
	for _, j := range claimed {
		if j.Subject == k.chat {
			err = k.service(of).Kinds()[0].Run(k.Context(), j)
			if err == nil {
				_ = k.db.EndJob(k.Context(), j, jobs.Outcome{State: jobs.Done}) // it may have ended itself
			}
			return err
		}
	}
	return nil
}

func said(payload json.RawMessage) string {
	var p struct{ Content string }
	_ = json.Unmarshal(payload, &p)
	return p.Content
}

func contents(all []cognition.ExtractionPending) (texts []string) {
	for _, p := range all {
		texts = append(texts, said(p.Payload))
	}
	return texts
}

// extractions is a reply that proposes texts.
func extractions(texts ...string) string {
	var all []map[string]any
	for _, text := range texts {
		all = append(all, map[string]any{"content": text})
	}
	return string(op.MustJSON(map[string]any{"extractions": all}))
}

const (
	extracts = `{"cognition":{"extract":true}}`
	commits  = `{"cognition":{"extract":true,"autoCommit":true}}`
)

func each(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) { test(t, open(t, store.Options{})) })
}

// Before a summary, knowledge in new messages is proposed once: not what was proposed, is a memory or was forgotten.
func TestAReflectionProposesOnceWhatIsNew(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB) {
		k := newTalk(t, db, extracts)
		k.update(func(tx nodest.Tx) error {
			_, err := memory.Keep(tx.Memory, "", k.character, "The inn is closed.")
			return errors.Join(err, tx.Memory.PutTombstone(k.character, memory.Tombstone{ContentHash: "", CreatedAt: tx.Now()}),
				tx.Cognition.InsertGoal(&cognition.Goal{ID: op.NewID(), ConversationID: k.chat, Kind: cognition.KindTopic, Description: "Travel", Status: cognition.GoalActive}))
		})
		k.reply(`{"extractions":[{"content":"The ferry sails at nine.","task":"travel","types":["fact"],"score":9,"mine":{"x":1}},
			{"content":" the ferry sails at nine "},{"content":""},{"task":"nothing"},{"content":"The inn is closed."},{"content":"Alice knows the harbour."}]}`)
		k.compress()
		got := k.pending()
		if texts := contents(got); k.calls() != 1 || !slices.Equal(texts, []string{"The ferry sails at nine.", "Alice knows the harbour."}) {
			t.Fatalf("proposed: %q", texts)
		}
		p := got[0]
		if !strings.HasPrefix(p.ExtractionID, "pending-") || len(p.ExtractionID) != 16 || !strings.HasPrefix(p.BranchID, "reflection-") ||
			p.BranchID != got[1].BranchID || p.Sequence != 3 || p.GoalID == nil {
			t.Errorf("the proposal is %+v", p)
		}
		want := `{"task":"travel","content":"The ferry sails at nine.","types":["fact"],"tags":{},"score":5,"scopes":null,"owner":null,"resource_ids":[],"source_name":"",` +
			`"source_category":"exp","urls":[],"agent_id":"","submitted_by":"","capability_ids":[],"tool_ids":[],"mine":{"x":1}}`
		if string(p.Payload) != want {
			t.Errorf("the payload is\n%s\nwant\n%s", p.Payload, want)
		}
		k.compress()
		k.must(k.work(k.db.Side()))
		if n := k.calls(); n != 0 {
			t.Errorf("%d requests about the same messages", n)
		}
		k.says(chat.RoleUser, "And on Sundays?")
		k.reply(extractions("On Sundays the ferry rests.", "The ferry sails at nine!"))
		k.compress()
		if !strings.Contains(k.asked[0], `"The ferry sails at nine."`) {
			t.Errorf("the instruction is\n%s", k.asked[0])
		}
		if texts := contents(k.pending()); len(texts) != 3 || texts[2] != "On Sundays the ferry rests." {
			t.Errorf("proposed: %q", texts)
		}
	})
}

// Forgotten words are not proposed, and messages that were the only source of them are not shown.
func TestWhatWasForgottenIsNotProposed(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB) {
		k := newTalk(t, db, extracts)
		k.update(func(tx nodest.Tx) error {
			conv, err := tx.Chats.Conversation(k.chat)
			if err != nil {
				return err
			}
			path, _, err := tx.Chats.Path(k.chat, conv.HeadID, "", 1)
			if err != nil {
				return err
			}
			m := &memory.Memory{Text: "The ferry sails at nine."}
			return tx.Memory.PutTombstone(k.character, memory.Tombstone{ContentHash: memory.HashOf(m), CreatedAt: tx.Now(), Evidence: []memory.Evidence{
				{ConversationID: k.chat, MessageID: path[0].ID, RevisionID: path[0].Chosen().RevisionID, Seq: path[0].Seq},
			}})
		})
		k.answers = func(_ context.Context, p llm.Prompt) (string, error) {
			for _, m := range p.Messages {
				if strings.Contains(m.Text, "at nine") {
					t.Errorf("the model sees %q", m.Text)
				}
			}
			return extractions("The ferry sails at nine."), nil
		}
		k.compress()
		if texts := contents(k.pending()); k.calls() != 1 || len(texts) != 0 {
			t.Errorf("proposed: %q", texts)
		}
	})
}

// Without the setting nothing is asked; without a model, the messages wait for one.
func TestAReflectionWaitsForItsSettingAndForAModel(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB) {
		k := newTalk(t, db, `{}`)
		k.compress()
		if k.calls() != 0 || len(k.state().Queue) != 0 {
			t.Errorf("asked without the setting; state %+v", k.state())
		}
		k = newTalk(t, db, extracts)
		side.New(db.Side(), side.Options{}).BeforeSummary(t.Context(), k.user, k.chat)
		if s := k.state(); s.Reflected != 0 || len(s.Queue) != 0 {
			t.Errorf("without a model: %+v", s)
		}
		k.reply(extractions("The ferry sails at nine."))
		k.compress()
		if k.calls() != 1 || len(k.pending()) != 1 {
			t.Errorf("with a model: %v", k.pending())
		}
	})
}

// Two branches at once ask twice and propose once.
func TestTwoReflectionsAtOnceProposeOnce(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB) {
		k := newTalk(t, db, extracts)
		var both, done sync.WaitGroup
		both.Add(2)
		k.answers = func(context.Context, llm.Prompt) (string, error) {
			both.Done()
			both.Wait()
			return extractions("The ferry sails at nine.", "Alice knows the harbour."), nil
		}
		for range 2 {
			done.Go(k.compress)
		}
		done.Wait()
		if texts := contents(k.pending()); len(texts) != 2 || k.calls() != 2 {
			t.Errorf("proposed: %q", texts)
		}
	})
}

// The branches run in their order, within 20 seconds each, and what one of them does stops no other. One that failed is
// made up for by the worker.
func TestBranchesRunInOrderBeforeASummary(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB) {
		k := newTalk(t, db, extracts)
		k.logs(&cognition.Query{Sequence: 2, Query: "ferry", QueryID: "q", Sources: []cognition.Source{{ID: "page", Content: "at nine"}}})
		var order []string
		k.answers = func(ctx context.Context, p llm.Prompt) (string, error) {
			end, _ := ctx.Deadline()
			if left := time.Until(end); left <= 0 || left > 20*time.Second {
				t.Errorf("%v are left", left)
			}
			order = append(order, strings.Join(k.state().Queue, " "))
			if strings.Contains(p.Messages[len(p.Messages)-1].Text, "knowledge_save_pending") {
				return "", errors.New("the provider is away")
			}
			return `{"evaluations":[{"query_sequence":2,"assessments":[{"source_id":"page","status":"helpful","reason":"r"}]}]}`, nil
		}
		k.compress()
		if want := []string{"reflection knowledge_eval compression", "reflection knowledge_eval compression"}; !slices.Equal(order, want) {
			t.Errorf("queues: %q", order)
		}
		if e := k.events(cognition.TypeEvaluation); len(e) != 1 || !strings.Contains(string(e[0].Body), `"compression"`) {
			t.Errorf("evaluations: %v", e)
		}
		if s := k.state(); !slices.Equal(s.Queue, []string{"reflection", "compression"}) || s.Reflected != 0 {
			t.Errorf("state: %+v", s)
		}
		k.reply(extractions("The ferry sails at nine."))
		k.update(func(tx nodest.Tx) error { return tx.Jobs.Enqueue(side.Look(k.chat, tx.Now())) })
		k.must(k.work(db.Side()))
		if s := k.state(); len(k.pending()) != 1 || len(s.Queue) != 0 || s.Reflected != 3 {
			t.Errorf("state: %+v", s)
		}
	})
}

// A reply that cannot be read proposes nothing, and is not asked for again.
func TestAReplyThatCannotBeReadIsNotAskedForAgain(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB) {
		k := newTalk(t, db, extracts)
		k.reply("I would keep nothing.")
		k.compress()
		k.compress()
		if k.calls() != 1 || len(k.pending()) != 0 || k.state().Reflected != 3 {
			t.Errorf("state: %+v", k.state())
		}
	})
}

// With automatic commits, the proposals of a branch become memories at its end, and no others do.
func TestAutoCommitKeepsWhatItsBranchProposed(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB) {
		k := newTalk(t, db, commits)
		k.logs(&cognition.ExtractionPending{ExtractionID: "pending-1", BranchID: "reflection-1", Payload: json.RawMessage(`{"content":"The inn is closed."}`)})
		k.reply(extractions("The ferry sails at nine.", "Alice knows the harbour.", "The inn is closed."))
		k.compress()
		want := []string{"The inn is closed. pending", "The ferry sails at nine. committed", "Alice knows the harbour. committed"}
		if got := k.states(); !slices.Equal(got, want) {
			t.Errorf("states: %q", got)
		}
		if got := k.memories(); len(got) != 2 || slices.Contains(got, "The inn is closed.") {
			t.Errorf("memories: %q", got)
		}
		if n := len(k.events(cognition.TypeReviewed)); n != 2 {
			t.Errorf("%d reviews", n)
		}
	})
}

// When a goal ends, and when the conversation rests, the worker reflects on new messages.
func TestTheWorkerReflectsAtTheEndOfAGoalAndOfATask(t *testing.T) {
	t.Parallel()
	now := time.Now()
	db := storetest.OpenWith(t, store.Options{Now: func() time.Time { return now }})
	k := newTalk(t, db, extracts)
	k.reply(extractions("The ferry sails at nine."))
	svc, c := k.service(db.Side()), &op.Call{UserID: k.user}
	goal, err := svc.CreateGoal(t.Context(), c, cognition.Goal{ConversationID: k.chat, Description: "Travel"})
	k.must(err)
	_, err = svc.ChangeGoal(t.Context(), c, goal.ID, side.GoalPatch{Status: new(cognition.GoalCompleted)})
	k.must(err)
	k.must(k.work(db.Side()))
	if k.calls() != 1 || len(k.pending()) != 1 {
		t.Fatalf("at the end of a goal: %v", k.pending())
	}
	k.says(chat.RoleUser, "And on Sundays?")
	k.reply(extractions("On Sundays the ferry rests."))
	k.update(func(tx nodest.Tx) error { return tx.Jobs.Enqueue(side.Look(k.chat, tx.Now())) })
	k.must(k.work(db.Side()))
	if k.calls() != 0 {
		t.Error("the model was asked while the user talks")
	}
	now = now.Add(side.Idle)
	k.must(k.work(db.Side()))
	if k.calls() != 1 || len(k.pending()) != 2 || len(k.state().Queue) != 0 {
		t.Errorf("at rest: %v, %+v", contents(k.pending()), k.state())
	}
	now = now.Add(side.Idle)
	k.must(k.work(db.Side()))
	if k.calls() != 0 {
		t.Error("the model was asked again")
	}
}

var errCut = errors.New("the process was killed")

// dying is a store whose process dies before or after one of its commits.
type dying struct {
	side.Store
	at    int
	after bool
	dead  bool
}

func (d *dying) Update(ctx context.Context, userID string, fn func(side.Tx) error) error {
	if d.at--; d.dead || d.at == 0 && !d.after {
		d.dead = true
		return errCut
	}
	err := d.Store.Update(ctx, userID, fn)
	if d.at == 0 && err == nil {
		d.dead, err = true, errCut
	}
	return err
}

// Wherever a reflection with automatic commits is killed, the next run goes on: each proposal is there once, with one memory.
func TestAReflectionThatIsKilledGoesOn(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB) {
		kills := 0
		for _, after := range []bool{false, true} {
			for at := 1; at < 9; at++ {
				k := newTalk(t, db, commits)
				k.reply(extractions("The ferry sails at nine.", "Alice knows the harbour."))
				cut := &dying{Store: db.Side(), at: at, after: after}
				k.service(cut).BeforeSummary(t.Context(), k.user, k.chat)
				if !cut.dead {
					break
				}
				kills++
				k.compress()
				if got := k.states(); !slices.Equal(got, []string{"The ferry sails at nine. committed", "Alice knows the harbour. committed"}) || len(k.memories()) != 2 {
					t.Errorf("killed at commit %d (after it: %v): %q, %q", at, after, got, k.memories())
				}
				k.calls()
				k.compress()
				if n := k.calls(); n != 0 {
					t.Errorf("killed at commit %d: %d requests", at, n)
				}
			}
		}
		if kills < 4 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// The branch sees new messages beyond the last forty, and nothing of it enters the conversation.
func TestAReflectionSeesAllNewMessagesAndNeverEntersTheConversation(t *testing.T) {
	t.Parallel()
	k := newTalk(t, storetest.Open(t), extracts)
	for i := range 60 {
		k.says(chat.RoleUser, fmt.Sprintf("Note %d.", i))
	}
	var seen int
	k.answers = func(_ context.Context, p llm.Prompt) (string, error) {
		seen = len(p.Messages) - 1
		return extractions("The ferry sails at nine."), nil
	}
	k.compress()
	if seen != 63 {
		t.Errorf("it sees %d messages", seen)
	}
	k.says(chat.RoleUser, "再说一遍。")
	k.compress()
	if seen != 40 {
		t.Errorf("the second sees %d messages", seen)
	}
	k.update(func(tx nodest.Tx) error {
		conv, err := tx.Chats.Conversation(k.chat)
		if err != nil {
			return err
		}
		path, err := chat.ShownBranch(tx.Chats, conv)
		if len(path) != 64 {
			t.Errorf("the conversation has %d messages", len(path))
		}
		return err
	})
}
