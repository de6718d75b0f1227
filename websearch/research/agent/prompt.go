package agent

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"nodest/internal/lexicon"
)

//go:embed prompts
var promptFiles embed.FS

var (
	promptsChinese = lexicon.Prompts(promptFiles, "prompts/zh.txt")
	promptsEnglish = lexicon.Prompts(promptFiles, "prompts/en.txt")
)

// promptsIn are the words of prompts and answers for a language. There are English and Chinese ones.
func promptsIn(language string) map[string]string {
	if strings.HasPrefix(language, "zh") {
		return promptsChinese()
	}
	return promptsEnglish()
}

// say fills the words of a name in.
func (r *run) say(name string, args ...any) string { return fmt.Sprintf(r.words[name], args...) }

const mostTitle = 30 // tokens

// inBlock is a piece of knowledge for a prompt. Text of others stands between marks that no page can know.
func (m *member) inBlock(k Knowledge) string {
	if k.Kind == KindAnswer || k.Kind == KindCoding {
		return k.Answer
	}
	name := m.words["untrusted"]
	if n := m.web.number(k); n > 0 {
		name = m.words["source"] + " " + strconv.Itoa(n)
		if title := m.web.sources[n-1].Title; title != "" {
			return m.block(name, clip(title, mostTitle)+"\n\n"+k.Answer)
		}
	}
	return m.block(name, k.Answer)
}

// block puts text of others between marks.
func (r *run) block(name, text string) string {
	text = strings.ReplaceAll(text, r.begun.Nonce, "")
	return "⟦" + r.begun.Nonce + " " + name + "⟧\n" + text + "\n⟦/" + r.begun.Nonce + "⟧"
}

// head is what all prompts begin with.
func (r *run) head() string {
	return r.say("head", r.begun.Now.Format("2006-01-02"), r.begun.Nonce, r.begun.Nonce)
}

// list writes lines with a hyphen, the last ones if there are more than most.
func list(lines []string, most int) string {
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return "- " + strings.Join(lines, "\n- ")
}
