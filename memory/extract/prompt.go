package extract

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/internal/lexicon"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// prompts are the texts of prompts, in Chinese or English.
func prompts(chinese bool) map[string]string {
	if chinese {
		return promptsChinese()
	}
	return promptsEnglish()
}

var (
	promptsChinese = lexicon.Prompts(promptFiles, "prompts/zh.txt")
	promptsEnglish = lexicon.Prompts(promptFiles, "prompts/en.txt")
)

var yes = data.Rule("yes") // an answer that agrees

// longestShown is the maximum length of a message in a prompt, in code points.
const longestShown = 3000

type shownMessage struct {
	Seq  int64  `json:"seq,omitempty"`
	Who  string `json:"who"`
	Name string `json:"name,omitempty"`
	At   string `json:"at,omitempty"`
	Text string `json:"text"`
}

func candidatesPrompt(w window) string {
	texts := prompts(w.dense())
	var b strings.Builder
	fmt.Fprintf(&b, texts["candidates"], maxCandidates)
	if context := w.Earlier[max(0, len(w.Earlier)-contextTurns):]; len(context) > 0 {
		b.WriteString("\n\n" + texts["earlier"] + "\n")
		for _, t := range context {
			writeMessages(&b, t, w.Names, false)
		}
	}
	b.WriteString("\n" + texts["messages"] + "\n")
	for _, t := range w.Turns {
		writeMessages(&b, t, w.Names, true)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func writeMessages(b *strings.Builder, t memory.Turn, names lang.Names, source bool) {
	for _, m := range t.Messages {
		line := shownMessage{Who: "user", Name: names.Speaker(m.Line()), Text: lang.Truncate(m.Text, longestShown)}
		if m.Role == lang.RoleCharacter {
			line.Who = "character"
		}
		if source {
			line.Seq = m.Seq
		}
		if !m.At.IsZero() {
			line.At = m.At.Format("2006-01-02 15:04 Mon")
		}
		b.WriteString(llm.JSONLine(line) + "\n")
	}
}

func decisionsPrompt(candidates []candidate, known []memory.Memory) string {
	texts := prompts(lang.MostlyCJK(textsOf(candidates)))
	var b strings.Builder
	b.WriteString(texts["decisions"] + "\n" + texts["known"] + "\n")
	zone := candidates[0].At.Location()
	for i, m := range known {
		b.WriteString(llm.JSONLine(knownLine{i, m.Text, dateOf(m.EventTime, zone)}) + "\n")
	}
	b.WriteString("\n" + texts["new"] + "\n")
	for i, c := range candidates {
		b.WriteString(llm.JSONLine(newLine{i, c.Text, dateOf(c.EventTime, zone)}) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

type knownLine struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
	Date string `json:"date,omitempty"`
}

type newLine struct {
	New  int    `json:"new"`
	Text string `json:"text"`
	Date string `json:"date,omitempty"`
}

func textsOf(candidates []candidate) string {
	var b strings.Builder
	for _, c := range candidates {
		b.WriteString(c.Text + "\n")
	}
	return b.String()
}

func dateOf(t *time.Time, zone *time.Location) string {
	if t == nil {
		return ""
	}
	return lang.LocalTime(*t, zone).Format(time.DateOnly)
}

// retryPrompt follows a prompt whose answer was unusable, in its language.
func retryPrompt(prompt string, err error) string {
	first, _ := utf8.DecodeRuneInString(prompt)
	return "\n\n" + fmt.Sprintf(prompts(lang.IsCJK(first))["again"], err)
}
