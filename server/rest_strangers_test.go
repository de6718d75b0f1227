package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"nodest/internal/account"
	"nodest/internal/op"
	"nodest/internal/tavern/taverntest"
)

// upload sends a file as a browser would; fields are "name=value", or header lines
// "Name: value".
func (h *testServer) upload(method, path, filename string, data []byte, fields ...string) *restResponse {
	h.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	var header []string
	for _, f := range fields {
		if name, value, _ := strings.Cut(f, "="); !strings.Contains(f, ": ") {
			h.must(form.WriteField(name, value))
		} else {
			header = append(header, f)
		}
	}
	part, err := form.CreateFormFile("file", filename)
	h.must(err)
	_, err = part.Write(data)
	h.must(err)
	h.must(form.Close())
	return h.rest(method, path, body.String(), append(header, "Content-Type: "+form.FormDataContentType())...)
}

// wants checks the status of a response and returns its object.
func (a *restResponse) wants(t testing.TB, status int) map[string]any {
	t.Helper()
	if a.status != status {
		t.Fatalf("%d %.400s; want %d", a.status, a.body, status)
	}
	if a.header.Get("Content-Type") != "application/json" || len(a.body) == 0 || a.body[0] != '{' {
		return nil
	}
	return a.object(t)
}

// refuses checks the status and code of an error, and its first field if one is
// given.
func (a *restResponse) refuses(t testing.TB, status int, code string, field ...string) *problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.status != status || string(p.Code) != code {
		t.Fatalf("%d %.400s; want %d %s", a.status, a.body, status, code)
	}
	if p.Status != status || p.RequestID != a.header.Get("X-Request-Id") || p.Type != "urn:nodest:error:"+code {
		t.Errorf("problem %s with request id %s", a.body, a.header.Get("X-Request-Id"))
	}
	if len(field) > 0 && (len(p.Errors) == 0 || p.Errors[0].Field != field[0]) {
		t.Errorf("fields %+v; want %s", p.Errors, field[0])
	}
	return &p
}

// fixtures holds the id of one object of each kind.
type fixtures struct {
	character, conversation, message, reply, generation, prompt, prompt2, save, token, memory, summary, job string

	post, comment, attachment, action, turn string

	file, base, goal, research, folder, kept string

	resources map[string]string // path -> id
	saved     []byte            // the save point as a file
}

