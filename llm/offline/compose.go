package offline

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/llm"
)

// composer writes a text for a scene. Every choice is fixed by the scene and the
// variant: no clock, no chance.
type composer struct {
	scene
	phrases
	seed    int // from the scene
	variant int
}

// compose returns the whole text that the model is going to stream.
func compose(s scene, req llm.Request) string {
	c := &composer{scene: s, phrases: book[s.lang], variant: max(0, req.Variant)}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.char + "\x00" + s.said + "\x00" + strconv.Itoa(s.turn)))
	c.seed = int(h.Sum32() >> 1)
	switch req.Task {
	case llm.Continue:
		return c.continued()
	case llm.Impersonate:
		return c.impersonated()
	case llm.Rewrite:
		return c.rewritten(req.Messages)
	}
	return c.reply()
}

// reply is the usual answer: gesture, the user's word, a line of the card's own,
// what is remembered and found, and a question back.
//
// A question to documents without a character gets what they say, and no more.
func (c *composer) reply() string {
	if c.scene.char == "" && c.searched {
		return cmp.Or(c.quoted(), c.missing()[0])
	}
	open, end := c.two(c.open(), c.close())
	parts := []string{open + "\n\n"}
	if w := c.keyword(); w != "" {
		parts = append(parts, strings.ReplaceAll(c.say(c.pick(c.echo())), "%w", w))
	} else {
		parts = append(parts, c.say(c.pick(c.greet())))
	}
	if line := c.line(); line != "" {
		parts = append(parts, line)
	}
	if known := c.known(); known != "" {
		parts = append(parts, strings.ReplaceAll(c.say(c.pick(c.memory())), "%t", known))
	}
	if c.memories != nil {
		parts = append(parts, c.quote("mem", c.memory(), c.memories))
	}
	switch {
	case c.web != nil:
		parts = append(parts, c.cite())
	case c.findings != nil:
		parts = append(parts, c.quote("websearch", c.finding(), c.findings))
	}
	return c.join(append(parts, c.documented(), end))
}

// continued goes on behind the last text of the character, without repeating it.
func (c *composer) continued() string {
	open, end := c.two(c.goOn(), c.close())
	text := c.join([]string{open, c.line(), end})
	last, _ := utf8.DecodeLastRuneInString(c.before)
	if c.before != "" && c.space != "" && !unicode.IsSpace(last) {
		return c.space + text
	}
	return text
}

// impersonated is what the user might say next.
func (c *composer) impersonated() string {
	texts := c.asUser()
	text := c.say(texts[c.index(len(texts), c.variant)])
	if round := c.variant / len(texts); round > 0 && len(c.asked) > 0 {
		text = c.join([]string{text, clip(c.asked[round%len(c.asked)], 120)})
	}
	return text
}

// rewritten tells the character's last text anew. Of the instruction it
// understands shorter and longer.
func (c *composer) rewritten(messages []llm.Message) string {
	text := strings.TrimSpace(c.before)
	if text == "" {
		return c.reply()
	}
	instruction := strings.ToLower(messages[len(messages)-1].Text)
	asks := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(instruction, w) })
	}
	opening, end := c.two(c.reworded(), c.close())
	switch {
	case asks(c.shorter()):
		for sentence := range sentences(text) {
			if s := strings.TrimSpace(sentence); s != "" {
				return c.join([]string{opening, s})
			}
		}
	case asks(c.longer()):
		return c.join([]string{opening, text, c.line(), end})
	}
	return c.join([]string{opening, text})
}

// line is something the character says or does by the card: the example that
// answers what the user said best, else the next one, else a trait as narration.
func (c *composer) line() string {
	best, score := -1, 0
	for i, asked := range c.asked {
		if n := overlap(asked, c.said); n > score {
			best, score = i, n
		}
	}
	if best >= 0 {
		return c.lineAt(best + c.variant)
	}
	return c.lineAt(c.seed + c.variant)
}

// longestLine is how much of an example is quoted, in code points.
const longestLine = 240

func (c *composer) lineAt(i int) string {
	switch {
	case len(c.lines) > 0:
		line := closed(clip(c.lines[i%len(c.lines)], longestLine))
		if strings.Contains(line, "\n") {
			return "\n\n" + line + "\n\n"
		}
		return line
	case len(c.traits) > 0:
		return "\n\n*" + c.traits[i%len(c.traits)] + "*\n\n"
	}
	texts := c.plain()
	return texts[i%len(texts)]
}

