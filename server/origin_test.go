package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// hostAndOrigin are what a proxy and a browser say about where a request goes and comes from.
type hostAndOrigin struct {
	public, host, origin string
	ours                 bool
}

var hostsAndOrigins = []hostAndOrigin{
	// A proxy that sends another Host than the browser did.
	{public: "https://chat.example", host: "127.0.0.1:8080", origin: "https://chat.example", ours: true},
	{public: "https://chat.example/", host: "127.0.0.1:8080", origin: "https://chat.example", ours: true},
	{public: "HTTPS://Chat.Example:443/nodest", host: "localhost", origin: "https://chat.example", ours: true},
	{public: "https://chat.example:8443", host: "chat.example", origin: "https://chat.example:8443", ours: true}, // without the port
	{public: "http://chat.example:80", host: "[::1]:8080", origin: "http://chat.example", ours: true},
	{public: "https://chât.example", host: "127.0.0.1:8080", origin: "https://xn--cht-jla.example", ours: true},
	{public: "http://[2001:DB8::1]:8080", host: "127.0.0.1:8080", origin: "http://[2001:db8::1]:8080", ours: true},
	// The host that the request was sent to, with and without a public URL.
	{host: "chat.example", origin: "https://chat.example", ours: true}, // TLS ends at a proxy
	{host: "chat.example:443", origin: "https://chat.example", ours: true},
	{host: "chat.example:80", origin: "http://chat.example", ours: true},
	{host: "Chat.example:8443", origin: "https://chat.example:8443", ours: true},
	{host: "[::1]:8080", origin: "http://[::1]:8080", ours: true},
	{public: "https://chat.example", host: "127.0.0.2:8080", origin: "http://127.0.0.2:8080", ours: true},
	// Others.
	{public: "https://chat.example", host: "127.0.0.1:8080", origin: "https://evil.example"},
	{public: "https://chat.example", host: "127.0.0.1:8080", origin: "http://chat.example"},       // not the public one: anybody on the way could write it
	{public: "https://chat.example", host: "127.0.0.1:8080", origin: "https://chat.example:8443"}, // another port is another site
	{public: "https://chat.example:8443", host: "127.0.0.1:8080", origin: "https://chat.example"},
	{public: "https://chat.example", host: "127.0.0.1:8080", origin: "https://chat.example.evil.example"},
	{public: "https://chat.example", host: "127.0.0.1:8080", origin: "https://evil.example/https://chat.example"},
	{public: "https://chat.example", host: "127.0.0.1:8080", origin: "https://chat.example@evil.example"},
	{public: "https://chat.example", host: "127.0.0.1:8080", origin: "http://127.0.0.1"},
	{host: "chat.example", origin: "https://chat.example:8443"},
	{host: "127.0.0.1:8080", origin: "http://localhost:8080"},
	{host: "chat.example", origin: "null"},
	{host: "chat.example", origin: "https://"},
	{host: "", origin: "https://"},
}

// from makes a request through a proxy that sends this Host.
func (h *testServer) from(method, path, host string, header http.Header) (*http.Response, error) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.http.URL+path, nil)
	h.must(err)
	req.Host, req.Header = host, header
	return h.http.Client().Do(req)
}

// Every check of the Origin keeps the same rule: it is ours if it is the origin of the public
// URL, or has the host of the request.
func TestAnOriginIsOursByThePublicURLOrByTheHost(t *testing.T) {
	servers := map[string]*testServer{}
	for _, c := range hostsAndOrigins {
		h := servers[c.public]
		if h == nil {
			h = newTestServer(t, func(o *Options) { o.PublicURL = c.public })
			h.createMia()
			servers[c.public] = h
		}
		t.Run(c.origin+" at "+c.host+" of "+c.public, func(t *testing.T) {
			header := func(name, value string) http.Header {
				return http.Header{"Origin": {c.origin}, name: {value}}
			}
			check := func(what string, status int, err error, allowed int) {
				t.Helper()
				want := http.StatusForbidden
				if c.ours {
					want = allowed
				}
				if err != nil || status != want {
					t.Errorf("%s: %d %v, want %d", what, status, err, want)
				}
			}
			if c.host != "" { // without one, Go's client sends that of the URL
				res, err := h.from("POST", base+"/auth/logout", c.host, header("Cookie", sessionCookie+"="+h.newToken(h.user.ID)))
				if err == nil {
					defer res.Body.Close()
					check("a change with a cookie", res.StatusCode, err, 204)
				}
				_, ws, err := h.dial(dialOptions{token: h.token, header: header("Host", c.host), mayFail: true})
				if ws == nil {
					t.Fatal(err)
				}
				check("the WebSocket", ws.StatusCode, nil, 101)
			}
			r := &http.Request{Host: c.host, Header: http.Header{"Origin": {c.origin}}}
			if got := h.server.ownOrigin(r); got != c.ours || h.server.originAllowed(r) != c.ours {
				t.Errorf("ours: %v, want %v", got, c.ours)
			}
		})
	}
}

