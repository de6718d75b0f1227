package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// smallest are the turns that a set must have.
var smallest = map[string]int{
	"chitchat": 40, "backchannel": 10, "probe": 50, "current": 20, "echo": 10, "date": 15, "word": 15, "noise": 200,
}

func TestChatSets(t *testing.T) {
	t.Parallel()
	for _, language := range chatLanguages {
		t.Run(language, func(t *testing.T) {
			s, err := readChatSet(language)
			if err != nil {
				t.Fatal(err)
			}
			s.complete(t, smallest)
			if s, err = s.indirect(language); err != nil {
				t.Fatal(err)
			}
			s.complete(t, map[string]int{"noise": 200, "indirect": 50})
		})
	}
}

// complete checks that a set has so many turns of each kind, and no others.
func (s *chatSet) complete(t *testing.T, smallest map[string]int) {
	t.Helper()
	counts, said, asked := map[string]int{}, map[string]bool{}, map[string]bool{}
	for i := range s.cases {
		c := &s.cases[i]
		counts[c.Set]++
		for _, text := range c.Said {
			if said[text] {
				t.Errorf("said twice: %s", text)
			}
			said[text] = true
		}
		if asked[c.Ask] {
			t.Errorf("asked twice: %s", c.Ask)
		}
		asked[c.Ask] = c.Ask != ""
		s.check(t, c)
	}
	for set := range counts {
		if counts[set] < smallest[set] || smallest[set] == 0 {
			t.Errorf("%d of %s, want at least %d", counts[set], set, smallest[set])
		}
	}
	for set := range smallest {
		if counts[set] == 0 {
			t.Errorf("none of %s", set)
		}
	}
}

// check checks that a case can be right by what was said for it alone.
func (s *chatSet) check(t *testing.T, c *chatCase) {
	t.Helper()
	own := slices.Concat(c.Said, []string{c.Reply, c.Fact})
	switch {
	case c.Set == "noise":
		if c.Ask != "" || len(c.Said) != 1 {
			t.Errorf("noise is one line that nobody asks about: %v", c.Said)
		}
		return
	case c.Ask == "":
		t.Errorf("no turn for %v", c.Said)
	case (c.Set == "chitchat" || c.Set == "backchannel") && (len(c.Said) > 0 || c.Answer != ""):
		t.Errorf("%s: small talk has nothing to find", c.Ask)
	case (c.Set == "current" || c.Set == "indirect") && (c.Stale == "" || firstWith(c.Said, c.Stale) != 0):
		t.Errorf("%s: the stale value has to be said first", c.Ask)
	case c.Set == "date" && c.Day == "":
		t.Errorf("%s: no day", c.Ask)
	case slices.Contains([]string{"probe", "current", "indirect", "date", "word"}, c.Set) && c.Answer == "":
		t.Errorf("%s: no answer", c.Ask)
	case c.Answer == "":
		return
	case firstWith([]string{c.Ask}, c.Answer) >= 0:
		t.Errorf("%s: the question tells the answer", c.Ask)
	case firstWith(own, c.Answer) < 0:
		t.Errorf("%s: nobody said %q", c.Ask, c.Answer)
	}
	for _, other := range s.texts(c) {
		if firstWith([]string{other}, c.Answer) >= 0 {
			t.Errorf("%s: %q is also in %q", c.Ask, c.Answer, other)
		}
		if firstWith([]string{other}, c.Stale) >= 0 {
			t.Errorf("%s: %q is also in %q", c.Ask, c.Stale, other)
		}
	}
}

// texts are all texts of the set but those of one case.
func (s *chatSet) texts(but *chatCase) []string {
	all := slices.Concat(s.greetings, s.replies)
	for i := range s.cases {
		if c := &s.cases[i]; c != but {
			all = append(append(all, c.Said...), c.Reply, c.Fact)
		}
	}
	return all
}

// The order in which things were said is what the turns rest on.
func TestChatSetsComeInOrder(t *testing.T) {
	t.Parallel()
	for _, language := range chatLanguages {
		s, err := readChatSet(language)
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.exchanges()
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]int{}
		for i, e := range all {
			at[e.said] = i
			if i > 0 && e.at.Before(all[i-1].at) || !e.at.Before(s.now) {
				t.Errorf("%s: %q is out of order", language, e.said)
			}
		}
		noise := 0
		for i := range s.cases {
			c := &s.cases[i]
			for k := 1; k < len(c.Said); k++ {
				if at[c.Said[k-1]] >= at[c.Said[k]] {
					t.Errorf("%s: %q was said after %q", language, c.Said[k-1], c.Said[k])
				}
			}
			if c.Set == "noise" {
				noise++
			}
			if c.Set == "probe" || c.Set == "current" {
				if after := len(all) - at[c.Said[len(c.Said)-1]]; after < 200 {
					t.Errorf("%s: only %d exchanges after %q", language, after, c.Said)
				}
			}
		}
		if talks, err := s.talks(); err != nil || len(talks) != len(s.greetings) {
			t.Errorf("%s: %d chats, want %d: %v", language, len(talks), len(s.greetings), err)
		}
	}
}

