package lang

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"nodest/index"
)

// How much of a statement must be in its source, by the weight of its words: of the whole, and
// of each clause with content.
const (
	EnoughSaid      = 0.6
	EnoughOfClause  = 0.5
	clauseSays      = 1.5 // weight from which on a clause is looked at alone
	weightWord      = 1.0
	weightCharacter = 0.5
	weightClass     = 0.75
)

// Said is what texts say, in a form in which a statement can be looked up.
type Said struct {
	Words   map[string]bool // stems of words, numbers in digits
	Runs    string          // text of dense scripts
	classes map[string]bool
}

// Piece is a part of a statement that must be said.
type Piece struct {
	word   string // stem or number; or
	run    string // a run of a dense script; or
	Class  string
	Weight float64
}

// classWords may replace each other in a fact and its source. Liking and disliking must be
// said: careless models make them up.
var classWords = map[string]string{
	"like":     "like love enjoy adore fond fan favorite favourite prefer keen passionate 喜欢 喜爱 热爱 最爱 钟爱 偏爱 偏好 爱吃 爱喝 爱看 爱听 爱玩 爱好 迷上 爱",
	"hate":     "hate dislike detest loathe despise 讨厌 厌恶 反感 憎恨 恨",
	"allergic": "allergic allergy 过敏",
	"live":     "live lives living home move moved reside stay based from i'm 住 居住 家在 搬到 搬去 来自 老家",
	"work":     "work job employ employed career profession occupation i'm 工作 上班 职业 从事 任职 我是 当",
	"study":    "study student learn major university school college 学习 读书 上学 学生 专业 在读 我是 读",
	"name":     "name named call called i'm 叫 名字 姓名 名叫 我是",
	"age":      "age aged old year i'm turn 岁 年龄",
	"birth":    "birthday born birth 生日 出生",
	"have":     "have has had own got my adopt with 拥有 养 我的 我家 家里 有",
	"plan":     "plan will going gonna intend want hope promise i'll would agree promised planning 打算 计划 准备 决定 想要 希望 答应 承诺 保证 会 要 想 将",
	"not":      "not no never without stop stopped quit cannot nobody none don't doesn't didn't isn't aren't wasn't weren't won't can't couldn't shouldn't haven't hasn't wouldn't 不 没 没有 别 未 无法 戒 停止 放弃",
}

// neutralWords need no source.
const neutralWords = "user users user's character say says said tell told mention mentioned state stated express expressed feel feels think thinks currently really very much person someone people make also recently now fact remember asked" +
	" 用户 角色 对方 表示 提到 提及 认为 觉得 感到 告诉 自己 非常 特别 十分 目前 现在 最近 之一 一个 一只 一条 一位 记住 记得 别忘了 需要 说过 说 很 的 了 是 在 和 与 及 跟 着 过 也 都 就 将 其 他 她 它 们 这 那 我 你 您 地 得 把 被 对 一 个 只 条 位 名 于 为 以 到 去 来 上 里 吧 呢 啊 有 又 还 并 且 而 但 因 所 时"

var (
	latinClasses  = map[string][]string{}
	denseClasses  []denseWord // longest first
	latinNeutral  = map[string]bool{}
	denseNeutral  *strings.Replacer
	signsOfNumber = regexp.MustCompile(`^\d+(?:[.,:/-]\d+)*$`)
	wordOrNumber  = regexp.MustCompile(`\d+(?:[.,:/-]\d+)*|[\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*`)
	dislikes      = regexp.MustCompile(`\b(?:do(?:es)?n't|did(?:n't| not)|do(?:es)? not|never|not)(?: \w+ly| much| even| that| at all)* (?:likes?|loves?|enjoys?|fond)\b|\bcan(?:'t|not| not) (?:stand|bear)\b|不(?:太|大|怎么|是很|是太|很|再|那么)?(?:喜欢|爱)|受不了|没那么喜欢`)
	likesAfterAll = regexp.MustCompile(`\bcan(?:'t|not) wait\b|\bnot only\b|\bno doubt\b|\bwhy not\b|\bno problem\b|不错|不过|不仅|不但|不只|不同|不好意思|对不起|不少|不久|差不多|不得不|没关系|没问题|特别|别人|别的|别墅|分别|区别|无论|不管`)
	clauseEnds    = regexp.MustCompile(`[,，;；。.!！?？\n]+\s*|\band\b|\bbut\b|并且|而且|但是`)
)

