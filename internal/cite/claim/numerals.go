package claim

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"nodest/internal/cite/script"
)

var (
	scale    = data.List("scale", "times") // words that multiply the number before them
	small    = data.Ranks("small-numbers")
	tens     = data.Ranks("tens")
	powers   = data.Ranks("powers")
	parts    = data.Ranks("parts")
	about    = data.Set("about")
	measures = data.Set("measures")
)

// hundredths stand before the number of a percentage, and halfOf for one half.
const (
	hundredths = "百分之"
	ofParts    = "分之"
	halfOf     = "一半"
)

// Plain returns a text with all its numbers in digits, without separators, and "%" for percentages and
// fractions: 三千六百, 3,600, 3.6 thousand, three quarters of. A lone Chinese digit counts only where it counts
// something: 三名, but not 三明治.
func Plain(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	before := rune(0)
	for i := 0; i < len(text); {
		value, end := numeralAt(text, i, before)
		if value == "" {
			value = text[i:end]
		}
		b.WriteString(value)
		before, _ = utf8.DecodeLastRuneInString(text[:end])
		i = end
	}
	if !strings.Contains(text, "世纪") {
		return b.String()
	}
	return decades.ReplaceAllStringFunc(b.String(), yearOfDecade)
}

// decades are those of a century: 20世纪80年代, 上世纪80年代.
var decades = regexp.MustCompile(`(\d\d?|上)(?:个)?世纪(\d0)年代`)

func yearOfDecade(text string) string {
	m := decades.FindStringSubmatch(text)
	century, err := strconv.Atoi(m[1])
	if err != nil {
		century = 20
	}
	return strconv.Itoa(century-1) + m[2] + "年代"
}

// numeralAt reads what begins at a place of a text: the value of a number, or "", and where it ends.
func numeralAt(text string, i int, before rune) (value string, end int) {
	r, n := utf8.DecodeRuneInString(text[i:])
	switch {
	case script.IsDigit(r):
		return digitsAt(text, i, before)
	case r == '百' && strings.HasPrefix(text[i:], hundredths):
		if value, end := numeralAt(text, i+len(hundredths), '比'); value != "" {
			return value + "%", end
		}
	case r == '一' && strings.HasPrefix(text[i:], halfOf):
		return "50%", i + len(halfOf)
	case r == '半' && !strings.ContainsRune("上下大前后多", before):
		if unitAfter(text[i+n:]).dim != "" {
			return "0.5", i + n
		}
	case isHanDigit(r):
		return hanNumeralAt(text, i, before)
	case script.IsWord(r):
		end = script.RunOf(text, i, script.IsWord)
		if value, next := spelledAt(text, i, end); value != "" {
			return value, next
		}
		return "", end
	}
	return "", i + n
}

// digitsAt is numeralAt for digits.
func digitsAt(text string, i int, before rune) (value string, end int) {
	end = digitsEnd(text, i)
	if script.IsLetter(before) && !script.IsDense(before) {
		return "", end // the digits are part of a name
	}
	after := strings.ToLower(text[end:min(end+12, len(text))])
	if currency(before) {
		after = money.ReplaceAllString(after, " ${1}illion")
	}
	value = number(text[i:end], after)
	end += min(scaleEnd(after), len(text)-end)
	if more := script.RunOf(text, end, script.IsDigit); more > end && strings.HasPrefix(text[more:], "千") { // 2万3千
		base, _ := strconv.ParseFloat(value, 64)
		thousands, _ := strconv.ParseFloat(text[end:more], 64)
		return decimal(base + 1000*thousands), more + len("千")
	}
	if half := "个半"; strings.HasPrefix(text[end:], half) {
		return value + ".5", end + len(half)
	}
	return value, end
}

// scaleEnd is the length of what multiplies the number before it.
func scaleEnd(after string) int {
	for _, s := range scale() {
		if at := s.FindStringIndex(after); at != nil {
			return at[1]
		}
	}
	return 0
}

// money are the letters behind an amount of it that multiply it: £2.4m, $3bn.
var money = regexp.MustCompile(`^(m|b)n?\b`)

func currency(r rune) bool { return unicode.Is(unicode.Sc, r) || r == '￥' }

func isHanDigit(r rune) bool {
	return r >= 0x3007 && strings.ContainsRune("〇零一二两三四五六七八九十百千万亿", r)
}

