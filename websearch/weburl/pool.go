package weburl

import "slices"

// Hit is a page that a search, a page or the user named.
type Hit struct {
	URL         string  `json:"url"`
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Date        string  `json:"date,omitempty"`   // as the provider writes it
	Weight      float64 `json:"weight,omitempty"` // how often it was named; links in pages count less
}

// maxDescription bounds in bytes what the descriptions of a page are merged into.
const maxDescription = 4000

// Pool is the pages known to a search in the order in which they were first named, each once.
// The zero value is empty. It must not be used concurrently.
type Pool struct {
	hits []Hit
	at   map[string]int // index in hits by normalized address
}

// Add records that hit was named once more, which adds delta to its weight, and reports whether
// it is new. A hit whose address Normalize rejects is ignored.
func (p *Pool) Add(hit Hit, delta float64, o Options) bool {
	address, err := Normalize(hit.URL, o)
	if err != nil {
		return false
	}
	if i, ok := p.at[address]; ok {
		known := &p.hits[i]
		known.Weight += delta
		if len(known.Description)+len(hit.Description) <= maxDescription {
			known.Description = SmartMerge(known.Description, hit.Description)
		}
		return false
	}
	if p.at == nil {
		p.at = map[string]int{}
	}
	p.at[address] = len(p.hits)
	hit.URL, hit.Weight = address, delta
	p.hits = append(p.hits, hit)
	return true
}

// Hits returns a copy of the pages in the pool.
func (p *Pool) Hits() []Hit { return slices.Clone(p.hits) }

// Filter says which pages are not worth ranking.
type Filter struct {
	Visited   []string // addresses
	BadHosts  []string
	OnlyHosts []string // empty: all hosts
}

// Apply returns the hits that pass, in their order.
func (f Filter) Apply(hits []Hit) []Hit {
	visited, bad, only := map[string]bool{}, hostSet(f.BadHosts), hostSet(f.OnlyHosts)
	for _, address := range f.Visited {
		visited[key(address)] = true
	}
	var kept []Hit
	for _, h := range hits {
		host := Hostname(h.URL)
		if !visited[key(h.URL)] && !bad[host] && (len(only) == 0 || only[host]) {
			kept = append(kept, h)
		}
	}
	return kept
}

func hostSet(hosts []string) map[string]bool {
	set := map[string]bool{}
	for _, h := range hosts {
		set[NormalizeHostName(h)] = true
	}
	return set
}
