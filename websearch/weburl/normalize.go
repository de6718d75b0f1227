package weburl

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/nlnwa/whatwg-url/url"

	"nodest/internal/fault"
)

// maxURL is the maximum length of an address in bytes, as given and as returned.
const maxURL = 4096

// Options change what Normalize removes and accepts. The zero value is what web search uses.
type Options struct {
	KeepAnchor     bool                   // the fragment, unless it is empty or the top of the page
	KeepSessionIDs bool                   // parameters such as "sid" and "phpsessid"
	KeepUTM        bool                   // parameters that begin with "utm_"
	KeepTracking   bool                   // parameters such as "gclid"
	KeepXAnalytics bool                   // the path /analytics of a post on x.com
	AllowPrivate   func(host string) bool // hosts that may be private or local; nil: none
}

// Normalize returns the one spelling of the address of a web page. The address is parsed as
// browsers do. The result has no "www.", no trailing slash, no tracking parameters, and its
// parameters are sorted. Apart from hosts that begin with "www.www.", normalizing the result
// again does not change it.
//
// It returns fault.Invalid for what is no http(s) address, for addresses with a user name or
// longer than 4,096 bytes, for private and local hosts, and for the pages of search engines.
func Normalize(raw string, o Options) (string, error) {
	u, err := parse(raw)
	if err != nil {
		return "", err
	}
	host := withoutWWW(strings.TrimSuffix(u.Hostname(), "."))
	path := cleanPath(u.Pathname())
	if !o.KeepXAnalytics {
		path = withoutAnalytics(host, path)
	}
	if err := checkHost(host, path, o.AllowPrivate); err != nil {
		return "", err
	}
	result := u.Scheme() + "://" + host
	if u.Port() != "" {
		result += ":" + u.Port()
	}
	result += path
	if query := o.cleanQuery(u.Query()); query != "" {
		result += "?" + query
	}
	if o.KeepAnchor && anchors(u.Fragment()) {
		result += "#" + u.Fragment()
	}
	if len(result) > maxURL {
		return "", fault.New(fault.Invalid, "address longer than %d bytes", maxURL)
	}
	return result, nil
}

func parse(raw string) (*url.Url, error) {
	if len(raw) > maxURL {
		return nil, fault.New(fault.Invalid, "address longer than %d bytes", maxURL)
	}
	u, err := url.Parse(strings.Map(dropSpace, raw))
	if err != nil || u.Scheme() != "http" && u.Scheme() != "https" {
		return nil, fault.New(fault.Invalid, "not an http or https address")
	}
	if u.Username() != "" || u.Password() != "" {
		return nil, fault.New(fault.Invalid, "address with a user name or password")
	}
	return u, nil
}

// anchors reports whether a fragment leads to a part of the page.
func anchors(fragment string) bool { return fragment != "" && fragment != "top" && fragment != "/" }

func dropSpace(r rune) rune {
	if unicode.IsSpace(r) || unicode.Is(unicode.Z, r) || r == '\uFEFF' {
		return -1
	}
	return r
}

// cleanPath removes empty segments and decodes what has the same meaning when it is not
// encoded. Dot segments are resolved already.
func cleanPath(path string) string {
	var b strings.Builder
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" {
			b.WriteByte('/')
			writeSegment(&b, segment)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// writeSegment decodes escapes of unreserved characters; other escapes get capital letters. A
// percent sign that begins no escape stays, and so does an escape right behind it whose
// character would complete one.
func writeSegment(b *strings.Builder, s string) {
	stray := -3 // where the last percent sign stands that begins no escape
	for i := 0; i < len(s); {
		start := b.Len()
		c, ok := escaped(s[i:])
		switch {
		case !ok:
			if s[i] == '%' {
				stray = start
			}
			b.WriteByte(s[i])
			i++
			continue
		case isUnreserved(c) && (start-stray > 2 || !isHex(c)):
			b.WriteByte(c)
		default:
			b.WriteString(strings.ToUpper(s[i : i+3]))
		}
		i += 3
	}
}

// escaped returns the byte that s begins with in the form %XX.
func escaped(s string) (byte, bool) {
	if len(s) < 3 || s[0] != '%' || !isHex(s[1]) || !isHex(s[2]) {
		return 0, false
	}
	return hexValue(s[1])<<4 | hexValue(s[2]), true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&0xF + 9
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isUnreserved(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("-._~", c) >= 0
}

var analytics = regexp.MustCompile(`(?i)^(/[^/]+/status/\d+)/analytics$`)

func withoutAnalytics(host, path string) string {
	if host == "x.com" || host == "twitter.com" {
		return analytics.ReplaceAllString(path, "$1")
	}
	return path
}

var indexPage = regexp.MustCompile(`(?:/|/index\.html?)$`)

// key is equal for addresses that very likely show the same page although they differ: http
// and https, and the index page of a folder. It is for comparison only.
func key(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	page, query, _ := strings.Cut(strings.TrimPrefix(rest, "www."), "?")
	return indexPage.ReplaceAllString(page, "") + "?" + query
}
