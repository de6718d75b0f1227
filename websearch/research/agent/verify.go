package agent

import (
	"context"
	"strconv"
	"strings"

	"nodest/internal/cite"
	"nodest/llm"
	"nodest/websearch/research/markdown"
)

// mostClaims bounds the sentences that the model judges. The verdicts of the others are those by words.
const mostClaims = 60

// draft is an answer that was checked by words.
type draft struct {
	*cite.Check
	sources []cite.Source
	images  []cite.Image
}

func (m *member) draft(ctx context.Context) *draft {
	sources, images := m.sources(ctx)
	text := markdown.Mend(markdown.LeadNotes(m.candidate, sources), m.web.pool.Hits())
	return &draft{cite.NewCheck(ctx, m.o.Embedder, text, sources, cite.VerifyOptions{Doubtful: m.plan.Doubtful}), sources, images}
}

// verify checks a written answer against the pages that were opened: by words, then with one call of the model. Without
// time or budget for the call, or with a reply that cannot be read, the verdicts by words stay.
func (m *member) verify(ctx context.Context, end string) (cited, error) {
	var d *draft // nil = the sentences were recorded before a crash
	claims, err := decide(ctx, m, "claims", func(ctx context.Context) []cite.Question {
		d = m.draft(ctx)
		if m.clock.now() >= m.limit(true) {
			return nil
		}
		all := d.Questions()
		return all[:min(len(all), mostClaims)]
	})
	if err != nil {
		return cited{}, err
	}
	opinions, err := m.opinions(ctx, claims)
	if err != nil {
		return cited{}, err
	}
	return decide(ctx, m, "cite", func(ctx context.Context) cited {
		if d == nil {
			d = m.draft(ctx)
		}
		v := d.Result(opinions)
		if strings.TrimSpace(v.Answer) == "" { // no sentence had support, and such sentences are removed
			return m.quote(ctx, d.sources, end)
		}
		return cited{v.Answer, v.References, cite.ImageReferences(ctx, m.o.Embedder, v.Answer, d.images, mostImages), v.Report}
	})
}

// opinions asks the model about sentences beside their quotes. Only an error that ends the run is returned.
func (m *member) opinions(ctx context.Context, claims []cite.Question) (map[int]cite.Opinion, error) {
	if len(claims) == 0 || !m.begun.Model {
		return nil, nil
	}
	var lines strings.Builder
	for i, c := range claims {
		lines.WriteString(llm.JSONLine(struct {
			N      int      `json:"n"`
			Claim  string   `json:"claim"`
			Quotes []string `json:"quotes"`
		}{i + 1, c.Text, c.Quotes}) + "\n")
	}
	reply, err := m.ask(ctx, question{
		kind: "verify", size: sizeVerify, json: true, last: true,
		system: m.head() + "\n" + m.words["verify"], ask: m.block(m.words["untrusted"], lines.String()),
	})
	if err != nil {
		return nil, fatal(err)
	}
	opinions := map[int]cite.Opinion{}
	for n, opinion := range readOpinions(reply) {
		if n >= 1 && n <= len(claims) {
			opinions[claims[n-1].Sentence] = opinion
		}
	}
	return opinions, nil
}

// readOpinions reads opinions by the number of the sentence, none from a reply that cannot be read. A sentence with two
// different ones has none.
func readOpinions(reply string) map[int]cite.Opinion {
	out := map[int]cite.Opinion{}
	take := func(n int, says string) {
		opinion, known := opinionWords[strings.Join(strings.FieldsFunc(strings.ToLower(says), func(r rune) bool { return r < 'a' || r > 'z' }), " ")]
		if !known {
			return
		}
		if before, twice := out[n]; twice && before != opinion {
			opinion = cite.Unsure
		}
		out[n] = opinion
	}
	o, _ := objectIn(reply, "verdicts")
	for _, raw := range o.List("verdicts") {
		one := llm.ObjectOf(string(raw), "verdict")
		if n, ok := one.Number("n"); ok && n == float64(int(n)) {
			take(int(n), one.Text("verdict"))
		}
	}
	byNumber := llm.ObjectOf(string(o["verdicts"]), "")
	for key := range byNumber { // {"verdicts":{"1":"supported"}}
		if n, err := strconv.Atoi(key); err == nil {
			take(n, byNumber.Text(key))
		}
	}
	return out
}

// opinionWords are the words of models for an opinion, in lower case and with single spaces.
var opinionWords = map[string]cite.Opinion{
	"supported":     cite.Supported,
	"not supported": cite.Unsupported, "unsupported": cite.Unsupported, "contradicted": cite.Unsupported, "refuted": cite.Unsupported,
	"cannot tell": cite.Unsure, "can not tell": cite.Unsure, "unsure": cite.Unsure, "unclear": cite.Unsure, "unknown": cite.Unsure,
}
