package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/server/api"
)

// Bad input is refused with an error code and the name of the wrong field, and
// nothing is stored.
func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.newFixtures()
	before := h.readAll(e)
	messages := "/conversations/" + e.conversation + "/messages"
	deep := func(n int) string {
		return `{"roleCard":{"name":"Deep","x":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}}`
	}
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		code, field              string
		header                   string
	}{
		{name: "not JSON", method: "POST", path: messages, body: `{"text":`, status: 400, code: "bad_request"},
		{name: "plain text", method: "POST", path: messages, body: `hello`, status: 400, code: "bad_request"},
		{name: "an array", method: "POST", path: messages, body: `["hello"]`, status: 400, code: "bad_request"},
		{name: "two objects", method: "POST", path: messages, body: `{"text":"a"}{"text":"b"}`, status: 400, code: "bad_request"},
		{name: "invalid UTF-8", method: "POST", path: messages, body: "{\"text\":\"\xff\"}", status: 400, code: "bad_request"},
		{name: "nested 33 deep", method: "POST", path: "/characters", body: deep(33), status: 400, code: "bad_request"},
		{name: "nested a million deep", method: "POST", path: "/characters", body: strings.Repeat("[", 1_000_000), status: 400, code: "bad_request"},
		{name: "another content type", method: "POST", path: messages, body: `text=hello`, status: 415, code: "unsupported_media_type", header: "Content-Type: application/x-www-form-urlencoded"},
		{name: "no content type", method: "POST", path: messages, body: `{"text":"a"}`, status: 415, code: "unsupported_media_type", header: "Content-Type: "},
		{name: "a text that is too long", method: "POST", path: messages, body: `{"text":"` + strings.Repeat("茶", 32_001) + `"}`, status: 413, code: "too_large"},
		{name: "a wrong type", method: "POST", path: messages, body: `{"text":["a"]}`, status: 400, code: "invalid_field", field: "text"},
		{name: "a wrong nested type", method: "POST", path: messages, body: `{"text":"a","options":{"stop":[1]}}`, status: 400, code: "invalid_field", field: "options.stop[0]"},
		{name: "an unknown field", method: "POST", path: messages, body: `{"text":"a","txet":"b"}`, status: 400, code: "invalid_field", field: "txet"},
		{name: "an unknown nested field", method: "POST", path: messages, body: `{"text":"a","options":{"heat":1}}`, status: 400, code: "invalid_field", field: "options.heat"},
		{name: "a field name in another case", method: "POST", path: messages, body: `{"Text":"a"}`, status: 400, code: "invalid_field", field: "Text"},
		{name: "the id in the body", method: "POST", path: messages, body: `{"text":"a","conversationId":"x"}`, status: 400, code: "invalid_field", field: "conversationId"},
		{name: "a number out of range", method: "POST", path: messages, body: `{"text":"a","options":{"temperature":2.1}}`, status: 400, code: "invalid_field", field: "options.temperature"},
		{name: "a number too large for a float", method: "POST", path: messages, body: `{"text":"a","options":{"temperature":1e999}}`, status: 400, code: "invalid_field", field: "options.temperature"},
		{name: "a fraction instead of an integer", method: "POST", path: messages, body: `{"text":"a","options":{"maxTokens":1.5}}`, status: 400, code: "invalid_field", field: "options.maxTokens"},
		{name: "an unknown mode", method: "PATCH", path: "/messages/" + e.message, body: `{"text":"a","mode":"beside"}`, status: 400, code: "invalid_field", field: "mode"},
		{name: "a reply to the character's own message", method: "PATCH", path: "/messages/" + e.reply, body: `{"text":"a","regenerate":true}`, status: 400, code: "invalid_field", field: "regenerate"},
		{name: "a fork at a number instead of an id", method: "POST", path: "/conversations/" + e.conversation + "/fork", body: `{"messageId":7}`, status: 400, code: "invalid_field", field: "messageId"},
		{name: "a fork at an unknown message", method: "POST", path: "/conversations/" + e.conversation + "/fork", body: `{"messageId":"nobody"}`, status: 404, code: "not_found"},
		{name: "a reset with a text as greeting", method: "POST", path: "/conversations/" + e.conversation + "/reset", body: `{"greeting":"Hi"}`, status: 400, code: "invalid_field", field: "greeting"},
		{name: "a description that is too long", method: "POST", path: "/conversations/" + e.conversation + "/saves", body: `{"description":"` + strings.Repeat("茶", 2001) + `"}`, status: 400, code: "invalid_field", field: "description"},
		{name: "a thumbnail that is too large", method: "POST", path: "/conversations/" + e.conversation + "/saves", body: `{"thumbnail":"` + strings.Repeat("x", 100_001) + `"}`, status: 400, code: "invalid_field", field: "thumbnail"},
		{name: "a save point with a limit of 0", method: "GET", path: "/saves/" + e.save + "?limit=0", status: 400, code: "invalid_field", field: "limit"},
		{name: "a page before an unknown message", method: "GET", path: "/saves/" + e.save + "?before=nobody&limit=1", status: 404, code: "not_found"},
		{name: "save points with an unknown filter", method: "GET", path: "/conversations/" + e.conversation + "/saves?automatic=some", status: 400, code: "invalid_field", field: "automatic"},
		{name: "an invalid cursor of save points", method: "GET", path: "/conversations/" + e.conversation + "/saves?cursor=%FF", status: 400, code: "invalid_field", field: "cursor"},
		{name: "an invalid cursor of branches", method: "GET", path: "/conversations/" + e.conversation + "/branches?cursor=x", status: 400, code: "invalid_field", field: "cursor"},
		{name: "a search that is too long", method: "GET", path: "/messages/search?q=" + strings.Repeat("x", 201), status: 400, code: "invalid_field", field: "q"},
		{name: "an empty search", method: "GET", path: "/messages/search?q=", status: 400, code: "invalid_field", field: "q"},
		{name: "a limit of 0", method: "GET", path: "/conversations?limit=0", status: 400, code: "invalid_field", field: "limit"},
		{name: "a limit of 201", method: "GET", path: "/characters?limit=201", status: 400, code: "invalid_field", field: "limit"},
		{name: "a limit that is not a number", method: "GET", path: "/worldbooks?limit=many", status: 400, code: "invalid_field", field: "limit"},
		{name: "two limits", method: "GET", path: "/presets?limit=1&limit=2", status: 400, code: "invalid_field", field: "limit"},
		{name: "an unknown parameter", method: "GET", path: "/conversations?page=2", status: 400, code: "invalid_field", field: "page"},
		{name: "an unknown parameter of a write", method: "POST", path: "/conversations?title=Tea", body: `{}`, status: 400, code: "invalid_field", field: "title"},
		{name: "an invalid cursor", method: "GET", path: "/conversations?cursor=%FF%00", status: 400, code: "invalid_field", field: "cursor"},
		{name: "an invalid boolean", method: "GET", path: "/conversations?archived=maybe", status: 400, code: "invalid_field", field: "archived"},
		{name: "a date that does not exist", method: "GET", path: "/usage?from=2026-02-30", status: 400, code: "invalid_field", field: "from"},
		{name: "a day that is none", method: "GET", path: "/usage/users?to=today", status: 400, code: "invalid_field", field: "to"},
		{name: "a range that ends before it starts", method: "GET", path: "/usage?from=2026-02-02&to=2026-02-01", status: 400, code: "invalid_field", field: "from"},
		{name: "a negative position", method: "GET", path: "/sync?since=-1", status: 400, code: "invalid_field", field: "since"},
		{name: "an offset that is not a number", method: "GET", path: "/generations/" + e.generation + "?off=x", status: 400, code: "invalid_field", field: "off"},
		{name: "a card without a name", method: "POST", path: "/characters", body: `{"roleCard":{"first_mes":"Hi"}}`, status: 422, code: "unsupported_card"},
		{name: "an invalid world book", method: "POST", path: "/worldbooks", body: `{"document":{"entries":7}}`, status: 422, code: "invalid_world_book"},
		{name: "a missing document", method: "POST", path: "/presets", body: `{"name":"x"}`, status: 400, code: "invalid_field", field: "document"},
		{name: "an unknown dialect", method: "POST", path: "/characters", body: `{"roleCard":{"name":"x"},"dialect":"latin"}`, status: 400, code: "invalid_field", field: "dialect"},
		{name: "settings out of range", method: "PUT", path: "/characters/" + e.character + "/settings", body: `{"memory":{"summaryThreshold":2999}}`, status: 400, code: "invalid_field", field: "memory.summaryThreshold"},
		{name: "an unknown group of settings", method: "PUT", path: "/characters/" + e.character + "/settings", body: `{"mood":{}}`, status: 400, code: "invalid_field", field: "mood"},
		{name: "user settings out of range", method: "PUT", path: "/settings", body: `{"topP":2}`, status: 400, code: "invalid_field", field: "topP"},
		{name: "an invalid device id", method: "PUT", path: "/devices/a%20b/ack", body: `{"seq":1}`, status: 400, code: "invalid_field", field: "id"},
		{name: "a key that is too long", method: "POST", path: messages, body: `{"text":"a"}`, status: 400, code: "invalid_field", field: "key", header: "Idempotency-Key: " + strings.Repeat("k", 65)},
		{name: "a key with spaces", method: "POST", path: "/characters/sample", status: 400, code: "invalid_field", field: "key", header: "Idempotency-Key: a b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var header []string
			if c.header != "" {
				header = append(header, c.header)
			}
			a := h.rest(c.method, c.path, c.body, header...)
			if c.field != "" {
				a.refuses(t, c.status, c.code, c.field)
			} else {
				a.refuses(t, c.status, c.code)
			}
		})
	}
	h.rest("POST", "/characters", deep(32)).wants(t, 201)
	h.rest("DELETE", "/characters/"+h.rest("GET", "/characters?limit=1", "").wants(t, 200)["items"].([]any)[0].(map[string]any)["id"].(string), "").wants(t, 204)
	if after := h.readAll(e); after != before {
		t.Errorf("something was stored:\n%s\n%s", before, after)
	}
	if strings.Contains(h.log.String(), "level=ERROR") {
		t.Errorf("bad input is not a server error:\n%s", h.log.String())
	}
}

