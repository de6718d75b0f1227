package server

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"nodest/internal/account"
)

const goodPassword = "correct horse battery"

func (h *testServer) createMia() *account.User {
	h.t.Helper()
	u, err := h.accounts.CreateUser(context.Background(), h.user, account.NewUser{Username: "Mia", Password: goodPassword})
	h.must(err)
	return u
}

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mia := h.createMia()
	for name, body := range map[string]string{
		"a wrong password": `{"username":"mia","password":"wrong"}`,
		"nobody":           `{"username":"nobody","password":"` + goodPassword + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			h.rest("POST", "/auth/login", body, "Authorization: ").refuses(t, 401, "unauthenticated")
		})
	}
	for range 20 { // more than the allowed failures
		h.rest("POST", "/auth/login", `{"username":"mia"}`, "Authorization: ").refuses(t, 400, "invalid_field", "password")
		h.rest("POST", "/auth/login", ``, "Authorization: ").refuses(t, 400, "invalid_field", "username")
	}
	in := h.rest("POST", "/auth/login", `{"username":" MIA ","password":"`+goodPassword+`"}`, "Authorization: ")
	got := in.wants(t, 200)
	if got["user"].(map[string]any)["id"] != mia.ID || in.header.Get("Set-Cookie") != "" {
		t.Errorf("%s %v", in.body, in.header)
	}
	bearer := "Authorization: Bearer " + got["token"].(string)
	quotas := h.rest("GET", "/me", "", bearer).wants(t, 200)["quotas"].(map[string]any)
	if used := quotas["conversations"].(map[string]any)["used"]; used != 0.0 || len(quotas) < 10 || quotas["tokensPerDay"] != nil {
		t.Errorf("quotas: %v", quotas)
	}
	h.rest("PATCH", "/users/"+mia.ID, `{"limits":{"tokensPerDay":5000}}`).wants(t, 200)
	quotas = h.rest("GET", "/me", "", bearer).wants(t, 200)["quotas"].(map[string]any)
	if day, _ := quotas["tokensPerDay"].(map[string]any); day["used"] != 0.0 || day["limit"] != 5000.0 {
		t.Errorf("tokens of the day: %v", day)
	}
	if me := h.rest("GET", "/me", "", bearer).wants(t, 200); me["username"] != "Mia" || me["role"] != "member" {
		t.Errorf("me: %v", me)
	}
	list := h.rest("GET", "/tokens", "", bearer).wants(t, 200)["items"].([]any)
	if one := list[0].(map[string]any); len(list) != 1 || one["session"] != true || one["current"] != true || one["token"] != nil || one["expiresAt"] == nil {
		t.Errorf("tokens: %v", list)
	}
	h.rest("POST", "/auth/logout", "", bearer).wants(t, 204)
	h.rest("GET", "/me", "", bearer).refuses(t, 401, "unauthenticated")
	if strings.Contains(h.log.String(), goodPassword) || strings.Contains(h.log.String(), got["token"].(string)) {
		t.Error("the log has a secret")
	}
}

func TestPasswordGuessesAreRateLimited(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.createMia()
	try := func(password string) *restResponse {
		return h.rest("POST", "/auth/login", `{"username":"mia","password":"`+password+`"}`, "Authorization: ")
	}
	// Each failure beyond the fifth lengthens the wait, so the loop also ends on a
	// machine that takes longer than the first waits.
	for range 40 {
		guess := try("guess")
		if guess.status == 401 {
			continue
		}
		guess.refuses(t, 429, "rate_limited")
		if guess.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		// Now the right password must be refused, too.
		if right := try(goodPassword); right.status == 429 {
			return
		}
	}
	t.Error("guesses are not limited")
}

func TestALinkSignsInOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	link, err := h.accounts.Bootstrap(context.Background(), true)
	h.must(err)
	for range 20 { // a request without a secret does not count as a guess
		h.rest("POST", "/auth/signin", `{}`, "Authorization: ").refuses(t, 400, "invalid_field", "link")
	}
	h.rest("POST", "/auth/signin", `{"link":"`+link+`"}`, "Authorization: ").wants(t, 200)
	h.rest("POST", "/auth/signin", `{"link":"`+link+`"}`, "Authorization: ").refuses(t, 401, "unauthenticated")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	made := h.rest("POST", "/tokens", `{"name":"phone","expiresIn":"720h"}`).wants(t, 201)
	bearer := "Authorization: Bearer " + made["token"].(string)
	h.rest("GET", "/me", "", bearer).wants(t, 200)
	for body, field := range map[string]string{
		`{"name":7}`: "name", `{"name":"x","expiresIn":"soon"}`: "expiresIn", `{"name":"x","expiresIn":"-1h"}`: "expiresIn",
		`{"name":"` + strings.Repeat("x", 101) + `"}`: "name", `{"name":"x","scope":"all"}`: "scope",
	} {
		h.rest("POST", "/tokens", body).refuses(t, 400, "invalid_field", field)
	}
	h.rest("POST", "/tokens", "null").refuses(t, 400, "bad_request")
	p, _, _ := h.dial(dialOptions{token: made["token"].(string)})
	p.ok("hello", "", map[string]any{"protocol": 1})
	h.rest("DELETE", "/tokens/"+made["id"].(string), "").wants(t, 204)
	h.rest("GET", "/me", "", bearer).refuses(t, 401, "unauthenticated")
	p.wantClose(closeAuth)
	h.rest("DELETE", "/tokens/"+made["id"].(string), "").refuses(t, 404, "not_found")
}

func TestATicketOpensOneSocket(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	ticket := h.rest("POST", "/ws/tickets", "").wants(t, 201)
	if ticket["expiresIn"] != 30.0 {
		t.Errorf("ticket: %v", ticket)
	}
	query := "?ticket=" + ticket["ticket"].(string)
	p, _, _ := h.dial(dialOptions{query: query})
	p.ok("hello", "", map[string]any{"protocol": 1})
	if _, res, err := h.dial(dialOptions{query: query, mayFail: true}); err == nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a second time: %v", err)
	}
	h.rest("GET", "/me", "", "Authorization: Bearer "+ticket["ticket"].(string)).refuses(t, 401, "unauthenticated")
}

func TestOwnersManageUsers(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mia := h.rest("POST", "/users", `{"username":"Mia","password":"`+goodPassword+`","limits":{"tokensPerDay":9}}`).wants(t, 201)
	if mia["role"] != "member" || mia["limits"].(map[string]any)["tokensPerDay"] != 9.0 {
		t.Errorf("user: %v", mia)
	}
	id := mia["id"].(string)
	h.rest("POST", "/users", `{"username":"mIA","password":"`+goodPassword+`"}`).refuses(t, 409, "conflict")
	for body, field := range map[string]string{
		`{"username":"","password":"` + goodPassword + `"}`:                                   "username",
		`{"username":"x","password":"short"}`:                                                 "password",
		`{"username":"x","password":"` + goodPassword + `","role":"king"}`:                    "role",
		`{"username":"x","password":"` + goodPassword + `","limits":{"generations":-1}}`:      "limits",
		`{"username":"x","password":"` + goodPassword + `","limits":{"generations":"many"}}`:  "limits.generations",
		`{"username":"x","password":"` + goodPassword + `","passwordHash":"$argon2id$v=19$"}`: "passwordHash",
	} {
		p := h.rest("POST", "/users", body).refuses(t, 400, "invalid_field")
		if !strings.HasPrefix(p.Errors[0].Field, field) {
			t.Errorf("%s: %+v", body, p.Errors)
		}
	}
	token := h.newToken(id)
	now := h.rest("PATCH", "/users/"+id, `{"limits":{"generations":1}}`).wants(t, 200)["limits"].(map[string]any)
	if now["tokensPerDay"] != 9.0 || now["generations"] != 1.0 {
		t.Errorf("limits after a change of one: %v", now)
	}
	h.rest("GET", "/me", "", "Authorization: Bearer "+token).wants(t, 200)
	h.rest("PATCH", "/users/"+id, `{"password":"another good password"}`).wants(t, 200)
	h.rest("GET", "/me", "", "Authorization: Bearer "+token).refuses(t, 401, "unauthenticated") // a new password revokes all tokens
	if users := h.rest("GET", "/users", "").wants(t, 200)["items"].([]any); len(users) != 2 {
		t.Errorf("users: %v", users)
	}
	first := h.rest("GET", "/users?limit=1", "").wants(t, 200)
	second := h.rest("GET", "/users?limit=1&cursor="+stringAt(first, "nextCursor"), "").wants(t, 200)
	a, b := first["items"].([]any), second["items"].([]any)
	if len(a) != 1 || len(b) != 1 || a[0].(map[string]any)["id"] == b[0].(map[string]any)["id"] || second["nextCursor"] != nil {
		t.Errorf("pages of one user: %v, %v", first, second)
	}
	h.rest("GET", "/users?cursor=x", "").refuses(t, 400, "invalid_field", "cursor")
	h.rest("DELETE", "/users/"+id, "").wants(t, 204)
	h.rest("DELETE", "/users/"+id, "").refuses(t, 404, "not_found")
}

