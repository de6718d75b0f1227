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

// judgeClaims tells how the check of marks does, and logs where it is mistaken if asked to.
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
		good := false
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

func TestMeasure(t *testing.T) {
	held := os.Getenv("HELD") != ""
	var all [2]tally
	for _, name := range []string{"claims_en.json", "claims_zh.json", "held_en.json", "held_zh.json", ""} {
		isHeld := strings.HasPrefix(name, "held")
		if isHeld && !held {
			continue
		}
		var set claimSet
		if name == "" {
			set = foreignClaims(t)
		} else {
			set = ownClaims(t, name)
		}
		y := set.judge(t, false, func(text string, sources []Source) Cited {
			return CheckMarks(t.Context(), nil, text, sources, MarkOptions{})
		})
		z := set.judge(t, !isHeld, func(text string, sources []Source) Cited {
			v := Verify(t.Context(), nil, text, sources, VerifyOptions{})
			if !isHeld {
				for _, x := range v.Report.Verdicts {
					if len(x.Why) > 0 {
						t.Logf("    %s: %+v", x.Text, x.Why)
					}
				}
			}
			return Cited{Answer: v.Answer, References: v.References}
		})
		t.Log(name, "CheckMarks", y)
		t.Log(name, "Verify", z)
		if isHeld {
			all[0], all[1] = all[0].plus(y), all[1].plus(z)
		}
	}
	t.Log(all)
}

func TestScratch(t *testing.T) {
	run := func(set claimSet, rows [][]any) {
		set.cases = nil
		for _, r := range rows {
			n, ok := r[2].(float64)
			if !ok {
				continue
			}
			c := claimCase{Text: fmt.Sprintf("%s[%d]", r[1], int(n))}
			if r[0] == "+" {
				c.Want = []int{int(n)}
			}
			set.cases = append(set.cases, c)
		}
		y := set.judge(t, true, func(text string, sources []Source) Cited {
			v := Verify(t.Context(), nil, text, sources, VerifyOptions{})
			why := fmt.Sprint(v.Report.Verdicts[0].Why)
			return Cited{Answer: v.Answer + "  " + strings.ReplaceAll(why, "[^", ""), References: v.References}
		})
		t.Log(y)
	}
	if doc, err := os.ReadFile("/tmp/scratch.json"); err == nil {
		var rows [][]any
		if err := json.Unmarshal(doc, &rows); err != nil {
			t.Fatal(err)
		}
		run(foreignClaims(t), rows)
	}
	for _, name := range []string{"/tmp/zh2.json", "/tmp/en2.json", "/tmp/zh3.json"} {
		doc, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var f struct {
			Sources []claimSource
			Claims  [][]any
		}
		if err := json.Unmarshal(doc, &f); err != nil {
			t.Fatal(err)
		}
		run(claimSet{sources: sourcesOf(f.Sources)}, f.Claims)
	}
}
