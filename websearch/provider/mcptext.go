package provider

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"nodest/llm/loose"
)

// maxDepth bounds how deep results are looked for in JSON.
const maxDepth = 8

// The names that servers have for the fields of a result.
var (
	urlNames         = []string{"url", "link", "href", "uri"}
	titleNames       = []string{"title", "name", "headline"}
	descriptionNames = []string{"description", "snippet", "summary", "content", "text", "body", "excerpt", "highlights"}
	dateNames        = []string{"date", "publishedDate", "published_date", "published", "publishedAt", "published_at", "page_age", "age"}
)

// fromText reads results from the text of a tool: JSON, or lines as fromLines reads
// them. known is false if the text seems to hold something else.
func fromText(s string, now time.Time) (found []Result, known bool) {
	s = strings.TrimSpace(strings.TrimPrefix(s, "\ufeff"))
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		var v any
		if loose.Unmarshal([]byte(s), &v) == nil {
			return fromValue(v, now)
		}
	}
	found = fromLines(s, now)
	return found, len(found) > 0 || s == "" || nothingFound.MatchString(s)
}

var nothingFound = regexp.MustCompile(`(?i)\b(?:no|0|zero)\b.{0,40}\b(?:results?|matches|found)\b|\bnot find\b|没有找到|未找到|无结果`)

// fromValue collects all objects with an address and a title or a description, in the
// order of lists and of the names of members. known is true if there is a list.
func fromValue(v any, now time.Time) (found []Result, known bool) {
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		if depth > maxDepth || len(found) >= maxCount {
			return
		}
		switch v := v.(type) {
		case []any:
			known = true
			for _, e := range v {
				walk(e, depth+1)
			}
		case map[string]any:
			address, title, text := member(v, urlNames), member(v, titleNames), member(v, descriptionNames)
			if address != "" && (title != "" || text != "") {
				found = add(found, title, address, text, date(member(v, dateNames), now))
				return
			}
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k], depth+1)
			}
		}
	}
	walk(v, 0)
	return found, known
}

// member returns the first of some members that is a text, or a list of texts.
func member(object map[string]any, names []string) string {
	for _, n := range names {
		switch v := object[n].(type) {
		case string:
			if v != "" {
				return v
			}
		case []any:
			var texts []string
			for _, e := range v[:min(len(v), 10)] {
				if s, ok := e.(string); ok {
					texts = append(texts, s)
				}
			}
			if len(texts) > 0 {
				return strings.Join(texts, " … ")
			}
		}
	}
	return ""
}

var (
	labelLine    = regexp.MustCompile(`(?i)^(?:[-*+•#\s]|\d{1,3}[.)])*\**(title|url|link|description|snippet|summary|content|text|highlights|published(?: date)?|date|age)\**\s?[:：]\**\s*(.*)$`)
	markdownLink = regexp.MustCompile(`^(?:[-*+•#>\s]|\d{1,3}[.)]|\[\d{1,3}\])*\**\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\((https?://[^\s()]+(?:\([^\s()]*\)[^\s()]*)*)[^)]*\)\**(.*)$`)
	bareAddress  = regexp.MustCompile(`^(?:[-*+•#>\s]|\d{1,3}[.)])*<?(https?://\S+?)>?$`)
	numbered     = regexp.MustCompile(`^(?:#+\s*)?(?:\d{1,3}[.)]|\[\d{1,3}\]|#{1,6})\s+\**(.+?)\**$`)
)

// lineParser reads a list of results for people.
type lineParser struct {
	now   time.Time
	found []Result
	item  lineItem
}

type lineItem struct{ title, address, text, date string }

// fromLines reads results from lines in the forms that search tools have: Markdown
// links, numbered titles with an address below, and labelled fields ("Title: …").
func fromLines(s string, now time.Time) []Result {
	p := lineParser{now: now}
	for line := range strings.Lines(s) {
		if p.line(strings.TrimSpace(line[:min(len(line), maxMarkup)])); len(p.found) >= maxCount {
			return p.found
		}
	}
	p.flush()
	return p.found
}

func (p *lineParser) line(s string) {
	switch {
	case strings.Trim(s, "-=*_ ") == "": // empty, or a line between results
	case labelLine.MatchString(s):
		m := labelLine.FindStringSubmatch(s)
		p.field(strings.ToLower(m[1]), m[2])
	case markdownLink.MatchString(s):
		m := markdownLink.FindStringSubmatch(s)
		p.flush()
		p.item = lineItem{title: m[1], address: m[2], text: strings.TrimLeft(m[3], " :：-–—")}
	case bareAddress.MatchString(s):
		p.field("url", bareAddress.FindStringSubmatch(s)[1])
	case numbered.MatchString(s):
		p.field("title", numbered.FindStringSubmatch(s)[1])
	case p.item.title == "" && p.item.address == "":
		// Text before the first result.
	case len(p.item.text) < maxMarkup:
		p.item.text += " " + s
	}
}

// field sets a field. A title or an address begins a result if there is one already.
func (p *lineParser) field(name, value string) {
	switch name {
	case "title":
		if p.item.title != "" {
			p.flush()
		}
		p.item.title = value
	case "url", "link":
		if p.item.address != "" {
			p.flush()
		}
		if m := markdownLink.FindStringSubmatch(value); m != nil {
			value = m[2]
		}
		p.item.address = strings.Trim(value, "<>")
	case "published", "published date", "date", "age":
		p.item.date = value
	default:
		p.item.text = strings.TrimSpace(p.item.text + " " + value)
	}
}

// flush ends a result.
func (p *lineParser) flush() {
	if it := p.item; it.address != "" {
		p.found = add(p.found, it.title, it.address, it.text, date(it.date, p.now))
	}
	p.item = lineItem{}
}
