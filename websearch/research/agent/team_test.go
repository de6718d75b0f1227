package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"nodest/llm"
	"nodest/websearch/provider"
	"nodest/websearch/reader"
)

// experts is a model whose members each know one page.
func experts(kinds *[]string) llm.AskerFunc {
	var mu sync.Mutex
	return func(_ context.Context, p llm.Prompt) (string, error) {
		mu.Lock()
		*kinds = append(*kinds, strings.TrimPrefix(string(p.Task), "research."))
		mu.Unlock()
		asked := p.Messages[len(p.Messages)-1].Text
		switch p.Task {
		case "research.step":
			for _, city := range []string{"Oslo", "Bergen"} {
				if strings.Contains(asked, "the mayor of "+city) && strings.Contains(offered(p), "a") {
					return `{"action":"answer","answer":"The mayor of ` + city + ` was elected in the year ` + years[city] + ` by the council [^1]."}`, nil
				}
			}
			return `{"action":"search","searchRequests":["mayors Norway"]}`, nil
		case "research.split":
			return `{"subproblems":["Who is the mayor of Oslo?","Who is the mayor of Bergen?","One too many"]}`, nil
		case "research.check":
			return `{"pass":true}`, nil
		case "research.final":
			return "A final answer.", nil
		}
		return "{}", nil
	}
}

var years = map[string]string{"Oslo": "2019", "Bergen": "2023"}

// cities finds a page for each city that is searched.
func cities(o Outside) Outside {
	o.Search = func(_ context.Context, q provider.Query) (out provider.Results, _ error) {
		for city := range years {
			if strings.Contains(q.Text, city) {
				out.Results = append(out.Results, provider.Result{Title: city, URL: "https://" + strings.ToLower(city) + ".no/mayor", Description: "About " + city})
			}
		}
		return out, nil
	}
	o.Read = func(_ context.Context, address string) (*reader.Page, error) {
		for city, year := range years {
			if strings.Contains(address, strings.ToLower(city)) {
				return &reader.Page{URL: address, FinalURL: address, Title: city, Markdown: "The mayor of " + city + " was elected in the year " + year + " by the council of the city."}, nil
			}
		}
		return nil, &reader.Error{Outcome: reader.NotFound, URL: address}
	}
	return o
}

func TestATeamWorksSideBySide(t *testing.T) {
	for _, tt := range []struct {
		promise string
		change  func(*Plan)
		split   int // calls of the planner
		members int
	}{
		{"the model divides the question", func(*Plan) {}, 1, 2},
		{"the parts of the plan are the members'", func(p *Plan) {
			p.Questions = []string{"Who is the mayor of Oslo?", "Who is the mayor of Bergen?"}
		}, 0, 2},
		{"a small budget has no team", func(p *Plan) { p.Budget.Tokens = 8000 }, 0, 0},
		{"one member is no team", func(p *Plan) { p.Team = 1 }, 0, 0},
	} {
		t.Run(tt.promise, func(t *testing.T) {
			p := planOf("Who are the mayors?")
			p.Team = 2
			tt.change(&p)
			var kinds []string
			rec := newTape()
			res, err := Run(t.Context(), p, cities(Outside{Model: experts(&kinds)}), rec)
			if err != nil {
				t.Fatal(err)
			}
			members := map[int]int{}
			spent := rec.spentOn(t, "verify") // which belongs to no step
			for _, s := range res.Steps {
				members[s.Member]++
				spent += s.Cost.Tokens()
			}
			splits := len(slices.DeleteFunc(kinds, func(k string) bool { return k != "split" }))
			if splits != tt.split || len(members)-1 != tt.members || spent != res.Cost.Tokens() {
				t.Fatalf("%d calls of the planner, steps by member %v, %d tokens in steps of %d", splits, members, spent, res.Cost.Tokens())
			}
			if tt.members == 0 {
				return
			}
			if res.End != Answered || len(res.References) != 2 {
				t.Fatalf("end %s: %s\n%+v\n%v", res.End, res.Answer, res.References, res.Left)
			}
			// Each member's own [^1] leads to its own page.
			for i, city := range []string{"Oslo", "Bergen"} {
				r := res.References[i]
				if !strings.Contains(r.ExactQuote, city) || !strings.Contains(r.URL, strings.ToLower(city)) || !strings.Contains(r.AnswerChunk, city) {
					t.Errorf("the reference %d is %+v", i+1, r)
				}
			}
		})
	}
}

