package dream_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/cognition"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory/dream"
	"nodest/store/storetest"
)

// begins returns when runs began, in a zone.
func begins(runs []*dream.Run, zone *time.Location) (at []string) {
	for _, r := range runs {
		at = append(at, r.CreatedAt.In(zone).Format("2 15:04"))
	}
	return at
}

func TestNightsBeginAtTheirTimeOfTheUsersDay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, zone, at string
		from           time.Time
		want           []string
	}{
		{"far in the east", "Pacific/Auckland", "04:10", time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), []string{"2 04:10", "3 04:10", "4 04:10"}},
		{"a time that summer leaves out", "Europe/Berlin", "02:30", time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC), []string{"28 02:30", "29 03:00", "30 02:30"}},
		{"a time that winter has twice", "Europe/Berlin", "02:30", time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC), []string{"24 02:30", "25 02:30", "26 02:30"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(w *world) {
				zone, err := time.LoadLocation(tt.zone)
				w.must(err)
				w.scene.Zone, w.scene.At = zone, tt.at
				w.clock.To(tt.from)
				for day := range 3 {
					w.say(bought(3*day, 3)...)
					w.pass(tt.from.AddDate(0, 0, day+1))
				}
				if got := begins(w.runs(), zone); !slices.Equal(got, tt.want) {
					w.Errorf("the runs began at %q, want %q", got, tt.want)
				}
				if got := w.lines("user.md"); len(got) != 9 {
					w.Errorf("the lines: %q", got)
				}
			})
		})
	}
}

func TestANightNeedsEnoughThatWasSaidBeforeIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		day := 24 * time.Hour
		w.say(bought(0, 2)...)
		w.pass(noon.Add(day))
		if runs := w.runs(); len(runs) != 0 {
			w.Errorf("for two messages: %q", begins(runs, time.UTC))
		}
		w.say(bought(2, 1)...)
		w.pass(noon.Add(day + 15*time.Hour))
		if runs := w.runs(); len(runs) != 0 {
			w.Errorf("before the night, after the third message: %q", begins(runs, time.UTC))
		}
		w.pass(noon.Add(3 * day))
		if got := begins(w.runs(), time.UTC); !slices.Equal(got, []string{"12 04:00"}) {
			w.Errorf("for three messages, and then none: %q", got)
		}
	})
}

// A memory whose settings cannot be read keeps nobody else from their night.
func TestAMemoryThatCannotBePlannedHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		broken := newWorld(w.T, w.db, w.clock)
		behind := newWorld(w.T, w.db, w.clock)
		for _, one := range []*world{w, broken, behind} {
			one.say(bought(0, 3)...)
		}
		s := dream.New(w.db.Dreams(), dream.Options{Scenes: func(_ context.Context, userID, _ string) (dream.Scene, error) {
			if userID == broken.user {
				return dream.Scene{}, errors.New("no settings")
			}
			return w.scene, nil
		}})
		w.clock.To(noon.Add(15*time.Hour + 30*time.Minute))
		if err := s.Sweep(w.Context()); err == nil || !strings.Contains(err.Error(), "no settings") {
			w.Errorf("the sweep says %v", err)
		}
		for i, one := range []*world{w, broken, behind} {
			w.must(w.db.Dreams().View(w.Context(), one.user, func(tx dream.Tx) error {
				open, _, err := tx.Memory.Jobs.Jobs(jobs.Filter{Kind: dream.JobDream, Open: true}, "", 5)
				if want := map[bool]int{true: 0, false: 1}[one == broken]; len(open) != want {
					w.Errorf("user %d has %d nights", i, len(open))
				}
				return err
			}))
		}
	})
}

// A reflection that was imported with a log keeps no run from its own of the same messages.
func TestAnImportedReflectionReplacesNone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.say(bought(0, 3)...)
		log := cognition.NewService(w.db.Cognition())
		imports := func(events ...json.RawMessage) *cognition.Imported {
			done, err := log.Import(w.Context(), &op.Call{UserID: w.user}, w.chat, events, nil)
			w.must(err)
			return done
		}
		imports(json.RawMessage(`{"type":"reflection","timestamp":"2025-01-01T00:00:00Z","sequence_range":[1,3],"summary":"of another program"}`))
		_, err := w.start(dream.Order{Force: true})
		w.must(err)
		w.must(w.work(w.db.Dreams()))
		if r := w.last(); r.State != dream.Done || len(r.Changes) != 3 {
			w.Errorf("the run: %+v", r)
		}
		d, err := log.Log(w.Context(), w.user, w.chat, 0, 0)
		w.must(err)
		if done := imports(d.Events...); len(d.Events) != 2 || done.Added != 0 {
			w.Errorf("%d events, of which an import adds %d", len(d.Events), done.Added)
		}
	})
}