type denseWord struct{ word, class string }

func init() {
	for class, list := range classWords {
		for w := range strings.FieldsSeq(list) {
			if HasCJK(w) {
				denseClasses = append(denseClasses, denseWord{w, class})
				continue
			}
			latinClasses[w] = append(latinClasses[w], class)
			if stem := index.Stem(w); stem != w {
				latinClasses[stem] = append(latinClasses[stem], class)
			}
		}
	}
	slices.SortFunc(denseClasses, func(a, b denseWord) int {
		return cmp.Or(len(b.word)-len(a.word), strings.Compare(a.word, b.word), strings.Compare(a.class, b.class))
	})
	for _, classes := range latinClasses {
		slices.Sort(classes)
	}
	var pairs []string
	for w := range strings.FieldsSeq(neutralWords) {
		if HasCJK(w) {
			pairs = append(pairs, w, " ")
			continue
		}
		latinNeutral[w], latinNeutral[index.Stem(w)] = true, true
	}
	denseNeutral = strings.NewReplacer(pairs...)
}

// Fold normalises a text for comparison.
func Fold(text string) string {
	text = strings.ToLower(norm.NFKC.String(text))
	text = strings.ReplaceAll(strings.ReplaceAll(text, "’", "'"), "‘", "'")
	dense := HasCJK(text)
	if dense || containsAny(text, " wait", "not only", " doubt", "why not", " problem") {
		text = likesAfterAll.ReplaceAllString(text, " ")
	}
	if dense || containsAny(text, "n't", "not", "never") && containsAny(text, "like", "love", "enjoy", "fond", "stand", "bear") {
		text = dislikes.ReplaceAllStringFunc(text, func(s string) string {
			if HasCJK(s) {
				return "讨厌"
			}
			return "dislike"
		})
	}
	return Digits(text)
}

// containsAny looks for one of the parts before a regular expression is tried, which takes far
// longer.
func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

func SaidIn(texts ...string) Said {
	s := Said{Words: map[string]bool{}, classes: map[string]bool{}}
	var runs strings.Builder
	for _, text := range texts {
		text = Fold(text)
		for _, w := range wordOrNumber.FindAllString(text, -1) {
			for _, c := range latinClasses[w] {
				s.classes[c] = true
			}
			for _, c := range latinClasses[index.Stem(w)] {
				s.classes[c] = true
			}
			for _, part := range LatinParts(w) {
				s.Words[part] = true
			}
		}
		for _, d := range denseClasses {
			if !s.classes[d.class] && strings.Contains(text, d.word) {
				s.classes[d.class] = true
			}
		}
		runs.WriteString(text + "\n")
	}
	s.Runs = runs.String()
	return s
}

// LatinParts are the terms of one run of letters, which may mix scripts (用Python写).
func LatinParts(w string) []string {
	if signsOfNumber.MatchString(w) {
		return []string{w}
	}
	var out []string
	for _, part := range strings.FieldsFunc(w, func(r rune) bool { return IsCJK(r) || r == '\'' }) {
		out = append(out, index.Stem(part))
	}
	return out
}

func PiecesOf(text string) []Piece {
	text = Fold(text)
	var out []Piece
	for _, w := range wordOrNumber.FindAllString(text, -1) {
		if HasCJK(w) && !signsOfNumber.MatchString(w) {
			for _, part := range LatinParts(w) {
				out = append(out, Piece{word: part, Weight: weightWord})
			}
			out = append(out, densePieces(w)...)
			continue
		}
		if p, ok := latinPiece(w); ok {
			out = append(out, p)
		}
	}
	return out
}

func latinPiece(w string) (Piece, bool) {
	base, _, _ := strings.Cut(w, "'")
	if latinNeutral[w] || base == "" {
		return Piece{}, false
	}
	stem := index.Stem(base)
	for _, form := range []string{w, base, stem} {
		if c := latinClasses[form]; len(c) > 0 {
			return Piece{Class: c[0], Weight: weightClass}, true
		}
	}
	if latinNeutral[base] || latinNeutral[stem] || len(index.Terms(base)) == 0 {
		return Piece{}, false
	}
	return Piece{word: stem, Weight: weightWord}, true
}

