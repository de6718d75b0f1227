package civil

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func TestStartOfADay(t *testing.T) {
	for _, c := range []struct{ name, zone, day, want string }{
		{"midnight", "Europe/Berlin", "2026-03-29", "2026-03-29T00:00:00+01:00"},
		{"midnight is left out", "America/Santiago", "2026-09-06", "2026-09-06T01:00:00-03:00"},
		{"midnight is left out", "America/Havana", "2026-03-08", "2026-03-08T01:00:00-04:00"},
		{"midnight comes twice", "America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00"},
		{"the hour before midnight comes twice", "America/Santiago", "2026-04-05", "2026-04-05T00:00:00-04:00"},
		{"the day is left out", "Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		day, err := time.Parse(time.DateOnly, c.day)
		if err != nil {
			t.Fatal(err)
		}
		if got := Start(day, zone).Format(time.RFC3339); got != c.want {
			t.Errorf("%s, %s: %s begins at %s, want %s", c.name, c.zone, c.day, got, c.want)
		}
	}
}

// TestStartInEveryZone counts the days of twelve years: each begins where the one before ends, and shows its date.
func TestStartInEveryZone(t *testing.T) {
	for _, name := range []string{
		"America/Santiago", "America/Havana", "America/Sao_Paulo", "America/Asuncion", "Africa/Cairo", "Asia/Beirut", "Asia/Amman",
		"Asia/Tehran", "Asia/Gaza", "Atlantic/Azores", "America/Scoresbysund", "Pacific/Apia", "Australia/Lord_Howe", "Europe/London", "UTC",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for day := time.Date(2008, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2020; day = day.AddDate(0, 0, 1) {
			start := Start(day, zone)
			if before := start.Add(-time.Nanosecond); before.Format(time.DateOnly) >= day.Format(time.DateOnly) {
				t.Fatalf("%s: %s has begun before %s", name, day.Format(time.DateOnly), start)
			}
			if got := start.Format(time.DateOnly); got != day.Format(time.DateOnly) && name != "Pacific/Apia" {
				t.Fatalf("%s: %s begins at %s", name, day.Format(time.DateOnly), start)
			}
		}
	}
}

func TestWall(t *testing.T) {
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 9, 5, 23, 59, 58, 7, zone)
	if got := Wall(at).Format(time.RFC3339Nano); got != "2026-09-05T23:59:58.000000007Z" {
		t.Error(got)
	}
}
