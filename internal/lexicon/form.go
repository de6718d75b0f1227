package lexicon

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Form is a regular expression with some strings of which every match contains at least one. It
// is tried only on texts that contain one of them. Most texts contain none, and looking for all of
// them takes one pass, while an expression of many words begins anew at each letter.
type Form struct {
	*regexp.Regexp
	not     *Form               // its matches are exceptions; nil = there are none
	needs   map[uint16][]string // these strings, by their first two bytes
	starts  [64]uint64          // bits for these bytes
	single  [4]uint64           // needs of one byte, by bits
	any     bool                // every text may match
	folds   bool                // it ignores case: needs are in lower case
	foreign bool                // no text in ASCII matches
}

// formOf compiles an expression.
func formOf(expression string) (*Form, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	p := &Form{Regexp: re, needs: map[uint16][]string{}, folds: ignoresCase(tree)}
	needs := literalsIn(tree).required()
	p.any = len(needs) == 0
	p.foreign = !p.any && !slices.ContainsFunc(needs, func(n string) bool { return n[0] < utf8.RuneSelf })
	for _, n := range needs {
		if p.folds {
			n = foldCase(n)
		}
		if len(n) == 1 {
			p.single[n[0]/64] |= 1 << (n[0] % 64)
			continue
		}
		first := uint16(n[0])<<8 | uint16(n[1])
		p.needs[first] = append(p.needs[first], n)
		p.starts[startOf(first)/64] |= 1 << (startOf(first) % 64)
	}
	return p, nil
}

func startOf(first uint16) uint16 { return (first ^ first>>5) % 4096 }

// mayMatch reports, fast, whether a text may match.
func (p *Form) mayMatch(text string) bool {
	if p.any {
		return true
	}
	if p.folds {
		text = foldCase(text)
	}
	for i := range len(text) {
		if p.single[text[i]/64]&(1<<(text[i]%64)) != 0 {
			return true
		}
		if i+1 == len(text) {
			break
		}
		first := uint16(text[i])<<8 | uint16(text[i+1])
		if at := startOf(first); p.starts[at/64]&(1<<(at%64)) == 0 {
			continue
		}
		for _, n := range p.needs[first] {
			if strings.HasPrefix(text[i:], n) {
				return true
			}
		}
	}
	return false
}

// MatchString reports whether the expression matches, and no exception does.
func (p *Form) MatchString(text string) bool {
	return p.mayMatch(text) && p.Regexp.MatchString(text) && !p.excepts(text)
}

func (p *Form) excepts(text string) bool { return p.not != nil && p.not.MatchString(text) }

// ReplaceAllString is that of the expression.
func (p *Form) ReplaceAllString(text, with string) string {
	if !p.mayMatch(text) {
		return text
	}
	return p.Regexp.ReplaceAllString(text, with)
}

// ReplaceAllStringFunc is that of the expression.
func (p *Form) ReplaceAllStringFunc(text string, with func(string) string) string {
	if !p.mayMatch(text) {
		return text
	}
	return p.Regexp.ReplaceAllStringFunc(text, with)
}

// FindAllStringSubmatchIndex is that of the expression.
func (p *Form) FindAllStringSubmatchIndex(text string, n int) [][]int {
	if !p.mayMatch(text) {
		return nil
	}
	return p.Regexp.FindAllStringSubmatchIndex(text, n)
}

// foldCase makes letters equal that an expression which ignores case takes for equal, as far as they
// have an ASCII letter among them.
func foldCase(text string) string { return strings.ReplaceAll(strings.ToLower(text), "ſ", "s") }

func ignoresCase(tree *syntax.Regexp) bool {
	return tree.Flags&syntax.FoldCase != 0 || slices.ContainsFunc(tree.Sub, ignoresCase)
}

// literals are what is known of the strings that match a part of an expression.
type literals struct {
	all []string // all of these strings; nil = there are too many
	one []string // else each of them has one of these; nil = none are known
}

const mostLiterals = 512

// required is one, in any case.
func (l literals) required() []string {
	if l.all == nil {
		return l.one
	}
	if slices.Contains(l.all, "") {
		return nil
	}
	return l.all
}

// literalsIn reads a part of an expression.
func literalsIn(tree *syntax.Regexp) literals {
	switch tree.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return literals{all: []string{""}}
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase == 0 || !slices.ContainsFunc(tree.Rune, foldsBeyondASCII) {
			return literals{all: []string{string(tree.Rune)}}
		}
	case syntax.OpCharClass:
		return literals{all: runesOf(tree.Rune)}
	case syntax.OpCapture:
		return literalsIn(tree.Sub[0])
	case syntax.OpPlus:
		return literals{one: literalsIn(tree.Sub[0]).required()}
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return literals{one: literalsIn(tree.Sub[0]).required()}
		}
	case syntax.OpQuest:
		if of := literalsIn(tree.Sub[0]); of.all != nil {
			return literals{all: append(slices.Clip(of.all), "")}
		}
	case syntax.OpConcat:
		return literalsInRow(tree.Sub)
	case syntax.OpAlternate:
		return literalsInEither(tree.Sub)
	}
	return literals{}
}

func foldsBeyondASCII(r rune) bool { return r >= utf8.RuneSelf && unicode.SimpleFold(r) != r }

// runesOf returns the characters of a small class, given by their ranges.
func runesOf(ranges []rune) (all []string) {
	const most = 16
	for i := 0; i < len(ranges); i += 2 {
		if int(ranges[i+1]-ranges[i])+len(all) >= most {
			return nil
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			all = append(all, string(r))
		}
	}
	return all
}

// literalsInRow reads parts that follow each other. Of what they require, that with the longest
// strings is looked for.
func literalsInRow(parts []*syntax.Regexp) literals {
	var best []string
	shortest := func(of []string) (n int) {
		if len(of) > 0 {
			n = len(slices.MinFunc(of, func(a, b string) int { return len(a) - len(b) }))
		}
		return n
	}
	consider := func(one []string) {
		if shortest(one) > shortest(best) {
			best = one
		}
	}
	run, broken := literals{all: []string{""}}, false
	for _, part := range parts {
		of := literalsIn(part)
		if of.all != nil && len(of.all)*len(run.all) <= mostLiterals {
			run.all = joined(run.all, of.all)
			continue
		}
		consider(run.required())
		consider(of.one)
		broken, run.all = true, []string{""}
		if of.all != nil {
			run.all = of.all
		}
	}
	if !broken {
		return run
	}
	consider(run.required())
	return literals{one: best}
}

func joined(begins, ends []string) []string {
	all := make([]string, 0, len(begins)*len(ends))
	for _, a := range begins {
		for _, b := range ends {
			all = append(all, a+b)
		}
	}
	return all
}

// literalsInEither reads parts of which one matches.
func literalsInEither(parts []*syntax.Regexp) literals {
	var all, one []string
	whole, known := true, true
	for _, part := range parts {
		of := literalsIn(part)
		required := of.required()
		whole, known = whole && of.all != nil, known && required != nil
		all, one = append(all, of.all...), append(one, required...)
	}
	switch {
	case whole && len(all) <= mostLiterals:
		return literals{all: all}
	case known:
		return literals{one: one}
	}
	return literals{}
}
