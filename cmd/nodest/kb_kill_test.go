package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/knowledge"
	"nodest/llm/offline"
	"nodest/store"
)

// sentDocument is a document that a client wants to be there.
type sentDocument struct {
	name string
	data []byte
	next []byte // replaces data; nil = nothing does
	id   string // id of the file, as soon as the server has acknowledged it

	replaced bool // acknowledged, too
}

// content is what the server must have in the end.
func (d *sentDocument) content() []byte {
	if d.next != nil {
		return d.next
	}
	return d.data
}

// TestDocumentsSurviveKills kills the server while documents are uploaded, replaced, parsed and
// embedded. In the end each is ready once, and what was made of it is the same as without kills.
func TestDocumentsSurviveKills(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		kills, files, moment := scaled(t, 2, 20), 30, 700
		if url != "" { // another process takes over after the lease
			moment = 4_000
		}
		rng := newRand(t)
		sent := sampleDocuments(rng, files)
		want := undisturbed(t, sent)
		inst := newInstallation(t, url).fast(t)
		p := inst.start(t)
		began := time.Now()
		for n := range kills {
			some := sent[:min(files, (n+1)*files/kills)]
			p.killDuring(t, milliseconds(rng.IntN(moment)), func(ctx context.Context, c *cli.Client) { _ = upload(ctx, c, some) })
			p = inst.start(t)
		}
		if err := upload(t.Context(), p.client, sent); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all documents", func() error { return areReady(t, p.client, sent) })
		took := time.Since(began)
		for _, d := range sent {
			if got, want := original(t, p.client, d.id), d.content(); !bytes.Equal(got, want) {
				t.Fatalf("%s: original(t, p.client, d.id) is %q, want %q", d.name, got, want)
			}
		}
		verifyLog(t, p.client)
		p.stop(t)
		if got := indexed(t, inst, sent); !reflect.DeepEqual(got, want) {
			t.Fatalf("indexed(t, inst, sent) is %+v, want %+v", got, want)
		}
		found, err := store.CountDocuments(t.Context(), inst.options())
		if err != nil {
			t.Fatal(err)
		}
		if want := (map[string]int64{knowledge.Ready: int64(files)}); !reflect.DeepEqual(found.Files, want) {
			t.Fatalf("found.Files is %+v, want %+v", found.Files, want)
		}
		if len(found.Orphans) != 0 {
			t.Fatalf("found.Orphans is %+v, want none", found.Orphans)
		}
		if found.Abandoned > int64(kills) {
			t.Fatalf("contents of uploads that a kill has ended: found.Abandoned is %d, want at most %d", found.Abandoned, int64(kills))
		}
		t.Logf("%d kills, %d documents ready once in %s, %.1f files/s, 0 lost", kills, files, took.Round(time.Millisecond), float64(files)/took.Seconds())
	})
}

// undisturbed processes documents without kills, and returns what is made of them.
func undisturbed(t *testing.T, sent []*sentDocument) map[string]madeOf {
	t.Helper()
	inst := newInstallation(t, "").fast(t)
	p := inst.start(t)
	final := make([]*sentDocument, len(sent))
	began := time.Now()
	for i, d := range sent {
		final[i] = &sentDocument{name: d.name, data: d.content()}
	}
	if err := upload(t.Context(), p.client, final); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all documents without kills", func() error { return areReady(t, p.client, final) })
	t.Logf("without kills: %.1f files/s", float64(len(sent))/time.Since(began).Seconds())
	p.stop(t)
	return indexed(t, inst, final)
}

// killDuring kills the server after a while, in which act uses it.
func (p *process) killDuring(t *testing.T, after time.Duration, act func(ctx context.Context, c *cli.Client)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		act(ctx, p.client)
	}()
	select {
	case <-time.After(after):
	case err := <-p.exited:
		t.Fatalf("the server ended by itself: %v\n%s", err, p.stderr)
	}
	p.kill(t)
	cancel()
	<-ended
}

// upload sends what has not been acknowledged, one document after another, and replaces those
// that are to be replaced.
func upload(ctx context.Context, c *cli.Client, sent []*sentDocument) error {
	for _, d := range sent {
		if d.id == "" {
			var got struct{ File cli.Item }
			if err := c.Upload(ctx, "/api/v1/files", d.name, d.data, nil, &got); err != nil {
				return err
			}
			d.id = got.File.ID
		}
		if d.next != nil && !d.replaced {
			if err := replace(ctx, c, d.id, d.next); err != nil {
				return err
			}
			d.replaced = true
		}
	}
	return nil
}

// replace gives a file another content.
func replace(ctx context.Context, c *cli.Client, id string, data []byte) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "next")
	if err != nil {
		return err
	}
	if _, err := part.Write(data); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.Base+"/api/v1/files/"+id+"/content", &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// areReady returns errNotYet until all documents are ready. Each is there once, and nothing else.
