package main

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"nodest/internal/index"
)

type word struct {
	text  string
	seeds map[int32]float64
	freq  float64
	v     vector
}

func main() {
	w, err := readWordNet(os.Args[1])
	check(err)
	zh, err := readCedict(os.Args[2])
	check(err)
	w.irregular = irregularForms(os.Args[1])
	g := newGraph(w)
	fmt.Fprintln(os.Stderr, "graph")
	en := englishWords(g)
	cn := chineseWords(g, zh, en)
	fmt.Fprintln(os.Stderr, len(en), "en", len(cn), "zh")
	usual := walkAll(g, en, nil)
	walkAll(g, cn, usual)
	finish(en, usual)
	finish(cn, usual)
	for _, l := range []struct {
		name  string
		words []*word
	}{{"en", en}, {"zh", cn}} {
		f, err := os.Create(os.Args[3] + "/" + l.name + ".tsv")
		check(err)
		out := bufio.NewWriter(f)
		for i, near := range neighbours(g, l.words, 150) {
			fmt.Fprintf(out, "%s\t", l.words[i].text)
			for _, n := range near {
				fmt.Fprintf(out, "%s %.3f\t", l.words[n.to].text, n.share)
			}
			fmt.Fprintln(out)
		}
		check(out.Flush())
		check(f.Close())
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func irregularForms(folder string) map[string][]string {
	m := map[string][]string{}
	for _, l := range strings.Fields(irregular) {
		a, b, _ := strings.Cut(l, ":")
		m[a] = append(m[a], b)
	}
	return m
}

const irregular = `went:go gone:go bought:buy men:man women:woman children:child feet:foot teeth:tooth mice:mouse broke:break broken:break wrote:write written:write ate:eat eaten:eat
 drank:drink drunk:drink drove:drive driven:drive slept:sleep taught:teach thought:think paid:pay sold:sell told:tell sent:send spent:spend kept:keep left:leave lost:lose met:meet
 ran:run sang:sing sung:sing sat:sit stood:stand swam:swim wore:wear worn:wear won:win built:build caught:catch chose:choose chosen:choose fell:fall fallen:fall felt:feel flew:fly flown:fly
 forgot:forget forgotten:forget grew:grow grown:grow heard:hear held:hold hid:hide hidden:hide knew:know known:know laid:lay led:lead lent:lend lit:light meant:mean read:read rode:ride ridden:ride
 rang:ring rose:rise risen:rise said:say saw:see seen:see shook:shake shot:shoot shut:shut slid:slide spoke:speak spoken:speak stole:steal stolen:steal struck:strike swore:swear torn:tear threw:throw thrown:throw woke:wake woken:wake`

// englishWords are the single words with their senses.
func englishWords(g *graph) (all []*word) {
	byStem := map[string]*word{}
	for lemma := range g.w.senses {
		if strings.ContainsFunc(lemma, func(r rune) bool { return r < 'a' || r > 'z' }) || len(lemma) < 2 {
			continue
		}
		links := g.meant(lemma, 0)
		if len(links) == 0 || !lower(g, lemma) {
			continue
		}
		tagged := 0.0
		for _, s := range g.w.senses[lemma] {
			tagged += math.Floor(s.count)
		}
		freq := tagged + 2*g.used[lemma]
		terms := index.Terms(lemma)
		if freq < 5 || len(terms) != 1 {
			continue
		}
		o := byStem[terms[0]]
		if o == nil {
			o = &word{text: terms[0], seeds: map[int32]float64{}}
			byStem[terms[0]] = o
			all = append(all, o)
		}
		for _, l := range links {
			o.seeds[l.to] += freq * float64(l.share)
		}
		o.freq += freq
	}
	for _, o := range all {
		for s := range o.seeds {
			o.seeds[s] /= o.freq
		}
	}
	slices.SortFunc(all, func(a, b *word) int { return cmp.Or(cmp.Compare(b.freq, a.freq), strings.Compare(a.text, b.text)) })
	return all
}

// lower reports whether a lemma is written in small letters somewhere.
func lower(g *graph, lemma string) bool {
	for _, s := range g.w.senses[lemma] {
		if slices.Contains(g.w.synsets[s.synset].words, lemma) {
			return true
		}
	}
	return false
}

func chineseWords(g *graph, zh chinese, en []*word) (all []*word) {
	common := readJieba(os.Args[4])
	freq := map[string]float64{}
	for _, e := range en {
		freq[e.text] = e.freq
	}
	in := map[string]float64{} // how many longer words have it
	for text := range zh {
		r := []rune(text)
		for i := range r {
			for n := 1; i+n <= len(r); n++ {
				in[string(r[i:i+n])]++
			}
		}
	}
	for text, meanings := range zh {
		o := &word{text: text, seeds: map[int32]float64{}}
		total, known := 0.0, 0.0
		for rank, gl := range glosses(meanings) {
			seeds, f, exact := g.ofGloss(gl, freq)
			if seeds == nil {
				continue
			}
			x := 1 / (1 + float64(rank)/2)
			if !exact {
				x *= 0.6
			} else {
				known = max(known, f)
			}
			for s, y := range seeds {
				o.seeds[s] += x * y
			}
			total += x
		}
		if total == 0 {
			continue
		}
		for s := range o.seeds {
			o.seeds[s] /= total
		}
		o.freq = math.Log(1+common[text]) + 0.25*math.Log(1+known) + 0.5*math.Log(in[text])
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *word) int { return cmp.Or(cmp.Compare(b.freq, a.freq), strings.Compare(a.text, b.text)) })
	return all[:min(len(all), 24000)]
}

// ofGloss returns the synsets that a gloss may mean.
func (g *graph) ofGloss(gloss string, freq map[string]float64) (seeds map[int32]float64, f float64, exact bool) {
	pos := byte(0)
	for _, article := range []string{"to be ", "to "} {
		if rest, ok := strings.CutPrefix(gloss, article); ok {
			gloss, pos = rest, 'v'
			if article == "to be " {
				pos = 0
			}
			break
		}
	}
	for _, article := range []string{"a ", "an ", "the ", "one's ", "house "} {
		gloss = strings.TrimPrefix(gloss, article)
	}
	for _, end := range []string{" sb", " sth", " sb or sth", " one's", " (sth)"} {
		gloss = strings.TrimSuffix(gloss, end)
	}
	gloss = strings.Trim(gloss, " .!?,")
	seeds = map[int32]float64{}
	for _, lemma := range append([]string{gloss}, g.w.lemmas(gloss)...) {
		if g.w.senses[lemma] == nil {
			continue
		}
		links := g.meant(lemma, pos)
		if len(links) == 0 {
			links = g.meant(lemma, 0)
		}
		if len(links) == 0 {
			continue
		}
		for _, l := range links {
			seeds[l.to] += float64(l.share)
		}
		if t := index.Terms(lemma); len(t) == 1 {
			f = freq[t[0]]
		}
		return seeds, f, true
	}
	total := 0.0
	content := g.content(gloss)
	if len(content) > 6 {
		content = content[:6]
	}
	for _, lemma := range content {
		x := g.idf(lemma)
		total += x
		for _, l := range g.meant(lemma, 0) {
			seeds[l.to] += x * float64(l.share)
		}
	}
	if total == 0 {
		return nil, 0, false
	}
	for s := range seeds {
		seeds[s] /= total
	}
	return seeds, 0, false
}

// walkAll walks from all words; without usual it returns the mean of all visits.
func walkAll(g *graph, all []*word, usual []float64) []float64 {
	var wait sync.WaitGroup
	parts := runtime.NumCPU()
	for part := range parts {
		wait.Go(func() {
			w := newWalker(g)
			for i := part; i < len(all); i += parts {
				all[i].v = w.walk(all[i].seeds)
			}
		})
	}
	wait.Wait()
	if usual == nil {
		usual = make([]float64, len(g.out))
		total := 0.0
		for _, o := range all {
			f := math.Sqrt(o.freq)
			total += f
			for i, s := range o.v.at {
				usual[s] += f * float64(o.v.x[i])
			}
		}
		for i := range usual {
			usual[i] /= total
		}
	}
	return usual
}

func sorted(m map[int32]float64) []int32 {
	keys := make([]int32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// finish makes unit vectors of how much more often than usual synsets are visited.
func finish(all []*word, usual []float64) {
	for _, o := range all {
		sum := 0.0
		for i, s := range o.v.at {
			p := float64(o.v.x[i])
			x := math.Max(0, math.Log(p/(usual[s]+2e-6))-1) * math.Pow(p, 0.25)
			o.v.x[i] = float32(x)
			sum += x * x
		}
		for i := range o.v.x {
			o.v.x[i] /= float32(math.Sqrt(sum) + 1e-9)
		}
	}
}

const (
	climbs     = 6
	mostInKind = 450 // a kind of more words says little
)

// neighbours returns for each word those that a line may have instead of it.
func neighbours(g *graph, all []*word, n int) [][]link {
	type has struct {
		word int32
		x    float32
	}
	rows, meant := map[int32][]has{}, map[int32][]has{}
	for i, o := range all {
		for j, s := range o.v.at {
			if o.v.x[j] > 0.04 {
				rows[s] = append(rows[s], has{int32(i), o.v.x[j]})
			}
		}
		for _, l := range shares(o.seeds) {
			if l.share >= 0.15 {
				meant[l.to] = append(meant[l.to], has{int32(i), l.share})
			}
		}
	}
	kinds := make([]map[int32]float32, len(all)) // by word, what it is a kind of
	size := map[int32]float64{}
	for i, o := range all {
		kinds[i] = g.kinds(o.seeds)
		for s, x := range kinds[i] {
			size[s] += float64(x)
		}
	}
	of := map[int32][]has{} // by kind
	for i := range all {
		for s, x := range kinds[i] {
			if size[s] <= mostInKind && x > 0.1 {
				of[s] = append(of[s], has{int32(i), x})
			}
		}
	}
	result := make([][]link, len(all))
	var wait sync.WaitGroup
	parts := runtime.NumCPU()
	for part := range parts {
		wait.Go(func() {
			near, is, leads := make([]float32, len(all)), make([]float32, len(all)), make([]float32, len(all))
			for i := part; i < len(all); i += parts {
				clear(near)
				clear(is)
				clear(leads)
				o := all[i]
				for j, s := range o.v.at {
					for _, h := range rows[s] {
						near[h.word] += h.x * o.v.x[j]
					}
				}
				for _, l := range shares(o.seeds) {
					if l.share < 0.05 {
						continue
					}
					for _, h := range of[l.to] {
						is[h.word] = max(is[h.word], float32(math.Sqrt(float64(h.x*l.share))))
					}
					for _, h := range rows[l.to] { // whose walks lead to what is meant
						leads[h.word] += h.x * l.share
					}
				}
				var links []link
				for w := range all {
					if w == i {
						continue
					}
					x := max(near[w]*1.2, is[w]*0.8, leads[w]*2.5)
					if x > 0.2 {
						links = append(links, link{int32(w), min(1, x)})
					}
				}
				slices.SortFunc(links, func(a, b link) int { return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.to, b.to)) })
				result[i] = links[:min(n, len(links))]
			}
		})
	}
	wait.Wait()
	return result
}

// kinds returns what a word is a kind of, with how likely that is.
func (g *graph) kinds(seeds map[int32]float64) map[int32]float32 {
	all := map[int32]float32{}
	for s, x := range seeds {
		level := []int32{s}
		seen := map[int32]bool{s: true}
		for climb := 1; climb <= climbs && len(level) > 0; climb++ {
			var next []int32
			for _, at := range level {
				for _, p := range g.w.synsets[at].pointers {
					if to := int32(p.to); p.kind == "@" && !seen[to] {
						seen[to] = true
						next = append(next, to)
						all[to] += float32(x * math.Pow(0.9, float64(climb-1)))
					}
				}
			}
			level = next
		}
	}
	return all
}

func readJieba(file string) map[string]float64 {
	m := map[string]float64{}
	check(eachLine(file, func(line string) error {
		f := strings.Fields(line)
		n, _ := strconv.ParseFloat(f[1], 64)
		m[f[0]] = n
		return nil
	}))
	return m
}