func TestANightThatTheServerMissedIsMadeUpOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.say(bought(0, 3)...)
		w.clock.To(noon.Add(21*time.Hour + 17*time.Minute))
		w.must(w.dreams.Sweep(w.Context()))
		w.must(w.work(w.db.Dreams()))
		w.pass(noon.Add(30 * time.Hour))
		if got := begins(w.runs(), time.UTC); !slices.Equal(got, []string{"11 09:17"}) {
			w.Errorf("the runs: %q", got)
		}
	})
}

func TestARunWaitsWhileTheUserTalksUnlessItIsForced(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.say(bought(0, 3)...)
		w.pass(noon.Add(15*time.Hour + 50*time.Minute))
		w.clock.To(noon.Add(15*time.Hour + 55*time.Minute))
		w.say("Are you awake?")
		w.pass(noon.Add(17 * time.Hour))
		if got := begins(w.runs(), time.UTC); !slices.Equal(got, []string{"11 04:10"}) {
			w.Errorf("who talked at 3:55 had the night at %q", got)
		}

		w.say(bought(3, 1)...)
		if _, err := w.start(dream.Order{}); !fault.Is(err, fault.Conflict) {
			w.Errorf("unforced: %v", err)
		}
		w.clock.Add(11 * time.Minute)
		_, err := w.start(dream.Order{})
		w.must(err)
		w.say("I am back.")
		calls := w.calls.Load()
		w.must(w.work(w.db.Dreams()))
		if r := w.last(); r.State != dream.Waiting || w.calls.Load() != calls {
			w.Errorf("while the user talks: %+v", r)
		}
		w.clock.Add(11 * time.Minute)
		w.must(w.work(w.db.Dreams()))
		if r := w.last(); r.State != dream.Done || r.Reflections != 1 {
			w.Errorf("after it: %+v", r)
		}

		w.say(bought(4, 1)...)
		_, err = w.start(dream.Order{Force: true})
		w.must(err)
		w.must(w.work(w.db.Dreams()))
		if r := w.last(); r.State != dream.Done || len(w.lines("user.md")) != 6 {
			w.Errorf("forced: %+v, %q", r, w.lines("user.md"))
		}
	})
}

func TestAMemoryHasOneRunAtATime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.say(bought(0, 3)...)
		w.pass(noon.Add(15*time.Hour + 30*time.Minute)) // the night is planned
		first, err := w.start(dream.Order{})
		w.must(err)
		again, err := w.start(dream.Order{Force: true})
		w.must(err)
		if again.ID != first.ID {
			w.Errorf("two runs: %s and %s", first.ID, again.ID)
		}
		w.must(w.dreams.Sweep(w.Context()))
		w.pass(noon.Add(20 * time.Hour))
		if runs := w.runs(); len(runs) != 1 || runs[0].State != dream.Done || runs[0].Cause != "user" {
			w.Errorf("the runs: %d, the first %+v", len(runs), runs[0])
		}
		next, err := w.start(dream.Order{})
		w.must(err)
		if next.ID == first.ID {
			w.Error("a run that has ended was begun again")
		}
	})
}

func TestARunThatIsAskedForWhileANightBeginsIsThatOfTheNight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.say(bought(0, 3)...)
		w.pass(noon.Add(15*time.Hour + 50*time.Minute))
		w.clock.To(noon.Add(16 * time.Hour))
		night := w.claim()
		run, err := w.start(dream.Order{})
		w.must(err)
		w.must(w.dreams.Kinds()[0].Run(w.Context(), night))
		w.must(w.work(w.db.Dreams()))
		if runs := w.runs(); len(runs) != 1 || runs[0].ID != run.ID || runs[0].State != dream.Done || w.calls.Load() != 2 {
			w.Errorf("%d calls, %d runs, the first %+v", w.calls.Load(), len(runs), runs[0])
		}
	})
}

func TestNightsRestAfterTwoRunsWithoutResult(t *testing.T) {
	t.Parallel()
	useless := map[string]func(string) string{
		"answers that cannot be read": func(string) string { return "I would rather not." },
		"changes that nobody said": func(prompt string) string {
			if answer := obedient(prompt); answer[2] == 'n' {
				return answer
			}
			return `{"updates":[{"path":"user.md","do":"add","text":"Ada owns a castle in Spain.","notes":[1]}]}`
		},
	}
	for name, model := range useless {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(w *world) {
				w.model = model
				for day := range 11 {
					w.clock.To(noon.AddDate(0, 0, day))
					w.say(bought(3*day, 3)...)
					w.pass(noon.AddDate(0, 0, day).Add(17 * time.Hour))
				}
				if got := begins(w.runs(), time.UTC); !slices.Equal(got, []string{"11 04:00", "12 04:00", "19 04:00"}) {
					w.Errorf("the runs began at %q", got)
				}
				w.model = obedient
				_, err := w.start(dream.Order{Force: true})
				w.must(err)
				w.pass(noon.AddDate(0, 0, 11))
				w.say(bought(40, 3)...)
				w.pass(noon.AddDate(0, 0, 12))
				if r := w.last(); r.Cause != "night" || r.State != dream.Done {
					w.Errorf("after a run with a result: %+v", r)
				}
			})
		})
	}
}

