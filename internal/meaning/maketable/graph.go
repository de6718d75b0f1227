package main

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// link leads from a synset to another with a share of a walk.
type link struct {
	to    int32
	share float32
}

// graph has the links of each synset; their shares add up to 1.
type graph struct {
	w     *wordNet
	out   [][]link
	used  map[string]float64 // how many definitions and examples have a lemma
	texts float64
}

// relation weights: how near a synset is that a pointer of this kind leads to.
var relation = map[string]float64{
	"@": 1, "~": 0.6, "+": 2, "&": 1, "^": 1, "\\": 2, "=": 1, "<": 2, "$": 1, "*": 1, ">": 1,
	"#p": 0.7, "%p": 0.7, "#m": 0.5, "%m": 0.5, "#s": 0.7, "%s": 0.7, ";c": 0.7, "-c": 0.2, ";u": 0, ";r": 0, "-u": 0, "-r": 0, "@i": 0, "~i": 0, "!": 0.3,
}

const (
	glossShare   = 3.0 // all words of a definition together
	reverseShare = 2.0 // all synsets in whose definitions a synset is
)

func newGraph(w *wordNet) *graph {
	g := &graph{w: w, out: make([][]link, len(w.synsets)), used: map[string]float64{}, texts: float64(len(w.synsets))}
	texts := make([][]string, len(w.synsets))
	defs := make([][]string, len(w.synsets))
	for i, s := range w.synsets {
		if s.named {
			continue
		}
		def, examples := s.gloss, ""
		if at := strings.Index(def, "\""); at >= 0 {
			def, examples = def[:at], def[at:]
		}
		defs[i] = g.content(def)
		texts[i] = g.content(examples)
		for _, l := range set(append(slices.Clone(defs[i]), texts[i]...)) {
			g.used[l]++
		}
	}
	weights := make([]map[int32]float64, len(w.synsets))
	back := make([]map[int32]float64, len(w.synsets))
	for i := range weights {
		weights[i], back[i] = map[int32]float64{}, map[int32]float64{}
	}
	for i, s := range w.synsets {
		kinds := map[string]float64{}
		for _, p := range s.pointers {
			kinds[p.kind]++
		}
		for _, p := range s.pointers {
			if x := relation[p.kind]; x > 0 && !w.synsets[p.to].named {
				// many of a kind share more, but each gets less
				weights[i][int32(p.to)] += x / math.Sqrt(kinds[p.kind])
			}
		}
		words := map[string]float64{}
		total := 0.0
		for n, l := range defs[i] {
			x := g.idf(l) / math.Sqrt(1+float64(n)/3)
			words[l] += x
			total += x
		}
		for l, x := range words {
			for _, t := range g.meant(l, 0) {
				share := glossShare * x / total * float64(t.share)
				weights[i][t.to] += share
				back[t.to][int32(i)] += share
			}
		}
		for _, l := range texts[i] {
			for _, t := range g.meant(l, 0) {
				weights[i][t.to] += 0.15 * g.idf(l) / 8 * float64(t.share)
			}
		}
	}
	for i, from := range back {
		total := 0.0
		for _, x := range from {
			total += x
		}
		for s, x := range from {
			weights[i][s] += reverseShare * x / total * math.Min(1, total)
		}
	}
	for i, to := range weights {
		g.out[i] = shares(to)
		g.out[i] = g.out[i][:min(len(g.out[i]), mostLinks)]
	}
	return g
}

func set(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// shares makes links of weights.
func shares(weights map[int32]float64) (links []link) {
	total := 0.0
	for to, x := range weights {
		total += x
		links = append(links, link{to, float32(x)})
	}
	slices.SortFunc(links, func(a, b link) int { return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.to, b.to)) })
	for i := range links {
		links[i].share /= float32(total)
	}
	return links
}

// idf is how much a lemma tells in a definition.
func (g *graph) idf(lemma string) float64 {
	return math.Max(0, math.Log(g.texts/(1+g.used[lemma]))-3)
}

