package weburl

import (
	"slices"
	"strings"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

type parameter struct{ name, value string }

// cleanQuery drops parameters that do not select the content, and sorts the others by name in
// the order of the root locale. Parameters of one name keep their order.
func (o Options) cleanQuery(query string) string {
	var kept []parameter
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		p := parameter{formDecode(name), formDecode(value)}
		if p.name != "" && !o.drops(p) {
			kept = append(kept, p)
		}
	}
	if len(kept) > 1 {
		order := collate.New(language.Und)
		slices.SortStableFunc(kept, func(a, b parameter) int { return order.CompareString(a.name, b.name) })
	}
	var b strings.Builder
	for i, p := range kept {
		if i > 0 {
			b.WriteByte('&')
		}
		formEncode(&b, p.name)
		b.WriteByte('=')
		formEncode(&b, p.value)
	}
	return b.String()
}

func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

var (
	sessionNames  = words("session sid sessionid phpsessid jsessionid aspsessionid asp.net_sessionid")
	trackingNames = words("referrer fbclid gclid mcid medium campaign sc_rid dclid gbraid igshid msclkid twclid wbraid yclid")
	// channels are values of "ref" and "source" that say where a visitor came from.
	channels = words("email facebook fb hackernews hn homepage instagram linkedin newsletter producthunt reddit share social telegram twitter wechat weibo whatsapp")
)

func (o Options) drops(p parameter) bool {
	name := strings.ToLower(p.name)
	campaign, ofMailchimp := strings.CutPrefix(name, "mc_")
	switch {
	case strings.HasPrefix(name, "utm_"):
		return !o.KeepUTM
	case sessionNames[name]:
		return !o.KeepSessionIDs
	case name == "s": // a search, or a session
		return !o.KeepSessionIDs && isOpaque(p.value)
	case trackingNames[name], ofMailchimp && campaign != "" && strings.Trim(campaign, "abcdefghijklmnopqrstuvwxyz") == "":
		return !o.KeepTracking
	case name == "ref", name == "source":
		return !o.KeepTracking && (isOpaque(p.value) || channels[strings.ToLower(p.value)] || strings.HasPrefix(p.value, "rss-"))
	case name == "cid", name == "content", name == "term":
		return !o.KeepTracking && isOpaque(p.value)
	}
	return false
}

// isOpaque reports whether a value has a part that no person writes: 16 or more letters and
// digits mixed, or the numbers that analytics give a visitor. UUIDs count without hyphens.
func isOpaque(value string) bool {
	if len(value) == 36 && strings.Count(value, "-") == 4 {
		value = strings.ReplaceAll(value, "-", "")
	}
	if len(value) >= 16 && strings.Contains(value, ".") && strings.Trim(value, ".0123456789") == "" {
		return true
	}
	letters, digits := 0, 0
	for i := range len(value) {
		switch c := value[i]; {
		case '0' <= c && c <= '9':
			digits++
		case isAlphanumeric(c):
			letters++
		default:
			letters, digits = 0, 0
		}
		if letters > 0 && digits > 1 && letters+digits >= 16 {
			return true
		}
	}
	return false
}

// formDecode decodes a name or value as forms encode them. Invalid bytes become U+FFFD.
func formDecode(s string) string {
	decoded := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c, ok := escaped(s[i:])
		switch {
		case ok:
			i += 2
		case s[i] == '+':
			c = ' '
		default:
			c = s[i]
		}
		decoded = append(decoded, c)
	}
	return strings.ToValidUTF8(string(decoded), "\uFFFD")
}

func formEncode(b *strings.Builder, s string) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ':
			b.WriteByte('+')
		case isAlphanumeric(c) || strings.IndexByte("*-._", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&0xF])
		}
	}
}
