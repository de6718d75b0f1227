package agent

import (
	"context"
	"math"

	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/llm"
)

// How a budget is divided. A search uses at most the regular share of it; the rest is for the answer.
const (
	regular     = 0.85
	leastFinal  = 1000   // tokens that stay for the answer of a small budget, at most half of it
	mostKnown   = 24_000 // tokens of what is known, in one prompt
	leastKnown  = 100    // tokens of one piece of it
	frame       = 60     // tokens around one piece, at most: the marks and the title
	mostThought = 2000   // tokens of hidden reasoning per call
	sureThought = 200    // tokens that a reply has beyond its text only if the model reasons
	mostRatio   = 4.0
)

// purse is what one member may spend. One goroutine uses it at a time.
type purse struct {
	tokens int     // all that it may spend; fewer if the price says so
	usd    float64 // likewise; 0 = no limit
	spent  Cost
	lost   Cost // possible cost of calls whose answers were lost
	learned
}

// learned is what earlier calls have shown of the model.
type learned struct {
	price  float64 // USD per token, the highest that a call has had; 0 = unknown
	ratio  float64 // the tokens of a prompt, as a multiple of the estimate; at least 1
	excess float64 // the tokens of a reply, as a multiple of what it may have; at least 1
	thinks bool    // it reasons before it writes
	room   int     // tokens of what is known that a prompt may have
}

func newPurse(tokens int, usd float64) purse {
	return purse{tokens: tokens, usd: usd, learned: learned{ratio: 1, excess: 1, room: mostKnown}}
}

// total is the budget in tokens.
func (p *purse) total() int {
	if p.usd > 0 && p.price > 0 {
		return min(p.tokens, int(min(p.usd/p.price, math.MaxInt32)))
	}
	return p.tokens
}

func (p *purse) used() int { return p.spent.Tokens() + p.lost.Tokens() }

// left are the tokens that are left for an answer.
func (p *purse) left() int { return p.total() - p.used() }

// kept are the tokens that a search leaves for the answer.
func (p *purse) kept() int {
	total := p.total()
	return max(total-int(regular*float64(total)), min(leastFinal, total/2))
}

// forSearch are the tokens that are left for searching.
func (p *purse) forSearch() int { return p.left() - p.kept() }

// prompt estimates the tokens of a prompt by what earlier ones have cost.
func (p *purse) prompt(messages []llm.Message) int {
	return int(math.Ceil(float64(llm.EstimatePrompt(messages)) * p.ratio))
}

// reply divides the tokens of a reply between the text, up to most, and the reasoning before it.
func (p *purse) reply(left, most int) (text, thought int) {
	left = int(float64(left) / p.excess)
	if p.thinks {
		thought = min(left/2, mostThought)
	}
	text = min(most, left-thought)
	return text, min(max(left-text, 1), mostThought)
}

// most is the cost of a call that uses all that it may.
func (p *purse) most(prompt, completion int) Cost {
	return Cost{Calls: 1, PromptTokens: prompt, CompletionTokens: completion, USD: p.price * float64(prompt+completion)}
}

// pay books a call.
func (p *purse) pay(h heard) Cost {
	u := h.Usage
	c := Cost{Calls: 1, PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens}
	if u.CostUSD != nil {
		c.USD = *u.CostUSD
		if c.Tokens() > 0 {
			p.price = max(p.price, c.USD/float64(c.Tokens()))
		}
	}
	if h.Prompt > 0 {
		p.ratio = min(max(p.ratio, float64(u.PromptTokens)/float64(h.Prompt)), mostRatio)
	}
	if h.Reply > 0 {
		p.excess = min(max(p.excess, float64(u.CompletionTokens)/float64(h.Reply)), mostRatio)
	}
	text := llm.EstimateTokens(h.Text)
	p.thinks = p.thinks || u.CompletionTokens > 2*text+sureThought || h.Failed != nil && h.Failed.Code == fault.EmptyReply
	if h.Failed != nil && h.Failed.Code == fault.ContextTooLarge {
		p.room /= 2
	}
	p.spent.add(c)
	return c
}

// share divides what is left for searching among the members of a team.
func (p *purse) share(members int) purse {
	one := purse{tokens: p.forSearch() / members, learned: p.learned}
	if p.usd > 0 {
		one.usd = max(p.usd-p.spent.USD-p.lost.USD, math.SmallestNonzeroFloat64) / float64(members)
	}
	return one
}

// learn takes over what another purse has learned.
func (l *learned) learn(o learned) {
	l.price, l.ratio, l.excess = max(l.price, o.price), max(l.ratio, o.ratio), max(l.excess, o.excess)
	l.thinks, l.room = l.thinks || o.thinks, min(l.room, o.room)
}

func (c *Cost) add(d Cost) {
	c.Calls += d.Calls
	c.PromptTokens += d.PromptTokens
	c.CompletionTokens += d.CompletionTokens
	c.USD += d.USD
	c.Ms += d.Ms
}

func (c Cost) minus(d Cost) Cost {
	return Cost{c.Calls - d.Calls, c.PromptTokens - d.PromptTokens, c.CompletionTokens - d.CompletionTokens, c.USD - d.USD, c.Ms - d.Ms}
}

// fit cuts what is known to so many tokens. What was found out and the newest pages come first; descriptions
// of search results and earlier parts of the conversation get what is left. Each piece that is longer than its
// equal part is cut to what is about the question.
func fit(ctx context.Context, known []Knowledge, question string, room int) []Knowledge {
	sizes, total := make([]int, len(known)), 0
	for i, k := range known {
		sizes[i] = frame + llm.EstimatePrompt(Messages([]Knowledge{k}))
		total += sizes[i]
	}
	if total <= room {
		return known
	}
	var order [2][]int
	for i := len(known) - 1; i >= 0; i-- {
		first := 1
		if kind := known[i].Kind; kind == KindAnswer || kind == KindPage {
			first = 0
		}
		order[first] = append(order[first], i)
	}
	kept := make([]*Knowledge, len(known))
	for _, places := range order {
		places = places[:min(len(places), max(room, 0)/leastKnown)]
		for i, at := range places {
			k, part := known[at], room/(len(places)-i)
			if sizes[at] > part {
				k.Answer = cutText(ctx, k.Answer, question, part-sizes[at]+llm.EstimateTokens(k.Answer))
			}
			if k.Answer != "" {
				kept[at] = &k
				room -= frame + llm.EstimatePrompt(Messages([]Knowledge{k}))
			}
		}
	}
	var out []Knowledge
	for _, k := range kept {
		if k != nil {
			out = append(out, *k)
		}
	}
	return out
}

// cutText shortens a text to so many tokens: to what is about the question, as far as there is room for
// whole passages.
func cutText(ctx context.Context, text, question string, tokens int) string {
	size := llm.EstimateTokens(text)
	if size <= tokens {
		return text
	}
	if tokens <= 0 {
		return ""
	}
	units := int(float64(cite.Len16(text)) * float64(tokens) / float64(size))
	out := ""
	for _, p := range cite.Passages(ctx, nil, question, text, cite.PassageOptions{Size: max(units/2, 1), Count: 2}) {
		if out != "" {
			out += "\n…\n"
		}
		out += p.Text
	}
	return clip(out, tokens)
}

// clip cuts a text behind so many tokens.
func clip(text string, tokens int) string {
	if llm.EstimateTokens(text) <= tokens {
		return text
	}
	quarters := 0
	for i, r := range text {
		if r < 0x80 {
			quarters++
		} else {
			quarters += 4
		}
		if quarters > 4*tokens {
			return text[:i]
		}
	}
	return text
}