func TestASinglePartOfThePlannerIsASubQuestion(t *testing.T) {
	p := planOf(bridge)
	p.Team = 3
	s := &script{steps: []string{search1, visit1, answer1, answer1}, replies: map[string]string{"split": `{"subproblems":["Who built the bridge of Arven?"]}`}}
	res, _, _ := play(t, p, s)
	if res.End != Answered || !slices.Equal(res.Steps[0].Gaps, []string{bridge, "Who built the bridge of Arven?"}) {
		t.Errorf("end %s, steps %+v", res.End, res.Steps)
	}
}

// Pages and results are text of others, which may hit a mistake of ours. It costs the page or the search; one in
// the work of a member ends the run with an error, and never the server.
func TestAPanicEndsNoMoreThanItMust(t *testing.T) {
	p := planOf("Who are the mayors?")
	p.Team = 2
	for _, tt := range []struct {
		promise string
		change  func(*Outside)
		fails   bool
		read    int
	}{
		{"a page", func(o *Outside) {
			read := o.Read
			o.Read = func(ctx context.Context, address string) (*reader.Page, error) {
				if strings.Contains(address, "bergen") {
					panic("no text was expected to be like this")
				}
				return read(ctx, address)
			}
		}, false, 1},
		{"a search", func(o *Outside) {
			search := o.Search
			o.Search = func(ctx context.Context, q provider.Query) (provider.Results, error) {
				if strings.Contains(q.Text, "Bergen") {
					panic("no result was expected to be like this")
				}
				return search(ctx, q)
			}
		}, false, 1},
		{"a member", func(o *Outside) {
			model := o.Model
			o.Model = llm.AskerFunc(func(ctx context.Context, p llm.Prompt) (string, error) {
				if strings.Contains(p.Messages[len(p.Messages)-1].Text, "the mayor of Bergen") {
					panic("no reply was expected to be like this")
				}
				return model.Ask(ctx, p)
			})
		}, true, 0},
	} {
		t.Run(tt.promise, func(t *testing.T) {
			var kinds []string
			o := cities(Outside{Model: experts(&kinds)})
			tt.change(&o)
			res, err := Run(t.Context(), p, o, newTape())
			if (err != nil) != tt.fails || err != nil && (!strings.Contains(err.Error(), "panic: a value of type string") || !strings.Contains(err.Error(), "team_test.go") || strings.Contains(err.Error(), "expected")) {
				t.Fatalf("the error is %v", err)
			}
			if err == nil && (res.Answer == "" || len(res.ReadURLs) != tt.read) {
				t.Errorf("read %q, answer %q", res.ReadURLs, res.Answer)
			}
		})
	}
}

// Events about searches, pages and thoughts have the number of their member.
func TestEventsNameTheirMember(t *testing.T) {
	p := planOf("Who are the mayors?")
	p.Team = 2
	var kinds []string
	o := cities(Outside{Model: experts(&kinds)})
	var mu sync.Mutex
	told := map[any]map[string]bool{}
	o.Tell = func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Type != "search" && e.Type != "visit" && e.Type != "think" {
			return
		}
		member, ok := e.Data["member"].(int)
		if !ok {
			t.Errorf("%s has the members %v", e.Type, e.Data)
		}
		for city := range years {
			if strings.Contains(strings.ToLower(fmt.Sprint(e.Data)), strings.ToLower(city)) && member > 0 {
				if told[member] == nil {
					told[member] = map[string]bool{}
				}
				told[member][city] = true
			}
		}
	}
	if _, err := Run(t.Context(), p, o, newTape()); err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || len(told[1]) != 1 || !told[1]["Oslo"] || len(told[2]) != 1 || !told[2]["Bergen"] {
		t.Errorf("the members are told to search and read of %v", told)
	}
}
