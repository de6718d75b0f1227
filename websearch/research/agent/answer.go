package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"nodest/internal/cite"
	"nodest/websearch/research/markdown"
)

// Limits of an answer.
const (
	mostImages   = 5
	quotes       = 4   // passages, where there is no written answer
	quotesOfPage = 2   // passages of one page
	quoteUnits   = 400 // length of each, about
)

// conclude writes the answer of a member whose steps have ended without one that counts.
func (m *member) conclude(ctx context.Context, end string) (string, error) {
	if m.accepted {
		return end, nil
	}
	if n := len(m.steps); n > 0 && m.steps[n-1].N == m.total {
		m.total++
		clear(m.ordinals)
	}
	m.before = m.purse.spent
	s := Step{Action: actAnswer, Question: clip(m.question, mostShown)}
	answer, err := m.finally(ctx)
	if fatal(err) != nil {
		return "", err
	}
	if answer != "" {
		m.candidate, m.failed = answer, ""
	}
	m.leave(ctx, end)
	if m.candidate == "" {
		if end != Quoted && errors.Is(err, errSpent) {
			end = Budgeted
		}
		return end, nil
	}
	m.log("did-final")
	s.Result = m.diary[len(m.diary)-1]
	m.tellStep(&s)
	return end, m.record(ctx, s)
}

// finally asks for an answer from what is known, a second time if the model has failed.
func (m *member) finally(ctx context.Context) (answer string, err error) {
	for range 2 {
		var reply string
		reply, err = m.ask(ctx, question{
			kind: "final", size: sizeFinal, last: true,
			system: m.head() + "\n" + m.say("final", m.plan.Language), known: m.known, about: m.question,
			messages: m.history, reviews: m.plans, ask: m.clipped(m.question),
		})
		if answer = answerIn(reply); err == nil && answer != "" || errors.Is(err, errSpent) || fatal(err) != nil {
			return answer, err
		}
	}
	return "", err
}

// answerIn is the answer in a reply that may be JSON all the same.
func answerIn(reply string) string {
	if o, err := objectIn(reply, "answer"); err == nil {
		return o.Text("answer")
	}
	return strings.TrimSpace(reply)
}

// leave notes what was left out.
func (m *member) leave(ctx context.Context, end string) {
	for _, q := range m.open() {
		m.left = append(m.left, m.say("left-question", clip(q, mostShown)))
	}
	switch {
	case m.candidate == "" && end != Quoted:
		m.left = append(m.left, m.say("left-question", clip(m.question, mostShown)))
	case m.failed != "":
		m.left = append(m.left, m.failed)
	case m.candidate != "":
		kinds := m.kinds
		if len(kinds) == 0 {
			kinds = append(m.checksByRule(), checkStrict)
		}
		m.left = append(m.left, m.say("left-unchecked", strings.Join(kinds, ", ")))
	}
	if n := len(m.ranked(ctx, m.question)); n > 0 && (end == Budgeted || end == Late) {
		m.left = append(m.left, m.say("left-pages", n))
	}
}

// cited is the recorded answer with its references.
type cited struct {
	Answer     string                `json:"answer"`
	References []cite.Reference      `json:"references"`
	Images     []cite.ImageReference `json:"images"`
	Report     cite.Report           `json:"report"`
}

// cite repairs the answer and checks it against the pages that were opened. Without one, it makes an answer of quotes.
func (m *member) cite(ctx context.Context, end string) (cited, error) {
	if end != Trivial && m.candidate != "" {
		return m.verify(ctx, end)
	}
	return decide(ctx, m, "cite", func(ctx context.Context) cited {
		if end == Trivial {
			return cited{Answer: markdown.Mend(markdown.Footnotes(m.candidate, nil), m.web.pool.Hits()), Report: cite.Report{Unsourced: []string{}}}
		}
		sources, _ := m.sources(ctx)
		return m.quote(ctx, sources, end)
	})
}

func sameSource(a cite.Source) func(cite.Source) bool {
	return func(b cite.Source) bool {
		return a.URL == b.URL && a.FileID == b.FileID && a.ChunkID == b.ChunkID && a.Page == b.Page
	}
}

// sources are what can be cited, with their texts: pages that were opened and documents; search results only if
// there are none. The texts of pages come from memory, or from where they were stored under
// the addresses at which they were read.
func (m *member) sources(ctx context.Context) (all []cite.Source, images []cite.Image) {
	for _, s := range m.web.sources {
		if s.Evidence == cite.EvidencePage && s.FileID == "" {
			asked := m.web.asked[s.URL]
			page := m.pages.get(asked)
			if page == nil {
				var err error
				if page, err = m.o.Read(ctx, asked); err != nil {
					all = append(all, s) // keeps its number
					continue
				}
				m.pages.put(asked, page)
			}
			s.Chunks, _ = cite.ChunkText(page.Markdown, cite.ChunkOptions{MinLength: 1})
			for _, i := range page.Images {
				images = append(images, cite.Image{URL: i.URL, PageURL: s.URL, Alt: i.Alt})
			}
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return m.web.snippets, nil
	}
	return all, images
}

// quote is the answer that consists of passages of the sources, with the best ones first.
func (m *member) quote(ctx context.Context, sources []cite.Source, end string) cited {
	type found struct {
		cite.Passage
		source int
	}
	var all []found
	for i, s := range sources {
		var text strings.Builder
		for _, c := range s.Chunks {
			text.WriteString(c.Text + "\n")
		}
		if strings.TrimSpace(text.String()) == "" {
			continue
		}
		for _, p := range cite.Passages(ctx, m.o.Embedder, m.question, text.String(), cite.PassageOptions{Size: quoteUnits, Count: quotesOfPage}) {
			all = append(all, found{p, i})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.Score, a.Score) })
	var b strings.Builder
	c := cited{References: []cite.Reference{}}
	for i, f := range all[:min(len(all), quotes)] {
		s := sources[f.source]
		quote := strings.TrimSpace(f.Text)
		b.WriteString("\n\n> " + strings.Join(strings.Fields(markdown.Plain(cite.StripMarks(quote))), " ") + " [^" + strconv.Itoa(i+1) + "]")
		c.References = append(c.References, cite.Reference{
			ExactQuote: quote, URL: s.URL, Title: cmp.Or(s.Title, s.URL), DateTime: s.DateTime, RelevanceScore: f.Score,
			Kind: cmp.Or(s.Kind, cite.KindWeb), Marker: i + 1, Evidence: s.Evidence, FileID: s.FileID, ChunkID: s.ChunkID, Page: s.Page,
		})
	}
	switch {
	case len(c.References) == 0:
		c.Answer = m.words["nothing-found"]
	case end == Quoted:
		c.Answer = m.words["quotes-intro"] + b.String()
	case end == Tried:
		c.Answer = m.words["quotes-failed"] + b.String()
	default:
		c.Answer = m.words["quotes-budget"] + b.String()
	}
	c.Report = cite.NewReport(cite.Cited{Answer: c.Answer, References: c.References}, sources)
	return c
}

// deliver tells the answer in pieces, one for each paragraph.
func (m *member) deliver(answer string) {
	off := 0
	for off < len(answer) {
		size := strings.Index(answer[off:], "\n\n")
		if size < 0 {
			size = len(answer) - off
		} else {
			size += len("\n\n")
		}
		m.tell("delta", map[string]any{"text": answer[off : off+size], "off": len([]rune(answer[:off]))})
		off += size
	}
}
