package cite

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

var (
	measures = data.Set("measures")
	ranges   = data.Set("ranges")
	months   = data.Ranks("months")
	unitList = data.Words("units")
)

// unitRanks tells of the spelling of a unit on which line of its language it is.
var unitRanks = sync.OnceValue(func() map[string]int {
	ranks := map[string]int{}
	for rank, same := range unitList() {
		for name := range strings.SplitSeq(same, "/") {
			ranks[name] = rank
		}
	}
	return ranks
})

// longestUnit is in bytes, with the space within.
const longestUnit = 20

// counted returns the numbers that a Chinese text writes with one digit, but those that are known.
func counted(text string, known []string) (out []string) {
	if !strings.ContainsAny(text, "两三四五六七八九十") {
		return nil
	}
	for _, q := range quantitiesIn(plain(text)) {
		if (len(q.value) <= 2 || strings.Contains(q.value, ".")) && !slices.Contains(known, q.value) {
			out = append(out, q.value)
		}
	}
	return out
}

// quantity is a number with its unit.
type quantity struct {
	value  string
	unit   int  // its line in the data; -1 = none is known
	dense  bool // the unit is written in a dense script
	counts bool // a character of a dense script follows, and no 年
	at     int  // where it begins in the text
	end    int  // of the number
}

// plain returns a text with all its numbers in digits, without separators, and "%" for percentages.
// A lone Chinese digit counts only where it counts something: 三名, but not 三明治.
func plain(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	before, percent := rune(0), ""
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], hundredths) && percent == "" {
			percent, before = hundredths, '之'
			i += len(hundredths)
			continue
		}
		value, end := numeralAt(text, i, before)
		switch {
		case value == "":
			b.WriteString(percent + text[i:end])
		case percent != "":
			b.WriteString(value + "%")
		default:
			b.WriteString(value)
		}
		before, _ = utf8.DecodeLastRuneInString(text[:end])
		i, percent = end, ""
	}
	b.WriteString(percent)
	return b.String()
}

// hundredths stand before the number of a percentage.
const hundredths = "百分之"

// numeralAt reads what begins at a place of a text: the value of a number, or "", and where it ends.
func numeralAt(text string, i int, before rune) (value string, end int) {
	r, n := utf8.DecodeRuneInString(text[i:])
	switch {
	case isDigit(r):
		end = digitsEnd(text, i)
		if isLetter(before) && !isDense(before) {
			return "", end
		}
		value = number(text[i:end], strings.ToLower(text[end:min(end+12, len(text))]))
		return value, end + scaleEnd(text[end:])
	case isHanDigit(r):
		return hanNumeralAt(text, i)
	case isWord(r):
		end = runOf(text, i, isWord)
		if value, next, ok := spelledAt(text, i, end); ok {
			return value, next
		}
		return "", end
	}
	return "", i + n
}

// hanNumeralAt is numeralAt for Chinese digits.
func hanNumeralAt(text string, i int) (value string, end int) {
	end = runOf(text, i, isHanDigit)
	if run := strings.TrimSuffix(text[i:end], "两"); run != "" {
		end = i + len(run)
	}
	value = hanValue(text, i, end)
	if len(value) == 1 && strings.HasPrefix(text[end:], "成") { // four tenths
		return value + "0%", end + len("成")
	}
	if decimal, next := hanDecimal(text, i, end); decimal != "" {
		return decimal, next
	}
	return value, end
}

func isLetter(r rune) bool { return isWord(r) && !isDigit(r) }

// scaleEnd is the length of what multiplies the number before it.
func scaleEnd(after string) int {
	for _, s := range scale() {
		if at := s.FindStringIndex(strings.ToLower(after[:min(12, len(after))])); at != nil {
			return at[1]
		}
	}
	return 0
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
	if places == "" || strings.ContainsRune("分十刻", rest) {
		return "", end // a time of day
	}
	whole := hanValue(text[:from]+"第"+text[from:end], from+len("第"), end+len("第"))
	if whole == "" && text[from:end] != "零" && text[from:end] != "一" {
		return "", end
	}
	if text[from:end] == "一" {
		whole = "1"
	}
	value = strings.TrimRight(cmp.Or(whole, "0")+"."+places, "0")
	return strings.TrimSuffix(value, "."), next
}

// hanValue reads a run of Chinese digits; "" if it is part of a word.
func hanValue(text string, from, end int) string {
	run := text[from:end]
	if utf8.RuneCountInString(run) > 1 {
		value, ok := hanNumber(run)
		if !ok {
			return ""
		}
		return value
	}
	next, n := utf8.DecodeRuneInString(text[end:])
	last, _ := utf8.DecodeLastRuneInString(text[:from])
	if r, _ := utf8.DecodeRuneInString(run); !strings.ContainsRune("一二两三四五六七八九十", r) || r == '一' && last != '比' && last != '第' {
		return ""
	}
	if last != '比' && last != '第' && last != '之' && (n == 0 || !measures()[string(next)]) {
		return ""
	}
	if run == "十" {
		return "10"
	}
	value, _ := hanNumber(run + "〇〇")
	return strings.TrimSuffix(value, "00")
}

// spelledAt reads an English number from two on, whose first word is text[from:end].
func spelledAt(text string, from, end int) (value string, next int, ok bool) {
	word := strings.ToLower(text[from:end])
	if rank, ok := smallNumbers()[word]; ok && rank > 0 {
		return strconv.Itoa(rank + 1), end, true
	}
	rank, ok := tens()[word]
	if !ok {
		return "", end, false
	}
	n := 10 * (rank + 2)
	if end < len(text) && (text[end] == '-' || text[end] == ' ') {
		stop := runOf(text, end+1, isWord)
		if one, ok := smallNumbers()[strings.ToLower(text[end+1:stop])]; ok && one < 9 {
			return strconv.Itoa(n + one + 1), stop, true
		}
	}
	return strconv.Itoa(n), end, true
}

// quantitiesIn returns the numbers of a plain text with their units.
func quantitiesIn(text string) (out []quantity) {
	before := rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !isDigit(r) || isLetter(before) && !isDense(before) {
			before = r
			if isDigit(r) {
				n = runOf(text, i, isDigit) - i
			}
			i += n
			continue
		}
		end := digitsEnd(text, i)
		unit, dense := unitAfter(text[end:])
		out = append(out, quantity{number(text[i:end], ""), unit, dense, countsSomething(text[end:]), i, end})
		i, before = end, r
	}
	for i := len(out) - 2; i >= 0; i-- { // 10 to 80 percent
		if between := strings.Trim(text[out[i].end:out[i+1].at], " "); out[i].unit < 0 && ranges()[between] {
			out[i].unit, out[i].dense = out[i+1].unit, out[i+1].dense
		}
	}
	return out
}

// countsSomething reports whether a number before a text is none of a year, by the character behind it.
func countsSomething(after string) bool {
	r, _ := utf8.DecodeRuneInString(after)
	return isDense(r) && r != '年'
}

// unitAfter finds the longest unit at the beginning of a text.
func unitAfter(text string) (rank int, dense bool) {
	text = strings.ToLower(strings.TrimLeft(text[:min(len(text), longestUnit+2)], " -"))
	ranks := unitRanks()
	for end := len(text); end > 0; end-- {
		rank, ok := ranks[text[:end]]
		if !ok {
			continue
		}
		last, _ := utf8.DecodeLastRuneInString(text[:end])
		next, _ := utf8.DecodeRuneInString(text[end:])
		if !isLetter(last) || !isWord(next) {
			return rank, isDense(last)
		}
	}
	return -1, false
}
