package extract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest"
)

// reading returns how many exchanges and calls were counted for the chat.
func (c *chatter) reading() (r memory.Reading) {
	c.Helper()
	c.view(func(tx nodest.Tx) (err error) {
		r, err = tx.Memory.Reading(c.chat)
		return err
	})
	return r
}

// down is an unavailable model.
func down(string) (string, error) { return "", fault.New(fault.UpstreamDown, "the provider is down") }

// retry ends a failed attempt, so that the job is due again.
func (c *chatter) retry(j *jobs.Job) {
	c.Helper()
	o := jobs.Outcome{State: jobs.Queued, Error: &jobs.Failure{Code: fault.UpstreamDown, Message: "down"}}
	if err := c.db.EndJob(context.Background(), j, o); err != nil {
		c.Fatal(err)
	}
}

func TestASlowChatKeepsToItsAllowance(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	said := []string{"I love quinces.", "I love zithers.", "I love badgers.", "I love wolfram.", "I love kayaks."}
	c.model.facts = func(prompt string) (string, error) { return factsFor(prompt), nil }
	var calls []int
	for i := range 10 {
		c.exchange(said[i%5], "I see.")
		c.pass(time.Hour)
		c.read()
		calls = append(calls, len(c.model.prompts))
	}
	c.equal("calls after each exchange", calls, []int{0, 0, 1, 1, 2, 2, 2, 3, 3, 4})
	c.equal("known", c.known(), []string{"User loves quinces", "User loves zithers", "User loves badgers", "User loves wolfram", "User loves kayaks"})
	c.equal("jobs that wait", len(c.open()), 0)
}

// A failed call counts. It is repeated only if five exchanges allow a second call.
func TestAFailedCallCounts(t *testing.T) {
	t.Parallel()
	for exchanges, attempts := range map[int]int{3: 1, 5: 2} {
		t.Run(fmt.Sprint(exchanges, " exchanges"), func(t *testing.T) {
			c := newChatter(t, "sqlite")
			c.model.facts = down
			c.exchange("I live in Paris.", "How nice!")
			c.smallTalk(exchanges - 1)
			c.pass(time.Hour)
			for n := 1; n <= attempts; n++ {
				j := c.claim()
				c.equal("attempt", j.Attempt, n)
				if err := c.run(c.service, j); err != nil {
					c.equal("last attempt", n == attempts, false)
					c.retry(j)
				}
			}
			c.equal("calls", len(c.model.prompts), attempts)
			c.equal("known", c.known(), []string{"User lives in Paris"})
			c.equal("unread", c.unread(), 0)
			c.equal("cost", c.reading(), memory.Reading{Exchanges: exchanges, Calls: attempts})
		})
	}
}

// An unusable answer is not requested again if the allowance is used up; rules read
// the texts instead.
func TestRulesReadAfterAnUnusableAnswer(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.model.facts = says("I am sorry.")
	c.exchange("I live in Paris.", "How nice!")
	c.smallTalk(2)
	c.pass(time.Hour)
	done := c.read()
	c.equal("calls", len(c.model.prompts), 1)
	c.equal("known", c.known(), []string{"User lives in Paris"})
	p := progress(t, done[0])
	c.equal("progress", []any{p["method"], p["calls"]}, []any{"rule", 1})
	if notes := fmt.Sprint(p["notes"]); !strings.Contains(notes, "candidates") {
		t.Errorf("the notes are %s", notes)
	}
}

// An empty answer is requested once more, not by the job as well; then rules read the
// texts.
func TestAnEmptyAnswerIsRequestedOnceMore(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.model.facts = func(string) (string, error) { return "", fault.New(fault.EmptyReply, "nothing") }
		c.exchange("I live in Paris.", "How nice!")
		c.smallTalk(4)
		c.pass(time.Minute)
		c.equal("jobs", len(c.read()), 1)
		c.equal("calls", len(c.model.prompts), 2)
		c.equal("known", c.known(), []string{"User lives in Paris"})
		c.equal("unread", c.unread(), 0)
		c.equal("cost", c.reading(), memory.Reading{Exchanges: 5, Calls: 2})
	})
}

