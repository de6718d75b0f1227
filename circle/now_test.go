package circle_test

import (
	"testing"
	"time"

	"nodest/circle"
	"nodest/circle/rules"
)

func TestAPlannedReactionComesNowInQuietHoursToo(t *testing.T) {
	t.Parallel()
	f, _ := everybody(t, 2)
	f.settings(func(s *circle.Settings) { s.Everybody, s.QuietFrom, s.QuietUntil = true, "11:00", "20:00" })
	f.says(func(string) string { return comment("At once") })
	p := f.post("Who is awake?")
	f.pass(time.Second)
	planned := f.turns(circle.TurnFilter{PostID: p.ID, State: circle.TurnPlanned})
	if len(planned) != 2 || len(f.thread(p.ID)) != 0 {
		t.Fatalf("planned %+v", planned)
	}
	if _, err := f.svc.Retry(t.Context(), f.call(), planned[0].ID); err != nil {
		t.Fatal(err)
	}
	f.pass(time.Minute)
	done := f.turns(circle.TurnFilter{PostID: p.ID, State: circle.TurnDone})
	if len(done) != 1 || done[0].ID != planned[0].ID || done[0].Reason != rules.AskedFor || len(f.thread(p.ID)) != 1 {
		t.Errorf("done %+v", done)
	}
}

func TestReactionsAreQuickOnTheFirstDayUntilSettingsAreSaved(t *testing.T) {
	t.Parallel()
	quick := func(f *fixture) bool {
		p := f.post("I baked bread, Bea")
		f.pass(time.Second)
		turns := f.turns(circle.TurnFilter{PostID: p.ID})
		if len(turns) != 1 {
			t.Fatalf("turns %+v", turns)
		}
		id, at := turns[0].CharacterID, turns[0].CreatedAt
		quiet := rules.QuietHours("23:00", "07:00")
		wait := rules.HabitOf(id).Quick().Delay(rules.Seed(id, p.ID, ""), at, quiet, turns[0].Reason, true)
		return turns[0].DueAt.Equal(at.Add(wait).Truncate(time.Millisecond))
	}
	f := newFixture(t)
	f.member("Bea")
	for range 2 {
		if !quick(f) {
			t.Error("reactions are slow on the first day")
		}
	}
	f.pass(25 * time.Hour)
	if quick(f) {
		t.Error("reactions are quick on the second day")
	}
	f = newFixture(t)
	f.member("Bea")
	f.settings(func(*circle.Settings) {})
	if quick(f) {
		t.Error("reactions are quick though the settings were saved")
	}
}
