package server

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodest/internal/op"
	"nodest/knowledge"
)

// newBase creates a knowledge base and returns its id.
func (h *testServer) newBase(name string) string {
	h.t.Helper()
	return stringAt(h.rest("POST", "/knowledge-bases", `{"name":"`+name+`"}`).wants(h.t, 201), "id")
}

// addFile uploads a document and returns it.
func (h *testServer) addFile(name, text string, fields ...string) map[string]any {
	h.t.Helper()
	a := h.upload("POST", "/files", name, []byte(text), fields...)
	if a.status != 200 && a.status != 202 {
		h.t.Fatalf("%d %s", a.status, a.body)
	}
	return a.object(h.t)["file"].(map[string]any)
}

// as runs f with the token of another user.
func (h *testServer) as(token string, f func()) {
	h.t.Helper()
	mine := h.token
	h.token = token
	defer func() { h.token = mine }()
	f()
}

// processed waits until a file is ready or has failed.
func (h *testServer) processed(id string) map[string]any {
	h.t.Helper()
	for deadline := time.Now().Add(testTimeout); ; {
		f := h.rest("GET", "/files/"+id, "").wants(h.t, 200)
		if f["state"] == "ready" || f["state"] == "failed" {
			return f
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the file is still %v", f)
		}
		<-time.After(10 * time.Millisecond)
	}
}

const harbour = "# The harbour\n\nThe light was automated in March 1987. Before that, Maren Oduya kept it for twenty years.\n"

func TestAFileIsUploadedAndDownloaded(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	first := h.upload("POST", "/files", "harbour.md", []byte(harbour))
	f := first.wants(t, 202)["file"].(map[string]any)
	if f["name"] != "harbour.md" || f["access"] != "owner" || f["size"] != float64(len(harbour)) || f["duplicate"] != nil || f["version"] != 1.0 {
		t.Errorf("file: %v", f)
	}
	again := h.upload("POST", "/files", "copy.md", []byte(harbour)).wants(t, 200)["file"].(map[string]any)
	if again["id"] != f["id"] || again["duplicate"] != true || again["name"] != "harbour.md" {
		t.Errorf("the same content again: %v", again)
	}
	id := f["id"].(string)
	got := h.rest("GET", "/files/"+id, "")
	if got.wants(t, 200)["id"] != id || got.header.Get("ETag") != `"1"` {
		t.Errorf("%v %s", got.header, got.body)
	}
	if list := h.rest("GET", "/files", "").items(t); len(list) != 1 {
		t.Errorf("%d files", len(list))
	}
	if list := h.rest("GET", "/files?state=failed", "").items(t); len(list) != 0 {
		t.Errorf("failed: %v", list)
	}
	h.rest("GET", "/files?state=lost", "").refuses(t, 400, "invalid_field", "state")
	h.rest("GET", "/files?limit=0", "").refuses(t, 400, "invalid_field", "limit")
	h.rest("GET", "/files?cursor=nonsense", "").refuses(t, 400, "invalid_field", "cursor")

	whole := h.rest("GET", "/files/"+id+"/content", "")
	whole.wants(t, 200)
	if string(whole.body) != harbour || whole.header.Get("Accept-Ranges") != "bytes" {
		t.Errorf("%v %q", whole.header, whole.body)
	}
	h.rest("GET", "/files/"+id+"/content", "", "If-None-Match: "+whole.header.Get("ETag")).wants(t, 304)
	part := h.rest("GET", "/files/"+id+"/content", "", "Range: bytes=2-12")
	part.wants(t, 206)
	if string(part.body) != "The harbour" || part.header.Get("Content-Range") != fmt.Sprintf("bytes 2-12/%d", len(harbour)) {
		t.Errorf("%v %q", part.header, part.body)
	}
	h.rest("GET", "/files/"+id+"/content", "", "Range: bytes=100000-").wants(t, 416)
	if head := h.rest("HEAD", "/files/"+id+"/content", ""); head.status != 200 || head.header.Get("Content-Length") != fmt.Sprint(len(harbour)) {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}

	h.rest("DELETE", "/files/"+id, "").wants(t, 204)
	for _, path := range []string{"", "/content", "/text", "/chunks"} {
		h.rest("GET", "/files/"+id+path, "").refuses(t, 404, "not_found")
	}
	h.rest("DELETE", "/files/"+id, "").refuses(t, 404, "not_found")
	if new := h.addFile("harbour.md", harbour); new["id"] == id {
		t.Error("a deleted file came back")
	}
}

