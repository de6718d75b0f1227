package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
)

// size is the length of an answer, in tokens.
type size struct{ most, least int }

// Lengths of the answers of the model.
var (
	sizeStep     = size{3000, 300}
	sizeFinal    = size{4000, 120}
	sizeQuestion = size{200, 100}
	sizeCheck    = size{300, 150}
	sizeStrict   = size{700, 300}
	sizeAnalysis = size{500, 200}
	sizeRewrite  = size{500, 250}
	sizeCluster  = size{900, 400}
	sizeSplit    = size{500, 250}
	sizeVerify   = size{1500, 150}
)

// heard is the recorded answer of the model.
type heard struct {
	Text    string    `json:"text"`
	Usage   llm.Usage `json:"usage"`
	Failed  *failure  `json:"failed,omitempty"`
	Prompt  int       `json:"prompt"`            // tokens that were estimated for it, before the ratio
	Reply   int       `json:"reply"`             // tokens that it might have
	Refused bool      `json:"refused,omitempty"` // the call does not fit into the budget; it was not made
}

// question is what the model is asked in one call.
type question struct {
	kind  string // part of the key, and the label of the task
	size  size
	json  bool
	last  bool // the answer of the run, which may use all that is left
	share int  // divides what is left for searching: the call is worth a share-th of it at most; 0 = all

	system   string      // begins the prompt
	known    []Knowledge // as much of it as there is room for
	texts    bool        // known stands in the last message, not as a conversation
	about    string      // the subject that known is cut to
	messages []llm.Message
	reviews  []string
	ask      string // ends the prompt
}

// ask asks the model. It reserves the cost of the call, and cuts what is known and the length of the answer
// to what is left. errSpent and failures let the run go on.
func (m *member) ask(ctx context.Context, q question) (string, error) {
	key := m.key(q.kind)
	if !m.begun.Model {
		return "", errSpent
	}
	h, err := m.hear(ctx, key, q)
	switch {
	case err != nil:
		return "", err
	case h.Refused:
		return "", errSpent
	}
	m.paid(m.purse.pay(h))
	if h.Failed != nil {
		m.tried(h.Failed)
		return "", h.Failed
	}
	m.tried(nil)
	return h.Text, nil
}

// hear returns the recorded answer of a key, or makes the call. A refusal is recorded as well: what is left may be
// less when the run is played again.
func (m *member) hear(ctx context.Context, key string, q question) (heard, error) {
	var p llm.Prompt
	var most Cost
	if _, made := m.rec.Recorded(key); !made {
		var fits bool
		if p, most, fits = m.reserve(ctx, q); !fits {
			return once(ctx, m, key, never, nil, func(context.Context) (heard, Cost, error) { return heard{Refused: true}, Cost{}, nil })
		}
	}
	return call(ctx, m, key, m.limit(q.last), most, func(ctx context.Context) (heard, Cost, error) { return m.send(ctx, p) })
}

// reserve puts together a request that fits into the budget, and says what it may cost. What crashes have lost
// since the step began counts too: the run may have crashed in this very call.
func (m *member) reserve(ctx context.Context, q question) (p llm.Prompt, most Cost, fits bool) {
	purse := m.purse
	purse.lost = m.rec.Lost().minus(m.lostAt)
	left := purse.forSearch()
	if q.last {
		left = purse.left()
	}
	if q.share > 0 {
		left = min(left, purse.forSearch()/q.share)
	}
	prompt := m.prompt(q, nil)
	room := left - purse.prompt(prompt) - q.size.least
	if room < 0 {
		return p, most, false
	}
	if len(q.known) > 0 {
		part := min(int(float64(room)*knownShare/purse.ratio), purse.room)
		prompt = m.prompt(q, fit(ctx, q.known, q.about, part))
	}
	tokens := purse.prompt(prompt)
	text, thought := purse.reply(left-tokens, q.size.most)
	if text < q.size.least {
		return p, most, false
	}
	p = llm.Prompt{Messages: prompt, JSON: q.json, MaxTokens: text, MaxThought: thought, Task: llm.Task("research." + q.kind)}
	return p, purse.most(tokens, int(purse.excess*float64(text+thought))), true
}

