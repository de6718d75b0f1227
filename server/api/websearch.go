package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/websearch"
	"nodest/websearch/provider"
)

// webOperations are about web search, pages and citations. They are no commands: those of
// a WebSocket are answered one after another, and a page may take 20 seconds.
var webOperations = []Operation{
	{Route: "GET /websearch", Data: takes(webSetup)},
	{Route: "POST /websearch", Data: takes(webSearch)},
	{Route: "POST /websearch/read", Data: takes(webRead)},
	{Route: "POST /references", Bytes: 8 << 20, Data: takes(webCite)},
}

func webSetup(_ context.Context, c *Call, _ struct{}) (any, error) {
	return struct {
		Providers []string `json:"providers"`
		Intent    string   `json:"intent"`
	}{append([]string{}, c.Web.Providers()...), c.Web.Intent()}, nil
}

type webSearchData struct {
	Query string `json:"query"`
	Limit int    `json:"limit,omitempty"`
}

type wireSearchResult struct {
	Title       string   `json:"title"`
	URL         string   `json:"url"`
	Description string   `json:"description"`
	Date        *op.Time `json:"date,omitempty"`
}

type wireSearchResults struct {
	Results  []wireSearchResult `json:"results"`
	Provider string             `json:"provider"`
	Cached   bool               `json:"cached"`
	Ms       int64              `json:"ms"`
}

func webSearch(ctx context.Context, c *Call, in webSearchData) (any, error) {
	if err := op.CheckText("query", in.Query, 400); err != nil {
		return nil, err
	}
	return Result(func(r provider.Results) wireSearchResults {
		w := wireSearchResults{Results: []wireSearchResult{}, Provider: r.Provider, Cached: r.Cached, Ms: r.Took.Milliseconds()}
		for _, hit := range r.Results {
			out := wireSearchResult{Title: hit.Title, URL: hit.URL, Description: hit.Description}
			if !hit.Date.IsZero() {
				out.Date = op.OptionalTime(&hit.Date)
			}
			w.Results = append(w.Results, out)
		}
		return w
	})(c.Web.Search(ctx, c.UserID, in.Query, in.Limit))
}

type webReadData struct {
	URL      string `json:"url"`
	Question string `json:"question,omitempty"`
}

type wireWebPage struct {
	URL      string      `json:"url"`
	Title    string      `json:"title"`
	Markdown string      `json:"markdown"`
	Snippets []string    `json:"snippets"`
	Links    []wireLink  `json:"links"`
	Images   []wireImage `json:"images"`
	Date     *op.Time    `json:"date,omitempty"`
}

type wireLink struct {
	URL  string `json:"url"`
	Text string `json:"text"`
}

type wireImage struct {
	URL string `json:"url"`
	Alt string `json:"alt"`
}

func webRead(ctx context.Context, c *Call, in webReadData) (any, error) {
	if err := op.CheckText("url", in.URL, 2000); err != nil {
		return nil, err
	}
	if err := op.CheckLength("question", in.Question, 400); err != nil {
		return nil, err
	}
	page, err := c.Web.Read(ctx, c.UserID, in.URL, in.Question)
	if err == nil && c.Room != nil { // while the answer is written
		err = c.Room(len(page.Markdown), 0)
	}
	return Result(func(r *websearch.Reading) wireWebPage {
		w := wireWebPage{
			URL: r.URL, Title: r.Title, Markdown: r.Markdown, Snippets: r.Snippets, Links: []wireLink{}, Images: []wireImage{},
			Date: op.OptionalTime(r.Published),
		}
		for _, l := range r.Links {
			w.Links = append(w.Links, wireLink(l))
		}
		for _, i := range r.Images {
			w.Images = append(w.Images, wireImage(i))
		}
		return w
	})(page, err)
}

type webCiteData struct {
	Answer         string          `json:"answer"`
	WebContents    json.RawMessage `json:"webContents"`
	Mode           string          `json:"mode,omitempty"`
	MinChunkLength int             `json:"minChunkLength,omitempty"`
	MaxRef         *int            `json:"maxRef,omitempty"`
	MinRelScore    *float64        `json:"minRelScore,omitempty"`
	OnlyHostnames  []string        `json:"onlyHostnames,omitempty"`
}

