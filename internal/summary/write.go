package summary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nodest/framework"
	"nodest/internal/fault"
	"nodest/llm"
)

// tokensFor limits an answer: a Chinese character is a token, and models do not count well.
func tokensFor(length int) int { return 2*length + 256 }

// Work is what a summary is made of (Plan.Work).
type Work struct {
	Lines    []ChatLine // to summarise: all of the range for a rebuild, else those since Previous
	Previous *Summary   // in force; nil = none
	Known    int        // lines at the beginning of Lines that Previous covers; not 0 in a rebuild only
	Rebuild  bool       // Previous is not folded in
	Length   int        // length of the summary at most, in code points; default 1000
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

// earlier is the text that the summary continues.
func (w *Work) earlier() string {
	if w.Rebuild {
		return ""
	}
	return w.Previous.text()
}

// Draft is a summary's text and how it was made.
type Draft struct {
	Text   string
	Method Method // MethodModel or MethodExtractive
	Cause  error  // the model's fault, for an extractive text; nil = there is no model
}

const (
	chunkSize = 12_000 // code points of a transcript that one call gets
	mostRead  = 20 * chunkSize

	// Answers per text: the first, one more if it was unusable, and a shorter one.
	answersPerText = 3
)

// retryWaits are the waits after transient failures.
var retryWaits = []time.Duration{time.Second, 4 * time.Second}

// longestAsked is the longest wait that a provider can ask for.
const longestAsked = 15 * time.Second

// errNotASummary is the cause of an extractive text after a model's answers.
var errNotASummary = errors.New("the model returned no usable summary")

// Write writes the text of a summary with model; nil = by rule. A transcript that is too long
// for one call is split: all parts but the last are summarised first, and the last call gets
// their summaries and the last part.
//
// If the model fails, the text is made by rule. So the only error is that ctx ended, as
// context.Cause.
//
// Of a transcript of more than 240,000 characters, as only an imported chat has, the newest are
// read: what was said long before is found by recall.
//
// A summary that loses most of what must not be lost (Work.essentials) is asked for once more, and then mended: what
// it lost is put behind it, word for word.
//
// There is one call per 12,000 characters, repeated once after an unusable answer and once after one that loses too
// much, one to shorten, and up to two retries of each after transient failures.
func Write(ctx context.Context, model llm.Asker, w Work) (Draft, error) {
	w = w.withDefaults()
	w.leaveOut()
	if model == nil {
		return Draft{Text: extractSummary(w), Method: MethodExtractive}, nil
	}
	s := scribe{model: model, work: w, material: materialOf(w.Lines, w.Previous.text())}
	draft := Draft{Method: MethodModel}
	draft.Text, draft.Cause = s.write(ctx)
	switch {
	case ctx.Err() != nil:
		return Draft{}, context.Cause(ctx)
	case draft.Cause != nil:
		draft.Method, draft.Text = MethodExtractive, extractSummary(w)
	}
	return draft, nil
}

// leaveOut leaves out all lines but the last ones that have mostRead code points together.
func (w *Work) leaveOut() {
	from := len(w.Lines) - newest(w.Lines)
	w.Lines, w.Known = w.Lines[from:], max(0, w.Known-from)
}

type scribe struct {
	*material
	model llm.Asker
	work  Work
	lang  framework.Language
}

func (s *Summary) text() string {
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
	prompt := summaryPrompt(s.lang, earlier, chunks[last], s.work.Length)
	text, err := s.ask(ctx, prompt, s.shortest())
	if err != nil {
		return "", err
	}
	essentials := s.work.essentials()
	if text, err = s.keeping(ctx, prompt, text, essentials); err != nil {
		return "", err
	}
	if runes(text) > acceptable(s.work.Length) {
		if text, err = s.shorten(ctx, text); err != nil {
			return "", err
		}
	}
	return mended(text, essentials, s.work.Length), nil
}

// condense summarises parts, and their summaries again until they fit into one call.
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

// part summarises one part. One that the model refuses to summarise is shortened by rule.
func (s *scribe) part(ctx context.Context, transcript string) (string, error) {
	text, err := s.ask(ctx, partPrompt(s.lang, transcript, s.work.Length), least(0, runes(transcript), s.work.Length))
	if errors.Is(err, errNotASummary) {
		return pick(quotesOf(transcript), s.work.Length), nil
	}
	return cutAtSentence(text, s.work.Length), err
}

func (s *scribe) shortest() int { return least(s.messages, s.size, s.work.Length) }

// ask returns the model's summary, which may be too long. After an unusable answer it asks once
// more, with the reason. Of a second one with names or numbers that nobody said, the other
// sentences are used if they are enough.
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

func (s *scribe) complaint(text string, v Verdict) string {
	w := texts(s.lang)
	what := w[string(v)]
	if v == MadeUp {
		_, names := s.withoutMadeUp(text)
		what += " " + llm.JSONLine(names[:min(len(names), 10)])
	}
	return "\n\n" + fmt.Sprintf(w["again"], what)
}

// shorten never fails: what the model does not shorten is cut.
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

// call retries after transient failures. A filtered or empty answer is "".
func (s *scribe) call(ctx context.Context, prompt string) (string, error) {
	for attempt := 0; ; attempt++ {
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
		if err := llm.Sleep(ctx, max(retryWaits[attempt], asked)); err != nil {
			return "", err
		}
	}
}
