package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/internal/fault"
)

// Default is the model of a provider that answers where none is named: one of the provider's own
// list, because models end. The configuration may name another one, which stays.
type Default struct {
	Named string // by the configuration; "" = Choose decides

	// Choose picks a model of the list; "" = none will do.
	Choose func(list []Model) string

	// Aliases are tried, in their order, while the list cannot be read. There is one at least.
	Aliases []string

	Fetch func(context.Context) ([]Model, error) // asks the provider for its list

	mu     sync.Mutex
	list   []Model
	read   time.Time            // when list was
	again  time.Time            // the list is not asked for before
	asking chan struct{}        // closed when the answer is there; nil = nobody asks
	gone   map[string]time.Time // models that the provider turned out not to know
}

// How long a list serves to choose from, how long a turn waits for the first one, and the pause
// after a failure. A list that is older serves until there is a new one.
const (
	listAge   = 24 * time.Hour
	listWait  = 3 * time.Second
	listPause = time.Minute
)

// Model names the model. It waits for the list only until it has come, or has failed to, for the first time.
func (d *Default) Model(ctx context.Context) string {
	if d.Named != "" {
		return d.Named
	}
	d.learn(ctx, listAge, false)
	return d.Current()
}

// Pick chooses another kind of model from the same list; "" = there is none, or no list.
func (d *Default) Pick(ctx context.Context, choose func([]Model) string) string {
	d.learn(ctx, listAge, true)
	d.mu.Lock()
	defer d.mu.Unlock()
	return choose(d.list)
}

