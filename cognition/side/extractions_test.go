package side

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

const proposal = `{"extractions":[{"content":"The ferry sails at nine.","types":["fact"]}]}`

// Replies as models write them are read, one element at a time.
func TestExtractionsAreReadLeniently(t *testing.T) {
	t.Parallel()
	tests := map[string]int{
		proposal:                              1,
		"\ufeff" + proposal:                   1,
		"<think>{}</think>\n" + proposal:      1,
		"Here:\n```json\n" + proposal + "```": 1,
		"好的，这是结果：" + proposal + "。":           1,
		"{\"note\":1} " + proposal:            1,
		`{"extractions":{"content":"alone"}}`: 1,
		`{"extractions":[{"payload":{"content":"inside"}},{"content":7},{"content":["x"]},"x"]}`: 2,
		`{"extractions":[{"content":"  "},{"content":"\u0000"},{},null]}`:                        0,
		`{"extractions":"none"}`: 0,
		`{"extractions":[{"content":"` + strings.Repeat("茶", 2001) + `"}]}`: 0,
		`{"extractions":[{"content":"cut`:                                   -1,
		`{“extractions”：[{“content”：“茶”}]}`:                                 -1,
		``: -1,
	}
	for reply, want := range tests {
		got, err := readExtractions(reply)
		if want < 0 != (err != nil) || len(got) != max(want, 0) {
			t.Errorf("%q: %s, %v", reply, got, err)
		}
	}
}

// Members of another type get the value of those that are missing; members that nobody knows are kept while there is room.
func TestAPayloadHasItsMembersWhateverTheModelGives(t *testing.T) {
	t.Parallel()
	got, err := readExtractions(`{"extractions":[{"content":"c","types":"tool","tags":[1],"score":"high","urls":{"a":1},"owner":"me","z":1,"a":"` + strings.Repeat("x", 9000) + `"}]}`)
	if err != nil || len(got) != 1 {
		t.Fatalf("%s, %v", got, err)
	}
	want := `{"task":"","content":"c","types":["tool"],"tags":{},"score":3,"scopes":null,"owner":"me","resource_ids":[],"source_name":"","source_category":"exp",` +
		`"urls":[{"a":1}],"agent_id":"","submitted_by":"","capability_ids":[],"tool_ids":[],"z":1}`
	if string(got[0]) != want {
		t.Errorf("got  %s\nwant %s", got[0], want)
	}
}

func FuzzExtractionsAreReadLeniently(f *testing.F) {
	for _, seed := range []string{
		proposal, "```json\n" + proposal + "\n```", "好的：" + proposal, proposal[:30], `{"extractions":[{"payload":{"content":"x"}},{"content":{"content":1}},[[]],7]}`,
		`{"extractions":[{"content":"a","tags":7,"score":1e999,"types":[{}],"mine":{"extractions":[]}}]}`, `{“extractions”：[]}`, `{"extractions":null}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		got, err := readExtractions(reply)
		if err != nil && got != nil {
			t.Fatalf("an error with %s", got)
		}
		for _, payload := range got {
			var p struct {
				Content string
				Types   []json.RawMessage
				Tags    map[string]any
				Score   float64
			}
			if err := json.Unmarshal(payload, &p); err != nil {
				t.Fatalf("%s: %v", payload, err)
			}
			if strings.TrimSpace(p.Content) == "" || utf8.RuneCountInString(p.Content) > 2000 || p.Types == nil || p.Tags == nil || p.Score < 1 || p.Score > 5 || len(payload) > 2*mostPayload {
				t.Fatalf("the payload is %s", fmt.Sprintf("%.300s", payload))
			}
		}
	})
}
