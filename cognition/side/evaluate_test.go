package side_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodest/chat"
	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/llm"
	"nodest/store"
	"nodest/store/storetest"
)

// eachDesk runs a test on both databases.
func eachDesk(t *testing.T, test func(d *desk)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) { test(newDesk(t, open)) })
}

// The first trigger: a goal is completed or abandoned.
func TestTheEndOfAGoalHasQueriesEvaluated(t *testing.T) {
	eachDesk(t, func(d *desk) {
		first, second := d.goal("Find the light."), d.goal("Find the inn.")
		q := d.looksUp("Who kept the light?", "halden.test", "other.test")
		d.ends(first, cognition.GoalCompleted)
		if s := d.state(); !s.PendingEval || s.EvalTrigger != cognition.GoalCompletion {
			d.Errorf("the state is %+v", s)
		}
		if d.works(); d.state().PendingEval || len(d.state().Queue) != 0 {
			d.Errorf("the state is %+v", d.state())
		}
		want := []string{helpful(q, "halden.test", cognition.GoalCompletion), helpful(q, "other.test", cognition.GoalCompletion)}
		d.wantEvaluations(want...)
		if n := d.votes("halden.test", "other.test"); n != 2 {
			d.Errorf("%d votes", n)
		}
		next := d.looksUp("Where is the inn?", "inn.test")
		d.ends(second, cognition.GoalAbandoned)
		d.works()
		d.wantEvaluations(append(want, helpful(next, "inn.test", cognition.GoalCompletion))...)
		if strings.Contains(d.model.instruction(), "Who kept the light?") {
			d.Errorf("asked again about what is evaluated:\n%s", d.model.instruction())
		}
	})
}

// A change that ends no goal, and an end with nothing to evaluate, set nothing off.
func TestOnlyTheEndOfAGoalCounts(t *testing.T) {
	eachDesk(t, func(d *desk) {
		goal := d.goal("Find the light.")
		d.ends(goal, cognition.GoalAbandoned)
		d.ends(goal, cognition.GoalActive)
		d.looksUp("Who kept the light?", "halden.test")
		d.ends(goal, cognition.GoalPending)
		if n := d.works(); n != 0 || d.state().PendingEval || d.model.calls() != 0 {
			d.Errorf("%d jobs, %+v, %d calls", n, d.state(), d.model.calls())
		}
	})
}

// The third trigger: the conversation rests. Every message puts the rest off.
func TestAConversationThatRestsIsEvaluated(t *testing.T) {
	eachDesk(t, func(d *desk) {
		q := d.looksUp("Who kept the light?", "halden.test")
		d.clock.Add(side.Idle - time.Minute)
		d.say(chat.RoleUser, "And then?")
		d.clock.Add(2 * time.Minute)
		if n := d.works(); n != 1 || d.model.calls() != 0 {
			d.Errorf("%d jobs, %d calls while it goes on", n, d.model.calls())
		}
		d.clock.Add(side.Idle)
		d.works()
		d.wantEvaluations(helpful(q, "halden.test", cognition.TaskCompletion))
		d.clock.Add(side.Idle)
		if n := d.works(); n != 0 || d.model.calls() != 1 {
			d.Errorf("%d more jobs, %d calls", n, d.model.calls())
		}
	})
}

// The second trigger: what waits is evaluated before messages are summarised.
func TestASummaryWaitsForTheEvaluation(t *testing.T) {
	eachDesk(t, func(d *desk) {
		d.svc.BeforeSummary(d.Context(), d.user, d.chat)
		if d.model.calls() != 0 {
			d.Error("the model was asked about nothing")
		}
		q := d.looksUp("Who kept the light?", "halden.test")
		d.svc.BeforeSummary(d.Context(), d.user, d.chat)
		d.wantEvaluations(helpful(q, "halden.test", cognition.Compression))
		d.svc.BeforeSummary(d.Context(), d.user, d.chat)
		d.clock.Add(time.Hour)
		if d.works(); d.model.calls() != 1 {
			d.Errorf("%d calls", d.model.calls())
		}
	})
}

// A model that hangs holds a summary up for 20 seconds. The branch stays in the queue, and runs later.
func TestASummaryWaits20SecondsAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, storetest.OpenWith)
		q := d.looksUp("Who kept the light?", "halden.test")
		d.model.answers(func(ctx context.Context, _ llm.Prompt) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		start := time.Now()
		d.svc.BeforeSummary(t.Context(), d.user, d.chat)
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("it waited %v", took)
		}
		d.model.answers(nil)
		d.clock.Add(20 * time.Second)
		d.works()
		d.wantEvaluations(helpful(q, "halden.test", cognition.Compression))
	})
}

func TestASummaryGoesOnWhenTheModelFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.OpenWith)
	q := d.looksUp("Who kept the light?", "halden.test")
	d.model.answers(func(context.Context, llm.Prompt) (string, error) { return "", errors.New("it is overloaded") })
	d.svc.BeforeSummary(t.Context(), d.user, d.chat)
	d.wantEvaluations()
	d.model.answers(nil)
	d.clock.Add(time.Minute)
	d.works()
	d.wantEvaluations(helpful(q, "halden.test", cognition.Compression))
}

// Later than a day after its use nobody remembers whether a source helped.
func TestOnlyQueriesOfTheLast24HoursAreEvaluated(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.OpenWith)
	d.looksUp("Who kept the light?", "halden.test")
	d.clock.Add(time.Minute)
	q := d.looksUp("Where is the inn?", "inn.test")
	d.clock.Add(24*time.Hour - time.Second)
	d.works()
	d.wantEvaluations(helpful(q, "inn.test", cognition.TaskCompletion))
	d.clock.Add(side.Idle)
	if d.works(); d.model.calls() != 1 {
		t.Errorf("%d calls", d.model.calls())
	}
}

// The worker and a summary may ask at the same time: each evaluation is stored once, with what set it off.
func TestTwoRunsAtOnceStoreEachEvaluationOnce(t *testing.T) {
	eachDesk(t, func(d *desk) {
		goal := d.goal("Find the light.")
		one, two := d.looksUp("Who kept the light?", "halden.test", "other.test"), d.looksUp("Where is the inn?", "inn.test")
		d.ends(goal, cognition.GoalCompleted)
		var both sync.WaitGroup
		both.Add(2)
		d.model.answers(func(_ context.Context, p llm.Prompt) (string, error) {
			both.Done()
			both.Wait() // until the other one has asked, too
			return allHelpful(p), nil
		})
		job := d.claim()
		done := make(chan error)
		go func() { done <- d.svc.Kinds()[0].Run(d.Context(), job) }()
		d.svc.BeforeSummary(d.Context(), d.user, d.chat)
		d.must(<-done)
		got := d.evaluations()
		if len(got) != 3 || d.votes("halden.test", "other.test", "inn.test") != 3 {
			d.Fatalf("evaluations: %q, %d votes", got, d.votes("halden.test", "other.test", "inn.test"))
		}
		trigger := strings.Fields(got[0])[2]
		d.wantEvaluations(helpful(one, "halden.test", trigger), helpful(one, "other.test", trigger), helpful(two, "inn.test", trigger))
		d.clock.Add(time.Hour)
		if d.works(); d.model.calls() != 2 || len(d.state().Queue) != 0 {
			d.Errorf("%d calls, %+v", d.model.calls(), d.state())
		}
	})
}

// A run that is slower than another one says of the rest what has set it off.
func TestASlowRunKeepsItsTrigger(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.OpenWith)
	goal := d.goal("Find the light.")
	one, two := d.looksUp("Who kept the light?", "halden.test"), d.looksUp("Where is the inn?", "inn.test")
	d.ends(goal, cognition.GoalCompleted)
	d.model.answers(func(_ context.Context, p llm.Prompt) (string, error) {
		d.model.answers(func(_ context.Context, p llm.Prompt) (string, error) { // the quick one overlooks a query
			p.Messages[len(p.Messages)-1].Text = strings.ReplaceAll(p.Messages[len(p.Messages)-1].Text, "Where is the inn?", "")
			reply, _, _ := strings.Cut(allHelpful(p), `,{"query_sequence"`)
			return reply + "]}", nil
		})
		d.svc.BeforeSummary(t.Context(), d.user, d.chat)
		return allHelpful(p), nil
	})
	d.works()
	d.wantEvaluations(helpful(one, "halden.test", cognition.Compression), helpful(two, "inn.test", cognition.GoalCompletion))
}

// A goal that ends while the model judges has its own evaluation.
func TestAGoalThatEndsMeanwhileIsNotForgotten(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.OpenWith)
	one := d.looksUp("Who kept the light?", "halden.test")
	goal := d.goal("Find the inn.")
	var two *cognition.Event
	d.model.answers(func(_ context.Context, p llm.Prompt) (string, error) {
		d.model.answers(nil)
		two = d.looksUp("Where is the inn?", "inn.test")
		d.ends(goal, cognition.GoalCompleted)
		return allHelpful(p), nil
	})
	d.clock.Add(side.Idle)
	d.works()
	d.wantEvaluations(helpful(one, "halden.test", cognition.TaskCompletion), helpful(two, "inn.test", cognition.GoalCompletion))
}

