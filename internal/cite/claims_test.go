package cite

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/internal/sharedtest"
)

// claimCase is a sentence with the marks that a model wrote, and the numbers of the sources that it
// may cite after a check: none if it is wrong.
type claimCase struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	Want []int  `json:"want"`
}

// right reports whether the sentence cites what supports it, as it is written.
func (c claimCase) right() bool { return slices.Equal(c.cites(), c.Want) }

func (c claimCase) cites() (numbers []int) {
	_, found := readMarks(c.Text, 99)
	for _, w := range found {
		numbers = append(numbers, w.numbers...)
	}
	return numbers
}

type claimSet struct {
	sources []Source
	cases   []claimCase
}

type claimSource struct{ Title, Text string }

func sourcesOf(texts []claimSource) (sources []Source) {
	for i, s := range texts {
		sources = append(sources, Source{
			URL: fmt.Sprintf("https://%d.test/", i+1), Title: s.Title, Evidence: EvidencePage, Chunks: lines(s.Text, 1),
		})
	}
	return sources
}

// ownClaims are the cases of a file in testdata.
func ownClaims(t *testing.T, name string) claimSet {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Sources []claimSource
		Claims  []claimCase
	}
	if err := json.Unmarshal(doc, &f); err != nil {
		t.Fatal(err)
	}
	return claimSet{sourcesOf(f.Sources), f.Claims}
}

// foreignClaims are cases that somebody else wrote. A wrong one names no other source that it may cite.
func foreignClaims(t *testing.T) claimSet {
	t.Helper()
	var f struct {
		Sources []claimSource
		Claims  []struct {
			Right, N   int
			Kind, Text string
		}
	}
	if err := json.Unmarshal(sharedtest.Read(t, "data/citecheck/claims.json"), &f); err != nil {
		t.Fatal(err)
	}
	set := claimSet{sources: sourcesOf(f.Sources)}
	for _, c := range f.Claims {
		one := claimCase{Kind: c.Kind, Text: fmt.Sprintf("%s[%d]", c.Text, c.N)}
		if c.Right == 1 {
			one.Want = []int{c.N}
		} else if strings.HasPrefix(c.Kind, "near-duplicate") {
			for n := range f.Sources {
				if n+1 != c.N {
					one.Want = append(one.Want, n+1)
				}
			}
		}
		set.cases = append(set.cases, one)
	}
	return set
}

// tally counts right claims, those that keep their marks, wrong ones, and those that lose them.
type tally struct{ right, kept, wrong, struck int }

func (y tally) plus(other tally) tally {
	return tally{y.right + other.right, y.kept + other.kept, y.wrong + other.wrong, y.struck + other.struck}
}

func (y tally) String() string {
	return fmt.Sprintf("%d of %d right claims keep their marks, %d of %d wrong ones lose them", y.kept, y.right, y.struck, y.wrong)
}

// judge tells how the check of marks does, and logs where it is mistaken if asked to.
func (set claimSet) judge(t *testing.T, tell bool, check func(text string, sources []Source) Cited) (y tally) {
	t.Helper()
	for _, c := range set.cases {
		cited := check(c.Text, set.sources)
		var cites []int
		for _, n := range Marks(cited.Answer) {
			at := slices.IndexFunc(set.sources, func(s Source) bool { return s.URL == cited.References[n-1].URL })
			if !slices.Contains(cites, at+1) {
				cites = append(cites, at+1)
			}
		}
		slices.Sort(cites)
		var good bool
		if c.right() {
			y.right++
			if good = slices.Equal(cites, c.Want); good {
				y.kept++
			}
		} else {
			y.wrong++
			if good = !slices.ContainsFunc(cites, func(n int) bool { return !slices.Contains(c.Want, n) }); good {
				y.struck++
			}
		}
		if !good && tell {
			t.Logf("%s: %s cites %d", c.Kind, cited.Answer, cites)
		}
	}
	return y
}

// floors are the shares of claims that a check must judge rightly.
type floors struct{ right, wrong float64 }

// TestClaims holds what the check of claims has reached, by words alone. The rules were made with claims_*, and not
// with held_* and those of somebody else.
func TestClaims(t *testing.T) {
	verify := func(text string, sources []Source) Cited {
		v := Verify(t.Context(), nil, text, sources, VerifyOptions{})
		return Cited{Answer: v.Answer, References: v.References}
	}
	marks := func(text string, sources []Source) Cited {
		return CheckMarks(t.Context(), nil, text, sources, MarkOptions{})
	}
	for _, c := range []struct {
		names         []string
		verify, marks floors
	}{
		{[]string{"claims_en.json", "claims_zh.json"}, floors{0.95, 0.95}, floors{0.95, 0.85}},
		{[]string{"held_en.json", "held_zh.json"}, floors{0.90, 0.90}, floors{0.90, 0.85}},
	} {
		var verified, marked tally
		for _, name := range c.names {
			set := ownClaims(t, name)
			y := set.judge(t, tell(name), verify)
			verified, marked = verified.plus(y), marked.plus(set.judge(t, false, marks))
			t.Logf("%s: %v", name, y)
		}
		verified.hold(t, fmt.Sprint("Verify, ", c.names), c.verify)
		marked.hold(t, fmt.Sprint("CheckMarks, ", c.names), c.marks)
	}
}

func TestForeignClaims(t *testing.T) {
	set := foreignClaims(t)
	set.judge(t, true, func(text string, sources []Source) Cited {
		v := Verify(t.Context(), nil, text, sources, VerifyOptions{})
		return Cited{Answer: v.Answer, References: v.References}
	}).hold(t, "Verify, citecheck", floors{0.95, 0.95})
	set.judge(t, true, func(text string, sources []Source) Cited {
		return CheckMarks(t.Context(), nil, text, sources, MarkOptions{})
	}).hold(t, "CheckMarks, citecheck", floors{0.95, 0.95})
}

// tell reports whether mistakes may be shown: of what is held back, nobody shall learn.
func tell(name string) bool { return !strings.HasPrefix(name, "held") }

func (y tally) hold(t *testing.T, name string, least floors) {
	t.Helper()
	t.Logf("%s: %v", name, y)
	if float64(y.kept) < least.right*float64(y.right) || float64(y.struck) < least.wrong*float64(y.wrong) {
		t.Errorf("%s: want at least %.0f %% of the right ones and %.0f %% of the wrong ones", name, 100*least.right, 100*least.wrong)
	}
}
