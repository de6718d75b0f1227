package side_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/bench/figure"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// talk is a desk whose character has settings. Its conversation has a greeting and two messages.
type talk struct {
	*desk
	reset int // requests that were counted
}

func newTalk(t *testing.T, db *store.DB, clock *figure.Clock, settings string) *talk {
	t.Helper()
	k := &talk{desk: newDeskOn(t, db, clock)}
	_, _, err := character.New(db.Characters(), character.Options{}).PutSettings(t.Context(), k.call(), k.character, json.RawMessage(settings), 0)
	k.must(err)
	k.say(chat.RoleUser, "When does the ferry sail?")
	k.say(chat.RoleAssistant, "It sails at nine.")
	return k
}

// reply is what the model says from now on.
func (k *talk) reply(text string) {
	k.model.answers(func(context.Context, llm.Prompt) (string, error) { return text, nil })
}

// compress is a summary of a new process.
func (k *talk) compress() { k.service(k.db.Side()).BeforeSummary(k.Context(), k.user, k.chat) }

// asked counts the requests since it was called before.
func (k *talk) asked() (n int) {
	n, k.reset = k.model.calls()-k.reset, k.model.calls()
	return n
}

// look makes the worker look at the conversation now.
func (k *talk) look() {
	k.Helper()
	k.update(func(tx nodest.Tx) error { return tx.Jobs.Enqueue(side.Look(k.chat, tx.Now())) })
	k.works()
}

// logs adds an event to the log.
func (k *talk) logs(b cognition.Body) {
	k.Helper()
	k.update(func(tx nodest.Tx) error { return tx.Cognition.AppendEvents(k.chat, cognition.New(k.chat, b)) })
}

func (k *talk) events(kind string) (all []*cognition.Event) {
	k.Helper()
	k.update(func(tx nodest.Tx) (err error) {
		all, err = tx.Cognition.Events(k.chat, 0, 1000, kind)
		return err
	})
	return all
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

// states are the contents of the extractions with their states.
func (k *talk) states() (all []string) {
	k.Helper()
	page, err := k.svc.List(k.Context(), k.user, k.chat, "", 0, 0)
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
	all := []map[string]any{}
	for _, text := range texts {
		all = append(all, map[string]any{"content": text})
	}
	return string(op.MustJSON(map[string]any{"extractions": all}))
}

const (
	extracts = `{"cognition":{"extract":true}}`
	commits  = `{"cognition":{"extract":true,"autoCommit":true}}`
)

// eachTalk runs a test on both databases.
func eachTalk(t *testing.T, settings string, test func(k *talk)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		clock := newClock()
		test(newTalk(t, open(t, store.Options{Now: clock.Now}), clock, settings))
	})
}

