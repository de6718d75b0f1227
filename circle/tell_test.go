package circle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/character"
	"nodest/circle"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
	"nodest/store"
	"nodest/store/storetest"
)

var tellKinds = []string{circle.JobDay, circle.JobPost, circle.JobMessage}

// live lets time go by in steps, and runs the jobs that make characters speak first.
func (f *fixture) live(d, step time.Duration) {
	f.Helper()
	for end := f.clock.Load() + d.Milliseconds(); ; f.clock.Add(step.Milliseconds()) {
		for j := f.claim(tellKinds...); j != nil; j = f.claim(tellKinds...) {
			_ = f.do(j) // failures show in the turns
		}
		if f.clock.Load() >= end {
			return
		}
	}
}

// at sets the clock.
func (f *fixture) at(t time.Time) { f.clock.Store(t.UnixMilli()) }

func (f *fixture) now() time.Time { return time.UnixMilli(f.clock.Load()).UTC() }

// set changes the circle settings of a character, as a user does.
func (f *fixture) set(id string, settings map[string]any) {
	f.Helper()
	settings["enabled"] = true
	doc, err := json.Marshal(map[string]any{"circle": settings})
	f.must(err)
	characters := character.New(f.db.Characters(), character.Options{Replan: circle.Replan})
	_, _, err = characters.PutSettings(f.Context(), f.call(), id, doc, 0)
	f.must(err)
}

// zone changes the time zone of the user.
func (f *fixture) zone(name string) {
	f.Helper()
	characters := character.New(f.db.Characters(), character.Options{Replan: circle.Replan})
	_, err := characters.PutUserSettings(f.Context(), f.call(), character.UserSettings{UserName: "Ann", TimeZone: name}, 0)
	f.must(err)
}

// look is the user looking at the feed.
func (f *fixture) look() {
	f.Helper()
	f.update(func(tx circle.Tx) error { return f.svc.Looked(tx) })
}

func (f *fixture) feed() (posts []*circle.Post) {
	f.Helper()
	f.update(func(tx circle.Tx) (err error) {
		posts, _, err = tx.Posts(circle.PostFilter{}, "", 1000)
		return err
	})
	return posts
}

func (f *fixture) state() (s *circle.State) {
	f.Helper()
	f.update(func(tx circle.Tx) (err error) {
		s, err = tx.CircleState()
		return err
	})
	return s
}

// slots are the turns that post, as "slot state note".
func (f *fixture) slots(day string) (slots []string) {
	f.Helper()
	for _, t := range f.turns(circle.TurnFilter{Slots: true, Day: day}) {
		slots = append(slots, strings.TrimSpace(fmt.Sprint(t.Slot, " ", t.State, " ", t.Note)))
	}
	slices.Sort(slots)
	return slots
}

// told counts the posts of tells.
var told atomic.Int64

// tells makes the model post something new each time.
func (f *fixture) tells() {
	f.reply = func(llm.Prompt) (string, error) {
		n := told.Add(1)
		return tellsPost(strings.Repeat(fmt.Sprintf("word%d-%d ", n, n*n), 7)), nil
	}
}

func tellsPost(text string) string {
	doc, _ := json.Marshal(map[string]any{"thoughts": "hm", "post": text, "emotion": map[string]any{"type": "positive", "intensity": 0.5}})
	return string(doc)
}

func (f *fixture) want(day string, slots ...string) {
	f.Helper()
	if got := f.slots(day); !slices.Equal(got, slots) {
		f.Errorf("slots of %s are %q, want %q", day, got, slots)
	}
}

func TestACharacterPostsAtItsSetTimesOnceADay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	bea := f.member("Bea")
	f.set(bea, map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00", "18:30", "09:00"}})
	f.live(36*time.Hour, 10*time.Minute)
	f.want("2026-03-02", "13:00 done", "18:30 done") // 09:00 had passed when the character joined
	f.want("2026-03-03", "09:00 done", "13:00 done", "18:30 done")
	for _, p := range f.feed() {
		if at := p.CreatedAt.Format("15:04"); !slices.Contains([]string{"09:00", "13:00", "18:30"}, at) || p.Kind == "" || p.Text == "" {
			t.Errorf("posted at %s: %+v", at, p)
		}
	}
}