// The second request explains the error in the language of the first.
func TestARepairIsInTheLanguageOfThePrompt(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{"I live in Paris.": false, strings.Repeat("我住在巴黎。", 50): true} {
		c := newChatter(t, "sqlite")
		c.model.facts = says(`{"facts":["a string"]}`)
		c.exchange(said, said)
		c.smallTalk(4)
		c.pass(time.Hour)
		c.read()
		c.equal("calls", len(c.model.prompts), 2)
		repair := strings.TrimPrefix(c.model.prompts[1], c.model.prompts[0])
		if repair == "" || !strings.Contains(repair, "seqs") || strings.Contains(repair, "上一次") != want || strings.Contains(repair, "last answer") == want {
			t.Errorf("behind a prompt about %q stands %q", said, repair)
		}
	}
}

// Exchanges too large for one window do not allow more calls; rules read the rest.
func TestLargeExchangesDoNotAllowMoreCalls(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	for range 5 {
		c.say(lang.RoleUser, "Tell me a story.")
		for range 20 {
			c.say(lang.RoleCharacter, strings.Repeat("Once upon a time. ", 160))
		}
	}
	c.pass(time.Minute)
	c.read()
	c.equal("calls", len(c.model.prompts), 2)
	c.equal("unread", c.unread(), 0)
}

// A requested extraction does not use up the allowance, and calls the model once
// without needing one.
func TestARequestIsFreeOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 1)))
		c.exchange("I live in Paris.", "How nice!")
		c.readNow()
		c.equal("calls", len(c.model.prompts), 1)
		c.equal("cost", c.reading(), memory.Reading{})
		c.smallTalk(1)
		c.pass(time.Hour)
		c.read()
		c.equal("calls of their own", len(c.model.prompts), 1)
		c.update(func(tx nodest.Tx) error { return memory.ExtractFirst(tx.Memory, c.chat) })
		c.read()
		c.equal("calls before a summary", len(c.model.prompts), 1)
		c.equal("unread", c.unread(), 2)
		c.smallTalk(2)
		c.update(func(tx nodest.Tx) error { return memory.ExtractFirst(tx.Memory, c.chat) })
		c.read()
		c.equal("calls that are paid for", len(c.model.prompts), 2)
		c.equal("cost", c.reading(), memory.Reading{Exchanges: 3, Calls: 1})
	})
}

// A request during a run is carried out right after it, whatever is said meanwhile.
func TestARequestDuringARunFollowsIt(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.smallTalk(5)
		c.pass(time.Minute)
		c.model.facts = func(string) (string, error) {
			c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 11)))
			c.exchange("I live in Paris.", "How nice!")
			c.update(func(tx nodest.Tx) error {
				if err := memory.ExtractNow(tx.Memory, c.chat); err != nil {
					return err
				}
				return memory.TextAdded(tx.Memory, c.character, c.chat)
			})
			return facts(), nil
		}
		c.equal("jobs", len(c.read()), 2)
		c.equal("known", c.known(), []string{"User lives in Paris"})
		c.equal("by", c.the("User lives in Paris").Origin, memory.ByModel)
		c.equal("cost", c.reading(), memory.Reading{Exchanges: 5, Calls: 1})
	})
}

// A request during a requested run is carried out too; what is said later waits for
// the allowance.
func TestARequestDuringARequestedRunIsCarriedOut(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.smallTalk(1)
		c.model.facts = func(string) (string, error) {
			c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 3)))
			c.exchange("I live in Paris.", "How nice!")
			c.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, c.chat) })
			c.exchange("I have a cat.", "How nice!")
			return facts(), nil
		}
		c.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, c.chat) })
		c.read()
		c.equal("by", c.the("User lives in Paris").Origin, memory.ByModel)
		c.equal("cost", c.reading(), memory.Reading{})
		calls := len(c.model.prompts)
		c.exchange("Hm.", "Yes?")
		c.pass(time.Hour)
		c.read()
		c.equal("calls for one exchange more", len(c.model.prompts), calls)
	})
}

