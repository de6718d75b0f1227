package cite

import (
	"context"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/cite/claim"
	"nodest/internal/cite/script"
	"nodest/internal/index"
	"nodest/llm"
)

// library is the sentences of some sources, to be found by their words.
type library struct {
	sources  []Source
	all      []page
	first    []int              // by source: its first sentence, and behind the last source the end
	posted   map[string][]int32 // by term: the sentences that have it
	titles   []map[string]bool  // terms of the titles, by source
	names    []map[string]bool  // terms of the names, by source; nil = not read yet
	vectors  vectors
	embedded []int // by sentence: its place among the vectors; -1 = none
}

// page is a sentence of a source. A window of neighbours is one too.
type page struct {
	passage
	terms   map[string]bool
	head    string          // the head of its table
	heads   map[string]bool // the terms of the head
	reading *claim.Text     // nil = not read yet
}

// newLibrary reads sources; only those of a set, if there is one.
func newLibrary(sources []Source, only map[int]bool) *library {
	l := &library{sources: sources, posted: map[string][]int32{}}
	for i := range sources {
		s := &sources[i]
		l.first = append(l.first, len(l.all))
		l.titles = append(l.titles, claim.Distinct(index.Terms(shortTitle(s))))
		if only != nil && !only[i] {
			continue
		}
		l.add(i)
	}
	l.first = append(l.first, len(l.all))
	return l
}

// add adds the sentences of a source.
func (l *library) add(source int) {
	head := "" // head of the table that goes on, which may be cut into chunks
	for j, c := range l.sources[source].Chunks {
		in := linesOf(c.Text)
		all := sentencesOf(c.Text, in, protected(c.Text, in))
		for _, line := range in {
			text := c.Text[line.start:line.end]
			table := strings.HasPrefix(strings.TrimLeft(text, " \t>"), "|")
			switch {
			case !table && !script.IsBlank(text):
				head = ""
			case table && head == "":
				head = text
			}
			for len(all) > 0 && all[0].Span[0] < line.end {
				span := all[0].Span
				if all = all[1:]; len(l.all) < maxSourceChunks {
					l.addSentence(passage{source, j, span, c.Text[span[0]:span[1]]}, head)
				}
			}
		}
	}
}

func (l *library) addSentence(p passage, head string) {
	terms := claim.Terms(p.text)
	for t := range terms {
		l.posted[t] = append(l.posted[t], int32(len(l.all)))
	}
	if head == p.text {
		head = ""
	}
	one := page{passage: p, terms: terms, head: head}
	if n := len(l.all); head != "" && n > 0 && l.all[n-1].head == head {
		one.heads = l.all[n-1].heads
	} else if head != "" {
		one.heads = claim.Distinct(index.Terms(head))
	}
	l.all = append(l.all, one)
}

// find returns the sentences with most of some terms, rare ones counting more: the best of each source that
// is named, or else the best of all.
func (l *library) find(terms map[string]bool, named []int) (found []int) {
	weights := map[string]float64{}
	for t := range terms {
		weights[t] = math.Log(1 + float64(len(l.all))/float64(len(l.posted[t])+1))
	}
	for _, n := range named {
		top := best{k: maxTried}
		for i := l.first[n]; i < l.first[n+1]; i++ {
			score := 0.0
			for t, weight := range weights {
				if l.all[i].terms[t] || l.all[i].heads[t] {
					score += weight
				}
			}
			if score > 0 {
				top.add(hit{i, score})
			}
		}
		for _, h := range top.hits {
			found = append(found, h.chunk)
		}
	}
	if named == nil {
		found = l.findAll(weights)
	}
	slices.Sort(found)
	return found
}

func (l *library) findAll(weights map[string]float64) (found []int) {
	scores := map[int32]float64{}
	for t, weight := range weights {
		for _, p := range l.posted[t] {
			scores[p] += weight
		}
	}
	order := make([]int32, 0, len(scores))
	for p := range scores {
		order = append(order, p)
	}
	slices.Sort(order)
	top := best{k: 2 * maxTried}
	for _, p := range order {
		top.add(hit{int(p), scores[p]})
	}
	for _, h := range top.hits {
		found = append(found, h.chunk)
	}
	return found
}