// Before a summary, knowledge in new messages is proposed once: not what was proposed, is a memory or was forgotten.
func TestAReflectionProposesOnceWhatIsNew(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		k.update(func(tx nodest.Tx) error {
			_, err := memory.Keep(tx.Memory, "", k.character, "The inn is closed.")
			return errors.Join(err, tx.Cognition.InsertGoal(&cognition.Goal{ID: op.NewID(), ConversationID: k.chat, Kind: cognition.KindTopic, Description: "Travel", Status: cognition.GoalActive}))
		})
		k.reply(`{"extractions":[{"content":"The ferry sails at nine.","task":"travel","types":["fact"],"score":9,"mine":{"x":1}},
			{"content":" the ferry sails at nine "},{"content":""},{"task":"nothing"},{"content":"The inn is closed."},{"content":"Alice knows the harbour."}]}`)
		k.compress()
		got := k.pending()
		if texts := contents(got); k.asked() != 1 || !slices.Equal(texts, []string{"The ferry sails at nine.", "Alice knows the harbour."}) {
			k.Fatalf("proposed: %q", texts)
		}
		p := got[0]
		if !strings.HasPrefix(p.ExtractionID, "pending-") || len(p.ExtractionID) != 16 || !strings.HasPrefix(p.BranchID, "reflection-") ||
			p.BranchID != got[1].BranchID || p.Sequence != 3 || p.GoalID == nil {
			k.Errorf("the proposal is %+v", p)
		}
		want := `{"task":"travel","content":"The ferry sails at nine.","types":["fact"],"tags":{},"score":5,"scopes":null,"owner":null,"resource_ids":[],"source_name":"",` +
			`"source_category":"exp","urls":[],"agent_id":"","submitted_by":"","capability_ids":[],"tool_ids":[],"mine":{"x":1}}`
		if string(p.Payload) != want {
			k.Errorf("the payload is\n%s\nwant\n%s", p.Payload, want)
		}
		k.compress()
		k.works()
		if n := k.asked(); n != 0 {
			k.Errorf("%d requests about the same messages", n)
		}
		k.say(chat.RoleUser, "And on Sundays?")
		k.reply(extractions("On Sundays the ferry rests.", "The ferry sails at nine!"))
		k.compress()
		if !strings.Contains(k.model.instruction(), `"The ferry sails at nine."`) {
			k.Errorf("the instruction is\n%s", k.model.instruction())
		}
		if texts := contents(k.pending()); len(texts) != 3 || texts[2] != "On Sundays the ferry rests." {
			k.Errorf("proposed: %q", texts)
		}
	})
}

// Forgotten words are not proposed, and messages that were the only source of them are not shown.
func TestWhatWasForgottenIsNotProposed(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
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
		k.model.answers(func(_ context.Context, p llm.Prompt) (string, error) {
			for _, m := range p.Messages {
				if strings.Contains(m.Text, "at nine") {
					k.Errorf("the model sees %q", m.Text)
				}
			}
			return extractions("The ferry sails at nine."), nil
		})
		k.compress()
		if texts := contents(k.pending()); k.asked() != 1 || len(texts) != 0 {
			k.Errorf("proposed: %q", texts)
		}
	})
}

// forget has the user forget the text of the newest message, not what was said.
func (k *talk) forget() {
	k.Helper()
	k.update(func(tx nodest.Tx) error {
		conv, err := tx.Chats.Conversation(k.chat)
		if err != nil {
			return err
		}
		path, _, err := tx.Chats.Path(k.chat, conv.HeadID, "", 1)
		if err != nil {
			return err
		}
		return tx.Memory.ForgetTexts(k.character, path[0].Chosen().RevisionID)
	})
}

// A text that was forgotten alone is not shown either, and takes its words out of proposals and their edits; nothing comes
// of one that is forgotten while the model writes.
func TestAForgottenTextIsInNoProposal(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		k.forget()
		k.say(chat.RoleUser, "The lamp is green.")
		k.model.answers(func(_ context.Context, p llm.Prompt) (string, error) {
			for _, m := range p.Messages {
				if strings.Contains(m.Text, "at nine") {
					k.Errorf("the model sees %q", m.Text)
				}
			}
			return extractions("The lamp is green.", "Alice has bees."), nil
		})
		k.compress()
		all := k.pending()
		if texts := contents(all); !slices.Equal(texts, []string{"The lamp is green.", "Alice has bees."}) {
			k.Fatalf("proposed: %q", texts)
		}
		_, err := k.svc.ReviewOne(k.Context(), k.call(), side.Review{
			ConversationID: k.chat, ExtractionID: all[0].ExtractionID, Decision: cognition.Edit, EditedPayload: json.RawMessage(`{"content":"A green lamp."}`),
		})
		k.must(err)
		k.say(chat.RoleUser, "The door is red.")
		k.reply(extractions("The door is red."))
		k.compress()
		k.say(chat.RoleUser, "The roof is flat.")
		k.model.answers(func(context.Context, llm.Prompt) (string, error) {
			k.forget()
			return extractions("The roof is flat."), nil
		})
		k.compress()
		if texts := contents(k.pending()); !slices.Equal(texts, []string{"The lamp is green.", "Alice has bees.", "The door is red."}) {
			k.Errorf("behind a text that was forgotten meanwhile: %q", texts)
		}
		k.update(func(tx nodest.Tx) error { return tx.Memory.PurgeScope(k.character) })
		for _, e := range append(k.events(cognition.TypePending), k.events(cognition.TypeReviewed)...) {
			if body := string(e.Body); strings.Contains(body, "lamp") || strings.Contains(body, "bees") || strings.Contains(body, "door") {
				k.Errorf("left: %s", body)
			}
		}
	})
}

