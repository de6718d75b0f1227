package provider

import (
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of a result, in code points; of an address in bytes. maxMarkup bounds what is
// read of a text with its tags, in bytes.
const (
	maxTitle       = 300
	maxDescription = 2000
	maxURL         = 2048
	maxMarkup      = 64 << 10
)

// add appends a result, unless its address is not one of a web page.
func add[T ~string](to []Result, title, address, description T, date time.Time) []Result {
	page, ok := pageURL(string(address))
	if !ok {
		return to
	}
	name := cut(plain(string(title)), maxTitle)
	if name == "" {
		name = cut(page, maxTitle)
	}
	return append(to, Result{Title: name, URL: page, Description: cut(plain(string(description)), maxDescription), Date: date})
}

// pageURL returns the address of a web page. It refuses other schemes (javascript:,
// data:, file:), addresses with a user name, and what is too long or not valid.
func pageURL(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if len(s) > maxURL || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "", false
	}
	return s, true
}

// plain returns the text of an HTML fragment as one line: without tags, comments and
// scripts, with entities decoded. A word in angle brackets that is not an HTML element
// stays, as in "vector<int>".
func plain(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxMarkup)], "")
	if !strings.ContainsAny(s, "<&") {
		return oneLine(s)
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s))
	hidden := atom.Atom(0) // the element whose content is left out
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return oneLine(b.String())
		}
		raw := string(z.Raw())
		t := z.Token()
		switch {
		case hidden != 0:
			if kind == html.EndTagToken && t.DataAtom == hidden {
				hidden = 0
			}
		case kind == html.TextToken:
			b.WriteString(t.Data)
		case kind == html.StartTagToken && (t.DataAtom == atom.Script || t.DataAtom == atom.Style):
			hidden = t.DataAtom
		case kind == html.StartTagToken && t.DataAtom == 0 && len(t.Attr) == 0:
			b.WriteString(raw)
		case separates(t.DataAtom):
			b.WriteByte(' ')
		}
	}
}

// separates reports whether an element begins a new line or cell, so that the words
// before and after it are separate.
func separates(a atom.Atom) bool {
	switch a {
	case atom.Br, atom.P, atom.Div, atom.Li, atom.Ul, atom.Ol, atom.Td, atom.Th, atom.Tr,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.Hr, atom.Img:
		return true
	}
	return false
}

// oneLine makes one line of valid UTF-8 without control and invisible formatting characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d': // the joiners belong to words
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// first returns at most n code points of s.
func first(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n]))
}

// cut is first with "…" at the end of a text that was cut.
func cut(s string, n int) string {
	if short := first(s, n); short != s {
		return first(s, n-1) + "…"
	}
	return s
}

// dateLayouts are the forms in which providers write dates. Those without a zone are taken as UTC.
var dateLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02",
	"January 2, 2006", "Jan 2, 2006", "2 January 2006", "2 Jan 2006",
	time.RFC1123, time.RFC1123Z, "2006年1月2日", "2006/1/2",
}

var (
	ages      = data.List("age")
	unitRanks = data.Ranks("units")
	units     = []time.Duration{time.Second, time.Minute, time.Hour, day, 7 * day, 30 * day, 365 * day} // by rank
)

const day = 24 * time.Hour

// date reads a date as providers write it, or an age ("2 days ago"). It returns the zero
// time if there is none, or if it is not plausible.
func date(s string, now time.Time) time.Time {
	if s = strings.TrimSpace(s); s == "" || len(s) > 64 {
		return time.Time{}
	}
	for _, age := range ages() {
		if m := age.FindStringSubmatch(s); m != nil {
			n, _ := strconv.Atoi(m[age.SubexpIndex("count")]) // digits
			unit := units[unitRanks()[strings.ToLower(m[age.SubexpIndex("unit")])]]
			return plausible(now.Add(-time.Duration(n)*unit).UTC(), now)
		}
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return plausible(t.UTC(), now)
		}
	}
	return time.Time{}
}

// plausible returns t if a web page can be of that time, else the zero time.
func plausible(t, now time.Time) time.Time {
	if t.Year() < 1990 || t.After(now.Add(2*day)) {
		return time.Time{}
	}
	return t
}
