package extract_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store/storetest"
)

func TestAModelReadsFiveExchanges(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 1)))
		c.exchange("I live in Paris.", "How nice!")
		c.smallTalk(3)
		c.pass(50 * time.Second)
		c.read()
		c.equal("calls before the fifth exchange", len(c.model.prompts), 0)
		c.smallTalk(1)
		c.pass(10 * time.Second)
		done := c.read()
		c.equal("known", c.known(), []string{"User lives in Paris"})
		c.equal("calls", len(c.model.prompts), 1)
		c.equal("unread", c.unread(), 0)
		c.equal("events", c.events.take(), []string{"memory.written added by server"})
		if len(done) == 0 {
			c.Fatal("no job was done")
		}
		p := progress(t, done[len(done)-1])
		c.equal("progress", []any{p["method"], p["exchanges"], p["calls"], p["added"]}, []any{"llm", 5, 1, 1})
		m := c.the("User lives in Paris")
		c.equal("fact", []any{m.Origin, m.Version, m.RootID == m.ID, m.ConversationID == c.chat, len(m.Evidence)}, []any{memory.ByModel, 1, true, true, 1})
	})
}

// After a minute without messages, rules read fewer than five exchanges and leave the
// texts for the model, which reads them after half an hour if enough exchanges allow a
// call.
func TestRulesReadAfterAMinuteAndTheModelAfterHalfAnHour(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 1), statement("Mia plays the violin", "world", "other", 3)))
	c.exchange("I live in Paris.", "How nice!")
	c.exchange("Mia next door plays the violin.", "Me too.")
	c.pass(time.Hour)
	c.read()
	c.equal("known by rules", c.known(), []string{"User lives in Paris"})
	c.equal("origin", c.the("User lives in Paris").Origin, memory.ByRule)
	c.equal("jobs while two exchanges do not pay for a call", len(c.read()), 0)
	c.smallTalk(1)
	c.pass(time.Minute)
	c.read()
	c.equal("calls", len(c.model.prompts), 0)
	c.equal("unread", c.unread(), 6)
	c.pass(28 * time.Minute)
	c.equal("jobs before the half hour is over", len(c.read()), 0)
	c.pass(time.Minute)
	c.read()
	c.equal("known", c.known(), []string{"User lives in Paris", "Mia plays the violin"})
	c.equal("seen", c.the("User lives in Paris").SeenCount, 1)
	c.equal("unread", c.unread(), 0)
	c.pass(24 * time.Hour)
	c.equal("jobs after that", len(c.read()), 0)
}

func TestRulesReadIfThereIsNoModel(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.model = nil
		c.exchange("我住在杭州。", "好地方。")
		c.pass(time.Minute)
		c.read()
		c.equal("known", c.known(), []string{"用户住在杭州"})
		c.equal("unread", c.unread(), 0)
	})
}

func TestTheLastTurnWaitsForItsReply(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.smallTalk(5)
	c.say(lang.RoleUser, "I live in Paris.")
	c.pass(59 * time.Second)
	c.say(lang.RoleUser, "In the old town.")
	c.pass(time.Second)
	c.read()
	c.equal("unread", c.unread(), 2)
	c.equal("prompt holds it", strings.Contains(c.model.prompts[0], "Paris"), false)
	c.say(lang.RoleCharacter, "How nice!")
	c.pass(31 * time.Minute)
	c.read()
	c.equal("unread after the reply", c.unread(), 0)
	c.say(lang.RoleUser, "Are you there?")
	c.pass(31 * time.Minute)
	c.read()
	c.equal("unread at rest", c.unread(), 0)
}

func TestAnExtractionOnRequestReadsAtOnce(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 1)))
	c.say(lang.RoleUser, "I live in Paris.")
	c.readNow()
	c.equal("known", c.known(), []string{"User lives in Paris"})
	c.equal("by", c.the("User lives in Paris").Origin, memory.ByModel)
	c.equal("unread", c.unread(), 0)
	c.readNow()
	c.equal("calls", len(c.model.prompts), 1)
}

