package offline

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/llm"
)

// scene is what the offline model understands of a prompt.
type scene struct {
	lang       language
	char, user string
	said       string   // the last text of the user
	before     string   // the last text of the character
	lines      []string // texts of the character, from the example dialogue
	asked      []string // the user's text before each of lines; may be ""
	traits     []string // sentences of the card that name the character
	profile    []string // facts that are always known of the user
	memories   []string
	web        []finding // findings of a search, best first
	findings   []string  // findings of a search in another format
	guided     string    // how the prompt asks for what was found to be used
	turn       int       // messages so far

	searched, read bool       // documents, in this turn
	topFile        document   // that was found first
	docs           []evidence // their sentences about the question
}

func readScene(req llm.Request) scene {
	s := scene{char: req.CharName, user: req.UserName, turn: len(req.Messages)}
	last := lastIndex(req.Messages, llm.User)
	s.said = req.UserText
	if s.said == "" && last >= 0 {
		s.said = req.Messages[last].Text
	}
	s.said = strings.TrimSpace(stripBlocks(s.said))
	s.readProfile(req.Messages)
	s.readDocuments(req.Messages)
	s.readBlocks(req.Messages)
	if i := lastIndex(req.Messages, llm.Assistant); i >= 0 {
		s.before = req.Messages[i].Text
	}
	s.readExamples(req.Messages)
	s.readTraits(req.Messages)
	s.lang = s.guessLanguage(req.Messages)
	return s
}

func lastIndex(messages []llm.Message, role llm.Role) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == role && len(m.Calls) == 0 && m.Name != exampleChar && m.Name != exampleUser {
			return i
		}
	}
	return -1
}

// Blocks that the prompt builder appends to the user's message.
var (
	memBlock   = regexp.MustCompile(`(?s)<mem>(.*)</mem>`)
	webBlock   = regexp.MustCompile(`(?s)<websearch>(.*)</websearch>`)
	guideBlock = regexp.MustCompile(`(?s)<response_guidelines>.*</response_guidelines>`)
	numbered   = regexp.MustCompile(`^\s*(?:\[?\^?\d+\]?[.)、:]?)\s+(.+)$`)
	markup     = regexp.MustCompile(`\*\*|__|` + "`" + `|\[([^\]]*)\]\([^)]*\)`)
)

func stripBlocks(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	text = guideBlock.ReplaceAllString(withoutDocuments(text), "")
	text = memBlock.ReplaceAllString(text, "")
	return webBlock.ReplaceAllString(text, "")
}

// profileBlock is what the prompt builder puts before the chat about the user, and
// aboutUser a question about oneself.
var (
	profileBlock = regexp.MustCompile(`(?m)^(?:About the user \(notes|关于用户（仅供参考)[^\n]*\n((?:- [^\n]+(?:\n|\z))+)`)
	aboutUser    = regexp.MustCompile(`(?i)\b(?:i|me|my|mine)\b|我|私|僕|俺|나|내|제`)
	isQuestion   = regexp.MustCompile(`[?？]|(?i)^(?:who|what|where|when|how|which|do|does|did|tell)\b|谁|什么|哪|几|多少|吗`)
)

// readProfile takes the lines of the profile.
func (s *scene) readProfile(messages []llm.Message) {
	for _, m := range messages {
		if found := profileBlock.FindStringSubmatch(m.Text); found != nil && m.Role != llm.Assistant {
			for line := range strings.Lines(found[1]) {
				s.profile = append(s.profile, clip(strings.TrimSpace(strings.TrimPrefix(line, "- ")), 160))
			}
			return
		}
	}
}

// known is the line of the profile that answers a question of the user about
// themselves: the one that shares most with it, else the first, which is the name.
func (s *scene) known() string {
	if len(s.profile) == 0 || !aboutUser.MatchString(s.said) || !isQuestion.MatchString(s.said) {
		return ""
	}
	best, score := s.profile[0], 0
	for _, line := range s.profile {
		if n := overlap(line, s.said); n > score {
			best, score = line, n
		}
	}
	return best
}