// Without the setting nothing is asked; without a model, the messages wait for one.
func TestAReflectionWaitsForItsSettingAndForAModel(t *testing.T) {
	eachTalk(t, `{}`, func(k *talk) {
		k.compress()
		if k.asked() != 0 || len(k.state().Queue) != 0 {
			k.Errorf("asked without the setting; state %+v", k.state())
		}
		k = newTalk(k.T, k.db, k.clock, extracts)
		side.New(k.db.Side(), side.Options{}).BeforeSummary(k.Context(), k.user, k.chat)
		if s := k.state(); s.Reflected != 0 || len(s.Queue) != 0 {
			k.Errorf("without a model: %+v", s)
		}
		k.reply(extractions("The ferry sails at nine."))
		k.compress()
		if k.asked() != 1 || len(k.pending()) != 1 {
			k.Errorf("with a model: %v", k.pending())
		}
	})
}

// Two branches at once ask twice and propose once.
func TestTwoReflectionsAtOnceProposeOnce(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		var both, done sync.WaitGroup
		both.Add(2)
		k.model.answers(func(context.Context, llm.Prompt) (string, error) {
			both.Done()
			both.Wait()
			return extractions("The ferry sails at nine.", "Alice knows the harbour."), nil
		})
		for range 2 {
			done.Go(k.compress)
		}
		done.Wait()
		if texts := contents(k.pending()); len(texts) != 2 || k.asked() != 2 {
			k.Errorf("proposed: %q", texts)
		}
	})
}

// The branches run in their order, within 20 seconds each, and what one of them does stops no other. One that failed is
// made up for by the worker.
func TestBranchesRunInOrderBeforeASummary(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		k.logs(&cognition.Query{Sequence: 2, Query: "ferry", QueryID: "q", Sources: []cognition.Source{{ID: "page", Content: "at nine"}}})
		var order []string
		k.model.answers(func(ctx context.Context, p llm.Prompt) (string, error) {
			end, _ := ctx.Deadline()
			if left := time.Until(end); left <= 0 || left > 20*time.Second {
				k.Errorf("%v are left", left)
			}
			order = append(order, strings.Join(k.state().Queue, " "))
			if strings.Contains(p.Messages[len(p.Messages)-1].Text, "knowledge_save_pending") {
				return "", errors.New("the provider is away")
			}
			return `{"evaluations":[{"query_sequence":2,"assessments":[{"source_id":"page","status":"helpful","reason":"r"}]}]}`, nil
		})
		k.compress()
		if want := []string{"reflection knowledge_eval compression", "reflection knowledge_eval compression"}; !slices.Equal(order, want) {
			k.Errorf("queues: %q", order)
		}
		if e := k.events(cognition.TypeEvaluation); len(e) != 1 || !strings.Contains(string(e[0].Body), `"compression"`) {
			k.Errorf("evaluations: %v", e)
		}
		if s := k.state(); !slices.Equal(s.Queue, []string{"reflection", "compression"}) || s.Reflected != 0 {
			k.Errorf("state: %+v", s)
		}
		k.reply(extractions("The ferry sails at nine."))
		k.look()
		if s := k.state(); len(k.pending()) != 1 || len(s.Queue) != 0 || s.Reflected != 3 {
			k.Errorf("state: %+v", s)
		}
	})
}

