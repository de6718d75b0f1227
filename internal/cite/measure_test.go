package cite

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"nodest/internal/cite/claim"
	"nodest/internal/cite/script"
)

// pageClaim is a claim about a page of its own.
type pageClaim struct {
	Page, Claim, Kind, Half string
	Right                   bool
}

// foreignPageClaims are those of a file that NODEST_CLAIMS names, for a look at claims that somebody else wrote.
func foreignPageClaims(t *testing.T) (claims []pageClaim) {
	t.Helper()
	path := os.Getenv("NODEST_CLAIMS")
	if path == "" {
		t.Skip("NODEST_CLAIMS names no file of claims")
	}
	readJSON(t, path, &claims)
	return claims
}

// ownPageClaims are those of our own pages, with which rules were made.
func ownPageClaims(t *testing.T) (claims []pageClaim) {
	t.Helper()
	var pages []struct {
		Page         string
		Right, Wrong []string
	}
	readJSON(t, "testdata/pages.json", &pages)
	for _, p := range pages {
		for _, text := range p.Right {
			claims = append(claims, pageClaim{Page: p.Page, Claim: text, Half: "own", Right: true})
		}
		for _, text := range p.Wrong {
			claims = append(claims, pageClaim{Page: p.Page, Claim: text, Half: "own"})
		}
	}
	return claims
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, to); err != nil {
		t.Fatal(err)
	}
}

func (c pageClaim) verify(t *testing.T) Verified {
	text, sources := c.answer()
	return Verify(t.Context(), nil, text, sources, VerifyOptions{})
}

// answer is the claim as an answer that cites its page.
func (c pageClaim) answer() (text string, sources []Source) {
	end := strings.TrimRight(c.Claim, ".。!！")
	return end + "[1]" + c.Claim[len(end):], []Source{{URL: "https://1.test/", Evidence: EvidencePage, Chunks: lines(c.Page, 1)}}
}

func (c pageClaim) lang() string {
	if script.HasDense(c.Claim) {
		return "zh"
	}
	return "en"
}

func (c pageClaim) group() string { return fmt.Sprintf("%s %s right=%v", c.Half, c.lang(), c.Right) }

// holds reports whether a claim is judged rightly.
func (c pageClaim) holds(t *testing.T) bool { return len(Marks(c.verify(t).Answer)) > 0 == c.Right }

// TestOwnPages holds what has been reached on pages with claims of all kinds, by words alone.
func TestOwnPages(t *testing.T) {
	var y tally
	for _, c := range ownPageClaims(t) {
		right, good := &y.right, &y.kept
		if !c.Right {
			right, good = &y.wrong, &y.struck
		}
		*right++
		if c.holds(t) {
			*good++
		}
	}
	y.hold(t, "Verify, pages.json", floors{0.95, 0.82})
}

// TestForeignPages prints totals by kind, and nothing of single claims.
func TestForeignPages(t *testing.T) {
	good, all := map[string]int{}, map[string]int{}
	for _, c := range foreignPageClaims(t) {
		for _, group := range []string{c.group(), c.group() + " " + c.Kind} {
			all[group]++
			if c.holds(t) {
				good[group]++
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(all)) {
		t.Logf("%-34s %d of %d", group, good[group], all[group])
	}
}

// TestDetectorsOneByOne prints how many claims are judged rightly without each detector: right ones that keep their marks,
// and wrong ones that lose them.
func TestDetectorsOneByOne(t *testing.T) {
	if os.Getenv("NODEST_DETECTORS") == "" {
		t.Skip("NODEST_DETECTORS is not set: this takes a minute")
	}
	pages := ownPageClaims(t)
	if os.Getenv("NODEST_CLAIMS") != "" {
		pages = append(pages, foreignPageClaims(t)...)
	}
	all := claim.Detectors
	defer func() { claim.Detectors = all }()
	for i := -1; i < len(all); i++ {
		name := "all"
		if claim.Detectors = all; i >= 0 {
			name = "without " + all[i].Name
			claim.Detectors = slices.Delete(slices.Clone(all), i, i+1)
		}
		t.Logf("%-18s %s", name, rowOf(t, pages))
	}
}

// rowOf counts the claims of each set that are judged rightly.
func rowOf(t *testing.T, pages []pageClaim) (row string) {
	t.Helper()
	verify := func(text string, sources []Source) Cited {
		v := Verify(t.Context(), nil, text, sources, VerifyOptions{})
		return Cited{Answer: v.Answer, References: v.References}
	}
	for _, name := range []string{"claims_en", "claims_zh", "held_en", "held_zh"} {
		y := ownClaims(t, name+".json").judge(t, false, verify)
		row += fmt.Sprintf("| %s %d %d ", name, y.kept, y.struck)
	}
	good := map[string][2]int{}
	for _, c := range pages {
		if c.holds(t) {
			group := c.Half + " " + c.lang()
			n := good[group]
			if c.Right {
				n[0]++
			} else {
				n[1]++
			}
			good[group] = n
		}
	}
	for _, group := range slices.Sorted(maps.Keys(good)) {
		row += fmt.Sprintf("| %s %d %d ", group, good[group][0], good[group][1])
	}
	return row
}
