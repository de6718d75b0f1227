// Package offline is a provider that needs no network and no key: a Generator that
// replies in character and an Embedder, both deterministic.
//
// The replies are a demonstration, not a language model. They are assembled from what the prompt
// contains (above all the card's example dialogue, but also the user's message, memories, documents
// and search results) and set phrases in the card's language. What it posts and comments in the
// social circle is made in the same way (circle.go). The same request gives the same reply; another
// Request.Variant gives another reply. The provider is called "offline" and the model
// "offline-demo" everywhere, so that nobody mistakes it for a real model. It replies only where it
// was chosen or listed as a fallback.
//
// It serves for trying the product, for tests, and for load tests: a reply costs about
// as much as reading the prompt once.
package offline

import (
	"context"
	"iter"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"nodest/llm"
)

// Names of the provider and of its model.
const (
	Name  = "offline"
	Model = "offline-demo"
)

// Options tune a Generator. The zero value streams as fast as it is read.
type Options struct {
	Delay time.Duration // before each word
}

// Generator is the offline model. It is safe for concurrent use.
type Generator struct{ opts Options }

var _ llm.Provider = (*Generator)(nil)

// New returns the offline model.
func New(opts Options) *Generator { return &Generator{opts} }

// Name returns "offline".
func (*Generator) Name() string { return Name }

// DefaultModel returns "offline-demo".
func (*Generator) DefaultModel(context.Context) string { return Model }

// NextModel names none: the one model cannot end.
func (*Generator) NextModel(context.Context, string) string { return "" }

// Models lists the only model.
func (*Generator) Models(context.Context) ([]llm.Model, error) {
	return []llm.Model{{ID: Model, Name: "Offline demo (not a language model)", Generates: true}}, nil
}

// Stream answers word by word. It obeys MaxTokens (by llm.EstimateTokens) and Stop,
// answers to every model name as offline-demo, and fails only when ctx ends. If it is offered
// the tools of knowledge bases it calls them for a question.
func (g *Generator) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if calls := askFor(req); calls != nil {
			if err := llm.Sleep(ctx, g.opts.Delay); err != nil {
				yield(llm.Chunk{}, llm.NetworkError(ctx, Name, err))
				return
			}
			usage := llm.Usage{PromptTokens: llm.EstimatePrompt(req.Messages), CompletionTokens: llm.EstimateTokens(calls[0].Arguments)}
			yield(llm.Chunk{Last: true, Finish: llm.FinishStop, Model: Model, Usage: &usage, Calls: calls}, nil)
			return
		}
		text, finish := limit(answer(req), req)
		for piece := range words(text) {
			if err := llm.Sleep(ctx, g.opts.Delay); err != nil {
				yield(llm.Chunk{}, llm.NetworkError(ctx, Name, err))
				return
			}
			if !yield(llm.Chunk{Text: piece, Model: Model}, nil) {
				return
			}
		}
		usage := llm.Usage{PromptTokens: llm.EstimatePrompt(req.Messages), CompletionTokens: llm.EstimateTokens(text)}
		yield(llm.Chunk{Last: true, Finish: finish, Model: Model, Usage: &usage}, nil)
	}
}

// answer is the whole text that is going to be streamed.
func answer(req llm.Request) string {
	if req.Task == llm.Circle {
		return circleText(req)
	}
	return compose(readScene(req), req)
}

// limit cuts text where the request wants it to end.
func limit(text string, req llm.Request) (string, llm.Finish) {
	for _, stop := range req.Stop {
		if i := strings.Index(text, stop); i >= 0 && stop != "" {
			text = text[:i]
		}
	}
	if req.MaxTokens <= 0 || llm.EstimateTokens(text) <= req.MaxTokens {
		return text, llm.FinishStop
	}
	ends := []int{0}
	for piece := range words(text) {
		ends = append(ends, ends[len(ends)-1]+len(piece))
	}
	over := sort.Search(len(ends), func(i int) bool { return llm.EstimateTokens(text[:ends[i]]) > req.MaxTokens })
	return text[:ends[over-1]], llm.FinishLength
}

// words splits text into the pieces that are streamed: a word with the blanks
// behind it, or two characters of a script without blanks. Joined they are text.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			n := wordLen(text)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

func wordLen(text string) int {
	n, dense, blank := 0, 0, false
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		mark := unicode.Is(unicode.M, r) || r == '\u200d'
		switch {
		case unicode.IsSpace(r):
			blank = true
		case mark: // belongs to the character before it
		case blank, dense == 2:
			return n
		case isDense(r):
			if n > 0 && dense == 0 {
				return n
			}
			dense++
		case dense > 0 && !unicode.IsPunct(r):
			return n
		}
		n += size
	}
	return n
}

// isDense reports whether r is of a script that writes without blanks.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}
