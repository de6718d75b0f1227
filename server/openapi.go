package server

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"sort"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// openapiYAML is the reference of the REST interface, written by hand; tests
// hold every answer against it.
//
//go:embed openapi.yaml
var openapiYAML []byte

// openapiJSON is the document as clients get it.
var openapiJSON = sync.OnceValue(func() []byte {
	var doc any
	if err := yaml.Unmarshal(openapiYAML, &doc); err != nil {
		panic(fmt.Errorf("openapi.yaml: %w", err)) // embedded above, parsed by a test
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Errorf("openapi.yaml: %w", err))
	}
	return text
})

// docsPage is the document for people: one line per operation, with what it
// takes and answers below it. It needs no script.
var docsPage = sync.OnceValue(func() string {
	var doc struct {
		Info  struct{ Title, Description string }
		Paths map[string]map[string]struct {
			Summary, Description string
			Tags                 []string
		}
	}
	if err := json.Unmarshal(openapiJSON(), &doc); err != nil {
		panic(fmt.Errorf("openapi.yaml: %w", err))
	}
	byTag := map[string][]string{}
	for path, item := range doc.Paths {
		for method, op := range item {
			if op.Summary == "" {
				continue // parameters of all methods
			}
			tag := "other"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			byTag[tag] = append(byTag[tag], fmt.Sprintf("<!--%s %s--><dt><code><b>%s</b> %s</code></dt><dd>%s<p>%s</p></dd>",
				path, method, strings.ToUpper(method), html.EscapeString(path), html.EscapeString(op.Summary), html.EscapeString(op.Description)))
		}
	}
	tags := make([]string, 0, len(byTag))
	for tag := range byTag {
		tags = append(tags, tag)
	}
	sort.Strings(tags)
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%s</title>
<style>body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}dt{margin-top:1rem}dd p{white-space:pre-line;color:#555;margin:.2rem 0}</style>
<h1>%[1]s</h1><p style="white-space:pre-line">%s</p><p>For programs: <a href="/openapi.json">openapi.json</a></p>`, html.EscapeString(doc.Info.Title), html.EscapeString(doc.Info.Description))
	for _, tag := range tags {
		sort.Strings(byTag[tag])
		fmt.Fprintf(&b, "<h2>%s</h2><dl>%s</dl>", html.EscapeString(tag), strings.Join(byTag[tag], "\n"))
	}
	b.WriteString("</html>\n")
	return b.String()
})
