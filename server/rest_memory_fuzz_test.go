package server

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"nodest/op"
)

// strangeWords are what nobody should send.
var strangeWords = []string{
	"", " ", "0", "-1", "201", "99999999999999999999", "true", "yes", "fact", "fact,exchange", ",,fact", "active", "any", "profile", "user",
	"recall", "bees", "蜂", "a\x00b", "\xff", "' OR 1=1 --", "%", "\"", "💥", "\u202e", "1e5", "a\nb", "{}", "null", strings.Repeat("b ", 2000),
}

// Whatever is sent to the memory is answered as the document says, and never as an
// error of ours.
func TestNothingThatIsSentToAMemoryBreaksIt(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	path := "/characters/" + member(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "characterId") + "/memories"
	h.says(chat, "My sister keeps bees.", "How many hives?")
	ids := []string{op.NewID(), chat, h.tell(path, "Mia keeps bees.", ""), "\x00", "x", strings.Repeat("a", 65)}
	r := rand.New(rand.NewPCG(8, 30))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	see := func(a *restAnswer, what ...string) {
		t.Helper()
		if a.status >= 500 {
			t.Errorf("%q: %d %.300s", what, a.status, a.body)
		}
	}
	parameters := []string{"q", "mode", "layer", "kind", "subject", "status", "conversation", "pinned", "cursor", "limit"}
	for range 200 {
		query := url.Values{}
		for range 1 + r.IntN(3) {
			query.Set(pick(parameters), pick(strangeWords))
		}
		see(h.rest("GET", path+"?"+query.Encode(), ""), query.Encode())
	}
	values := []any{nil, -1, 0.5, 1e308, true, []any{}, []any{"x", nil}, map[string]any{}, "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"}
	for _, word := range strangeWords {
		values = append(values, word)
	}
	members := []string{"text", "subject", "kind", "importance", "eventTime", "pinned", "locked", "query", "ids", "all", "decision", "from", "summary"}
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

// A file that was spoilt on its way is refused line by line.
func TestASpoiltFileOfMemories(t *testing.T) {
	h := build(t, nil)
	path := h.remembered()
	h.tell(path, "Mia keeps bees.", `,"eventTime":"2020-01-01T00:00:00Z"`)
	file := h.rest("GET", path+"/export", "").body
	r := rand.New(rand.NewPCG(8, 31))
	for range 150 {
		spoilt := append([]byte(nil), file...)
		for range 1 + r.IntN(5) {
			at := r.IntN(len(spoilt))
			switch r.IntN(4) {
			case 0:
				spoilt[at] = byte(r.IntN(256))
			case 1:
				spoilt = append(spoilt[:at:at], spoilt[min(len(spoilt), at+r.IntN(20)):]...)
			case 2:
				spoilt = append(spoilt[:at:at], append([]byte(strangeWords[r.IntN(len(strangeWords))]), spoilt[at:]...)...)
			case 3:
				spoilt = append(spoilt, spoilt[at:]...)
			}
			spoilt = append(spoilt, '\n')
		}
		if a := h.rest("POST", path+"/import", string(spoilt), "Content-Type: application/x-ndjson"); a.status >= 500 {
			t.Errorf("%q: %d %s", spoilt, a.status, a.body)
		}
	}
}