func areReady(t *testing.T, c *cli.Client, sent []*sentDocument) error {
	t.Helper()
	files, err := cli.All[struct {
		ID, Name, State string
		Error           json.RawMessage
	}](t.Context(), c, "/api/v1/files")
	if err != nil {
		return err
	}
	if len(files) != len(sent) {
		t.Fatalf("files has %d, want %d: %+v", len(files), len(sent), files)
	}
	names := map[string]string{}
	for _, d := range sent {
		names[d.id] = d.name
	}
	waiting := 0
	for _, f := range files {
		if f.State == knowledge.Failed {
			t.Fatalf("%s: %s: got %q, want another", f.Name, f.Error, f.State)
		}
		if f.Name != names[f.ID] {
			t.Fatalf("an acknowledged upload: f.Name is %q, want %q", f.Name, names[f.ID])
		}
		if f.State != knowledge.Ready {
			waiting++
		}
	}
	if waiting > 0 {
		return fmt.Errorf("%d of %d: %w", waiting, len(files), errNotYet)
	}
	return nil
}

// original downloads the content of a file.
func original(t *testing.T, c *cli.Client, id string) []byte {
	t.Helper()
	res, err := c.Send(t.Context(), http.MethodGet, "/api/v1/files/"+id+"/content", nil, "*/*")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	var body bytes.Buffer
	_, err = body.ReadFrom(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}

// madeOf is what was made of a document.
type madeOf struct {
	Rows     map[string]int64 // by table
	Chunks   int
	Embedded int // chunks with a vector
}

// indexed reads the database of a server that has stopped.
func indexed(t *testing.T, inst *installation, sent []*sentDocument) map[string]madeOf {
	t.Helper()
	db, err := store.Open(t.Context(), inst.options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	users, err := db.Users(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(users) != 1 {
		t.Fatalf("users has %d, want %d: %+v", len(users), 1, users)
	}
	made := map[string]madeOf{}
	err = db.Knowledge().View(t.Context(), users[0].ID, func(tx knowledge.Tx) error {
		for _, d := range sent {
			m, err := madeOfFile(tx, d.id)
			if err != nil {
				return err
			}
			if m.Embedded != m.Chunks {
				t.Fatalf("vectors of %s: m.Embedded is %d, want %d", d.name, m.Embedded, m.Chunks)
			}
			made[d.name] = m
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func madeOfFile(tx knowledge.Tx, id string) (m madeOf, err error) {
	f, err := tx.OwnFile(id)
	if err != nil {
		return m, err
	}
	if m.Rows, err = tx.IndexRows(id); err != nil {
		return m, err
	}
	m.Chunks = f.Chunks
	m.Embedded, _, err = tx.EditionCoverage(id, f.Edition, offline.Embedder{}.ModelID())
	return m, err
}

// sampleDocuments are texts in several formats, two of which are to be replaced.
func sampleDocuments(rng *rand.Rand, n int) []*sentDocument {
	made := make([]*sentDocument, n)
	for i := range made {
		format := formats[i%len(formats)]
		made[i] = &sentDocument{name: fmt.Sprintf("part-%02d.%s", i, format.ext), data: format.file(paragraphs(rng, i))}
		if i == n/3 || i == n/2 {
			made[i].next = format.file(append(paragraphs(rng, i), "The second keeper came later."))
		}
	}
	return made
}

// paragraphs make some dozen chunks.
func paragraphs(rng *rand.Rand, no int) []string {
	words := strings.Fields("harbour keeper lamp fog tide rope ferry brewery storm ledger granite signal winter copper orchard bridge")
	made := make([]string, 30+rng.IntN(60))
	for i := range made {
		sentence := fmt.Sprintf("Paragraph %d of document %d:", i, no)
		for range 60 {
			sentence += " " + words[rng.IntN(len(words))]
		}
		made[i] = sentence + "."
	}
	return made
}

// formats write paragraphs as files.
var formats = []struct {
	ext  string
	file func(paragraphs []string) []byte
}{
	{"md", func(p []string) []byte { return []byte("# Lore\n\n" + strings.Join(p, "\n\n## Next\n\n") + "\n") }},
	{"txt", func(p []string) []byte { return []byte(strings.Join(p, "\n\n")) }},
	{"html", func(p []string) []byte {
		return []byte("<!doctype html><title>Lore</title><body><main><p>" + strings.Join(p, "</p>\n<p>") + "</p></main>")
	}},
	{"csv", func(p []string) []byte { return []byte("text\n\"" + strings.Join(p, "\"\n\"") + "\"\n") }},
	{"json", func(p []string) []byte {
		text, err := json.Marshal(map[string]any{"lore": p})
		if err != nil {
			panic(err)
		}
		return text
	}},
	{"go", func(p []string) []byte {
		text := "package lore\n"
		for i, words := range p {
			text += fmt.Sprintf("\n// Lore%d is said here.\nfunc Lore%d() string {\n\treturn %q\n}\n", i, i, words)
		}
		return []byte(text)
	}},
	{"docx", docx},
}

// docx is the least that is a Word document.
func docx(p []string) []byte {
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	for _, entry := range []struct{ name, text string }{
		{"[Content_Types].xml", `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>` +
			`<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`},
		{"word/document.xml", `<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>` +
			strings.Join(p, "</w:t></w:r></w:p><w:p><w:r><w:t>") + `</w:t></w:r></w:p></w:body></w:document>`},
	} {
		w, err := archive.Create(entry.name)
		if err == nil {
			_, err = w.Write([]byte(entry.text))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := archive.Close(); err != nil {
		panic(err)
	}
	return file.Bytes()
}
