package reader

import (
	"bytes"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/simplifiedchinese"
)

var metaCharset = regexp.MustCompile(`(?i)<meta[^>]{0,200}?charset\s*=\s*["']?\s*([a-z0-9_:.-]{2,40})`)

// decode returns a body as UTF-8, and the name of the encoding that it had.
//
// The more certain source wins: a byte order mark, the header, the meta element in the first 1,024 bytes,
// and last the bytes themselves. A label of latin-1 is not believed if the bytes are valid UTF-8;
// otherwise it means windows-1252, as in browsers, and gb2312 and gbk mean GB18030.
func decode(body []byte, contentType string) (string, string) {
	if e, name, rest := byMark(body); e != nil {
		return convert(e, rest), name
	}
	label := labelOf(contentType)
	if label == "" {
		if found := metaCharset.FindSubmatch(body[:min(len(body), 1024)]); found != nil {
			label = string(found[1])
		}
	}
	e, name := lookup(label)
	if strings.HasPrefix(name, "utf-16") { // said in ASCII, so it is not true
		e = nil
	}
	if e == nil || name == "windows-1252" || name == "utf-8" {
		if utf8.Valid(body) {
			return string(body), "utf-8"
		}
	}
	if e == nil {
		e, name = detect(body)
	}
	return convert(e, body), name
}

func labelOf(contentType string) string {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return params["charset"]
}

func byMark(body []byte) (encoding.Encoding, string, []byte) {
	for _, m := range []struct{ mark, name string }{
		{"\xef\xbb\xbf", "utf-8"}, {"\xff\xfe", "utf-16le"}, {"\xfe\xff", "utf-16be"},
	} {
		if rest, ok := bytes.CutPrefix(body, []byte(m.mark)); ok {
			e, name := lookup(m.name)
			return e, name, rest
		}
	}
	return nil, "", nil
}

func lookup(label string) (encoding.Encoding, string) {
	e, name := charset.Lookup(label)
	if e == nil || name == "replacement" {
		return nil, ""
	}
	if name == "gbk" || name == "gb18030" {
		return simplifiedchinese.GB18030, name
	}
	return e, name
}

// detect guesses the encoding of a body that does not say it.
func detect(body []byte) (encoding.Encoding, string) {
	sample := body[:min(len(body), 32<<10)]
	if r := chardet.Detect(sample); r.Confidence > 0.5 {
		if e, name := lookup(r.Encoding); e != nil {
			return e, name
		}
	}
	e, _ := htmlindex.Get("windows-1252")
	return e, "windows-1252"
}

func convert(e encoding.Encoding, body []byte) string {
	out, err := e.NewDecoder().Bytes(body)
	if err != nil {
		return strings.ToValidUTF8(string(body), "\uFFFD")
	}
	return string(out)
}