// A request to read now is kept, whatever is said before the job starts.
func TestARequestIsKeptWhenMessagesFollow(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 1)))
		c.say(lang.RoleUser, "I live in Paris.")
		c.update(func(tx nodest.Tx) error {
			if err := memory.ExtractNow(tx.Memory, c.chat); err != nil {
				return err
			}
			return memory.TextAdded(tx.Memory, c.character, c.chat)
		})
		c.read()
		c.equal("known", c.known(), []string{"User lives in Paris"})
		c.equal("by", c.the("User lives in Paris").Origin, memory.ByModel)
	})
}

// retryingStore runs every transaction twice.
type retryingStore struct{ memory.Store }

func (s retryingStore) Update(ctx context.Context, userID string, fn func(memory.Tx) error) error {
	lost := errors.New("lost a race")
	err := s.Store.Update(ctx, userID, func(tx memory.Tx) error { return errors.Join(fn(tx), lost) })
	if !errors.Is(err, lost) {
		return err
	}
	return s.Store.Update(ctx, userID, fn)
}

func TestACorrectedFactIsSuperseded(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{true, false} {
		t.Run(fmt.Sprintf("in one run=%v", together), func(t *testing.T) {
			c := newChatter(t, "sqlite")
			c.scene.ExtractEvery = 1
			c.model = nil
			service := c.serviceOn(retryingStore{c.db.Memory()})
			read := func() {
				t.Helper()
				c.pass(time.Minute)
				if err := c.run(service, c.claim()); err != nil {
					t.Fatal(err)
				}
			}
			c.exchange("I live in Lisbon.", "How nice!")
			if !together {
				read()
			}
			c.exchange("I moved to Porto.", "Oh!")
			read()
			all := c.all(memory.Filter{Status: memory.AnyStatus})
			c.equal("versions", len(all), 2)
			porto, lisbon := c.the("User moved to Porto"), c.the("User lives in Lisbon")
			c.equal("old", []any{lisbon.Status, lisbon.SupersededBy, lisbon.Version}, []any{memory.Superseded, porto.ID, 1})
			c.equal("new", []any{porto.Status, porto.RootID, porto.Version}, []any{memory.Active, lisbon.ID, 2})
			c.equal("counting", c.counting(), []string{"User moved to Porto"})
		})
	}
}

func TestDisabledExtractionLeavesTextsUnread(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.scene.Enabled = false
	c.exchange("I live in Paris.", "How nice!")
	c.readNow()
	c.pass(time.Hour)
	c.read()
	c.equal("known", c.known(), []string{})
	c.equal("unread", c.unread(), 2)
	c.equal("open jobs", len(c.open()), 0)
	c.scene.Enabled = true
	c.model = nil
	c.readNow()
	c.equal("known once it is on", c.known(), []string{"User lives in Paris"})
}

// open returns the open jobs of extraction.
func (c *chatter) open() (open []*jobs.Job) {
	c.Helper()
	c.view(func(tx nodest.Tx) (err error) {
		open, _, err = tx.Jobs.Jobs(jobs.Filter{Kind: memory.JobExtract, Open: true}, "", 0)
		return err
	})
	return open
}

func TestFiftyExchangesMakeAtMostTwentyCalls(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	asked := map[bool]int{}
	c.model.facts = func(prompt string) (string, error) {
		asked[false]++
		return facts(statement(fmt.Sprint("User likes tea number ", firstSeq(prompt)), "user", "preference", firstSeq(prompt))), nil
	}
	c.model.decisions = func(string) (string, error) {
		asked[true]++
		return `{"memory":[{"new":0,"event":"ADD"}]}`, nil
	}
	for i := range 50 {
		c.exchange(fmt.Sprintf("I like tea number %d.", 2*i+1), strings.Repeat("A long story. ", 300))
		c.pass(20 * time.Second)
		c.read()
	}
	c.pass(time.Hour)
	c.read()
	if n := len(c.model.prompts); n > 20 {
		t.Errorf("%d calls for 50 exchanges", n)
	}
	c.equal("unread", c.unread(), 0)
	if asked[false] < 8 || asked[true] < 7 {
		t.Errorf("the model was asked %v", asked)
	}
}

// firstSeq is the seq of the first message that a prompt lets the model cite.
func firstSeq(prompt string) (seq int64) {
	_, rest, _ := strings.Cut(prompt, `{"seq":`)
	if _, err := fmt.Sscan(strings.Split(rest, ",")[0], &seq); err != nil {
		panic(err)
	}
	return seq
}

