package cite

import (
	"cmp"
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

// blindCase is a claim about a page of its own, of a file that NODEST_CLAIMS names.
type blindCase struct {
	Page, Claim, Kind, Half string
	Right                   bool
}

func blindCases(t *testing.T) (cases []blindCase) {
	t.Helper()
	path := os.Getenv("NODEST_CLAIMS")
	if path == "" {
		t.Skip("NODEST_CLAIMS names no file of claims")
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func (c blindCase) verify(t *testing.T) Verified {
	source := Source{URL: "https://1.test/", Evidence: EvidencePage, Chunks: lines(c.Page, 1)}
	end := strings.TrimRight(c.Claim, ".。!！")
	return Verify(t.Context(), nil, end+"[1]"+c.Claim[len(end):], []Source{source}, VerifyOptions{})
}

func (c blindCase) group() string {
	lang := "en"
	if script.HasDense(c.Claim) {
		lang = "zh"
	}
	return fmt.Sprintf("%s %s right=%v", c.Half, lang, c.Right)
}

// TestBlindClaims prints totals by kind. Of single cases it shows those of the open half.
func TestBlindClaims(t *testing.T) {
	good, all := map[string]int{}, map[string]int{}
	for _, c := range blindCases(t) {
		v := c.verify(t)
		for _, group := range []string{c.group(), c.group() + " " + c.Kind} {
			all[group]++
			if len(Marks(v.Answer)) > 0 == c.Right {
				good[group]++
			} else if c.Half == "open" && group == c.group() {
				t.Logf("right=%v %s: %s %+v", c.Right, c.Kind, c.Claim, v.Report.Verdicts[0].Why)
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(all)) {
		t.Logf("%-34s %d of %d", group, good[group], all[group])
	}
}

// TestDetectorsOneByOne prints the claims that are judged rightly without one detector.
func TestDetectorsOneByOne(t *testing.T) {
	if os.Getenv("NODEST_DETECTORS") == "" {
		t.Skip("NODEST_DETECTORS is not set: this takes its time")
	}
	verify := func(text string, sources []Source) Cited {
		v := Verify(t.Context(), nil, text, sources, VerifyOptions{})
		return Cited{Answer: v.Answer, References: v.References}
	}
	all := claim.Detectors
	defer func() { claim.Detectors = all }()
	for i := -1; i < len(all); i++ {
		name := "all"
		if claim.Detectors = all; i >= 0 {
			name = "without " + all[i].Name
			claim.Detectors = slices.Delete(slices.Clone(all), i, i+1)
		}
		row := fmt.Sprintf("%-18s", name)
		for _, names := range []string{"claims_en.json claims_zh.json", "held_en.json held_zh.json"} {
			var y tally
			for name := range strings.FieldsSeq(names) {
				y = y.plus(ownClaims(t, name).judge(t, false, verify))
			}
			row += fmt.Sprintf(" | %s %2d %2d", names[:4], y.kept, y.struck)
		}
		if os.Getenv("NODEST_CLAIMS") != "" {
			good := map[string]int{}
			for _, c := range blindCases(t) {
				if len(Marks(c.verify(t).Answer)) > 0 == c.Right {
					good[c.group()]++
				}
			}
			for _, half := range []string{"open", "closed"} {
				for _, lang := range []string{"en", "zh"} {
					row += fmt.Sprintf(" | %s %s %2d %2d", cmp.Or(half, ""), lang, good[fmt.Sprintf("%s %s right=true", half, lang)], good[fmt.Sprintf("%s %s right=false", half, lang)])
				}
			}
		}
		t.Log(row)
	}
}
