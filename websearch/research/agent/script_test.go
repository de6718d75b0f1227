package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/websearch/provider"
	"nodest/websearch/reader"
)

// script is a model that plays a list of steps. Other calls have the same reply each time.
type script struct {
	t       *testing.T
	steps   []string          // replies to the calls of kind "step", in order
	replies map[string]string // to other kinds
	reject  map[string]int    // how often answers fail a check
	cost    func(p llm.Prompt, reply string) llm.Usage

	mu      sync.Mutex
	prompts []llm.Prompt
}

func (s *script) Ask(_ context.Context, p llm.Prompt) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = append(s.prompts, p)
	reply := s.reply(p)
	if s.cost != nil {
		p.Used(s.cost(p, reply))
	}
	if reply == "" {
		return "", fault.New(fault.UpstreamBadAnswer, "the model says nothing")
	}
	return reply, nil
}

func (s *script) reply(p llm.Prompt) string {
	kind := strings.TrimPrefix(string(p.Task), "research.")
	switch kind {
	case "step":
		if len(s.steps) == 0 {
			return ""
		}
		next := s.steps[0]
		s.steps = s.steps[1:]
		return next
	case "check":
		for _, k := range []string{checkDefinitive, checkFreshness, checkPlurality, checkCompleteness, checkStrict} {
			if strings.Contains(p.Messages[0].Text, promptsEnglish()["check-"+k]) && s.reject[k] > 0 {
				s.reject[k]--
				return rejecting
			}
		}
		return `{"think":"fine","pass":true}`
	}
	if r, ok := s.replies[kind]; ok {
		return r
	}
	return map[string]string{
		"question": `{"needsDefinitive":true}`, "rewrite": `{"queries":[]}`, "cluster": `{"clusters":[]}`,
		"analysis": `{"recap":"r","blame":"b","improvement":"i"}`, "split": `{"subproblems":["one"]}`, "final": "The final words.",
		"verify": `{"verdicts":[]}`,
	}[kind]
}

// of returns the prompts of a kind.
func (s *script) of(kind string) (out []llm.Prompt) {
	for _, p := range s.prompts {
		if string(p.Task) == "research."+kind {
			out = append(out, p)
		}
	}
	return out
}

// offered are the actions that a prompt of a step allows, as initials of search, visit, reflect and answer.
func offered(p llm.Prompt) string {
	out := ""
	for _, x := range []string{"search", "visit", "reflect", "answer"} {
		if strings.Contains(p.Messages[0].Text, "\n"+x+" – ") || strings.Contains(p.Messages[0].Text, "\n"+x+"：") {
			out += x[:1]
		}
	}
	return out
}

// tape is a recorder in memory.
type tape struct {
	mu      sync.Mutex
	answers map[string]json.RawMessage
	order   []string       // keys in the order in which they were recorded
	begun   map[string]int // how often a call was begun
	most    map[string]Cost
	spent   Cost
	lost    Cost
}

func newTape() *tape {
	return &tape{answers: map[string]json.RawMessage{}, begun: map[string]int{}, most: map[string]Cost{}}
}

func (r *tape) Recorded(key string) (json.RawMessage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.answers[key]
	return a, ok
}

func (r *tape) Begin(_ context.Context, key string, most Cost) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun[key]++
	r.most[key] = most
	return nil
}

func (r *tape) Record(_ context.Context, key string, answer json.RawMessage, cost Cost) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, twice := r.answers[key]; twice {
		return fmt.Errorf("%s was recorded twice", key)
	}
	r.answers[key] = answer
	r.order = append(r.order, key)
	r.spent.add(cost)
	return nil
}

// restarted is what a process does that finds the calls of another one: those without an answer are lost.
func (r *tape) restarted() *tape {
	for key, most := range r.most {
		if r.answers[key] == nil {
			r.lost.add(most)
			delete(r.most, key)
		}
	}
	return r
}

