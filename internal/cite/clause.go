package cite

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index"
)

var (
	breaks    = data.Set("breaks")
	joints    = data.Set("joints")
	carriers  = data.Set("carriers")
	particles = data.Set("particles")

	negations   = data.List("negation")
	affirmation = data.Rule("affirmation")
	absence     = data.Rule("absence")
	lessening   = data.Rule("lessening")
	hearsay     = data.Rule("hearsay")
	said        = data.Rule("said")
	passive     = data.Rule("passive")
	exception   = data.Rule("exception")
	denyingVerb = data.Rule("denying-verb")
	forms       = data.Set("forms-of-be")
	passives    = data.List("passive")
)

// reading is a sentence, or a few of a source, as conflicts are looked for in it.
type reading struct {
	text    string // plain
	clauses []clause
	terms   map[string]bool
	title   map[string]bool // terms of what a source is about; nil = there is no title
}

// clause is a part of a sentence that says something of its own.
type clause struct {
	text     string // plain, in lower case
	tokens   []token
	terms    map[string]bool
	amounts  []quantity
	denied   []denial
	negated  bool // by a word that is no opposite of another
	absent   bool // it says without a negation that something is not so
	lessened bool // likewise, with other words only
	opposite []side
	bounds   []side
	kinds    []member
	negates  []string // terms of words with "un" before them
	voice    int      // 1 in the passive, -1 if it is not; 0 = not known yet
}

// token is a word with a meaning, a name, or a number.
type token struct {
	term string
	name bool
}

// denial is a negation and the terms behind it, of which the first is what is denied.
type denial struct {
	word  string
	scope []string
	all   bool // all of the scope is meant, wherever it is spoken of: an exception
}

// side is one of two opposites, and the terms beside it.
type side struct {
	rank   int
	second bool
	beside []string
}

// maxRead is how much is read of a sentence, in bytes.
const maxRead = 4000

// read reads a sentence, or its beginning.
func read(text string) *reading {
	text = plain(strings.ToValidUTF8(text[:min(len(text), maxRead)], ""))
	r := &reading{text: text, terms: map[string]bool{}}
	for _, span := range clausesOf(text) {
		if c, ok := newClause(text[span[0]:span[1]], isBlank(text[:span[0]])); ok {
			r.clauses = append(r.clauses, c)
			for t := range c.terms {
				r.terms[t] = true
			}
		}
	}
	return r
}

// clausesOf cuts a text at punctuation and at the words that begin a clause.
func clausesOf(text string) (out []Span) {
	start := 0
	cut := func(to, next int) {
		if to > start {
			out = append(out, Span{start, to})
		}
		start = next
	}
	before := rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		next, _ := utf8.DecodeRuneInString(text[i+n:])
		switch {
		case isWord(r):
			end := runOf(text, i, isWord)
			if i > start && breaks()[strings.ToLower(text[i:end])] {
				cut(i, i)
			}
			n = end - i
		case strings.ContainsRune(".,:", r) && isDigit(before) && isDigit(next):
		case r == '.' && !isSpace(next) && i+n < len(text):
		case isClauseEnd(r):
			cut(i, i+n)
		}
		before, _ = utf8.DecodeLastRuneInString(text[:i+n])
		i += n
	}
	cut(len(text), len(text))
	return out
}

func isClauseEnd(r rune) bool {
	return strings.ContainsRune(",;:()|—–，；：（）。！？!?.…\n", r)
}

func newClause(text string, first bool) (clause, bool) {
	c := clause{text: strings.ToLower(text), terms: map[string]bool{}}
	c.tokens = tokensOf(text, first)
	if len(c.tokens) == 0 {
		return c, false
	}
	for _, t := range c.tokens {
		c.terms[t.term] = true
	}
	c.amounts = quantitiesIn(c.text)
	c.denied, c.negated = denialsIn(c.text)
	c.absent, c.lessened = absence.MatchString(c.text), lessening.MatchString(c.text)
	c.opposite = sidesIn(c.text, opposites())
	c.bounds = sidesIn(c.text, bounds())
	c.kinds = membersIn(c.text)
	for w := range wordsOf(c.text) {
		if rest, ok := strings.CutPrefix(w, "un"); ok && len(rest) > 3 {
			c.negates = append(c.negates, index.Stem(rest))
		}
	}
	return c, true
}

