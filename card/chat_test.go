package card_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nodest/card"
	"nodest/internal/fault"
)

func mustChat(t *testing.T, file string) *card.Chat {
	t.Helper()
	chat, err := card.ImportChat([]byte(file), card.ChatNames{User: "Bob", Character: "Ada"}, card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return chat
}

func mustLines(t *testing.T, chat *card.Chat) []string {
	t.Helper()
	file := exportChat(chat)
	return strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
}

const someChat = `{"chat_metadata":{"variables":{"x":1}},"user_name":"unused","character_name":"unused","create_date":"old"}

{"name":"Ada","is_user":false,"is_system":false,"send_date":"2025-03-14T09:00:00.000Z","mes":"two","extra":{"reasoning":"r"},"swipe_id":1,"swipes":["one","two",null],"swipe_info":[{"send_date":"2025-03-14T09:00:01.000Z","extra":{"model":"m","api":"a"}}],"mine":[1]}
{"name":"Bob","is_user":true,"mes":"hi","send_date":1700000000000}
{"name":"X","is_user":false,"is_system":true,"mes":"told","extra":{"type":"narrator"}}
{"name":"X","is_user":false,"is_system":true,"mes":"note","extra":{"type":"comment"}}
{"name":"Ada","is_user":false,"is_system":true,"mes":"hidden","extra":{}}
`

func TestChatReadsSwipesRolesAndDates(t *testing.T) {
	chat := mustChat(t, someChat)
	if len(chat.Messages) != 5 || chat.UserName != "Bob" || chat.CharacterName != "Ada" || at(t, chat.Metadata, "variables", "x") != 1.0 {
		t.Fatalf("%+v", chat)
	}
	m := chat.Messages[0]
	if m.Role != "assistant" || m.Text != "two" || m.Reasoning != "r" || m.Swipe != 1 || len(m.Swipes) != 3 || m.Swipes[0].Model != "m" ||
		m.Swipes[0].SentAt.Second() != 1 || m.Swipes[2].Text != "" {
		t.Errorf("%+v", m)
	}
	var roles []string
	for _, m := range chat.Messages {
		roles = append(roles, fmt.Sprint(m.Role, m.Hidden))
	}
	if got := strings.Join(roles, " "); got != "assistantfalse userfalse narratortrue systemtrue assistanttrue" {
		t.Errorf("roles %s", got)
	}
	if !chat.Messages[1].SentAt.Equal(time.UnixMilli(1700000000000)) {
		t.Errorf("date %v", chat.Messages[1].SentAt)
	}
}

func TestChatExportKeepsUntouchedLines(t *testing.T) {
	got := strings.Join(mustLines(t, mustChat(t, someChat)), "\n") + "\n"
	if want := strings.Replace(someChat, "\n\n", "\n", 1); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestChatExportWritesEditsAndKeepsTheRest(t *testing.T) {
	chat := mustChat(t, someChat)
	m := &chat.Messages[0]
	m.Swipes = append(m.Swipes, card.ChatSwipe{Text: "four", Model: "n", Reasoning: "q", SentAt: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)})
	m.Swipe, m.Text, m.Reasoning = 3, "four", "q"
	chat.Metadata = json.RawMessage(`{"edited":true}`)
	lines := mustLines(t, chat)

	if at(t, []byte(lines[0]), "chat_metadata", "edited") != true || at(t, []byte(lines[0]), "create_date") != "old" {
		t.Errorf("header %s", lines[0])
	}
	line := []byte(lines[1])
	infos := at(t, line, "swipe_info").([]any)
	if at(t, line, "mes") != "four" || at(t, line, "swipe_id") != 3.0 || at(t, line, "extra", "reasoning") != "q" || fmt.Sprint(at(t, line, "mine")) != "[1]" ||
		len(infos) != 4 || fmt.Sprint(infos[0]) != "map[extra:map[api:a model:m] send_date:2025-03-14T09:00:01.000Z]" ||
		fmt.Sprint(infos[3]) != "map[extra:map[model:n reasoning:q] send_date:2026-01-02T03:04:05.006Z]" {
		t.Errorf("line %s", line)
	}
	again := mustChat(t, strings.Join(lines, "\n"))
	if got := again.Messages[0]; got.Text != "four" || len(got.Swipes) != 4 || got.Swipes[3].Reasoning != "q" {
		t.Errorf("%+v", got)
	}
}

func TestANodeSTChatRoundTrips(t *testing.T) {
	at := time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)
	chat := &card.Chat{UserName: "Bob", CharacterName: "Ada", Messages: []card.ChatMessage{
		{Role: "assistant", Name: "Ada", Text: "b", Swipe: 1, SentAt: at, Swipes: []card.ChatSwipe{{Text: "a", SentAt: at}, {Text: "b", SentAt: at, Model: "m"}}},
		{Role: "user", Name: "Bob", Text: "hi <&> \u2028", SentAt: at, Swipes: []card.ChatSwipe{{Text: "hi <&> \u2028", SentAt: at}}},
		{Role: "narrator", Name: "N", Text: "it rains", Swipes: []card.ChatSwipe{{Text: "it rains"}}},
		{Role: "system", Name: "S", Text: "note", Hidden: true, Swipes: []card.ChatSwipe{{Text: "note"}}},
	}}
	again := mustChat(t, strings.Join(mustLines(t, chat), "\n"))
	again.Header, again.Metadata, again.Warnings = nil, nil, nil
	for i := range again.Messages {
		again.Messages[i].Raw = nil
		for j := range again.Messages[i].Swipes {
			again.Messages[i].Swipes[j].Raw = nil
		}
	}
	if diff := cmp.Diff(chat, again, rawAsText); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}