// A repeated request has one effect, and its key belongs to its content.
func TestARepeatedUploadOfADocumentIsStoredOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	key := "Idempotency-Key: up-1"
	first, again := h.upload("POST", "/files", "a.md", []byte(harbour), key), h.upload("POST", "/files", "a.md", []byte(harbour), key)
	first.wants(t, 202)
	again.wants(t, 202)
	if !bytes.Equal(first.body, again.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%s\n%s", first.body, again.body)
	}
	h.upload("POST", "/files", "a.md", []byte("something else"), key).refuses(t, 422, "key_reused")
	h.upload("POST", "/files", "b.md", []byte(harbour), key).refuses(t, 422, "key_reused")
}

func TestTwoUploadsAtOnceMakeOneFile(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	text := []byte(strings.Repeat(harbour, 30_000)) // more than one part
	var wg sync.WaitGroup
	answers := make([]*restResponse, 4)
	for i := range answers {
		wg.Go(func() { answers[i] = h.upload("POST", "/files", "harbour.md", text) })
	}
	wg.Wait()
	accepted := 0
	for _, a := range answers {
		if a.status == 202 {
			accepted++
		} else {
			a.wants(t, 200)
		}
	}
	if accepted != 1 {
		t.Errorf("%d uploads were accepted as new", accepted)
	}
	if list := h.rest("GET", "/files", "").items(t); len(list) != 1 {
		t.Errorf("%d files", len(list))
	}
}

func TestBadUploadsOfDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("POST", "/files", "text", "Content-Type: text/plain").refuses(t, 415, "unsupported_media_type")
	h.rest("POST", "/files", "--x--\r\n", "Content-Type: multipart/form-data; boundary=x").refuses(t, 400, "invalid_field", "file")
	h.rest("POST", "/files", "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ncut",
		"Content-Type: multipart/form-data; boundary=x").refuses(t, 400, "bad_request")
	h.rest("POST", "/files?mood=good", "").refuses(t, 400, "invalid_field", "mood")
	h.upload("POST", "/files", "a.md", []byte("a"), "knowledgeBaseId="+op.NewID()).refuses(t, 404, "not_found")
	h.upload("POST", "/files", "a.md", []byte("a"), "knowledgeBaseId="+strings.Repeat("x", 5000)).refuses(t, 400, "invalid_field", "knowledgeBaseId")
	two := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\na\r\n"
	h.rest("POST", "/files", two+two+"--x--\r\n", "Content-Type: multipart/form-data; boundary=x").refuses(t, 400, "invalid_field", "file")
	if list := h.rest("GET", "/files", "").items(t); len(list) != 0 {
		t.Errorf("stored: %v", list)
	}
}

// zeros is an endless body that counts what is read of it. The client may go on reading when it
// has the answer.
type zeros struct{ read atomic.Int64 }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.read.Add(int64(len(p)))
	return len(p), nil
}

// A body whose length says that it is too large is not read at all; without a length,
// reading ends at the limit.
func TestAGigabyteIsRefusedWithoutBeingRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newTestServer(t, func(o *Options) { o.TempDir = dir })
	const gigabyte = 1 << 30
	for name, length := range map[string]int64{"with its length": gigabyte, "in chunks": -1} {
		t.Run(name, func(t *testing.T) {
			head := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n"
			endless := &zeros{}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.http.URL+base+"/files", io.MultiReader(strings.NewReader(head), io.LimitReader(endless, gigabyte)))
			h.must(err)
			req.ContentLength = length
			req.Header.Set("Authorization", "Bearer "+h.token)
			req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
			req.Header.Set("Expect", "100-continue")
			res, err := (&http.Client{Transport: &http.Transport{ExpectContinueTimeout: testTimeout}}).Do(req)
			h.must(err)
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			(&restResponse{res.StatusCode, res.Header, body}).refuses(t, 413, "too_large")
			most := int64(0)
			if length < 0 {
				most = 120 << 20
			}
			if n := endless.read.Load(); n > most {
				t.Errorf("%d bytes were sent", n)
			}
		})
	}
	if n := filesIn(t, dir); n != 0 {
		t.Errorf("%d temporary files are left", n)
	}
	h.wantNothingHeld()
}

