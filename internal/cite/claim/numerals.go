package claim

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/cite/script"
)

var (
	scale    = data.List("scale", "times") // what multiplies the number before it
	small    = data.Ranks("small-numbers")
	tens     = data.Ranks("tens")
	powers   = data.Ranks("powers")
	parts    = data.Ranks("parts")
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
	return b.String()
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
		return "", end // of a name
	}
	after := strings.ToLower(text[end:min(end+12, len(text))])
	if currency(before) {
		after = money.ReplaceAllString(after, " ${1}illion")
	}
	value = number(text[i:end], after)
	for _, s := range scale() {
		if at := s.FindStringIndex(after); at != nil {
			end += min(at[1], len(text)-end)
			break
		}
	}
	if half := "个半"; strings.HasPrefix(text[end:], half) {
		return value + ".5", end + len(half)
	}
	return value, end
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
			times, _ := strconv.ParseFloat(s.With["times"], 64) // of our own data
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
	for _, half := range []string{"个半", "年半"} {
		if strings.HasPrefix(rest, half) {
			return decimal(hanWhole(run)+0.5) + strings.TrimSuffix(half, "半"), end + len(half)
		}
	}
	if len(value) == 1 && strings.HasPrefix(rest, "成") { // four tenths
		return value + "0%", end + len("成")
	}
	if decimal, next := hanDecimal(text, i, end); decimal != "" {
		return decimal, next
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
	case n == 0 || !measures()[string(next)] || strings.ContainsAny(run, "百千万亿〇零"):
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

// hanNumber reads a number in Chinese characters: 三百一十二, 二〇一九. Two digits side by side
// are an estimate (三四), and 万一 is a word.
func hanNumber(s string) (string, bool) {
	total, section, figure, units, places := 0, 0, 0, 0, ""
	for i, r := range s {
		switch r {
		case '十', '百', '千':
			unit := map[rune]int{'十': 10, '百': 100, '千': 1000}[r]
			if figure == 0 && (r != '十' || i > 0 && section > 0) {
				return "", false
			}
			section += max(figure, 1) * unit
			figure = 0
			units++
		case '万', '亿':
			if section+figure == 0 || total+section+figure > 1e8 {
				return "", false
			}
			total = (total + section + figure) * map[rune]int{'万': 1e4, '亿': 1e8}[r]
			section, figure = 0, 0
			units++
		default:
			figure = strings.Index(hanFigures, string(r)) / len("〇") % 10
			places += strconv.Itoa(figure)
		}
		if len(places) > 12 {
			return "", false
		}
	}
	if units == 0 {
		return strings.TrimLeft(places, "0"), len(places) >= 3
	}
	return strconv.Itoa(total + section + figure), true
}

// spelledAt reads an English number whose first word is text[from:end]: forty-two, thirteen hundred and fifty,
// two thirds of, half an hour. "One" is a number only before a unit: it is more often a pronoun.
func spelledAt(text string, from, end int) (value string, next int) {
	word := strings.ToLower(text[from:end])
	if word == "half" || word == "a" || word == "one" {
		return littleAt(text, word, end)
	}
	total, section, figures := 0.0, 0.0, false
	for {
		rank, isSmall := small()[word]
		ten, isTen := tens()[word]
		power, isPower := powers()[word]
		switch {
		case isSmall && !figures:
			section += float64(rank + 1)
			figures = true
		case isTen && !figures:
			section += float64(10 * (ten + 2))
			figures = false
		case isPower && next > 0 && power == 0:
			section, figures = 100*section, false
		case isPower && next > 0:
			total, section, figures = total+section*math.Pow10(3*power), 0, false
		default:
			return spelled(total+section, text, next)
		}
		next = end
		if word, end = wordAfter(text, next); word == "and" && isPower {
			word, end = wordAfter(text, end)
		}
	}
}

// spelled is a number that was read up to a place, or the fraction that it begins.
func spelled(value float64, text string, end int) (string, int) {
	if end == 0 {
		return "", 0
	}
	word, next := wordAfter(text, end)
	if part, ok := parts()[strings.TrimSuffix(word, "s")]; ok && strings.HasSuffix(word, "s") {
		return decimal(100*value/float64(part+2)) + "%", next
	}
	if rest := " and a half"; strings.HasPrefix(text[end:], rest) {
		return decimal(value + 0.5), end + len(rest)
	}
	return decimal(value), end
}

// littleAt reads what "half", "a" and "one" begin: half the, a third of, a hundred, one hour.
func littleAt(text, word string, end int) (string, int) {
	second, next := wordAfter(text, end)
	third, _ := wordAfter(text, next)
	if word == "half" {
		switch {
		case (second == "a" || second == "an") && unitAfter(text[next:]).dim != "":
			return "0.5", next
		case slices.Contains([]string{"of", "the", "its", "their", "all"}, second):
			return "50%", end
		}
		return "", 0
	}
	if part, ok := parts()[second]; ok && third == "of" {
		return decimal(100/float64(part+2)) + "%", next
	}
	if power, ok := powers()[second]; ok {
		value := 100.0
		if power > 0 {
			value = math.Pow10(3 * power)
		}
		return decimal(value), next
	}
	if word == "one" && unitAfter(text[end:]).dim != "" {
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