func (h *testServer) newFixtures() *fixtures {
	h.t.Helper()
	t := h.t
	e := &fixtures{resources: map[string]string{}}
	id := func(a *restResponse, status int) string { return a.wants(t, status)["id"].(string) }
	e.character = id(h.rest("POST", "/characters", `{"roleCard":`+alicesCard+`}`), 201)
	e.conversation = id(h.rest("POST", "/conversations", `{"characterId":"`+e.character+`"}`), 201)
	for range 2 {
		sent := h.rest("POST", "/conversations/"+e.conversation+"/messages", `{"text":"Hello"}`).wants(t, 200)
		e.message = sent["userMessage"].(map[string]any)["id"].(string)
		e.reply = sent["message"].(map[string]any)["id"].(string)
		e.generation = sent["generationId"].(string)
		e.prompt, e.prompt2 = sent["promptId"].(string), e.prompt
	}
	e.save = id(h.rest("POST", "/conversations/"+e.conversation+"/saves", `{"description":"here"}`), 201)
	e.saved = h.rest("GET", "/saves/"+e.save+"/export", "").body
	e.token = id(h.rest("POST", "/tokens", `{"name":"phone"}`), 201)
	e.memory = id(h.rest("POST", "/characters/"+e.character+"/memories", `{"text":"Mia keeps bees."}`), 201)
	h.rest("PUT", "/characters/"+e.character+"/memory-documents/user.md", `{"text":"Mia keeps bees."}`).wants(t, 200)
	e.summary = h.makeSummary(e.conversation)
	e.goal = id(h.rest("POST", "/conversations/"+e.conversation+"/goals", `{"description":"Find the harbour."}`), 201)
	e.attachment = id(h.upload("POST", "/attachments", "a.png", onePixel), 201)
	e.post = id(h.rest("POST", "/circle/posts", `{"text":"Ahoy","images":["`+e.attachment+`"]}`), 201)
	e.comment = id(h.rest("POST", "/circle/posts/"+e.post+"/comments", `{"text":"Hello"}`), 201)
	e.action, e.turn = h.makeAction(e.character), h.makeTurn(e.character, e.post)
	e.base = h.newBase("Harbour")
	e.file = h.addFile("harbour.md", harbour, "knowledgeBaseId="+e.base)["id"].(string)
	h.processed(e.file) // it changes until then
	h.rest("PUT", "/characters/"+e.character+"/knowledge/"+e.base, "").wants(t, 200)
	h.rest("PUT", "/characters/"+e.character+"/files/"+e.file, "").wants(t, 200)
	e.research = stringAt(h.rest("POST", "/research", `{"question":"When was the light automated?","conversationId":"`+e.conversation+`"}`).wants(t, 202), "research.id")
	e.folder = h.importFolder(taverntest.Files{"characters/Bo/joy.png": onePixel, "characters/Bo.png": taverntest.Card("Bo", "Bo sings.", "")})
	e.kept = stringAt(h.rest("GET", "/sillytavern/files?kind=sprite", "").items(t)[0], "id")
	e.job = stringAt(h.rest("GET", "/jobs", "").items(t)[0], "id")
	for path, document := range map[string]string{
		"worldbooks": `{"entries":{}}`, "presets": `{"prompts":[]}`, "personas": `{"name":"Mia","description":"x"}`,
		"regexscripts": `[{"scriptName":"s","findRegex":"/a/g","replaceString":"b","placement":[2]}]`,
	} {
		e.resources[path] = id(h.rest("POST", "/"+path, `{"document":`+document+`,"characterIds":["`+e.character+`"]}`), 201)
	}
	e.resources["templates"] = id(h.upload("POST", "/templates/import", "t.json", []byte(`{"story_string":""}`)), 201)
	return e
}

// idFor returns the id for the path of a route, "" for routes whose id is not that
// of a user's object.
func (e *fixtures) idFor(path string) (id string, ok bool) {
	kind, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(path, base+"/"), "/api/"), "circle/"), "/")
	if rest, ok := strings.CutPrefix(path, base+"/sillytavern/"); ok {
		if strings.HasPrefix(rest, "imports") {
			return e.folder, true
		}
		return e.kept, true
	}
	id, ok = map[string]string{
		"characters": e.character, "conversations": e.conversation, "traces": e.conversation, "messages": e.message, "generations": e.generation,
		"prompts": e.prompt, "saves": e.save, "tokens": e.token, "jobs": e.job,
		"posts": e.post, "relationships": e.character, "actions": e.action, "turns": e.turn, "attachments": e.attachment,
		"files": e.file, "knowledge-bases": e.base, "goals": e.goal, "research": e.research,
		"users":   "", // see TestOnlyOwnersManageUsers
		"devices": "", // chosen by the client
	}[kind]
	if !ok {
		id, ok = e.resources[kind]
	}
	return id, ok
}