// A file that a user has no room for is not read: neither a body that says how long it is, nor more of one
// that does not than there is room for. A repeated request is answered like the first one.
func TestWhatHasNoRoomIsNotRead(t *testing.T) {
	t.Parallel()
	h := newTestServerOf(t, parts{room: 1 << 20}, nil)
	first := h.upload("POST", "/files", "a.md", bytes.Repeat([]byte("a"), 1000), "Idempotency-Key: first")
	id := stringAt(first.wants(t, 202)["file"].(map[string]any), "id")
	send := func(method, path string, length int64) (*restResponse, int64) {
		t.Helper()
		head := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n"
		endless := &zeros{}
		req, err := http.NewRequestWithContext(t.Context(), method, h.http.URL+base+path, io.MultiReader(strings.NewReader(head), io.LimitReader(endless, 50<<20)))
		h.must(err)
		req.ContentLength = length
		req.Header.Set("Authorization", "Bearer "+h.token)
		req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		req.Header.Set("Expect", "100-continue")
		res, err := (&http.Client{Transport: &http.Transport{ExpectContinueTimeout: testTimeout}}).Do(req)
		h.must(err)
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return &restResponse{res.StatusCode, res.Header, body}, endless.read.Load()
	}
	for _, to := range [][2]string{{"POST", "/files"}, {"PUT", "/files/" + id + "/content"}} {
		for length, most := range map[int64]int64{2 << 20: 0, -1: 20 << 20} { // with what is on its way
			answer, read := send(to[0], to[1], length)
			answer.refuses(t, 413, "too_large")
			if read > most {
				t.Errorf("%s with length %d: %d bytes were sent", to[0], length, read)
			}
		}
	}
	h.upload("POST", "/files", "b.md", bytes.Repeat([]byte("b"), 1<<20-1000)).wants(t, 202)
	h.upload("POST", "/files", "c.md", []byte("c")).refuses(t, 413, "too_large")
	again := h.upload("POST", "/files", "a.md", bytes.Repeat([]byte("a"), 1000), "Idempotency-Key: first")
	if again.status != 202 || !bytes.Equal(again.body, first.body) {
		t.Errorf("the first request again: %d %s", again.status, again.body)
	}
}

// Uploads that never end keep no others of their user out for good, nor those of other users.
func TestUploadsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for range spoolsAtOnce {
		if !h.server.spools.enter(h.user.ID) {
			t.Fatal("refused too early")
		}
	}
	refused := h.upload("POST", "/files", "a.md", []byte("a"))
	refused.refuses(t, 429, "rate_limited")
	if refused.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	h.as(h.newMember("ann"), func() { h.addFile("a.md", "a") })
	h.server.spools.leave(h.user.ID)
	h.addFile("a.md", "a")
	h.addFile("b.md", "b")
}

// The spool is gone after each upload, whatever became of it, and its failure is told.
func TestNothingIsLeftOfAnUpload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newTestServer(t, func(o *Options) { o.TempDir = dir })
	h.addFile("a.md", harbour)
	h.upload("POST", "/files", "b.md", []byte("b"), "knowledgeBaseId="+op.NewID()).refuses(t, 404, "not_found")
	if n := filesIn(t, dir); n != 0 {
		t.Errorf("%d temporary files are left", n)
	}
	h.server.opts.TempDir = dir + "/missing"
	h.upload("POST", "/files", "c.md", []byte("c")).refuses(t, 500, "internal")
}

// Whatever a client calls a file, it is shown as a plain name and never a path, and its
// download is data.
func TestHostileFileNamesAreHarmless(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for i, name := range []string{
		`x"><inject name="y.md`, "../../etc/passwd", strings.Repeat("n", 5000) + ".md", "", "a\u202egnp.exe", "a\r\nSet-Cookie: x=1.md", `..\..\boot.ini`, "\xff\xfe.md",
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			form := "--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n" + name +
				"\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n<script>alert(" + fmt.Sprint(i) + ")</script>\r\n--x--\r\n"
			a := h.rest("POST", "/files", form, "Content-Type: multipart/form-data; boundary=x")
			if !strings.HasPrefix(name, "\xff") && len(name) < 5000 {
				a.wants(t, 202)
			} else if a.status != 202 {
				a.refuses(t, 400, "invalid_field", "name")
				a = h.upload("POST", "/files", name, []byte(name))
			}
			f := a.wants(t, 202)["file"].(map[string]any)
			stored := f["name"].(string)
			if stored == "" || len([]rune(stored)) > 200 || strings.HasPrefix(stored, "/") || strings.Contains(stored, "..") || strings.ContainsAny(stored, "\r\n\\\u202e\x00") {
				t.Errorf("stored as %q", stored)
			}
			got := h.rest("GET", "/files/"+f["id"].(string)+"/content", "")
			got.wants(t, 200)
			for header, want := range map[string]string{
				"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Set-Cookie": "", "Content-Security-Policy": dataPolicy,
			} {
				if is := got.header.Get(header); is != want {
					t.Errorf("%s: %q", header, is)
				}
			}
			if !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") {
				t.Errorf("disposition %q", got.header.Get("Content-Disposition"))
			}
		})
	}
}