// A browser signs in through a proxy that sends a Host of its own and nothing about TLS. Its
// cookie is for TLS only, and the page may open its WebSocket.
func TestSigningInBehindAProxyThatSendsItsOwnHost(t *testing.T) {
	h := newTestServer(t, func(o *Options) { o.PublicURL = "https://chat.example" })
	h.createMia()
	login := func(origin string) *restResponse {
		return h.rest("POST", "/auth/login", `{"username":"mia","password":"`+goodPassword+`"}`, "Authorization: ", "Origin: "+origin)
	}
	in := login("https://chat.example")
	in.wants(t, 200)
	cookie, err := http.ParseSetCookie(in.header.Get("Set-Cookie"))
	h.must(err)
	if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("cookie %s", in.header.Get("Set-Cookie"))
	}
	if local := login(h.http.URL).header.Get("Set-Cookie"); local == "" || strings.Contains(local, "Secure") {
		t.Errorf("at the server's own address the cookie is %q: browsers would not send a Secure one", local)
	}
	sent := []string{"Authorization: ", "Cookie: " + cookie.Name + "=" + cookie.Value}
	if got := h.rest("GET", "/me", "", sent...).wants(t, 200); got["username"] != "Mia" {
		t.Errorf("signed in as %v", got)
	}
	h.rest("PUT", "/settings", `{}`, append(sent, "Origin: https://chat.example")...).wants(t, 200)
	h.rest("PUT", "/settings", `{}`, append(sent, "Origin: https://evil.example")...).refuses(t, 403, "forbidden")

	policy := h.request("GET", "/", "").header.Get("Content-Security-Policy")
	if !strings.Contains(policy, " wss://chat.example") {
		t.Errorf("the page may not open its socket: %s", policy)
	}
	a := h.rest("GET", "/me", "", "Origin: https://chat.example")
	if a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the server's own page counts as another site: %v", a.header)
	}
	refused := login("https://evil.example")
	refused.refuses(t, 403, "forbidden")
	if !strings.Contains(string(refused.body), "NODEST_PUBLIC_URL") {
		t.Errorf("nothing says how to let a browser in: %s", refused.body)
	}
}

// Other sites may call when NODEST_ORIGINS names them, in any spelling; apps that are no
// browsers send no Origin at all.
func TestOtherOriginsAndAppsWithoutOne(t *testing.T) {
	h := newTestServer(t, func(o *Options) {
		o.PublicURL = "https://chat.example"
		o.Origins = []string{"https://App.example:443/", "capacitor://localhost", "http://localhost:5173"}
	})
	for origin, allowed := range map[string]bool{
		"https://app.example": true, "capacitor://localhost": true, "http://localhost:5173": true,
		"http://app.example": false, "https://app.example:444": false, "ionic://localhost": false, "http://localhost": false,
	} {
		a := h.rest("GET", "/me", "", "Origin: "+origin)
		if got := a.header.Get("Access-Control-Allow-Origin"); a.status != 200 || (got == origin) != allowed {
			t.Errorf("%s: %d, CORS for %q", origin, a.status, got)
		}
		_, ws, err := h.dial(dialOptions{token: h.token, header: http.Header{"Origin": {origin}}, mayFail: true})
		if (err == nil) != allowed {
			t.Errorf("%s: the WebSocket answers %v %v", origin, ws, err)
		}
	}
	h.rest("PUT", "/settings", `{}`).wants(t, 200) // a token, no Origin
	if _, _, err := h.dial(dialOptions{token: h.token, mayFail: true}); err != nil {
		t.Errorf("an app without an Origin: %v", err)
	}
}

func TestOtherHostsAreRefusedWithAPublicURL(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) {
		o.PublicURL, o.Origins = "https://Chât.example:8443/", []string{"https://app.example", "capacitor://phone"}
	})
	open := newTestServer(t, nil)
	for host, allowed := range map[string]bool{
		"chât.example": true, "xn--cht-jla.example:8443": true, "XN--CHT-JLA.example.": true, "xn--cht-jla.example:80": true,
		"app.example": true, "phone": true, "localhost:8080": true, "sub.localhost": true, "127.0.0.1": true, "127.9.9.9:1": true, "[::1]:8080": true, "[::ffff:127.0.0.1]": true,
		"evil.example": false, "chat.example": false, "xn--cht-jla.example.evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
		"192.0.2.7:8080": false, "[2001:db8::1]": false, "0.0.0.0": false, "nodest": false,
	} {
		for _, path := range []string{"/", base + "/me", base + "/ws", "/docs"} {
			res, err := h.from(http.MethodGet, path, host, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Authorization": {"Bearer " + h.token}})
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			refused := res.StatusCode == http.StatusForbidden && strings.Contains(string(body), `"code":"forbidden"`) && strings.Contains(string(body), "NODEST_PUBLIC_URL")
			if refused == allowed {
				t.Errorf("%s%s: %d %.200s", host, path, res.StatusCode, body)
			}
		}
		for s, path := range map[*testServer]string{h: "/healthz", open: base + "/me"} { // probes, and without a public URL
			res, err := s.from(http.MethodGet, path, host, http.Header{"Authorization": {"Bearer " + s.token}})
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s%s: %d", host, path, res.StatusCode)
			}
		}
	}
}

func TestTheAddressOfTheServerIsItsHost(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.PublicURL = "https://chat.example" })
	r := httptest.NewRequest(http.MethodGet, "http://192.0.2.7:8080/", nil)
	for address, want := range map[string]bool{"192.0.2.7": true, "::ffff:192.0.2.7": true, "192.0.2.8": false} {
		local := &net.TCPAddr{IP: net.ParseIP(address), Port: 8080}
		if got := h.server.hostAllowed(r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))); got != want {
			t.Errorf("at %s: %v, want %v", address, got, want)
		}
	}
}
