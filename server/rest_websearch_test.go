package server

import (
	"net/http"
	"strings"
	"testing"

	"nodest/websearch/provider/providertest"
)

func TestSearchTheWeb(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.search.Answer("lighthouse", lighthouseResult, providertest.Result{Title: "Second", URL: "https://second.test/a", Content: "b", Date: "2026-03-01T00:00:00"})
	setup := h.rest("GET", "/websearch", "").wants(t, 200)
	if providers := setup["providers"].([]any); len(providers) != 1 || providers[0] != "searxng" || setup["intent"] != "classifier" {
		t.Errorf("the setup is %v", setup)
	}
	found := h.rest("POST", "/websearch", `{"query":"lighthouse"}`).wants(t, 200)
	results := found["results"].([]any)
	if len(results) != 2 || found["provider"] != "searxng" || found["cached"] != false {
		t.Fatalf("the results are %v", found)
	}
	if first := results[0].(map[string]any); first["title"] != lighthouseResult.Title || first["description"] != lighthouseResult.Content || first["date"] != nil {
		t.Errorf("the first result is %v", first)
	}
	if second := results[1].(map[string]any); second["date"] != "2026-03-01T00:00:00.000Z" {
		t.Errorf("the second result is %v", second)
	}
	if again := h.rest("POST", "/websearch", `{"query":"lighthouse"}`).wants(t, 200); again["cached"] != true {
		t.Errorf("the second search is %v", again)
	}
	h.token = h.newMember("mira")
	if others := h.rest("POST", "/websearch", `{"query":"lighthouse"}`).wants(t, 200); others["cached"] != false {
		t.Error("another user learns what was searched for")
	}
	h.rest("POST", "/websearch", `{"query":" "}`).wants(t, 400)
	h.rest("POST", "/websearch", `{"query":"x","limit":21}`).wants(t, 400)
	h.rest("POST", "/websearch", `{"query":"`+strings.Repeat("x", 401)+`"}`).wants(t, 413)
}

func TestASearchThatFailsNamesTheProvider(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.search.Fail(providertest.Fault{Status: 500})
	res := h.rest("POST", "/websearch", `{"query":"x"}`)
	res.wants(t, 503)
	failed := res.object(t)
	if failed["code"] != "upstream_unavailable" || failed["details"].(map[string]any)["provider"] != "searxng" {
		t.Errorf("the failure is %v", failed)
	}
}

func TestReadAPage(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.pages(t, map[string]string{"halden-point.test": lighthousePage})
	page := h.rest("POST", "/websearch/read", `{"url":"http://www.halden-point.test/history/?utm_source=x#top","question":"Who was the last keeper?"}`).wants(t, 200)
	if page["url"] != "http://halden-point.test/history" || page["title"] != "Halden Point Lighthouse: a short history" || page["date"] != "2024-05-02T08:00:00.000Z" {
		t.Errorf("the page is %v", page)
	}
	if images := page["images"].([]any); len(images) != 1 || images[0].(map[string]any)["alt"] != "The light in a storm" {
		t.Errorf("the images are %v", images)
	}
	if links := page["links"].([]any); len(links) != 1 || links[0].(map[string]any)["url"] != "http://halden-point.test/keepers" {
		t.Errorf("the links are %v", links)
	}
	text := page["markdown"].(string)
	if strings.Contains(text, "Imprint") || !strings.Contains(text, "201 steps") {
		t.Errorf("the text is %q", text)
	}
	for _, s := range page["snippets"].([]any) {
		if !strings.Contains(text, s.(string)) {
			t.Errorf("the page does not contain the snippet %q", s)
		}
	}
	h.rest("POST", "/websearch/read", `{"url":"http://halden-point.test/history"}`).wants(t, 200)
	if read := h.web.read(); len(read) != 1 {
		t.Errorf("a fresh page was fetched again: %q", read)
	}
}

func TestPagesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.pages(t, map[string]string{"halden-point.test": lighthousePage})
	for url, want := range map[string]string{
		"http://other.test/":   "not_found",
		"http://unknown.test/": "host_error",
	} {
		res := h.rest("POST", "/websearch/read", `{"url":"`+url+`"}`)
		res.wants(t, 422)
		failed := res.object(t)
		if failed["code"] != "page_unreadable" || failed["details"].(map[string]any)["outcome"] != want {
			t.Errorf("%s: %v", url, failed)
		}
	}
	for _, url := range []string{"", "ftp://halden-point.test/", "http://127.0.0.1/", "http://localhost/", "http://user:secret@halden-point.test/", "not a url", "http://[::1]/"} {
		h.rest("POST", "/websearch/read", `{"url":"`+url+`"}`).wants(t, 400)
	}
}