func TestAFileIsReplaced(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	f := h.addFile("harbour.md", harbour, "name=lore/harbour.md")
	other := h.addFile("other.md", "other")
	path := "/files/" + f["id"].(string)
	if f["name"] != "lore/harbour.md" {
		t.Errorf("name %v", f["name"])
	}
	got := h.upload("PUT", path+"/content", "new.md", []byte("# New"), `If-Match: "1"`).wants(t, 202)["file"].(map[string]any)
	if got["id"] != f["id"] || got["name"] != "lore/harbour.md" || got["version"] != 2.0 || got["size"] != 5.0 {
		t.Errorf("replaced: %v", got)
	}
	if a := h.rest("GET", path+"/content", ""); string(a.body) != "# New" {
		t.Errorf("content %q", a.body)
	}
	h.upload("PUT", path+"/content", "new.md", []byte("# Newer"), `If-Match: "1"`).refuses(t, 412, "precondition_failed")
	h.upload("PUT", path+"/content", "new.md", []byte("# Newer"), `If-Match: "x"`).refuses(t, 412, "precondition_failed")
	if p := h.upload("PUT", path+"/content", "new.md", []byte("other")).refuses(t, 409, "conflict"); p.Details["fileId"] != other["id"] {
		t.Errorf("details %v", p.Details)
	}
	if got := h.upload("PUT", path+"/content", "x", []byte("# New"), "name=lore/new.md").wants(t, 202)["file"].(map[string]any); got["name"] != "lore/new.md" {
		t.Errorf("renamed: %v", got)
	}
	h.upload("PUT", "/files/"+op.NewID()+"/content", "x", []byte("x")).refuses(t, 404, "not_found")
}

func TestAKnowledgeBaseIsKept(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	made := h.rest("POST", "/knowledge-bases", `{"name":" Harbour ","description":"The lighthouse.","chunkSize":1000,"chunkOverlap":100,"contextLines":true}`)
	b := made.wants(t, 201)
	path := "/knowledge-bases/" + b["id"].(string)
	if b["name"] != "Harbour" || b["access"] != "owner" || b["files"] != 0.0 || b["contextLines"] != true || b["chunkSize"] != 1000.0 || made.header.Get("ETag") != `"1"` {
		t.Errorf("made %v", b)
	}
	for body, field := range map[string]string{
		`{}`: "name", `{"name":" "}`: "name", `{"name":"x","chunkSize":99}`: "chunkSize", `{"name":"x","chunkSize":800,"chunkOverlap":401}`: "chunkOverlap",
		`{"name":"x","mood":1}`: "mood", `{"name":1}`: "name",
	} {
		h.rest("POST", "/knowledge-bases", body).refuses(t, 400, "invalid_field", field)
	}
	if got := h.rest("PATCH", path, `{"description":"Keepers."}`, `If-Match: "1"`).wants(t, 200); got["name"] != "Harbour" || got["description"] != "Keepers." || got["version"] != 2.0 {
		t.Errorf("changed: %v", got)
	}
	h.rest("PATCH", path, `{"name":"x"}`, `If-Match: "1"`).refuses(t, 412, "precondition_failed")
	h.rest("PATCH", path, `{"name":"x","ifVersion":1}`).refuses(t, 412, "precondition_failed")

	f := h.addFile("harbour.md", harbour, "knowledgeBaseId="+b["id"].(string))
	loose := h.addFile("loose.md", "loose")
	h.rest("PUT", path+"/files/"+loose["id"].(string), "").wants(t, 204)
	h.rest("PUT", path+"/files/"+loose["id"].(string), "").wants(t, 204)
	if files := h.rest("GET", path+"/files", "").items(t); len(files) != 2 {
		t.Errorf("files: %v", files)
	}
	h.rest("DELETE", path+"/files/"+loose["id"].(string), "").wants(t, 204)
	h.rest("PUT", path+"/files/"+op.NewID(), "").refuses(t, 404, "not_found")
	if got := h.rest("GET", path, "").wants(t, 200); got["files"] != 1.0 {
		t.Errorf("files: %v", got["files"])
	}
	if list := h.rest("GET", "/knowledge-bases", "").items(t); len(list) != 1 {
		t.Errorf("list %v", list)
	}
	h.rest("DELETE", path+"?files=true", "").wants(t, 204)
	h.rest("GET", path, "").refuses(t, 404, "not_found")
	h.rest("GET", "/files/"+f["id"].(string), "").refuses(t, 404, "not_found")
	h.rest("GET", "/files/"+loose["id"].(string), "").wants(t, 200)
	h.rest("DELETE", path, "").refuses(t, 404, "not_found")
}

