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
