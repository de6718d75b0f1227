package circle_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodest/circle"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/llm"
	"nodest/store"
	"nodest/store/storetest"
)

// everybody makes a circle of so many characters that all react to the user's posts.
func everybody(t *testing.T, n int) (*fixture, []string) {
	f := newFixture(t)
	f.settings(func(s *circle.Settings) { s.Everybody, s.QuietFrom, s.QuietUntil = true, "00:00", "00:00" })
	var ids []string
	for i := range n {
		ids = append(ids, f.member([]string{"Bea", "Carl", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo"}[i]))
	}
	return f, ids
}

func TestCharactersReactToAPostEachOnceAtTheirOwnPace(t *testing.T) {
	t.Parallel()
	f, ids := everybody(t, 8)
	f.says(func(own string) string {
		return comment(nameIn(own) + " remembers the harbour of " + nameIn(own) + "ville")
	})
	p := f.post("I baked bread by the sea today")
	f.pass(11 * time.Hour)
	authors, at := map[string]bool{}, map[time.Time]bool{}
	for _, c := range f.thread(p.ID) {
		authors[c.AuthorID], at[c.CreatedAt] = true, true
		if c.AuthorID == circle.Me || c.Text == "" || c.Emotion == nil || c.Thoughts == "" || c.Depth != 1 || c.Thread != c.ID {
			t.Errorf("comment %+v", c)
		}
	}
	if len(authors) != len(ids) || len(f.thread(p.ID)) != len(ids) || len(f.likes(p.ID)) != len(ids) || len(at) < 2 {
		t.Errorf("%d comments by %d at %d times, %d likes", len(f.thread(p.ID)), len(authors), len(at), len(f.likes(p.ID)))
	}
	done := f.turns(circle.TurnFilter{State: circle.TurnDone})
	spent := f.spend()
	if len(done) != len(ids) || spent.Calls != int64(len(ids)) {
		t.Errorf("%d turns done, %+v", len(done), spent)
	}
	total := int64(0)
	for _, turn := range done {
		total += turn.Tokens
	}
	if total != spent.Tokens {
		t.Errorf("turns cost %d tokens, the day %d", total, spent.Tokens)
	}
	if n := len(f.eventsOf("circle.comment")); n != len(ids) {
		t.Errorf("%d events of comments", n)
	}
}

func TestAReactionThatIsRunTwiceIsStoredOnce(t *testing.T) {
	t.Parallel()
	f, _ := everybody(t, 1)
	f.says(func(string) string { return comment("The harbour is where it began") })
	p := f.post("I baked bread")
	f.must(f.do(f.claim(circle.JobSpread)))
	f.clock.Add((6 * time.Hour).Milliseconds())
	j := f.claim(circle.JobReact)
	if j == nil {
		t.Fatal("no reaction")
	}
	run := f.svc.Kinds()[1].Run
	f.must(run(t.Context(), j))
	_ = run(t.Context(), j) // the process died after the commit, and did not know of it
	if len(f.thread(p.ID)) != 1 || len(f.likes(p.ID)) != 1 {
		t.Errorf("%d comments, %d likes", len(f.thread(p.ID)), len(f.likes(p.ID)))
	}
}

func TestATurnWhoseJobWasLostIsCarriedOutWithTheNextPlan(t *testing.T) {
	t.Parallel()
	f, _ := everybody(t, 1)
	f.says(func(string) string { return comment("The harbour is where it began") })
	p := f.post("I baked bread")
	f.must(f.do(f.claim(circle.JobSpread)))
	f.clock.Add((6 * time.Hour).Milliseconds())
	f.must(f.db.EndJob(t.Context(), f.claim(circle.JobReact), jobs.Outcome{State: jobs.Failed})) // as after the last crash
	f.must(f.do(f.claim(circle.JobDay)))
	f.pass(time.Minute)
	if len(f.thread(p.ID)) != 1 || f.spend().Calls != 1 {
		t.Errorf("%d comments, %+v", len(f.thread(p.ID)), f.spend())
	}
}

func TestACrashBeforeTheCommitLosesNothingButItsCall(t *testing.T) {
	t.Parallel()
	f, _ := everybody(t, 1)
	killed := true
	f.reply = func(llm.Prompt) (string, error) {
		if killed {
			panic("killed")
		}
		return comment("The harbour is where it began"), nil
	}
	p := f.post("I baked bread")
	f.must(f.do(f.claim(circle.JobSpread)))
	f.clock.Add((6 * time.Hour).Milliseconds())
	j := f.claim(circle.JobReact)
	func() {
		defer func() { _ = recover() }()
		_ = f.svc.Kinds()[1].Run(t.Context(), j)
	}()
	if len(f.thread(p.ID)) != 0 || f.spend().Calls != 1 {
		t.Errorf("%d comments, %+v", len(f.thread(p.ID)), f.spend())
	}
	killed = false
	f.must(f.db.EndJob(t.Context(), j, jobs.Outcome{State: jobs.Queued}))
	f.pass(time.Minute)
	if len(f.thread(p.ID)) != 1 || f.spend().Calls != 2 {
		t.Errorf("%d comments, %+v", len(f.thread(p.ID)), f.spend())
	}
}

func TestDoingNothingIsAnOutcome(t *testing.T) {
	t.Parallel()
	f, _ := everybody(t, 3)
	p := f.post("I baked bread")
	f.pass(12 * time.Hour)
	for _, turn := range f.turns(circle.TurnFilter{PostID: p.ID}) {
		if turn.State != circle.TurnNothing || turn.Note != rules.NoteChoice || turn.EndedAt == nil {
			t.Errorf("%+v", turn)
		}
	}
	if len(f.thread(p.ID)) != 0 || len(f.likes(p.ID)) != 0 {
		t.Error("something was stored")
	}
}

func TestTheLimitsOfTheDayAreNeverExceeded(t *testing.T) {
	t.Parallel()
	for _, limit := range []struct{ calls, tokens int64 }{{3, 400_000}, {200, 4_000}, {0, 400_000}} {
		f, ids := everybody(t, 5)
		f.settings(func(s *circle.Settings) { s.CallsPerDay, s.TokensPerDay = limit.calls, limit.tokens })
		f.says(func(own string) string { return comment(nameIn(own) + " likes " + strings.Repeat("salt ", 200)) })
		for i := range 3 {
			f.post(fmt.Sprintf("%d loaves of bread", i))
		}
		f.pass(10 * time.Hour)
		spent := f.spend()
		if spent.Calls > limit.calls || spent.Tokens > limit.tokens {
			t.Errorf("limits %+v, spent %+v", limit, spent)
		}
		left := 0
		for _, turn := range f.turns(circle.TurnFilter{State: circle.TurnLeftOut}) {
			if turn.Note == rules.NoteBudget {
				left++
			}
		}
		if left == 0 || int64(left) != spent.LeftOut {
			t.Errorf("%d of %d turns were left out for the budget, the day says %d", left, 3*len(ids), spent.LeftOut)
		}
		t.Logf("limit %+v: %+v", limit, spent)
	}
}

func TestAFailingProviderIsVisibleAndRetried(t *testing.T) {
	t.Parallel()
	f, _ := everybody(t, 1)
	f.reply = func(llm.Prompt) (string, error) { return "", fault.New(fault.UpstreamDown, "no provider today") }
	p := f.post("I baked bread")
	f.pass(12 * time.Hour)
	turns := f.turns(circle.TurnFilter{PostID: p.ID})
	if len(turns) != 1 || turns[0].State != circle.TurnFailed || turns[0].Error == nil || turns[0].Error.Code != fault.UpstreamDown {
		t.Fatalf("%+v", turns)
	}
	failed := f.eventsOf("circle.failed")
	if len(failed) != 5 || !strings.Contains(failed[0], p.ID) || !strings.Contains(failed[0], turns[0].CharacterID) || len(f.thread(p.ID)) != 0 {
		t.Errorf("%d events: %v", len(failed), failed)
	}
	f.says(func(string) string { return comment("Better late than never") })
	if _, err := f.svc.Retry(t.Context(), f.call(), turns[0].ID); err != nil {
		t.Fatal(err)
	}
	f.pass(time.Minute)
	if turn := f.turns(circle.TurnFilter{PostID: p.ID})[0]; turn.State != circle.TurnDone || turn.Error != nil || len(f.thread(p.ID)) != 1 {
		t.Errorf("%+v", turn)
	}
	if _, err := f.svc.Retry(t.Context(), f.call(), turns[0].ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("a turn that is done: %v", err)
	}
}

func TestWithoutAModelNothingIsInvented(t *testing.T) {
	t.Parallel()
	f, ids := everybody(t, 3)
	f.noModel = true
	p := f.post("I baked bread")
	f.pass(12 * time.Hour)
	for _, turn := range f.turns(circle.TurnFilter{PostID: p.ID}) {
		if turn.State != circle.TurnLeftOut || turn.Note != rules.NoteNoModel {
			t.Errorf("%+v", turn)
		}
	}
	if n := len(f.eventsOf("circle.failed")); n != 1 || len(f.turns(circle.TurnFilter{PostID: p.ID})) != len(ids) || len(f.thread(p.ID)) != 0 {
		t.Errorf("%d events of failures, %d comments", n, len(f.thread(p.ID)))
	}
}

func TestAnAnswerThatCannotBeUsedIsAFailure(t *testing.T) {
	t.Parallel()
	f, _ := everybody(t, 1)
	f.says(func(string) string { return "I would rather not answer in JSON." })
	p := f.post("I baked bread")
	f.pass(12 * time.Hour)
	if turn := f.turns(circle.TurnFilter{PostID: p.ID})[0]; turn.State != circle.TurnFailed || turn.Error.Code != fault.UpstreamBadAnswer {
		t.Errorf("%+v", turn)
	}
}

func TestARepetitionIsNotStored(t *testing.T) {
	t.Parallel()
	f, ids := everybody(t, 3)
	f.says(func(string) string {
		return `{"thoughts":"x","action":{"like":false,"comment":"What a lovely loaf of bread that is!"}}`
	})
	p := f.post("I baked bread")
	f.pass(12 * time.Hour)
	repeats := 0
	for _, turn := range f.turns(circle.TurnFilter{PostID: p.ID}) {
		if turn.Note == rules.NoteRepeats && turn.State == circle.TurnNothing && turn.Calls == 2 {
			repeats++
		}
	}
	if len(f.thread(p.ID)) != 1 || repeats != len(ids)-1 {
		t.Errorf("%d comments, %d repetitions", len(f.thread(p.ID)), repeats)
	}
}

func TestWhatIsSaidOfOthersNeedsEvidence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer string
		stored bool
	}{
		"nobody is named":                {`{"thoughts":"x","action":{"like":false,"comment":"Salt makes bread."}}`, true},
		"without evidence":               {`{"thoughts":"x","action":{"like":false,"comment":"Zora stole the bread."}}`, false},
		"with an id that is not shown":   {`{"thoughts":"x","action":{"like":false,"comment":"Zora stole the bread."},"evidence":["c9"]}`, false},
		"with something that has a name": {`{"thoughts":"x","action":{"like":false,"comment":"Zora stole the bread."},"evidence":["p1"]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := everybody(t, 1)
			f.member("Zora")
			text := "I baked bread"
			if tc.stored {
				text += " and Zora was there"
			}
			f.says(func(own string) string {
				if nameIn(own) == "Bea" {
					return tc.answer
				}
				return nothing
			})
			p := f.post(text)
			f.pass(12 * time.Hour)
			comments := f.thread(p.ID)
			if (len(comments) == 1) != tc.stored {
				t.Fatalf("%d comments", len(comments))
			}
			if strings.Contains(tc.answer, "p1") && (len(comments[0].Evidence) != 1 || comments[0].Evidence[0] != p.ID) {
				t.Errorf("evidence %v", comments[0].Evidence)
			}
		})
	}
}

func TestNobodyReactsToWhatIsGone(t *testing.T) {
	t.Parallel()
	f, _ := everybody(t, 2)
	f.says(func(string) string { return comment("Too late") })
	p := f.post("I baked bread")
	f.must(f.do(f.claim(circle.JobSpread)))
	f.must(f.svc.DeletePost(t.Context(), f.call(), p.ID))
	f.pass(12 * time.Hour)
	for _, turn := range f.turns(circle.TurnFilter{}) {
		if turn.State != circle.TurnLeftOut {
			t.Errorf("%+v", turn)
		}
	}
	if len(f.prompts) != 0 {
		t.Errorf("%d prompts", len(f.prompts))
	}
}

func TestAuthorsAnswerTheUserInTheirThreads(t *testing.T) {
	t.Parallel()
	f, ids := everybody(t, 1)
	n := 0
	f.says(func(string) string { n++; return comment(fmt.Sprintf("%d gulls and %d boats", n, n*n)) })
	p, err := f.svc.Post(t.Context(), f.call(), circle.PostInput{AuthorID: ids[0], Text: "The sea is calm"})
	f.must(err)
	c, err := f.svc.Comment(t.Context(), f.call(), p.ID, "Is it cold?", "")
	f.must(err)
	f.pass(8 * time.Hour)
	comments := f.thread(p.ID)
	if len(comments) != 2 || comments[1].ReplyTo != c.ID || comments[1].Thread != c.ID || comments[1].Depth != 2 || comments[1].AuthorID != ids[0] {
		t.Fatalf("%d comments: %+v", len(comments), comments[len(comments)-1])
	}
	if len(f.likes(p.ID)) != 0 {
		t.Error("an author liked its own post")
	}
	f.update(func(tx circle.Tx) error {
		r, err := tx.Relation(ids[0], circle.Me)
		if err == nil && (r.Strength != rules.CommentDelta || r.Interactions != 1) {
			t.Errorf("%+v", r)
		}
		box, _ := tx.Items(ids[0], false)
		if len(box) != 1 || box[0].Type != "comment" || box[0].Text != "Is it cold?" || box[0].Context != "The sea is calm" {
			t.Errorf("%+v", box)
		}
		return err
	})
}

func TestNoReactionInTheQuietHours(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.member("Bea")
	f.clock.Store(noon.Add(10*time.Hour + 58*time.Minute).UnixMilli()) // 22:58
	f.says(func(string) string { return comment("Good morning") })
	p := f.post("Bea, are you still awake?")
	f.pass(8 * time.Hour)
	if len(f.thread(p.ID)) != 0 && f.thread(p.ID)[0].CreatedAt.Hour() < 7 {
		t.Errorf("commented at %v", f.thread(p.ID)[0].CreatedAt)
	}
	f.pass(4 * time.Hour)
	if len(f.thread(p.ID)) != 1 {
		t.Error("nobody commented in the morning")
	}
}

func TestAReviewChangesRelationshipsWithinBounds(t *testing.T) {
	t.Parallel()
	f, ids := everybody(t, 1)
	f.reply = func(p llm.Prompt) (string, error) {
		if strings.Contains(p.Messages[1].Text, "关系更新") {
			if !strings.Contains(p.Messages[0].Text, "[r1] ") {
				t.Errorf("nobody to think of in %s", p.Messages[0].Text)
			}
			return "关系更新:\nr1-+50-mentor\nr9-+3\n", nil
		}
		return nothing, nil
	}
	p, err := f.svc.Post(t.Context(), f.call(), circle.PostInput{AuthorID: ids[0], Text: "The sea is calm"})
	f.must(err)
	for i := range 8 {
		_, err := f.svc.Comment(t.Context(), f.call(), p.ID, fmt.Sprintf("Thought %d", i), "")
		f.must(err)
	}
	f.pass(time.Hour)
	f.update(func(tx circle.Tx) error {
		r, err := tx.Relation(ids[0], circle.Me)
		if err == nil && (r.Strength != 8*rules.CommentDelta+10 || r.Type != "mentor" || !r.Kept || r.ActionAt == nil) {
			t.Errorf("%+v", r)
		}
		if unread, _ := tx.Items(ids[0], true); len(unread) != 0 {
			t.Errorf("%d unread items", len(unread))
		}
		actions, _, _ := tx.Actions("", "", 10)
		if len(actions) != 1 || actions[0].Type != "support" || actions[0].TargetID != circle.Me {
			t.Errorf("%+v", actions)
		}
		return err
	})
}

// Two characters mean to say the same at the same time, each in a process of its own.
func TestTwoProcessesSayTheSameOnce(t *testing.T) {
	t.Parallel()
	where := storetest.PostgresURL(t)
	f := newFixtureOn(t, store.Options{URL: where})
	f.settings(func(s *circle.Settings) { s.Everybody, s.QuietFrom, s.QuietUntil = true, "00:00", "00:00" })
	f.member("Bea")
	f.member("Carl")
	g := f.on(storetest.OpenWith(t, store.Options{URL: where, Now: f.now}))
	for round := range 10 {
		var calls atomic.Int64
		both := make(chan struct{})
		f.reply = func(llm.Prompt) (string, error) {
			if calls.Add(1) == 2 {
				close(both)
			}
			<-both
			return comment(strings.Repeat(string(rune('a'+round)), 30)), nil
		}
		g.reply = f.reply
		p := f.post(fmt.Sprintf("I baked %d loaves", round))
		for j := f.claim(circle.JobSpread); j != nil; j = f.claim(circle.JobSpread) {
			f.must(f.do(j))
		}
		f.clock.Add((12 * time.Hour).Milliseconds())
		var working sync.WaitGroup
		for _, process := range []*fixture{f, g} {
			j := process.claim(circle.JobReact)
			working.Go(func() { _ = process.do(j) })
		}
		working.Wait()
		if said := f.thread(p.ID); len(said) != 1 {
			t.Errorf("%d comments", len(said))
		}
	}
}

// Who reacts is decided for one post of a user at a time, as all members are looked at; posts of
// others are not kept waiting.
func TestWhoReactsIsDecidedOnePostAtATime(t *testing.T) {
	f := newFixture(t)
	for _, k := range f.svc.Kinds() {
		if k.Name == circle.JobSpread && (k.PerUser != 1 || k.AtOnce == 1) {
			t.Errorf("%d of a user, %d in all", k.PerUser, k.AtOnce)
		}
	}
}