func TestACharacterHasKnowledge(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	character, b, f := h.newCharacter(), h.newBase("Harbour"), h.addFile("harbour.md", harbour)["id"].(string)
	path := "/characters/" + character
	if got := h.rest("PUT", path+"/knowledge/"+b, "").wants(t, 200); got["enabled"] != true || got["name"] != "Harbour" {
		t.Errorf("bound %v", got)
	}
	if got := h.rest("PUT", path+"/knowledge/"+b, `{"enabled":false}`).wants(t, 200); got["enabled"] != false {
		t.Errorf("bound %v", got)
	}
	if got := h.rest("PUT", path+"/files/"+f, `{"position":3}`).wants(t, 200); got["enabled"] != true || got["position"] != 3.0 {
		t.Errorf("bound %v", got)
	}
	h.rest("PUT", path+"/files/"+f, `{"position":-1}`).refuses(t, 400, "invalid_field", "position")
	h.rest("PUT", path+"/files/"+f, `{"enabled":"yes"}`).refuses(t, 400, "invalid_field", "enabled")
	got := h.rest("GET", path+"/knowledge", "").wants(t, 200)
	if len(got["files"].([]any)) != 1 || len(got["knowledgeBases"].([]any)) != 1 {
		t.Errorf("knows %v", got)
	}
	for _, missing := range []string{"/knowledge/" + op.NewID(), "/files/" + op.NewID()} {
		h.rest("PUT", path+missing, "").refuses(t, 404, "not_found")
		h.rest("DELETE", path+missing, "").refuses(t, 404, "not_found")
	}
	h.rest("DELETE", path+"/knowledge/"+b, "").wants(t, 204)
	h.rest("DELETE", path+"/files/"+f, "").wants(t, 204)
	if got := h.rest("GET", path+"/knowledge", "").wants(t, 200); len(got["files"].([]any))+len(got["knowledgeBases"].([]any)) != 0 {
		t.Errorf("knows %v", got)
	}
}

// Each route answers a user by what the owner has allowed: 404 without access, 403 for
// what the access does not include.
func TestAccessToASharedKnowledgeBase(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	b := h.newBase("Harbour")
	f := h.addFile("harbour.md", harbour, "knowledgeBaseId="+b)["id"].(string)
	path := "/knowledge-bases/" + b
	tom := h.newMember("tom")
	h.rest("PUT", path+"/grants/nobody", `{"role":"read"}`).refuses(t, 404, "not_found")
	h.rest("PUT", path+"/grants/tom", `{"role":"king"}`).refuses(t, 400, "invalid_field", "role")
	reads := []string{path, path + "/files", path + "/grants", path + "/reindex", "/files/" + f, "/files/" + f + "/content", "/files/" + f + "/chunks"}
	var own string
	h.as(tom, func() {
		own = h.addFile("own.md", "Tom's own.")["id"].(string)
		for _, at := range reads {
			h.rest("GET", at, "").refuses(t, 404, "not_found")
		}
		h.rest("POST", "/knowledge-bases/search", `{"query":"light","knowledgeBaseIds":["`+b+`"]}`).refuses(t, 404, "not_found")
		h.rest("POST", "/knowledge/ask", `{"question":"light?","knowledgeBaseIds":["`+b+`"]}`).refuses(t, 404, "not_found")
		h.upload("POST", "/files", "x.md", []byte("x"), "knowledgeBaseId="+b).refuses(t, 404, "not_found")
		h.upload("POST", path+"/import", "x.zip", zipOf(t, "a.md", "a")).refuses(t, 404, "not_found")
		h.rest("PUT", path+"/files/"+own, "").refuses(t, 404, "not_found")
	})
	grant := h.rest("PUT", path+"/grants/tom", `{"role":"read"}`).wants(t, 200)
	if grant["username"] != "tom" || grant["grantedBy"] != h.user.ID {
		t.Errorf("grant %v", grant)
	}
	if list := h.rest("GET", path+"/grants", "").items(t); len(list) != 1 {
		t.Errorf("grants %v", list)
	}
	owners := func() {
		h.rest("PATCH", path, `{"name":"Mine"}`).refuses(t, 403, "forbidden")
		h.rest("DELETE", path, "").refuses(t, 403, "forbidden")
		h.rest("PUT", path+"/grants/"+h.user.ID, `{"role":"read"}`).refuses(t, 403, "forbidden")
		h.rest("DELETE", path+"/grants/"+h.user.ID, "").refuses(t, 403, "forbidden")
		h.upload("PUT", "/files/"+f+"/content", "x", []byte("x")).refuses(t, 403, "forbidden")
		h.rest("DELETE", "/files/"+f, "").refuses(t, 403, "forbidden")
		h.rest("POST", "/files/"+f+"/retry", "").refuses(t, 403, "forbidden")
		h.rest("PUT", path+"/files/"+f, "").refuses(t, 403, "forbidden")
	}
	h.as(tom, func() {
		for _, at := range reads {
			h.rest("GET", at, "").wants(t, 200)
		}
		if got := h.rest("GET", path, "").wants(t, 200); got["access"] != "read" {
			t.Errorf("access %v", got["access"])
		}
		if got := h.rest("GET", "/files/"+f, "").wants(t, 200); got["access"] != "read" || got["ownerId"] != h.user.ID {
			t.Errorf("file %v", got)
		}
		owners()
		h.rest("PUT", path+"/files/"+own, "").refuses(t, 403, "forbidden")
		h.rest("DELETE", path+"/files/"+f, "").refuses(t, 403, "forbidden")
		h.rest("POST", path+"/reindex", "").refuses(t, 403, "forbidden")
		h.rest("DELETE", path+"/reindex", "").refuses(t, 403, "forbidden")
		h.upload("POST", "/files", "x.md", []byte("x"), "knowledgeBaseId="+b).refuses(t, 403, "forbidden")
		h.upload("POST", path+"/import", "x.zip", zipOf(t, "a.md", "a")).refuses(t, 403, "forbidden")
	})
	h.rest("PUT", path+"/grants/tom", `{"role":"write"}`).wants(t, 200)
	h.as(tom, func() {
		owners()
		h.rest("PUT", path+"/files/"+own, "").wants(t, 204)
	})
	if got := h.rest("GET", "/files/"+own, "").wants(t, 200); got["access"] != "read" {
		t.Errorf("the other's file: %v", got)
	}
	h.rest("DELETE", "/files/"+own, "").refuses(t, 403, "forbidden")
	h.rest("DELETE", path+"/grants/tom", "").wants(t, 204)
	h.rest("GET", "/files/"+own, "").refuses(t, 404, "not_found")
	h.as(tom, func() {
		for _, at := range reads {
			h.rest("GET", at, "").refuses(t, 404, "not_found")
		}
	})
}