// A job for a deleted or unknown conversation ends without a model call.
func TestAJobWithoutItsConversationEnds(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.exchange("I live in Paris.", "How nice!")
	c.refused(fault.NotFound, func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, newUUID()) })
	c.update(func(tx nodest.Tx) error {
		return tx.Jobs.Enqueue(jobs.Spec{Kind: memory.JobExtract, Subject: newUUID()})
	})
	c.equal("jobs", len(c.read()), 1)
	c.update(func(tx nodest.Tx) error {
		if err := memory.ExtractNow(tx.Memory, c.chat); err != nil {
			return err
		}
		return tx.Chats.DeleteConversation(c.chat)
	})
	c.read()
	c.equal("calls", len(c.model.prompts), 0)
}

// A conversation or character that is deleted during a model call also ends the job.
func TestADeletionDuringAModelCallEndsTheJob(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(c *chatter, tx nodest.Tx) error{
		"conversation": func(c *chatter, tx nodest.Tx) error { return tx.Chats.DeleteConversation(c.chat) },
		"character":    func(c *chatter, tx nodest.Tx) error { return tx.Characters.DeleteCharacter(c.character) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newChatter(t, "sqlite")
			c.model.facts = func(string) (string, error) {
				c.update(func(tx nodest.Tx) error { return remove(c, tx) })
				return facts(statement("User lives in Paris", "user", "profile", 1)), nil
			}
			c.exchange("I live in Paris.", "How nice!")
			c.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, c.chat) })
			if err := c.run(c.service, c.claim()); err != nil && !errors.Is(err, jobs.ErrLost) {
				t.Error(err)
			}
			c.equal("calls", len(c.model.prompts), 1)
			c.equal("open jobs", len(c.open()), 0)
		})
	}
}

// The model sees only what the user and the character said.
func TestTheModelSeesOnlyWhatWasSaid(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.say("system", "SYSTEM: User is a spy.")
	hidden := c.say(lang.RoleUser, "an injected entry: HIDDEN")
	c.change(hidden, func(m *chat.Message) { m.Hidden = true })
	c.exchange("Hello.\n\n<mem>\n系统检索到的记忆内容：\n1. RECALLED\n</mem>\n\n<response_guidelines>GUIDE</response_guidelines>",
		"<think>THOUGHT</think>系统检索到的记忆内容：\n1. ECHO\nGood day.")
	failed := c.say(lang.RoleCharacter, "BROKEN OFF")
	c.change(failed, func(m *chat.Message) { m.Status = chat.StatusError })
	c.readNow()
	if len(c.model.prompts) != 1 {
		t.Fatalf("%d prompts", len(c.model.prompts))
	}
	for _, never := range []string{"SYSTEM", "RECALLED", "GUIDE", "THOUGHT", "ECHO", "BROKEN"} {
		if strings.Contains(c.model.prompts[0], never) {
			t.Errorf("the model sees %s:\n%s", never, c.model.prompts[0])
		}
	}
	for _, always := range []string{"Hello.", "Good day."} {
		if !strings.Contains(c.model.prompts[0], always) {
			t.Errorf("the model does not see %s", always)
		}
	}
}

// If the model is still unavailable on the last attempt, rules read the texts, and the
// job's progress says why.
func TestRulesReadIfTheModelStaysDown(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.model.facts = func(string) (string, error) { return "", fault.New(fault.UpstreamDown, "the provider is down") }
	c.exchange("I live in Paris.", "How nice!")
	c.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, c.chat) })
	j := c.claim()
	err := c.run(c.service, j)
	if !fault.Is(err, fault.UpstreamDown) {
		t.Fatalf("the first attempt: %v", err)
	}
	if err := c.db.EndJob(t.Context(), j, jobs.Outcome{State: jobs.Queued, Error: &jobs.Failure{Code: fault.UpstreamDown, Message: "down"}}); err != nil {
		t.Fatal(err)
	}
	done := c.read()
	c.equal("known", c.known(), []string{"User lives in Paris"})
	p := progress(t, done[0])
	c.equal("progress", []any{p["method"], p["calls"], p["notes"]}, []any{"rule", 1, "[candidates: ask the model: upstream_unavailable: the provider is down]"})
	c.equal("unread", c.unread(), 0)
}