func TestPostsByNumberAreSpreadOutsideTheQuietHours(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	f.settings(func(s *circle.Settings) { s.SleepAfter = 365 })
	for _, name := range []string{"Bea", "Carl"} {
		f.set(f.member(name), map[string]any{"postsPerDay": 3})
	}
	f.live(6*24*time.Hour, 10*time.Minute)
	perDay := map[string]int{}
	for _, p := range f.feed() {
		perDay[p.AuthorID+p.CreatedAt.Format(time.DateOnly)]++
	}
	for _, turn := range f.turns(circle.TurnFilter{Slots: true}) {
		if h := turn.DueAt.UTC().Hour(); h < 7 || h >= 23 {
			t.Errorf("a slot at %s", turn.DueAt)
		}
	}
	full := 0
	for key, n := range perDay {
		if n == 3 {
			full++
		} else if n > 3 {
			t.Errorf("%d posts of %s", n, key)
		}
	}
	if full < 10 {
		t.Errorf("%d full days of 10", full)
	}
}

func TestEachDayIsPlannedOnceThroughChangesOfTheClocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, zone, from string }{
		{"the clocks go forward", "Europe/Berlin", "2026-03-27T12:00:00Z"},
		{"the clocks go back", "Europe/Berlin", "2026-10-23T12:00:00Z"},
		{"there is no midnight", "Africa/Cairo", "2026-04-22T12:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.tells()
			from, err := time.Parse(time.RFC3339, c.from)
			f.must(err)
			f.at(from)
			f.settings(func(s *circle.Settings) { s.SleepAfter = 365 })
			f.zone(c.zone)
			f.set(f.member("Bea"), map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"00:30", "02:30", "22:00"}})
			f.live(4*24*time.Hour, 10*time.Minute)
			zone, err := time.LoadLocation(c.zone)
			f.must(err)
			for day := 1; day < 4; day++ {
				f.want(from.In(zone).AddDate(0, 0, day).Format(time.DateOnly), "00:30 done", "02:30 done", "22:00 done")
			}
		})
	}
}

func TestChangedSettingsPlanTheRestOfTheDayAndUseNoSlotTwice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	bea := f.member("Bea")
	times := func(list ...string) { f.set(bea, map[string]any{"postsPerDay": 0, "scheduledTimes": list}) }
	times("13:00", "18:00")
	f.live(90*time.Minute, 10*time.Minute)
	times("13:00", "20:00")
	f.live(10*time.Minute, 10*time.Minute)
	f.want("2026-03-02", "13:00 done", "18:00 left_out gone", "20:00 planned")
	times("13:00", "18:00", "20:00")
	f.live(10*time.Minute, 10*time.Minute)
	f.want("2026-03-02", "13:00 done", "18:00 planned", "20:00 planned")
	f.live(9*time.Hour, 10*time.Minute)
	f.want("2026-03-02", "13:00 done", "18:00 done", "20:00 done")
	f.set(bea, map[string]any{"enabled": true, "postsPerDay": 0})
	if n := len(f.feed()); n != 3 {
		t.Errorf("%d posts", n)
	}
}

