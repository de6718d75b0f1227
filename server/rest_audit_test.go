package server

import (
	"strings"
	"testing"
)

func TestARightThatIsGivenIsNoted(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mia := h.createMia()
	base := h.rest("POST", "/knowledge-bases", `{"name":"Bees"}`).wants(t, 201)["id"].(string)
	h.rest("PUT", "/knowledge-bases/"+base+"/grants/"+mia.ID, `{"role":"read"}`).wants(t, 200)
	h.rest("DELETE", "/knowledge-bases/"+base+"/grants/"+mia.ID, "").wants(t, 204)
	items := h.rest("GET", "/audit?userId="+mia.ID, "").wants(t, 200)["items"].([]any)
	if len(items) < 2 {
		t.Fatalf("%v", items)
	}
	for i, action := range []string{"grant.taken", "grant.given"} {
		if e := items[i].(map[string]any); e["action"] != action || e["object"] != base || e["address"] != "127.0.0.1" || e["subject"].(map[string]any)["username"] != "Mia" {
			t.Errorf("%+v", e)
		}
	}
}

// actions lists the actions of a page of the audit log.
func actions(page map[string]any) (list []string) {
	for _, item := range page["items"].([]any) {
		list = append(list, item.(map[string]any)["action"].(string))
	}
	return list
}

func TestOwnersReadWhoDidWhat(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mia := h.createMia()
	h.rest("PUT", "/providers/gemini/key", `{"key":"sk-secret-of-the-owner"}`).wants(t, 204)
	h.rest("POST", "/auth/login", `{"username":"mia","password":"not the right one"}`).wants(t, 401)
	h.rest("POST", "/auth/login", `{"username":"a name that was a password","password":"not the right one"}`).wants(t, 401)
	h.rest("PATCH", "/users/"+mia.ID, `{"limits":{"generations":3},"password":"another good password"}`).wants(t, 200)

	log := h.rest("GET", "/audit", "").wants(t, 200)
	found := strings.Join(actions(log), " ")
	for _, action := range []string{"limits.changed", "password.changed", "signin.failed", "key.changed", "user.created", "token.created"} {
		if !strings.Contains(found, action) {
			t.Errorf("%s is missing in %s", action, found)
		}
	}
	first := log["items"].([]any)[0].(map[string]any)
	if first["address"] != "127.0.0.1" || first["agent"] == nil || first["subject"].(map[string]any)["username"] != "Mia" {
		t.Errorf("%+v", first)
	}
	text := string(h.rest("GET", "/audit", "").body)
	for _, secret := range []string{"sk-secret", "another good", "a name that was"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	page := h.rest("GET", "/audit?action=signin.failed&userId="+mia.ID, "").wants(t, 200)
	if got := actions(page); len(got) != 1 || got[0] != "signin.failed" {
		t.Errorf("failed sign-ins of Mia: %v", got)
	}
	h.rest("GET", "/audit?action=nonsense", "").refuses(t, 400, "invalid_field", "action")
	h.rest("GET", "/audit?userId=nonsense", "").refuses(t, 400, "invalid_field", "userId")
	if next := h.rest("GET", "/audit?limit=1", "").wants(t, 200)["nextCursor"]; next == "" || next == nil {
		t.Error("the log has no second page")
	}
	for _, path := range []string{"/audit", "/audit?userId=" + mia.ID} {
		h.rest("GET", path, "", "Authorization: Bearer "+h.newToken(mia.ID)).refuses(t, 403, "forbidden")
	}
}

// Each of these notes one entry about Mia, by whoever did it.
func TestWhatChangesAnAccountIsNoted(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mia := h.createMia()
	for _, tt := range []struct{ method, path, body, action, object string }{
		{"POST", "/auth/links", `{"username":"Mia"}`, "link.created", ""},
		{"PATCH", "/users/" + mia.ID, `{"role":"owner"}`, "role.changed", ""},
		{"PATCH", "/users/" + mia.ID, `{"role":"member"}`, "role.changed", ""},
		{"PUT", "/providers/gemini/key", `{"key":"sk-of-mia"}`, "key.changed", "gemini"},
		{"DELETE", "/providers/gemini/key", "", "key.removed", "gemini"},
		{"DELETE", "/me", `{"currentPassword":"not the right one"}`, "password.wrong", ""},
		{"POST", "/auth/logout", "", "token.ended", ""},
	} {
		before := len(h.rest("GET", "/audit?action="+tt.action+"&userId="+mia.ID, "").wants(t, 200)["items"].([]any))
		own := h.newToken(mia.ID)
		if strings.HasPrefix(tt.path, "/users/") || strings.HasPrefix(tt.path, "/auth/links") {
			own = h.token
		}
		got := h.rest(tt.method, tt.path, tt.body, "Authorization: Bearer "+own)
		items := h.rest("GET", "/audit?action="+tt.action+"&userId="+mia.ID, "").wants(t, 200)["items"].([]any)
		if len(items) != before+1 {
			t.Errorf("%s %s (%d): %d entries, not %d", tt.method, tt.path, got.status, len(items), before+1)
			continue
		}
		if e := items[0].(map[string]any); tt.object != "" && e["object"] != tt.object {
			t.Errorf("%s %s: %+v", tt.method, tt.path, e)
		}
	}
}