func TestProviderKeysAreWriteOnly(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	secret := "sk-a-secret-of-mine"
	h.rest("PUT", "/providers/gemini/key", `{"key":"`+secret+`"}`).wants(t, 204)
	h.rest("PUT", "/providers/gemini/key", `{"key":""}`).refuses(t, 400, "invalid_field", "key")
	h.rest("PUT", "/providers/offline/key", `{"key":"x"}`).refuses(t, 404, "not_found")
	list := h.rest("GET", "/providers", "")
	list.wants(t, 200)
	if bytes.Contains(list.body, []byte(secret)) || strings.Contains(h.log.String(), secret) {
		t.Error("the key is shown")
	}
	h.rest("DELETE", "/providers/gemini/key", "").wants(t, 204)
	h.rest("DELETE", "/providers/gemini/key", "").refuses(t, 404, "not_found")
}

func TestDevicesLearnThatAProviderKeyChanged(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(nil)
	h.rest("PUT", "/providers/gemini/key", `{"key":"a-secret-of-the-user"}`, "X-Device-Id: d-1").wants(t, 204)
	f := p.event("resource.updated", "")
	if got := string(f.Data); got != `{"kind":"provider","id":"gemini"}` || f.By != "d-1" {
		t.Errorf("event %s by %s", got, f.By)
	}
	h.rest("DELETE", "/providers/gemini/key", "").wants(t, 204)
	p.event("resource.deleted", "")
	if strings.Contains(p.recentFrames(), "a-secret") {
		t.Error("an event has the key")
	}
}

// Browsers send cookies with requests of any site, so a request with a cookie needs
// an allowed origin.
func TestCookiesAndOrigins(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Origins = []string{"https://app.example"} })
	h.createMia()
	login := func(origin string) *restResponse {
		return h.rest("POST", "/auth/login", `{"username":"mia","password":"`+goodPassword+`"}`, "Authorization: ", "Origin: "+origin)
	}
	login("https://evil.example").refuses(t, 403, "forbidden")
	in := login(h.http.URL)
	in.wants(t, 200)
	cookie, err := http.ParseSetCookie(in.header.Get("Set-Cookie"))
	h.must(err)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Secure || cookie.MaxAge <= 0 {
		t.Errorf("cookie %s", in.header.Get("Set-Cookie"))
	}
	proxied := h.rest("POST", "/auth/login", `{"username":"mia","password":"`+goodPassword+`"}`, "Authorization: ",
		"Origin: "+h.http.URL, "X-Forwarded-Proto: https")
	if !strings.Contains(proxied.header.Get("Set-Cookie"), "Secure") {
		t.Error("behind TLS the cookie is not Secure")
	}
	sent := "Cookie: " + cookie.Name + "=" + cookie.Value
	for _, c := range []struct {
		method, origin string
		status         int
	}{
		{"GET", "", 200}, {"GET", h.http.URL, 200}, {"GET", "https://app.example", 200}, {"GET", "https://evil.example", 403},
		{"PUT", "", 403}, {"PUT", h.http.URL, 200}, {"PUT", "https://app.example", 200}, {"PUT", "https://evil.example", 403},
		{"PUT", "null", 403},
	} {
		t.Run(c.method+" from "+c.origin, func(t *testing.T) {
			body := ""
			if c.method == "PUT" {
				body = `{}`
			}
			a := h.rest(c.method, "/settings", body, "Authorization: ", sent, "Origin: "+c.origin)
			if a.status != c.status {
				t.Errorf("%d %s, want %d", a.status, a.body, c.status)
			}
		})
	}
	// A token in a header needs no origin: no browser adds it by itself.
	h.rest("PUT", "/settings", `{}`, "Origin: https://evil.example").wants(t, 200)
	out := h.rest("POST", "/auth/logout", "", "Authorization: ", sent, "Origin: "+h.http.URL)
	out.wants(t, 204)
	if !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("the cookie stays: %v", out.header)
	}
	h.rest("GET", "/me", "", "Authorization: ", sent).refuses(t, 401, "unauthenticated")
}