func TestAnotherTimeZoneMovesTheSlotsAndUsesNoneTwice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	f.zone("Europe/London")
	f.set(f.member("Bea"), map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00", "20:00"}})
	f.live(90*time.Minute, 10*time.Minute)
	f.zone("America/New_York") // it is 8:30 there, and the 13:00 of that day is used
	f.live(8*time.Hour, 10*time.Minute)
	f.want("2026-03-02", "13:00 done", "20:00 planned")
	f.zone("Asia/Tokyo") // the day after
	f.live(10*time.Minute, 10*time.Minute)
	f.want("2026-03-02", "13:00 done", "20:00 left_out missed")
	f.want("2026-03-03", "13:00 planned", "20:00 planned")
	f.zone("America/New_York") // and back
	f.live(4*time.Hour, 10*time.Minute)
	f.want("2026-03-03", "13:00 left_out gone", "20:00 left_out gone")
	f.live(24*time.Hour, 10*time.Minute)
	f.want("2026-03-03", "13:00 done", "20:00 done")
}

func TestMissedSlotsAreMadeUpOnceOnTheSameDay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	for _, name := range []string{"Bea", "Carl"} {
		f.set(f.member(name), map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"08:00", "09:00", "13:00", "14:00", "15:00"}})
	}
	f.live(0, time.Minute)
	f.clock.Add((5 * time.Hour).Milliseconds()) // no server ran
	f.live(2*time.Hour, time.Minute)
	f.want("2026-03-02", "13:00 left_out missed", "13:00 left_out missed", "14:00 left_out missed", "14:00 left_out missed",
		"15:00 done missed", "15:00 done missed")
	f.clock.Add((15 * time.Hour).Milliseconds()) // over midnight, to 10:00
	f.live(2*time.Hour, time.Minute)
	f.want("2026-03-03", "08:00 left_out missed", "08:00 left_out missed", "09:00 done missed", "09:00 done missed",
		"13:00 planned", "13:00 planned", "14:00 planned", "14:00 planned", "15:00 planned", "15:00 planned")
	f.clock.Add((24 * time.Hour).Milliseconds())
	f.live(0, time.Minute)
	for _, s := range f.slots("2026-03-03") {
		if strings.Contains(s, "planned") || strings.Contains(s, "done ") && !strings.HasPrefix(s, "09:00") {
			t.Errorf("of a day that is over: %s", s)
		}
	}
}

func TestTheCircleSleepsAndWakesWithOneDigest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	bea, carl := f.member("Bea"), f.member("Carl")
	f.update(func(tx circle.Tx) error {
		return tx.PutRelation(&circle.Relation{CharacterID: carl, TargetID: circle.Me, Strength: 50, Type: "friend"})
	})
	for _, id := range []string{bea, carl} {
		f.set(id, map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00", "20:00"}})
	}
	f.live(10*24*time.Hour, 10*time.Minute)
	calls, posts := len(f.prompts), len(f.feed())
	if posts != 12 || calls != 12 {
		t.Errorf("%d posts, %d calls; the circle sleeps after three days", posts, calls)
	}
	if at := f.state().AsleepAt; at == nil || !at.Equal(noon.Add(72*time.Hour)) {
		t.Errorf("asleep since %v", at)
	}
	f.want("2026-03-05", "13:00 left_out asleep", "13:00 left_out asleep", "20:00 left_out asleep", "20:00 left_out asleep")
	f.want("2026-03-08")
	f.at(time.Date(2026, 3, 12, 15, 0, 0, 0, time.UTC))
	f.reply = func(p llm.Prompt) (string, error) {
		own := p.Messages[1].Text
		if !strings.Contains(own, " ago: Bea: ") || !strings.Contains(own, "24 hours ago: ") || !strings.Contains(own, "2 days ago: ") || !strings.Contains(own, "away") || nameIn(own) != "Carl" {
			t.Errorf("the prompt of the digest is\n%s", own)
		}
		return tellsPost("Bea has baked and I have walked while you were gone"), nil
	}
	f.look()
	f.look()
	f.live(time.Minute, time.Minute)
	feed := f.feed()
	if len(feed) != posts+1 || len(f.prompts) != calls+1 {
		t.Fatalf("%d posts, %d calls", len(feed)-posts, len(f.prompts)-calls)
	}
	if p := feed[0]; p.Kind != rules.Digest || p.AuthorID != carl || len(p.Evidence) != 1 {
		t.Errorf("digest %+v", p)
	}
	f.want("2026-03-12", "20:00 planned", "20:00 planned", "digest done")
	f.tells()
	f.live(24*time.Hour, 10*time.Minute)
	f.want("2026-03-12", "20:00 done", "20:00 done", "digest done")
}