// readBlocks takes memories and findings from the newest message that has them.
func (s *scene) readBlocks(messages []llm.Message) {
	for _, m := range slices.Backward(messages) {
		if m.Role == llm.Assistant || !strings.Contains(m.Text, "</") {
			continue
		}
		guided := guideBlock.FindString(m.Text)
		text := guideBlock.ReplaceAllString(m.Text, "")
		if found := webBlock.FindStringSubmatch(text); found != nil && s.web == nil && s.findings == nil {
			if s.web = findingsOf(found[1], s.said); s.web == nil {
				s.findings = entries(found[1])
			}
			s.guided += guided
			text = webBlock.ReplaceAllString(text, "")
		}
		if found := memBlock.FindStringSubmatch(text); found != nil && s.memories == nil {
			s.memories, s.guided = entries(found[1]), s.guided+guided
		}
	}
}

// entries returns the numbered lines of a block, without markup.
func entries(block string) []string {
	var list []string
	for line := range strings.Lines(block) {
		if m := numbered.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			if text := strings.TrimSpace(markup.ReplaceAllString(m[1], "$1")); text != "" {
				list = append(list, clip(text, 300)) // an event of the circle has two quotes
			}
		}
	}
	return list
}

// The names that the SillyTavern dialect gives to messages of the example dialogue.
const (
	exampleUser = "example_user"
	exampleChar = "example_assistant"
)

var startMark = regexp.MustCompile(`(?i)<START>`)

// userLabels stand for the user in example dialogues.
var userLabels = []string{"{{user}}", "<USER>", "用户", "User", "You", "ユーザー", "사용자", "Пользователь"}

// readExamples finds the character's own lines: messages named as examples, blocks
// behind <START>, and lines that begin with the character's name and a colon.
func (s *scene) readExamples(messages []llm.Message) {
	asked := ""
	for _, m := range messages {
		switch {
		case m.Name == exampleUser:
			asked = m.Text
		case m.Name == exampleChar:
			s.addLine(asked, m.Text)
			asked = ""
		case m.Role != llm.Assistant && m.Text != s.said:
			s.readDialogue(withoutDocuments(m.Text))
		}
	}
}

func (s *scene) readDialogue(text string) {
	started := startMark.MatchString(text)
	if !started && !s.mayQuote(text) {
		return
	}
	marks := s.speakers().FindAllStringSubmatchIndex(text, -1)
	asked := ""
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		line := text[m[1]:end]
		if cut := startMark.FindStringIndex(line); cut != nil {
			line = line[:cut[0]]
		}
		if !started { // no block: the line ends with its paragraph
			line, _, _ = strings.Cut(line, "\n\n")
		}
		if s.isUser(text[m[2]:m[3]]) {
			asked = line
			continue
		}
		s.addLine(asked, line)
		asked = ""
	}
}

// mayQuote is the cheap test before the expensive one.
func (s *scene) mayQuote(text string) bool {
	if strings.Contains(text, "{{char}}:") {
		return true
	}
	return s.char != "" && (strings.Contains(text, s.char+":") || strings.Contains(text, s.char+"："))
}

// longestName is the length in bytes above which a name is no label of a dialogue.
const longestName = 200

// speakers matches the beginning of a line of either side.
func (s *scene) speakers() *regexp.Regexp {
	names := []string{regexp.QuoteMeta("{{char}}"), "<BOT>"}
	for _, n := range append([]string{s.char, s.user}, userLabels...) {
		if n != "" && utf8.ValidString(n) && len(n) <= longestName {
			names = append(names, regexp.QuoteMeta(n))
		}
	}
	return regexp.MustCompile(`(?:^|[\n"“])[ \t]*(` + strings.Join(names, "|") + `)[ \t]*[:：][ \t]*`)
}

func (s *scene) isUser(name string) bool {
	return name == s.user && name != "" || slices.Contains(userLabels, name)
}

func (s *scene) addLine(asked, line string) {
	line = strings.Trim(s.fill(line), " \t\r\n,，")
	if strings.Count(line, `"`)%2 == 1 { // the line is from a list of texts in quotation marks
		line = strings.Trim(strings.TrimSuffix(line, `"`), " ,，")
	}
	if line != "" {
		s.lines = append(s.lines, line)
		s.asked = append(s.asked, strings.TrimSpace(s.fill(asked)))
	}
}

