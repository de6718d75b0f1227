package lang

import (
	"cmp"
	"strings"
)

// A statement about the user needs clauses that say it of the user, as something that is so. What
// is said of somebody else, only wished, supposed, or over, founds it only if it says that too.
var (
	ofAnother = data.List("of-another") // whom a clause is about; the groups name them
	unreal    = data.Rule("unreal")
	isOver    = data.Rule("over")
)

// Vouched returns what texts of the user say for a statement about the user.
func Vouched(statement string, texts []string) (said []string) {
	statement = strings.ToLower(statement)
	wished, over := unreal.MatchString(statement) || supposed.MatchString(statement), isOver.MatchString(statement)
	for _, text := range texts {
		for _, s := range SentencesOf(OwnWords(text)) {
			if s = formerly.Rewrite(Contracted(s)); isTask.MatchString(s) || !wished && !over && supposed.MatchString(s) {
				continue
			}
			said = append(said, vouchedIn(statement, unquoted(s), wished, over)...)
		}
	}
	return said
}

// vouchedIn is Vouched for a sentence: wished and over say what the statement is.
func vouchedIn(statement, sentence string, wished, over bool) (said []string) {
	another := "" // whom the clauses are about, if not about the user
	for _, clause := range clausesIn(sentence) {
		switch who, is := whoIn(clause); {
		case is:
			another = cmp.Or(who, another, nobodyNamed)
		case TraitsOf(clause).Self:
			another = ""
		}
		if another != "" && !strings.Contains(statement, another) || !wished && unreal.MatchString(clause) || !over && isOver.MatchString(clause) {
			continue
		}
		said = append(said, clause)
	}
	return said
}

const nobodyNamed = "\x00"

// whoIn returns whom a clause about somebody else is about; "" = they are not named.
func whoIn(clause string) (who string, is bool) {
	for _, of := range ofAnother() {
		if !of.MatchString(clause) {
			continue
		}
		for _, name := range groupsIn(of, clause) {
			who = cmp.Or(who, strings.ToLower(name))
		}
		return who, true
	}
	return "", false
}

// clausesIn splits a sentence where a new subject may begin.
func clausesIn(sentence string) []string {
	if HasCJK(sentence) {
		return commas.Split(sentence, -1)
	}
	return strings.Split(brokenEnglish(sentence), "\n")
}
