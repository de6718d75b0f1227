package offline

import (
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/llm"
)

// Answers for the social circle. A prompt wants one of four things, which its last lines
// tell: a reaction to a post, an answer to a comment on an own post, a post, or lines
// about relationships. The texts are made of the words of what is answered, of the card
// and of what there is to tell, and of set phrases that combine in very many ways. They
// say nothing about others but quote what they answer.

// circle is what the offline model understands of a prompt of the circle.
type circle struct {
	char      string
	user      string
	words     *circleWords
	chance    *rand.Rand
	asked     string // the text outside of blocks: the card, and what is wanted
	author    string // the post's author
	post      string
	postID    string
	thread    []said
	answers   *said    // the comment to answer; nil = the post
	interests []string // from the card
	tells     []said   // things to tell; the names are empty
	people    []said   // in a review: whom it is about
	clock     string   // 15:04; "" = not told
	names     []string // names of others
	used      []string // words taken from the lists, in this answer
}

// said is a line of a thread.
type said struct{ id, name, text string }

// Signs of the wanted answer in the last lines of a prompt.
const (
	shape         = `{"thoughts"`
	wantsReview   = "关系更新"
	wantsPost     = `"post"`
	wantsResponse = `"response"`
	wantsEvidence = `"evidence"`
	wantsEnd      = `"end"`
)

type circleAction struct {
	Like    bool   `json:"like"`
	Comment string `json:"comment"`
}

type circleEmotion struct {
	Type      string  `json:"type"`
	Intensity float64 `json:"intensity"`
}

// circleAnswer is the answer but for reviews. Of Action, Response and Post one is set.
type circleAnswer struct {
	Thoughts string        `json:"thoughts"`
	Action   *circleAction `json:"action,omitempty"`
	Response *string       `json:"response,omitempty"`
	Post     *string       `json:"post,omitempty"`
	Emotion  circleEmotion `json:"emotion"`
	Evidence *[]string     `json:"evidence,omitempty"`
	End      *bool         `json:"end,omitempty"`
}

// circleText is the whole answer to a prompt of the circle.
func circleText(req llm.Request) string {
	c := readCircle(req)
	if strings.Contains(c.asked, wantsReview) {
		return c.review()
	}
	a := circleAnswer{Thoughts: c.say(c.words.thoughts()), Emotion: c.emotion()}
	var evidence []string
	switch {
	case strings.Contains(c.asked, wantsPost):
		var text string
		text, evidence = c.newPost()
		a.Post = &text
	case strings.Contains(c.asked, wantsResponse):
		text := c.reply(c.words.response())
		evidence, a.Response = c.evidence(text), &text
		a.End = c.end()
	default:
		a.Action = c.action()
		evidence, a.End = c.evidence(a.Action.Comment), c.end()
	}
	if strings.Contains(c.asked, wantsEvidence) {
		a.Evidence = &evidence
		if evidence == nil {
			a.Evidence = &[]string{}
		}
	}
	return llm.JSONLine(a)
}

// action reacts to a post or to a comment: it comments in most cases, sometimes it only
// likes, and sometimes it does nothing. It always answers the user.
func (c *circle) action() *circleAction {
	roll, direct := c.chance.Float64(), c.answers != nil || c.char != "" && strings.Contains(c.post, c.char)
	nothing, onlyLikes := 0.12, 0.3
	if direct {
		nothing, onlyLikes = 0.05, 0.1
	}
	switch {
	case c.answers != nil && c.answers.name == c.user:
	case roll < nothing:
		return &circleAction{}
	case roll < onlyLikes:
		return &circleAction{Like: c.author != c.char}
	}
	opening := c.words.comment()
	if c.answers != nil {
		opening = c.words.answer()
	}
	return &circleAction{Like: c.author != c.char && c.chance.Float64() < 0.5, Comment: c.reply(opening)}
}

// reply answers the comment, else the post.
func (c *circle) reply(opening []string) string {
	slots := c.slots(c.post, c.author)
	if c.answers != nil {
		slots = c.slots(c.answers.text, c.answers.name)
	}
	var texts []string
	switch c.chance.IntN(6) {
	case 0, 1:
		texts = c.sentences(slots, opening)
	case 2, 3:
		texts = c.sentences(slots, opening, c.words.question())
	case 4:
		texts = c.sentences(slots, opening, c.words.own())
	default:
		texts = c.sentences(slots, c.words.own(), opening)
	}
	if len(texts) == 0 { // there is nothing to quote
		texts = c.sentences(slots, c.words.own())
	}
	return strings.Join(texts, c.words.space)
}

