package reader

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
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
	sureModified = 70 // a change of the text, not of the file
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
	isoDate = regexp.MustCompile(`\b(?P<year>(?:19|20)\d\d)[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?:\b|T|日)`)
	months  = data.Ranks("months")

	inCharacters, withNames = data.List("date"), data.List("date-with-name")
)

// dateForms are the forms of a date in a text, those first that say more clearly what is what.
var dateForms = sync.OnceValue(func() (all []*regexp.Regexp) {
	for _, e := range inCharacters() {
		all = append(all, e.Regexp)
	}
	all = append(all, isoDate)
	for _, e := range withNames() {
		all = append(all, e.Regexp)
	}
	return all
})

// visibleDate returns the first date of a text as 2006-01-02, or "".
func visibleDate(s string) string {
	for _, form := range dateForms() {
		if m := form.FindStringSubmatch(s); m != nil {
			part := func(name string) string { return m[form.SubexpIndex(name)] }
			return ymd(part("year"), month(part("month")), part("day"))
		}
	}
	return ""
}

// month is a month as a number.
func month(name string) string {
	if rank, ok := months()[strings.ToLower(name)]; ok {
		return strconv.Itoa(rank + 1)
	}
	return name
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
