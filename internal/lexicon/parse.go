package lexicon

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Language is one file.
type Language struct {
	Name  string
	Rules []*Source
	Words map[string][]string
	Put   map[string]bool   // names that are put into others, as {{name}}
	mu    sync.Mutex        // guards Put, because rules are compiled at any time
	parts map[string]string // groups of regular expressions
}

// A Source is a rule as it is written.
type Source struct {
	Name     string
	Matches  []string          // texts that must match
	Misses   []string          // texts that nearly match
	With     map[string]string // the meaning that a match has for the package
	match    []string
	not      []string
	language *Language
}

// parse reads a file: blocks of a line with the kind and the name, and of indented lines.
func parse(language, text string) (*Language, error) {
	l := &Language{Name: language, Words: map[string][]string{}, Put: map[string]bool{}, parts: map[string]string{}}
	var kind, name string
	for number, line := range strings.Split(text, "\n") {
		content := strings.TrimSpace(line)
		var err error
		switch {
		case content == "", content[0] == '#':
			continue
		case line[0] != ' ':
			kind, name, _ = strings.Cut(content, " ")
			err = l.begin(kind, strings.TrimSpace(name))
			name = strings.TrimSpace(name)
		default:
			err = l.add(kind, name, content)
		}
		if err != nil {
			return nil, fmt.Errorf("lexicon: %s, line %d: %w", language, number+1, err)
		}
	}
	for name, part := range l.parts {
		l.parts[name] = "(?:" + strings.TrimPrefix(part, "|") + ")"
	}
	return l, l.putWords()
}

// putWords puts the words of a name where a list has {{name}}.
func (l *Language) putWords() error {
	for name, list := range l.Words {
		for i, w := range list {
			put, ok := strings.CutPrefix(strings.TrimSuffix(w, "}}"), "{{")
			if !ok {
				continue
			}
			if l.Words[put] == nil {
				return fmt.Errorf("lexicon: %s: there are no words %q", l.Name, put)
			}
			l.Put[put] = true
			l.Words[name] = slices.Concat(list[:i], list[i+1:], l.Words[put])
			break
		}
	}
	return nil
}

// part returns a group of a regular expression: a part, or words of which one must match.
func (l *Language) part(name string) (string, bool) {
	part, ok := l.parts[name]
	if words := l.Words[name]; !ok && words != nil {
		l.mu.Lock()
		l.Put[name] = true
		l.mu.Unlock()
		return "(?:" + strings.Join(words, "|") + ")", true
	}
	return part, ok
}

// begin begins a block. Rules and words may have several of a name.
func (l *Language) begin(kind, name string) error {
	_, known := l.parts[name]
	switch {
	case name == "" || known && kind == "part":
		return fmt.Errorf("%s %q has no name, or is there twice", kind, name)
	case kind == "rule":
		l.Rules = append(l.Rules, &Source{Name: name, With: map[string]string{}, language: l})
	case kind == "part":
		l.parts[name] = ""
	case kind == "words", kind == "phrases":
		l.Words[name] = slices.Clip(l.Words[name])
	default:
		return fmt.Errorf("%q is no kind of block", kind)
	}
	return nil
}

// add adds a line to a block.
func (l *Language) add(kind, name, line string) error {
	switch kind {
	case "part":
		l.parts[name] += "|" + line
	case "words":
		l.Words[name] = append(l.Words[name], strings.Fields(line)...)
	case "phrases":
		l.Words[name] = append(l.Words[name], line)
	case "rule":
		return l.Rules[len(l.Rules)-1].add(line)
	default:
		return fmt.Errorf("%q is in no block", line)
	}
	return nil
}

func (s *Source) add(line string) error {
	member, value, _ := strings.Cut(line, " ")
	switch value = strings.TrimSpace(value); {
	case value == "":
		return fmt.Errorf("%q has no value", member)
	case member == "match":
		s.match = append(s.match, value)
	case member == "not":
		s.not = append(s.not, value)
	case member == "+":
		s.Matches = append(s.Matches, value)
	case member == "-":
		s.Misses = append(s.Misses, value)
	case s.With[member] != "":
		return fmt.Errorf("%q is there twice", member)
	default:
		s.With[member] = value
	}
	return nil
}