// digitsEnd is the end of digits, with single separators between them.
func digitsEnd(text string, from int) int {
	for {
		from = script.RunOf(text, from, script.IsDigit)
		r, n := utf8.DecodeRuneInString(text[from:])
		next, _ := utf8.DecodeRuneInString(text[from+n:])
		if !strings.ContainsRune(".,．，", r) || !script.IsDigit(next) {
			return from
		}
		from += n
	}
}

// number is the plain form of digits with separators, and of what follows them.
func number(s, after string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case '０' <= r && r <= '９':
			return r - '０' + '0'
		case r == '．':
			return '.'
		case r == '，':
			return ','
		}
		return r
	}, s)
	if whole := strings.Split(s, ","); len(whole) > 1 {
		join := ""
		for _, group := range whole[1:] {
			if group, _, _ = strings.Cut(group, "."); len(group) != 3 {
				join = "."
			}
		}
		s = strings.Join(whole, join)
	}
	value, err := strconv.ParseFloat(s, 64)
	if err != nil || len(s) > 15 {
		return s // a version, a key
	}
	for _, s := range scale() {
		if s.MatchString(after) {
			times, _ := strconv.ParseFloat(s.With["times"], 64) // our own data
			value *= times
		}
	}
	return decimal(value)
}

// decimal rounds what floating-point arithmetic adds: 7.2 thousand is 7200.
func decimal(value float64) string {
	if whole := math.Round(value*1e4) / 1e4; whole != 0 {
		value = whole
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

const hanFigures = "〇一二三四五六七八九零壹两"

// hanNumeralAt is numeralAt for Chinese digits.
func hanNumeralAt(text string, i int, before rune) (value string, end int) {
	end = script.RunOf(text, i, isHanDigit)
	if run := strings.TrimSuffix(text[i:end], "两"); run != "" {
		end = i + len(run)
	}
	run, rest := text[i:end], text[end:]
	if below, ok := strings.CutPrefix(rest, ofParts); ok { // 三分之一
		n := script.RunOf(below, 0, isHanDigit)
		over, under := hanWhole(below[:n]), hanWhole(run)
		if over > 0 && under > 0 {
			return decimal(100*over/under) + "%", end + len(ofParts) + n
		}
	}
	value = hanValue(run, before, rest)
	if one, n := utf8.DecodeRuneInString(rest); strings.HasPrefix(rest[n:], "半") && (strings.ContainsRune("个年", one) || unitAfter(rest[:n]).dim != "") {
		return decimal(hanWhole(run)+0.5) + rest[:n], end + n + len("半") // 四斤半
	}
	for _, tenths := range []string{"成", "折"} {
		if below, ok := strings.CutPrefix(rest, tenths); ok && len(value) == 1 { // 三成五
			n := script.RunOf(below, 0, isHanDigit)
			more := max(0, hanWhole(below[:n]))
			return decimal(10*hanWhole(run)+more) + "%", end + len(tenths) + n
		}
	}
	if value, next := hanDecimal(text, i, end); value != "" {
		after := text[next:min(next+12, len(text))]
		return number(value, after), next + scaleEnd(after)
	}
	return value, end
}

// hanDecimal reads a number with a point: 三点四.
func hanDecimal(text string, from, end int) (value string, next int) {
	after, ok := strings.CutPrefix(text[end:], "点")
	if !ok {
		return "", end
	}
	places := ""
	next = end + len("点")
	for _, r := range after {
		at := strings.IndexRune(hanFigures, r)
		if at < 0 {
			break
		}
		places += strconv.Itoa(at / len("〇") % 10)
		next += utf8.RuneLen(r)
	}
	rest, _ := utf8.DecodeRuneInString(text[next:])
	if places == "" || strings.ContainsRune("分十刻半", rest) {
		return "", end // a time of day
	}
	whole := hanWhole(text[from:end])
	if text[from:end] == "零" {
		whole = 0
	}
	if whole < 0 {
		return "", end
	}
	value = strings.TrimRight(decimal(whole)+"."+places, "0")
	return strings.TrimSuffix(value, "."), next
}

// hanValue reads a run of Chinese digits; "" if it is part of a word.
func hanValue(run string, before rune, after string) string {
	next, n := utf8.DecodeRuneInString(after)
	switch {
	case utf8.RuneCountInString(run) > 1:
		if value, ok := hanNumber(run); ok {
			return value
		}
		return ""
	case before == '比' && run == "零":
		return "0"
	case strings.ContainsRune("比第之", before):
	case n == 0 || !measures()[string(next)] && !(run == "十" && strings.ContainsRune("多余来几", next)) || strings.ContainsAny(run, "百千万亿〇零"):
		return ""
	case run == "一" && unitAfter(after).dim != "time" && unitAfter(after).dim != "calendar":
		return "" // 一个, 一度, 一块 hardly count
	}
	if n := hanWhole(run); n > 0 {
		return decimal(n)
	}
	return ""
}

// hanWhole reads a run of Chinese digits, also a lone one; -1 if it is no number.
func hanWhole(run string) float64 {
	value, ok := hanNumber(run)
	if run == "十" {
		value, ok = "10", true
	} else if utf8.RuneCountInString(run) == 1 {
		value, ok = hanNumber(run + "〇〇")
		value = strings.TrimSuffix(value, "00")
	}
	n, err := strconv.ParseFloat(value, 64)
	if !ok || err != nil {
		return -1
	}
	return n
}

// hanNumber reads a number in Chinese characters: 三百一十二, 一百二, 二〇一九. Two digits side by side
// are an estimate (三四), and 万一 is a word.
func hanNumber(s string) (string, bool) {
	var n hanCount
	for i, r := range s {
		if !n.add(r, i == 0) || len(n.places) > 12 {
			return "", false
		}
	}
	if n.last == 0 && n.total+n.section == 0 {
		return strings.TrimLeft(n.places, "0"), len(n.places) >= 3
	}
	if n.last >= 100 { // 一百二, 三万五
		n.figure *= n.last / 10
	}
	return strconv.Itoa(n.total + n.section + n.figure), true
}

// hanCount is the number that some characters say so far.
type hanCount struct {
	total, section, figure int    // above the last 万 or 亿, below it, and the last digit
	last                   int    // power before the last digit; 0 = zero stands there
	places                 string // all digits
}

// add adds a digit or a power of ten, unless it cannot follow.
func (n *hanCount) add(r rune, first bool) bool {
	power := hanPowers[r]
	switch {
	case power == 0:
		n.figure = strings.Index(hanFigures, string(r)) / len("〇") % 10
		n.places += strconv.Itoa(n.figure)
		if n.figure == 0 {
			n.last = 0
		}
		return true
	case power < 1e4:
		if n.figure == 0 && (power != 10 || !first && n.section > 0) {
			return false
		}
		n.section += max(n.figure, 1) * power
	case n.total+n.section+n.figure == 0 || n.total >= 1e12:
		return false
	case power == 1e8: // 两万三千亿
		n.total, n.section = (n.total+n.section+n.figure)*power, 0
	default:
		n.total, n.section = n.total+(n.section+n.figure)*power, 0
	}
	n.figure, n.last = 0, power
	return true
}

var hanPowers = map[rune]int{'十': 10, '百': 100, '千': 1000, '万': 1e4, '亿': 1e8}

// spelledAt reads an English number whose first word is text[from:end]: forty-two, thirteen hundred and fifty,
// nineteen sixty, two thirds of, half an hour. "One" is a number only before a unit or a power: it is more often a pronoun.
func spelledAt(text string, from, end int) (value string, next int) {
	word := text[from:end]
	if len(word) > longestNumeral {
		return "", 0
	}
	word = strings.ToLower(word)
	if !numeralWords()[word] {
		return "", 0
	}
	second, after := wordAfter(text, end)
	_, isPower := powers()[second]
	switch {
	case word == "half":
		return halfAt(text, end)
	case (word == "a" || word == "one" || word == "an") && isPower:
		return spelledFrom(text, 1, second, end, after)
	case word == "a" || word == "one" || word == "an":
		if about()[strings.ToLower(lastWord(text[:from]))] && unitAfter(text[end:]).dim != "" && !strings.HasPrefix(text[after:], andHalf) {
			return "1", end
		}
		return oneAt(text, word, second, end, after)
	}
	return spelledFrom(text, 0, word, 0, end)
}

// longestNumeral is that of "seventeen", in bytes.
const longestNumeral = 9

// numeralWords begin an English number.
var numeralWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{"half": true, "a": true, "an": true, "one": true}
	for _, list := range []map[string]int{small(), tens()} {
		for w := range list {
			words[w] = true
		}
	}
	return words
})