// zipOf is an archive with files: name, text, name, text.
func zipOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnArchiveBecomesFiles(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	b := h.newBase("Harbour")
	path := "/knowledge-bases/" + b
	got := h.upload("POST", path+"/import", "lore.zip", zipOf(t, "lore/harbour.md", harbour, "lore/keepers.md", "Maren.", "more.zip", "PK")).wants(t, 202)
	if n := len(got["files"].([]any)); n != 2 || len(got["failed"].([]any)) != 1 {
		t.Errorf("%d files: %v", n, got)
	}
	names := fmt.Sprint(h.rest("GET", path+"/files", "").items(t))
	if !strings.Contains(names, "lore/harbour.md") || !strings.Contains(names, "lore/keepers.md") {
		t.Errorf("files: %s", names)
	}
	h.upload("POST", path+"/import", "x.zip", []byte("no archive")).refuses(t, 415, "unsupported_media_type")
	h.upload("POST", "/knowledge-bases/"+op.NewID()+"/import", "x.zip", zipOf(t, "a", "b")).refuses(t, 404, "not_found")
}

func TestAPageBecomesAFile(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("POST", "/files/web", `{"url":" "}`).refuses(t, 400, "invalid_field", "url")
	h.rest("POST", "/files/web", `{}`).refuses(t, 400, "invalid_field", "url")
	h.rest("POST", "/files/web", `{"url":"http://127.0.0.1/"}`).refuses(t, 400, "invalid_field", "url")
}

