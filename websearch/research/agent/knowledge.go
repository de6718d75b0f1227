package agent

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"nodest/llm"
)

// The kinds of Knowledge.
const (
	KindPage     = "url"          // a page that was read, or several search results about one thing
	KindSideInfo = "side-info"    // the descriptions of search results
	KindAnswer   = "qa"           // an answered part of the question, or why an answer was rejected
	KindCoding   = "coding"       // the output of a program
	KindHistory  = "chat-history" // an earlier part of the conversation
)

// Knowledge is something that a research has learned: a question and its answer.
type Knowledge struct {
	Question   string   `json:"question"`
	Answer     string   `json:"answer"`
	References []string `json:"references,omitempty"` // addresses; the first one is what was read
	Kind       string   `json:"type"`
	Updated    string   `json:"updated,omitempty"` // when the answer was true, as Updated and Between write it
	SourceCode string   `json:"sourceCode,omitempty"`

	source int // number of the document that it is from; 0 = none, -1 = a group of search results
}

// Updated is the time of a piece of knowledge, in the zone of t. A zero time is "".
func Updated(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateTime)
}

// Between is the time of knowledge from a search that was limited to some days.
func Between(from, to time.Time) string {
	return "Between " + from.Format(time.DateOnly) + " and " + to.Format(time.DateOnly)
}

// Messages returns each piece of knowledge as a question of the user and an answer.
func Messages(known []Knowledge) []llm.Message {
	var out []llm.Message
	for _, k := range known {
		var answer strings.Builder
		if k.Kind == KindPage || k.Kind == KindSideInfo {
			block(&answer, "answer-datetime", k.Updated)
		}
		if k.Kind == KindPage {
			block(&answer, "url", k.address())
		}
		answer.WriteString(k.Answer)
		out = append(out,
			llm.Message{Role: llm.User, Text: strings.TrimSpace(k.Question)},
			llm.Message{Role: llm.Assistant, Text: oneBlankLine(strings.TrimSpace(answer.String()))})
	}
	return out
}

// Compose returns the messages of one step: what is known, the conversation, and the question
// with what reviewers of earlier answers asked for.
func Compose(history []llm.Message, known []Knowledge, question string, reviews []string) []llm.Message {
	var ask strings.Builder
	ask.WriteString(question)
	if len(reviews) > 0 {
		ask.WriteString(`

<answer-requirements>
- Go beyond the obvious: explain causes, patterns and connections that the sources support.
- Consider other points of view, and say where sources disagree.
- Do what the reviewers ask for.

`)
		for i, review := range reviews {
			block(&ask, "reviewer-"+strconv.Itoa(i+1), review)
		}
		ask.WriteString("</answer-requirements>")
	}
	out := append(Messages(known), history...)
	return append(out, llm.Message{Role: llm.User, Text: oneBlankLine(strings.TrimSpace(ask.String()))})
}

// Texts returns each piece of knowledge as a numbered block, for a model that edits or checks an
// answer.
func Texts(known []Knowledge) []string {
	var out []string
	for i, k := range known {
		var b strings.Builder
		tag := "knowledge-" + strconv.Itoa(i+1)
		b.WriteString("<" + tag + ">\n" + k.Question + "\n\n")
		if k.Kind == KindPage || k.Kind == KindSideInfo {
			block(&b, "knowledge-datetime", k.Updated)
		}
		if k.Kind == KindPage {
			block(&b, "knowledge-url", k.address())
		}
		b.WriteString(k.Answer + "\n</" + tag + ">")
		out = append(out, oneBlankLine(b.String()))
	}
	return out
}

func (k Knowledge) address() string {
	if len(k.References) == 0 {
		return ""
	}
	return k.References[0]
}

// block writes a text in tags, unless it is empty.
func block(b *strings.Builder, tag, text string) {
	if text != "" {
		b.WriteString("<" + tag + ">\n" + text + "\n</" + tag + ">\n\n")
	}
}

var lineBreaks = regexp.MustCompile(`\n{2,}`)

// oneBlankLine leaves at most one blank line between paragraphs.
func oneBlankLine(s string) string { return lineBreaks.ReplaceAllString(s, "\n\n") }