// A reply that cannot be read is asked for once more, with the reason.
func TestAReflectionThatCannotBeReadIsAskedForOnceMore(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		k.model.answers(func(_ context.Context, p llm.Prompt) (string, error) {
			if strings.Contains(p.Messages[len(p.Messages)-1].Text, "could not be used") {
				return extractions("The ferry sails at nine."), nil
			}
			return "not json at all", nil
		})
		k.compress()
		if k.asked() != 2 || !slices.Equal(contents(k.pending()), []string{"The ferry sails at nine."}) || k.state().Reflected != 3 {
			k.Errorf("pending %q, state %+v", contents(k.pending()), k.state())
		}
	})
}

// After two replies that cannot be read, the messages stay unread: the next trigger asks again, and nothing else does.
func TestMessagesStayUnreadAfterTwoBadReflections(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		k.reply("I would keep nothing.")
		k.clock.Add(side.Idle)
		k.look()
		if n := k.asked(); n != 2 || len(k.pending()) != 0 || k.state().Reflected != 0 || len(k.state().Queue) != 0 {
			k.Errorf("asked %d times, state %+v", n, k.state())
		}
		k.clock.Add(24 * time.Hour)
		if n := k.works(); n != 0 || k.asked() != 0 {
			k.Errorf("%d jobs without a trigger", n)
		}
		k.reply(extractions("The ferry sails at nine."))
		k.compress()
		if k.asked() != 1 || len(k.pending()) != 1 || k.state().Reflected != 3 {
			k.Errorf("after the next trigger: %+v", k.state())
		}
	})
}

// With automatic commits, the proposals of a branch become memories at its end, and no others do.
func TestAutoCommitKeepsWhatItsBranchProposed(t *testing.T) {
	eachTalk(t, commits, func(k *talk) {
		k.logs(&cognition.ExtractionPending{ExtractionID: "pending-1", BranchID: "reflection-1", Payload: json.RawMessage(`{"content":"The inn is closed."}`)})
		k.reply(extractions("The ferry sails at nine.", "Alice knows the harbour.", "The inn is closed."))
		k.compress()
		want := []string{"The inn is closed. pending", "The ferry sails at nine. committed", "Alice knows the harbour. committed"}
		if got := k.states(); !slices.Equal(got, want) {
			k.Errorf("states: %q", got)
		}
		if got := k.memories(); len(got) != 2 || slices.Contains(got, "The inn is closed.") {
			k.Errorf("memories: %q", got)
		}
		if n := len(k.events(cognition.TypeReviewed)); n != 2 {
			k.Errorf("%d reviews", n)
		}
	})
}

// A commit reaches each approved extraction, however many others wait.
func TestACommitReachesEveryApprovedExtraction(t *testing.T) {
	eachTalk(t, `{}`, func(k *talk) {
		k.update(func(tx nodest.Tx) error {
			var events []*cognition.Event
			for i := range 501 {
				payload := json.RawMessage(fmt.Sprintf(`{"content":"Thing %d."}`, i))
				events = append(events, cognition.New(k.chat, &cognition.ExtractionPending{ExtractionID: fmt.Sprint("pending-", i), Payload: payload}))
			}
			return tx.Cognition.AppendEvents(k.chat, events...)
		})
		k.logs(&cognition.ExtractionReviewed{ExtractionID: "pending-500", Decision: cognition.Approve})
		report, err := k.svc.Commit(k.Context(), k.call(), k.chat)
		k.must(err)
		if len(report.Committed) != 1 || len(report.Skipped) != 500 || !slices.Equal(k.memories(), []string{"Thing 500."}) {
			k.Errorf("committed %v, skipped %d", report.Committed, len(report.Skipped))
		}
	})
}

