package agent

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"nodest/llm"
	"nodest/websearch/reader"
)

// after is a recorder that has the first answers of another one.
func (r *tape) after(n int) *tape {
	out := newTape()
	for _, key := range r.order[:n] {
		out.answers[key], out.begun[key], out.most[key] = r.answers[key], 1, r.most[key]
	}
	return out
}

// plain is a result without what depends on the time.
func (r *Result) plain(t *testing.T) *Result {
	t.Helper()
	out, again := *r, Result{}
	out.Cost.Ms = 0
	out.Steps = append([]Step{}, r.Steps...)
	for i := range out.Steps {
		out.Steps[i].Cost.Ms = 0
	}
	data, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	return &again
}

// A crash may come behind every answer. The run then goes on from there: with the same result, and
// without a call that was answered before. The model's replies depend on what it is asked, so it is
// asked the same as well.
func TestARunGoesOnFromEveryAnswer(t *testing.T) {
	for name, change := range map[string]func(*Plan, *greedy){
		"alone":       func(*Plan, *greedy) {},
		"with words":  func(p *Plan, _ *greedy) { p.Queries = []string{"arven bridge"} },
		"a team":      func(p *Plan, _ *greedy) { p.Team = 3 },
		"satisfied":   func(_ *Plan, g *greedy) { g.content = true },
		"little left": func(p *Plan, _ *greedy) { p.Budget.Tokens = 9000 },
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(bridge)
			p.Budget.Tokens = 60_000
			play := func(t *testing.T, rec *tape) *Result {
				g := &greedy{seed: 7}
				change(&p, g)
				o := newWeb().outside(g)
				o.Embedder = recorded{"hash256"}
				got, err := Run(t.Context(), p, o, rec)
				if err != nil {
					t.Fatal(err)
				}
				return got.plain(t)
			}
			var want *Result
			first := newTape()
			synctest.Test(t, func(t *testing.T) { want = play(t, first) })
			for n := range len(first.order) + 1 {
				synctest.Test(t, func(t *testing.T) {
					rec := first.after(n)
					if got := play(t, rec); !reflect.DeepEqual(got, want) {
						t.Fatalf("after %d of %d answers the result is\n%+v\nwant\n%+v", n, len(first.order), got, want)
					}
					for key, times := range rec.begun {
						if times > 1 {
							t.Fatalf("after %d answers, %s is called again", n, key)
						}
					}
				})
			}
			t.Logf("%d answers, %d calls of the model, %d steps, end %s: the same from behind each", len(first.order), want.Cost.Calls, len(want.Steps), want.End)
		})
	}
}

// dying is a recorder of a process that ends when an answer is about to be stored.
type dying struct {
	*tape
	left int // answers until then
}

var errDied = errors.New("the process is gone")

func (d *dying) Record(ctx context.Context, key string, answer json.RawMessage, cost Cost) error {
	d.mu.Lock()
	d.left--
	over := d.left < 0
	d.mu.Unlock()
	if over {
		return errDied
	}
	return d.tape.Record(ctx, key, answer, cost)
}

// A crash may lose the answer of a call. It is made again, what it may have cost stays counted, and the run
// keeps its budget all the same.
func TestALostAnswerIsPaidFromTheBudget(t *testing.T) {
	p := planOf(bridge)
	p.Budget.Tokens = 30_000
	play := func(rec Recorder, g *greedy) (*Result, error) { return Run(t.Context(), p, newWeb().outside(g), rec) }
	whole := newTape()
	if _, err := play(whole, &greedy{seed: 3}); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for n := range len(whole.order) {
		rec := newTape()
		if _, err := play(&dying{rec, n}, &greedy{seed: 3}); !errors.Is(err, errDied) {
			t.Fatalf("behind %d answers the error is %v", n, err)
		}
		g := &greedy{seed: 3}
		res, err := play(rec.restarted(), g)
		if err != nil {
			t.Fatal(err)
		}
		if used := rec.spent.Tokens() + rec.lost.Tokens(); res.Cost.Tokens() != used || used > p.Budget.Tokens+g.worst || res.Answer == "" {
			t.Errorf("behind %d answers: says %d tokens, %d were used of %d", n, res.Cost.Tokens(), used, p.Budget.Tokens)
		}
		if rec.lost.Tokens() > 0 {
			lost++
		}
	}
	t.Logf("%d crashes, %d of them in a call of the model", len(whole.order), lost)
	if lost == 0 {
		t.Error("no crash lost anything")
	}
}

