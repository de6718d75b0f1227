package parse

import (
	"bytes"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

// sampled is how many bytes of a text its encoding is guessed from.
const sampled = 64 << 10

// decode returns text as UTF-8, neither cleaned nor normalised. A byte order mark decides, then
// valid UTF-8, a declared encoding, and last what the bytes look like in each of the likely
// encodings.
func decode(data []byte, declared string) (string, *Error) {
	if e, rest := byMark(data); e != nil {
		return converted(e, rest)
	}
	if e := wide(data); e != nil {
		return converted(e, data)
	}
	if utf8.Valid(data) {
		return readable(string(data))
	}
	if e := declaredEncoding(data, declared); e != nil {
		if text, err := converted(e, data); err == nil {
			return text, nil
		}
	}
	if mostlyUTF8(data) {
		return readable(strings.ToValidUTF8(string(data), "\uFFFD"))
	}
	e := guess(data)
	if e == nil {
		return "", fail(UndecodableText, "the encoding of the text is unknown")
	}
	return converted(e, data)
}

func byMark(data []byte) (encoding.Encoding, []byte) {
	if rest, ok := bytes.CutPrefix(data, []byte("\xef\xbb\xbf")); ok {
		return encoding.Nop, rest
	}
	if rest, ok := bytes.CutPrefix(data, []byte("\xff\xfe")); ok {
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), rest
	}
	if rest, ok := bytes.CutPrefix(data, []byte("\xfe\xff")); ok {
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), rest
	}
	return nil, nil
}

// wide recognises UTF-16 without a mark by the zero bytes of its ASCII characters.
func wide(data []byte) encoding.Encoding {
	sample := data[:min(len(data), sampled)&^1]
	var zero [2]int
	for i, c := range sample {
		if c == 0 {
			zero[i&1]++
		}
	}
	switch {
	case len(sample) < 4:
	case zero[1] > len(sample)/5 && zero[0] < zero[1]/20:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case zero[0] > len(sample)/5 && zero[1] < zero[0]/20:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

func converted(e encoding.Encoding, data []byte) (string, *Error) {
	out, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return "", fail(UndecodableText, "the text is not in the encoding that it seems to have")
	}
	return readable(strings.ToValidUTF8(string(out), "\uFFFD"))
}

// readable rejects text that is mostly rubbish: more than 1 % replacement characters, or 10 %
// controls.
func readable(s string) (string, *Error) {
	total, bad, controls := 0, 0, 0
	for _, r := range s {
		total++
		switch {
		case r == utf8.RuneError:
			bad++
		case r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != 0x1b:
			controls++
		}
	}
	if bad*100 > total || controls*10 > total {
		return "", fail(UndecodableText, "the file is not text, or its encoding is unknown")
	}
	return s, nil
}

// mostlyUTF8 reports whether data is UTF-8 with a few bad bytes.
func mostlyUTF8(data []byte) bool {
	good, bad := 0, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			bad++
		} else if size > 1 {
			good++
		}
		i += size
	}
	return good >= 5*bad
}

var namedCharset = regexp.MustCompile(`(?i)(?:<meta[^>]{0,200}?charset|<\?xml[^>]{0,100}?encoding)\s*=\s*["']?\s*([a-z0-9_:.-]{2,40})`)

// declaredEncoding returns the encoding that the media type or the head of the text names.
func declaredEncoding(data []byte, declared string) encoding.Encoding {
	label := ""
	if _, params, err := mime.ParseMediaType(declared); err == nil {
		label = params["charset"]
	}
	if label == "" {
		if found := namedCharset.FindSubmatch(data[:min(len(data), 1024)]); found != nil {
			label = string(found[1])
		}
	}
	return lookup(label)
}

func lookup(label string) encoding.Encoding {
	e, name := charset.Lookup(label)
	switch {
	case e == nil || name == "replacement" || name == "utf-8" || strings.HasPrefix(name, "utf-16"):
		return nil // the bytes say otherwise
	case name == "gbk":
		return simplifiedchinese.GB18030
	}
	return e
}

// candidates are the encodings that are scored, each with the characters that are frequent in
// the languages written in it.
var candidates = []struct {
	encoding encoding.Encoding
	frequent string
}{
	{simplifiedchinese.GB18030, "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运，。、“”：；？！（）《》"},
	{traditionalchinese.Big5, "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指，。、「」：；？！（）『』"},
	{japanese.ShiftJIS, "のにはをたがでてとしれさいるなもすかられこりうまくあそっきけよつんだめわみせ日一人年大本中、。「」ーンスルトイアラリ"},
	{japanese.EUCJP, "のにはをたがでてとしれさいるなもすかられこりうまくあそっきけよつんだめわみせ日一人年大本中、。「」ーンスルトイアラリ"},
	{korean.EUCKR, "이다는의에을가고하지로은도를한기사인리어아나자들그서해시대라일있수정있것게주보여과부제전스만적상구원유조장안것국와으니면없우"},
}

// guess returns the encoding in which most characters of the text are frequent ones.
func guess(data []byte) encoding.Encoding {
	sample := data[:min(len(data), sampled)]
	var best encoding.Encoding
	score := 0.15 // below, it is none of them
	for _, c := range candidates {
		if s := plausible(c.encoding, sample, c.frequent); s > score {
			best, score = c.encoding, s
		}
	}
	if best != nil {
		return best
	}
	if isolated(sample) {
		return charmap.Windows1252
	}
	if r := chardet.Detect(sample); r.Confidence > 0.6 {
		return lookup(r.Encoding)
	}
	return nil
}

// plausible returns which share of the characters outside ASCII is frequent, or 0 if more than
// one in a hundred cannot be decoded.
func plausible(e encoding.Encoding, sample []byte, frequent string) float64 {
	out, err := e.NewDecoder().Bytes(sample)
	if err != nil {
		return 0
	}
	known := make(map[rune]bool, len(frequent)/3)
	for _, r := range frequent {
		known[r] = true
	}
	total, hits, bad := 0, 0, 0
	for _, r := range string(out) {
		switch {
		case r < utf8.RuneSelf:
			continue
		case r == utf8.RuneError:
			bad++
		case known[r]:
			hits++
		}
		total++
	}
	if total == 0 || (bad-1)*100 > total { // the sample may end within a character
		return 0
	}
	return float64(hits) / float64(total)
}

// isolated reports whether most bytes outside ASCII stand alone, as the accented letters of
// western languages do.
func isolated(sample []byte) bool {
	high, alone := 0, 0
	for i, c := range sample {
		if c < utf8.RuneSelf {
			continue
		}
		high++
		if (i == 0 || sample[i-1] < utf8.RuneSelf) && (i+1 == len(sample) || sample[i+1] < utf8.RuneSelf) {
			alone++
		}
	}
	return alone*4 >= high*3 && high*3 < len(sample)
}
