package server

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// openapiYAML is the reference of the REST interface, written by hand; tests
// hold every answer against it.
//
//go:embed openapi.yaml
var openapiYAML []byte

// asyncapiYAML is the same for the frames of the WebSocket. It refers to the
// objects of /openapi.json.
//
//go:embed asyncapi.yaml
var asyncapiYAML []byte

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

// docsOperation is one operation of the document for people.
type docsOperation struct {
	Method, Path string
	Summary      string             `json:"summary"`
	Description  string             `json:"description"`
	Tags         []string           `json:"tags"`
	Answers      map[string]answers `json:"responses"`
}

type answers struct {
	Description string `json:"description"`
	Ref         string `json:"$ref"`
}

// What says what an answer is.
func (a answers) What() string {
	if a.Ref != "" {
		return a.Ref[strings.LastIndex(a.Ref, "/")+1:]
	}
	return a.Description
}

type docsGroup struct {
	Name, Description string
	Operations        []docsOperation
}

// docsPage is the document for people: what there is, what it is for and what it
// answers. It needs no script.
var docsPage = sync.OnceValue(func() string {
	var doc struct {
		Info  struct{ Title, Description string }
		Tags  []docsGroup
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(openapiJSON(), &doc); err != nil {
		panic(fmt.Errorf("openapi.yaml: %w", err)) // a test asks for the page
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			o, ok := docsOf(doc.Paths[path][method])
			if !ok {
				continue
			}
			o.Method, o.Path = strings.ToUpper(method), path
			for i := range doc.Tags {
				if slices.Contains(o.Tags, doc.Tags[i].Name) {
					doc.Tags[i].Operations = append(doc.Tags[i].Operations, o)
				}
			}
		}
	}
	var b strings.Builder
	if err := docsTemplate.Execute(&b, doc); err != nil {
		panic(fmt.Errorf("docs page: %w", err))
	}
	return b.String()
})

func docsOf(raw json.RawMessage) (o docsOperation, ok bool) {
	return o, raw != nil && json.Unmarshal(raw, &o) == nil
}

var docsTemplate = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Info.Title}}</title>
<style>body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}p{white-space:pre-line}
dt{margin-top:1rem}dd p{color:#555;margin:.2rem 0}ul{margin:.2rem 0;color:#555}</style>
<h1>{{.Info.Title}}</h1>
<p>{{.Info.Description}}</p>
<p>For programs: <a href="/openapi.json">openapi.json</a> (REST), <a href="/asyncapi.yaml">asyncapi.yaml</a> (WebSocket).</p>
{{range .Tags}}<h2>{{.Name}}</h2>
<p>{{.Description}}</p>
<dl>{{range .Operations}}<dt><code><b>{{.Method}}</b> {{.Path}}</code></dt>
<dd>{{.Summary}}{{with .Description}}<p>{{.}}</p>{{end}}
<ul>{{range $status, $answer := .Answers}}<li>{{$status}}: {{$answer.What}}</li>{{end}}</ul></dd>
{{end}}</dl>
{{end}}</html>
`))