// When a goal ends, and when the conversation rests, the worker reflects on new messages.
func TestTheWorkerReflectsAtTheEndOfAGoalAndOfATask(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		k.reply(extractions("The ferry sails at nine."))
		k.ends(k.goal("Travel"), cognition.GoalCompleted)
		k.works()
		if k.asked() != 1 || len(k.pending()) != 1 {
			k.Fatalf("at the end of a goal: %v", k.pending())
		}
		k.say(chat.RoleUser, "And on Sundays?")
		k.reply(extractions("On Sundays the ferry rests."))
		k.look()
		if k.asked() != 0 {
			k.Error("the model was asked while the user talks")
		}
		k.clock.Add(side.Idle)
		k.works()
		if k.asked() != 1 || len(k.pending()) != 2 || len(k.state().Queue) != 0 {
			k.Errorf("at rest: %v, %+v", contents(k.pending()), k.state())
		}
		k.clock.Add(side.Idle)
		k.look()
		if k.asked() != 0 {
			k.Error("the model was asked again")
		}
	})
}

// Wherever a reflection with automatic commits is killed, the next run goes on: each proposal is there once, with one memory.
func TestAReflectionThatIsKilledGoesOn(t *testing.T) {
	eachTalk(t, commits, func(first *talk) {
		kills := 0
		for ends := 1; ; ends++ {
			k := newTalk(first.T, first.db, first.clock, commits)
			k.reply(extractions("The ferry sails at nine.", "Alice knows the harbour."))
			life := &storetest.Life{Ends: ends}
			k.service(mortal(k.db, life)).BeforeSummary(k.Context(), k.user, k.chat)
			if !life.Over() {
				break
			}
			kills++
			k.compress()
			if got := k.states(); !slices.Equal(got, []string{"The ferry sails at nine. committed", "Alice knows the harbour. committed"}) || len(k.memories()) != 2 {
				k.Errorf("killed at step %d: %q, %q", ends, got, k.memories())
			}
			k.asked()
			k.compress()
			if n := k.asked(); n != 0 {
				k.Errorf("killed at step %d: %d requests", ends, n)
			}
		}
		if kills < 12 {
			first.Errorf("only %d kills", kills)
		}
		first.Logf("%d kills", kills)
	})
}

// A fork proposes nothing that its source has proposed: only what is said in it is read.
func TestAForkIsReadFromWhereItBegins(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		k.reply(extractions("The ferry sails at nine."))
		k.compress()
		middle := k.say(chat.RoleUser, "And on Sundays?")
		k.say(chat.RoleAssistant, "It rests.")
		k.compress()
		k.asked()
		chats := chat.New(k.db.Chats(), character.New(k.db.Characters(), character.Options{}), chat.Options{Memory: true})
		fork, err := chats.Fork(k.Context(), k.call(), chat.ForkInput{ConversationID: k.chat, MessageID: middle.ID})
		k.must(err)
		k.chat = fork.ID
		k.compress()
		if k.asked() != 0 || k.state().Reflected != middle.Seq {
			k.Errorf("the fork was read again; state %+v", k.state())
		}
		k.say(chat.RoleUser, "And on Mondays?")
		k.compress()
		if k.asked() != 1 {
			k.Error("the new message was not read")
		}
	})
}

// The branch sees new messages beyond the last forty, and nothing of it enters the conversation.
func TestAReflectionSeesAllNewMessagesAndNeverEntersTheConversation(t *testing.T) {
	t.Parallel()
	clock := newClock()
	k := newTalk(t, storetest.OpenWith(t, store.Options{Now: clock.Now}), clock, extracts)
	for i := range 60 {
		k.say(chat.RoleUser, fmt.Sprintf("Note %d.", i))
	}
	var seen int
	k.model.answers(func(_ context.Context, p llm.Prompt) (string, error) {
		seen = len(p.Messages) - 1
		return extractions("The ferry sails at nine."), nil
	})
	k.compress()
	if seen != 63 {
		k.Errorf("it sees %d messages", seen)
	}
	k.say(chat.RoleUser, "再说一遍。")
	k.compress()
	if seen != 40 {
		k.Errorf("the second sees %d messages", seen)
	}
	k.update(func(tx nodest.Tx) error {
		conv, err := tx.Chats.Conversation(k.chat)
		if err != nil {
			return err
		}
		path, err := chat.ShownBranch(tx.Chats, conv)
		if len(path) != 64 {
			k.Errorf("the conversation has %d messages", len(path))
		}
		return err
	})
}