// newPost tells one of the things that there are to tell, and what it rests on.
func (c *circle) newPost() (text string, evidence []string) {
	var about said
	if len(c.tells) > 0 {
		about = c.tells[c.chance.IntN(len(c.tells))]
	}
	named := slices.ContainsFunc(c.names, func(n string) bool { return strings.Contains(about.text, n) })
	switch {
	case about.id != "":
		evidence = []string{about.id}
	case named: // nothing shows that it is true
		about.text = ""
	}
	w, slots := c.words, c.slots(about.text, "")
	kinds := [][]string{w.post(), w.own()}
	if c.chance.IntN(3) == 0 {
		slices.Reverse(kinds)
	}
	if c.chance.IntN(2) == 0 {
		kinds = append(kinds, w.ask())
	}
	return strings.Join(c.sentences(slots, kinds...), w.space), evidence
}

// evidence is what a text rests on that quotes or addresses somebody.
func (c *circle) evidence(text string) []string {
	switch {
	case text == "":
		return nil
	case c.answers != nil:
		return []string{c.answers.id}
	case c.postID != "":
		return []string{c.postID}
	}
	return nil
}

// end tells whether enough was said in a thread: the more often the character spoke, the
// likelier it is. nil = nobody asks.
func (c *circle) end() *bool {
	if !strings.Contains(c.asked, wantsEnd) {
		return nil
	}
	spoke := 0
	for _, s := range c.thread {
		if s.name == c.char {
			spoke++
		}
	}
	return new(c.answers != nil && c.chance.Float64() < min(0.1+0.12*float64(spoke), 0.7))
}

func (c *circle) emotion() circleEmotion {
	e := circleEmotion{Type: "positive", Intensity: float64(20+c.chance.IntN(70)) / 100}
	switch roll := c.chance.Float64(); {
	case roll < 0.3:
		e.Type = "neutral"
	case roll < 0.36:
		e.Type = "negative"
	}
	return e
}

// review changes each relationship a little, most of them for the better.
func (c *circle) review() string {
	var b strings.Builder
	b.WriteString(wantsReview + ":\n")
	for _, p := range c.people {
		delta := c.chance.IntN(7) - 2
		sign := "+"
		if delta < 0 {
			sign = ""
		}
		b.WriteString(p.id + "-" + sign + strconv.Itoa(delta) + "\n")
	}
	return b.String()
}

// Parts of a prompt of the circle. A block ends with the tag that began it; RE2 has no
// back references, so what is inside must not have the form of another end.
var (
	anyBlock    = regexp.MustCompile(`(?s)(?:\[(\w+)\]\n)?<([a-z_]+)>\n?(.*?)\n?</[a-z_]+>`)
	labelled    = regexp.MustCompile(`^(?:- )?\[([\w-]+)[^\]]*\]\s*([^\n:：]{1,80}?)[:：]\s*(.*)$`)
	labelledAny = regexp.MustCompile(`^(?:- )?(?:\[([\w-]+)\]\s*)?(.+)$`)
	toAnswer    = regexp.MustCompile(`\[([\w-]+)\]`)
	authorLine  = regexp.MustCompile(`^(?:author|作者)[:：]\s*(.+)$`)
	imageLine   = regexp.MustCompile(`^(?:images|图片)[:：]`)
	atHour      = regexp.MustCompile(`\b(?:[01]?\d|2[0-3]):[0-5]\d\b`)
)

// readCircle reads a prompt. Every block may be missing.
func readCircle(req llm.Request) *circle {
	c := &circle{char: req.CharName, user: req.UserName}
	var all, asked strings.Builder
	for _, m := range req.Messages {
		all.WriteString(string(m.Role) + "\x00" + m.Text + "\x00")
		for _, found := range anyBlock.FindAllStringSubmatch(m.Text, -1) {
			c.readBlock(found[1], found[2], found[3])
		}
	}
	if n := len(req.Messages); n > 0 {
		asked.WriteString(anyBlock.ReplaceAllString(req.Messages[n-1].Text, ""))
	}
	c.asked = asked.String()
	own, _, _ := strings.Cut(c.asked, shape) // the shape has English words always
	c.words = circleBook[inEnglish]
	var s scripts
	if s.count(own); s.language() == inChinese {
		c.words = circleBook[inChinese]
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(all.String() + req.CharName))
	c.chance = rand.New(rand.NewPCG(h.Sum64(), uint64(max(0, req.Variant))))
	c.clock = atHour.FindString(c.asked)
	c.findAnswered()
	c.interests = c.words.interestsOf(own, append(c.names, c.char))
	return c
}