func TestForeignChats(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"oobabooga":        {`{"data_visible":[["","A1"],["B1","A2"],["B2",""]]}`, "Ada:A1 Bob:B1 Ada:A2 Bob:B2"},
		"oobabooga, newer": {`{"internal":[],"visible":[["B1","A1"]]}`, "Bob:B1 Ada:A1"},
		"Agnai":            {`{"messages":[{"msg":"A1","characterId":"c"},{"msg":"B1","userId":"u"},{"msg":"A2","userId":null}]}`, "Ada:A1 Bob:B1 Ada:A2"},
		"CAI Tools": {`{"histories":{"histories":[{"msgs":[{"src":{"is_human":false},"text":"A1"},{"src":{"is_human":true},"text":"B1"},{"text":""}]},{"msgs":[]}]}}`,
			"Ada:A1 Bob:B1"},
		"Kobold Lite": {`{"savedsettings":{"chatname":"Me","chatopponent":"Her||$||It"},"prompt":"A1","actions":["\n{{[INPUT]}}\nB1\n{{[OUTPUT]}}\n","A2"]}`,
			"Her:A1 Me:B1 Her:A2"},
		"Risu": {`{"type":"risuChat","ver":1,"data":{"message":[{"role":"char","data":"A1","time":1700000000000},{"role":"user","data":"B1","name":"Z"}]}}`, "Ada:A1 Z:B1"},
	} {
		t.Run(name, func(t *testing.T) {
			chat := mustChat(t, c.file)
			var got []string
			for _, m := range chat.Messages {
				got = append(got, m.Name+":"+m.Text)
				if (m.Role == "user") != strings.HasPrefix(m.Text, "B") {
					t.Errorf("%q has role %s", m.Text, m.Role)
				}
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
			said := slices.ContainsFunc(chat.Warnings, func(w card.Warning) bool { return w.Code == "first_only" })
			if (name == "CAI Tools") != said {
				t.Errorf("warnings %v", chat.Warnings)
			}
			if again := mustChat(t, strings.Join(mustLines(t, chat), "\n")); len(again.Messages) != len(chat.Messages) {
				t.Errorf("%d messages after the round trip", len(again.Messages))
			}
		})
	}
}

func TestChatDates(t *testing.T) {
	t.Parallel()
	want := time.Date(2024, 4, 26, 18, 7, 0, 0, time.UTC)
	for _, date := range []string{
		`"2024-04-26T18:07:00.000Z"`, `"2024-04-26T20:07:00+02:00"`, `"2024-04-26T18:07:00"`, `"2024-04-26 18:07:00.000000"`, `"2024-04-26 18:07"`, `"2024/4/26 18:07:00"`,
		`"April 26, 2024 6:07pm"`, `"April 26, 2024 6:07 PM"`, `"Apr 26, 2024 6:07 p.m."`, `"26 April 2024 18:07"`, `"Friday, 26 April 2024 18:07"`,
		`"April 26th, 2024 at 6:07\u202fPM"`, `"Fri Apr 26 2024 20:07:00 GMT+0200 (Central European Summer Time)"`, `"Fri, 26 Apr 2024 18:07:00 GMT"`,
		`"4/26/2024, 6:07:00 PM"`, `"26/04/2024 18:07"`, `"26.4.2024, 18:07:00"`, `"26. April 2024 18:07"`, `"26 avril 2024 18:07"`, `"26 de abril de 2024 18:07"`,
		`"26 апреля 2024 г., 18:07"`, `"2024年4月26日 18:07"`, `"2024年4月26日 下午6:07"`, `"2024年4月26日18时07分"`, `"2024년 4월 26일 오후 6:07"`,
		`"2024-4-26 @18h 07m 00s 0ms"`, `"2024-4-26@18h07m00s"`, `"2024-4-26 @18h 07m"`,
		`1714154820000`, `"1714154820000"`, `1714154820`, `"1714154820"`, `1714154820.0`, `1714154820000000`,
	} {
		if got := mustChat(t, `{"mes":"x","send_date":`+date+`}`).Messages[0].SentAt; !got.Equal(want) {
			t.Errorf("%s: %v", date, got)
		}
	}
	for date, want := range map[string]time.Time{
		`"2023-6-19 @14h 20m 15s 123ms"`: time.Date(2023, 6, 19, 14, 20, 15, 123e6, time.UTC),
		`"Jun 19, 2023 2:20 PM"`:         time.Date(2023, 6, 19, 14, 20, 0, 0, time.UTC),
		`"June 19, 2023 12:05am"`:        time.Date(2023, 6, 19, 0, 5, 0, 0, time.UTC),
		`"June 19, 2023 12:05pm"`:        time.Date(2023, 6, 19, 12, 5, 0, 0, time.UTC),
		`"2023年6月19日 上午12:05"`:           time.Date(2023, 6, 19, 0, 5, 0, 0, time.UTC),
		`"2023-06-19"`:                   time.Date(2023, 6, 19, 0, 0, 0, 0, time.UTC),
		`1714111111`:                     time.Date(2024, 4, 26, 5, 58, 31, 0, time.UTC),
		`1714111111.5`:                   time.Date(2024, 4, 26, 5, 58, 31, 5e8, time.UTC),
	} {
		if got := mustChat(t, `{"mes":"x","send_date":`+date+`}`).Messages[0].SentAt; !got.Equal(want) {
			t.Errorf("%s: %v", date, got)
		}
	}
	for _, date := range []string{
		`null`, `"yesterday"`, `{}`, `[1714111111]`, `-5`, `0`, `5`, `1e300`, `"NaN"`, `""`, `" "`, `true`, `"18:07"`, `"26 April"`, `"April 2024"`, `"30 February 2024"`,
		`"2024-13-01"`, `"2024-04-26 25:00"`, `"0001-01-01T00:00:00Z"`, `"9999-01-01"`, `"Chapter 12 of 2024"`, `"` + strings.Repeat("1", 200) + `"`,
	} {
		if got := mustChat(t, `{"mes":"x","send_date":`+date+`}`).Messages[0].SentAt; !got.IsZero() {
			t.Errorf("%s: %v", date, got)
		}
	}
}

