package lang_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/memory/lang"
)

var people = lang.Names{User: "Ann", Character: "Captain Reed"}

// asked is a Wednesday.
var asked = time.Date(2023, 5, 10, 12, 0, 0, 0, time.UTC)

func TestReadQueryKnowsWhoIsMeant(t *testing.T) {
	for query, want := range map[string][]lang.Role{
		"What did Ann paint?":               {lang.RoleUser},
		"what is captain reed's ship?":      {lang.RoleCharacter},
		"Does the Captain like tea?":        {lang.RoleCharacter},
		"Did Ann meet Captain Reed?":        {lang.RoleUser, lang.RoleCharacter},
		"Where did I leave my keys?":        {lang.RoleUser},
		"What is your name?":                {lang.RoleCharacter},
		"我喜欢什么茶？":                           {lang.RoleUser},
		"你答应过什么？":                           {lang.RoleCharacter},
		"你给我推荐了哪些书？":                        {lang.RoleUser, lang.RoleCharacter},
		"What happened at the annual fair?": nil,
	} {
		if got := lang.ReadQuery(query, people, asked).Speakers; !slices.Equal(got, want) {
			t.Errorf("%q means %q, want %q", query, got, want)
		}
	}
}

func TestReadQueryKnowsWhatIsSought(t *testing.T) {
	for query, want := range map[string]lang.Sought{
		"When did we sail?": lang.SeekTime, "我们什么时候出发？": lang.SeekTime, "How long was the trip?": lang.SeekTime,
		"How many cats are there?": lang.SeekNumber, "我有几个妹妹？": lang.SeekNumber, "Where is the map?": lang.SeekPlace, "我家在哪里？": lang.SeekPlace,
		"What is the name of the ship?": lang.SeekName, "那本书叫什么？": lang.SeekName, "Tell me about tea": lang.SeekAny, "whenever": lang.SeekAny,
	} {
		if got := lang.ReadQuery(query, people, asked).Sought; got != want {
			t.Errorf("%q seeks %d, want %d", query, got, want)
		}
	}
}

