package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/tavern/taverntest"
	"nodest/websearch/provider/providertest"
)

// testedElsewhere lists the events that other tests cover: they need a slow reader,
// tagged text, a web page, a model that calls tools, an expiring token or a shutdown.
var testedElsewhere = []string{"hello", "gen.references", "gen.tool", "gen.behind", "gen.block", "extraction.pending", "extraction.reviewed", "extraction.committed", "auth.expiring", "server.going_away"}

// Changes made over REST reach the socket as events, and every event that
// asyncapi.yaml describes is sent. The client validates their content.
func TestEveryDescribedEventIsSent(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	quiet, _ := h.connect(map[string]any{"deviceId": "quiet", "quiet": true})
	e := h.newFixtures()
	h.makeSuggestion(p, e.conversation)
	h.model.enqueue(&script{pieces: []string{"Hm.</think>Yes."}})
	h.rest("POST", "/conversations/"+e.conversation+"/messages", `{"text":"Hello?"}`).wants(t, 200)
	h.model.enqueue(&script{fails: fault.New(fault.UpstreamDown, "gone")})
	h.rest("POST", "/conversations/"+e.conversation+"/messages", `{"text":"Anybody?"}`).refuses(t, 503, "upstream_unavailable")
	h.rest("PATCH", "/users/"+h.user.ID, `{"limits":{"usdPerMonth":1}}`).wants(t, 200)
	h.model.enqueue(&script{pieces: []string{"Dear."}, usd: 0.9})
	h.rest("POST", "/conversations/"+e.conversation+"/messages", `{"text":"What does it cost?"}`).wants(t, 200)
	h.rest("PATCH", "/users/"+h.user.ID, `{"limits":{"usdPerMonth":0}}`).wants(t, 200)
	h.rest("POST", "/saves/"+e.save+"/restore", "").wants(t, 200)
	h.rest("DELETE", "/saves/"+e.save, "").wants(t, 204)
	h.rest("DELETE", "/messages/"+e.message+"?scope=after", "").wants(t, 200)
	h.rest("POST", "/messages/"+e.message+"/restore", "").wants(t, 200)
	h.rest("PATCH", "/conversations/"+e.conversation, `{"title":"x"}`).wants(t, 200)
	h.rest("PUT", "/devices/tablet/ack", `{"seq":1,"read":{"`+e.conversation+`":"`+e.message+`"}}`).wants(t, 200)
	h.rest("PATCH", "/characters/"+e.character, `{"isCradle":true}`).wants(t, 200)
	h.rest("PUT", "/settings", `{}`).wants(t, 200)
	h.rest("DELETE", "/presets/"+e.resources["presets"], "").wants(t, 204)
	quiet.ok("typing", "", map[string]any{"conversationId": e.conversation})
	p.ok("ping", "", nil)
	h.useCircle(p, e)
	h.dream(p, e.character, `{"force":true}`)
	h.aboutLight()
	h.look(lightOrder)
	h.researcher = nil
	h.web.search.Fail(providertest.Fault{Status: http.StatusServiceUnavailable})
	failed := h.look(`"question":"Who kept the light of Tarn?"`)
	h.rest("DELETE", "/research/"+failed["id"].(string), "").wants(t, 204)
	h.importFolder(taverntest.Files{"characters/Cy.json": []byte(`{"name":"Cy"}`)})
	h.processed(e.file)
	file := h.fileOf()
	h.rest("POST", "/knowledge-bases/"+e.base+"/reindex", "").wants(t, 202)
	h.rest("DELETE", "/files/"+e.file, "").wants(t, 204)
	h.rest("DELETE", "/knowledge-bases/"+e.base, "").wants(t, 204)
	h.rest("DELETE", "/conversations/"+e.conversation, "").wants(t, 204)
	h.rest("DELETE", "/characters/"+e.character, "").wants(t, 204)
	h.upload("POST", "/me/import", "a.zip", file).wants(t, 200)
	p.event("typing", "")
	p.event("character.deleted", "")
	p.event("account.imported", "")
	quiet.event("skip", "")

	seen := map[string]bool{}
	for _, f := range append(p.all(), quiet.all()...) {
		seen[f.Ev] = true
	}
	for _, name := range slices.Sorted(maps.Keys(theContract().asyncapi["components"].(map[string]any)["messages"].(map[string]any))) {
		kind, ok := strings.CutPrefix(name, "event.")
		if ok && !seen[kind] && !slices.Contains(testedElsewhere, kind) {
			t.Errorf("%s is described but never sent", kind)
		}
	}
}