// bodyFor returns a valid body for a route, so that only the id is wrong.
func (e *fixtures) bodyFor(method, path string) string {
	document := `{"document":{"entries":{},"name":"x","prompts":[]}}`
	if strings.Contains(path, "regexscripts") {
		document = `{"document":[]}`
	}
	switch rest := method + " " + strings.TrimPrefix(path, base); rest {
	case "POST /conversations/:id/messages", "PATCH /messages/:id":
		return `{"text":"Hi"}`
	case "POST /conversations/:id/saves":
		return `{"description":"x"}`
	case "POST /conversations/:id/saves/import":
		return string(e.saved)
	case "PUT /conversations/:id/head":
		return `{"messageId":"` + e.message + `"}`
	case "PUT /messages/:id/hidden":
		return `{"hidden":true}`
	case "POST /messages/:id/swipe":
		return `{"swipe":"next"}`
	case "POST /characters/:id/memories", "PATCH /characters/:id/memories/:mid", "POST /characters/:id/memories/import":
		return `{"text":"Mia keeps no bees."}`
	case "POST /circle/posts/:id/comments":
		return `{"text":"Hi"}`
	case "PUT /circle/posts/:id/rating":
		return `{"rating":3}`
	case "POST /circle/posts/:id/forward":
		return `{"characterId":"` + e.character + `"}`
	case "POST /circle/actions/:id":
		return `{"decision":"accept"}`
	case "POST /characters/:id/memories/forget":
		return `{"all":true}`
	case "POST /characters/:id/memories/bulk":
		return `{"action":"purge","filter":{"all":true}}`
	case "PUT /characters/:id/memory-documents/:pid":
		return `{"text":"Mia keeps no bees."}`
	case "POST /characters/:id/memory-documents/:pid/rollback":
		return `{"version":1}`
	case "POST /characters/:id/memories/suggestions/:sid":
		return `{"decision":"accept"}`
	case "POST /conversations/:id/cognition-log/import":
		return `{"events":[]}`
	case "POST /conversations/:id/goals":
		return `{"description":"Find the harbour."}`
	case "POST /conversations/:id/extractions/:eid/review", "POST /api/traces/:id/extractions/:eid/review":
		return `{"decision":"approve"}`
	case "PATCH /conversations/:id/summaries/:sid":
		return `{"summary":"They kept bees."}`
	case "PUT /knowledge-bases/:id/grants/:uid":
		return `{"role":"read"}`
	case "PUT /characters/:id", "PATCH /characters/:id":
		return `{"roleCard":{"name":"Bob"}}`
	default:
		if method == http.MethodPut && strings.Count(rest, "/") == 2 {
			return document
		}
		if method == http.MethodGet || method == http.MethodDelete {
			return ""
		}
		return `{}`
	}
}

// Nobody can find out whether another user's object exists: every route with an id
// answers the same for an object of another user as for one that does not exist.
func TestStrangersSeeNothingOnAnyRoute(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.newFixtures()
	before := h.readAll(e)
	stranger := h.newMember("stranger")
	tried := 0
	for _, r := range h.server.echo.Routes() {
		if !strings.Contains(r.Path, "/:id") {
			continue
		}
		id, known := e.idFor(r.Path)
		if !known {
			t.Errorf("whose is the id of %s %s?", r.Method, r.Path)
		}
		if id == "" {
			continue
		}
		tried++
		t.Run(r.Method+" "+r.Path, func(t *testing.T) {
			ask := func(id, token string) *restResponse {
				path := strings.NewReplacer(":id", id, ":mid", e.memory, ":sid", e.summary, ":cid", e.comment, ":tid", h.user.ID,
					":fid", e.file, ":kid", e.base, ":uid", h.user.ID, ":pid", "user.md").Replace(strings.TrimPrefix(r.Path, base))
				if strings.HasSuffix(path, "/diff") {
					path += "?with=" + e.prompt2
				}
				if strings.HasSuffix(path, "/avatar") && r.Method == http.MethodPut {
					return h.upload("PUT", path, "a.png", onePixel, "Authorization: Bearer "+token)
				}
				if strings.HasSuffix(path, "/content") && r.Method == http.MethodPut || strings.HasPrefix(path, "/knowledge-bases/") && strings.HasSuffix(path, "/import") {
					return h.upload(r.Method, path, "a.zip", zipOf(t, "a.md", "a"), "Authorization: Bearer "+token)
				}
				return h.rest(r.Method, path, e.bodyFor(r.Method, r.Path), "Authorization: Bearer "+token)
			}
			foreign, missing := ask(id, stranger), ask(op.NewID(), h.token)
			foreign.refuses(t, 404, "not_found")
			missing.refuses(t, 404, "not_found")
			ask("%00", h.token).refuses(t, 404, "not_found")
			if foreign.object(t)["detail"] != missing.object(t)["detail"] && !strings.Contains(string(foreign.body), id) {
				t.Errorf("the responses differ:\n%s%s", foreign.body, missing.body)
			}
		})
	}
	t.Logf("%d routes with an id", tried)
	if after := h.readAll(e); after != before {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}
}

