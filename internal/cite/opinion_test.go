package cite

import (
	"slices"
	"testing"
)

// judgedBy checks an answer with a model that has the same opinion of all sentences.
func judgedBy(t *testing.T, opinion Opinion, text string, sources []Source) Verified {
	t.Helper()
	check := NewCheck(t.Context(), nil, text, sources, VerifyOptions{Doubtful: Mark})
	opinions := map[int]Opinion{}
	for _, q := range check.Questions() {
		if len(q.Quotes) == 0 {
			t.Errorf("%q is asked without a quote", q.Text)
		}
		opinions[q.Sentence] = opinion
	}
	return check.Result(opinions)
}

func TestAnOpinionChangesWhatWordsCannotTell(t *testing.T) {
	sources := sourcesOf([]claimSource{{"Larch Bridge", "The Larch Bridge was opened on 3 May 1931 after nine years of work. It was not painted before 1950. The engineer Ada Brook had drawn it, and her widower Tom Reed unveiled the plaque."}})
	for _, tt := range []struct {
		promise, text string
		opinion       Opinion
		want          string
		byModel       int
	}{
		{"no support", "The Larch Bridge was opened on 3 May 1931[1].", Unsupported, "The Larch Bridge was opened on 3 May 1931[?].", 1},
		{"support of what has it", "The Larch Bridge was opened on 3 May 1931[1].", Supported, "The Larch Bridge was opened on 3 May 1931[^1].", 0},
		{"support of other words", "A late spouse of its designer pulled the cloth off, a rather solemn moment for any man named Tom[1].", Supported, "A late spouse of its designer pulled the cloth off, a rather solemn moment for any man named Tom[^1].", 1},
		{"no word of it", "A late spouse of its designer pulled the cloth off, a rather solemn moment for any man named Tom[1].", Unsure, "A late spouse of its designer pulled the cloth off, a rather solemn moment for any man named Tom[?].", 0},
		{"another number", "The Larch Bridge was opened on 3 May 1941[1].", Supported, "The Larch Bridge was opened on 3 May 1941[?].", 0},
		{"another name", "The engineer Ada Brock had drawn it[1].", Supported, "The engineer Ada Brock had drawn it[?].", 0},
		{"a negation", "It was painted before 1950[1].", Supported, "It was painted before 1950[?].", 0},
		{"an unknown opinion", "The Larch Bridge was opened on 3 May 1931[1].", "perhaps", "The Larch Bridge was opened on 3 May 1931[^1].", 0},
	} {
		t.Run(tt.promise, func(t *testing.T) {
			got := judgedBy(t, tt.opinion, tt.text, sources)
			if got.Answer != tt.want || got.Report.ByModel != tt.byModel {
				t.Errorf("got %q, %d by the model; want %q, %d: %+v", got.Answer, got.Report.ByModel, tt.want, tt.byModel, got.Report.Verdicts)
			}
			if struck := slices.ContainsFunc(got.Report.Verdicts, func(v Verdict) bool {
				return slices.ContainsFunc(v.Why, func(r Reason) bool { return r.Code == WhyModel })
			}); struck != (tt.opinion == Unsupported) {
				t.Errorf("the verdicts name the model: %v", struck)
			}
		})
	}
}

// TestAPerfectModel prints how many claims would be judged rightly by words and a model that is never wrong: the bound that
// the words leave to a model, since it rescues no contradiction.
func TestAPerfectModel(t *testing.T) {
	perfect := func(right bool) Opinion {
		if right {
			return Supported
		}
		return Unsupported
	}
	y := tally{}
	for _, set := range []string{"claims_en.json", "claims_zh.json", "held_en.json", "held_zh.json"} {
		set := ownClaims(t, set)
		for _, c := range set.cases {
			one := claimSet{set.sources, []claimCase{c}}
			y = y.plus(one.judge(t, false, func(text string, sources []Source) Cited {
				v := judgedBy(t, perfect(c.right()), text, sources)
				return Cited{Answer: v.Answer, References: v.References}
			}))
		}
	}
	y.hold(t, "words and a perfect model, 200 claims", floors{0.95, 1})
	y = tally{}
	for _, c := range ownPageClaims(t) {
		y = y.plus(c.judgedBy(t, perfect(c.Right)))
	}
	y.hold(t, "words and a perfect model, pages.json", floors{0.93, 1})
}

func (c pageClaim) judgedBy(t *testing.T, opinion Opinion) (y tally) {
	t.Helper()
	text, sources := c.answer()
	marks := len(Marks(judgedBy(t, opinion, text, sources).Answer))
	switch {
	case c.Right:
		y.right, y.kept = 1, min(marks, 1)
	default:
		y.wrong, y.struck = 1, 1-min(marks, 1)
	}
	return y
}
