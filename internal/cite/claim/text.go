package claim

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/cite/script"
	"nodest/internal/index"
)

var (
	breaks    = data.Set("breaks")
	particles = data.Set("particles")
	passive   = data.Rule("passive")
)

// Text is a sentence, or a few of a source, prepared to be compared.
type Text struct {
	Dense bool // it has characters of a dense script

	plain   string // numbers in digits
	clauses []*clause
	terms   map[string]bool
	symbols []symbol // the clauses' symbols, a line break behind each clause; nil = not read yet
}

// clause is a part of a sentence that says something of its own.
type clause struct {
	plain   string // with its capitals
	text    string // plain, in lower case
	tokens  []token
	terms   map[string]bool
	symbols []symbol
	amounts []quantity
	said    *meaning // nil = not read yet
}

// meaning is what a clause says beside its words.
type meaning struct {
	denied   []denial
	negated  bool // by a word that is no opposite of another
	absent   bool // it says without a negation that something is not so
	opposite []side
	bounds   []side
	kinds    []side
	passive  bool
}

// token is a word with a meaning, a name, or a number.
type token struct {
	term  string
	name  bool
	lower bool // it begins with a small letter
}

// MaxRead is how much is read of a sentence, in bytes.
const MaxRead = 4000

// Read reads a sentence, or its beginning. Some words are known to be names, also at its start: by their terms.
func Read(sentence string, names map[string]bool) *Text {
	text := Plain(strings.ToValidUTF8(sentence[:min(len(sentence), MaxRead)], ""))
	t := &Text{Dense: script.HasDense(text), plain: text, terms: map[string]bool{}}
	for _, span := range clausesOf(text) {
		part := text[span[0]:span[1]]
		if c, ok := newClause(part, script.IsBlank(text[:span[0]]), names); ok {
			if n := len(t.clauses); n > 0 && c.goesOn() {
				t.clauses[n-1].add(c)
			} else {
				t.clauses = append(t.clauses, c)
			}
			for term := range c.terms {
				t.terms[term] = true
			}
		}
	}
	return t
}

// join makes one text of neighbouring sentences.
func join(sentences []*Text) *Text {
	if len(sentences) == 1 {
		return sentences[0]
	}
	all := &Text{terms: map[string]bool{}}
	for _, t := range sentences {
		all.Dense = all.Dense || t.Dense
		all.plain += t.plain + "\n"
		all.clauses = append(all.clauses, t.clauses...)
		for term := range t.terms {
			all.terms[term] = true
		}
	}
	return all
}

// clausesOf cuts a text at punctuation and at the words that begin a clause. An English comma ends one only where the
// sentence begins with such a word.
func clausesOf(text string) (out [][2]int) {
	start := 0
	first := breaks()[strings.ToLower(text[:script.RunOf(text, 0, script.IsWord)])]
	cut := func(to, next int) {
		if to > start {
			out = append(out, [2]int{start, to})
		}
		start = next
	}
	before := rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		next, _ := utf8.DecodeRuneInString(text[i+n:])
		switch {
		case script.IsWord(r):
			end := script.RunOf(text, i, script.IsWord)
			if i > start && breaks()[strings.ToLower(text[i:end])] {
				cut(i, i)
			}
			n = end - i
		case isWithin(r, before, next, i+n == len(text)):
		case script.IsClauseEnd(r) && (r != ',' || script.IsDense(before) || first):
			cut(i, i+n)
			first = first && r != ','
		}
		before, _ = utf8.DecodeLastRuneInString(text[:i+n])
		i += n
	}
	cut(len(text), len(text))
	return out
}

// isWithin reports whether punctuation between two characters is part of a number or a name.
func isWithin(r, before, next rune, last bool) bool {
	return strings.ContainsRune(".,:", r) && script.IsDigit(before) && script.IsDigit(next) || r == '.' && !script.IsSpace(next) && !last
}