func TestADocumentIsFoundReadAndAsked(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	b := h.newBase("Harbour")
	id := h.addFile("harbour.md", harbour, "knowledgeBaseId="+b)["id"].(string)
	if f := h.processed(id); f["state"] != "ready" || f["chunks"] != 1.0 || f["contentType"] == "" {
		t.Fatalf("file %v", f)
	}
	text := h.rest("GET", "/files/"+id+"/text", "").wants(t, 200)
	if !strings.Contains(text["text"].(string), "March 1987") || len(text["outline"].([]any)) != 1 {
		t.Errorf("text %v", text)
	}
	part := h.rest("GET", "/files/"+id+"/text?offset=2&limit=11", "").wants(t, 200)
	if part["text"] != "The harbour" || part["offset"] != 2.0 || part["total"] != float64(len(text["text"].(string))) {
		t.Errorf("a part of the text: %v", part)
	}
	if end := h.rest("GET", "/files/"+id+"/text?offset=100000", "").wants(t, 200); end["text"] != "" {
		t.Errorf("behind the end: %v", end)
	}
	if text["edition"] != 1.0 || part["edition"] != 1.0 {
		t.Errorf("edition %v, of a part %v", text["edition"], part["edition"])
	}
	h.upload("PUT", "/files/"+id+"/content", "harbour.md", []byte(harbour+"\nThe end.\n")).wants(t, 202)
	h.processed(id)
	if text := h.rest("GET", "/files/"+id+"/text", "").wants(t, 200); text["edition"] != 2.0 {
		t.Errorf("edition %v of another content", text["edition"])
	}
	h.rest("GET", "/files/"+id+"/text?limit=1000001", "").refuses(t, 400, "invalid_field", "limit")
	h.rest("GET", "/files/"+id+"/text?offset=-1", "").refuses(t, 400, "invalid_field", "offset")
	if chunks := h.rest("GET", "/files/"+id+"/chunks", "").items(t); len(chunks) != 1 {
		t.Errorf("chunks %v", chunks)
	}
	found := h.rest("POST", "/knowledge-bases/search", `{"query":"When was the light automated?","topK":3}`).wants(t, 200)
	if stringAt(found["chunks"].([]any)[0].(map[string]any), "fileId") != id || stringAt(found["files"].([]any)[0].(map[string]any), "knowledgeBase") != "Harbour" {
		t.Errorf("found %v", found)
	}
	for filter, want := range map[string]int{
		`"fileIds":["` + id + `"]`: 1, `"fileIds":["` + op.NewID() + `"]`: 0, `"fileIds":[]`: 0, `"types":[]`: 0, `"folder":"lore"`: 0, `"types":["pdf"]`: 0,
		`"updatedAfter":"2020-01-01T00:00:00.000Z"`: 1, `"updatedAfter":"2999-01-01T00:00:00.000Z"`: 0, `"mode":"lexical"`: 1, `"knowledgeBaseIds":["` + b + `"]`: 1,
	} {
		got := h.rest("POST", "/knowledge-bases/search", `{"query":"light automated",`+filter+`}`).wants(t, 200)
		if n := len(got["chunks"].([]any)); n != want {
			t.Errorf("%s: %d chunks", filter, n)
		}
	}
	for body, field := range map[string]string{
		`{}`: "query", `{"query":" "}`: "query", `{"query":"x","topK":0}`: "topK", `{"query":"x","topK":101}`: "topK", `{"query":"x","mode":"loud"}`: "mode",
		`{"query":"x","updatedAfter":"today"}`: "updatedAfter", `{"query":"x","fileIds":"f"}`: "fileIds",
	} {
		h.rest("POST", "/knowledge-bases/search", body).refuses(t, 400, "invalid_field", field)
	}
	h.rest("POST", "/knowledge-bases/search", `{"query":"x","knowledgeBaseIds":["`+op.NewID()+`"]}`).refuses(t, 404, "not_found")
	h.rest("POST", "/files/"+id+"/retry", "").refuses(t, 409, "conflict")

	state := h.rest("GET", "/knowledge-bases/"+b+"/reindex", "").wants(t, 200)
	if state["state"] != "idle" || state["total"] != 1.0 {
		t.Errorf("index %v", state)
	}
	h.rest("POST", "/knowledge-bases/"+b+"/reindex", "").wants(t, 202)
	h.rest("DELETE", "/knowledge-bases/"+b+"/reindex", "").wants(t, 204)

	h.model.enqueue(&script{pieces: []string{"In March 1987 [^1]."}})
	answer := h.rest("POST", "/knowledge/ask", `{"question":"When was the light automated?"}`).wants(t, 200)
	refs := answer["references"].([]any)
	if !strings.Contains(answer["answer"].(string), "[^1]") || len(refs) != 1 || !strings.Contains(harbour, stringAt(refs[0].(map[string]any), "exactQuote")) {
		t.Errorf("answer %v", answer)
	}
	h.rest("POST", "/knowledge/ask", `{"question":""}`).refuses(t, 400, "invalid_field", "question")
	h.rest("POST", "/knowledge/ask", `{"question":"x","topK":0}`).refuses(t, 400, "invalid_field", "topK")
	h.rest("POST", "/knowledge/ask", `{"question":"x","conversationId":"`+op.NewID()+`"}`).refuses(t, 404, "not_found")
}