// fill replaces the two macros that a prompt may still hold.
func (s *scene) fill(text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	if s.char != "" {
		text = strings.ReplaceAll(text, "{{char}}", s.char)
	}
	if s.user != "" {
		text = strings.ReplaceAll(text, "{{user}}", s.user)
	}
	return text
}

// traits longer or shorter than this (code points) do not read well as narration.
const minTrait, maxTrait = 12, 160

// readTraits finds a few sentences of the card that speak of the character.
func (s *scene) readTraits(messages []llm.Message) {
	if s.char == "" {
		return
	}
	for _, m := range messages {
		if m.Role == llm.Assistant || m.Text == s.said || startMark.MatchString(m.Text) || m.Name != "" || profileBlock.MatchString(m.Text) {
			continue
		}
		for sentence := range sentences(s.fill(stripBlocks(m.Text))) {
			sentence = strings.TrimSpace(sentence)
			n := utf8.RuneCountInString(sentence)
			if n >= minTrait && n <= maxTrait && strings.HasPrefix(sentence, s.char) && !strings.ContainsAny(sentence, ":：*\n<>{}") {
				s.traits = append(s.traits, sentence)
			}
			if len(s.traits) == 8 {
				return
			}
		}
	}
}

// sentences splits text behind full stops and line ends; joined they are text.
func sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for i, r := range text {
			end := i + utf8.RuneLen(r)
			next, _ := utf8.DecodeRuneInString(text[min(end, len(text)):])
			stop := strings.ContainsRune("。！？\n", r) || strings.ContainsRune(".!?…", r) && (end == len(text) || unicode.IsSpace(next))
			if r == utf8.RuneError || !stop || strings.ContainsRune("。！？”」’\"*", next) {
				continue
			}
			if !yield(text[from:end]) {
				return
			}
			from = end
		}
		if from < len(text) {
			yield(text[from:])
		}
	}
}

// clip shortens text to n code points, at a sentence's end where there is one.
func clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	kept := 0
	for sentence := range sentences(text) {
		if utf8.RuneCountInString(text[:kept+len(sentence)]) > n {
			break
		}
		kept += len(sentence)
	}
	if kept > 0 {
		return strings.TrimSpace(text[:kept])
	}
	return strings.TrimSpace(string([]rune(text)[:n])) + "…"
}

// languageShows is how much of a text tells its language, in code points: further on
// there may be code or tags in English.
const languageShows = 80

// guessLanguage looks at the scripts of what the character says: how the example lines and the
// newest message begin, else at the whole prompt but for the user's words.
func (s *scene) guessLanguage(messages []llm.Message) language {
	var c scripts
	for _, line := range append(s.lines[:len(s.lines):len(s.lines)], s.before) {
		c.count(clip(line, languageShows))
	}
	if c.total() < 8 {
		for _, m := range messages {
			if text := stripBlocks(m.Text); m.Role != llm.Assistant && strings.TrimSpace(text) != s.said {
				c.count(s.fill(text))
			}
		}
	}
	if c.total() == 0 {
		c.count(s.said)
	}
	return c.language()
}

type scripts struct{ latin, han, kana, hangul, cyrillic int }

func (c *scripts) count(text string) {
	for _, r := range text {
		switch {
		case r < 0x80:
			if unicode.IsLetter(r) {
				c.latin++
			}
		case unicode.Is(unicode.Han, r):
			c.han++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			c.kana++
		case unicode.Is(unicode.Hangul, r):
			c.hangul++
		case unicode.Is(unicode.Cyrillic, r):
			c.cyrillic++
		case unicode.Is(unicode.Latin, r):
			c.latin++
		}
	}
}

func (c *scripts) total() int { return c.latin + c.han + c.kana + c.hangul + c.cyrillic }

// language weighs a character of a dense script like three letters.
func (c *scripts) language() language {
	dense := c.han + c.kana
	switch {
	case c.hangul*3 > c.latin && c.hangul > dense:
		return inKorean
	case dense*3 > c.latin && c.kana*8 > c.han:
		return inJapanese
	case dense*3 > c.latin:
		return inChinese
	case c.cyrillic > c.latin:
		return inRussian
	}
	return inEnglish
}