func newClause(text string, first bool, names map[string]bool) (*clause, bool) {
	c := &clause{plain: text, text: strings.ToLower(text), terms: map[string]bool{}}
	c.tokens = tokensOf(text, first, names)
	if len(c.tokens) == 0 {
		return c, false
	}
	for _, t := range c.tokens {
		c.terms[t.term] = true
	}
	c.amounts = quantitiesIn(text)
	return c, true
}

// row is the clause as symbols.
func (c *clause) row() []symbol {
	if c.symbols == nil {
		c.symbols = symbolsOf(c.plain, c.amounts)
	}
	return c.symbols
}

// row is the text as symbols.
func (t *Text) row() []symbol {
	if t.symbols == nil {
		for _, c := range t.clauses {
			t.symbols = append(append(t.symbols, c.row()...), '\n')
		}
	}
	return t.symbols
}

// says returns what a clause says beside its words.
func (c *clause) says() *meaning {
	if c.said == nil {
		m := &meaning{
			absent:   absence.MatchString(c.text),
			opposite: sidesIn(c.text, opposites()),
			bounds:   sidesIn(c.text, bounds()),
			kinds:    sidesIn(c.text, kindsOf()),
			passive:  passive.MatchString(c.text),
		}
		m.denied, m.negated = denialsIn(c.text)
		c.said = m
	}
	return c.said
}

// goesOn reports whether a clause only continues a list with "and" and a name, or is a number, as in parentheses.
func (c *clause) goesOn() bool {
	if len(c.amounts) > 0 && !slices.ContainsFunc(c.tokens, func(t token) bool { return !isNumber(t.term) && !isUnit(t.term) }) {
		return true
	}
	names, others := 0, 0
	for _, t := range c.tokens {
		if t.name {
			names++
		} else {
			others++
		}
	}
	return names > 0 && others <= 1 && !c.says().passive && (strings.HasPrefix(c.text, "and ") || strings.HasPrefix(c.text, "or "))
}

// add puts the words of another clause into c.
func (c *clause) add(other *clause) {
	c.text += other.text
	c.said = nil
	c.tokens = append(c.tokens, other.tokens...)
	c.symbols = append(c.row(), other.row()...)
	c.amounts = append(c.amounts, other.amounts...)
	maps.Copy(c.terms, other.terms)
}

// tokensOf returns the words, names and numbers of a text. The first word of a sentence is no name, unless it is
// known as one.
func tokensOf(text string, first bool, names map[string]bool) (out []token) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case script.IsDigit(r):
			end := digitsEnd(text, i)
			out = append(out, token{term: number(text[i:end], "")})
			i, first = end, false
		case script.IsDense(r):
			end := script.RunOf(text, i, script.IsDense)
			for _, t := range index.Terms(text[i:end]) {
				out = append(out, token{term: t})
			}
			i = end
		case script.IsWord(r):
			end := script.RunOf(text, i, script.IsWord)
			if terms := index.Terms(text[i:end]); len(terms) > 0 && terms[0] != "one" {
				out = append(out, token{terms[0], unicode.IsUpper(r) && (!first || names[terms[0]]), unicode.IsLower(r)})
			}
			i, first = end, false
		default:
			i += n
		}
	}
	return out
}

// Terms returns the terms of a text by which sentences are found; numbers are in digits.
func Terms(text string) map[string]bool {
	terms := Distinct(index.Terms(Plain(text)))
	delete(terms, "one") // it is more often a pronoun
	return terms
}

// Distinct makes a set of terms.
func Distinct(terms []string) map[string]bool {
	set := make(map[string]bool, len(terms))
	for _, t := range terms {
		set[t] = true
	}
	return set
}

// Share is the share of terms that has contains.
func Share(terms, has map[string]bool) float64 {
	n := 0
	for t := range terms {
		if has[t] {
			n++
		}
	}
	return float64(n) / float64(max(len(terms), 1))
}

func isNumber(term string) bool {
	r, _ := utf8.DecodeRuneInString(term)
	return script.IsDigit(r)
}