// readAll returns what the owner reads of the fixtures.
func (h *testServer) readAll(e *fixtures) string {
	var b strings.Builder
	for _, path := range []string{
		"/characters/" + e.character, "/conversations/" + e.conversation, "/conversations/" + e.conversation + "/messages",
		"/conversations/" + e.conversation + "/branches", "/conversations/" + e.conversation + "/tree", "/conversations/" + e.conversation + "/saves?automatic=true", "/saves/" + e.save,
		"/characters/" + e.character + "/memories?status=any", "/characters/" + e.character + "/memory-documents/user.md", "/conversations/" + e.conversation + "/summaries",
		"/conversations/" + e.conversation + "/goals", "/conversations/" + e.conversation + "/extractions",
		"/circle/posts", "/circle/relationships", "/circle/actions", "/circle/posts/" + e.post + "/turns", "/attachments/" + e.attachment,
		"/knowledge-bases/" + e.base, "/knowledge-bases/" + e.base + "/files", "/knowledge-bases/" + e.base + "/grants", "/characters/" + e.character + "/knowledge",
		"/generations/" + e.generation, "/research/" + e.research, "/worldbooks", "/presets", "/regexscripts", "/personas", "/templates", "/settings",
	} {
		a := h.rest("GET", path, "")
		a.wants(h.t, 200)
		b.Write(a.body)
	}
	return b.String()
}

