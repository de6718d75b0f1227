package offline

import (
	"embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"nodest/internal/lexicon"
)

//go:embed data
var files embed.FS

// data has what the model says in each language, in a file each.
var data = lexicon.New(files)

// language is one of those that the offline model has phrases for, by the name of its file.
type language string

const (
	inEnglish  language = "en"
	inChinese  language = "zh"
	inJapanese language = "ja"
	inKorean   language = "ko"
	inRussian  language = "ru"
)

// list has the phrases or words of a name.
func (l language) list(name string) func() []string { return data.Words(name, string(l)) }

// space stands between sentences.
func (l language) space() string {
	if l == inChinese || l == inJapanese {
		return ""
	}
	return " "
}

// phrases are those of one language for replies. The files say what they are for.
type phrases struct {
	space string

	nobody                                      func() []string // names the character and the user, when they have no names
	open, echo, greet, memory, finding, missing func() []string
	plain, close, goOn, asUser, reworded        func() []string
	shorter, longer, stopWords                  func() []string
}

func phrasesOf(l language) phrases {
	return phrases{
		l.space(), l.list("nobody"),
		l.list("open"), l.list("echo"), l.list("greet"), l.list("memory"), l.list("finding"), l.list("missing"),
		l.list("plain"), l.list("close"), l.list("go-on"), l.list("as-user"), l.list("reworded"),
		l.list("shorter"), l.list("longer"), l.list("stop-words"),
	}
}

var book = map[language]phrases{
	inEnglish: phrasesOf(inEnglish), inChinese: phrasesOf(inChinese), inJapanese: phrasesOf(inJapanese),
	inKorean: phrasesOf(inKorean), inRussian: phrasesOf(inRussian),
}

// functionCharacters are those of Chinese that are never taken up.
var functionCharacters = sync.OnceValue(func() string { return strings.Join(book[inChinese].stopWords(), "") })

// circleWords are the phrases of one language for the social circle, in the form that spin.go
// describes.
type circleWords struct {
	space string

	comment, answer, response, post, ask, own, question, thoughts func() []string

	pools          map[string]func() []string
	likes, between *lexicon.Rule   // a card's words about interests; the words that separate them
	personal       func() []string // a text about somebody in particular is no interest
}

func circleWordsOf(l language) *circleWords {
	w := &circleWords{
		l.space(),
		l.list("comment"), l.list("answer"), l.list("response"), l.list("post"), l.list("ask"), l.list("own"), l.list("question"), l.list("thoughts"),
		map[string]func() []string{}, data.Rule("likes", string(l)), data.Rule("between-likes", string(l)), l.list("personal"),
	}
	for _, name := range []string{"thing", "place", "when", "doing", "sense"} {
		w.pools[name] = l.list(name)
	}
	return w
}

var circleBook = map[language]*circleWords{inEnglish: circleWordsOf(inEnglish), inChinese: circleWordsOf(inChinese)}

// The length of an interest, in code points.
const minInterest, maxInterest = 2, 32

// interestsOf returns what a card says its character likes, without what names others.
func (w *circleWords) interestsOf(card string, names []string) []string {
	var list []string
	for _, found := range w.likes.Form().FindAllStringSubmatch(quotedParts.ReplaceAllString(card, " "), 40) {
		for _, part := range w.between.Form().Split(found[1], -1) {
			part = strings.TrimSpace(part)
			n := utf8.RuneCountInString(part)
			named := func(name string) bool { return name != "" && strings.Contains(part, name) }
			if n < minInterest || n > maxInterest || len(strings.Fields(part)) > 4 || slices.ContainsFunc(names, named) ||
				slices.Contains(list, part) || strings.ContainsAny(part, "{}<>[]\"|") || w.isPersonal(part) {
				continue
			}
			list = append(list, part)
		}
	}
	return list
}

// isPersonal says that a text is about somebody in particular.
func (w *circleWords) isPersonal(text string) bool {
	for _, p := range w.personal() {
		if w.space == "" && strings.Contains(text, p) || slices.Contains(strings.Fields(strings.ToLower(text)), p) {
			return true
		}
	}
	return w.space != "" && strings.IndexFunc(text, unicode.IsUpper) >= 0
}