// spelledFrom reads the words of a number from one that ends at a place, behind what is read up to another.
func spelledFrom(text string, section float64, word string, next, end int) (string, int) {
	n := spelledNumber{section: section}
	for n.add(word) {
		next = end
		_, isPower := powers()[word]
		if word, end = wordAfter(text, next); word == "and" && isPower {
			word, end = wordAfter(text, end)
		}
	}
	return spelled(n.total+n.section, text, next)
}

// spelledNumber is the number that some words say so far.
type spelledNumber struct {
	total, section float64 // above and below the last of thousand, million and so on
	last           float64 // the word before, if it is below 100
}

// add adds a word, unless the number ended before it.
func (n *spelledNumber) add(word string) bool {
	if rank, ok := small()[word]; ok {
		value := float64(rank + 1)
		if n.last > 0 && (n.last < 20 || value > 9) {
			return false
		}
		n.section, n.last = n.section+value, value
		return true
	}
	if rank, ok := tens()[word]; ok {
		if n.last > 0 && (n.last < 10 || n.last > 19) {
			return false
		}
		if n.last > 0 { // nineteen sixty is a year
			n.section *= 100
		}
		n.last = float64(10 * (rank + 2))
		n.section += n.last
		return true
	}
	power, ok := powers()[word]
	if !ok || n.section == 0 {
		return false
	}
	if n.last = 0; power == 0 {
		n.section *= 100
	} else {
		n.total, n.section = n.total+n.section*math.Pow10(3*power), 0
	}
	return true
}