// A message without a readable date has the time of a neighbour, so that it stays where it is.
func TestMessagesWithoutADateTakeThatOfANeighbour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := func(n int) string { return fmt.Sprintf(`"2024-04-%02d"`, n) }
	for _, c := range []struct {
		header string
		dates  []string // "-": no member
		want   string   // days; "now"
		warn   string
	}{
		{``, []string{day(3), day(4)}, "3 4", ""},
		{``, []string{day(3), `""`, `"soon"`, day(9)}, "3 3 3 9", "in 2 of 4 messages"},
		{``, []string{`-`, `null`, day(5), `-`}, "5 5 5 5", "3 of 4 messages"},
		{``, []string{day(7), `-`, day(5), `-`}, "7 7 5 5", "2 of 4 messages"},
		{``, []string{`-`, `"soon"`}, "now now", "in any of 2 messages; they get the time of the import"},
		{day(2), []string{`-`, `""`}, "2 2", "in any of 2 messages; they get the date of the log"},
		{day(2), []string{`-`, day(6)}, "6 6", "1 of 2 messages"},
	} {
		file := ""
		if c.header != "" {
			file = `{"user_name":"u","character_name":"c","create_date":` + c.header + "}\n"
		}
		for _, date := range c.dates {
			if date == "-" {
				file += `{"mes":"x"}` + "\n"
			} else {
				file += `{"mes":"x","send_date":` + date + "}\n"
			}
		}
		chat := mustChat(t, file)
		var got []string
		for _, at := range chat.Times(now) {
			if at.Equal(now) {
				got = append(got, "now")
			} else {
				got = append(got, fmt.Sprint(at.Day()))
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s %v: %s, want %s", c.header, c.dates, s, c.want)
		}
		switch {
		case c.warn == "" && len(chat.Warnings) == 0:
		case len(chat.Warnings) != 1 || chat.Warnings[0].Code != "unreadable_date" || !strings.Contains(chat.Warnings[0].Detail, c.warn):
			t.Errorf("%s %v: warnings %v, want %q", c.header, c.dates, chat.Warnings, c.warn)
		}
	}
}

func TestChatRefuses(t *testing.T) {
	header := `{"chat_metadata":{}}` + "\n"
	for name, c := range map[string]struct {
		file  string
		code  fault.Code
		words string
	}{
		"nothing":          {" \n", fault.InvalidImport, "empty"},
		"plain text":       {"hello", fault.InvalidImport, "line 1"},
		"a cut line":       {header + `{"mes":"x"`, fault.InvalidImport, "line 2"},
		"a second header":  {header + header, fault.InvalidImport, "line 2 is a second header"},
		"a foreign line":   {header + `{"x":1}`, fault.InvalidImport, "line 2"},
		"a card":           {simpleV2, fault.InvalidImport, "unknown chat log format"},
		"an array":         {`[1]`, fault.InvalidImport, "one JSON object"},
		"a deep line":      {header + `{"mes":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, fault.InvalidImport, "line 2"},
		"too many":         {strings.Repeat("{\"mes\":\"\"}\n", 6), fault.TooLarge, "more than 5"},
		"too many foreign": {`{"messages":[` + strings.Repeat(`{"msg":"x"},`, 5) + `{"msg":"x"}]}`, fault.TooLarge, "more than 5"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := card.ImportChat([]byte(c.file), card.ChatNames{}, card.Limits{Messages: 5})
			wantCode(t, err, c.code, c.words)
		})
	}
}