// knownShare is the part of the room of a prompt that what is known may take. The rest is for the answer and
// later calls.
const knownShare = 0.6

// limit is the time on the run's clock at which a call is given up. The regular share of it is for searching.
func (r *run) limit(last bool) time.Duration {
	limit := r.plan.Budget.Limit()
	switch {
	case limit <= 0:
		return never
	case last:
		return limit
	}
	return time.Duration(regular * float64(limit))
}

// firstWait is how long a run waits before it asks a provider again that turns requests away; then twice as long,
// and so on, mostWaits times. What the provider asks for counts, up to longestWait.
const (
	firstWait   = time.Second
	mostWaits   = 3
	longestWait = 30 * time.Second
)

// patiently asks again while the provider is away or takes no more requests, as long as that has cost nothing: one
// request is reserved. A provider that has stayed away is not waited for again before it has answered.
func (r *run) patiently(ctx context.Context, ask func() (string, error), paid func() bool) (text string, err error) {
	text, err = ask()
	for n := 0; n < mostWaits && turnedAway(err) && !paid() && ctx.Err() == nil && !r.away.Load(); n++ {
		timer := time.NewTimer(max(firstWait<<n, min(fault.Public(err).RetryAfter, longestWait)))
		select {
		case <-timer.C:
			text, err = ask()
		case <-ctx.Done():
			timer.Stop()
		}
	}
	r.away.Store(turnedAway(err))
	return text, err
}

func turnedAway(err error) bool {
	return fault.Is(err, fault.UpstreamRate) || fault.Is(err, fault.UpstreamDown)
}

// costsNothing reports whether a request has failed before the model has read it.
func costsNothing(err error) bool {
	switch fault.Public(err).Code {
	case fault.UpstreamRate, fault.UpstreamDown, fault.UpstreamAuth, fault.UpstreamQuota, fault.ModelNotFound, fault.ContextTooLarge, fault.NotConfigured:
		return true
	}
	return llm.ProviderStatus(err) >= 400
}

// send makes one request, or several if a provider turns it away. A request of which the provider does not say what
// it has cost counts as an estimate: its prompt, and its reply if there is one.
func (m *member) send(ctx context.Context, p llm.Prompt) (h heard, c Cost, err error) {
	h.Prompt, h.Reply = llm.EstimatePrompt(p.Messages), p.MaxTokens+p.MaxThought
	p.Used = func(u llm.Usage) { h.Usage = h.Usage.Plus(u) }
	paid := func() bool { return h.Usage.PromptTokens+h.Usage.CompletionTokens > 0 }
	if m.o.Model == nil { // there was one when the run began
		err = fault.New(fault.NotConfigured, "there is no language model any more")
	} else {
		h.Text, err = m.patiently(ctx, func() (string, error) { return m.o.Model.Ask(ctx, p) }, paid)
	}
	if !paid() && (err == nil || !costsNothing(err)) {
		h.Usage.PromptTokens, h.Usage.CompletionTokens = h.Prompt, llm.EstimateTokens(h.Text)
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), errLate) {
			err = errLate
		}
		h.Failed, h.Text = failureOf(err), ""
	}
	c = Cost{Calls: 1, PromptTokens: h.Usage.PromptTokens, CompletionTokens: h.Usage.CompletionTokens}
	if h.Usage.CostUSD != nil {
		c.USD = *h.Usage.CostUSD
	}
	return h, c, err
}

// prompt puts a question together.
func (m *member) prompt(q question, known []Knowledge) []llm.Message {
	shown := make([]Knowledge, len(known))
	for i, k := range known {
		k.Answer = m.inBlock(k)
		shown[i] = k
	}
	out := []llm.Message{{Role: llm.System, Text: q.system}}
	if q.texts {
		q.ask, shown = strings.Join(append(Texts(shown), q.ask), "\n\n"), nil
	}
	return append(out, Compose(q.messages, shown, q.ask, q.reviews)...)
}