// spelled is a number that was read up to a place, or the fraction that it begins, or dozens.
func spelled(value float64, text string, end int) (string, int) {
	if end == 0 {
		return "", 0
	}
	word, next := wordAfter(text, end)
	if part, ok := parts()[strings.TrimSuffix(word, "s")]; ok && strings.HasSuffix(word, "s") {
		return decimal(100*value/float64(part+2)) + "%", next
	}
	if word == "dozen" {
		return decimal(12 * value), next
	}
	if strings.HasPrefix(text[end:], andHalf) {
		return andAHalf(value, text, end)
	}
	return decimal(value), end
}

// andAHalf adds a half to a number, and multiplies both by what follows.
func andAHalf(value float64, text string, end int) (string, int) {
	end += len(andHalf)
	if word, next := wordAfter(text, end); powers()[word] > 0 {
		return decimal((value + 0.5) * math.Pow10(3*powers()[word])), next
	}
	return decimal(value + 0.5), end
}

const andHalf = " and a half"

// halfAt reads what "half" begins: half the, half a million, half an hour.
func halfAt(text string, end int) (string, int) {
	second, next := wordAfter(text, end)
	third, after := wordAfter(text, next)
	power, isPower := powers()[third]
	switch {
	case second == "a" && isPower:
		return decimal(math.Pow10(max(2, 3*power)) / 2), after
	case (second == "a" || second == "an") && unitAfter(text[next:]).dim != "":
		return "0.5", next
	case slices.Contains([]string{"of", "the", "its", "their", "all"}, second):
		return "50%", end
	}
	return "", 0
}

// oneAt reads what "a" and "one" begin: a third of, a dozen, one hour, one and a half, a year and a half.
func oneAt(text, word, second string, end, after int) (string, int) {
	third, _ := wordAfter(text, after)
	part, isPart := parts()[second]
	switch {
	case isPart && third == "of":
		return decimal(100/float64(part+2)) + "%", after
	case second == "dozen":
		return "12", after
	case word == "one" && strings.HasPrefix(text[end:], andHalf):
		return andAHalf(1, text, end)
	case unitAfter(text[end:]).dim != "" && strings.HasPrefix(text[after:], andHalf):
		return "1.5" + text[end:after], after + len(andHalf)
	case word == "one" && unitAfter(text[end:]).dim != "":
		return "1", end
	}
	return "", 0
}

// wordAfter returns the word behind a space or hyphen at a place, in lower case, and where it ends.
func wordAfter(text string, at int) (string, int) {
	if at >= len(text) || text[at] != ' ' && text[at] != '-' {
		return "", at
	}
	end := script.RunOf(text, at+1, script.IsWord)
	return strings.ToLower(text[at+1 : end]), end
}