// Current is Model as far as it is known without asking the provider.
func (d *Default) Current() string {
	if d.Named != "" {
		return d.Named
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := func(id string) bool { _, gone := d.gone[id]; return !gone }
	left := slices.DeleteFunc(slices.Clone(d.list), func(m Model) bool { return !known(m.ID) })
	if id := d.Choose(left); id != "" {
		return id
	}
	if i := slices.IndexFunc(d.Aliases, known); i >= 0 {
		return d.Aliases[i]
	}
	return d.Aliases[0]
}

// Next notes that the provider does not know model, which was the default, and names the one that
// takes its place for a day; "" = there is none. One that the configuration names has no other.
func (d *Default) Next(ctx context.Context, model string) string {
	if d.Named != "" {
		return ""
	}
	d.mu.Lock()
	if d.gone == nil {
		d.gone = map[string]time.Time{}
	}
	d.gone[model] = time.Now()
	d.mu.Unlock()
	d.learn(ctx, listPause, true)
	if next := d.Current(); next != model {
		return next
	}
	return ""
}

// learn asks for the list if it is older than age, once for all callers. It waits for the answer
// if there is no list yet, again also after one that failed.
func (d *Default) learn(ctx context.Context, age time.Duration, again bool) {
	d.mu.Lock()
	now := time.Now()
	if d.asking == nil && now.Sub(d.read) >= age && !now.Before(d.again) {
		d.asking = make(chan struct{})
		go d.ask(context.WithoutCancel(ctx), d.asking) // for all, and not longer than listWait
	}
	asking := d.asking
	if age == listAge && (d.list != nil || !again && !d.again.IsZero()) {
		asking = nil
	}
	d.mu.Unlock()
	if asking == nil {
		return
	}
	select {
	case <-asking:
	case <-ctx.Done():
	}
}

func (d *Default) ask(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	list, err := d.Fetch(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(done)
	now := time.Now()
	d.asking = nil
	if err != nil || len(list) == 0 {
		d.again = now.Add(listPause)
		return
	}
	d.list, d.read = boundedModels(list), now
	maps.DeleteFunc(d.gone, func(_ string, at time.Time) bool { return now.Sub(at) >= listAge })
}

// WithDefault resolves the model of requests that name none, or chosen, which was the default a
// moment ago ("" = only those that name none). If the provider turns out not to know its default,
// it asks the one that takes its place, once, and says so: in the log, and in the first chunk.
// An error about an unknown model names models that exist.
func WithDefault(log *slog.Logger, p Provider, gen Generator, chosen string) Generator {
	return stream(func(ctx context.Context, req Request, yield func(Chunk, error) bool) {
		byDefault := req.Model == "" || req.Model == chosen
		if req.Model == "" {
			req.Model = p.DefaultModel(ctx)
		}
		repeatable, err := pass(signed(gen.Stream(ctx, req), req.Model), yield)
		if byDefault && repeatable && fault.Is(err, fault.ModelNotFound) && ctx.Err() == nil {
			if next := p.NextModel(ctx, req.Model); next != "" {
				log.InfoContext(ctx, "the provider no longer knows its default model; another one takes its place",
					"provider", p.Name(), "model", req.Model, "next", next)
				w := Warning{Code: "model_replaced", Detail: req.Model + " no longer exists; " + next + " answered"}
				req.Model = next
				_, err = pass(signed(gen.Stream(ctx, req), next), w.With(yield))
			}
		}
		if err != nil && !errors.Is(err, errBroken) {
			yield(Chunk{}, namingModels(ctx, p, req.Model, err))
		}
	})
}

// signed tells with the first chunk of a reply who was asked.
func signed(reply iter.Seq2[Chunk, error], asked string) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for c, err := range reply {
			if err == nil {
				c.Asked, asked = asked, ""
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// offered is how many models an error names at most.
const offered = 5

// namingModels adds to an error about an unknown model which ones exist: the default, then those
// whose names begin alike, the newest first.
func namingModels(ctx context.Context, p Provider, model string, err error) error {
	if !fault.Is(err, fault.ModelNotFound) {
		return err
	}
	e := *fault.Public(err)
	e.Message = fmt.Sprintf("%s (model %q)", e.Message, model)
	e.Details = maps.Clone(e.Details)
	_ = e.With("model", model)
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	list, _ := p.Models(ctx) // without the list, the error says as much as it can
	if names := namesLike(model, p.DefaultModel(ctx), list); len(names) > 0 {
		e.Message += "; models that exist: " + strings.Join(names, ", ")
		_ = e.With("models", names)
	}
	return &e
}

// namesLike are models for a reply, the ones most like a name first.
func namesLike(model, first string, list []Model) []string {
	var names []string
	for _, m := range list {
		if m.Generates && m.ID != model {
			names = append(names, m.ID)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(
			cmp.Compare(btoi(b == first), btoi(a == first)),
			cmp.Compare(alike(model, b), alike(model, a)),
			CompareVersions(b, a))
	})
	return names[:min(len(names), offered)]
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// alike is how long two names are the same from their beginning, in bytes.
func alike(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

var digits = regexp.MustCompile(`\d+`)

// CompareVersions compares the numbers in two names of models, from the left to the right: 3.10 is
// newer than 3.9, and 3.7.1 than 3.7.
func CompareVersions(a, b string) int {
	return slices.CompareFunc(digits.FindAllString(a, -1), digits.FindAllString(b, -1), func(a, b string) int {
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

// ChooseEmbedding is the named model if the list has it, else the newest one for vectors with a
// stable name; "" = there is none.
func ChooseEmbedding(list []Model, named string, stable *regexp.Regexp) (best string) {
	for _, m := range list {
		switch {
		case !m.Embeds || !stable.MatchString(m.ID):
		case m.ID == named:
			return m.ID
		case best == "" || CompareVersions(m.ID, best) > 0:
			best = m.ID
		}
	}
	return best
}

// noModel finds what servers say about a model that does not exist, or no longer: "models/x is not
// found for API version v1beta", "The model `x` does not exist", "x is not a valid model ID", "model
// 'x' not found, try pulling it first", "No endpoints found for x", "has been decommissioned".
var noModel = regexp.MustCompile(`(?i)\bmodels?\b.{0,300}?(?:\bnot (?:been )?found|\bno(?:t|n['’]t) exist|n['’]t exist|\bno longer (?:available|supported)|` +
	`\b(?:been|is|was) (?:decommissioned|retired|removed|shut ?down|discontinued)|\bis not a valid|\bnot supported for \w+content)|` +
	`\b(?:not a valid|unknown|invalid|no such|unrecognized) model\b|\bmodel[_ -]not[_ -](?:found|exist)|\bno endpoints found for `)

// noModelWords are the codes of the same.
var noModelWords = []string{"model_not_found", "model_not_available", "model_decommissioned", "invalid_model", "unknown_model"}

// SaysNoModel reports whether an error says that the provider does not know the model: by its code,
// or by its message. status is the HTTP status, 0 = in a stream.
func SaysNoModel(status int, code, message string) bool {
	if slices.Contains(noModelWords, code) {
		return true
	}
	switch status {
	case 0, 400, 403, 404, 410, 422:
		return noModel.MatchString(message)
	}
	return false
}
