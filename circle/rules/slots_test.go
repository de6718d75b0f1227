package rules

import (
	"fmt"
	"testing"
	"time"
)

func names(slots []Slot) string {
	s := ""
	for _, slot := range slots {
		s += slot.Name + "=" + slot.At.Format("02T15:04Z07 ")
	}
	return s
}

func TestSlotsAtSetTimes(t *testing.T) {
	for _, test := range []struct {
		name, zone string
		day        [3]int
		times      []string
		want       string
	}{
		{"an ordinary day", "Europe/Berlin", [3]int{2026, 5, 12}, []string{"20:00", "08:30", "08:30", "25:00", "x"},
			"08:30=12T08:30+02 20:00=12T20:00+02 "},
		{"a time that clocks skip", "Europe/Berlin", [3]int{2026, 3, 29}, []string{"02:30", "03:00"}, "02:30=29T03:00+02 03:00=29T03:00+02 "},
		{"a time that comes twice", "Europe/Berlin", [3]int{2026, 10, 25}, []string{"02:30", "03:30"}, "02:30=25T02:30+02 03:30=25T03:30+01 "},
		{"the same in New York, skipped", "America/New_York", [3]int{2026, 3, 8}, []string{"02:15"}, "02:15=08T03:00-04 "},
		{"the same in New York, twice", "America/New_York", [3]int{2026, 11, 1}, []string{"01:15"}, "01:15=01T01:15-04 "},
		{"midnight that clocks skip", "Africa/Cairo", [3]int{2026, 4, 24}, []string{"00:00", "00:30"}, "00:00=24T01:00+03 00:30=24T01:00+03 "},
		{"half an hour", "Australia/Lord_Howe", [3]int{2026, 10, 4}, []string{"02:15"}, "02:15=04T02:30+11 "},
	} {
		t.Run(test.name, func(t *testing.T) {
			zone, err := time.LoadLocation(test.zone)
			if err != nil {
				t.Skip(err)
			}
			day := time.Date(test.day[0], time.Month(test.day[1]), test.day[2], 15, 0, 0, 0, zone)
			if got := names(Slots(day, test.times, 0, QuietHours("00:00", "23:59"), 1)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestSlotsByNumber(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	quiet := QuietHours("23:00", "07:00")
	var hours [24]int
	for seed := range uint64(2_000) {
		day := time.Date(2026, 3, 1+int(seed%60), 3, 0, 0, 0, zone)
		perDay := int(seed % 25)
		slots := Slots(day, []string{"08:00"}, perDay, quiet, seed)
		seen := map[string]bool{}
		for i, s := range slots {
			seen[s.Name] = true
			if s.At.In(zone).Format(time.DateOnly) != day.Format(time.DateOnly) || i > 0 && s.At.Before(slots[i-1].At) || !quiet.End(s.At).IsZero() {
				t.Fatalf("seed %d: %s", seed, names(slots))
			}
			if s.Name != "08:00" {
				hours[s.At.Hour()]++
			}
		}
		if len(slots) != perDay+1 || len(seen) != len(slots) || fmt.Sprint(slots) != fmt.Sprint(Slots(day, []string{"08:00"}, perDay, quiet, seed)) {
			t.Fatalf("seed %d: %s", seed, names(slots))
		}
	}
	t.Logf("by hour: %v", hours)
}

func TestSlotsWithoutQuietHours(t *testing.T) {
	if got := Slots(noon, nil, 24, Quiet{}, 7); len(got) != 24 {
		t.Errorf("%s", names(got))
	}
}