func TestNightsWithNothingToSayDoNotRest(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]func(string) string{
		"no notes":           func(string) string { return `{"notes":[]}` },
		"the same every day": obedient,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(w *world) {
				w.model = model
				for day := range 4 {
					w.clock.To(noon.AddDate(0, 0, day))
					w.say(bought(0, 3)...)
					w.pass(noon.AddDate(0, 0, day).Add(17 * time.Hour))
				}
				if runs := w.runs(); len(runs) != 4 {
					w.Errorf("the runs began at %q", begins(runs, time.UTC))
				}
			})
		})
	}
}

func TestADayHasABudgetOfCallsAndWhatIsLeftGoesOnTheNextDay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.model = func(prompt string) string {
			if answer := obedient(prompt); answer[2] == 'u' || w.calls.Load()%2 == 0 {
				return answer
			}
			return "a thought, but no answer"
		}
		long := make([]byte, 6000)
		for i := range long {
			long[i] = " la"[i%3]
		}
		for _, text := range bought(0, 60) {
			w.say(text + string(long))
		}
		w.pass(noon.AddDate(0, 0, 1))
		if r := w.last(); r.Calls < 20 || r.Consumed == 0 || r.Consumed != r.Reflections {
			w.Errorf("the first night: %+v", r)
		}
		for range 2 { // who wants more on this day has what is left
			if _, err := w.start(dream.Order{Force: true}); err != nil && !fault.Is(err, fault.Conflict) {
				w.Fatal(err)
			}
			w.must(w.work(w.db.Dreams()))
		}
		if calls := w.calls.Load(); calls > 24 {
			w.Errorf("%d calls on one day", calls)
		}
		w.pass(noon.AddDate(0, 0, 2))
		if got := w.lines("user.md"); len(got) != 60 {
			w.Errorf("after the second night there are %d lines", len(got))
		}
		calls := 0
		for _, r := range w.runs() {
			calls += r.Calls
		}
		if int(w.calls.Load()) != calls {
			w.Errorf("%d calls were made, the runs name %d", w.calls.Load(), calls)
		}
	})
}

func TestADayHasABudgetOfTokens(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.model = func(prompt string) string { return obedient(prompt) + strings.Repeat(" and so on", 40_000) } // 80,000 tokens or so
		w.say(long(bought(0, 20))...)
		w.pass(noon.AddDate(0, 0, 1))
		r := w.last()
		if r.State != dream.Done || r.Tokens < 150_000 || r.Calls > 3 || r.Failure == "" {
			w.Errorf("the first night: %+v", r)
		}
		if _, err := w.start(dream.Order{Force: true}); !fault.Is(err, fault.Conflict) {
			w.Errorf("another run on this day: %v", err)
		}
		w.model = obedient
		if w.pass(noon.AddDate(0, 0, 2)); len(w.lines("user.md")) != 20 {
			w.Errorf("the next night: %+v, %d lines", w.last(), len(w.lines("user.md")))
		}
	})
}

func TestARunThatTheProcessDiesOfHasFailed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.say(bought(0, 3)...)
		_, err := w.start(dream.Order{Force: true})
		w.must(err)
		for attempt := 1; ; attempt++ {
			if attempt > 10 {
				w.Fatal("it never ends")
			}
			j := w.claim()
			if j == nil {
				break
			}
			dies := mortalOf(w.db, &storetest.Life{Ends: 8}) // after it has asked
			if err := w.service(dies).Kinds()[0].Run(w.Context(), j); err == nil {
				break
			}
			w.clock.Add(2 * time.Minute) // its lease ends
			w.must(w.db.RecoverJobs(w.Context(), map[string]int{dream.JobDream: w.dreams.Kinds()[0].Attempts}, ""))
		}
		r := w.last()
		if r.State != dream.Failed || r.FinishedAt == nil || r.Failure == "" {
			w.Errorf("the run: %+v", r)
		}
		w.must(w.db.Dreams().View(w.Context(), w.user, func(tx dream.Tx) error {
			open, _, err := tx.Memory.Jobs.Jobs(jobs.Filter{Kind: dream.JobDream, Open: true}, "", 5)
			if len(open) > 0 {
				w.Errorf("the job is open: %+v", open[0])
			}
			return err
		}))
		_, err = w.start(dream.Order{Force: true})
		w.must(err)
		w.must(w.work(w.db.Dreams()))
		if r := w.last(); r.State != dream.Done {
			w.Errorf("the next run: %+v", r)
		}
	})
}
