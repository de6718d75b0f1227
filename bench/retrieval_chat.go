package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// chatFigures are what one way to recall is worth in the turns of a chat. Each figure
// has the number of its turns beside it.
type chatFigures struct {
	ChitchatBlocks      float64 `json:"chitchatBlocks"` // share of small talk that anything is recalled for
	ChitchatBlocksOf    int     `json:"chitchatBlocksOf"`
	BackchannelBlocks   float64 `json:"backchannelBlocks"` // likewise of "hmm", "go on"
	BackchannelBlocksOf int     `json:"backchannelBlocksOf"`
	GreetingsRecalled   int     `json:"greetingsRecalled"` // turns with the greeting of another chat
	GreetingsRecalledOf int     `json:"greetingsRecalledOf"`
	ProbesFound         int     `json:"probesFound"`
	ProbesFoundOf       int     `json:"probesFoundOf"`
	CorrectionsRight    int     `json:"correctionsRight"`
	CorrectionsRightOf  int     `json:"correctionsRightOf"`
	IndirectRight       int     `json:"indirectRight"` // likewise, asked for in other words than told
	IndirectRightOf     int     `json:"indirectRightOf"`
	EchoesRight         int     `json:"echoesRight"`
	EchoesRightOf       int     `json:"echoesRightOf"`
	DatesRight          int     `json:"datesRight"`
	DatesRightOf        int     `json:"datesRightOf"`
	OneCharacterFound   int     `json:"oneCharacterFound"`
	OneCharacterFoundOf int     `json:"oneCharacterFoundOf"`
	LinesPerBlock       float64 `json:"linesPerBlock"` // mean, where there is a block
	blocks, lines       int
	misses              []chatMiss
}

// chatResult are the figures of one language.
type chatResult struct {
	chatFigures
	Messages int         `json:"messages"` // in the memory
	Facts    int         `json:"facts"`    // that rules found in them, or the user wrote
	BM25     chatFigures `json:"bm25"`
}

// chatMiss is a turn that went wrong.
type chatMiss struct {
	of    *chatCase
	lines []string
}

// retrievalChat fills a memory for each language and takes the turns of its set.
func retrievalChat(ctx context.Context, out io.Writer, o RetrievalOptions) error {
	results := map[string]*chatResult{}
	for _, language := range chatLanguages {
		r, err := measureChat(ctx, language)
		if err != nil {
			return fmt.Errorf("%s: %w", language, err)
		}
		results[language] = r
	}
	if o.JSON {
		if err := json.NewEncoder(out).Encode(results); err != nil || !o.Misses {
			return err
		}
	} else {
		printChat(out, results)
	}
	if o.Misses {
		for _, language := range chatLanguages {
			printMisses(out, language, results[language].misses)
		}
	}
	return nil
}

// measureChat measures the sets of a language. What is told and asked for in other words
// has a memory of its own, because it contradicts the rest.
func measureChat(ctx context.Context, language string) (*chatResult, error) {
	set, err := readChatSet(language)
	if err != nil {
		return nil, err
	}
	indirect, err := set.indirect(language)
	if err != nil {
		return nil, err
	}
	r, err := set.measure(ctx)
	if err != nil {
		return nil, err
	}
	other, err := indirect.measure(ctx)
	if err != nil {
		return nil, err
	}
	r.IndirectRight, r.IndirectRightOf = other.IndirectRight, other.IndirectRightOf
	r.BM25.IndirectRight, r.BM25.IndirectRightOf = other.BM25.IndirectRight, other.BM25.IndirectRightOf
	r.misses = append(r.misses, other.misses...)
	return r, nil
}

// measure takes all turns of a set, with the memory of the product and with BM25.
func (s *chatSet) measure(ctx context.Context) (r *chatResult, err error) {
	f, err := s.fill(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	r = &chatResult{Messages: f.messages}
	if r.Facts, err = f.facts(ctx); err != nil {
		return nil, err
	}
	plain := newBM25(f.said)
	for i := range s.cases {
		c := &s.cases[i]
		if c.Ask == "" {
			continue
		}
		p, err := f.turn(ctx, c.Ask)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", c.Ask, err)
		}
		r.add(s, c, p)
		r.BM25.add(s, c, prompted{block: plain.top(c.Ask, bm25Limit)})
	}
	r.finish()
	r.BM25.finish()
	return r, nil
}

// prompted is what a prompt holds for one turn.
type prompted struct {
	always string   // what it holds besides the block, without the message that is answered
	block  []string // lines that were recalled, in their order
}

// lines are those that tell something: what is always there stands first.
func (p prompted) lines() []string {
	if p.always == "" {
		return p.block
	}
	return append([]string{p.always}, p.block...)
}