// If the database fails or the process dies at any step, nothing is stored partly, and
// the next attempt writes everything once.
func TestACrashLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 1), statement("User loves coffee", "user", "preference", 1)))
		c.exchange("I live in Paris. I love coffee.", "How nice!")
		c.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, c.chat) })
		crash := errors.New("the process died")
		for _, step := range []string{"InsertFacts", "MarkRead", "FinishJob"} {
			j := c.claim()
			if err := c.run(c.serviceOn(failingStore{c.db.Memory(), step, crash}), j); !errors.Is(err, crash) {
				c.Fatalf("%s: %v", step, err)
			}
			c.equal("known after a crash in "+step, c.known(), []string{})
			c.equal("unread", c.unread(), 2)
			c.pass(2 * time.Minute) // the lease has expired
			if err := c.db.RecoverJobs(context.Background(), map[string]int{memory.JobExtract: 5}, ""); err != nil {
				c.Fatal(err)
			}
		}
		c.read()
		c.equal("known", c.known(), []string{"User lives in Paris", "User loves coffee"})
		c.equal("unread", c.unread(), 0)
		c.equal("events", c.events.take(), []string{"memory.written added by server"})
	})
}

// An attempt that lost its job writes nothing, even if its model answers late.
func TestALostJobWritesNothing(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 1)))
		c.exchange("I live in Paris.", "How nice!")
		c.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, c.chat) })
		lost := c.claim()
		c.pass(2 * time.Minute)
		if err := c.db.RecoverJobs(context.Background(), map[string]int{memory.JobExtract: 5}, ""); err != nil {
			c.Fatal(err)
		}
		j := c.claim()
		if err := c.run(c.service, lost); !errors.Is(err, jobs.ErrLost) {
			c.Errorf("the lost attempt: %v", err)
		}
		c.equal("known", c.known(), []string{})
		if err := c.run(c.service, j); err != nil {
			c.Fatal(err)
		}
		c.equal("known", c.known(), []string{"User lives in Paris"})
	})
}

// failingStore is a store whose transactions fail at a step.
type failingStore struct {
	memory.Store
	step string
	err  error
}

func (d failingStore) Update(ctx context.Context, userID string, fn func(memory.Tx) error) error {
	return d.Store.Update(ctx, userID, func(tx memory.Tx) error {
		tx.FactTx, tx.TextTx, tx.Jobs = failingFacts{tx.FactTx, d}, failingTexts{tx.TextTx, d}, failingJobs{tx.Jobs, d}
		return fn(tx)
	})
}

func (d failingStore) fails(step string, do func() error) error {
	if err := do(); err != nil || d.step != step {
		return err
	}
	return d.err
}

type failingFacts struct {
	memory.FactTx
	failingStore
}

func (t failingFacts) InsertFacts(characterID string, facts ...*memory.Memory) error {
	return t.fails("InsertFacts", func() error { return t.FactTx.InsertFacts(characterID, facts...) })
}

type failingTexts struct {
	memory.TextTx
	failingStore
}

func (t failingTexts) MarkRead(conversationID string, ids ...string) error {
	return t.fails("MarkRead", func() error { return t.TextTx.MarkRead(conversationID, ids...) })
}

type failingJobs struct {
	jobs.Tx
	failingStore
}

func (t failingJobs) FinishJob(j *jobs.Job) error {
	return t.fails("FinishJob", func() error { return t.Tx.FinishJob(j) })
}

// Texts that change during a model call are read again in their new form.
func TestChangesDuringAModelCallAreReadAgain(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	said, _ := c.exchange("I live in Paris.", "How nice!")
	c.model.facts = func(prompt string) (string, error) {
		if strings.Contains(prompt, "Paris") {
			c.edit(said, "I live in Rome.")
			return facts(statement("User lives in Paris", "user", "profile", 1)), nil
		}
		return facts(statement("User lives in Rome", "user", "profile", 1)), nil
	}
	c.readNow()
	c.equal("known", c.known(), []string{"User lives in Rome"})

	c.model.facts = func(string) (string, error) { // the user writes it meanwhile
		c.update(func(tx nodest.Tx) error {
			_, err := storetest.Memory(tx.Memory).Create(context.Background(), &op.Call{Device: "phone"}, c.character, memory.Draft{Text: "User has a cat"})
			return err
		})
		return facts(statement("User has a cat", "user", "profile", 3)), nil
	}
	c.exchange("I have a cat.", "Oh!")
	c.readNow()
	c.equal("known", c.known(), []string{"User lives in Rome", "User has a cat"})
	m := c.the("User has a cat")
	c.equal("the user's own fact is only counted again", []any{m.Origin, m.SeenCount}, []any{memory.ByUser, 2})
}

