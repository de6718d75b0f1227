package extract

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/framework"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// saidIn returns the lines of a set of what people say.
func saidIn(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "said", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// chatOf reads a chat: messages of the user between "##", those of the character after "C>".
func chatOf(line string) (all []memory.Message) {
	for i, text := range strings.Split(line, " ## ") {
		if c, is := strings.CutPrefix(text, "C> "); is {
			all = append(all, charSays(int64(2*i+1), c))
			continue
		}
		all = append(all, userSays(int64(2*i+2), text))
	}
	return all
}

func takenOfUser(all []candidate) bool {
	return slices.ContainsFunc(all, func(c candidate) bool {
		return !c.Ends && (c.Subject == lang.AboutUser || c.Subject == lang.AboutRelationship)
	})
}

// Rules take facts of real people, and none from scenes without marks, jokes, wishes, conditions,
// texts for a task or other people's lives. The sets were written without a look at the rules.
func TestRulesTellPeopleFromStories(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		set         string
		least, most int // lines of which something is taken
	}{
		{"real.en", 34, 77}, {"real.zh", 32, 77}, {"scene-real.en", 6, 6}, {"scene-real.zh", 5, 5},
		{"play.en", 0, 4}, {"play.zh", 0, 3}, {"scene.en", 0, 0}, {"scene.zh", 0, 0},
		{"notme.en", 0, 1}, {"notme.zh", 0, 0}, // the friend is called Lena, that much is right
	} {
		var taken []string
		for _, line := range saidIn(t, tt.set) {
			if takenOfUser(windowOf(chatOf(line)...).byRules()) {
				taken = append(taken, line)
			}
		}
		if len(taken) < tt.least || len(taken) > tt.most {
			t.Errorf("%s: something is taken of %d lines, not of %d to %d: %q", tt.set, len(taken), tt.least, tt.most, taken)
		}
	}
}

// A candidate of a model is about the user only if the message says so of the user, as something
// that is so; what the message does say is taken in other words too.
func TestCandidatesSayWhatTheirMessageSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		set         string
		least, most int
	}{{"offered.en", 0, 0}, {"offered.zh", 0, 1}, {"good.en", 22, 24}, {"good.zh", 20, 22}} {
		var taken []string
		for _, line := range saidIn(t, tt.set) {
			said, offered, _ := strings.Cut(line, " >> ")
			if takenOfUser(offer(t, windowOf(chatOf(said)...), offered)) {
				taken = append(taken, line)
			}
		}
		if len(taken) < tt.least || len(taken) > tt.most {
			t.Errorf("%s: %d candidates are taken, not %d to %d: %q", tt.set, len(taken), tt.least, tt.most, taken)
		}
	}
}

// offer returns what a window takes of a candidate from its first message.
func offer(t *testing.T, w window, text string) []candidate {
	t.Helper()
	seq := w.all()[0].Seq
	answer, err := llm.ReadObject(factsAnswer(fact{Text: text, Subject: "user", Kind: "profile", Seqs: []int64{seq}}), "facts")
	if err != nil {
		t.Fatal(err)
	}
	good, _, _ := w.read(answer)
	return good
}

// A fact that a model takes from a scene is one of the story.
func TestCandidatesFromAScene(t *testing.T) {
	t.Parallel()
	for said, offered := range map[string]string{
		"I am the captain of this ship. I have a parrot called Rum.": "User has a parrot called Rum",
		"我推开酒馆的门，我有一只鹦鹉叫朗姆。":                                         "用户有一只鹦鹉叫朗姆",
	} {
		got := offer(t, windowOf(chatOf(said)...), offered)
		if len(got) != 1 || got[0].Subject != lang.AboutWorld {
			t.Errorf("%q gives %+v", said, got)
		}
	}
}

// A later statement ends what it denies, replaces or says to be over: that is in no profile any
// more, and can still be read.
func TestWhatIsOverLeavesTheProfile(t *testing.T) {
	t.Parallel()
	for set, most := range map[string]int{"ends.en": 4, "ends.zh": 2} { // two of the English lines say "no longer" themselves
		for _, together := range []bool{false, true} {
			var stale []string
			for _, line := range saidIn(t, set) {
				said, old, _ := strings.Cut(line, " !! ")
				profile, facts := lived(chatOf(said), together)
				if strings.Contains(profile, old) {
					stale = append(stale, line+" -> "+profile)
				}
				for _, f := range facts[:min(len(facts), 1)] {
					if f.Status == memory.Deleted {
						t.Errorf("%q: %q is gone", line, f.Text)
					}
				}
			}
			if len(stale) > most {
				t.Errorf("%s, in one window %t: %d outdated lines, not %d: %q", set, together, len(stale), most, stale)
			}
		}
	}
}

// lived returns the profile and all facts after a chat that rules read turn by turn, or at once.
func lived(chat []memory.Message, together bool) (profile string, facts []memory.Memory) {
	turns, s := memory.TurnsOf(chat), &scope{}
	step := 1
	if together {
		step = len(turns)
	}
	for i := 0; i < len(turns); i += step {
		w := window{Names: testNames, Earlier: turns[:i], Turns: turns[i : i+step]}
		s.carryOut(apply(basis{Active: s.active(), Candidates: w.byRules(), Similar: newSimilarity(context.Background()), Names: testNames, Now: sunday.Add(time.Hour)}))
	}
	var lines []string
	for _, f := range memory.ProfileOf(s.active(), framework.English).Facts {
		lines = append(lines, f.Text)
	}
	return strings.Join(lines, "; "), s.facts
}