// The branches that are due are on disk: a process that starts finds them.
func TestARestartBetweenTheFlagAndTheRunGoesOn(t *testing.T) {
	t.Parallel()
	clock, dir := newClock(), storetest.Dir(t)
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Now: clock.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	d := newDeskOn(t, db, clock)
	goal := d.goal("Find the light.")
	q := d.looksUp("Who kept the light?", "halden.test")
	d.ends(goal, cognition.GoalCompleted)
	d.must(db.Close())
	d.db = storetest.OpenWith(t, store.Options{Dir: dir, Now: clock.Now})
	d.svc = d.service(d.db.Side())
	d.works()
	d.wantEvaluations(helpful(q, "halden.test", cognition.GoalCompletion))
}

// Without a model nothing is guessed: queries wait, the log says so, and they are evaluated when something sets it off again.
func TestWithoutAModelQueriesWait(t *testing.T) {
	eachDesk(t, func(d *desk) {
		goal := d.goal("Find the light.")
		q := d.looksUp("Who kept the light?", "halden.test")
		d.ends(goal, cognition.GoalCompleted)
		var log bytes.Buffer
		judge := d.model
		d.model = nil
		d.svc = side.New(d.db.Side(), side.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		d.works()
		d.wantEvaluations()
		if n := strings.Count(log.String(), "no model"); n != 1 || strings.Contains(log.String(), "light") {
			d.Errorf("the log says\n%s", &log)
		}
		d.model = judge
		d.svc = d.service(d.db.Side())
		d.ends(goal, cognition.GoalActive)
		d.ends(goal, cognition.GoalCompleted)
		d.works()
		d.wantEvaluations(helpful(q, "halden.test", cognition.GoalCompletion))
	})
}

// A reply that cannot be read is no verdict, and no failure: the queries wait for what sets an evaluation off next.
func TestAnUnreadableReplyLeavesQueriesWaiting(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.OpenWith)
	q := d.looksUp("Who kept the light?", "halden.test")
	d.model.answers(func(context.Context, llm.Prompt) (string, error) { return "I cannot judge that.", nil })
	d.svc.BeforeSummary(t.Context(), d.user, d.chat)
	d.wantEvaluations()
	d.model.answers(nil)
	d.clock.Add(side.Idle)
	d.works()
	d.wantEvaluations(helpful(q, "halden.test", cognition.TaskCompletion))
}

// The model sees the conversation and the instruction; the conversation, and the next branch, never see the branch.
func TestABranchLeavesNoTraceInTheConversation(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.OpenWith)
	d.looksUp("Who kept the light?", "halden.test")
	d.svc.BeforeSummary(t.Context(), d.user, d.chat)
	d.looksUp("Where is the inn?", "inn.test")
	d.svc.BeforeSummary(t.Context(), d.user, d.chat)
	var seen []string
	for _, m := range d.model.prompts[1].Messages {
		seen = append(seen, string(m.Role)+": "+m.Text)
	}
	want := []string{
		"assistant: Hello!", "user: Who kept the light?", "assistant: The answer to Who kept the light?", "user: Where is the inn?", "assistant: The answer to Where is the inn?",
		"user: " + d.model.instruction(),
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the model saw\n%s", strings.Join(seen, "\n"))
	}
}

// The instruction is in the language of the queries, with the parts of the format in their order.
func TestTheInstructionHasTheLanguageOfTheQueries(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.OpenWith)
	d.goal("了解灯塔")
	d.looksUp("谁在看守灯塔？", "halden.test")
	d.svc.BeforeSummary(t.Context(), d.user, d.chat)
	text := d.model.instruction()
	for _, part := range []string{"你是知识评估助手", "## 当前任务（Mission）\nThe light", "## 当前 Goal\n了解灯塔", "## 待评估知识查询", "谁在看守灯塔？", "halden.test", "## 评估要求", "## 评估分类", "## 输出格式"} {
		_, behind, found := strings.Cut(text, part)
		if !found {
			t.Fatalf("%q is not in its place in\n%s", part, d.model.instruction())
		}
		text = behind
	}
	if strings.Contains(d.model.instruction(), "You assess") {
		t.Error("it is in two languages")
	}
}