func (r *tape) Lost() Cost {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// small is a web whose searches find pages that are named after the words.
type small struct {
	perQuery int // results; 0 = 3
	broken   func(url string) error

	mu       sync.Mutex
	searched []string
	read     []string
}

func (w *small) search(_ context.Context, q provider.Query) (provider.Results, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.searched = append(w.searched, q.Text)
	var out provider.Results
	name := strings.Join(strings.Fields(strings.ToLower(q.Text)), "-")
	for i := range max(w.perQuery, 0) {
		out.Results = append(out.Results, provider.Result{
			Title: q.Text, URL: fmt.Sprintf("https://host%d-%s.org/page", i, name), Description: fmt.Sprintf("Result %d about %s.", i, q.Text),
		})
	}
	return out, nil
}

func (w *small) page(_ context.Context, address string) (*reader.Page, error) {
	w.mu.Lock()
	w.read = append(w.read, address)
	w.mu.Unlock()
	if w.broken != nil {
		if err := w.broken(address); err != nil {
			return nil, err
		}
	}
	return &reader.Page{URL: address, FinalURL: address, Title: "Page " + address, Markdown: "The page " + address + " says that the bridge of Arven was opened on 3 May 1931 after nine years of work.\n\nIt is 412 metres long and carries two tracks."}, nil
}

func (w *small) outside(model llm.Asker) Outside {
	return Outside{Model: model, Search: w.search, Read: w.page}
}

func newWeb() *small { return &small{perQuery: 3} }

// plan has room for everything.
func planOf(question string) Plan {
	return Plan{Question: question, Language: "en", Web: true, Team: 1, Doubtful: Mark, Budget: Budget{Tokens: 400_000, Seconds: 600}}
}

func play(t *testing.T, p Plan, s *script) (*Result, *small, *tape) {
	t.Helper()
	web, rec := newWeb(), newTape()
	s.t = t
	res, err := Run(t.Context(), p, web.outside(s), rec)
	if err != nil {
		t.Fatal(err)
	}
	return res, web, rec
}

const (
	search1   = `{"think":"look","action":"search","searchRequests":["arven bridge"]}`
	visit1    = `{"think":"read","action":"visit","URLTargets":[1]}`
	answer1   = `{"think":"done","action":"answer","answer":"The bridge of Arven was opened on 3 May 1931 [^1]."}`
	reflect1  = `{"think":"gaps","action":"reflect","questionsToAnswer":["Who built the bridge of Arven?"]}`
	search2   = `{"action":"search","searchRequests":["arven builders history"]}`
	reflect2  = `{"action":"reflect","questionsToAnswer":["Who built the bridge of Arven?","How long is the bridge of Arven?"]}`
	code1     = `{"action":"coding","codingIssue":"count the years"}`
	rejecting = `{"think":"too thin","pass":false,"improvement_plan":"For the best answer, you must name the architect."}`
)

const bridge = "When was the bridge of Arven opened?"

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		promise string
		steps   []string
		replies map[string]string
		reject  map[string]int
		plan    func(*Plan)
		offers  []string // for each step that the model was asked for
		end     string
	}{
		{promise: "an answer at the first step is final, and is not checked", steps: []string{answer1}, offers: []string{"sra"}, end: Trivial},
		{promise: "a search is followed by neither a search nor an answer", steps: []string{search1, visit1, answer1}, offers: []string{"sra", "vr", "sra"}, end: Answered},
		{promise: "reading pages is not followed by reading pages", steps: []string{search1, visit1, search2, visit1, answer1}, offers: []string{"sra", "vr", "sra", "vr", "sra"}, end: Answered},
		{promise: "without a result there is nothing to read", steps: []string{search1, reflect1, answer1, answer1}, plan: func(p *Plan) { p.Hosts = []string{"nowhere.org"} }, offers: []string{"sra", "r", "sa", "sra"}, end: Answered},
		{promise: "a reflection is not followed by a reflection", steps: []string{reflect1, answer1}, offers: []string{"sra", "sa"}, end: Answered},
		{promise: "three open questions are enough", steps: []string{reflect2, search1, visit1, answer1, answer1, answer1}, offers: []string{"sra", "sa", "v", "sa", "sra", "sra"}, end: Answered},
		{promise: "a rejected answer is followed by no answer", steps: []string{search1, visit1, answer1, search2, visit1, answer1}, reject: map[string]int{checkStrict: 1}, offers: []string{"sra", "vr", "sra", "sr", "vr", "sra"}, end: Answered},
		{promise: "what must be recent is neither answered nor divided before a search", steps: []string{search1, visit1, answer1}, replies: map[string]string{"question": `{"needsFreshness":true}`}, offers: []string{"s", "vr", "sra"}, end: Answered},
		{promise: "programs are refused, and the next step has everything", steps: []string{search1, code1, visit1, answer1}, offers: []string{"sra", "vr", "svra", "sra"}, end: Answered},
	} {
		t.Run(tt.promise, func(t *testing.T) {
			p := planOf(bridge)
			if tt.plan != nil {
				tt.plan(&p)
			}
			s := &script{steps: tt.steps, replies: tt.replies, reject: tt.reject}
			res, _, _ := play(t, p, s)
			var offers []string
			for _, p := range s.of("step") {
				offers = append(offers, offered(p))
			}
			if !slices.Equal(offers, tt.offers) || res.End != tt.end {
				t.Errorf("the steps had %q and the run ended with %s, want %q and %s", offers, res.End, tt.offers, tt.end)
			}
		})
	}
}