// A body that is too large is refused before it has been read to the end. The test
// calls the handler directly, because over a socket a client that is still writing
// may miss the response.
func TestBodiesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for path, size := range map[string]int{
		"/conversations": 256<<10 + 1, "/settings": 256<<10 + 1, "/characters": api.DocumentBytes + 1, "/lint": lintBytes + 1,
		"/nodest/chat": api.DocumentBytes + 1, "/nodest/history": api.DocumentBytes + 1,
	} {
		method := http.MethodPost
		if path == "/settings" {
			method = http.MethodPut
		}
		body := &countingReader{r: io.LimitReader(endlessSpaces{}, 4*int64(size))}
		r := httptest.NewRequest(method, base+path, body)
		r.Header.Set("Authorization", "Bearer "+h.token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.server.Handler().ServeHTTP(w, r)
		(&restResponse{w.Code, w.Header(), w.Body.Bytes()}).refuses(t, 413, "too_large")
		if body.n > int64(size)+64<<10 {
			t.Errorf("%s: %d bytes were read", path, body.n)
		}
	}
}

// endlessSpaces is a reader of white space that never ends.
type endlessSpaces struct{}

func (endlessSpaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// One error lists all wrong fields.
func TestAllWrongFieldsAreReported(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p := h.rest("POST", "/conversations/"+h.newChat()+"/messages", `{"text":1,"x":2,"options":{"topP":"high","stop":"now"}}`).
		refuses(t, 400, "invalid_field")
	var fields []string
	for _, f := range p.Errors {
		fields = append(fields, f.Field+" "+f.Code)
	}
	if got := strings.Join(fields, ", "); got != "options.stop type, options.topP type, text type, x unknown" {
		t.Errorf("fields: %s", got)
	}
}

func TestIfMatchPreventsLostUpdates(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.newFixtures()
	for _, c := range []struct{ path, method, body string }{
		{"/characters/" + e.character, "PATCH", `{"isCradle":true}`},
		{"/characters/" + e.character, "PUT", `{"roleCard":{"name":"Alice"}}`},
		{"/characters/" + e.character + "/settings", "PUT", `{"memory":{"enabled":false}}`},
		{"/conversations/" + e.conversation, "PATCH", `{"title":"x"}`},
		{"/worldbooks/" + e.resources["worldbooks"], "PATCH", `{"name":"x"}`},
		{"/personas/" + e.resources["personas"], "PUT", `{"document":{"name":"Mia"}}`},
		{"/settings", "PUT", `{"temperature":1}`},
	} {
		t.Run(c.method+" "+c.path[:min(12, len(c.path))], func(t *testing.T) {
			read := h.rest("GET", c.path, "")
			read.wants(t, 200)
			etag := read.header.Get("ETag")
			first := h.rest(c.method, c.path, c.body, "If-Match: "+etag)
			first.wants(t, 200)
			if first.header.Get("ETag") == etag {
				t.Errorf("the ETag stays %s", etag)
			}
			late := h.rest(c.method, c.path, c.body, "If-Match: "+etag)
			late.refuses(t, 412, "precondition_failed")
			h.rest(c.method, c.path, c.body, "If-Match: "+first.header.Get("ETag")).wants(t, 200)
			h.rest(c.method, c.path, c.body, "If-Match: *").wants(t, 200)
			h.rest(c.method, c.path, c.body).wants(t, 200) // the last write wins
			h.rest(c.method, c.path, c.body, `If-Match: "nonsense"`).refuses(t, 412, "precondition_failed")
		})
	}
	// Where If-Match is not supported it is refused, so that nobody relies on it.
	h.rest("DELETE", "/characters/"+e.character, "", `If-Match: "1"`).refuses(t, 400, "bad_request")
	h.rest("PATCH", "/messages/"+e.message, `{"text":"x"}`, `If-Match: "1"`).refuses(t, 400, "bad_request")
}

func TestIdempotencyKeysOfREST(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.newFixtures()
	settings := h.rest("GET", "/settings", "").wants(t, 200)["version"]
	for i, c := range []struct {
		method, path, body, other string
		status                    int
	}{
		{"POST", "/characters", `{"roleCard":{"name":"Bob"}}`, `{"roleCard":{"name":"Eve"}}`, 201},
		{"PATCH", "/characters/" + e.character, `{"isCradle":true}`, `{"isCradle":false}`, 200},
		{"PUT", "/characters/" + e.character + "/settings", `{"prompt":{"recount":false}}`, `{}`, 200},
		{"PUT", "/settings", `{"temperature":1}`, `{"temperature":0.5}`, 200},
		{"POST", "/presets", `{"name":"a","document":{"prompts":[]}}`, `{"name":"b","document":{"prompts":[]}}`, 201},
		{"POST", "/conversations", `{"characterId":"` + e.character + `"}`, `{"characterId":"` + e.character + `","title":"x"}`, 201},
		{"POST", "/conversations/" + e.conversation + "/messages", `{"text":"Once"}`, `{"text":"Twice"}`, 200},
		{"PATCH", "/messages/" + e.message, `{"text":"Better"}`, `{"text":"Best"}`, 200},
		{"DELETE", "/messages/" + e.message + "?scope=after", ``, ``, 200},
		{"DELETE", "/personas/" + e.resources["personas"], ``, ``, 204},
	} {
		t.Run(c.method+" "+c.path[:min(14, len(c.path))], func(t *testing.T) {
			key := "Idempotency-Key: rest-" + string(rune('a'+i))
			first := h.rest(c.method, c.path, c.body, key)
			first.wants(t, c.status)
			again := h.rest(c.method, c.path, c.body, key)
			again.wants(t, c.status)
			if !bytes.Equal(first.body, again.body) || first.header.Get("ETag") != again.header.Get("ETag") {
				t.Errorf("first  %s\nagain %s", first.body, again.body)
			}
			if first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("replayed: %q, %q", first.header.Get("Idempotency-Replayed"), again.header.Get("Idempotency-Replayed"))
			}
			if c.other != "" {
				h.rest(c.method, c.path, c.other, key).refuses(t, 422, "key_reused")
			}
			h.rest("POST", "/characters", `{"roleCard":{"name":"Other"}}`, key).refuses(t, 422, "key_reused")
		})
	}
	if v := h.rest("GET", "/settings", "").wants(t, 200)["version"]; v != settings.(float64)+1 {
		t.Errorf("settings were stored %v times", v)
	}
	// Keys are per user.
	h.rest("POST", "/characters", `{"roleCard":{"name":"Hers"}}`, "Idempotency-Key: rest-a", "Authorization: Bearer "+h.newMember("mia")).wants(t, 201)
}

