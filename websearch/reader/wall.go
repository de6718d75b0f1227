package reader

import (
	"cmp"
	"regexp"
	"strings"

	"nodest/internal/lexicon"
)

// A wall asks its visitor for something and has little else to read. Each sentence of a page is
// therefore an ask, the talk that comes with asks, or the rest, and what decides is how much rest
// there is beside how many asks; a page about walls has more of it. Markup counts as well as words:
// fields for passwords, tests for robots, buttons, names of elements, and what publishers tell search
// engines about pages that are not free. Quoted words are not said.

// asks has what walls say, by their kinds, in the order in which they are tried, and what is true
// of a page that is one.
var asks = []struct {
	kind Kind
	rule *lexicon.Rule
	is   func(v *view, c *tally) bool
}{
	{kindMissing, data.Rule("missing"), func(_ *view, c *tally) bool { return c.headed && c.asked() && c.light(false) }},
	{KindChallenge, data.Rule("challenge"), (*view).challenges},
	{KindAge, data.Rule("age"), func(v *view, c *tally) bool { return c.asked() && c.labels+v.fields+v.buttons > 0 && c.light(true) }},
	{KindRegion, data.Rule("region"), func(_ *view, c *tally) bool { return c.asked() && c.light(false) }},
	{KindConsent, data.Rule("consent"), (*view).consents},
	{KindPaywall, paywall, (*view).pays},
	{KindLogin, data.Rule("login"), (*view).logsIn},
	{KindApp, data.Rule("app"), func(_ *view, c *tally) bool { return c.asked() && c.beside() <= restOfSure }},
}

// kindMissing is the kind of a page that is not there.
const kindMissing Kind = "missing"

var (
	paywall   = data.Rule("paywall")
	agree     = data.Rule("agree")      // labels by which a visitor agrees, or does not
	wallLabel = data.Rule("wall-label") // other labels that open a wall
	wallAbout = data.Rule("wall-about") // headings of pages that tell about something
	wallTalk  = data.Rule("wall-talk")  // help, apologies and plans beside a wall

	quotedWords = regexp.MustCompile(`"[^"]*"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|『[^』]*』`)
	price       = regexp.MustCompile(`[£$€¥￥]\s?\d|\d\s?(?:€|EUR|USD|円|元)`)
)

// How much rest there may be beside asks, in weight. Talk counts less: help with a log-in is made
// of nothing else.
const (
	restOfOne  = 24   // beside one ask
	restOfSure = 60   // beside one in the title or heading
	restOfMore = 200  // beside several, or one and a button or field
	mostTeaser = 1500 // before the ask for a subscription
	leastAsk   = 16   // weight of a label that is one
	mostAsk    = 320  // a longer sentence asks for nothing
	mostTalk   = 100  // a longer one is no talk
	talkShare  = 0.4
)

// tally is what the sentences of a page are, for one kind of walls.
type tally struct {
	asks         map[string]bool
	before, rest float64 // rest before the first ask, and all of it
	after        float64 // rest behind the last ask, without links
	talk         float64
	labels       int  // buttons and links that fit the kind
	headed       bool // the title or the heading is an ask or talk
	gated, paid  bool
}

// asked reports whether the page asks for something.
func (c *tally) asked() bool { return len(c.asks) > 0 }

// beside is how much there is to read beside asks.
func (c *tally) beside() float64 { return c.rest + c.talk*talkShare }

// light reports whether there is little to read beside asks; supported says that markup agrees with them.
func (c *tally) light(supported bool) bool {
	rest := c.beside()
	switch n := len(c.asks); {
	case n > 2 && c.headed:
		return rest <= 2*restOfMore
	case n > 1, n > 0 && supported:
		return rest <= restOfMore
	}
	if c.headed {
		return rest <= restOfSure
	}
	return rest <= restOfOne
}

// wall returns the kind of wall that a page is, or "".
func (v *view) wall() Kind {
	if len(v.said) >= mostSaid {
		return ""
	}
	kinds := make([]map[Kind]bool, len(v.said))
	for i, s := range v.said {
		kinds[i] = s.kinds()
	}
	top := v.title
	if v.h1 != "" && strings.Contains(top, v.h1) {
		top = ""
	}
	for _, a := range asks {
		c := v.tally(a.kind, kinds)
		if top != "" && a.rule.MatchString(quotedWords.ReplaceAllString(top, " ")) {
			c.asks[top] = true
		}
		c.headed = c.asks[top] || c.asks[v.h1] || wallTalk.MatchString(cmp.Or(v.h1, top))
		if v.mayAsk(a.kind, c) && a.is(v, c) {
			return a.kind
		}
	}
	return ""
}

// mayAsk reports whether a page may be a wall of a kind: one about something needs markup that says so.
func (v *view) mayAsk(kind Kind, c *tally) bool {
	return kind == KindPaywall || !v.about() || c.labels > 0 || c.gated || v.password || v.robots
}

