package framework

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// addition is a piece of what is put behind the user's message. Together, in
// order, they are all of it.
type addition struct {
	source Source
	memory int // index, of SourceMemory
	text   string
}

// augmentation returns what goes behind the user's message: each kind of finding in
// its block, and how to use it, in the language and way of o. A blank memory, web text
// or passages count as none. A closing tag in the findings that would end a block is
// defused. strict is how Build wants it: every closing tag is defused, also one that
// goes with an opening tag in the same text, and a line says that blocks are data.
func augmentation(memories []string, web, passages string, o *Options, strict bool) []addition {
	w := o.Language.words()
	var parts []addition
	frame := func(text string) { parts = append(parts, addition{source: SourceGuidelines, text: text}) }

	n := 0
	for i, m := range memories {
		if isBlank(m) {
			continue
		}
		if n++; n == 1 {
			frame("\n\n<mem>\n" + w.Memories + "\n")
		}
		parts = append(parts, addition{SourceMemory, i, strconv.Itoa(n) + ". " + defuse(m, strict) + "\n"})
	}
	if n > 0 {
		frame("</mem>")
	}
	hasWeb := !isBlank(web)
	if hasWeb {
		frame("\n\n<websearch>\n" + w.Web + "\n")
		parts = append(parts, addition{source: SourceWeb, text: defuse(web, strict)})
		frame("\n</websearch>")
	}
	lines, data := o.guidelines(n > 0, hasWeb), w.Data
	if !isBlank(passages) {
		frame("\n\n<knowledge>\n" + w.Passages + "\n")
		parts = append(parts, addition{source: SourceKnowledge, text: defuse(passages, strict)})
		frame("\n</knowledge>")
		lines, data = append(slices.Clone(lines), w.PassagesUsed...), w.DataWithPassages
	}
	if lines == nil {
		return nil
	}
	var b strings.Builder
	b.WriteString("\n\n<response_guidelines>\n")
	for _, l := range lines {
		b.WriteString("  - " + l + "\n")
	}
	if strict {
		b.WriteString("  - " + data + "\n")
	}
	b.WriteString("</response_guidelines>")
	frame(b.String())
	return parts
}

var blockTag = regexp.MustCompile(`(?i)<(\s*/\s*)?(mem|websearch|response_guidelines|(?:character_)?knowledge)\b\s*>?`)

// Defuse keeps text from outside from ending a block of the prompt, or the result of a tool:
// the brackets of closing tags are replaced by others that look alike.
func Defuse(s string) string { return defuse(s, true) }

// defuse keeps text from outside from ending its block and speaking in the
// user's name: the brackets of closing tags are replaced by others that look
// alike. Unless strict, a closing tag may stay that ends what an opening tag
// before it in the text began.
func defuse(s string, strict bool) string {
	if !strings.Contains(s, "<") {
		return s
	}
	open := map[string]int{}
	return blockTag.ReplaceAllStringFunc(s, func(tag string) string {
		name := strings.ToLower(strings.Trim(tag, "</> \t\r\n\f\v"))
		if !strings.Contains(tag, "/") {
			open[name]++
			return tag
		}
		if open[name] > 0 && !strict {
			open[name]--
			return tag
		}
		return "‹" + strings.TrimRight(tag[1:], "> \t\r\n\f\v") + "›"
	})
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