// Another user's id in a body or query answers 404, too.
func TestIdsOfOthersAreRefusedInBodies(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	theirs := h.newFixtures()
	revision := stringAt(h.rest("GET", "/characters/"+theirs.character+"/memories?q=Hello&layer=exchange", "").items(t)[0], "id")
	h.token = h.newMember("stranger")
	mine := h.newFixtures()
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "/conversations", `{"characterId":"$character"}`, "characterId"},
		{"POST", "/conversations", `{"characterId":"` + mine.character + `","personaId":"$persona"}`, "personaId"},
		{"PATCH", "/conversations/" + mine.conversation, `{"personaId":"$persona"}`, "personaId"},
		{"PUT", "/conversations/" + mine.conversation + "/head", `{"messageId":"$message"}`, "messageId"},
		{"POST", "/conversations/" + mine.conversation + "/messages", `{"text":"x","parentId":"$message"}`, ""},
		{"POST", "/conversations/" + mine.conversation + "/fork", `{"messageId":"$message"}`, "messageId"},
		{"POST", "/saves/" + mine.save + "/prompt", `{"options":{"characterId":"$character"}}`, ""},
		{"POST", "/conversations/" + mine.conversation + "/messages", `{"text":"x","options":{"characterId":"$character"}}`, ""},
		{"PUT", "/settings", `{"personaId":"$persona"}`, "personaId"},
		{"PUT", "/settings", `{"globalPreset":{"enabled":true,"id":"$preset"}}`, "globalPreset.id"},
		{"PUT", "/settings", `{"globalWorldBook":{"enabled":true,"id":"$book"}}`, "globalWorldBook.id"},
		{"POST", "/worldbooks", `{"document":{"entries":{}},"characterIds":["$character"]}`, "characterIds[0]"},
		{"POST", "/research", `{"question":"x","conversationId":"$conversation"}`, ""},
		{"POST", "/research", `{"question":"x","knowledgeBaseIds":["$base"]}`, ""},
		{"GET", "/research?conversationId=$conversation", "", ""},
		{"PUT", "/devices/d/ack", `{"read":{"$conversation":"$message"}}`, ""},
		{"PATCH", "/characters/" + mine.character + "/memories/$memory", `{"pinned":true}`, ""},
		{"POST", "/characters/" + mine.character + "/memories/forget", `{"ids":["$memory"]}`, ""},
		{"POST", "/characters/" + mine.character + "/memories/bulk", `{"action":"purge","filter":{"ids":["$memory"]}}`, ""},
		{"POST", "/characters/" + mine.character + "/memories/forget", `{"ids":["$revision"]}`, ""},
		{"GET", "/characters/" + mine.character + "/memories?q=Hello&conversation=$conversation", "", ""},
		{"POST", "/circle/posts", `{"text":"x","authorId":"$character"}`, "authorId"},
		{"POST", "/circle/posts", `{"text":"x","images":["$attachment"]}`, "images[0]"},
		{"POST", "/circle/posts/" + mine.post + "/comments", `{"text":"x","replyTo":"$comment"}`, "replyTo"},
		{"POST", "/circle/posts/" + mine.post + "/forward", `{"characterId":"$character"}`, "characterId"},
		{"DELETE", "/circle/posts/" + mine.post + "/comments/$comment", "", ""},
		{"PATCH", "/circle/relationships/" + mine.character + "/$character", "{}", ""},
		{"GET", "/circle/posts?authorId=$character", "", "authorId"},
		{"GET", "/circle/messagebox?characterId=$character", "", "characterId"},
		{"GET", "/circle/relationships?characterId=$character", "", "characterId"},
		{"GET", "/circle/actions?characterId=$character", "", "characterId"},
		{"GET", "/circle/turns?characterId=$character", "", "characterId"},
		{"PUT", "/knowledge-bases/" + mine.base + "/files/$file", "", ""},
		{"DELETE", "/knowledge-bases/" + mine.base + "/files/$file", "", ""},
		{"PUT", "/characters/" + mine.character + "/files/$file", "", ""},
		{"PUT", "/characters/" + mine.character + "/knowledge/$base", "", ""},
		{"POST", "/knowledge-bases/search", `{"query":"light","knowledgeBaseIds":["$base"]}`, ""},
		{"POST", "/knowledge/ask", `{"question":"light?","knowledgeBaseIds":["$base"]}`, ""},
		{"POST", "/knowledge/ask", `{"question":"light?","conversationId":"$conversation"}`, ""},
		{"POST", "/files/web", `{"url":"https://example.org/","knowledgeBaseId":"$base"}`, ""},
		{"POST", "/conversations/" + mine.conversation + "/goals", `{"description":"x","parentId":"$goal"}`, "parentId"},
		{"PATCH", "/conversations/" + mine.conversation + "/summaries/$summary", `{"summary":"x"}`, ""},
		{"POST", "/conversations/" + mine.conversation + "/summaries?wait=1", `{"from":"$message"}`, "from"},
	} {
		t.Run(c.method+" "+c.path[:min(len(c.path), 16)]+" "+c.body, func(t *testing.T) {
			names := strings.NewReplacer("$character", theirs.character, "$persona", theirs.resources["personas"], "$message", theirs.message,
				"$file", theirs.file, "$base", theirs.base, "$goal", theirs.goal,
				"$preset", theirs.resources["presets"], "$book", theirs.resources["worldbooks"], "$conversation", theirs.conversation,
				"$attachment", theirs.attachment, "$comment", theirs.comment, "$memory", theirs.memory, "$summary", theirs.summary, "$revision", revision)
			p := h.rest(c.method, names.Replace(c.path), names.Replace(c.body)).refuses(t, 404, "not_found")
			if c.field != "" && !strings.HasPrefix(p.Detail, c.field) {
				t.Errorf("detail %q does not name %s", p.Detail, c.field)
			}
		})
	}
	h.rest("GET", "/prompts/"+mine.prompt+"/diff?with="+theirs.prompt, "").refuses(t, 404, "not_found")
	h.upload("POST", "/conversations/import", "a.jsonl", []byte(chatLog), "characterId="+theirs.character).refuses(t, 404, "not_found")
	archive := h.rest("GET", "/conversations/"+mine.conversation+"/export?format=json", "").body
	h.upload("POST", "/conversations/import", "a.json", archive, "characterId="+theirs.character).refuses(t, 404, "not_found")
	h.rest("GET", "/saves/"+mine.save+"?limit=1&before="+theirs.message, "").refuses(t, 404, "not_found")
}