// densePieces takes the words of classes out of a run and returns them and what remains between
// them and neutral words.
func densePieces(run string) []Piece {
	var out []Piece
	run = strings.Map(func(r rune) rune {
		if IsCJK(r) {
			return r
		}
		return ' '
	}, run)
	run = longestNeutral.ReplaceAllString(run, " ")
	for _, d := range denseClasses {
		if strings.Contains(run, d.word) {
			out = append(out, Piece{Class: d.class, Weight: weightClass})
			run = strings.ReplaceAll(run, d.word, " ")
		}
	}
	for part := range strings.FieldsSeq(denseNeutral.Replace(run)) {
		out = append(out, Piece{run: part, Weight: weightCharacter * float64(utf8.RuneCountInString(part))})
	}
	return out
}

// longestNeutral are neutral words that contain a word of a class.
var longestNeutral = regexp.MustCompile(`用户|角色|需要|现在|目前|之一|别忘了|一位|一名`)

// Covers returns how much of the weight of p is said.
func (s Said) Covers(p Piece) float64 {
	switch {
	case p.word != "":
		if s.Words[p.word] {
			return p.Weight
		}
		return 0
	case p.Class != "":
		if s.classes[p.Class] {
			return p.Weight
		}
		return 0
	}
	run := []rune(p.run)
	if len(run) == 1 {
		if strings.Contains(s.Runs, p.run) {
			return p.Weight
		}
		return 0
	}
	covered := 0
	for i := range run {
		before := i > 0 && strings.Contains(s.Runs, string(run[i-1:i+1]))
		if before || i+1 < len(run) && strings.Contains(s.Runs, string(run[i:i+2])) {
			covered++
		}
	}
	return weightCharacter * float64(covered)
}

// Share returns how much of pieces is said, from 0 to 1, and their weight.
func (s Said) Share(pieces []Piece) (share, weight float64) {
	found := 0.0
	for _, p := range pieces {
		weight += p.Weight
		found += s.Covers(p)
	}
	if weight == 0 {
		return 0, 0
	}
	return found / weight, weight
}

// Unsupported returns why text is not a statement of the sources; "" = it is one. Every number
// and every recognisable name must be in the sources, and so must liking, disliking and
// negation; and most of the other words, in the whole and in each clause. Neutral words and the
// names of the two sides need no source.
func Unsupported(text string, sources []Line, names Names) string {
	texts := Stated(sources)
	s := SaidIn(texts...)
	s.add(names.User, names.Character)
	for _, m := range sources {
		s.add(m.Name)
		if strings.ContainsAny(Digits(text), "0123456789") {
			s.addDay(m)
		}
	}
	pieces := PiecesOf(text)
	share, weight := s.Share(pieces)
	if weight == 0 || share < EnoughSaid {
		return ReasonUnsupported
	}
	if reason := s.lacks(pieces); reason != "" {
		return reason
	}
	if !s.names(text) || !names.mayBeNamed(text, sources) {
		return ReasonName
	}
	for _, clause := range clauseEnds.Split(norm.NFKC.String(text), -1) {
		if share, weight := s.Share(PiecesOf(clause)); weight >= clauseSays && share < EnoughOfClause {
			return ReasonUnsupported
		}
	}
	if negated(text) != negatedIn(texts, pieces) {
		return ReasonOpposite
	}
	return ""
}

// lacks returns the reason why a required piece is missing.
func (s *Said) lacks(pieces []Piece) string {
	for _, p := range pieces {
		switch {
		case s.Covers(p) > 0:
		case signsOfNumber.MatchString(p.word):
			return ReasonNumber
		case p.Class == "like" || p.Class == "hate" || p.Class == "allergic":
			return ReasonOpposite
		}
	}
	return ""
}

// mayBeNamed reports whether the sides named by a statement speak in the sources, are named
// there or addressed.
func (n Names) mayBeNamed(text string, sources []Line) bool {
	for _, side := range []struct {
		name string
		role Role
	}{{n.User, RoleUser}, {n.Character, RoleCharacter}} {
		if side.name == "" || !strings.Contains(strings.ToLower(text), strings.ToLower(side.name)) {
			continue
		}
		if !slices.ContainsFunc(sources, func(m Line) bool {
			return m.Role == side.role || SecondPerson.MatchString(m.Text) || strings.Contains(strings.ToLower(m.Text), strings.ToLower(side.name))
		}) {
			return false
		}
	}
	return true
}

