package reader

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxLinks = 500
	maxLabel = 300 // characters of a link's or an image's text
	maxTitle = 300 // characters
)

// head is what the head of a page says about it.
type head struct {
	title     string // the title element, as it is
	site      string
	canonical string
	base      *url.URL
	lang      string
	meta      map[string]string // by lower-case name or property; the first one counts
	refresh   string            // where the page sends its visitors, or ""
}

func readHead(doc *html.Node, at *url.URL) head {
	h := head{base: at, meta: map[string]string{}}
	for n := range nodes(doc) {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.DataAtom {
		case atom.Html:
			h.lang = primary(attr(n, "lang"))
		case atom.Title:
			if h.title == "" && n.Namespace == "" {
				h.title = cut(text(n), maxTitle)
			}
		case atom.Base:
			if u := resolve(at, attr(n, "href")); u != nil && h.base == at {
				h.base = u
			}
		case atom.Link:
			if strings.EqualFold(attr(n, "rel"), "canonical") && h.canonical == "" {
				h.canonical = attr(n, "href")
			}
		case atom.Meta:
			h.readMeta(n)
		}
	}
	h.site = h.meta["og:site_name"]
	h.canonical = canonical(h.base, at, h.canonical)
	return h
}

func (h *head) readMeta(n *html.Node) {
	content := strings.TrimSpace(attr(n, "content"))
	if strings.EqualFold(attr(n, "http-equiv"), "refresh") && h.refresh == "" {
		h.refresh = refresh(content)
	}
	for _, key := range []string{"property", "name", "itemprop"} {
		if k := strings.ToLower(attr(n, key)); k != "" && h.meta[k] == "" && len(h.meta) < 200 {
			h.meta[k] = content
		}
	}
}

var refreshTo = regexp.MustCompile(`(?i)^\s*(\d{1,3})[\d.]*\s*[;,]\s*(?:url\s*=\s*)?["']?([^"']+)`)

// refresh returns the address of a meta refresh of at most 10 seconds.
func refresh(content string) string {
	m := refreshTo.FindStringSubmatch(content)
	if m == nil {
		return ""
	}
	if s, err := strconv.Atoi(m[1]); err != nil || s > 10 {
		return ""
	}
	return strings.TrimSpace(m[2])
}

func primary(lang string) string {
	lang, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(lang)), "-")
	lang, _, _ = strings.Cut(lang, "_")
	if len(lang) < 2 || len(lang) > 3 {
		return ""
	}
	return lang
}

// resolve returns the absolute address of a reference, or nil if it does not lead to another page.
func resolve(base *url.URL, ref string) *url.URL {
	ref = strings.TrimSpace(ref)
	if ref == "" || strings.HasPrefix(ref, "#") || len(ref) > 2048 {
		return nil
	}
	u, err := base.Parse(ref)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil
	}
	return u
}

// canonical returns the address that a page gives as its own, if it is on the same host.
func canonical(base, at *url.URL, ref string) string {
	u := resolve(base, ref)
	if u == nil || bareHost(u) != bareHost(at) {
		return ""
	}
	u.Fragment = ""
	return u.String()
}

func bareHost(u *url.URL) string {
	return strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
}

// title is the first main heading if the title element begins with it, or else the title
// element without the name of the site.
func (h head) pageTitle(h1 string) string {
	title := h.title
	switch {
	case h1 != "" && (title == "" || strings.HasPrefix(strings.ToLower(title), strings.ToLower(h1))):
		return cut(h1, maxTitle)
	case title == "":
		return cut(h.meta["og:title"], maxTitle)
	}
	return withoutSite(title, h.site)
}

var separator = regexp.MustCompile(`\s+[|｜–—·•»:-]\s+|\s*[|｜_]\s*|\s*—\s*`)

func withoutSite(title, site string) string {
	at := separator.FindAllStringIndex(title, -1)
	if len(at) == 0 {
		return title
	}
	last := at[len(at)-1]
	left, right := strings.TrimSpace(title[:last[0]]), strings.TrimSpace(title[last[1]:])
	switch {
	case left == "" || right == "":
		return title
	case strings.EqualFold(right, site):
		return left
	case strings.EqualFold(left, site):
		return right
	case strings.ContainsAny(title[last[0]:last[1]], ":"): // seldom before a site
		return title
	case strings.ContainsAny(title[last[0]:last[1]], "|｜_"), weight(right) <= weight(left):
		return left
	}
	return title
}

// Link is a link of a page.
type Link struct {
	URL  string // absolute
	Text string
}

// Image is an image of a page.
type Image struct {
	URL string // absolute
	Alt string
}

// references returns the links and images under root, each address once.
func references(root *html.Node, base *url.URL) (links []Link, images []Image) {
	seen := map[string]bool{}
	add := func(ref string) string {
		u := resolve(base, ref)
		if u == nil {
			return ""
		}
		s := u.String()
		if seen[s] {
			return ""
		}
		seen[s] = true
		return s
	}
	for n := range nodes(root) {
		switch {
		case is(n, atom.A) && len(links) < maxLinks:
			if t := cut(text(n), maxLabel); t != "" {
				if s := add(attr(n, "href")); s != "" {
					links = append(links, Link{s, t})
				}
			}
		case is(n, atom.Img) && len(images) < maxLinks:
			if s := add(attr(n, "src")); s != "" {
				images = append(images, Image{s, cut(strings.Join(strings.Fields(attr(n, "alt")), " "), maxLabel)})
			}
		}
	}
	return links, images
}

// cut returns the first n characters of s.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}

// units is the length of s in UTF-16 code units.
func units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// languageOf text whose page does not say it: by its script, or "".
func languageOfText(s string) string {
	var kana, han, hangul, all int
	for _, r := range cut(s, 4000) {
		switch {
		case r >= 0x3040 && r <= 0x30FF:
			kana++
		case r >= 0x4E00 && r <= 0x9FFF:
			han++
		case r >= 0xAC00 && r <= 0xD7A3:
			hangul++
		}
		if r > ' ' {
			all++
		}
	}
	switch {
	case kana*20 > all:
		return "ja"
	case hangul*5 > all:
		return "ko"
	case han*5 > all:
		return "zh"
	}
	return ""
}

// Date is when a page was published, as far as it is known.
type Date struct {
	Time       time.Time
	Confidence int // 0 to 100; dates below 70 should not be relied on
}
