package agent

import (
	"fmt"
	"regexp"
	"strings"

	"nodest/framework"
	"nodest/websearch/intent"
)

var (
	several = data.List("several")
	between = data.List("between")
	another = data.Rule("another")
	halves  = regexp.MustCompile(`[?？!！。;；,，]+`)
)

// Limits of the parts of a question.
const (
	mostParts = 5
	longest   = 400 // code points of a question that is divided
	smallTalk = 12  // code points: a shorter message that asks for nothing needs no search
)

// searchWords are the words to search for an answer to a question.
func searchWords(question string) string {
	if q := intent.Query(clip(question, mostQuestion)); q != "" {
		return q
	}
	return strings.TrimSpace(clip(question, 20))
}

// NewPlan is the plan of a question by rules, without a model: its language, the first search words, and the
// parts of a question that asks several things, or about several. The budget is the caller's.
func NewPlan(question string) Plan {
	question = strings.TrimSpace(question)
	p := Plan{Question: question, Language: string(framework.LanguageOf(question)), Web: true, Team: 1, Doubtful: Mark}
	asks := strings.ContainsAny(question, "?？") || intent.Better(question, intent.Options{}).Search
	if !asks && len([]rune(question)) < smallTalk {
		return p
	}
	if words := searchWords(question); words != "" {
		p.Queries = append(p.Queries, words)
	}
	if len([]rune(question)) > longest {
		return p
	}
	if p.Questions = clauses(question); len(p.Questions) > 0 {
		return p
	}
	names, before, after := namesIn(question)
	for _, name := range names {
		p.Questions = append(p.Questions, fmt.Sprintf(promptsIn(p.Language)["part-about"], name, question))
		if words := searchWords(before + name + after); len(p.Queries) < maxQueries && !sameWords(words, p.Queries[0]) {
			p.Queries = append(p.Queries, words)
		}
	}
	return p
}

// clauses are the parts of a question that are questions of their own, each with the whole of which it is a part.
func clauses(question string) (parts []string) {
	words := promptsIn(string(framework.LanguageOf(question)))
	for _, clause := range halves.Split(question, -1) {
		clause = strings.TrimSpace(clause)
		if another.MatchString(clause) {
			parts = append(parts, fmt.Sprintf(words["part"], clause, question))
		}
	}
	if len(parts) < 2 || len(parts) > mostParts {
		return nil
	}
	return parts
}

// namesIn are the names that a question has in a row, and what stands before and behind them.
func namesIn(question string) (names []string, before, after string) {
	for _, rule := range several() {
		at := rule.FindAllStringSubmatchIndex(question, 1)
		if len(at) == 0 || len(at[0]) < 4 {
			continue
		}
		row := question[at[0][2]:at[0][3]]
		if at[0][2] == 0 { // the first word has its capital letter from the sentence
			if _, rest, ok := strings.Cut(row, " "); ok {
				row = rest
			}
		}
		for _, separator := range between() {
			if separator.Language == rule.Language {
				names = separator.Split(row, -1)
			}
		}
		if len(names) < 2 || len(names) > mostParts {
			return nil, "", ""
		}
		end := at[0][3]
		return names, question[:end-len(row)], question[end:]
	}
	return nil, "", ""
}