// A conflict that has nothing to do with versions is no failed precondition.
func TestIfMatchLeavesOtherConflictsAlone(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.newFixtures()
	h.rest("POST", "/conversations/"+e.conversation+"/messages", `{"text":"One.","reply":false,"clientMsgId":"a"}`).wants(t, 200)
	h.rest("POST", "/conversations/"+e.conversation+"/messages", `{"text":"Two.","reply":false,"clientMsgId":"a"}`, `If-Match: "1"`).refuses(t, 409, "conflict")
}

func TestSettingsCanBeSentBackUnchanged(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.newFixtures()
	if _, ok := h.rest("PUT", "/settings", `{"customSetting":null}`).wants(t, 200)["customSetting"]; ok {
		t.Error("null is stored; it should be absent")
	}
	h.rest("PUT", "/settings", `{"temperature":0.5,"userName":"Mia","stop":["END"],"globalPreset":{"enabled":true,"id":"`+
		e.resources["presets"]+`"},"customSetting":{"content":"tall"}}`).wants(t, 200)
	for _, path := range []string{"/settings", "/characters/" + e.character + "/settings"} {
		read := h.rest("GET", path, "")
		read.wants(t, 200)
		back := h.rest("PUT", path, string(read.body))
		want, got := read.object(t), back.wants(t, 200)
		for _, o := range []map[string]any{want, got} {
			delete(o, "version")
			delete(o, "updatedAt")
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if !bytes.Equal(a, b) {
			t.Errorf("%s:\n%s\nbecame\n%s", path, a, b)
		}
	}
	// null means absent.
	h.rest("PUT", "/settings", `{"temperature":null,"personaId":null}`).wants(t, 200)
}

// pages follows the cursors of a list to its end and returns the items of each page.
func (h *testServer) pages(path string) (pages [][]map[string]any) {
	h.t.Helper()
	for cursor := ""; ; {
		res := h.rest("GET", path+cursor, "")
		pages = append(pages, res.items(h.t))
		next, more := res.object(h.t)["nextCursor"].(string)
		if !more {
			return pages
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
}

func TestPagesHaveNoGapsOrDuplicates(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	character := h.newCharacter()
	for range 6 {
		h.rest("POST", "/conversations", `{"characterId":"`+character+`"}`).wants(t, 201)
		h.rest("POST", "/personas", `{"document":{"name":"Mia"}}`).wants(t, 201)
		h.rest("POST", "/characters", `{"roleCard":{"name":"Bob"}}`).wants(t, 201)
	}
	h.rest("GET", "/characters?limit=%2B05", "").wants(t, 200) // a number that is not valid JSON
	for _, path := range []string{"/conversations", "/personas", "/characters"} {
		seen, pages := map[string]bool{}, h.pages(path+"?limit=2")
		for _, id := range stringsAt(slices.Concat(pages...), "id") {
			if seen[id] {
				t.Errorf("%s: %s comes twice", path, id)
			}
			seen[id] = true
		}
		if want := map[string]int{"/conversations": 6, "/personas": 6, "/characters": 7}[path]; len(seen) != want || len(pages) < 3 {
			t.Errorf("%s: %d items on %d pages", path, len(seen), len(pages))
		}
	}
}

// A client can wait for a reply or not, and learns of a failure; what was generated
// before the failure is kept.
func TestTheThreeWaysToWaitForAReply(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := "/conversations/" + chat + "/messages"
	got := h.rest("POST", path, `{"text":"One"}`).wants(t, 200)
	if m := got["message"].(map[string]any); m["status"] != "complete" || m["text"] != "Yes." || got["usage"] == nil || got["promptId"] == nil {
		t.Errorf("waited for: %v", got)
	}
	async := h.rest("POST", path, `{"text":"Two"}`, "Prefer: respond-async")
	if m := async.wants(t, 202)["message"].(map[string]any); m["text"] != "" || async.header.Get("Preference-Applied") != "respond-async" {
		t.Errorf("async: %s %v", async.body, async.header)
	}
	_, err := h.engine.Wait(context.Background(), h.user.ID, async.object(t)["generationId"].(string))
	h.must(err)
	h.model.enqueue(&script{pieces: []string{"Well"}, fails: fault.New(fault.UpstreamRate, "slow down").With("provider", "offline")})
	p := h.rest("POST", path, `{"text":"Three"}`).refuses(t, 503, "upstream_rate_limited")
	id, _ := p.Details["messageId"].(string)
	m := h.rest("GET", "/messages/"+id, "").wants(t, 200)
	if m["status"] != "error" || m["text"] != "Well" || m["error"].(map[string]any)["code"] != "upstream_rate_limited" {
		t.Errorf("what came is kept: %v", m)
	}
	line := h.rest("POST", "/conversations/"+chat+"/impersonate", "").wants(t, 200)
	if line["text"] != "Yes." || line["message"] != nil {
		t.Errorf("impersonation: %v", line)
	}
	usage := h.rest("GET", "/usage", "").items(t)
	if len(usage) == 0 {
		t.Error("no usage was recorded")
	}
	tokens := func(items []map[string]any) (n float64) {
		for _, row := range items {
			n += row["promptTokens"].(float64)
		}
		return n
	}
	byUser := h.rest("GET", "/usage/users", "").items(t)
	if len(byUser) != 1 || byUser[0]["userId"] != h.user.ID || tokens(byUser) != tokens(usage) {
		t.Errorf("by user: %v, of %v", byUser, usage)
	}
	if got := h.rest("GET", "/usage/users?to=2020-01-31", "").items(t); len(got) != 0 {
		t.Errorf("used long ago: %v", got)
	}
}

// After a panic the client gets an internal error; only the log has the cause.
func TestAPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.server.Providers = nil
	a := h.rest("GET", "/providers", "")
	a.refuses(t, 500, "internal")
	if strings.Contains(string(a.body), "nil pointer") || !strings.Contains(h.log.String(), "nil pointer") {
		t.Errorf("body: %s", a.body)
	}
}

// Every route refuses query parameters that it does not know.
func TestUnknownParametersOnEveryRoute(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.newFixtures()
	tried := 0
	for _, r := range h.server.echo.Routes() {
		if !strings.HasPrefix(r.Path, base) || slices.Contains([]string{"/auth/login", "/auth/signin", "/ws"}, strings.TrimPrefix(r.Path, base)) {
			continue // these need no authentication
		}
		tried++
		t.Run(r.Method+" "+r.Path, func(t *testing.T) {
			id, _ := e.idFor(r.Path)
			path := strings.NewReplacer(":id", cmp.Or(id, "d"), ":mid", e.memory, ":sid", e.summary, ":name", "openai").Replace(strings.TrimPrefix(r.Path, base))
			p := h.rest(r.Method, path+"?pagesize=2", e.bodyFor(r.Method, r.Path)).refuses(t, 400, "invalid_field")
			if p.Detail != "pagesize: no such parameter" {
				t.Error(p.Detail)
			}
		})
	}
	t.Logf("%d routes", tried)
}
