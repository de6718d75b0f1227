package reader

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The confidence in each source of a date.
const (
	sureMeta     = 95
	sureLinked   = 90
	sureTime     = 85
	sureVisible  = 75
	sureModified = 70 // of the text, not of the file
	sureHeader   = 40 // often the time of the request
)

// published returns the best date of a page. now excludes dates in the future.
func published(h head, linked [][]byte, body *html.Node, lastModified string, now time.Time) Date {
	try := func(s string, sure int) Date {
		t, ok := readTime(s)
		if !ok || t.Year() < 1990 || t.After(now.Add(48*time.Hour)) {
			return Date{}
		}
		return Date{t, sure}
	}
	for _, key := range []string{"article:published_time", "datepublished", "citation_publication_date", "dc.date.issued", "dcterms.created", "pubdate", "parsely-pub-date", "date", "dc.date"} {
		if d := try(h.meta[key], sureMeta); d.Confidence > 0 {
			return d
		}
	}
	dates := linkedDates(linked)
	if d := try(dates["datePublished"], sureLinked); d.Confidence > 0 {
		return d
	}
	for _, s := range nearTitle(body) {
		if d := try(s.text, s.sure); d.Confidence > 0 {
			return d
		}
	}
	for _, s := range []string{dates["dateModified"], h.meta["article:modified_time"], h.meta["datemodified"], h.meta["last-modified"]} {
		if d := try(s, sureModified); d.Confidence > 0 {
			return d
		}
	}
	return try(lastModified, sureHeader)
}

// linkedDates returns the first datePublished and dateModified in JSON-LD.
func linkedDates(scripts [][]byte) map[string]string {
	found := map[string]string{}
	for _, s := range scripts {
		var v any
		if json.Unmarshal([]byte(html.UnescapeString(string(s))), &v) != nil && json.Unmarshal(s, &v) != nil {
			continue
		}
		todo := []any{v}
		for len(todo) > 0 {
			v := todo[0]
			todo = todo[1:]
			switch v := v.(type) {
			case []any:
				todo = append(todo, v...)
			case map[string]any:
				for _, key := range []string{"datePublished", "dateModified"} {
					if s, ok := v[key].(string); ok && found[key] == "" {
						found[key] = s
					}
				}
				for _, key := range []string{"@graph", "mainEntity", "mainEntityOfPage"} {
					if v[key] != nil {
						todo = append(todo, v[key])
					}
				}
			}
		}
	}
	return found
}

type candidate struct {
	text string
	sure int
}

// nearTitle returns the dates in time elements and in the short blocks right after the
// first main heading, or at the top of a page without one.
func nearTitle(body *html.Node) (found []candidate) {
	start := first(body, atom.H1)
	after, blocks, chars := start == nil, 0, 0
	for n := range nodes(body) {
		if n == start {
			after = true
		}
		if !after || n.Type == html.TextNode && within(n, atom.H1) != nil {
			continue
		}
		switch {
		case is(n, atom.Time):
			s := attr(n, "datetime")
			if s == "" {
				s = text(n)
			}
			found = append(found, candidate{s, sureTime})
		case n.Type == html.TextNode && strings.TrimSpace(n.Data) != "":
			if len(n.Data) < 200 && strings.ContainsAny(n.Data, "0123456789") {
				found = append(found, candidate{visibleDate(n.Data), sureVisible})
			}
			chars += len(n.Data)
			if blocks++; blocks > 12 || chars > 600 {
				return found
			}
		}
	}
	return found
}

var (
	isoDate  = regexp.MustCompile(`\b((?:19|20)\d\d)[-/.](\d{1,2})[-/.](\d{1,2})(?:\b|T|日)`)
	cjkDate  = regexp.MustCompile(`((?:19|20)\d\d)\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号號일]`)
	dayFirst = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th)?\.? (?:of )?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?,? ((?:19|20)\d\d)\b`)
	dayLast  = regexp.MustCompile(`(?i)\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?,? ((?:19|20)\d\d)\b`)
	months   = "janfebmaraprmayjunjulaugsepoctnovdec"
)

// visibleDate returns the first date of a text as 2006-01-02, or "".
func visibleDate(s string) string {
	for _, re := range []*regexp.Regexp{cjkDate, isoDate} {
		if m := re.FindStringSubmatch(s); m != nil {
			return ymd(m[1], m[2], m[3])
		}
	}
	if m := dayFirst.FindStringSubmatch(s); m != nil {
		return ymd(m[3], month(m[2]), m[1])
	}
	if m := dayLast.FindStringSubmatch(s); m != nil {
		return ymd(m[3], month(m[1]), m[2])
	}
	return ""
}

func month(name string) string {
	return strconv.Itoa(strings.Index(months, strings.ToLower(name))/3 + 1)
}

func ymd(y, m, d string) string {
	return y + "-" + ("0" + m)[len(m)-1:] + "-" + ("0" + d)[len(d)-1:]
}

// readTime reads the forms that pages and headers use.
func readTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 8 || len(s) > 60 {
		return time.Time{}, false
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04",
		"2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly, "2006/01/02", "20060102",
		time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC, "Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 -0700",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	if found := visibleDate(s); found != "" {
		t, err := time.Parse(time.DateOnly, found)
		return t, err == nil
	}
	return time.Time{}, false
}