func (c *circle) readBlock(label, tag, text string) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	switch tag {
	case "post":
		c.postID = label
		c.readPost(lines)
		return
	case "tell":
		for _, l := range lines {
			if m := labelledAny.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
				c.tells = append(c.tells, said{id: m[1], text: m[2]})
			}
		}
		return
	}
	for _, l := range lines {
		m := labelled.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil {
			continue
		}
		s := said{m[1], strings.TrimSpace(m[2]), m[3]}
		switch tag {
		case "thread":
			c.thread = append(c.thread, s)
		case "relationships":
			c.people = append(c.people, s)
		}
		name, _, _ := strings.Cut(strings.ReplaceAll(s.name, "，", ","), ",") // the feed has: name, age
		c.knows(name)
	}
}

func (c *circle) readPost(lines []string) {
	var text []string
	for _, l := range lines {
		if m := authorLine.FindStringSubmatch(l); m != nil && c.author == "" {
			c.author = strings.TrimSpace(m[1])
			c.knows(c.author)
		} else if !imageLine.MatchString(l) {
			text = append(text, l)
		}
	}
	c.post = strings.Join(text, "\n")
}

// knows notes the name of somebody else.
func (c *circle) knows(name string) {
	if name != "" && name != c.char && !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
}

// findAnswered finds the comment that the prompt names last, else the last one of
// somebody else where an answer in the thread is wanted.
func (c *circle) findAnswered() {
	for _, m := range toAnswer.FindAllStringSubmatch(c.asked, -1) {
		for i, s := range c.thread {
			if s.id == m[1] {
				c.answers = &c.thread[i]
			}
		}
	}
	if c.answers != nil || !strings.Contains(c.asked, wantsResponse) {
		return
	}
	for i, s := range slices.Backward(c.thread) {
		if s.name != c.char {
			c.answers = &c.thread[i]
			return
		}
	}
}

// quoted are the parts of a text that somebody else has said before.
var quotedParts = regexp.MustCompile(`“[^”]*”|"[^"]*"|「[^」]*」|\*`)

// The lengths of what is quoted: words of English, characters of Chinese.
const (
	minQuote, maxQuote         = 2, 12
	minHanQuote, maxHanQuote   = 3, 18
	longestSlot, longestOfName = 80, 40 // code points
	tellingTokens              = 4      // shorter ones are quoted where there is nothing else
)

// quote returns a few words of a text in quotation marks; "" if it has none.
func (c *circle) quote(text string) string {
	clauses := c.clauses(quotedParts.ReplaceAllString(text, "|"))
	if len(clauses) == 0 {
		clauses = c.clauses(quotedParts.ReplaceAllStringFunc(text, func(s string) string { return strings.Trim(s, `“”"「」*`) }))
	}
	if len(clauses) == 0 {
		return ""
	}
	telling := slices.DeleteFunc(slices.Clone(clauses), func(s string) bool { return llm.EstimateTokens(s) < tellingTokens })
	if len(telling) > 0 {
		clauses = telling
	}
	return "“" + clauses[c.chance.IntN(len(clauses))] + "”"
}

// clauses are the parts of a text between punctuation marks that can be quoted. A part that is too long
// is not, and neither is the last one of a text that was cut: half of what somebody says is no quotation.
func (c *circle) clauses(text string) []string {
	if whole, cut := strings.CutSuffix(strings.TrimSpace(text), "…"); cut {
		text = whole[:strings.LastIndexAny(whole, endsOfClauses)+1]
	}
	var list []string
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(endsOfClauses, r) }) {
		part = strings.TrimSpace(part)
		if n := utf8.RuneCountInString(part); strings.IndexFunc(part, isDense) >= 0 {
			if n >= minHanQuote && n <= maxHanQuote {
				list = append(list, part)
			}
			continue
		}
		words := strings.Fields(part)
		if n := len(words); n >= minQuote && n <= maxQuote && !slices.Contains(openWords, strings.ToLower(words[n-1])) {
			if quote := strings.Join(withoutJoint(words), " "); utf8.RuneCountInString(quote) <= longestSlot {
				list = append(list, quote)
			}
		}
	}
	return list
}

const endsOfClauses = "|.,;:!?…–—()。，；：！？、（）\n\r"

// withoutJoint leaves out a word that only joins a clause to the one before.
func withoutJoint(words []string) []string {
	if len(words) > minQuote && slices.Contains([]string{"and", "but", "or", "so"}, strings.ToLower(words[0])) {
		return words[1:]
	}
	return words
}

// openWords do not end a quotation.
var openWords = strings.Fields("a an the of on in and or but to with my your his her their our is was are were it's i you it that for at by from as so not this who which when while because if be have has had")

// spoken makes a sentence begin with a capital letter.
func spoken(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