func TestACircleThatBeginsAnewIsAwake(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	f.look() // long before there are members
	f.live(0, time.Minute)
	f.clock.Add((30 * 24 * time.Hour).Milliseconds())
	f.set(f.member("Bea"), map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00"}})
	f.live(2*time.Hour, 10*time.Minute)
	if f.want("2026-04-01", "13:00 done"); f.state().AsleepAt != nil {
		t.Errorf("state %+v", f.state())
	}
}

func TestACharacterTellsEachItemOfItsPlanOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	bea := f.member("Bea", "personality", "Bea collects old maps. She swims in the lake every morning. She hates the smell of paint.")
	var times []string
	for h := 13; h < 22; h++ {
		times = append(times, fmt.Sprintf("%d:00", h))
	}
	f.set(bea, map[string]any{"postsPerDay": 0, "scheduledTimes": times})
	f.live(10*time.Hour, 10*time.Minute)
	var plan *circle.Plan
	f.update(func(tx circle.Tx) (err error) {
		plan, err = tx.Plan(bea, "2026-03-02")
		return err
	})
	if n := len(plan.Items); n < 4 || n > 6 || len(f.feed()) != n || len(f.prompts) != n {
		t.Fatalf("%d items, %d posts, %d calls", n, len(f.feed()), len(f.prompts))
	}
	for _, i := range plan.Items {
		told := 0
		for _, p := range f.prompts {
			if strings.Contains(p.Messages[1].Text, "<tell>\n"+i.Text+"\n</tell>") {
				told++
			}
		}
		if !i.Used || told != 1 {
			t.Errorf("%+v is in %d prompts", i, told)
		}
	}
	if got := f.slots("2026-03-02")[8]; got != "21:00 nothing repeats" {
		t.Errorf("the last slot: %s", got)
	}
}

func TestWhatIsPostedIsNewAndFounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, first, second string
		want                string
		calls               int
	}{
		{"a new text is posted", "The lake was frozen this morning and the ducks were walking", "", "done", 1},
		{"a repeated text is asked for again", "I told you all of the old lamp in my window", "Today the lamp went out for good, at last", "done", 2},
		{"a text that is repeated twice is not posted", "I told you all of the old lamp in my window", "i told you all of the old lamp, in my window!", "nothing repeats", 2},
		{"a statement about somebody else needs evidence", "Carl has stolen a boat last night and sold it", "Carl has stolen two boats, as everybody in town knows", "nothing unfounded", 2},
		{"an answer without a post is a choice", "", "", "nothing choice", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			bea := f.member("Bea")
			f.set(f.member("Carl"), map[string]any{"postsPerDay": 0})
			f.update(func(tx circle.Tx) error {
				return tx.InsertPost(&circle.Post{ID: op.NewID(), AuthorID: bea, AuthorName: "Bea", Text: "I told you all of the old lamp in my window", CreatedAt: tx.Now()})
			})
			f.reply = func(llm.Prompt) (string, error) {
				if len(f.prompts) == 1 {
					return tellsPost(c.first), nil
				}
				return tellsPost(c.second), nil
			}
			f.set(bea, map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00"}})
			f.live(2*time.Hour, time.Minute)
			f.want("2026-03-02", "13:00 "+c.want)
			if len(f.prompts) != c.calls {
				t.Errorf("%d calls", len(f.prompts))
			}
			if turn := f.turns(circle.TurnFilter{Slots: true})[0]; turn.Calls != int64(c.calls) || turn.Tokens == 0 {
				t.Errorf("turn %+v", turn)
			}
		})
	}
}

