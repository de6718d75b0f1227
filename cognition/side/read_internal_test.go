package side

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/cognition"
)

// twoQueries are of the messages 42 and 44, with the sources a and b, and c; another one of 44 has c, too.
func twoQueries() []*cognition.Event {
	query := func(ordinal, sequence int64, id string, sources ...string) *cognition.Event {
		q := &cognition.Query{Sequence: sequence, QueryID: id}
		for _, s := range sources {
			q.Sources = append(q.Sources, cognition.Source{ID: s})
		}
		e := cognition.New("c", q)
		e.Ordinal = ordinal
		return e
	}
	return []*cognition.Event{query(1, 42, "q1", "a", "b"), query(2, 44, "q2", "c"), query(3, 44, "q3", "c", "d")}
}

// said writes verdicts as the query, the source, and the status.
func said(found []*verdict) string {
	var all []string
	for _, v := range found {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s.%s %s %s", v.QueryID, v.KnowledgeID, v.Result.Status, v.Result.Reason), " "))
	}
	return strings.Join(all, ", ")
}

// one is a reply with assessments of message 42.
func one(assessments string) string {
	return `{"evaluations":[{"query_sequence":42,"assessments":[` + assessments + `]}]}`
}

const aHelped = `{"source_id":"a","status":"helpful","reason":"r"}`

// replies are what models answer, and the verdicts in it; "-" = it cannot be read.
var replies = []struct{ name, reply, want string }{
	{"plain", one(aHelped), "q1.a helpful r"},
	{"with the other names of the format", one(`{"knowledge_id":"a","eval_status":"harmful","reason":"r"}`), "q1.a harmful r"},
	{"with a nested result", one(`{"knowledge_id":"a","eval_result":{"status":"unused","reason":"r"}}`), "q1.a unused r"},
	{"fenced", "Here it is:\n```json\n" + one(aHelped) + "\n```\nAnything else?", "q1.a helpful r"},
	{"fenced without a tag", "```\n" + one(aHelped) + "```", "q1.a helpful r"},
	{"behind another block", "```json\n{\"note\":1}\n```\n```json\n" + one(aHelped) + "\n```", "q1.a helpful r"},
	{"within prose", "I think {that} it is " + one(aHelped) + ", as asked.", "q1.a helpful r"},
	{"behind thoughts", "<think>{\"evaluations\":[]}</think>\n" + one(aHelped), "q1.a helpful r"},
	{"behind a byte order mark", "\ufeff" + one(aHelped), "q1.a helpful r"},
	{"in another object", `{"result":` + one(aHelped) + `}`, "q1.a helpful r"},
	{"twice", one(aHelped) + "\n" + one(`{"source_id":"b","status":"neutral"}`), "q1.a helpful r"},
	{"with Chinese punctuation in the reason", "好的，评估如下：\n" + one(`{"source_id":"a","status":"helpful","reason":"“灯塔”，有用；"}`), "q1.a helpful “灯塔”，有用；"},
	{"with Chinese punctuation for the marks of JSON", `｛“evaluations”：［］｝`, "-"},
	{"truncated", one(aHelped)[:60], "-"},
	{"truncated in a fence", "```json\n" + one(aHelped)[:60] + "\n```", "-"},
	{"empty", "", "-"},
	{"prose", "I cannot judge that.", "-"},
	{"a list", "[" + aHelped + "]", "-"},
	{"null", `{"evaluations":null}`, ""},
	{"lone objects for lists", `{"evaluations":{"query_sequence":42,"assessments":` + aHelped + `}}`, "q1.a helpful r"},
	{"the sequence as a text", `{"evaluations":[{"query_sequence":"42","assessments":[` + aHelped + `]}]}`, "q1.a helpful r"},
	{"the status with a capital", one(`{"source_id":"a","status":" Helpful "}`), "q1.a helpful"},
	{"wrong types", `{"evaluations":[7,null,"x",[],{"query_sequence":{},"assessments":[` + aHelped + `]},{"query_sequence":42,"assessments":7},
		{"query_sequence":42,"assessments":[null,7,{"source_id":["a"],"status":"helpful"},{"source_id":"a","status":{}},{"source_id":"b","status":"neutral","reason":{}}]}]}`, "q1.b neutral"},
	{"unknown sources, statuses and sequences", `{"evaluations":[{"query_sequence":9,"assessments":[` + aHelped + `]},{"assessments":[` + aHelped + `]},
		{"query_sequence":42,"assessments":[{"source_id":"c","status":"helpful"},{"source_id":"a","status":"splendid"},{"source_id":"b","status":"irrelevant"}]}]}`, "q1.b irrelevant"},
	{"a source judged twice", one(aHelped + `,{"source_id":"a","status":"harmful"}`), "q1.a helpful r"},
	{"a source of two queries of a message", `{"evaluations":[{"query_sequence":44,"assessments":[{"source_id":"c","status":"harmful"},{"source_id":"d","status":"neutral"}]}]}`,
		"q2.c harmful, q3.c harmful, q3.d neutral"},
}

func TestRepliesOfModelsAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range replies {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found, err := readEvaluations(c.reply, twoQueries())
			if (err != nil) != (c.want == "-") || err == nil && said(found) != c.want {
				t.Errorf("%q, %v, want %q", said(found), err, c.want)
			}
		})
	}
}

// Whatever a model answers: each verdict is about a source that it was asked about, one for each, with a known status.
func FuzzReadEvaluations(f *testing.F) {
	for _, c := range replies {
		f.Add(c.reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		queries := twoQueries()
		found, err := readEvaluations(reply, queries)
		if err != nil && found != nil {
			t.Fatalf("verdicts beside %v", err)
		}
		seen := map[string]bool{}
		for _, v := range found {
			place := fmt.Sprint(v.of.Ordinal, v.KnowledgeID)
			if seen[place] {
				t.Errorf("%s is judged twice", place)
			}
			seen[place] = true
			if !slices.Contains(queries, v.of) || !slices.ContainsFunc(sourcesOf(v.of), func(s cognition.Source) bool { return s.ID == v.KnowledgeID }) {
				t.Errorf("%+v is about nothing", v.Evaluation)
			}
			if !slices.Contains(cognition.Statuses, v.Result.Status) || utf8.RuneCountInString(v.Result.Reason) > cognition.MostContent {
				t.Errorf("the verdict is %+v", v.Result)
			}
			if e := cognition.New("c", &v.Evaluation); !json.Valid(e.Body) {
				t.Errorf("the event is %s", e.Body)
			}
		}
	})
}
