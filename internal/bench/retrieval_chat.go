package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"nodest/llm"
)

// chatRows are the figures: how many turns of a set, "" = of all, fit. Sets of small talk
// are right where nothing is recalled, the others where they fit.
var chatRows = []struct {
	name, set, says string
	fits            func(s *chatSet, c *chatCase, p prompted) bool
}{
	{"chitchatBlocks", "chitchat", "a block for chit-chat", recalled},
	{"backchannelBlocks", "backchannel", "a block for back-channels", recalled},
	{"greetingsRecalled", "", "greetings of other chats", func(s *chatSet, _ *chatCase, p prompted) bool { return containsAny(p.block, s.greetings) }},
	{"probesFound", "probe", "probes found", found},
	{"correctionsRight", "current", "corrections right", current},
	{"indirectRight", "indirect", "corrections in other words", current},
	{"echoesRight", "echo", "echoes right", beyondEcho},
	{"datesRight", "date", "dates right", found},
	{"oneCharacterFound", "word", "one-character words found", found},
}

// smallTalk reports whether the figure of a set is the share of turns with a block.
func smallTalk(set string) bool { return set == "chitchat" || set == "backchannel" }

// tally is how many turns fit, and of how many.
type tally struct{ n, of int }

// chatFigures are the figures of one way to recall, by the names of chatRows.
type chatFigures struct {
	tallies       map[string]tally
	blocks, lines int
	misses        []chatMiss
}

// chatResult are the figures of one language.
type chatResult struct {
	chatFigures
	messages int // in the memory
	facts    int // found in them by rules, or written by the user
	bm25     chatFigures
}

// MarshalJSON gives each figure the number of its turns beside it.
func (r *chatResult) MarshalJSON() ([]byte, error) {
	m := r.members()
	m["messages"], m["facts"], m["bm25"] = r.messages, r.facts, r.bm25.members()
	return json.Marshal(m)
}

func (r *chatFigures) members() map[string]any {
	m := map[string]any{"linesPerBlock": share(r.lines, r.blocks)} // mean, where there is a block
	for _, row := range chatRows {
		of := r.tallies[row.name]
		m[row.name], m[row.name+"Of"] = of.n, of.of
		if smallTalk(row.set) {
			m[row.name] = share(of.n, of.of)
		}
	}
	return m
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
		r, err := measureChat(ctx, language, o.embedder())
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

// measureChat measures the sets of a language. Corrections in other words have a memory
// of their own, because they contradict the rest.
func measureChat(ctx context.Context, language string, embedder llm.Embedder) (*chatResult, error) {
	set, err := readChatSet(language)
	if err != nil {
		return nil, err
	}
	indirect, err := set.indirect(language)
	if err != nil {
		return nil, err
	}
	r, err := set.measure(ctx, embedder)
	if err != nil {
		return nil, err
	}
	other, err := indirect.measure(ctx, embedder)
	if err != nil {
		return nil, err
	}
	const name = "indirectRight"
	r.tallies[name], r.bm25.tallies[name] = other.tallies[name], other.bm25.tallies[name]
	r.misses = append(r.misses, other.misses...)
	return r, nil
}

// measure takes all turns of a set, with the memory of the product and with BM25.
func (s *chatSet) measure(ctx context.Context, embedder llm.Embedder) (r *chatResult, err error) {
	talks, err := s.talks()
	if err != nil {
		return nil, err
	}
	all := &filling{people: s.people, now: s.now, greetings: s.greetings, talks: talks, facts: s.cases, embedder: embedder}
	f, err := all.fill(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	r = &chatResult{messages: f.messages, facts: len(f.known)}
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
		r.bm25.add(s, c, prompted{block: plain.top(c.Ask, bm25Limit)})
	}
	return r, nil
}

// prompted is what the prompt of one turn contains.
type prompted struct {
	always  string   // its text besides the block and the user's message
	profile []string // facts in always
	block   []string // lines that were recalled, in their order
}

// lines are what the prompt tells: first what is always there.
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
	if r.tallies == nil {
		r.tallies = map[string]tally{}
	}
	right := true
	for _, row := range chatRows {
		if row.set != "" && row.set != c.Set {
			continue
		}
		of, fits := r.tallies[row.name], row.fits(s, c, p)
		if of.of++; fits {
			of.n++
		}
		r.tallies[row.name] = of
		if row.set != "" {
			right = fits != smallTalk(row.set)
		}
	}
	if !right {
		r.misses = append(r.misses, chatMiss{c, p.block})
	}
}

// share is x of n, to three digits.
func share(x, n int) float64 { return math.Round(1000*float64(x)/float64(max(1, n))) / 1000 }

// recalled reports whether anything is.
func recalled(_ *chatSet, _ *chatCase, p prompted) bool { return len(p.block) > 0 }

// found reports whether the answer is in the prompt.
func found(_ *chatSet, c *chatCase, p prompted) bool { return firstWith(p.lines(), c.Answer) >= 0 }

// current reports whether the current value is in the prompt, and the stale one not
// before it.
func current(_ *chatSet, c *chatCase, p prompted) bool {
	lines := p.lines()
	answer, stale := firstWith(lines, c.Answer), firstWith(lines, c.Stale)
	return answer >= 0 && (stale < 0 || answer <= stale)
}

// beyondEcho reports whether the answer is in the prompt or, where there is none,
// whether nothing is recalled, or more than what the user says now.
func beyondEcho(s *chatSet, c *chatCase, p prompted) bool {
	if c.Answer != "" {
		return found(s, c, p)
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
			fmt.Fprintf(out, " %10s %10s", cell(&r.chatFigures), cell(&r.bm25))
		}
		fmt.Fprintln(out)
	}
	for _, line := range chatRows {
		row(line.says, func(f *chatFigures) string {
			of := f.tallies[line.name]
			if smallTalk(line.set) {
				return fmt.Sprintf("%.1f %%", 100*share(of.n, of.of))
			}
			return fmt.Sprintf("%d/%d", of.n, of.of)
		})
	}
	row("lines per block", func(f *chatFigures) string { return fmt.Sprintf("%.1f", share(f.lines, f.blocks)) })
	for _, language := range chatLanguages {
		fmt.Fprintf(out, "%s: %d messages, %d facts\n", language, results[language].messages, results[language].facts)
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