func TestAPostThatCannotBeWrittenIsVisible(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bea := f.member("Bea")
	f.set(bea, map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00", "14:00", "15:00", "16:00"}})
	f.reply = func(llm.Prompt) (string, error) { return "", fault.New(fault.UpstreamDown, "down") }
	f.live(90*time.Minute, time.Minute)
	f.want("2026-03-02", "13:00 failed", "14:00 planned", "15:00 planned", "16:00 planned")
	failed := f.turns(circle.TurnFilter{State: circle.TurnFailed})[0]
	if failed.Error == nil || failed.Error.Code != fault.UpstreamDown || failed.Calls != 5 {
		t.Errorf("turn %+v", failed)
	}
	if n := len(f.eventsOf("circle.failed")); n != 5 {
		t.Errorf("%d events", n)
	}
	f.tells()
	_, err := f.svc.Retry(t.Context(), f.call(), failed.ID)
	f.must(err)
	f.live(time.Hour, time.Minute)
	f.want("2026-03-02", "13:00 done", "14:00 done", "15:00 planned", "16:00 planned")
	f.noModel = true
	f.live(time.Hour, time.Minute)
	f.noModel = false
	f.settings(func(s *circle.Settings) { s.CallsPerDay = 7 })
	f.live(time.Hour, time.Minute)
	f.want("2026-03-02", "13:00 done", "14:00 done", "15:00 left_out no_model", "16:00 left_out budget")
	if n := len(f.feed()); n != 2 {
		t.Errorf("%d posts", n)
	}
}

func TestWhoSpeaksLateInADayDoesNotFallSilent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	f.settings(func(s *circle.Settings) { s.CallsPerDay = 7 })
	for name, times := range map[string][]string{"Bea": {"13:00", "14:00", "15:00", "16:00"}, "Carl": {"13:30", "14:30", "15:30", "16:30"}, "Dora": {"20:00"}} {
		f.set(f.member(name), map[string]any{"postsPerDay": 0, "scheduledTimes": times})
	}
	f.live(10*time.Hour, 10*time.Minute)
	f.want("2026-03-02", "13:00 done", "13:30 done", "14:00 done", "14:30 done", "15:00 done", "15:30 done",
		"16:00 left_out budget", "16:30 left_out budget", "20:00 done")
}

func TestAPostThatIsWrittenTwiceIsStoredOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	f.set(f.member("Bea"), map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00"}})
	f.live(59*time.Minute, time.Minute)
	f.clock.Add(time.Minute.Milliseconds())
	j := f.claim(circle.JobPost)
	run := f.run(circle.JobPost)
	f.reply = func(llm.Prompt) (string, error) { panic("killed") }
	func() {
		defer func() { _ = recover() }()
		_ = run(t.Context(), j)
	}()
	f.tells()
	f.must(run(t.Context(), j))
	_ = run(t.Context(), j) // it did not know of the commit
	f.want("2026-03-02", "13:00 done")
	if n := len(f.feed()); n != 1 {
		t.Errorf("%d posts", n)
	}
}

func (f *fixture) run(kind string) func(context.Context, *jobs.Job) error {
	for _, k := range f.svc.Kinds() {
		if k.Name == kind {
			return k.Run
		}
	}
	f.Fatalf("nobody handles %s", kind)
	return nil
}

// Two processes plan the same days and carry out the same turns.
func TestTwoProcessesUseNoSlotTwice(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { twoProcesses(t, newFixture(t), nil) })
	t.Run("postgres", func(t *testing.T) {
		where := storetest.PostgresURL(t)
		twoProcesses(t, newFixtureOn(t, store.Options{URL: where}), func(f *fixture) *store.DB {
			return storetest.OpenWith(t, store.Options{URL: where, Now: f.now})
		})
	})
}