// Facts are dated by their messages, in the user's time zone, not by the time of the
// run.
func TestAFactIsAsOldAsItsMessage(t *testing.T) {
	t.Parallel()
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	onBothDatabases(t, func(c *chatter) {
		c.scene.Zone = tokyo
		c.clock.Store(time.Date(2023, 5, 10, 16, 0, 0, 0, time.UTC).UnixMilli()) // May 11th in Tokyo
		c.model.facts = says(facts(
			statement("User lives in Paris", "user", "profile", 1), statement("User went to the opera yesterday", "user", "event", 3),
		))
		said, _ := c.exchange("I live in Paris.", "How nice!")
		c.exchange("I went to the opera yesterday.", "Tell me more.")
		c.pass(400 * 24 * time.Hour)
		c.readNow()
		home, opera := c.the("User lives in Paris"), c.the("User went to the opera on 2023-05-10")
		c.equal("said", home.LastSeenAt.Equal(said.CreatedAt), true)
		c.equal("learned", home.CreatedAt.After(said.CreatedAt.AddDate(1, 0, 0)), true)
		c.equal("yesterday in Tokyo", opera.EventTime.Format(time.DateTime), "2023-05-10 00:00:00")
		c.equal("prompt", strings.Contains(c.model.prompts[0], `"at":"2023-05-11 01:00 Thu"`), true)
		c.scene.Recall, c.scene.Share, c.scene.Limit = true, true, 10
		dates := map[string]string{"Where does the user live, Paris?": "(2023-05-11)", "opera": "on 2023-05-10"}
		for question, date := range dates {
			hits, err := c.remembering().Recall(context.Background(), c.user, memory.Ask{CharacterID: c.character}, recall.Query{Text: question, Now: time.UnixMilli(c.clock.Load()), Only: recall.Filter{Layers: []recall.Layer{recall.Fact}}})
			if err != nil || len(hits) == 0 || !strings.HasSuffix(memory.LineOf(&hits[0], c.scene.Names), date) {
				c.Errorf("%s: %+v, %v; want %s", question, hits, err, date)
			}
		}

		// A repeated fact is as recent as its last message.
		c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 5)))
		again, _ := c.exchange("I live in Paris.", "I know.")
		c.pass(time.Hour)
		c.readNow()
		c.equal("said again", c.the("User lives in Paris").LastSeenAt.Equal(again.CreatedAt), true)
	})
}

// A change that the user accepts later is dated by its message.
func TestAnAcceptedSuggestionIsAsOldAsItsMessage(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.model = nil
	c.exchange("I live in Paris.", "How nice!")
	c.readNow()
	m, pin := c.the("User lives in Paris"), true
	c.update(func(tx nodest.Tx) error {
		_, err := storetest.Memory(tx.Memory).Edit(context.Background(), &op.Call{Device: "test"}, c.character, m.ID, memory.Patch{Pinned: &pin})
		return err
	})
	moved, _ := c.exchange("I moved to Rome.", "Oh.")
	c.readNow()
	c.pass(48 * time.Hour)
	c.update(func(tx nodest.Tx) error {
		open, _, err := tx.Memory.Suggestions(c.character, memory.SuggestionOpen, "", 10)
		if err != nil || len(open) != 1 {
			return fmt.Errorf("suggestions: %+v, %w", open, err)
		}
		_, err = storetest.Memory(tx.Memory).Decide(context.Background(), &op.Call{Device: "test"}, c.character, open[0].ID, memory.AcceptSuggestion)
		return err
	})
	c.equal("said", c.the("User moved to Rome").LastSeenAt.Equal(moved.CreatedAt), true)
}
