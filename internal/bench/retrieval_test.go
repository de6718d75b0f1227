package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/memory/lang"
)

// someTurns and someExchanges are files of both forms, in small.
const (
	someTurns = `{"t":"conv","c":"c1","a":"Ann","b":"Reed"}
{"t":"turn","c":"c1","id":"D1:1","s":1,"d":"2023-04-02T10:00","sp":"Reed","x":"What did you paint at the lake?"}
{"t":"turn","c":"c1","id":"D1:2","s":1,"d":"2023-04-02T10:00","sp":"Ann","x":"A sunrise, in orange and red.","cap":"a painting on an easel"}
{"t":"turn","c":"c1","id":"D2:1","s":2,"d":"2023-05-04T10:00","sp":"Reed","x":"I mended the sails of the old ship."}

{"t":"qa","c":"c1","id":"q1","cat":1,"q":"What did Ann paint at the lake?","a":2022,"ev":["D1:2"]}
{"t":"qa","c":"c1","id":"q2","cat":5,"q":"What did Ann do with the sails?","a":"mend them","ev":["D2:1"]}
{"t":"conv","c":"c2","a":"Lu","b":"Mei"}
{"t":"turn","c":"c2","id":"D1:1","s":1,"d":"2023-04-02T10:00","sp":"Lu","x":"Sails, paint and a lake belong to other people."}
{"t":"qa","c":"c2","id":"q3","cat":4,"q":"Which volcano erupted?","ev":["D1:1"]}
`
	// oddTurns have what files may have: the same side twice, a third one, nothing to
	// say, a day without an hour, a picture without words, and answers that are not there.
	oddTurns = `{"t":"conv","c":"c1","b":"Reed"}
{"t":"turn","c":"c1","id":"1","d":"2023-04-02","sp":"Reed","x":"The sails were mended in spring."}
{"t":"turn","c":"c1","id":"2","d":"2023-04-02","sp":"Reed","x":""}
{"t":"turn","c":"c1","id":"3","d":"2023-04-03T10:00:30","sp":"Reed","x":"","cap":"a volcano at night"}
{"t":"turn","c":"c1","id":"4","d":"2023-04-03T11:00","sp":"Ada","x":"A third one speaks of lighthouses."}
{"t":"qa","c":"c1","id":"q1","cat":1,"q":"What was in the picture of the volcano?","ev":["3","3","9"]}
{"t":"qa","c":"c1","id":"q2","cat":2,"q":"Who speaks of lighthouses?","ev":["4"]}
{"t":"qa","c":"c1","id":"q3","cat":2,"q":"Who was silent?","ev":["2"]}
{"t":"qa","c":"c1","id":"q4","cat":2,"q":"Where is nothing?","ev":["9"]}
{"t":"qa","c":"c1","id":"q5","cat":2,"q":"Where is nothing?"}
`
	oddExchanges = `{"t":"conv","c":"m1","a":"Lin","b":"AI"}
{"t":"turn","c":"m1","id":"0.0","d":"2023-04-27T12:00","sp":"Lin","x":"My piano is out of tune.","rsp":"AI","r":""}
{"t":"turn","c":"m1","id":"0.1","d":"2023-04-27T12:00","sp":"Lin","x":"","rsp":"AI","r":"Shall we walk in the park?"}
{"t":"qa","c":"m1","id":"q1","cat":"fact","q":"What is wrong with my piano?","ev":["0.0"]}
{"t":"qa","c":"m1","id":"q2","cat":"fact","q":"Where did you want to walk, in the park?","ev":["0.1"]}
`
	someExchanges = `{"t":"conv","c":"m1","a":"小林","b":"AI","lang":"zh"}
{"t":"turn","c":"m1","id":"0.0","s":1,"d":"2023-04-27T12:00","sp":"小林","x":"我很喜欢弹钢琴。","rsp":"AI","r":"钢琴很优雅。"}
{"t":"turn","c":"m1","id":"1.0","s":2,"d":"2023-05-02T12:00","sp":"小林","x":"今天去了公园散步。","rsp":"AI","r":"听起来很放松。"}
{"t":"qa","c":"m1","id":"m1#0","cat":"fact","q":"我喜欢弹什么乐器，是钢琴吗？","ev":["0.0"]}
{"t":"qa","c":"m1","id":"m1#1","cat":"day","q":"5月2号我们聊了什么？","ev":["1.0"]}
`
)

func TestRetrievalCountsWhatIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name       string
		o          RetrievalOptions
		questions  int
		recall5    float64
		byCategory map[string]float64
	}{
		{"turns", RetrievalOptions{LoCoMo: file("turns", someTurns)}, 2, 0.5, map[string]float64{"1": 1, "4": 0, "5": 1}},
		{"turns by words alone", RetrievalOptions{LoCoMo: file("turns", someTurns), Lexical: true}, 2, 0.5, map[string]float64{"1": 1, "4": 0, "5": 1}},
		{"exchanges", RetrievalOptions{MemoryBank: file("exchanges", someExchanges)}, 2, 1, map[string]float64{"fact": 1, "day": 1}},
		{"odd turns", RetrievalOptions{LoCoMo: file("odd", oddTurns)}, 3, 2.0 / 3, map[string]float64{"1": 1}},
		{"odd exchanges", RetrievalOptions{MemoryBank: file("oddx", oddExchanges), Lexical: true}, 2, 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.JSON = true
			var out bytes.Buffer
			if err := Retrieval(t.Context(), &out, c.o); err != nil {
				t.Fatal(err)
			}
			var r retrievalResult
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Questions != c.questions || r.Recall5 != c.recall5 || r.BuildMs <= 0 {
				t.Errorf("%s", out.String())
			}
			for name, want := range c.byCategory {
				if got := r.ByCategory[name]; got.Recall5 != want || got.Questions != 1 {
					t.Errorf("category %s: %+v", name, got)
				}
			}
		})
	}
}

func TestALongChatBecomesSeveralLogs(t *testing.T) {
	t.Parallel()
	chat := talk{people: lang.Names{User: "Ann", Character: "Reed"}}
	for i := range 5 {
		chat.items = append(chat.items, item{said: []saying{{role: lang.RoleUser, text: strings.Repeat("a", 100)}}})
		if i != 2 {
			chat.items[i].said = append(chat.items[i].said, saying{role: lang.RoleCharacter, text: "b"})
		}
	}
	for _, c := range []struct {
		name     string
		messages int
		want     [][]int
	}{
		{"fits", 9, [][]int{{0, 0, 1, 1, 2, 3, 3, 4, 4}}},
		{"too long", 4, [][]int{{0, 0, 1, 1}, {2, 3, 3, 4}, {4}}},
	} {
		var got [][]int
		for _, log := range chat.logs(c.messages) {
			got = append(got, log.of)
			if lines := bytes.Count(log.text, []byte("\n")); lines != len(log.of)+1 {
				t.Errorf("%s: %d lines for %d messages", c.name, lines, len(log.of))
			}
		}
		if !slices.EqualFunc(got, c.want, slices.Equal[[]int]) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRetrievalSaysWhatIsWrongWithAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(path, []byte(`{"t":"conv","c":"c1"}`+"\n"+`{"t":"turn","c":"c1","d":"someday"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(t.TempDir(), "stray")
	if err := os.WriteFile(stray, []byte(`{"t":"turn","c":"c1","d":"2023-05-08T13:56","x":"?"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]RetrievalOptions{"line 2": {LoCoMo: path}, "no such file": {LoCoMo: path + "x"}, "--locomo": {}, "line 1": {LoCoMo: stray}} {
		if err := Retrieval(t.Context(), &bytes.Buffer{}, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error = %v, want %q in it", err, name)
		}
	}
}

func TestScoresAreMeans(t *testing.T) {
	t.Parallel()
	var s retrievalScores
	s.add([]int{2, 0})  // one of two, second
	s.add([]int{11, 1}) // both, one of them late
	s.add([]int{0})
	s.mean()
	if s.Questions != 3 || s.Recall10 != (0.5+0.5)/3 || s.Recall20 != (0.5+1)/3 || s.Hit10 != 2.0/3 || s.MRR != (0.5+1)/3 {
		t.Errorf("%+v", s)
	}
}

func TestScaleRuns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Retrieval(t.Context(), &out, RetrievalOptions{Items: 60}); err != nil || !strings.Contains(out.String(), "1024 dimensions") {
		t.Errorf("%v: %s", err, out.String())
	}
}