func twoProcesses(t *testing.T, f *fixture, second func(f *fixture) *store.DB) {
	f.tells()
	f.settings(func(s *circle.Settings) { s.SleepAfter = 365 })
	for _, name := range []string{"Bea", "Carl", "Dora"} {
		f.set(f.member(name), map[string]any{"postsPerDay": 4, "scheduledTimes": []string{"13:00", "20:00"}})
	}
	other := f.db
	if second != nil {
		other = second(f)
	}
	services := []*fixture{f, f.on(other)}
	for range 2 * 24 {
		done := make(chan error)
		for i, p := range services {
			go func() { done <- p.work(fmt.Sprint("process ", i)) }()
		}
		for range services {
			f.must(<-done)
		}
		f.must(f.db.Circle().Update(t.Context(), f.user, func(tx circle.Tx) error { return circle.Replan(tx.Jobs) }))
		f.clock.Add(time.Hour.Milliseconds())
	}
	slots, posts := map[string]int{}, map[string]int{}
	for _, turn := range f.turns(circle.TurnFilter{Slots: true}) {
		slots[turn.CharacterID+turn.Day+turn.Slot]++
		if turn.State == circle.TurnDone {
			posts[turn.PostID]++
		}
	}
	for key, n := range slots {
		if n > 1 {
			t.Errorf("slot %s has %d turns", key, n)
		}
	}
	if feed := f.feed(); len(feed) != len(posts) || len(feed) < 20 {
		t.Errorf("%d posts by %d turns", len(feed), len(posts))
	}
}

// on is f in another process.
func (f *fixture) on(db *store.DB) *fixture {
	g := &fixture{TB: f.TB, db: db, user: f.user, clock: f.clock, reply: f.reply}
	g.svc = circle.New(db.Circle(), circle.Options{
		Characters: character.New(db.Characters(), character.Options{}), Memory: f.memory, Model: g.model,
	})
	return g
}

// work carries out what is due, as one of several processes.
func (f *fixture) work(owner string) error {
	for _, kind := range tellKinds {
		for {
			claimed, err := f.db.ClaimJobs(context.Background(), owner, time.Hour, []jobs.Want{{Kind: kind, Free: 2, PerUser: 2}})
			if err != nil {
				return err
			}
			if len(claimed) == 0 {
				break
			}
			for _, j := range claimed {
				if err := f.run(kind)(context.Background(), j); err != nil && !errors.Is(err, jobs.ErrLost) {
					return fmt.Errorf("%s: %w", kind, err)
				}
				// Another process that believes it has the job gets nowhere.
				if err := f.run(kind)(context.Background(), j); err != nil && !fault.Is(err, fault.Conflict) {
					return fmt.Errorf("%s again: %w", kind, err)
				}
			}
		}
	}
	return nil
}

// Posts tell of what the user shared, and of nothing else that was said in private.
func TestPromptsOfPostsHaveNothingPrivate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	bea := f.member("Bea")
	f.set(bea, map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00", "14:00", "15:00", "16:00", "17:00", "18:00"}})
	f.update(func(tx circle.Tx) error {
		set, err := tx.Characters.Settings()
		if err != nil {
			return err
		}
		set.Version, set.CustomSetting = set.Version+1, []byte(`{"content":"SECRET setting"}`)
		return tx.Characters.PutSettings(set)
	})
	for text, shareable := range map[string]bool{"Ann has a SECRET lover": false, "Ann won the sailing cup": true} {
		_, err := f.memory.Create(t.Context(), f.call(), bea, memory.Draft{Text: text, Subject: "user", Kind: "event", Shareable: shareable})
		f.must(err)
	}
	f.live(7*time.Hour, 10*time.Minute)
	shared := 0
	for _, p := range f.prompts {
		text := p.Messages[0].Text + p.Messages[1].Text
		if strings.Contains(text, "SECRET") {
			t.Errorf("private text in\n%s", text)
		}
		if strings.Contains(text, "<tell>\n[m1] Ann won the sailing cup\n</tell>") {
			shared++
		}
	}
	if shared != 1 {
		t.Errorf("what the user shared is in %d of %d prompts", shared, len(f.prompts))
	}
}
