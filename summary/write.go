package summary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nodest/fault"
	"nodest/framework"
	"nodest/llm"
)

// tokensFor bounds an answer that is to have length characters, in tokens: a
// character of Chinese is about one, and models do not count well.
func tokensFor(length int) int { return 2*length + 256 }

// Work is what a summary is made of (Plan.Work).
type Work struct {
	Lines    []ChatLine // to summarise: all of the range for a rebuild, else those since Previous
	Previous *Summary   // in force; nil = none
	Known    int        // lines at the beginning of Lines that Previous covers; not 0 in a rebuild only
	Rebuild  bool       // Previous is not folded in
	Length   int        // of the summary at most, in code points; default 1000
	Location *time.Location
}

func (w Work) withDefaults() Work {
	if w.Length == 0 {
		w.Length = DefaultSettings().Length
	}
	if w.Location == nil {
		w.Location = time.UTC
	}
	return w
}

// earlier is the text that the summary goes on from.
func (w *Work) earlier() string {
	if w.Rebuild || w.Previous == nil {
		return ""
	}
	return w.Previous.Text
}

// Draft is a summary's text and how it came about.
type Draft struct {
	Text   string
	Method Method // MethodModel or MethodExtractive
	Calls  int    // of the model, retries after failures included
	Cause  error  // of an extractive text: what the model did wrong; nil = there is no model
}

const (
	chunkSize = 12_000 // code points of a transcript that one call gets

	// Answers that are asked for one text: the first, one more when that was
	// empty, refused or copied, and a shorter form of one that is too long.
	answersPerText = 3
)

// retryWaits are the waits after failures that may pass: a call is tried at most
// once more than there are waits.
var retryWaits = []time.Duration{time.Second, 4 * time.Second}

// longestAsked is how long a wait gets at most that the provider asks for.
const longestAsked = 15 * time.Second

// errNotASummary is the cause of an extractive text when the model did answer.
var errNotASummary = errors.New("the model returned no usable summary")

// Write writes the text of a summary with model; nil = by rule alone. A
// transcript that is too long for one call is read in parts: all but the last are
// summarised by themselves, and the last call gets these and the end of the
// transcript.
//
// Where the model fails the text is made by rule instead. So the only error is that
// ctx ended, as context.Cause tells it; nothing was made then.
//
// The calls: one for every 12,000 characters to read, each of them once more after
// an answer that cannot be used, one to shorten, and each at most twice more after
// failures that may pass, with 1 s and 4 s between them, or what the provider asks for.
func Write(ctx context.Context, model llm.Asker, w Work) (Draft, error) {
	w = w.withDefaults()
	if model == nil {
		return Draft{Text: ExtractSummary(w), Method: MethodExtractive}, nil
	}
	s := scribe{model: model, work: w, material: materialOf(w.Lines, previousText(w.Previous))}
	draft := Draft{Method: MethodModel}
	draft.Text, draft.Cause = s.write(ctx)
	draft.Calls = s.calls
	switch {
	case ctx.Err() != nil:
		return Draft{Calls: s.calls}, context.Cause(ctx)
	case draft.Cause != nil:
		draft.Method, draft.Text = MethodExtractive, ExtractSummary(w)
	}
	return draft, nil
}

// scribe is one run of Write.
type scribe struct {
	*material
	model llm.Asker
	work  Work
	lang  framework.Language
	calls int
}

func previousText(s *Summary) string {
	if s == nil {
		return ""
	}
	return s.Text
}

func (s *scribe) write(ctx context.Context) (string, error) {
	chunks := chunked(blocksOf(s.work.Lines, s.work.Location), chunkSize)
	s.lang = framework.LanguageOf(s.plain...)
	if len(chunks) == 0 {
		return "", errNotASummary
	}
	last := len(chunks) - 1
	parts, err := s.condense(ctx, chunks[:last])
	if err != nil {
		return "", err
	}
	earlier := strings.Join(slices.DeleteFunc(append([]string{s.work.earlier()}, parts...), blank), "\n\n")
	text, err := s.ask(ctx, summaryPrompt(s.lang, earlier, chunks[last], s.work.Length), s.shortest())
	if err != nil {
		return "", err
	}
	if runes(text) > acceptable(s.work.Length) {
		return s.shorten(ctx, text)
	}
	return text, nil
}