func TestChatFiguresTellWhatIsRight(t *testing.T) {
	t.Parallel()
	s := &chatSet{greetings: []string{"Come in."}}
	for _, c := range []struct {
		name string
		one  chatCase
		p    prompted
		want bool
	}{
		{"nothing for small talk", chatCase{Set: "chitchat"}, prompted{always: "Ann lives in Rome"}, true},
		{"something for small talk", chatCase{Set: "chitchat"}, prompted{block: []string{"Ann: hello"}}, false},
		{"found", chatCase{Set: "probe", Answer: "bees|hives"}, prompted{block: []string{"x", "Marta has HIVES"}}, true},
		{"found in what is always there", chatCase{Set: "probe", Answer: "bees"}, prompted{always: "Marta has bees"}, true},
		{"not found", chatCase{Set: "date", Answer: "bees"}, prompted{block: []string{"x"}}, false},
		{"stale alone", chatCase{Set: "current", Answer: "Rome", Stale: "Paris"}, prompted{block: []string{"in Paris"}}, false},
		{"stale first", chatCase{Set: "current", Answer: "Rome", Stale: "Paris"}, prompted{block: []string{"in Paris", "in Rome"}}, false},
		{"stale always there", chatCase{Set: "current", Answer: "Rome", Stale: "Paris"}, prompted{always: "in Paris", block: []string{"in Rome"}}, false},
		{"stale below", chatCase{Set: "current", Answer: "Rome", Stale: "Paris"}, prompted{block: []string{"in Rome", "in Paris"}}, true},
		{"stale beside", chatCase{Set: "current", Answer: "Rome", Stale: "Paris"}, prompted{block: []string{"from Paris to Rome"}}, true},
		{"nothing but the echo", chatCase{Set: "echo", Ask: "I'm bored."}, prompted{block: []string{"Ann: I'm bored."}}, false},
		{"no echo", chatCase{Set: "echo", Ask: "I'm bored."}, prompted{}, true},
		{"more than the echo", chatCase{Set: "echo", Ask: "I'm bored."}, prompted{block: []string{"Ann: I'm bored.", "y"}}, true},
		{"the echo of a question", chatCase{Set: "echo", Ask: "Who?", Answer: "Irina"}, prompted{block: []string{"Ann: Who?", "y"}}, false},
	} {
		var f chatFigures
		if f.add(s, &c.one, c.p); (len(f.misses) == 0) != c.want {
			t.Errorf("%s: right = %t, want %t", c.name, !c.want, c.want)
		}
	}
	var f chatFigures
	f.add(s, &chatCase{Set: "chitchat", Ask: "Hi"}, prompted{block: []string{"Reed: Come in. (2024-01-01)"}})
	f.add(s, &chatCase{Set: "chitchat", Ask: "Hello"}, prompted{})
	if m := f.members(); m["greetingsRecalled"] != 1 || m["greetingsRecalledOf"] != 2 || m["chitchatBlocks"] != 0.5 || m["linesPerBlock"] != 1.0 {
		t.Errorf("%+v", f)
	}
}

// A small part of each set goes through the whole product.
func TestChatIsMeasured(t *testing.T) {
	t.Parallel()
	part := func(s *chatSet) *chatSet {
		small, kept := *s, map[string]int{}
		small.cases = slices.DeleteFunc(slices.Clone(s.cases), func(c chatCase) bool {
			kept[c.Set]++
			return kept[c.Set] > 4 && c.Fact == "" || c.Set == "noise" && kept[c.Set] > 20
		})
		return &small
	}
	for _, language := range chatLanguages {
		s, err := readChatSet(language)
		if err != nil {
			t.Fatal(err)
		}
		r, err := part(s).measure(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		of := r.tallies
		if of["probesFound"].of != 4 || of["probesFound"].n < 3 || r.bm25.tallies["probesFound"].n < 3 || of["correctionsRight"].of != 8 || of["datesRight"].of != 4 ||
			of["chitchatBlocks"].of != 4 || of["oneCharacterFound"].of != 4 || of["echoesRight"].of != 4 || r.messages == 0 || r.facts == 0 {
			t.Errorf("%s: %+v", language, r)
		}
		data, err := json.Marshal(map[string]*chatResult{language: r})
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]map[string]json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"chitchatBlocks", "probesFound", "correctionsRight", "datesRight", "oneCharacterFound"} {
			if members[language][name] == nil || members[language][name+"Of"] == nil {
				t.Errorf("%s: no member %s with its count in %s", language, name, data)
			}
		}
		var out bytes.Buffer
		results := map[string]*chatResult{"en": r, "zh": r}
		printChat(&out, results)
		printMisses(&out, language, r.misses)
		if !strings.Contains(out.String(), "BM25") || !strings.Contains(out.String(), "probes found") {
			t.Error(out.String())
		}
	}
}
