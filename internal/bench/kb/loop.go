package kb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"nodest/chat"
	"nodest/internal/cite"
	"nodest/knowledge/search"
)

// talk is a question as a user asks a character.
type talk struct {
	question
	gold  map[search.Ref]bool // chunks with the passage
	found bool                // one of them is among the ten that a search finds first
}

// loopFigures is how a character answers questions from documents. All but the counts and rounds
// are shares, from 0 to 1.
type loopFigures struct {
	Model         string  `json:"model"`
	Questions     int     `json:"questions"`
	Answerable    int     `json:"answerable"`
	QuoteRecall10 float64 `json:"quoteRecall10"` // recall of searches for the answerable questions
	answerFigures
	ReadTrigger float64 `json:"readTrigger"` // turns that read, of those whose passage was in no excerpt
	// RepeatedSearch are searches that were carried out and have shown nothing new,
	// SuppressedSearch those that the model asked for again and did not get.
	RepeatedSearch   float64 `json:"repeatedSearch"`
	SuppressedSearch float64 `json:"suppressedSearch"`
	RoundsMean       float64 `json:"roundsMean"` // requests to the model in a turn
	RoundsP95        float64 `json:"roundsP95"`

	WithoutTools answerFigures `json:"withoutTools"` // one search before the request instead
}

// answerFigures is what answers are like.
type answerFigures struct {
	CitationHit    float64 `json:"citationHit"`    // answers that quote from a chunk with the passage, of the answerable questions
	QuoteHit       float64 `json:"quoteHit"`       // answers that quote the passage itself
	NeedlessSearch float64 `json:"needlessSearch"` // share of turns of small talk
	FalseAnswer    float64 `json:"falseAnswer"`    // answers with a citation, of the unanswerable questions
}

// The limits of a loop.
const (
	leastCitations = 0.7 // citation hits, of the passages that searches find
	mostRounds     = 4
	mostFalse      = 0.2
)

// scriptedModel is the model of a loop whose figures are judged.
const scriptedModel = "a scripted model"

// gate returns an error for each figure beyond its limit. Those of a real model only tell.
func (l *loopFigures) gate() error {
	if l == nil || l.Model != scriptedModel {
		return nil
	}
	var missed []error
	for _, limit := range []struct {
		name            string
		got, from, upTo float64
	}{
		{"citationHit", l.CitationHit, leastCitations * l.QuoteRecall10, 1},
		{"repeatedSearch", l.RepeatedSearch, 0, 0},
		{"roundsP95", l.RoundsP95, 1, mostRounds},
		{"falseAnswer", l.FalseAnswer, 0, mostFalse},
	} {
		if limit.got < limit.from || limit.got > limit.upTo {
			missed = append(missed, fmt.Errorf("loop.%s is %.3f, not from %.3f to %.3f", limit.name, limit.got, limit.from, limit.upTo))
		}
	}
	return errors.Join(missed...)
}

func (l *loopFigures) print(out io.Writer) error {
	if l == nil {
		return nil
	}
	fmt.Fprintf(out, "loop with %s: %d questions, %d answerable; searches find the passage of %.3f among ten\n", l.Model, l.Questions, l.Answerable, l.QuoteRecall10)
	row := func(name string, a answerFigures) {
		fmt.Fprintf(out, "%-14s citation hit %.3f (the passage itself %.3f), false answers %.3f, needless searches %.3f\n", name, a.CitationHit, a.QuoteHit, a.FalseAnswer, a.NeedlessSearch)
	}
	row("with tools", l.answerFigures)
	row("without tools", l.WithoutTools)
	_, err := fmt.Fprintf(out, "read trigger %.3f, repeated searches %.3f (%.3f more were asked for and not made), rounds mean %.2f, p95 %.0f\n",
		l.ReadTrigger, l.RepeatedSearch, l.SuppressedSearch, l.RoundsMean, l.RoundsP95)
	return err
}

// outcome is what a turn has come to.
type outcome struct {
	sightings
	refs  []cite.Reference
	trace *chat.ToolTrace // nil = nothing was offered
}

func (t *outcome) searched() bool { return t.trace != nil && len(t.trace.Searches) > 0 }

