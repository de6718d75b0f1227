package server

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"nodest/internal/op"
)

// oddInputs are values that no client should send.
var oddInputs = []string{
	"", " ", "0", "-1", "201", "99999999999999999999", "true", "yes", "fact", "fact,exchange", ",,fact", "active", "any", "profile", "user",
	"recall", "bees", "蜂", "a\x00b", "\xff", "' OR 1=1 --", "%", "\"", "💥", "\u202e", "1e5", "a\nb", "{}", "null", strings.Repeat("b ", 2000),
}

// Random requests about memories get a response that openapi.yaml describes, and
// never a server error.
func TestRandomMemoryRequestsCauseNoServerError(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := h.memoriesOf(chat)
	h.turn(chat, "My sister keeps bees.", "How many hives?")
	ids := []string{op.NewID(), chat, h.addMemory(path, "Mia keeps bees.", ""), "\x00", "x", strings.Repeat("a", 65)}
	r := rand.New(rand.NewPCG(8, 30))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	see := func(a *restResponse, what ...string) {
		t.Helper()
		if a.status >= 500 {
			t.Errorf("%q: %d %.300s", what, a.status, a.body)
		}
	}
	parameters := []string{"q", "mode", "layer", "kind", "subject", "status", "conversation", "pinned", "cursor", "limit"}
	for range 200 {
		query := url.Values{}
		for range 1 + r.IntN(3) {
			query.Set(pick(parameters), pick(oddInputs))
		}
		see(h.rest("GET", path+"?"+query.Encode(), ""), query.Encode())
	}
	values := []any{nil, -1, 0.5, 1e308, true, []any{}, []any{"x", nil}, map[string]any{}, "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"}
	for _, word := range oddInputs {
		values = append(values, word)
	}
	members := []string{"text", "subject", "kind", "importance", "eventTime", "pinned", "locked", "shareable", "query", "ids", "all", "decision", "from", "summary"}
	routes := []string{
		"POST " + path, "PATCH " + path + "/$", "POST " + path + "/$/restore", "DELETE " + path + "/$", "GET " + path + "/$/history",
		"POST " + path + "/forget", "POST " + path + "/suggestions/$", "POST /conversations/" + chat + "/summaries?wait=1",
		"PATCH /conversations/" + chat + "/summaries/$", "POST /conversations/$/memory/extract", "GET /messages/$/memories",
	}
	for range 300 {
		method, place, _ := strings.Cut(pick(routes), " ")
		place = strings.ReplaceAll(place, "$", url.PathEscape(pick(ids)))
		body := map[string]any{}
		for range 1 + r.IntN(3) {
			body[pick(members)] = values[r.IntN(len(values))]
		}
		text, err := json.Marshal(body)
		h.must(err)
		if method == "GET" || method == "DELETE" {
			text = nil
		}
		see(h.rest(method, place, string(text)), method, place, string(text))
	}
}

// Importing a randomly corrupted file never causes a server error.
func TestCorruptMemoryFilesCauseNoServerError(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := h.newMemoriesPath()
	h.addMemory(path, "Mia keeps bees.", `,"eventTime":"2020-01-01T00:00:00Z"`)
	file := h.rest("GET", path+"/export", "").body
	r := rand.New(rand.NewPCG(8, 31))
	for range 150 {
		corrupt := append([]byte(nil), file...)
		for range 1 + r.IntN(5) {
			at := r.IntN(len(corrupt))
			switch r.IntN(4) {
			case 0:
				corrupt[at] = byte(r.IntN(256))
			case 1:
				corrupt = append(corrupt[:at:at], corrupt[min(len(corrupt), at+r.IntN(20)):]...)
			case 2:
				corrupt = append(corrupt[:at:at], append([]byte(oddInputs[r.IntN(len(oddInputs))]), corrupt[at:]...)...)
			case 3:
				corrupt = append(corrupt, corrupt[at:]...)
			}
			corrupt = append(corrupt, '\n')
		}
		if a := h.rest("POST", path+"/import", string(corrupt), "Content-Type: application/x-ndjson"); a.status >= 500 {
			t.Errorf("%q: %d %s", corrupt, a.status, a.body)
		}
	}
}