var SecondPerson = regexp.MustCompile(`(?i)你|您|\b(?:you|your|yours|we|us|our)\b|我们|咱`)

func (s *Said) add(names ...string) {
	for _, name := range names {
		s.Runs += Fold(name) + "\n"
		for _, w := range wordOrNumber.FindAllString(Fold(name), -1) {
			for _, part := range LatinParts(w) {
				s.Words[part] = true
			}
		}
	}
}

// addDay counts the day that a source names ("yesterday") as said.
func (s *Said) addDay(m Line) {
	day, ok := EventTime(strings.Join(Stated([]Line{m}), "\n"), m.At)
	if !ok {
		return
	}
	s.Words[day.Format(time.DateOnly)] = true
	s.add(day.Format("2006/1/2"), day.Format("1/2"), day.Format("2006 1 2 January Jan Monday"))
}

// names reports whether every name in a statement is said: capitalised words inside a sentence,
// and Latin words in a text of a dense script.
func (s Said) names(text string) bool {
	text = norm.NFKC.String(text)
	dense, start := HasCJK(text), true
	for _, at := range wordOrNumber.FindAllStringIndex(text, -1) {
		for _, w := range strings.FieldsFunc(text[at[0]:at[1]], IsCJK) {
			first, _ := utf8.DecodeRuneInString(w)
			name := unicode.IsUpper(first) && !start || dense && unicode.IsLetter(first) && len(w) > 1
			p, counts := latinPiece(strings.ReplaceAll(strings.ToLower(w), "’", "'"))
			if name && counts && p.word != "" && !s.Words[p.word] && !IsDayName(w) {
				return false
			}
		}
		rest := strings.TrimLeft(text[at[1]:], " \t\"'”’)")
		start = rest != "" && strings.ContainsRune(".!?:\n", rune(rest[0]))
	}
	return true
}

func IsDayName(w string) bool {
	return dayNames.MatchString(strings.ToLower(w))
}

func negated(text string) bool { return slices.ContainsFunc(PiecesOf(text), negates) }

// negatedIn reports whether what is said about pieces is negated: all clauses that share words
// with it are or, if pieces are negated themselves, one.
func negatedIn(texts []string, pieces []Piece) bool {
	about, denied := 0, 0
	for _, text := range texts {
		for _, clause := range clauseEnds.Split(Fold(text), -1) {
			if s := SaidIn(clause); s.Shares(pieces) {
				about++
				if s.classes["not"] {
					denied++
				}
			}
		}
	}
	if slices.ContainsFunc(pieces, negates) {
		return denied > 0
	}
	return about > 0 && denied == about
}

func negates(p Piece) bool { return p.Class == "not" }

// Shares reports whether a word of pieces, other than one of a class, is said.
func (s Said) Shares(pieces []Piece) bool {
	for _, p := range pieces {
		if p.Class == "" && s.Covers(p) > 0 {
			return true
		}
	}
	return false
}

// recalling are sentences in which a character repeats its memories; they are no source.
var recalling = regexp.MustCompile(`(?i)记得|记忆[里中]|你(?:之前|以前|曾经?|上次|刚才?)?(?:跟我|和我|对我)?(?:说过|告诉过|提过|提到过)|\bI(?: do| still| also)* (?:remember|recall)\b|\byou(?:'ve| have)?(?: once| also)? (?:told|said|mentioned)\b`)

// Stated returns the texts of sources without questions, unless the other side answers them in
// a later source, and without what a character says from memory.
func Stated(sources []Line) []string {
	out := make([]string, 0, len(sources))
	for i, m := range sources {
		answered := false
		for _, later := range sources[i+1:] {
			answered = answered || later.Role != m.Role
		}
		if answered {
			out = append(out, m.Text)
			continue
		}
		said := Statements(m.Text)
		if m.Role == RoleCharacter {
			said = slices.DeleteFunc(said, recalling.MatchString)
		}
		out = append(out, strings.Join(said, "\n"))
	}
	return out
}

// Why a statement is not supported, for the report of a job.
const (
	ReasonUnsupported = "not stated in the messages"
	ReasonNumber      = "contains a number that is not in the messages"
	ReasonName        = "contains a name that is not in the messages"
	ReasonOpposite    = "the messages state the opposite"
)