// The conversation goes on while a run works, and what was said may be edited or deleted. A run that is played again
// still has the conversation in which it began.
func TestAConversationThatChangesChangesNoRun(t *testing.T) {
	play := func(t *testing.T, rec *tape, said ...string) *Result {
		p := planOf(bridge)
		p.Budget.Tokens = 60_000
		for i, text := range said {
			p.History = append(p.History, llm.Message{Role: []llm.Role{llm.User, llm.Assistant}[i%2], Text: text})
		}
		got, err := Run(t.Context(), p, newWeb().outside(&greedy{seed: 7}), rec)
		if err != nil {
			t.Fatal(err)
		}
		return got.plain(t)
	}
	begun := []string{"I read https://arven.example.org/old today.", "Good.", "And then?", "Ask on."}
	first := newTape()
	var want *Result
	synctest.Test(t, func(t *testing.T) { want = play(t, first, begun...) })
	for n := 1; n <= len(first.order); n++ {
		synctest.Test(t, func(t *testing.T) {
			if got := play(t, first.after(n), "I read https://other.example.org/new today.", "Good.", "The reply is written by now."); !reflect.DeepEqual(got, want) {
				t.Fatalf("after %d of %d answers the result is\n%+v\nwant\n%+v", n, len(first.order), got, want)
			}
		})
	}
}

// A model that is set up only after a run has begun changes nothing of it: it searches and quotes to its end.
func TestAModelThatComesLaterChangesNoRun(t *testing.T) {
	first := newTape()
	want, err := Run(t.Context(), planOf(bridge), newWeb().outside(nil), first)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= len(first.order); n++ {
		got, err := Run(t.Context(), planOf(bridge), newWeb().outside(&greedy{seed: 7}), first.after(n))
		if err != nil || !reflect.DeepEqual(got.plain(t), want.plain(t)) {
			t.Fatalf("after %d of %d answers the result is\n%+v, %v\nwant\n%+v", n, len(first.order), got, err, want)
		}
	}
}

// A page goes by another address than the one at which it was read, and is gone by the time that a run is played again.
// It is still there under the address at which it was read: the answer has its quotes.
func TestAPageIsReadAgainAtItsAddress(t *testing.T) {
	first := newTape()
	play := func(rec *tape) (*Result, []string) {
		web := newWeb()
		o := web.outside(&script{steps: []string{search1, visit1, answer1}})
		o.Read = func(ctx context.Context, address string) (*reader.Page, error) {
			page, err := web.page(ctx, address)
			if strings.HasPrefix(address, "https://canonical.") {
				return nil, &reader.Error{Outcome: reader.NotFound, URL: address}
			}
			page.Canonical = "https://canonical." + strings.TrimPrefix(address, "https://")
			return page, err
		}
		res, err := Run(t.Context(), planOf(bridge), o, rec)
		if err != nil {
			t.Fatal(err)
		}
		return res, web.read
	}
	want, _ := play(first)
	cited := slices.IndexFunc(first.order, func(key string) bool { return strings.Contains(key, "/cite/") })
	got, read := play(first.after(cited))
	if len(read) == 0 || strings.Contains(strings.Join(read, " "), "canonical") || len(want.References) != 1 || !strings.Contains(want.References[0].URL, "canonical.") {
		t.Errorf("read %q again; cited %+v", read, want.References)
	}
	if !reflect.DeepEqual(got.plain(t), want.plain(t)) {
		t.Errorf("the result is\n%+v\nwant\n%+v", got, want)
	}
}

// A run that crashes in the same call again and again keeps its budget as well.
func TestCrashesInOneCallArePaidFromTheBudget(t *testing.T) {
	for _, team := range []int{1, 2} {
		p := planOf(bridge)
		p.Budget.Tokens, p.Team = 40_000, team
		play := func(rec Recorder, g *greedy) (*Result, error) { return Run(t.Context(), p, newWeb().outside(g), rec) }
		whole := newTape()
		if _, err := play(whole, &greedy{seed: 3}); err != nil {
			t.Fatal(err)
		}
		most := 0
		for n := range len(whole.order) {
			rec := newTape()
			for range 10 {
				if _, err := play(&dying{rec, n - len(rec.order)}, &greedy{seed: 3}); !errors.Is(err, errDied) {
					t.Fatalf("behind %d answers the error is %v", n, err)
				}
				if rec.restarted(); rec.lost.Calls == 0 {
					break // it has died in no call of the model
				}
			}
			g := &greedy{seed: 3}
			res, err := play(rec, g)
			if err != nil {
				t.Fatal(err)
			}
			used := rec.spent.Tokens() + rec.lost.Tokens()
			if most = max(most, rec.lost.Calls); res.Cost.Tokens() != used || used > p.Budget.Tokens+g.worst || res.Answer == "" {
				t.Errorf("a team of %d, behind %d answers: says %d tokens, %d were used of %d, %d calls lost", team, n, res.Cost.Tokens(), used, p.Budget.Tokens, rec.lost.Calls)
			}
		}
		if most < 3 {
			t.Errorf("at most %d calls were lost", most)
		}
	}
}