// tokensOf returns the words, names and numbers of a text. The first word of a sentence is no name.
func tokensOf(text string, first bool) (out []token) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case isDigit(r):
			end := digitsEnd(text, i)
			out = append(out, token{term: number(text[i:end], "")})
			i, first = end, false
		case isDense(r):
			end := runOf(text, i, isDense)
			for _, t := range index.Terms(text[i:end]) {
				out = append(out, token{term: t})
			}
			i = end
		case isWord(r):
			end := runOf(text, i, isWord)
			if terms := index.Terms(text[i:end]); len(terms) > 0 && terms[0] != "one" {
				out = append(out, token{terms[0], unicode.IsUpper(r) && !first})
			}
			i, first = end, false
		default:
			i += n
		}
	}
	return out
}

// denialsIn finds what a clause denies, and whether it does so with more than a verb that has an
// opposite.
func denialsIn(text string) (out []denial, negated bool) {
	text = affirmation.ReplaceAllString(text, " ")
	for _, rule := range negations() {
		if !rule.MatchString(text) {
			continue
		}
		for _, m := range rule.FindAllStringIndex(text, 8) {
			word := text[m[0]:m[1]]
			d := denial{word: word, scope: scopeOf(text[m[1]:])}
			if r, _ := utf8.DecodeRuneInString(word); len(d.scope) == 0 && isDense(r) { // 除夕除外
				before := index.Terms(text[:m[0]])
				d.scope = before[max(0, len(before)-2):]
			}
			if denyingVerb.MatchString(word) && inPassive(text[:m[0]]) {
				d.scope = before(text[:m[0]])
			}
			d.all = len(d.scope) > 0 && exception.MatchString(word)
			out = append(out, d)
			negated = negated || opposites().of[word] == nil && opposites().of[stemOf(word)] == nil
		}
	}
	return out, negated
}

// inPassive reports whether a text ends with a form of "be".
func inPassive(text string) bool {
	words := strings.Fields(text)
	return len(words) > 0 && forms()[words[len(words)-1]]
}

// before returns the last words of a text, the last first.
func before(text string) []string {
	scope := scopeOf(text)
	slices.Reverse(scope)
	return scope
}

// longestScope is in terms.
const longestScope = 6

// scopeOf returns the terms behind a negation: words by their stems, dense scripts by pairs.
func scopeOf(text string) (scope []string) {
	started := false
	for i := 0; i < len(text) && len(scope) < longestScope; {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case isDense(r) && !started && carriers()[string(r)]:
			i += n
		case isDense(r):
			end := runOf(text, i, isDense)
			scope = append(scope, index.Terms(text[i:end])...)
			i, started = end, true
		case isWord(r):
			end := runOf(text, i, isWord)
			word := text[i:end]
			i = end
			if terms := index.Terms(word); len(terms) > 0 && (started || !carriers()[word] && !carriers()[terms[0]]) {
				scope, started = append(scope, terms[0]), true
			}
		default:
			i += n
		}
	}
	return scope[:min(len(scope), longestScope)]
}

// opposing are words by the line that they are on, and on which side of it.
type opposing struct {
	of      map[string][]side
	longest int // in bytes
}

