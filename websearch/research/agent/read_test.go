package agent

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestReadChoice(t *testing.T) {
	all := []string{actSearch, actVisit, actReflect, actAnswer}
	for _, tt := range []struct {
		promise, reply string
		want           choice
	}{
		{"the whole reply", `{"think":"t","action":"search","searchRequests":["a","b"]}`, choice{Action: actSearch, Think: "t", Queries: []string{"a", "b"}}},
		{"a fenced block behind thoughts", "<think>{}</think>Here:\n```json\n{\"action\":\"visit\",\"URLTargets\":[\"2\",3]}\n```", choice{Action: actVisit, Targets: []int{2, 3}}},
		{"members in an object of the action", `{"action":"reflect","reflect":{"questionsToAnswer":["q"]}}`, choice{Action: actReflect, Questions: []string{"q"}}},
		{"a lone string", `{"action":"Search","searchRequests":"a"}`, choice{Action: actSearch, Queries: []string{"a"}}},
		{"objects as queries", `{"action":"search","searchRequests":[{"q":"a"},{"question":"b"}]}`, choice{Action: actSearch, Queries: []string{"a", "b"}}},
		{"an action without a name", `{"answer":"It is so."}`, choice{Action: actAnswer, Answer: "It is so."}},
		{"a reply that breaks off", `{"think":"t","action":"answer","answer":"It is so, because`, choice{Action: actAnswer, Think: "t", Answer: "It is so, because"}},
		{"line breaks in strings, and a comma too many", "{\"action\":\"answer\",\"answer\":\"a\nb\",}", choice{Action: actAnswer, Answer: "a\nb"}},
		{"more than may be asked for", `{"action":"reflect","questionsToAnswer":["a","b","c","d"]}`, choice{Action: actReflect, Questions: []string{"a", "b"}}},
	} {
		c, err := readChoice(tt.reply, all)
		if err != nil || !reflect.DeepEqual(*c, tt.want) {
			t.Errorf("%s: %+v, %v; want %+v", tt.promise, c, err, tt.want)
		}
	}
	for _, bad := range []string{"", "no", "[]", "null", `{"action":"fly"}`, `{"action":"search"}`, `{"action":"answer","answer":7e}`, `{"action":["answer"]}`} {
		if c, err := readChoice(bad, all); err == nil {
			t.Errorf("%q is read as %+v", bad, c)
		}
	}
	if _, err := readChoice(`{"action":"answer","answer":"x"}`, []string{actSearch, actVisit}); err == nil || !strings.Contains(err.Error(), "search, visit") {
		t.Errorf("an action that is not allowed: %v", err)
	}
}

func TestReadVerdict(t *testing.T) {
	for _, tt := range []struct {
		kind, reply string
		pass        bool
	}{
		{checkDefinitive, `{"pass":true}`, true},
		{checkDefinitive, `{"pass":"no"}`, false},
		{checkFreshness, `{"pass":true,"freshness_analysis":{"days_ago":40,"max_age_days":"30"}}`, false},
		{checkFreshness, `{"pass":false,"freshness_analysis":{"days_ago":0.05,"max_age_days":0.1}}`, true},
		{checkPlurality, `{"pass":true,"plurality_analysis":{"minimum_count_required":5,"actual_count_provided":4}}`, false},
		{checkPlurality, `{"pass":true,"plurality_analysis":"many"}`, true},
	} {
		if v, err := readVerdict(tt.reply, tt.kind); err != nil || v.pass != tt.pass {
			t.Errorf("%s of %s is %v, %v", tt.kind, tt.reply, v, err)
		}
	}
	if _, err := readVerdict(`{"think":"hm"}`, checkStrict); err == nil {
		t.Error("a check that says neither yes nor no passes as one")
	}
}

func TestChecksWithoutTheModel(t *testing.T) {
	m := &member{run: &run{words: promptsEnglish()}}
	m.begun.Now = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		kind, question, answer string
		known                  []Knowledge
		fails                  bool
	}{
		{checkDefinitive, bridge, "I don't know when it was opened.", nil, true},
		{checkDefinitive, bridge, "It was opened in 1931 [^1].", nil, false},
		{checkDefinitive, bridge, "Nobody could know then. " + strings.Repeat("The records of the town were lost in a fire, and the works took nine years. ", 4), nil, false},
		{checkPlurality, "Name five bridges of Arven", "- One\n- Two\n- Three", nil, true},
		{checkPlurality, "Name three bridges of Arven", "- One\n- Two\n- Three", nil, false},
		{checkPlurality, "请列出三座桥", "1. 一\n2. 二", nil, true},
		{checkFreshness, "What is the latest price?", "It is 5.", []Knowledge{{Kind: KindPage, Updated: "2020-01-02 00:00:00"}}, true},
		{checkFreshness, "What is the latest price?", "It is 5.", []Knowledge{{Kind: KindPage, Updated: "2026-11-02 00:00:00"}}, false},
		{checkFreshness, "What is the latest price?", "It is 5.", nil, false},
	} {
		m.question, m.candidate, m.known = tt.question, tt.answer, tt.known
		if why := m.precheck(tt.kind); (why != "") != tt.fails {
			t.Errorf("%s of %q to %q: %q", tt.kind, tt.answer, tt.question, why)
		}
	}
}

// Whatever a model writes is read without a panic, and what is taken from it is bounded.
func FuzzReplies(f *testing.F) {
	for _, s := range []string{
		search1, visit1, answer1, reflect1, rejecting, `{"queries":[{"q":"a","tbs":"qdr:y","location":7},"b"]}`,
		`{"clusters":[{"question":"q","insight":"i","urls":["https://a.org"]}]}`, "{\"a\":\"\\", "{[}", "{\"a\":{\"b\":[{", `{"a":1,,}`, "```json\n{}\n```", "\ufeff{}", "<think>x</think>{\"action\":1}",
	} {
		f.Add(s)
	}
	all := []string{actSearch, actVisit, actReflect, actAnswer}
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := readChoice(s, all); err == nil {
			if len(c.Queries) > maxQueries || len(c.Questions) > maxQuestions || c.Action != actCode && !slices.Contains(all, c.Action) {
				t.Fatalf("%+v", c)
			}
			for _, q := range append(c.Queries, c.Questions...) {
				if !utf8.ValidString(q) || len([]rune(q)) > maxWords || strings.ContainsAny(q, "\n\r") {
					t.Fatalf("%q", q)
				}
			}
		}
		if qs := readQueries(s); len(qs) > maxQueries {
			t.Fatal(qs)
		}
		if cs := readClusters(s, func(string) bool { return true }); len(cs) > maxClusters {
			t.Fatal(cs)
		}
		_, _ = readVerdict(s, checkFreshness)
		_ = readChecks(s)
		_ = answerIn(s)
		if m := mend(s); json.Valid([]byte(s)) && strings.HasPrefix(strings.TrimSpace(s), "{") && !json.Valid([]byte(m)) {
			t.Fatalf("%q becomes %q", s, m)
		}
	})
}
