package cite

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/internal/cite/claim"
	"nodest/llm"
	"nodest/llm/offline"
)

const (
	stands    = "The tower stands 38.5 metres above the high-water mark"
	automated = "The light was automated in March 1987"
	lamps     = "灯会一共要点亮三千六百盏油灯"
)

func TestVerifiedAnswerHasOnlyMarksThatHold(t *testing.T) {
	for name, c := range map[string]struct {
		answer, want string
		doubtful     string
	}{
		"a right mark stays":                 {answer: stands + "[1].", want: stands + "[^1]."},
		"a wrong mark is moved":              {answer: lamps + "[1]。", want: lamps + "[^1]。"},
		"marks come where none is":           {answer: stands + ". " + lamps + "。", want: stands + "[^1]. " + lamps + "[^2]。"},
		"numbers follow the text":            {answer: lamps + "[^2]。" + stands + "[^1].", want: lamps + "[^1]。" + stands + "[^2]."},
		"a wrong number loses its mark":      {answer: stands + "[1]. The light was automated in March 1999[1].", want: stands + "[^1]. The light was automated in March 1999."},
		"doubts are kept":                    {answer: "It cost 77,000 crowns[1].", want: "It cost 77,000 crowns."},
		"doubts are marked":                  {answer: "It cost 77,000 crowns[1]. 塔高九十九米。", doubtful: Mark, want: "It cost 77,000 crowns[?]. 塔高九十九米[?]。"},
		"doubts are removed":                 {answer: stands + ". It cost 77,000 crowns. " + automated + ".", doubtful: Remove, want: stands + "[^1]. " + automated + "[^1]."},
		"with their lines":                   {answer: "- " + stands + ".\n- It cost 77,000 crowns.\n\n" + automated + ".", doubtful: Remove, want: "- " + stands + "[^1].\n\n" + automated + "[^1]."},
		"but not with the bullet":            {answer: "1. It cost 77,000 crowns. " + stands + ".", doubtful: Remove, want: "1. " + stands + "[^1]."},
		"also the last of an answer":         {answer: "It cost 77,000 crowns.", doubtful: Remove, want: ""},
		"and rows of tables":                 {answer: "| a | b |\n|---|---|\n| Cost | 77,000 crowns |\n| Tower | " + stands + " |\n", doubtful: Remove, want: "| a | b |\n|---|---|\n| Tower | " + stands + "[^1] |\n"},
		"two sources support two statements": {answer: stands + ", and " + lamps + "[1].", want: stands + ", and " + lamps + "[^1][^2]."},
		"one of two is not enough":           {answer: stands + ", and the keeper was paid 900 crowns a year[1].", doubtful: Mark, want: stands + ", and the keeper was paid 900 crowns a year[?]."},
		"nothing but claims needs a source":  {answer: "# Halden 1999\n\nWhat is known about the 99 lamps?\n\nThe pages do not say when it was sold. Here is more:\n", doubtful: Mark, want: "# Halden 1999\n\nWhat is known about the 99 lamps?\n\nThe pages do not say when it was sold. Here is more:\n"},
		"code and links stay as they are":    {answer: "`a[1]` and [x](http://a.test/[?])\n```\nIt cost 77,000 crowns[1][?].\n```\n", doubtful: Remove, want: "`a[1]` and [x](http://a.test/[?])\n```\nIt cost 77,000 crowns[1][?].\n```\n"},
		"footnotes at the end go":            {answer: stands + "[^1].\n\n[^1]: Halden, https://halden.test\n", want: stands + "[^1]."},
	} {
		t.Run(name, func(t *testing.T) {
			for _, emb := range []llm.Embedder{nil, offline.Embedder{}, &recorded{kind: "fail"}} {
				got := Verify(t.Context(), emb, c.answer, pages(), VerifyOptions{Doubtful: c.doubtful})
				if got.Answer != c.want {
					t.Fatalf("got.Answer is %q, want %q: %+v", got.Answer, c.want, got.Report.Verdicts)
				}
				checkNumbers(t, Cited{Answer: got.Answer, References: got.References})
				checkReferences(t, StripMarks(got.Answer), pages(), got.References)
			}
		})
	}
}

func TestAnswerThatWasVerifiedStaysTheSame(t *testing.T) {
	o := VerifyOptions{Doubtful: Mark}
	first := Verify(t.Context(), nil, stands+". It cost 77,000 crowns. "+lamps+"。", pages(), o)
	if second := Verify(t.Context(), nil, first.Answer, pages(), o); second.Answer != first.Answer {
		t.Fatalf("got %q, want %q", second.Answer, first.Answer)
	}
}

func TestMarkThatTheModelWroteComesFromIt(t *testing.T) {
	got := Verify(t.Context(), nil, stands+"[1]. "+lamps+"。", pages(), VerifyOptions{}).References
	if len(got) != 2 || got[0].Auto || !got[1].Auto {
		t.Fatalf("got %+v, want the second alone to be automatic", got)
	}
}

func TestReportSaysWhySentencesAreInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		claim string
		want  Reason
	}{
		"number":    {"The tower stands 39.5 metres above the high-water mark.", Reason{Code: claim.WhyNumber, Fact: "39.5"}},
		"unit":      {"The tower stands 38.5 feet above the high-water mark.", Reason{Code: claim.WhyNumber}},
		"name":      {"Keeper Olaf Brandt kept a weather diary for thirty years.", Reason{Code: claim.WhyName, Fact: "Olaf"}},
		"negation":  {"The light was not automated in March 1987.", Reason{Code: claim.WhyNegation}},
		"direction": {"The tower stands 38.5 metres below the high-water mark.", Reason{Code: claim.WhyDirection}},
		"nothing":   {"Its owner bred horses and kept bees.", Reason{Code: claim.WhyNothing}},
		"a detail":  {"It was built from 1,120 blocks of grey granite, which pupils later painted blue.", Reason{Code: claim.WhyNothing, Part: "which pupils later painted blue"}},
	} {
		t.Run(name, func(t *testing.T) {
			report := Verify(t.Context(), nil, c.claim+"[1]", pages(), VerifyOptions{}).Report
			if len(report.Verdicts) != 1 || len(report.Verdicts[0].Why) == 0 {
				t.Fatalf("report.Verdicts is %+v, want one with a reason", report.Verdicts)
			}
			why := report.Verdicts[0].Why[0]
			if why.Code != c.want.Code || c.want.Fact != "" && why.Fact != c.want.Fact || c.want.Part != "" && !strings.HasPrefix(why.Part, c.want.Part) {
				t.Fatalf("why is %+v, want %+v", why, c.want)
			}
		})
	}
}

func TestReportCountsClaimsAndDoubts(t *testing.T) {
	got := Verify(t.Context(), nil, "Is it high? "+stands+"[1]. It cost Queen Olga 77,000 crowns.", pages(), VerifyOptions{Doubtful: Mark}).Report
	got.Verdicts[2].Why = nil
	want := Report{Sentences: 3, Marked: 1, Marks: 1, Supported: 1, Unsourced: []string{"77000", "Queen", "Olga"}, Claims: 2, Doubtful: 1, Verdicts: []Verdict{
		{Text: "Is it high?", Position: Span{0, 11}, Marks: []int{}},
		{Text: stands + ".", Position: Span{12, 67}, Marks: []int{1}},
		{Text: "It cost Queen Olga 77,000 crowns.", Position: Span{68, 101}, Marks: []int{}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	doc, err := json.Marshal(NewReport(Cited{Answer: stands}, nil))
	if err != nil || strings.Contains(string(doc), "verdicts") {
		t.Fatalf("got %s, %v: a chat has no verdicts", doc, err)
	}
}

func TestSourceThatSaysOtherwiseElsewhereSupportsNothing(t *testing.T) {
	page := func(text string) []Source {
		return []Source{{URL: "https://a.test/", Title: "Road 7", Chunks: lines(text, 1)}}
	}
	for name, c := range map[string]struct{ page, claim string }{
		"another number":       {"Road 7 was closed on 3 February. It reopened on 19 February.", "Road 7 reopened on 3 February."},
		"a negation":           {"Trains stop at Velk. Trains do not stop at Velk on Sundays.", "Trains stop at Velk on Sundays."},
		"parts that exchanged": {"The bridge was designed by Clara Voss and built by Henrik Dahl.", "The bridge was designed by Henrik Dahl and built by Clara Voss."},
		"names in other roles": {"Petra Lund accused Jonas Reed of hiding the report.", "Jonas Reed accused Petra Lund of hiding the report."},
		"only a suspicion":     {"Police suspect that a guard opened the door.", "A guard opened the door."},
	} {
		if got := Verify(t.Context(), nil, c.claim, page(c.page), VerifyOptions{}); len(got.References) != 0 {
			t.Errorf("%s: got %q", name, got.Answer)
		}
		right := strings.SplitAfter(c.page, ". ")[0]
		if got := Verify(t.Context(), nil, right, page(c.page), VerifyOptions{}); name != "a negation" && len(got.References) != 1 {
			t.Errorf("%s: %q is not supported: %+v", name, right, got.Report.Verdicts)
		}
	}
}

func TestRowsAreReadWithTheHeadOfTheirTable(t *testing.T) {
	table := "| Town | Population | Founded |\n|---|---|---|\n| Velk | 9,800 | 1604 |\n| Sele | 4,100 | 1711 |"
	for _, minLength := range []int{1, 1000} { // a chunk per line, and one
		source := Source{URL: "https://a.test/", Title: "Towns", Chunks: lines(table, 1)}
		if minLength > 1 {
			source.Chunks = []Chunk{{Text: table}}
		}
		got := Verify(t.Context(), nil, "The population of Velk is 9,800. The population of Velk is 4,100.", []Source{source}, VerifyOptions{})
		if want := "The population of Velk is 9,800[^1]. The population of Velk is 4,100."; got.Answer != want {
			t.Errorf("got %q, want %q", got.Answer, want)
		}
	}
}

func TestLongAnswersAndPagesAreBounded(t *testing.T) {
	long := strings.Repeat("The keeper wrote down 1,234 gusts of wind in the 17th winter, and 三百只海鸥飞过。\n", 3000)
	sources := []Source{{URL: "https://a.test/", Title: "Wind", Chunks: lines(long, 1)}}
	got := Verify(t.Context(), nil, long[:200_000], sources, VerifyOptions{Doubtful: Remove})
	if got.Report.Claims > maxVerified || len(got.References) > maxVerifyRef {
		t.Fatalf("%d claims, %d references", got.Report.Claims, len(got.References))
	}
}

func TestNothingToVerify(t *testing.T) {
	for _, answer := range []string{"", "\n\n", "🙂", "[?]", "[^1]", "\xff\xfe"} {
		got := Verify(t.Context(), nil, answer, nil, VerifyOptions{Doubtful: Mark})
		if len(got.References) != 0 || !slices.Equal(got.Report.Unsourced, []string{}) {
			t.Errorf("%q: got %+v", answer, got)
		}
	}
}