// add counts one turn.
func (r *chatFigures) add(s *chatSet, c *chatCase, p prompted) {
	if len(p.block) > 0 {
		r.blocks++
		r.lines += len(p.block)
	}
	r.GreetingsRecalledOf++
	if containsAny(p.block, s.greetings) {
		r.GreetingsRecalled++
	}
	right := true
	count := func(ok bool, n, of *int) {
		right = ok
		*of++
		if ok {
			*n++
		}
	}
	switch c.Set {
	case "chitchat":
		right = len(p.block) == 0
		r.ChitchatBlocksOf++
		r.ChitchatBlocks += float64(min(1, len(p.block)))
	case "backchannel":
		right = len(p.block) == 0
		r.BackchannelBlocksOf++
		r.BackchannelBlocks += float64(min(1, len(p.block)))
	case "probe":
		count(c.found(p), &r.ProbesFound, &r.ProbesFoundOf)
	case "current":
		count(c.current(p), &r.CorrectionsRight, &r.CorrectionsRightOf)
	case "indirect":
		count(c.current(p), &r.IndirectRight, &r.IndirectRightOf)
	case "echo":
		count(c.beyondEcho(p), &r.EchoesRight, &r.EchoesRightOf)
	case "date":
		count(c.found(p), &r.DatesRight, &r.DatesRightOf)
	case "word":
		count(c.found(p), &r.OneCharacterFound, &r.OneCharacterFoundOf)
	}
	if !right {
		r.misses = append(r.misses, chatMiss{c, p.block})
	}
}

func (r *chatFigures) finish() {
	r.ChitchatBlocks = share(r.ChitchatBlocks, r.ChitchatBlocksOf)
	r.BackchannelBlocks = share(r.BackchannelBlocks, r.BackchannelBlocksOf)
	r.LinesPerBlock = share(float64(r.lines), r.blocks)
}

// share is x of n, to three digits.
func share(x float64, n int) float64 { return math.Round(1000*x/float64(max(1, n))) / 1000 }

// found reports whether the answer is in the prompt.
func (c *chatCase) found(p prompted) bool { return firstWith(p.lines(), c.Answer) >= 0 }

// current reports whether the current value is in the prompt, and the stale one not
// before it.
func (c *chatCase) current(p prompted) bool {
	lines := p.lines()
	answer, stale := firstWith(lines, c.Answer), firstWith(lines, c.Stale)
	return answer >= 0 && (stale < 0 || answer <= stale)
}

// beyondEcho reports whether the answer, if there is one, is in the prompt, and
// whether more is recalled than what the user says now, or nothing.
func (c *chatCase) beyondEcho(p prompted) bool {
	if c.Answer != "" {
		return c.found(p)
	}
	for _, line := range p.block {
		if !strings.Contains(line, c.Ask) {
			return true
		}
	}
	return len(p.block) == 0
}

// firstWith returns the first line with one of the wordings of a value, which "|"
// separates; -1 = none.
func firstWith(lines []string, value string) int {
	if value == "" {
		return -1
	}
	for i, line := range lines {
		folded := strings.ToLower(line)
		for one := range strings.SplitSeq(strings.ToLower(value), "|") {
			if strings.Contains(folded, one) {
				return i
			}
		}
	}
	return -1
}

func containsAny(lines, texts []string) bool {
	for _, line := range lines {
		for _, text := range texts {
			if strings.Contains(line, text) {
				return true
			}
		}
	}
	return false
}

func printChat(out io.Writer, results map[string]*chatResult) {
	fmt.Fprintf(out, "%-32s", "")
	for _, language := range chatLanguages {
		fmt.Fprintf(out, " %10s %10s", language, "BM25")
	}
	fmt.Fprintln(out)
	row := func(name string, cell func(*chatFigures) string) {
		fmt.Fprintf(out, "%-32s", name)
		for _, language := range chatLanguages {
			r := results[language]
			fmt.Fprintf(out, " %10s %10s", cell(&r.chatFigures), cell(&r.BM25))
		}
		fmt.Fprintln(out)
	}
	of := func(n, of int) string { return fmt.Sprintf("%d/%d", n, of) }
	percent := func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
	row("a block for chit-chat", func(f *chatFigures) string { return percent(f.ChitchatBlocks) })
	row("a block for back-channels", func(f *chatFigures) string { return percent(f.BackchannelBlocks) })
	row("greetings of other chats", func(f *chatFigures) string { return of(f.GreetingsRecalled, f.GreetingsRecalledOf) })
	row("probes found", func(f *chatFigures) string { return of(f.ProbesFound, f.ProbesFoundOf) })
	row("corrections right", func(f *chatFigures) string { return of(f.CorrectionsRight, f.CorrectionsRightOf) })
	row("corrections in other words", func(f *chatFigures) string { return of(f.IndirectRight, f.IndirectRightOf) })
	row("echoes right", func(f *chatFigures) string { return of(f.EchoesRight, f.EchoesRightOf) })
	row("dates right", func(f *chatFigures) string { return of(f.DatesRight, f.DatesRightOf) })
	row("one-character words found", func(f *chatFigures) string { return of(f.OneCharacterFound, f.OneCharacterFoundOf) })
	row("lines per block", func(f *chatFigures) string { return fmt.Sprintf("%.1f", f.LinesPerBlock) })
	for _, language := range chatLanguages {
		fmt.Fprintf(out, "%s: %d messages, %d facts\n", language, results[language].Messages, results[language].Facts)
	}
}

func printMisses(out io.Writer, language string, misses []chatMiss) {
	for _, m := range misses {
		fmt.Fprintf(out, "\n%s %s: %s\n", language, m.of.Set, m.of.Ask)
		if m.of.Answer != "" {
			fmt.Fprintf(out, "  wanted: %s\n", m.of.Answer)
		}
		if m.of.Stale != "" {
			fmt.Fprintf(out, "  stale:  %s\n", m.of.Stale)
		}
		for i, line := range m.lines {
			fmt.Fprintf(out, "  %2d. %s\n", i+1, line)
		}
	}
}