// closed ends speech and narration that were cut off.
func closed(line string) string {
	for _, mark := range []string{`"`, "*"} {
		if strings.Count(line, mark)%2 == 1 {
			line += mark
		}
	}
	return line
}

// overlap counts what two texts share: words, or pairs of characters in scripts without blanks.
func overlap(a, b string) int {
	n := 0
	in := map[string]bool{}
	for t := range terms(b) {
		in[t] = true
	}
	for t := range terms(a) {
		if in[t] {
			n++
			delete(in, t)
		}
	}
	return n
}

// quote brings up one of the texts, in a block if the prompt asked for that.
func (c *composer) quote(tag string, intros, texts []string) string {
	text := strings.ReplaceAll(c.say(c.pick(intros)), "%t", texts[c.variant%len(texts)])
	if strings.Contains(c.guided, "</"+tag+">") { // the prompt asks for it
		return "\n\n<" + tag + ">" + text + "</" + tag + ">\n\n"
	}
	return text
}

// cite quotes a sentence that was found, with the number of its source. The words before
// it are no part of what is cited: they are in the block, if the prompt asked for one.
func (c *composer) cite() string {
	f := c.web[c.variant%min(len(c.web), 3)]
	intro, quoted := c.say(c.pick(c.finding())), "\n\n"+f.text+" ["+f.number+"]\n\n"
	if strings.Contains(c.guided, "</websearch>") {
		return "\n\n<websearch>" + strings.ReplaceAll(intro, "%t", f.title) + "</websearch>" + quoted
	}
	return strings.TrimSpace(strings.ReplaceAll(intro, "%t", "")) + quoted
}

// join puts parts together with the blank of the language where none is.
func (c *composer) join(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") && !strings.HasPrefix(p, "\n") {
			b.WriteString(c.space)
		}
		if strings.HasSuffix(b.String(), "\n") {
			p = strings.TrimLeft(p, "\n")
		}
		b.WriteString(p)
	}
	return strings.TrimSpace(b.String())
}

// say fills in the names.
func (c *composer) say(phrase string) string {
	char, user, nobody := c.scene.char, c.scene.user, c.nobody()
	return strings.ReplaceAll(strings.ReplaceAll(phrase, "%c", cmp.Or(char, nobody[0])), "%u", cmp.Or(user, nobody[1]))
}

// two chooses from two lists so that the pairs of len(a)·len(b) variants differ.
func (c *composer) two(a, b []string) (string, string) {
	round, place := c.variant/len(a), c.variant%len(a)
	return c.say(a[c.index(len(a), place)]), c.say(b[c.index(len(b), place+round)])
}

// pick is free to choose alike for different variants.
func (c *composer) pick(list []string) string { return list[c.index(len(list), c.variant*3)] }

func (c *composer) index(n, offset int) int { return (c.seed%n + offset) % n }

// keyword returns the longest word of the user's message that is worth taking up,
// as it was typed, of several the last; "" if there is none.
func (c *composer) keyword() string {
	best, length := "", 0
	for _, w := range strings.FieldsFunc(c.said, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '\'' }) {
		for _, part := range c.runs(w) {
			n := utf8.RuneCountInString(part)
			if n >= max(length, 2) && !slices.Contains(c.stopWords(), strings.ToLower(part)) {
				best, length = part, n
			}
		}
	}
	return best
}

// keyword parts longer than this (code points) are cut in dense scripts.
const longestRun = 6

// runs splits a word of a dense script at its function words (stop characters,
// Hiragana beside Kanji); words of other scripts stay whole.
func (c *composer) runs(word string) []string {
	if strings.IndexFunc(word, isDense) < 0 {
		return []string{strings.Trim(word, "-'")}
	}
	parts := strings.FieldsFunc(word, func(r rune) bool {
		return unicode.Is(unicode.Hiragana, r) || isDense(r) && strings.ContainsRune(functionCharacters(), r)
	})
	if len(parts) == 0 {
		parts = []string{word}
	}
	for i, p := range parts {
		if runes := []rune(p); len(runes) > longestRun {
			parts[i] = string(runes[:longestRun])
		}
	}
	return parts
}