// content returns the lemmas of a text that mean something, words of two or three as one lemma.
func (g *graph) content(text string) (all []string) {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && r != '\'' && r != '-' })
	for len(words) > 0 {
		n := 1
		for long := min(3, len(words)); long > 1; long-- {
			if joined := strings.Join(words[:long], " "); g.w.senses[joined] != nil && !empty[words[0]] && !empty[words[long-1]] {
				all, n = append(all, joined), long
				break
			}
		}
		if n == 1 && !empty[words[0]] {
			if lemmas := g.w.lemmas(words[0]); len(lemmas) > 0 {
				all = append(all, lemmas[0])
			}
		}
		words = words[n:]
	}
	return all
}

var empty = words(`a an the of or and to in on at for with by from as is are was were be been being that which who whom whose this these those it its
	not no nor but if than then so such some any all each every other another one two very more most less least much many few own same only
	i you he she we they me him her us them my your his our their what when where why how there here have has had having do does did done
	can could will would shall should may might must up down out off over under again further into through during before after above below between about against
	etc e.g i.e especially usually used often sometimes something someone somebody anything having being make made get got go goes went give given take taken
	use using characteristic relating pertaining certain various genus family large small`)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// meant returns the synsets of a lemma with how likely each is meant; pos 0 = any.
func (g *graph) meant(lemma string, pos byte) []link {
	weights := map[int32]float64{}
	for _, s := range g.w.senses[lemma] {
		if of := g.w.synsets[s.synset]; !of.named && (pos == 0 || of.pos == pos) {
			x := math.Pow(s.count+0.5, 0.6)
			if of.pos == 'n' {
				x *= 1.5
			}
			weights[int32(s.synset)] += x
		}
	}
	links := shares(weights)
	return links[:min(len(links), 7)]
}

// vector has positive numbers for some synsets, by number.
type vector struct {
	at []int32
	x  []float32
}

const (
	steps     = 3
	goOn      = 0.75 // share of a walk that goes on after a step
	mostWalks = 150  // synsets after a step
	mostLinks = 40   // of a synset
	mostKept  = 160  // synsets of a word
)

// walker walks over a graph. It is used by one goroutine.
type walker struct {
	g       *graph
	visits  counts
	between [2]counts
}

// counts are numbers of synsets.
type counts struct {
	of  []float32
	set []int32
}

func (c *counts) add(s int32, x float32) {
	if c.of[s] == 0 {
		c.set = append(c.set, s)
	}
	c.of[s] += x
}

func (c *counts) clear() {
	for _, s := range c.set {
		c.of[s] = 0
	}
	c.set = c.set[:0]
}

// keep keeps the largest n.
func (c *counts) keep(n int) {
	slices.SortFunc(c.set, func(a, b int32) int { return cmp.Or(cmp.Compare(c.of[b], c.of[a]), cmp.Compare(a, b)) })
	for len(c.set) > n {
		c.of[c.set[len(c.set)-1]] = 0
		c.set = c.set[:len(c.set)-1]
	}
}

func newWalker(g *graph) *walker {
	n := len(g.out)
	return &walker{g, counts{of: make([]float32, n)}, [2]counts{{of: make([]float32, n)}, {of: make([]float32, n)}}}
}

// walk returns how often a random walk from the seeds, that ends after some steps, visits synsets.
func (w *walker) walk(seeds map[int32]float64) vector {
	w.visits.clear()
	now, next := &w.between[0], &w.between[1]
	now.clear()
	for _, s := range sorted(seeds) {
		now.add(s, float32(seeds[s]))
	}
	for step := 0; ; step++ {
		for _, s := range now.set {
			w.visits.add(s, now.of[s]*(1-goOn))
		}
		if step == steps {
			break
		}
		next.clear()
		for _, s := range now.set {
			for _, l := range w.g.out[s] {
				next.add(l.to, now.of[s]*goOn*l.share)
			}
		}
		next.keep(mostWalks)
		now, next = next, now
	}
	w.visits.keep(mostKept)
	var v vector
	slices.Sort(w.visits.set)
	for _, s := range w.visits.set {
		v.at, v.x = append(v.at, s), append(v.x, w.visits.of[s])
	}
	return v
}
