package agent

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/internal/cite"
	"nodest/internal/outbound"
	"nodest/llm"
	"nodest/websearch/miniweb"
	"nodest/websearch/provider"
	"nodest/websearch/reader"
)

// outsideOf is the mini-web, whose search has the results of a question for whatever is searched.
func outsideOf(t *testing.T, web *miniweb.Web, q miniweb.Question, model llm.Asker) Outside {
	t.Helper()
	guard, err := outbound.New(web.Options())
	if err != nil {
		t.Fatal(err)
	}
	pages := reader.New(guard, reader.Config{Timeout: 5 * time.Second})
	t.Cleanup(pages.Close)
	return Outside{
		Model: model,
		Search: func(context.Context, provider.Query) (provider.Results, error) {
			var out provider.Results
			for _, r := range q.Serp {
				out.Results = append(out.Results, provider.Result{Title: r.Title, URL: r.URL, Description: r.Description})
			}
			return out, nil
		},
		Read: func(ctx context.Context, address string) (*reader.Page, error) {
			return pages.Read(ctx, address, reader.Options{Lang: q.Lang})
		},
	}
}

// good are the addresses of the pages that answer a question.
func good(web *miniweb.Web, q miniweb.Question) []string {
	out := []string{q.ExpectedURL}
	for _, id := range q.AlsoAcceptable {
		out = append(out, web.Route(id).URL)
	}
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Without a model, the passages that answer the question are quoted, each with its page.
func TestMiniwebQuotes(t *testing.T) {
	web := miniweb.Start(t)
	pages, quotes := 0, 0
	for _, q := range web.Questions {
		p := NewPlan(q.Question)
		p.Budget = Budget{Tokens: 50_000, Seconds: 60}
		res, err := Run(t.Context(), p, outsideOf(t, web, q, nil), newTape())
		if err != nil {
			t.Fatal(err)
		}
		if res.End != Quoted {
			t.Errorf("%s ends with %s", q.ID, res.End)
		}
		at := slices.IndexFunc(res.References, func(r cite.Reference) bool { return slices.Contains(good(web, q), r.URL) })
		if at < 0 {
			t.Logf("%s: not the page %s:\n%s", q.ID, q.ExpectedURL, res.Answer)
			continue
		}
		pages++
		quoted := slices.ContainsFunc(res.References, func(r cite.Reference) bool {
			return slices.Contains(good(web, q), r.URL) && strings.Contains(oneLine(r.ExactQuote), oneLine(q.Quote))
		})
		if !quoted || !strings.Contains(oneLine(res.Answer), oneLine(q.Quote)) {
			t.Logf("%s: not the quote %q:\n%s", q.ID, q.Quote, res.Answer)
			continue
		}
		quotes++
	}
	t.Logf("%d questions: the page of %d and the quote of %d are in the answer", len(web.Questions), pages, quotes)
	if quotes*10 < len(web.Questions)*8 {
		t.Errorf("only %d of %d quotes", quotes, len(web.Questions))
	}
}

// finder is a model that searches, reads, and answers with the sentence that it was told to look for, and with
// one that no source has.
type finder struct{ quote, invented string }

var sourceMark = regexp.MustCompile(`⟦\w+ (?:source|来源) (\d+)⟧`)

func (f finder) Ask(_ context.Context, p llm.Prompt) (string, error) {
	switch p.Task {
	case "research.step":
	case "research.check":
		return `{"think":"fine","pass":true}`, nil
	default:
		return `{}`, nil
	}
	switch n, sentence := f.source(p.Messages); {
	case n != "":
		return llm.JSONLine(map[string]string{"think": "found", "action": "answer", "answer": sentence + " [^" + n + "]\n\n" + f.invented + " [^" + n + "]"}), nil
	case strings.Contains(p.Messages[0].Text, "URLTargets"):
		return `{"think":"read","action":"visit","URLTargets":[1]}`, nil
	}
	return `{"think":"look","action":"search","searchRequests":["more about it"]}`, nil
}

// source is the number of the source that has the quote, and what to say: the quote, or the sentence of a
// quote that is only a name.
func (f finder) source(messages []llm.Message) (n, sentence string) {
	for _, m := range messages {
		found := sourceMark.FindStringSubmatch(m.Text)
		if found == nil || !strings.Contains(oneLine(m.Text), oneLine(f.quote)) {
			continue
		}
		before, after, _ := strings.Cut(m.Text, f.quote)
		if len(f.quote) > 20 || after == "" {
			return found[1], f.quote
		}
		before = before[strings.LastIndexAny(before, "\n")+1:]
		if i := strings.LastIndex(before, ". "); i >= 0 {
			before = before[i+2:]
		}
		after, _, _ = strings.Cut(after, "\n")
		after, _, _ = strings.Cut(after, ". ")
		return found[1], before + f.quote + after
	}
	return "", ""
}

// From a question to an answer whose statement is cited from the right page, and whose invention is not.
func TestMiniwebRun(t *testing.T) {
	web := miniweb.Start(t)
	right := 0
	for i, q := range web.Questions {
		t.Run(q.ID, func(t *testing.T) {
			p := NewPlan(q.Question)
			p.Budget = Budget{Tokens: 100_000, Seconds: 60}
			if i%2 == 0 {
				p.Doubtful = Remove
			}
			f := finder{quote: q.Quote, invented: "It was sold to Marcus Vantongeren for 90210 guilders in 1777."}
			if p.Language == "zh" {
				f.invented = "它在一七七七年以九万零二百一十元卖给了王大锤。"
			}
			res, err := Run(t.Context(), p, outsideOf(t, web, q, f), newTape())
			if err != nil {
				t.Fatal(err)
			}
			if res.End != Answered {
				t.Fatalf("it ends with %s: %v", res.End, res.Left)
			}
			for _, k := range res.Knowledge {
				for _, u := range k.References {
					for _, r := range web.Routes {
						if k.Kind == KindPage && r.URL == u && r.Outcome != "ok" && r.Outcome != "redirect" {
							t.Errorf("%s is %s and yet knowledge", u, r.Outcome)
						}
					}
				}
			}
			for _, r := range res.References {
				if !slices.Contains(good(web, q), r.URL) || r.Evidence != cite.EvidencePage {
					t.Errorf("%s is cited for %q", r.URL, r.AnswerChunk)
				}
			}
			invention := strings.TrimRight(f.invented, ".。")
			if marked := strings.Contains(res.Answer, cite.DoubtMark); marked != (p.Doubtful == Mark) || strings.Contains(res.Answer, invention) != marked {
				t.Errorf("the plan says %s for what has no support:\n%s", p.Doubtful, res.Answer)
			}
			if len(res.References) == 0 || res.Report.Supported != res.Report.Marks {
				t.Errorf("the report is %+v:\n%s", res.Report, res.Answer)
				return
			}
			right++
		})
	}
	t.Logf("%d questions: %d answers with the right page and nothing else", len(web.Questions), right)
}