func TestLinksAndTokensSignIn(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mia := h.createMia()
	bearer := "Authorization: Bearer " + h.newToken(mia.ID)
	made := h.rest("POST", "/auth/links", "", bearer)
	got := made.wants(t, 201)
	if got["username"] != "Mia" || got["expiresIn"] != 86400.0 || made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v %v", got, made.header)
	}
	hour := stringAt(h.rest("POST", "/tokens", `{"name":"an hour","expiresIn":"1h"}`, bearer).wants(t, 201), "token")
	if short := h.rest("POST", "/auth/links", "", "Authorization: Bearer "+hour).wants(t, 201); short["expiresIn"].(float64) > 3600 {
		t.Errorf("a link made with a token of an hour lives for %v s", short["expiresIn"])
	}
	in := h.rest("POST", "/auth/signin", `{"link":"`+got["link"].(string)+`"}`, "Authorization: ").wants(t, 200)
	if in["user"].(map[string]any)["id"] != mia.ID {
		t.Errorf("signed in as %v", in["user"])
	}
	whole := stringAt(h.rest("POST", "/auth/links", `{"username":"mia"}`).wants(t, 201), "link") // made by an owner for Mia
	h.rest("POST", "/auth/signin", `{"link":"`+h.http.URL+"/signin#"+whole+`"}`, "Authorization: ").wants(t, 200)
	h.rest("POST", "/auth/links", `{"username":"nobody"}`).refuses(t, 404, "not_found")
	h.rest("POST", "/auth/links", `{"username":"`+h.user.Username+`"}`, bearer).refuses(t, 403, "forbidden")
	h.rest("POST", "/auth/links", `{"username":"nobody"}`, bearer).refuses(t, 403, "forbidden")
	h.rest("POST", "/auth/links", "", "Authorization: ").refuses(t, 401, "unauthenticated")

	token := h.newToken(mia.ID)
	browser := h.rest("POST", "/auth/signin", `{"token":"`+token+`"}`, "Authorization: ", "Origin: "+h.http.URL)
	browser.wants(t, 200)
	cookie, err := http.ParseSetCookie(browser.header.Get("Set-Cookie"))
	h.must(err)
	if !cookie.HttpOnly || cookie.Value == token {
		t.Errorf("cookie %s", browser.header.Get("Set-Cookie"))
	}
	sent := []string{"Authorization: ", "Cookie: " + cookie.Name + "=" + cookie.Value, "Origin: " + h.http.URL}
	h.rest("POST", "/auth/logout", "", sent...).wants(t, 204)
	h.rest("GET", "/me", "", sent...).refuses(t, 401, "unauthenticated")
	h.rest("GET", "/me", "", "Authorization: Bearer "+token).wants(t, 200) // the token stays valid
	h.rest("POST", "/auth/signin", `{"token":"nst_unknown"}`, "Authorization: ").refuses(t, 401, "unauthenticated")
}

func TestMembersChangeTheirOwnPassword(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mia := h.createMia()
	bearer := "Authorization: Bearer " + h.newToken(mia.ID)
	path := "/users/" + mia.ID
	h.rest("PATCH", path, `{"password":"a better password"}`, bearer).refuses(t, 400, "invalid_field", "currentPassword")
	h.rest("PATCH", path, `{"password":"a better password","currentPassword":"x"}`, bearer).refuses(t, 400, "invalid_field", "currentPassword")
	h.rest("PATCH", "/users/"+h.user.ID, `{"password":"a better password"}`, bearer).refuses(t, 403, "forbidden")
	h.rest("PATCH", path, `{"role":"owner"}`, bearer).refuses(t, 403, "forbidden")
	changed := h.rest("PATCH", path, `{"password":"a better password","currentPassword":"`+goodPassword+`"}`, bearer).wants(t, 200)
	if changed["hasPassword"] != true {
		t.Errorf("user %v", changed)
	}
	h.rest("POST", "/auth/login", `{"username":"mia","password":"a better password"}`, "Authorization: ").wants(t, 200)
	if strings.Contains(h.log.String(), "a better password") || strings.Contains(h.log.String(), goodPassword) {
		t.Error("the log has a password")
	}
}

