package lang

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"nodest/internal/lexicon"
)

const (
	RulesPerMessage = 3
	LongestByRule   = 120 // code points of a statement
)

// aboutAnother reports whether a message without a subject answers one about somebody else.
func aboutAnother(before, m Line) bool {
	return m.Role == RoleUser && before.Role == RoleCharacter && HasCJK(m.Text) && !strings.Contains(m.Text, "我") &&
		(hanPeople.MatchString(strings.NewReplacer("你", "", "您", "").Replace(before.Text)) || hanPeople.MatchString(m.Text))
}

// Statement is a statement read by a rule.
type Statement struct {
	Text       string
	Subject    Subject
	Kind       Kind
	Importance float64
	Ends       bool // it is worth keeping only if it ends something that is known
}

// StatementsIn returns the statements of each line that rules read, given the lines before and after.
func (n Names) StatementsIn(lines []Line) [][]Statement {
	all, played := make([][]Statement, len(lines)), Played(lines)
	for i, m := range lines {
		if !played[i] && !takenBack(lines, i) && !isHanded(lines, i) && (i == 0 || !aboutAnother(lines[i-1], m)) {
			all[i] = n.Statements(m)
		}
	}
	return all
}

// Statements returns the most important statements of a message, in their order.
func (n Names) Statements(m Line) []Statement {
	if m.Role == RoleCharacter && !inFirstPerson(m.Text) || !earnest(m) {
		return nil
	}
	var all []Statement
	text := guessWho.Rewrite(Narration.ReplaceAllString(OwnWords(m.Text), "\n"))
	for _, s := range Statements(text) {
		if m.Role == RoleCharacter && !inFirstPerson(s) {
			continue
		}
		if s = mutual.Rewrite(formerly.Rewrite(s)); supposed.MatchString(s) || isTask.MatchString(s) {
			continue
		}
		if s = unquoted(s); s == "" {
			continue
		}
		all = append(all, n.read(s, m)...)
	}
	all = slices.DeleteFunc(all, func(f Statement) bool {
		return utf8.RuneCountInString(f.Text) > LongestByRule || LooksLikeMarkup(f.Text) || IsQuestion(f.Text)
	})
	if len(all) <= RulesPerMessage {
		return all
	}
	best := slices.Clone(all)
	slices.SortStableFunc(best, func(a, b Statement) int { return cmp.Compare(b.Importance, a.Importance) })
	best = best[:RulesPerMessage]
	return slices.DeleteFunc(all, func(f Statement) bool { return !slices.Contains(best, f) })
}

// read reads a sentence in English or Chinese, else in another language that has statements.
func (n Names) read(sentence string, m Line) (found []Statement) {
	if HasCJK(sentence) {
		found = n.readChinese(sentence, m)
	} else {
		found = n.readEnglish(sentence, m)
	}
	if found == nil && m.Role == RoleUser {
		found = readPlain(sentence, m)
	}
	return found
}

// inFirstPerson is a fast check that leaves most of a long story to no rule.
func inFirstPerson(text string) bool { return TraitsOf(text).Self || strings.Contains(text, "本人") }

var (
	quoted     = regexp.MustCompile(`“[^”]*”?|「[^」]*」?|『[^』]*』?|"[^"]*"?|‘[^’]*’`)
	speechMark = data.Rule("speech-mark") // before a quotation
	saysI      = data.Rule("says-i")
	isName     = data.Rule("is-name") // before a name
)

// unquoted leaves out quotations; a title or a name stays, without the marks.
func unquoted(s string) string {
	var b strings.Builder
	from := 0
	for _, at := range quoted.FindAllStringIndex(s, -1) {
		before, inside := s[:at[0]], strings.Trim(s[at[0]:at[1]], "“”「」『』\"‘’")
		b.WriteString(s[from:at[0]])
		from = at[1]
		short := utf8.RuneCountInString(inside) <= 24 && !saysI.MatchString(inside) && !strings.ContainsAny(inside, "。！？!?.，,")
		if short && (isName.MatchString(before) || !speechMark.MatchString(before)) {
			b.WriteString(inside)
		} else {
			b.WriteString("\n")
		}
	}
	b.WriteString(s[from:])
	kept, _, _ := strings.Cut(strings.TrimSpace(b.String()), "\n")
	return strings.TrimSpace(kept)
}

// rule reads one clause by form; its groups go into text.
type rule struct {
	form       *lexicon.Form
	object     int  // group that must say something by itself; 0 = none
	explicit   bool // the clause must name the speaker (Chinese)
	kind       Kind
	importance float64
	ends       bool   // see Statement
	text       string // template of Regexp.Expand; "" = the clause itself
}

var (
	statementRules    = rulesOf("statement")
	introductionRules = rulesOf("introduction") // rules for messages that greet: "I'm Anna"
)

// rulesOf returns the rules of each language, in order.
func rulesOf(name string) func() map[string][]rule {
	entries := data.List(name, "object", "explicit", "kind", "importance", "ends", "text")
	return sync.OnceValue(func() map[string][]rule {
		all := map[string][]rule{}
		for _, e := range entries() {
			object, err := strconv.Atoi(cmp.Or(e.With["object"], "0"))
			importance, err2 := strconv.ParseFloat(e.With["importance"], 64)
			if err = errors.Join(err, err2); err != nil {
				panic(err)
			}
			all[e.Language] = append(all[e.Language], rule{e.Form, object, e.With["explicit"] != "", Kind(e.With["kind"]), importance, e.With["ends"] != "", e.With["text"]})
		}
		return all
	})
}

func (r rule) read(clause string) (string, bool) {
	if !r.form.MatchString(clause) {
		return "", false
	}
	at := r.form.FindStringSubmatchIndex(clause)
	if r.object > 0 && saysLittle(clause[at[2*r.object]:at[2*r.object+1]]) {
		return "", false
	}
	if r.text == "" {
		return clause, true
	}
	return string(r.form.ExpandString(nil, r.text, clause, at)), true
}

// statement reads a clause by the first rule, or, in a message that greets, as an introduction.
func statement(language, clause string, greets bool) (text string, r rule, ok bool) {
	all := statementRules()[language]
	if greets {
		all = slices.Concat(all, introductionRules()[language])
	}
	for _, r := range all {
		if text, ok := r.read(clause); ok {
			return text, r, true
		}
	}
	return "", rule{}, false
}