// windows returns the texts that can be quoted around a sentence: it, and it with a neighbour on either
// side or on both, as long as a quote may be.
func (l *library) windows(at int) (out [][2]int) {
	out = append(out, [2]int{at, at})
	own := &l.all[at]
	joins := func(i int) bool {
		return i >= 0 && i < len(l.all) && l.all[i].source == own.source && l.all[i].chunk == own.chunk
	}
	if own.head != "" { // rows say nothing about each other
		return out
	}
	add := func(from, to int) {
		span := Span{l.all[from].span[0], l.all[to].span[1]}
		if utf8.RuneCountInString(l.sources[own.source].Chunks[own.chunk].Text[span[0]:span[1]]) <= maxQuote {
			out = append(out, [2]int{from, to})
		}
	}
	if joins(at - 1) {
		add(at-1, at)
	}
	if joins(at + 1) {
		add(at, at+1)
	}
	if joins(at-1) && joins(at+1) {
		add(at-1, at+1)
	}
	return out
}

func (l *library) passageOf(w [2]int) passage {
	first, last := &l.all[w[0]], &l.all[w[1]]
	span := Span{first.span[0], last.span[1]}
	return passage{first.source, first.chunk, span, l.sources[first.source].Chunks[first.chunk].Text[span[0]:span[1]]}
}

func (l *library) readingsOf(w [2]int) (out []*claim.Text) {
	for i := w[0]; i <= w[1]; i++ {
		out = append(out, l.reading(i))
	}
	return out
}

func (l *library) reading(at int) *claim.Text {
	p := &l.all[at]
	if p.reading == nil {
		p.reading = claim.Read(p.text, l.namesOf(p.source))
	}
	return p.reading
}

// namesOf returns the terms of the names that stand inside of sentences of a source.
func (l *library) namesOf(source int) map[string]bool {
	if l.names == nil {
		l.names = make([]map[string]bool, len(l.sources))
	}
	if l.names[source] == nil {
		l.names[source] = map[string]bool{}
		for _, p := range l.all {
			if p.source == source {
				for _, n := range claim.NamesIn(p.text) {
					for _, t := range index.Terms(n) {
						l.names[source][t] = true
					}
				}
			}
		}
	}
	return l.names[source]
}

// embed makes vectors of some texts and of the sentences of the sources; of many sentences, only of
// those that are asked for. It does nothing where there are no vectors to be had.
func (l *library) embed(ctx context.Context, emb llm.Embedder, texts []string, asked map[int]bool) bool {
	if emb == nil || len(texts) == 0 {
		return false
	}
	l.embedded = make([]int, len(l.all))
	var passages []passage
	for i, p := range l.all {
		l.embedded[i] = -1
		if len(l.all) <= maxEmbedVerify || asked[i] {
			l.embedded[i] = len(texts) + len(passages)
			passages = append(passages, p.passage)
		}
	}
	var ok bool
	if l.vectors, ok = vectorsOfPages(ctx, emb, texts, passages); !ok {
		l.embedded = nil
	}
	return ok
}

// cosine is that of an embedded text and the nearest sentence of a window.
func (l *library) cosine(text int, w [2]int) float64 {
	top := 0.0
	if l.embedded == nil {
		return 0
	}
	for i := w[0]; i <= w[1]; i++ {
		if at := l.embedded[i]; at >= 0 {
			top = max(top, l.vectors.cosine(text, l.vectors, at))
		}
	}
	return top
}

// nearest returns the sentences whose vectors are nearest to that of a text.
func (l *library) nearest(text int, least float64) (found []int) {
	top := best{k: maxTried / 2}
	if l.embedded == nil {
		return nil
	}
	for i, at := range l.embedded {
		if at < 0 {
			continue
		}
		if c := l.vectors.cosine(text, l.vectors, at); c >= least {
			top.add(hit{i, c})
		}
	}
	for _, h := range top.hits {
		found = append(found, h.chunk)
	}
	return found
}

// about is the title of the source of a window, and the head of its table.
func (l *library) about(w [2]int) string {
	p := &l.all[w[0]]
	title := shortTitle(&l.sources[p.source])
	if p.head != "" {
		title += "\n" + p.head
	}
	return title
}

// longestTitle is in code points: a longer one says more than what a page is about.
const longestTitle = 120

func shortTitle(s *Source) string {
	if utf8.RuneCountInString(s.Title) > longestTitle {
		return ""
	}
	return s.Title
}