// A search never finds another user's messages, whatever ids it names.
func TestASearchFindsOnlyOnesOwnMessages(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	theirs := h.newFixtures()
	h.rest("PATCH", "/messages/"+theirs.message, `{"text":"the password is swordfish"}`).wants(t, 200)
	find := func(query string) []any {
		t.Helper()
		return h.rest("GET", "/messages/search?q=swordfish"+query, "").wants(t, 200)["items"].([]any)
	}
	for _, query := range []string{"", "&conversationId=" + theirs.conversation, "&characterId=" + theirs.character} {
		if found := find(query); len(found) != 1 {
			t.Fatalf("%s: the owner finds %v", query, found)
		}
	}
	h.token = h.newMember("stranger")
	mine := h.newFixtures()
	if found := find(""); len(found) != 0 {
		t.Errorf("a stranger finds %v", found)
	}
	for _, query := range []string{"&conversationId=" + theirs.conversation, "&characterId=" + theirs.character} {
		if a := h.rest("GET", "/messages/search?q=swordfish"+query, ""); strings.Contains(string(a.body), "password") {
			t.Errorf("%s: a stranger reads %s", query, a.body)
		}
	}
	if found := find("&conversationId=" + mine.conversation); len(found) != 0 {
		t.Errorf("a stranger finds %v", found)
	}
	for _, path := range []string{"/conversations/" + theirs.conversation + "/branches", "/conversations/" + theirs.conversation + "/tree", "/conversations/" + theirs.conversation + "/export?format=json", "/saves/" + theirs.save + "/export"} {
		if a := h.rest("GET", path, ""); a.status != 404 || strings.Contains(string(a.body), "password") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestOnlyOwnersManageUsers(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	member, err := h.accounts.CreateUser(context.Background(), h.user, account.NewUser{Username: "mia", Password: "a long enough password"})
	h.must(err)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/users", ""}, {"GET", "/usage/users", ""}, {"POST", "/users", `{"username":"x","password":"a long enough password"}`},
		{"PATCH", "/users/" + h.user.ID, `{"role":"member"}`}, {"DELETE", "/users/" + h.user.ID, ""},
		{"PATCH", "/users/" + member.ID, `{"role":"owner"}`}, {"DELETE", "/users/" + op.NewID(), ""},
	} {
		h.rest(c.method, c.path, c.body, "Authorization: Bearer "+h.newToken(member.ID)).refuses(t, 403, "forbidden")
	}
	h.rest("PATCH", "/users/"+op.NewID(), `{}`).refuses(t, 404, "not_found")
	h.rest("DELETE", "/users/"+op.NewID(), "").refuses(t, 404, "not_found")
	h.rest("DELETE", "/users/"+h.user.ID, "").refuses(t, 409, "conflict") // the last owner stays
}

// Without a valid token, only the routes for signing in answer.
func TestEveryRouteRequiresAuthentication(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	open := map[string]bool{"POST /api/v1/auth/login": true, "POST /api/v1/auth/signin": true, "GET /api/v1/ws": true}
	for _, r := range h.server.echo.Routes() {
		if !strings.HasPrefix(r.Path, base) || open[r.Method+" "+r.Path] {
			continue
		}
		path := strings.NewReplacer(":id", op.NewID(), ":name", "gemini").Replace(strings.TrimPrefix(r.Path, base))
		for _, header := range []string{"Authorization: ", "Authorization: Bearer wrong", "Authorization: Basic b3duZXI6eA==", "Authorization: Bearer "} {
			a := h.rest(r.Method, path, "", header)
			a.refuses(t, 401, "unauthenticated")
			if a.header.Get("WWW-Authenticate") == "" {
				t.Error(fmt.Sprint(r.Method, r.Path, " has no WWW-Authenticate"))
			}
		}
	}
}