// Readers of Japanese and German find words in uploads of any format, although readings stand
// above them, or soft hyphens within; hidden text is not found.
func TestUploadedDocumentsAreFoundByTheirWords(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	const page = `<title>x</title><p>私は<ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>と<ruby>京<rp>(</rp><rt>きょう</rt><rp>)</rp>都<rp>(</rp><rt>と</rt><rp>)</rp></ruby>へ行く。</p>` +
		`<p>Das Donau&#173;dampf&#8203;schiff<span style="display:none"> verschwindet</span>.</p>`
	packed := func(entries ...string) string {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		for i := 0; i < len(entries); i += 2 {
			e, err := w.Create(entries[i])
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(e, entries[i+1])
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	word := func(base, reading string) string {
		return `<w:r><w:ruby><w:rt><w:r><w:t>` + reading + `</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>` + base + `</w:t></w:r></w:rubyBase></w:ruby></w:r>`
	}
	open := func(base, reading string) string {
		return `<text:ruby><text:ruby-base>` + base + `</text:ruby-base><text:ruby-text>` + reading + `</text:ruby-text></text:ruby>`
	}
	for name, data := range map[string]string{
		"a.html": page,
		"a.epub": packed("mimetype", "application/epub+zip", "META-INF/container.xml", `<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>`,
			"b.opf", `<package><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>`,
			"c.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml"><body>`+page+`</body></html>`),
		"a.docx": packed("word/document.xml", `<w:document xmlns:w="w"><w:body><w:p>`+word("東", "とう")+word("京", "きょう")+`<w:r><w:t>と</w:t></w:r>`+word("京", "きょう")+word("都", "と")+
			"<w:r><w:t>へ Donau\u00addampf\u00adschiff</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t> verschwindet</w:t></w:r></w:p></w:body></w:document>"),
		"a.odt": packed("mimetype", "application/vnd.oasis.opendocument.text", "content.xml", `<o:document-content xmlns:o="o" xmlns:text="t"><o:body><o:text><text:p>`+
			open("東", "とう")+open("京", "きょう")+`と`+open("京", "きょう")+open("都", "と")+"へ Donau\u00addampf\u200bschiff</text:p></o:text></o:body></o:document-content>"),
		"a.txt": "東京と京\u200b都へ。Das Donau\u00addampf\u2060schiff.",
		"a.md":  "# <ruby>東京<rt>とうきょう</rt></ruby>と<ruby>京<rt>きょう</rt>都<rt>と</rt></ruby>\n\nDas Donau\u00addampfschiff.",
	} {
		base := h.newBase(name)
		if f := h.processed(h.addFile(name, data, "knowledgeBaseId="+base)["id"].(string)); f["state"] != "ready" {
			t.Fatalf("%s: %v", name, f)
		}
		for query, want := range map[string]int{"京都": 1, "東京": 1, "Donaudampfschiff": 1, "Donau\u00addampfschiff": 1, "verschwindet": 0, "きょう": 0} {
			found := h.rest("POST", "/knowledge-bases/search", `{"mode":"lexical","query":"`+query+`","knowledgeBaseIds":["`+base+`"]}`).wants(t, 200)
			if n := len(found["chunks"].([]any)); n != want {
				t.Errorf("%s: %d chunks with %s", name, n, query)
			}
		}
	}
}

func TestAFailedFileSaysWhyAndIsRetried(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	id := h.addFile("blank.md", " \n ")["id"].(string)
	f := h.processed(id)
	if f["state"] != "failed" || stringAt(f["error"].(map[string]any), "code") != "empty_document" {
		t.Fatalf("file %v", f)
	}
	if list := h.rest("GET", "/files?state=failed", "").items(t); len(list) != 1 {
		t.Errorf("failed: %v", list)
	}
	h.rest("GET", "/files/"+id+"/text", "").refuses(t, 404, "not_found")
	got := h.rest("POST", "/files/"+id+"/retry", "").wants(t, 202)["file"].(map[string]any)
	if got["state"] != "pending" || got["error"] != nil {
		t.Errorf("retried %v", got)
	}
	h.processed(id)
	if again := h.upload("POST", "/files", "blank.md", []byte(" \n ")).wants(t, 200); !strings.Contains(fmt.Sprint(again), "duplicate:true") {
		t.Errorf("again: %v", again)
	}
}

func filesIn(t testing.TB, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A document that failed because the provider refused the key goes on when a key is stored.
func TestAStoredKeyLetsDocumentsGoOn(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	id := h.addFile("harbour.md", harbour)["id"].(string)
	h.processed(id)
	h.must(h.db.Knowledge().Update(t.Context(), h.user.ID, func(tx knowledge.Tx) error {
		f, err := tx.OwnFile(id)
		if err != nil {
			return err
		}
		f.State, f.Error = knowledge.Failed, &knowledge.FileError{Code: "upstream_auth", Detail: "the key was refused", Retryable: true}
		return tx.UpdateFile(f)
	}))
	h.rest("PUT", "/providers/gemini/key", `{"key":"another"}`).wants(t, 204)
	if f := h.processed(id); f["state"] != "ready" {
		t.Errorf("%v", f)
	}
}
