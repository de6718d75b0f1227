package lang

import (
	"testing"
	"time"
	_ "time/tzdata"
)

// TestDaysWhereMidnightIsLeftOut tells and asks of days on which a zone has no midnight.
func TestDaysWhereMidnightIsLeftOut(t *testing.T) {
	for name, now := range map[string]string{"America/Santiago": "2026-09-07 10:00", "America/Havana": "2026-03-09 10:00", "Asia/Shanghai": "2026-09-07 10:00"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := time.ParseInLocation("2006-01-02 15:04", now, zone)
		if err != nil {
			t.Fatal(err)
		}
		want := asked.AddDate(0, 0, -1).Format(time.DateOnly)
		day, ok := EventTime("I met Anna yesterday.", asked)
		if got := day.UTC().Format(time.DateOnly); !ok || got != want {
			t.Errorf("%s: yesterday is stored as %s, want %s", name, got, want)
		}
		if got := LocalTime(day, zone).Format(time.DateOnly); got != want {
			t.Errorf("%s: the day is shown as %s, want %s", name, got, want)
		}
		for _, text := range []string{"What did I do yesterday?", "What did I do last weekend?", "What happened two days ago?", "Wen habe ich gestern getroffen?"} {
			read := ReadQuery(text, Names{}, asked)
			var fit float32
			for _, d := range read.Days {
				fit = max(fit, d.Fit(LocalTime(day, zone)))
			}
			if full := text != "What happened two days ago?"; len(read.Days) == 0 || (fit == 1) != full {
				t.Errorf("%s: %s fits %v by %v", name, text, read.Days, fit)
			}
		}
	}
}
