package summary

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"nodest/framework"
	"nodest/internal/lexicon"
)

type block struct {
	day  string // the day of the message; empty = not known
	text string
}

// after is the block as it follows one of another day, or none.
func (b block) after(day string) string {
	if b.day == "" || b.day == day {
		return b.text
	}
	return "=== " + b.day + " ===\n" + b.text
}

func blocksOf(lines []ChatLine, loc *time.Location) []block {
	blocks := make([]block, len(lines))
	for i := range lines {
		blocks[i].text = lines[i].speaker() + ": " + withoutMarkers(lines[i].Text)
		if at := lines[i].At; !at.IsZero() {
			blocks[i].day = at.In(loc).Format(time.DateOnly)
		}
	}
	return blocks
}

// chunked joins blocks, each with its date, to texts of at most limit code points, or splits them.
func chunked(blocks []block, limit int) []string {
	var chunks []string
	var b strings.Builder
	size, day := 0, ""
	flush := func() {
		if size > 0 {
			chunks = append(chunks, b.String())
			b.Reset()
			size, day = 0, ""
		}
	}
	for _, next := range blocks {
		text := next.after(day)
		if size > 0 && size+2+runes(text) > limit {
			flush()
			text = next.after("")
		}
		for runes(text) > limit {
			head := cutAtSentence(text, limit)
			chunks = append(chunks, head)
			text = strings.TrimSpace(strings.TrimSpace(text)[len(head):])
		}
		if text == "" {
			continue
		}
		if size > 0 {
			b.WriteString("\n\n")
			size += 2
		}
		b.WriteString(text)
		size += runes(text)
		day = next.day
	}
	flush()
	return chunks
}

// summaryPrompt asks for a summary of transcript that continues earlier ones, if any.
func summaryPrompt(lang framework.Language, earlier, transcript string, length int) string {
	w := texts(lang)
	var b strings.Builder
	fmt.Fprintf(&b, w["task"], length)
	if earlier != "" {
		b.WriteString(w["earlier"] + "<earlier>\n" + defused(earlier) + "\n</earlier>\n\n")
	}
	b.WriteString("<transcript>\n" + defused(transcript) + "\n</transcript>\n\n")
	fmt.Fprintf(&b, w["now"], length)
	return b.String()
}

func partPrompt(lang framework.Language, transcript string, length int) string {
	return texts(lang)["part"] + summaryPrompt(lang, "", transcript, length)
}

func shortenPrompt(lang framework.Language, text string, length int) string {
	w := texts(lang)
	return fmt.Sprintf(w["shorten"], length) + "<summary>\n" + defused(text) + "\n</summary>\n\n" + fmt.Sprintf(w["now"], length)
}

// texts are the texts of prompts, and what can be wrong with an answer by its Verdict.
func texts(language framework.Language) map[string]string {
	if language == framework.Chinese {
		return textsChinese()
	}
	return textsEnglish()
}

var (
	textsChinese = lexicon.Prompts(promptFiles, "prompts/zh.txt")
	textsEnglish = lexicon.Prompts(promptFiles, "prompts/en.txt")
)

var promptTag = regexp.MustCompile(`(?i)<(\s*/?\s*(?:earlier|transcript|summary)\s*)>`)

// defused keeps a text from closing the tags around it.
func defused(text string) string { return promptTag.ReplaceAllString(text, "‹$1›") }
