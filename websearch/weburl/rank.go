package weburl

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"time"
)

// Ranked is a hit with the parts of its score.
type Ranked struct {
	Hit
	FreqBoost     float64 `json:"freqBoost"`
	HostnameBoost float64 `json:"hostnameBoost"`
	PathBoost     float64 `json:"pathBoost"`
	RerankBoost   float64 `json:"jinaRerankBoost"`
	Score         float64 `json:"finalScore"`
}

// Reranker scores how well each text answers a question, from 0 to 1.
type Reranker func(ctx context.Context, question string, texts []string) ([]float64, error)

// rerankTime is how long Rank waits for a reranker.
const rerankTime = 3 * time.Second

// RankOptions tune Rank. The zero value ranks without a question.
type RankOptions struct {
	Question   string
	Rerank     Reranker // nil, late or failed: our own score by words
	BoostHosts []string // hosts that are preferred to all others

	FreqFactor   float64 // default 0.5
	HostFactor   float64 // default 0.5
	PathFactor   float64 // default 0.4
	PathDecay    float64 // default 0.8, per level of the path
	RerankFactor float64 // default 0.8
	MinScore     float64
	MaxScore     float64 // default 5
	// SharedPaths counts a path on all hosts together, as the reference implementation does.
	SharedPaths bool
}

func (o RankOptions) withDefaults() RankOptions {
	o.FreqFactor = cmp.Or(o.FreqFactor, 0.5)
	o.HostFactor = cmp.Or(o.HostFactor, 0.5)
	o.PathFactor = cmp.Or(o.PathFactor, 0.4)
	o.PathDecay = cmp.Or(o.PathDecay, 0.8)
	o.RerankFactor = cmp.Or(o.RerankFactor, 0.8)
	o.MaxScore = cmp.Or(o.MaxScore, 5)
	return o
}

// boostOfHost is what a preferred host adds to the score.
const boostOfHost = 2

// Rank orders hits by how often they were named, how many hits share their host and folders,
// and how well they answer the question; the best first. Hits without a host are dropped. It
// waits up to 3 s for the reranker.
func Rank(ctx context.Context, hits []Hit, o RankOptions) []Ranked {
	o = o.withDefaults()
	preferred, count := hostSet(o.BoostHosts), countParts(hits, o.SharedPaths)
	total := float64(count.total)
	var ranked []Ranked
	for i, h := range hits {
		part := count.of[i]
		if part.host == "" {
			continue
		}
		r := Ranked{
			Hit:           h,
			FreqBoost:     h.Weight / total * o.FreqFactor,
			HostnameBoost: float64(count.hosts[part.host]) / total * o.HostFactor,
		}
		if preferred[part.host] {
			r.HostnameBoost += boostOfHost
		}
		level := o.PathFactor
		for _, prefix := range part.prefixes {
			r.PathBoost += float64(count.paths[prefix]) / total * level
			level *= o.PathDecay
		}
		ranked = append(ranked, r)
	}
	o.rerank(ctx, ranked)
	for i := range ranked {
		r := &ranked[i]
		r.Score = min(max(r.FreqBoost+r.HostnameBoost+r.PathBoost+r.RerankBoost, o.MinScore), o.MaxScore)
	}
	slices.SortStableFunc(ranked, func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return ranked
}

// rerank sets the boosts of the reranker. Hits with equal texts share one score.
func (o RankOptions) rerank(ctx context.Context, ranked []Ranked) {
	if o.Question == "" || len(ranked) == 0 {
		return
	}
	var texts []string
	at, textOf := map[string]int{}, make([]int, len(ranked))
	for i, r := range ranked {
		text := SmartMerge(r.Title, r.Description)
		n, ok := at[text]
		if !ok {
			n = len(texts)
			at[text] = n
			texts = append(texts, text)
		}
		textOf[i] = n
	}
	scores := o.scores(ctx, texts)
	for i := range ranked {
		ranked[i].RerankBoost = scores[textOf[i]] * o.RerankFactor
	}
}

func (o RankOptions) scores(ctx context.Context, texts []string) []float64 {
	if o.Rerank == nil {
		return lexical(o.Question, texts)
	}
	ctx, cancel := context.WithTimeout(ctx, rerankTime)
	defer cancel()
	scores, err := o.Rerank(ctx, o.Question, texts)
	if err != nil || len(scores) != len(texts) || slices.ContainsFunc(scores, func(s float64) bool { return math.IsNaN(s) || math.IsInf(s, 0) }) {
		return lexical(o.Question, texts)
	}
	return scores
}

// folder is the start of a path; host is "" if paths of all hosts are counted together.
type folder struct{ host, path string }

// part is where a hit is; prefixes are its folders and its page, the shortest first.
type part struct {
	host     string
	prefixes []folder
}

type counts struct {
	of    []part // by hit
	hosts map[string]int
	paths map[folder]int
	total int // hits with an address
}

func countParts(hits []Hit, shared bool) counts {
	c := counts{of: make([]part, len(hits)), hosts: map[string]int{}, paths: map[folder]int{}}
	for i, h := range hits {
		host, path := hostAndPath(h.URL)
		if host == "" {
			continue
		}
		c.total++
		c.hosts[host]++
		c.of[i].host = host
		owner := host
		if shared {
			owner = ""
		}
		for end := range ends(path) {
			f := folder{owner, path[:end]}
			c.of[i].prefixes = append(c.of[i].prefixes, f)
			c.paths[f]++
		}
	}
	return c
}

// maxLevels bounds how deep paths are compared.
const maxLevels = 16

// ends yields where the folders of a path end, the shortest first, and the path itself.
func ends(path string) iter.Seq[int] {
	return func(yield func(int) bool) {
		level := 0
		for i := 1; i <= len(path) && level < maxLevels; i++ {
			if (i == len(path) || path[i] == '/') && path[i-1] != '/' {
				level++
				if !yield(i) {
					return
				}
			}
		}
	}
}

// KeepPerSite returns at most k pages of each site (see Site), the best first, and each page
// once. Pages of one site only are all kept.
func KeepPerSite(ranked []Ranked, k int) []Ranked {
	seen, perSite := map[string]bool{}, map[string]int{}
	var kept, all []Ranked
	for _, r := range ranked {
		page := key(r.URL)
		if seen[page] {
			continue
		}
		seen[page] = true
		all = append(all, r)
		site := Site(Hostname(r.URL))
		if perSite[site]++; perSite[site] <= k {
			kept = append(kept, r)
		}
	}
	if len(perSite) <= 1 {
		return all
	}
	return kept
}

// Candidate is a page as a model is asked to choose from.
type Candidate struct {
	URL   string  `json:"url"`
	Score float64 `json:"score"`
	Text  string  `json:"merged"` // title and description
}

// SortSelect returns the best pages that have a text, at most n.
func SortSelect(ranked []Ranked, n int) []Candidate {
	var list []Candidate
	for _, r := range ranked {
		if text := SmartMerge(r.Title, r.Description); text != "" {
			list = append(list, Candidate{r.URL, r.Score, text})
		}
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return list[:min(n, len(list))]
}