// kinds are those that a sentence asks for.
func (s phrase) kinds() map[Kind]bool {
	kinds := map[Kind]bool{}
	if s.weight > mostAsk {
		return kinds
	}
	if s.gate != "" && (wallTalk.MatchString(s.text) || wallLabel.MatchString(s.text) || price.MatchString(s.text)) {
		kinds[s.gate] = true
	}
	said := quotedWords.ReplaceAllString(s.text, " ")
	for _, a := range asks {
		if a.rule.MatchString(said) {
			kinds[a.kind] = true
		}
	}
	return kinds
}

// tally sorts the sentences of a page, whose kinds are known, for a kind.
func (v *view) tally(kind Kind, kinds []map[Kind]bool) *tally {
	c := &tally{asks: map[string]bool{}}
	seen := map[string]bool{}
	for i, s := range v.said {
		if s.side && s.gate != kind || seen[s.text] && !s.label {
			continue
		}
		seen[s.text] = true
		c.paid = c.paid || price.MatchString(s.text)
		switch s.part(kind, kinds[i]) {
		case partOpener:
			c.labels++
		case partAsk:
			c.asks[s.text], c.after = true, 0
			c.gated = c.gated || s.gate == kind
			if s.label {
				c.labels++
			}
		case partTalk:
			c.talk += float64(s.weight)
		case partRest:
			c.add(float64(s.weight), s.label)
		}
	}
	return c
}

// part is what a sentence or label is for a kind of walls.
type part uint8

const (
	partRest   part = iota // something to read
	partAsk                // it asks for what such walls ask for
	partOpener             // a short label that opens such a wall
	partTalk               // it comes with asks
	partIdle               // a short label that comes with asks
)

// part sorts a phrase that asks for some kinds.
func (s phrase) part(kind Kind, asksFor map[Kind]bool) part {
	switch {
	case s.label && s.weight < leastAsk:
		return s.shortLabel(kind)
	case asksFor[kind]:
		return partAsk
	case len(asksFor) > 0, s.label && s.opens(), s.weight <= mostTalk && (s.gate == kind || wallTalk.MatchString(s.text)):
		return partTalk
	}
	return partRest
}

func (s phrase) shortLabel(kind Kind) part {
	opens := wallLabel
	if kind == KindConsent {
		opens = agree
	}
	switch {
	case opens.MatchString(s.text):
		return partOpener
	case s.opens() || wallTalk.MatchString(s.text):
		return partIdle
	}
	return partRest
}

// opens reports whether a label is one of a wall.
func (s phrase) opens() bool { return agree.MatchString(s.text) || wallLabel.MatchString(s.text) }

// add adds the rest that a sentence is.
func (c *tally) add(weight float64, link bool) {
	if c.rest += weight; len(c.asks) == 0 {
		c.before += weight
	}
	if !link {
		c.after += weight
	}
}

// challenges reports whether a page wants to know whether its visitor is a robot, and has little else.
func (v *view) challenges(c *tally) bool {
	return c.asked() && c.light(v.robots) || v.robots && v.fields == 0 && c.rest <= restOfSure
}

// consents reports whether a page asks for consent and has little else, and a button.
func (v *view) consents(c *tally) bool {
	return c.asked() && c.labels+v.buttons > 0 && (c.rest <= restOfSure*2/3 || c.headed && c.light(true))
}

// logsIn reports whether a page asks for a log-in, or is nothing but a form. One that only tells how has nothing to
// press or to fill in.
func (v *view) logsIn(c *tally) bool {
	open := v.password || v.fields+v.buttons+c.labels > 0
	return c.asked() && c.light(v.password || c.labels > 0) && (open || c.gated || c.beside() <= restOfOne) ||
		v.password && c.beside() <= 2*restOfSure || v.fields > 0 && c.rest == 0 && c.talk > 0
}

// pays reports whether a page ends with an ask for a subscription, behind a teaser.
func (v *view) pays(c *tally) bool {
	n := len(c.asks)
	if n == 0 {
		return v.closed && c.rest <= mostTeaser/2
	}
	supported := n > 1 || c.labels > 0 || c.paid || c.gated || v.closed || c.before <= 2*restOfSure && !v.about()
	return supported && c.before <= mostTeaser && c.after <= restOfSure/2
}

// about reports whether a page is about something, by its heading or else its title.
func (v *view) about() bool { return wallAbout.MatchString(cmp.Or(v.h1, v.title)) }

// weight is that of all that is shown.
func (v *view) weight() (sum int) {
	for _, s := range v.said {
		sum += s.weight
	}
	return sum
}

// bare reports whether a page shows nothing but its title, links and a little talk.
func (v *view) bare() bool {
	rest, talk := 0, 0
	for _, s := range v.said {
		switch {
		case s.side, s.label, strings.Contains(v.title, s.text):
		case wallTalk.MatchString(s.text):
			talk += s.weight
		default:
			rest += s.weight
		}
	}
	if v.scripts {
		return rest+talk <= restOfSure
	}
	return len(v.said) < mostSaid && rest == 0 && talk <= restOfSure
}