func readOpposing(list func() []string) func() *opposing {
	return sync.OnceValue(func() *opposing {
		o := &opposing{of: map[string][]side{}}
		for rank, line := range list() {
			first, second, _ := strings.Cut(line, " <> ")
			for i, words := range []string{first, second} {
				for w := range strings.SplitSeq(words, "/") {
					w = strings.TrimSpace(w)
					o.of[w] = append(o.of[w], side{rank: rank, second: i == 1})
					o.longest = max(o.longest, len(w))
					if t := stemOf(w); t != w {
						o.of[t] = append(o.of[t], side{rank: rank, second: i == 1})
					}
				}
			}
		}
		return o
	})
}

// stemOf is the stem of a single word of a script with spaces.
func stemOf(word string) string {
	r, _ := utf8.DecodeRuneInString(word)
	if isDense(r) || strings.Contains(word, " ") {
		return word
	}
	return index.Stem(word)
}

var (
	opposites = readOpposing(data.Words("opposites"))
	bounds    = readOpposing(data.Words("bounds"))
	changes   = readOpposing(data.Words("changes"))
)

// sidesIn finds which of some opposites a text in lower case has.
func sidesIn(text string, o *opposing) (out []side) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		sides, end := o.at(text, i, r)
		if sides == nil {
			i += n
			if isLetter(r) {
				i = runOf(text, i-n, isWord)
			}
			continue
		}
		beside := scopeOf(text[end:])
		beside = beside[:min(3, len(beside))]
		if isDense(r) {
			before := index.Terms(text[:i])
			beside = append(slices.Clone(beside), before[max(0, len(before)-3):]...)
		}
		for _, s := range sides {
			out = append(out, side{s.rank, s.second, beside})
		}
		i = end
	}
	return out
}

// at returns the sides of the longest entry at a position, and where it ends.
func (o *opposing) at(text string, i int, r rune) ([]side, int) {
	if isLetter(r) {
		end := runOf(text, i, isWord)
		long := end
		for range 2 { // phrases of up to three words
			if long >= len(text) || text[long] != ' ' {
				break
			}
			long = runOf(text, long+1, isWord)
		}
		for ; long > end; long = strings.LastIndexByte(text[:long], ' ') {
			if sides := o.of[text[i:long]]; sides != nil {
				return sides, long
			}
		}
		if sides := o.of[text[i:end]]; sides != nil {
			return sides, end
		}
		return o.of[index.Stem(text[i:end])], end
	}
	if !isDense(r) {
		return nil, i
	}
	for end := min(len(text), i+o.longest); end > i; end-- {
		if sides := o.of[text[i:end]]; sides != nil {
			return sides, end
		}
	}
	return nil, i
}

// member is one of a kind, such as a colour.
type member struct{ kind, number int }

var kinds = sync.OnceValue(func() map[string][]member {
	of := map[string][]member{}
	for kind, line := range kindList() {
		for number, same := range strings.Split(line, " | ") {
			for w := range strings.SplitSeq(same, "/") {
				of[w] = append(of[w], member{kind, number})
			}
		}
	}
	return of
})

var kindList = data.Words("kinds")

// longestKind is in bytes.
const longestKind = 9

// membersIn finds the members of kinds in a text in lower case.
func membersIn(text string) (out []member) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case isDense(r):
			for end := i + n; end <= min(len(text), i+longestKind); end++ {
				out = append(out, kinds()[text[i:end]]...)
			}
		case isWord(r):
			end := runOf(text, i, isWord)
			out = append(out, kinds()[text[i:end]]...)
			n = end - i
		}
		i += n
	}
	return out
}

// nameFirst makes the first word of a sentence a name, if it is one elsewhere.
func (r *reading) nameFirst(text string, names map[string]bool) {
	first, _ := utf8.DecodeRuneInString(text)
	if len(r.clauses) > 0 && unicode.IsUpper(first) && names[r.clauses[0].tokens[0].term] {
		r.clauses[0].tokens[0].name = true
	}
}

func (c *clause) isPassive() bool {
	if c.voice == 0 {
		c.voice = -1
		if passive.MatchString(c.text) {
			c.voice = 1
		}
	}
	return c.voice > 0
}
