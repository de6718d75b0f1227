package intent

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

type message struct {
	text   string
	search bool
}

// messages reads a file of testdata in two halves, which take turns.
func messages(t *testing.T, name string) (odd, even []message) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		label, text, _ := strings.Cut(lines.Text(), " ")
		if label != "+" && label != "-" {
			continue
		}
		m := message{text, label == "+"}
		if n++; n%2 == 1 {
			odd = append(odd, m)
		} else {
			even = append(even, m)
		}
	}
	return odd, even
}

// quality counts how a classifier does, in percent.
type quality struct{ accuracy, precision, recall float64 }

func measure(list []message, search func(string) bool) quality {
	var right, found, said, wanted float64
	for _, m := range list {
		got := search(m.text)
		if got == m.search {
			right++
		}
		if got {
			said++
		}
		if m.search {
			wanted++
		}
		if got && m.search {
			found++
		}
	}
	return quality{100 * right / float64(len(list)), 100 * found / max(said, 1), 100 * found / max(wanted, 1)}
}

func better(text string) bool { return Better(text, Options{}).Search }

func TestBetterIsBetterThanSeed(t *testing.T) {
	development, heldOut := messages(t, "messages.txt")
	later, more := messages(t, "later.txt")
	for name, list := range map[string][]message{"development": development, "held out": heldOut, "later": append(later, more...)} {
		seed, own := measure(list, Seed), measure(list, better)
		t.Logf("%s, %d messages: Seed %.1f %% accuracy, %.1f %% precision, %.1f %% recall; Better %.1f, %.1f, %.1f",
			name, len(list), seed.accuracy, seed.precision, seed.recall, own.accuracy, own.precision, own.recall)
		if own.accuracy < 85 || own.accuracy < seed.accuracy+10 || own.precision < 80 || own.recall < 75 {
			t.Errorf("%s: Better fell below its floor", name)
		}
	}
	for _, m := range development {
		if d := Better(m.text, Options{}); d.Search != m.search {
			t.Logf("wrong (%s): %s", d.Reason, m.text)
		}
	}
}

func TestReasonsSayWhy(t *testing.T) {
	for text, want := range map[string]Decision{
		"look up the opening hours of the Louvre": {true, Order, false},
		"search for a restaurant near the Louvre": {true, Order, true},
		"latest news about the Mars rover":        {true, Fresh, false},
		"when was the printing press invented?":   {true, Fact, false},
		"上海迪士尼怎么去":                                {true, Fact, true},
		"Where is the nearest hospital in Porto?": {true, Fact, true},
		"```\nwhere is x?\n```":                   {false, Code, false},
		"*looks around* Where is the inn?":        {false, Play, false},
		"*nods*":                                  {false, Play, false},
		"（推开门）附近有人吗？":                             {false, Play, false},
		"Do you like the restaurant?":             {false, Speakers, false},
		"Who is she?":                             {false, Story, false},
		"Where is Seraphina?":                     {false, Story, false},
		"艾尔多利亚是什么地方？":                             {false, Story, false},
		"Good night":                              {false, Chat, false},
		"":                                        {false, Chat, false},
		"…?!":                                     {false, Chat, false},
		strings.Repeat("We walked on. ", 30):      {false, Long, false},
		strings.Repeat("我们继续走。", 60) + "搜一下敦煌壁画":                 {true, Order, false},
		strings.Repeat("We walked. ", 40) + "Google it, please.": {true, Order, false},
	} {
		if got := Better(text, Options{Names: []string{"Seraphina", "艾尔多利亚", ""}}); got != want {
			t.Errorf("%.60s: got %+v, want %+v", text, got, want)
		}
	}
	if got := Better("Who painted the Seraphinas of Siena?", Options{Names: []string{"Seraphina"}}); !got.Search {
		t.Error("a name was found in a longer word")
	}
}

func FuzzBetter(f *testing.F) {
	f.Add("what is *this* (好)?", "name")
	f.Add("「君の名は」の監督は誰ですか", "君")
	f.Add(strings.Repeat("*", 400)+"\xff查一下", "")
	f.Fuzz(func(t *testing.T, text, name string) {
		d := Better(text, Options{Names: []string{name}})
		if d.Search != (d.Reason == Order || d.Reason == Fresh || d.Reason == Fact) || d.Place && !d.Search || d.Reason == "" {
			t.Errorf("%q: %+v", text, d)
		}
	})
}

func BenchmarkBetter(b *testing.B) {
	for name, text := range map[string]string{"en": "I was walking along the river today and it was lovely. Who built the bridge of Mostar?", "zh": "今天和朋友去了博物馆，真不错。敦煌壁画是什么时候画的？"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Better(text, Options{})
			}
		})
	}
}