// A request stays open if attempts fail after new messages, or if the job fails for
// good.
func TestARequestStaysOpenUntilItIsDone(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		c.exchange("I live in Paris.", "How nice!")
		c.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, c.chat) })
		c.model.facts = func(prompt string) (string, error) {
			c.update(func(tx nodest.Tx) error { return memory.TextAdded(tx.Memory, c.character, c.chat) })
			return down(prompt)
		}
		for _, end := range []jobs.State{jobs.Queued, jobs.Failed} {
			j := c.claim()
			crash := errors.New("the process died")
			if err := c.run(c.serviceOn(failingStore{c.db.Memory(), "MarkRead", crash}), j); err == nil {
				c.Fatal("the attempt has not failed")
			}
			if err := c.db.EndJob(context.Background(), j, jobs.Outcome{State: end}); err != nil {
				c.Fatal(err)
			}
		}
		c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 1)))
		c.pass(time.Minute)
		c.read()
		c.equal("known", c.known(), []string{"User lives in Paris"})
		c.equal("by", c.the("User lives in Paris").Origin, memory.ByModel)
		c.equal("cost", c.reading(), memory.Reading{})
	})
}

// A request whose job always fails makes a bounded number of calls.
func TestAFailingRequestMakesABoundedNumberOfCalls(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	crash := errors.New("the disk is full")
	c.exchange("I live in Paris.", "How nice!")
	c.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, c.chat) })
	for j := c.claim(); j != nil; j = c.claim() {
		if err := c.run(c.serviceOn(failingStore{c.db.Memory(), "MarkRead", crash}), j); err != nil {
			c.retry(j)
		}
	}
	c.equal("calls", len(c.model.prompts), 4)
	c.pass(time.Minute)
	c.read()
	c.equal("calls", len(c.model.prompts), 4)
	c.equal("known by rules", c.known(), []string{"User lives in Paris"})
	c.equal("unread", c.unread(), 2)
	c.equal("cost", c.reading(), memory.Reading{})
	c.equal("jobs that wait", len(c.open()), 0)
}

// randomChat is a chat with random events at random times.
type randomChat struct {
	*chatter
	*rand.Rand
	users    []*chat.Message // the user's messages
	words    []string        // subjects of the messages
	said     int             // texts of the user, including edited ones
	calls    int
	crashing bool // attempts may die, and the model may fail
}

func TestNeverMoreThanTwoCallsForFiveExchanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			database := "sqlite"
			if seed == 0 {
				database = "postgres"
			}
			r := &randomChat{chatter: newChatter(t, database), Rand: rand.New(rand.NewPCG(seed, 7)), crashing: true}
			r.scene.ExtractEvery = 1 + r.IntN(7)
			r.model.facts = func(prompt string) (string, error) { return r.answer(factsFor(prompt)) }
			r.model.decisions = func(string) (string, error) { return r.answer(`{"memory":[]}`) }
			for range 60 {
				r.step()
				pauses := []time.Duration{0, 5 * time.Second, 90 * time.Second, 10 * time.Minute, 40 * time.Minute, 3 * time.Hour}
				r.pass(pauses[r.IntN(len(pauses))])
				r.work()
			}
			r.crashing = false
			for range 4 {
				r.pass(time.Hour)
				r.work()
			}
			r.equal("jobs that wait", len(r.open()), 0)
			r.allRead()
			if r.calls < r.said/10 {
				t.Errorf("only %d calls for %d exchanges", r.calls, r.said)
			}
			if state := r.reading(); state.Calls < r.calls || 5*state.Calls > 2*r.said {
				t.Errorf("%d calls were made; counted are %+v", r.calls, state)
			}
		})
	}
}