// webContent is a page, as a text or in chunks.
type webContent struct {
	URL    string   `json:"url,omitempty"`
	Title  string   `json:"title,omitempty"`
	Text   string   `json:"text,omitempty"`
	Chunks []string `json:"chunks,omitempty"`
}

// readContents reads pages in the order of the request: an object by address, as in the
// seed, or a list.
func readContents(data []byte) (pages []webContent, err error) {
	if op.IsNull(data) {
		return nil, fault.InvalidField("webContents", "required", "must be set")
	}
	if err := op.CheckKind("webContents", data, "{["); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	first, err := dec.Token()
	for err == nil && dec.More() && len(pages) <= citePages {
		var url any
		if first == json.Delim('{') {
			if url, err = dec.Token(); err != nil {
				break
			}
		}
		var raw json.RawMessage
		if err = dec.Decode(&raw); err != nil {
			break
		}
		var page webContent
		if err := op.DecodeStrict("webContents", raw, &page); err != nil {
			return nil, err
		}
		if name, ok := url.(string); ok {
			page.URL = name
		}
		pages = append(pages, page)
	}
	return pages, err
}

// Limits of a request for citations.
const (
	citeAnswer = 100_000 // code points
	citePages  = 100
	citeText   = 4 << 20 // bytes of all pages
	citeChunks = 20_000  // chunks of one page

	shortAnswer = 400 // UTF-16 units
)

func (in *webCiteData) check(pages []webContent) error {
	if err := op.CheckText("answer", in.Answer, citeAnswer); err != nil {
		return err
	}
	c := &op.Checks{}
	c.That(len(pages) <= citePages, "webContents", "range", "must have at most %d pages", citePages)
	size := 0
	for _, page := range pages {
		c.That(page.URL != "" && len(page.URL) <= 2000, "webContents", "required", "each page needs a url of at most 2,000 characters")
		c.That(len(page.Chunks) <= citeChunks, "webContents", "range", "a page must have at most %d chunks", citeChunks)
		size += len(page.Text)
		for _, chunk := range page.Chunks {
			size += len(chunk)
		}
	}
	c.That(in.Mode == "" || in.Mode == "sentence" || in.Mode == "newline", "mode", "range", "must be sentence or newline")
	c.That(in.MinChunkLength >= 0 && in.MinChunkLength <= 10_000, "minChunkLength", "range", "must be 1 to 10,000")
	op.Between(c, "maxRef", in.MaxRef, 0, 100)
	op.Between(c, "minRelScore", in.MinRelScore, 0, 1)
	if err := c.Err(); err != nil {
		return err
	}
	if size > citeText {
		return fault.New(fault.TooLarge, "the pages have more than 4 MB")
	}
	return nil
}

func webCite(ctx context.Context, c *Call, in webCiteData) (any, error) {
	pages, err := readContents(in.WebContents)
	if err != nil {
		return nil, err
	}
	if err := in.check(pages); err != nil {
		return nil, err
	}
	o := cite.DefaultReferences(cmp.Or(in.Mode, modeFor(in.Answer)))
	o.MinChunkLength, o.Hostnames = in.MinChunkLength, in.OnlyHostnames
	if in.MaxRef != nil {
		o.MaxRef = *in.MaxRef
	}
	if in.MinRelScore != nil {
		o.MinRelScore = *in.MinRelScore
	}
	sources := make([]cite.Source, len(pages))
	for i, page := range pages {
		sources[i] = page.source()
	}
	return c.Web.Cite(ctx, c.UserID, in.Answer, sources, o), nil
}

// modeFor is what gets a mark where the request does not say: the sentences of short answers
// and of those in a dense script, else lines.
func modeFor(answer string) string {
	if dense := len(answer) - utf8.RuneCountInString(answer); cite.Len16(answer) < shortAnswer || dense > len(answer)/3 {
		return cite.BySentence
	}
	return cite.ByLine
}

// source is a page that can be cited: its chunks, or the lines of its text.
func (page webContent) source() cite.Source {
	chunks := page.Chunks
	if chunks == nil {
		chunks = strings.Split(page.Text, "\n")
	}
	source := cite.Source{Kind: cite.KindWeb, Evidence: cite.EvidencePage, URL: page.URL, Title: page.Title}
	for _, text := range chunks {
		source.Chunks = append(source.Chunks, cite.Chunk{Text: text})
	}
	return source
}