// condense summarises parts of a long transcript, and their summaries again until
// they fit in one call.
func (s *scribe) condense(ctx context.Context, parts []string) ([]string, error) {
	for {
		short := make([]string, 0, len(parts))
		again := make([]block, 0, len(parts))
		size := 0
		for _, part := range parts {
			text, err := s.part(ctx, part)
			if err != nil {
				return nil, err
			}
			short, again = append(short, text), append(again, block{text: text})
			size += runes(text)
		}
		if size <= chunkSize {
			return short, nil
		}
		parts = chunked(again, chunkSize)
	}
}

// part summarises one part. One that the model will not summarise is shortened by
// rule; the others need not suffer for it.
func (s *scribe) part(ctx context.Context, transcript string) (string, error) {
	text, err := s.ask(ctx, partPrompt(s.lang, transcript, s.work.Length), least(0, runes(transcript), s.work.Length))
	if errors.Is(err, errNotASummary) {
		return pick(quotesOf(transcript), s.work.Length), nil
	}
	return cutAtSentence(text, s.work.Length), err
}

// shortest is how long the summary is at least.
func (s *scribe) shortest() int { return least(s.messages, s.size, s.work.Length) }

// ask returns the model's summary, which may be too long. It asks once more, with
// what was wrong, after an answer that is none. Of a second one with names or numbers
// that nobody said the sentences without them are taken, where they are enough.
func (s *scribe) ask(ctx context.Context, prompt string, shortest int) (string, error) {
	again := ""
	for range answersPerText - 1 {
		answer, err := s.call(ctx, prompt+again)
		if err != nil {
			return "", err
		}
		text, verdict := s.accept(answer, shortest, s.work.Length)
		switch {
		case verdict == Accepted, verdict == TooLong:
			return text, nil
		case verdict == MadeUp && again != "":
			if kept, _ := s.withoutMadeUp(text); runes(kept) >= shortest {
				return kept, nil
			}
		}
		again = s.complaint(text, verdict)
	}
	return "", errNotASummary
}

// complaint tells the model what was wrong with its answer.
func (s *scribe) complaint(text string, v Verdict) string {
	w := wordings[s.lang]
	what := w.wrong[v]
	if v == MadeUp {
		_, names := s.withoutMadeUp(text)
		what += " " + llm.JSONLine(names[:min(len(names), 10)])
	}
	return "\n\n" + fmt.Sprintf(w.again, what)
}

// shorten never fails: what the model does not make shorter is cut.
func (s *scribe) shorten(ctx context.Context, text string) (string, error) {
	answer, err := s.call(ctx, shortenPrompt(s.lang, text, s.work.Length))
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err == nil {
		if shorter, verdict := s.accept(answer, s.shortest(), s.work.Length); verdict == Accepted {
			return shorter, nil
		} else if verdict == TooLong && runes(shorter) < runes(text) {
			text = shorter
		}
	}
	return cutAtSentence(text, s.work.Length), nil
}

func acceptable(length int) int { return 13 * length / 10 }

// call asks once, and again after failures that may pass. An answer that a filter
// stopped, or without any text, is an empty one.
func (s *scribe) call(ctx context.Context, prompt string) (string, error) {
	for attempt := 0; ; attempt++ {
		s.calls++
		answer, err := s.model.Ask(ctx, llm.Prompt{Text: prompt, MaxTokens: tokensFor(s.work.Length)})
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case fault.Is(err, fault.EmptyReply), fault.Is(err, fault.Blocked):
			return "", nil
		case attempt == len(retryWaits) || !llm.Passes(err):
			return "", err
		}
		asked := min(fault.Public(err).RetryAfter, longestAsked)
		if err := pause(ctx, max(retryWaits[attempt], asked)); err != nil {
			return "", err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