func TestReadQueryKnowsDays(t *testing.T) {
	span := func(from, until string) string { return from + ".." + until }
	for query, want := range map[string]string{
		"what did we do on May 4th?": "0-5-4", "on 4 May, 2023": "2023-5-4", "August 9, 2022": "2022-8-9", "on the 21st of June": "0-6-21",
		"2023-05-04 please": "2023-5-4", "在5月2号聊了什么": "0-5-2", "2023年5月4日": "2023-5-4", "2023年5月": "2023-5-0", "in June 2023": "2023-6-0",
		"in July": "0-7-0", "in 2021": "2021-0-0", "yesterday": span("05-09", "05-10"), "昨天": span("05-09", "05-10"),
		"last week": span("05-01", "05-08"), "上周": span("05-01", "05-08"), "this week": span("05-08", "05-15"), "上个月": span("04-01", "05-01"),
		"昨日何をした": span("05-09", "05-10"), "어제 뭐 했어": span("05-09", "05-10"), "先週の話": span("05-01", "05-08"), "지난주에": span("05-01", "05-08"),
		"三日前に何をした": span("05-07", "05-08"), "2週間前": span("04-24", "04-29"), "先週の月曜日に": span("05-01", "05-02"), "先週末": span("05-06", "05-08"),
		"先々週": span("04-24", "05-01"), "昨晩": span("05-09", "05-10"), "上上周": span("04-24", "05-01"),
		"3일 전에 뭐 했어": span("05-07", "05-08"), "사흘 전": span("05-07", "05-08"), "일주일 전에": span("05-01", "05-06"), "지난주 금요일에": span("05-05", "05-06"),
		"지난 주말": span("05-06", "05-08"), "지지난주": span("04-24", "05-01"), "어젯밤": span("05-09", "05-10"), "그제": span("05-08", "05-09"),
		"what did I do on Monday": span("05-08", "05-09"), "周一我做了什么": span("05-08", "05-09"), "月曜日に何を": span("05-08", "05-09"), "월요일에 뭐 했지": span("05-08", "05-09"),
		"on Wednesday": span("05-03", "05-04"), "next Monday": span("05-15", "05-16"), "every Monday": "",
		"上周一": span("05-01", "05-02"), "上上周五": span("04-28", "04-29"), "这周二": span("05-09", "05-10"), "下个星期天": span("05-21", "05-22"), "on Tuesday of last week": span("05-02", "05-03"),
		"last week on Sunday": span("05-07", "05-08"), "last Saturday": span("05-06", "05-07"), "last weekend": span("05-06", "05-08"), "上周末": span("05-06", "05-08"),
		"four days ago": span("05-06", "05-07"), "六天前": span("05-04", "05-05"), "a week ago": span("05-01", "05-06"), "两个月前": span("02-28", "03-21"),
		"the day before yesterday": span("05-08", "05-09"), "大前天": span("05-07", "05-08"), "this morning": span("05-10", "05-11"),
		"十一月二十三日": "0-11-23", "二零二二年三月": "2022-3-0", "十月": "0-10-0", "the twenty-first of June": "0-6-21", "on March the third": "0-3-3", "一月三日": "0-1-3", "三个月": "",
		"5월 4일에": "0-5-4", "2023년 5월": "2023-5-0",
		"I may come": "", "march on": "", "at 3 o'clock": "", "13月40号": "", "version 1.2.3": "",
	} {
		var got []string
		for _, d := range lang.ReadQuery(query, people, asked).Days {
			if d.From.IsZero() {
				got = append(got, fmt.Sprintf("%d-%d-%d", d.Year, d.Month, d.Day))
			} else {
				got = append(got, span(d.From.Format("01-02"), d.Until.Format("01-02")))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q names %v, want %q", query, got, want)
		}
	}
	for query, want := range map[string]int{"去年夏天": 2022, "我前年去哪了": 2021, "一昨年の夏": 2021, "昨年の夏": 2022, "재작년 여름": 2021, "작년 여름": 2022} {
		if days := lang.ReadQuery(query, people, asked).Days; len(days) != 1 || days[0].From.Year() != want {
			t.Errorf("%q names %v, want the year %d", query, days, want)
		}
	}
	if days := lang.ReadQuery("我目前年龄多大", people, asked).Days; len(days) > 0 {
		t.Errorf("目前年龄 names %v", days)
	}
}

func TestDaysFit(t *testing.T) {
	day := func(s string) time.Time {
		at, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	may4 := lang.Days{Month: 5, Day: 4}
	if f := may4.Fit(day("2023-05-04 23:59")); f != 1 {
		t.Errorf("the day itself: %v", f)
	}
	if f := may4.Fit(day("2023-05-05 09:00")); f <= 0 || f >= 1 {
		t.Errorf("the day after: %v", f)
	}
	if f := (lang.Days{Month: 12, Day: 31}).Fit(day("2024-01-01 09:00")); f <= 0 {
		t.Errorf("the day after the end of the year: %v", f)
	}
	for _, at := range []string{"2023-05-03 23:59", "2023-05-20 12:00", "2023-06-04 12:00"} {
		if f := may4.Fit(day(at)); f != 0 {
			t.Errorf("%s: %v", at, f)
		}
	}
	if m, d := (lang.Days{Month: 5}).Fit(day("2023-05-20 12:00")), may4.Fit(day("2023-05-04 12:00")); m <= 0 || m >= d {
		t.Errorf("a month fits %v, a day %v", m, d)
	}
}

func TestNamesAreNotSearchedFor(t *testing.T) {
	var terms []string
	for _, term := range lang.ReadQuery("What does Ann tell Captain Reed about lighthouses?", people, asked).Terms {
		terms = append(terms, term.Text)
	}
	if want := []string{"tell", "lighthous"}; !slices.Equal(terms, want) {
		t.Errorf("terms %v, want %v", terms, want)
	}
}

func FuzzReadQuery(f *testing.F) {
	for _, s := range []string{"on May 4th, 2023", "在5月2号 last week", "9999年99月99日", "İ’s 0000-00-00", "\xff may 31"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := lang.ReadQuery(text, people, asked)
		for _, d := range q.Days {
			if f := d.Fit(asked); f < 0 || f > 1 {
				t.Errorf("%q: %+v fits %v", text, d, f)
			}
		}
		for _, term := range q.Terms {
			if term.Weight <= 0 || term.Text == "" {
				t.Errorf("%q: term %+v", text, term)
			}
		}
	})
}

func TestDaysOfEveryYearFitTheFirstYear(t *testing.T) {
	days := lang.ReadQuery("what happened in may", lang.Names{}, asked).Days
	for year, want := range map[int]float32{1: 0.6, 2022: 0.6} {
		if got := days[0].Fit(time.Date(year, 5, 9, 1, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("year %d fits %v, want %v", year, got, want)
		}
	}
}

// "Before we met" is a time, and nothing that is looked for.
func TestBeforeWeMetAsksForHowThingsWere(t *testing.T) {
	for query, without := range map[string]string{
		"Which band did I play in before we met?": "Which band did I play in?", "Before I knew you, who cut my hair?": "who cut my hair?",
		"我们认识之前我养过什么鸟？": "，我养过什么鸟？", "¿En qué banda tocaba antes de conocernos?": "¿En qué banda tocaba?",
		"In welcher Band war ich, bevor wir uns kennengelernt haben?": "In welcher Band war ich, ?",
		"知り合う前、僕はどの楽団にいた？":                                            "、僕はどの楽団にいた？", "우리가 만나기 전에 나는 어느 악단에 있었지": ", 나는 어느 악단에 있었지",
	} {
		got, want := lang.ReadQuery(query, people, asked), lang.ReadQuery(without, people, asked)
		if !got.Past || !slices.Equal(got.Terms, want.Terms) {
			t.Errorf("%q asks for %v (past: %v), want %v", query, got.Terms, got.Past, want.Terms)
		}
	}
	for query, silent := range map[string]bool{"What did I do before we met?": false, "我们认识之前我做过什么？": false, "What did I do?": true, "我做过什么？": true} {
		q := lang.ReadQuery(query, people, asked)
		if q.Silent() != silent {
			t.Errorf("%q recalls nothing: %v", query, q.Silent())
		}
	}
}
