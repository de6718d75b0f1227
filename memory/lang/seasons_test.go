package lang

import (
	"testing"
	"time"
)

func TestDaysOfTheChineseCalendar(t *testing.T) {
	for _, c := range []struct {
		year, month, day int
		want             string
	}{
		{2015, 1, 1, "2015-02-19"}, {2017, 1, 1, "2017-01-28"}, {2020, 1, 1, "2020-01-25"}, {2021, 1, 1, "2021-02-12"}, {2022, 1, 1, "2022-02-01"}, {2023, 1, 1, "2023-01-22"}, {2024, 1, 1, "2024-02-10"},
		{2025, 1, 1, "2025-01-29"}, {2026, 1, 1, "2026-02-17"}, {2027, 1, 1, "2027-02-06"}, {2028, 1, 1, "2028-01-26"}, {2029, 1, 1, "2029-02-13"}, {2030, 1, 1, "2030-02-03"}, {2033, 1, 1, "2033-01-31"}, {2034, 1, 1, "2034-02-19"},
		{2020, 8, 15, "2020-10-01"}, {2021, 8, 15, "2021-09-21"}, {2022, 8, 15, "2022-09-10"}, {2023, 8, 15, "2023-09-29"}, {2024, 8, 15, "2024-09-17"}, {2025, 8, 15, "2025-10-06"}, {2026, 8, 15, "2026-09-25"}, {2033, 8, 15, "2033-09-08"},
		{2020, 5, 5, "2020-06-25"}, {2023, 5, 5, "2023-06-22"}, {2024, 5, 5, "2024-06-10"}, {2025, 5, 5, "2025-05-31"}, {2026, 5, 5, "2026-06-19"},
		{2026, 1, 15, "2026-03-03"}, {2025, 7, 7, "2025-08-29"}, {2025, 9, 9, "2025-10-29"},
	} {
		if got := lunarDay(c.year, c.month, c.day).Format(time.DateOnly); got != c.want {
			t.Errorf("%d-%d of the year %d is %s, want %s", c.month, c.day, c.year, got, c.want)
		}
	}
}

func TestEaster(t *testing.T) {
	for year, want := range map[int]string{2000: "04-23", 2008: "03-23", 2011: "04-24", 2019: "04-21", 2024: "03-31", 2025: "04-20", 2026: "04-05", 2038: "04-25"} {
		if got := easter(year).Format("01-02"); got != want {
			t.Errorf("%d: %s, want %s", year, got, want)
		}
	}
}

// A question names seasons and feasts, those of a year or the last ones.
func TestPartsOfTheYear(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"what did i get for christmas?": "2025-12-24..2025-12-27", "where were we at Easter?": "2026-04-03..2026-04-07", "on Halloween": "2026-10-31..2026-11-01", "on thanksgiving, who came?": "2026-11-26..2026-11-30",
		"where did we go last summer?": "2026-06-01..2026-09-01 2025-06-01..2025-09-01", "in the summer of 2023": "2023-06-01..2023-09-01", "what did I do last year at Christmas": "2025-12-24..2025-12-27",
		"what was a year ago today?": "2025-11-28..2025-11-29", "exactly a year ago": "2025-11-28..2025-11-29",
		"去年夏天去了哪": "2025-06-01..2025-09-01", "春节吃了什么": "2026-02-16..2026-02-24", "去年中秋在哪": "2025-10-06..2025-10-07", "去年的今天我在哪": "2025-11-28..2025-11-29", "2024年除夕": "2024-02-09..2024-02-10", "国庆去哪了": "2026-10-01..2026-10-08",
		"¿qué me regalaron en Navidad?": "2025-12-24..2025-12-27", "¿adónde fuimos el verano pasado?": "2026-06-01..2026-09-01 2025-06-01..2025-09-01", "¿qué hay la semana que viene?": "2026-11-30..2026-12-07",
		"Was bekam ich zu Weihnachten?": "2025-12-24..2025-12-27", "Wo waren wir letzten Sommer?": "2026-06-01..2026-09-01 2025-06-01..2025-09-01", "im Märzen": "",
		"お正月に何をした？": "2026-01-01..2026-01-08", "去年の夏はどこへ行った？": "2025-06-01..2025-09-01", "来週の予定は？": "2026-11-30..2026-12-07",
		"what's on next week?": "2026-11-30..2026-12-07", "下周有安排吗": "2026-11-30..2026-12-07", "summer dress": "", "he sprang": "",
	} {
		got := ""
		for _, d := range ReadQuery(text, Names{}, now).Days {
			got += " " + d.From.Format(time.DateOnly) + ".." + d.Until.Format(time.DateOnly)
		}
		if got != "" && got[1:] != want || got == "" && want != "" {
			t.Errorf("%q names%s, want %s", text, got, want)
		}
	}
	if days := ReadQuery("what happened last year in August?", Names{}, now).Days; len(days) != 1 || days[0] != (Days{Year: 2025, Month: 8}) {
		t.Errorf("August of last year is %v", days)
	}
}
