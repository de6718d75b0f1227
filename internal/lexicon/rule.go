package lexicon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Rule is made of the rules that languages have under one name. They are compiled when the first
// text is read.
type Rule struct{ forms func() []Entry }

// An Entry is one rule of a language.
type Entry struct {
	*Form
	With     map[string]string
	Language string
}

// Rule returns the rule of a name, of all languages or of these.
func (l *Lexicon) Rule(name string, in ...string) *Rule { return &Rule{l.list(name, in)} }

// List returns the rules of a name one by one, those of the first language first. They may have
// these members.
func (l *Lexicon) List(name string, members ...string) func() []Entry {
	list := l.list(name, nil)
	return sync.OnceValue(func() []Entry {
		for _, e := range list() {
			for member := range e.With {
				if !slices.Contains(members, member) {
					panic(fmt.Sprintf("lexicon: %s: a rule of %s has an unknown member: %s", e.Language, name, member))
				}
			}
		}
		return list()
	})
}

func (l *Lexicon) list(name string, in []string) func() []Entry {
	l.Asked[name] = true
	return sync.OnceValue(func() []Entry {
		return find(l, name, in, func(of *Language) (all []Entry) {
			for _, s := range of.Rules {
				if s.Name == name {
					f, err := s.Compile()
					if err != nil {
						panic(err)
					}
					all = append(all, Entry{f, s.With, of.Name})
				}
			}
			return all
		})
	})
}

// MatchString reports whether a text matches in one of the languages.
func (r *Rule) MatchString(text string) bool {
	ascii := isASCII(text)
	return slices.ContainsFunc(r.forms(), func(e Entry) bool { return !(ascii && e.foreign) && e.MatchString(text) })
}

// ReplaceAllString replaces the matches of each language in turn, as Regexp.ReplaceAllString does.
func (r *Rule) ReplaceAllString(text, with string) string {
	return r.replace(text, func(Entry) string { return with })
}

// Rewrite is ReplaceAllString with the member "as" of each rule.
func (r *Rule) Rewrite(text string) string {
	return r.replace(text, func(e Entry) string { return e.With["as"] })
}

func (r *Rule) replace(text string, with func(Entry) string) string {
	ascii := isASCII(text)
	for _, e := range r.forms() {
		if !(ascii && e.foreign) {
			text = e.ReplaceAllString(text, with(e))
		}
	}
	return text
}

// Form is the rule of the first language.
func (r *Rule) Form() *Form { return r.forms()[0].Form }

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Compile puts in the parts and compiles the rule.
func (s *Source) Compile() (*Form, error) {
	f, err := s.compile(s.match)
	if err == nil && s.not != nil {
		f.not, err = s.compile(s.not)
	}
	if err != nil {
		return nil, fmt.Errorf("lexicon: %s: %s: %w", s.language.Name, s.Name, err)
	}
	return f, nil
}

// mostParts bounds how many parts a rule has, and those in parts.
const mostParts = 32

func (s *Source) compile(expressions []string) (*Form, error) {
	text := strings.Join(expressions, "|")
	if text == "" {
		return nil, errors.New("it matches nothing")
	}
	if len(expressions) > 1 {
		text = "(?:" + strings.Join(expressions, ")|(?:") + ")"
	}
	for range mostParts {
		begin := strings.Index(text, "{{")
		if begin < 0 {
			return formOf(text)
		}
		name, _, _ := strings.Cut(text[begin+2:], "}}")
		part, ok := s.language.part(name)
		if !ok {
			return nil, fmt.Errorf("there is no part %q", name)
		}
		text = strings.ReplaceAll(text, "{{"+name+"}}", part)
	}
	return nil, fmt.Errorf("a part is in itself: %s", text)
}