func TestAPasswordMakesATokenThatOutlivesItsSession(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.createMia()
	session := stringAt(h.rest("POST", "/auth/login", `{"username":"mia","password":"`+goodPassword+`"}`, "Authorization: ").wants(t, 200), "token")
	bearer := "Authorization: Bearer " + session
	for _, route := range []string{"/tokens", "/auth/links"} {
		h.rest("POST", route, `{"currentPassword":"x"}`, bearer).refuses(t, 400, "invalid_field", "currentPassword")
	}
	short := stringAt(h.rest("POST", "/tokens", `{"name":"short"}`, bearer).wants(t, 201), "token")
	made := h.rest("POST", "/tokens", `{"name":"app","currentPassword":"`+goodPassword+`"}`, bearer).wants(t, 201)
	link := stringAt(h.rest("POST", "/auth/links", `{"currentPassword":"`+goodPassword+`"}`, bearer).wants(t, 201), "link")
	if made["expiresAt"] != nil {
		t.Errorf("it expires at %v", made["expiresAt"])
	}
	h.rest("POST", "/auth/logout", "", bearer).wants(t, 204)
	h.rest("GET", "/me", "", "Authorization: Bearer "+short).refuses(t, 401, "unauthenticated")
	h.rest("GET", "/me", "", "Authorization: Bearer "+stringAt(made, "token")).wants(t, 200)
	h.rest("POST", "/auth/signin", `{"link":"`+link+`"}`, "Authorization: ").wants(t, 200)
}

func TestTokensAreListedInPages(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for range 2 {
		h.newToken(h.user.ID)
	}
	seen := map[string]bool{}
	for cursor, pages := "", 0; ; {
		page := h.rest("GET", "/tokens?limit=1&cursor="+cursor, "").wants(t, 200)
		for _, item := range page["items"].([]any) {
			seen[item.(map[string]any)["id"].(string)] = true
		}
		pages++
		next, more := page["nextCursor"].(string)
		if !more {
			if len(seen) != 3 || pages != 3 {
				t.Errorf("%d tokens on %d pages", len(seen), pages)
			}
			break
		}
		cursor = next
	}
	h.rest("GET", "/tokens?limit=0", "").refuses(t, 400, "invalid_field", "limit")
	h.rest("GET", "/tokens?cursor=x", "").refuses(t, 400, "invalid_field", "cursor")
}

func TestTheMoneyOfAMonthIsShownAndLimited(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	if me := h.rest("GET", "/me", "").wants(t, 200); me["spending"] != nil {
		t.Errorf("without a limit: %v", me["spending"])
	}
	h.rest("PATCH", "/users/"+h.user.ID, `{"limits":{"usdPerMonth":-1}}`).refuses(t, 400, "invalid_field", "limits")
	if now := h.rest("PATCH", "/users/"+h.user.ID, `{"limits":{"usdPerMonth":2.5}}`).wants(t, 200); now["limits"].(map[string]any)["usdPerMonth"] != 2.5 {
		t.Errorf("limits: %v", now)
	}
	chat := h.newChat()
	for _, usd := range []float64{0, 2.5} { // the first one has no price
		h.model.enqueue(&script{pieces: []string{"Fine."}, usd: usd})
		h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"Hello?"}`).wants(t, 200)
	}
	spending := h.rest("GET", "/me", "").wants(t, 200)["spending"].(map[string]any)
	if spending["usedUsd"] != 2.5 || spending["limitUsd"] != 2.5 || spending["warned"] != true {
		t.Errorf("spending: %v", spending)
	}
	answer := h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"More?"}`)
	answer.refuses(t, 429, "quota_exceeded")
	if details := answer.object(t)["details"].(map[string]any); details["quota"] != "usdPerMonth" || details["limit"] != 2.5 {
		t.Errorf("details: %v", details)
	}
}