// A host that cannot be resolved is left out for a while.
func TestAHostThatFailsIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("POST", "/websearch/read", `{"url":"http://halden-point.test/a"}`).wants(t, 422) // no host is known yet
	h.web.pages(t, map[string]string{"halden-point.test": lighthousePage})
	h.rest("POST", "/websearch/read", `{"url":"http://halden-point.test/b"}`).wants(t, 422)
	if read := h.web.read(); len(read) != 0 {
		t.Errorf("fetched: %q", read)
	}
}

// A host is left out because of itself: not because another port of it is closed, and not
// because its page has led to a host that does not exist.
func TestAHostIsNotLeftOutForAnother(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.web.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/gone":
			http.Redirect(w, r, "http://unknown.test/x", http.StatusFound)
		default:
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(lighthousePage))
		}
	}))
	h.rest("POST", "/websearch/read", `{"url":"http://halden-point.test/gone"}`).wants(t, 422)
	h.rest("POST", "/websearch/read", `{"url":"http://halden-point.test/history"}`).wants(t, 200)
	h.web.refuse("203.0.113.7:8080")
	h.rest("POST", "/websearch/read", `{"url":"http://halden-point.test:8080/a"}`).wants(t, 422)
	h.rest("POST", "/websearch/read", `{"url":"http://halden-point.test/b"}`).wants(t, 200)
}

// The example of seed 001 §4.3: a mark per sentence, before its full stop.
func TestReferencesOfTheSeedsExample(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	const answer = "人工智能是计算机科学的一个分支。机器学习是AI的重要组成部分。"
	pages := map[string]string{
		"an object": `{"https://ai.test/definition":{"title":"人工智能基础概念","chunks":["人工智能（AI）是计算机科学的一个分支，致力于创建能够执行通常需要人类智能的任务的系统"]},
			"https://ai.test/learning":{"title":"机器学习简介","text":"机器学习是人工智能的核心技术之一，机器学习是AI的重要组成部分，通过算法让计算机从数据中学习"}}`,
		"a list": `[{"url":"https://ai.test/definition","title":"人工智能基础概念","text":"人工智能（AI）是计算机科学的一个分支，致力于创建能够执行通常需要人类智能的任务的系统"},
			{"url":"https://ai.test/learning","chunks":["机器学习是人工智能的核心技术之一，机器学习是AI的重要组成部分，通过算法让计算机从数据中学习"]}]`,
	}
	for form, contents := range pages {
		cited := h.rest("POST", "/references", `{"answer":"`+answer+`","webContents":`+contents+`,"minRelScore":0.3}`).wants(t, 200)
		if want := "人工智能是计算机科学的一个分支[^1]。机器学习是AI的重要组成部分[^2]。"; cited["answer"] != want {
			t.Errorf("%s: the answer is %v", form, cited["answer"])
		}
		references := cited["references"].([]any)
		for i, url := range []string{"https://ai.test/definition", "https://ai.test/learning"} {
			r := references[i].(map[string]any)
			if r["url"] != url || r["marker"] != float64(i+1) {
				t.Errorf("%s: reference %d is %v", form, i+1, r)
			}
			at := r["answerChunkPosition"].([]any)
			if part := string([]rune(answer)[int(at[0].(float64)):int(at[1].(float64))]); part != r["answerChunk"] {
				t.Errorf("%s: the position is that of %q, not of %q", form, part, r["answerChunk"])
			}
		}
	}
}

func TestWrongRequestsForReferences(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for _, body := range []string{
		`{}`, `{"answer":"x"}`, `{"answer":"","webContents":[]}`, `{"answer":"x","webContents":3}`, `{"answer":"x","webContents":[{"text":"y"}]}`,
		`{"answer":"x","webContents":[],"mode":"page"}`, `{"answer":"x","webContents":[],"maxRef":-1}`, `{"answer":"x","webContents":[],"minRelScore":2}`,
		`{"answer":"x","webContents":[{"url":"https://a.test","colour":1}]}`,
	} {
		h.rest("POST", "/references", body).wants(t, 400)
	}
	if cited := h.rest("POST", "/references", `{"answer":"x","webContents":[]}`).wants(t, 200); cited["answer"] != "x" || len(cited["references"].([]any)) != 0 {
		t.Errorf("without pages: %v", cited)
	}
}