// talkAbout lets a character answer questions from a library, and talks to it about nothing.
func talkAbout(ctx context.Context, out io.Writer, l *library, talks []talk, o Options) (_ *loopFigures, err error) {
	w, err := openWorld(ctx, l, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	r := &loopFigures{Questions: len(talks)}
	with, without := tally{loop: r, world: w}, tally{loop: r, world: w}
	for i := range talks {
		q := &talks[i]
		q.gold = l.gold(&q.question)
		rank, _, err := l.ask(ctx, &q.question, q.gold, o)
		if err != nil {
			return nil, err
		}
		q.found = rank.quote > 0 && rank.quote <= 10
		turn, err := w.talk(ctx, q.Question, true)
		if err != nil {
			return nil, err
		}
		hit := with.add(q, turn)
		if o.Misses && hit != q.Answerable {
			fmt.Fprintf(out, "%-8s found %v, searches %v, quoted %q: %s (%s: %s)\n", q.ID, q.found, turn.trace, quotes(turn.refs), q.Question, q.File, q.Quote)
		}
		if turn, err = w.talk(ctx, q.Question, false); err != nil {
			return nil, err
		}
		without.add(q, turn)
	}
	for _, line := range smallTalk {
		for _, c := range []*tally{&with, &without} {
			turn, err := w.talk(ctx, line, c == &with)
			if err != nil {
				return nil, err
			}
			c.smallTalk(turn)
		}
	}
	r.Model, r.answerFigures, r.WithoutTools = w.name, with.answers(), without.answers()
	with.finish()
	return r, nil
}

func quotes(refs []cite.Reference) (all []string) {
	for _, r := range refs {
		all = append(all, r.ExactQuote)
	}
	return all
}

// tally adds up turns.
type tally struct {
	loop  *loopFigures
	world *world

	answerable, hits, quoted, found int
	unanswerable, invented          int
	unseen, read                    int // turns whose passage was in no excerpt
	small, needless                 int
	asked, suppressed, stale        int // searches
	rounds                          []int
}

// add counts the turn of a question, and reports whether it cites what answers it, or anything.
func (c *tally) add(q *talk, t *outcome) (hit bool) {
	c.rounds = append(c.rounds, t.rounds)
	c.asked, c.suppressed = c.asked+t.asked, c.suppressed+t.suppressed
	if t.trace != nil {
		for _, s := range t.trace.Searches {
			if s.Repeated {
				c.stale++
			}
		}
	}
	if !q.Answerable {
		c.unanswerable++
		if len(t.refs) > 0 {
			c.invented++
		}
		return len(t.refs) > 0
	}
	c.answerable++
	if q.found {
		c.found++
	}
	quote := bareText(q.Quote)
	if !slices.ContainsFunc(t.excerpts, func(text string) bool { return strings.Contains(bareText(text), quote) }) && t.searched() {
		c.unseen++
		if len(t.trace.Reads) > 0 {
			c.read++
		}
	}
	chunk, passage := c.world.cites(q, t.refs)
	if chunk {
		c.hits++
	}
	if passage {
		c.quoted++
	}
	return chunk
}

func (c *tally) smallTalk(t *outcome) {
	c.small++
	if t.searched() {
		c.needless++
	}
}

func (c *tally) answers() answerFigures {
	return answerFigures{
		CitationHit: shareOf(c.hits, c.answerable), QuoteHit: shareOf(c.quoted, c.answerable),
		NeedlessSearch: shareOf(c.needless, c.small), FalseAnswer: shareOf(c.invented, c.unanswerable),
	}
}

// finish writes what only turns with tools have.
func (c *tally) finish() {
	r := c.loop
	r.Answerable, r.QuoteRecall10 = c.answerable, shareOf(c.found, c.answerable)
	r.ReadTrigger = shareOf(c.read, c.unseen)
	r.RepeatedSearch = shareOf(c.stale-c.suppressed, c.asked-c.suppressed)
	r.SuppressedSearch = shareOf(c.suppressed, c.asked)
	slices.Sort(c.rounds)
	sum := 0
	for _, n := range c.rounds {
		sum += n
	}
	r.RoundsMean = shareOf(sum, len(c.rounds))
	if n := len(c.rounds); n > 0 {
		r.RoundsP95 = float64(c.rounds[(n*95+99)/100-1])
	}
}

func shareOf(part, whole int) float64 { return float64(part) / float64(max(1, whole)) }

// cites reports whether references quote from a chunk with the passage that answers a question,
// and whether they quote some of the passage.
func (w *world) cites(q *talk, refs []cite.Reference) (chunk, passage bool) {
	quote := bareText(q.Quote)
	for _, ref := range refs {
		said := bareText(ref.ExactQuote)
		if ref.FileID != w.files[q.File] || said == "" {
			continue
		}
		passage = passage || strings.Contains(quote, said) || hasMost(said, []rune(quote))
		for gold := range q.gold {
			chunk = chunk || strings.Contains(w.library.bare[gold], said)
		}
	}
	return chunk || passage, passage
}

// smallTalk needs no document.
var smallTalk = []string{
	"Hello there!", "Good morning! Did you sleep well?", "Thanks, that was kind of you.", "*waves and sits down by the fire*",
	"Haha, you are funny.", "I am so tired today.", "Good night, sleep well.", "How are you today?", "Let's take a walk together.", "Would you like some tea?",
	"你好呀！", "早上好，昨晚睡得好吗？", "谢谢你。", "哈哈，你真逗。", "我今天好累。", "晚安，做个好梦。", "我想你了。", "*轻轻点头*", "好的，回头见。", "要不要一起喝杯茶？",
}
