package reader

import (
	"encoding/xml"
	"io"
	"net/url"
	"strings"
)

const maxItems = 200

// item is an entry of a feed.
type item struct{ title, link, date, body string }

// readFeed reads RSS and Atom. The error of any other document is Unsupported.
func readFeed(doc string, base *url.URL) (title, markdown string, links []Link, err error) {
	f := &feed{}
	d := xml.NewDecoder(strings.NewReader(doc))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // decoded already
	for {
		token, err := d.Token()
		if err != nil || len(f.items) > maxItems || len(f.path) > maxDepth {
			break
		}
		f.token(token)
	}
	if !f.known {
		return "", "", nil, &Error{Outcome: Unsupported}
	}
	var b strings.Builder
	for _, it := range f.items[:min(len(f.items), maxItems)] {
		name := strings.Join(strings.Fields(fragmentText(it.title)), " ")
		if u := resolve(base, it.link); u != nil && name != "" {
			links = append(links, Link{u.String(), cut(name, maxLabel)})
		}
		b.WriteString("- " + name)
		if it.date != "" {
			b.WriteString(" (" + strings.Join(strings.Fields(plain(it.date)), " ") + ")")
		}
		if body := fragmentText(it.body); body != "" {
			b.WriteString("\n  " + body)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(fragmentText(f.title)), strings.TrimSpace(b.String()), links, nil
}

// fragmentText is the text of HTML inside a feed, in one line.
func fragmentText(s string) string {
	doc, _, err := parse([]byte(s))
	if err != nil {
		return ""
	}
	strip(doc)
	unwrap(doc)
	return text(doc)
}

type feed struct {
	known bool
	path  []string
	title string
	items []item
}

func (f *feed) token(t xml.Token) {
	switch t := t.(type) {
	case xml.StartElement:
		name := strings.ToLower(t.Name.Local)
		f.known = f.known || name == "rss" || name == "feed" || name == "rdf"
		f.path = append(f.path, name)
		if name == "item" || name == "entry" {
			f.items = append(f.items, item{})
		}
		if name == "link" && len(f.items) > 0 {
			f.link(t)
		}
	case xml.EndElement:
		if len(f.path) > 0 {
			f.path = f.path[:len(f.path)-1]
		}
	case xml.CharData:
		f.text(string(t))
	}
}

// link takes the address of an Atom entry.
func (f *feed) link(t xml.StartElement) {
	it := &f.items[len(f.items)-1]
	href, rel := "", ""
	for _, a := range t.Attr {
		switch a.Name.Local {
		case "href":
			href = a.Value
		case "rel":
			rel = a.Value
		}
	}
	if href != "" && (rel == "" || rel == "alternate") && it.link == "" {
		it.link = href
	}
}

func (f *feed) text(s string) {
	if len(f.path) < 2 {
		return
	}
	in, name := f.path[len(f.path)-2], f.path[len(f.path)-1]
	if len(f.items) == 0 || in != "item" && in != "entry" {
		if name == "title" && len(f.items) == 0 {
			f.title += s
		}
		return
	}
	it := &f.items[len(f.items)-1]
	switch name {
	case "title":
		it.title += s
	case "link":
		it.link += strings.TrimSpace(s)
	case "pubdate", "published", "date":
		it.date += s
	case "updated":
		if it.date == "" {
			it.date = s
		}
	case "description", "summary", "content", "encoded":
		if len(it.body) < 20_000 {
			it.body += s
		}
	}
}