// answer returns the model's answer, and checks that the call was allowed.
func (r *randomChat) answer(text string) (string, error) {
	if state := r.reading(); state.Ordered == 0 {
		r.calls++
	}
	if 5*r.calls > 2*r.said {
		r.Errorf("%d calls for %d exchanges", r.calls, r.said)
	}
	if r.crashing {
		switch r.IntN(12) {
		case 0:
			return down("")
		case 1:
			return "I am sorry.", nil
		case 2:
			return `{"facts":["loves tea"],"memory":["loves tea"]}`, nil
		case 3:
			return strings.ReplaceAll(text, "User loves", "用户很喜欢喝"), nil
		case 4:
			return "", fault.New(fault.EmptyReply, "nothing")
		}
	}
	return text, nil
}

// factsFor answers a prompt as a perfect model would.
func factsFor(prompt string) string {
	var found []string
	for line := range strings.Lines(prompt) {
		var m struct {
			Seq  int64
			Text string
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Seq > 0 && strings.HasPrefix(m.Text, "I love ") {
			found = append(found, statement("User loves"+strings.TrimSuffix(strings.TrimPrefix(m.Text, "I love"), "."), "user", "preference", m.Seq))
		}
	}
	return facts(found...)
}

// word returns a word that was not used before.
func (r *randomChat) word() string {
	letters := make([]byte, 9)
	for i := range letters {
		letters[i] = "aeioubdfgklmnprtvz"[(i%2)*5+r.IntN(5+(i%2)*8)]
	}
	return string(letters)
}

func (r *randomChat) step() {
	r.Helper()
	word := r.word()
	switch n := r.IntN(20); {
	case n < 3 && len(r.users) > 0: // an edit
		at := r.IntN(len(r.users))
		r.said++
		r.words[at] = word
		r.edit(r.users[at], "I love "+word+".")
	case n == 3:
		r.update(func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, r.chat) })
	case n == 4:
		r.update(func(tx nodest.Tx) error { return memory.ExtractFirst(tx.Memory, r.chat) })
	default:
		r.said++
		r.words = append(r.words, word)
		r.users = append(r.users, r.say(lang.RoleUser, "I love "+word+"."))
		replies, reply := 1, "I see."
		switch n {
		case 5:
			replies = 0
		case 6:
			replies, reply = 20, strings.Repeat("Once upon a time. ", 160)
		}
		for range replies {
			r.say(lang.RoleCharacter, reply)
		}
	}
}

// work does the due jobs, as a runner whose process sometimes dies.
func (r *randomChat) work() {
	r.Helper()
	crash := errors.New("the process died")
	for j := r.claim(); j != nil; j = r.claim() {
		service := r.service
		if r.crashing && r.IntN(6) == 0 {
			service = r.serviceOn(failingStore{r.db.Memory(), "MarkRead", crash})
		}
		err := r.run(service, j)
		switch {
		case errors.Is(err, crash):
			r.pass(2 * time.Minute)
			if err := r.db.RecoverJobs(context.Background(), map[string]int{memory.JobExtract: 5}, ""); err != nil {
				r.Fatal(err)
			}
		case fault.Is(err, fault.UpstreamDown):
			r.retry(j)
		case err != nil:
			r.Fatal(err)
		}
	}
}

// allRead checks that a model or rules have read every message.
func (r *randomChat) allRead() {
	r.Helper()
	var known []string
	for _, m := range r.all(memory.Filter{Status: memory.AnyStatus}) {
		known = append(known, m.Text)
	}
	for _, s := range r.suggestions() {
		known = append(known, s.Text)
	}
	for _, word := range r.words {
		if !slices.Contains(known, "User loves "+word) {
			r.Errorf("%q was never read", word)
		}
	}
}
