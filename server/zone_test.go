package server

import (
	"net/http"
	"strings"
	"testing"
)

// zones returns the time zones in the user's settings, and the version of the
// settings.
func (h *testServer) zones() (own, device string, version float64) {
	h.t.Helper()
	a := h.rest(http.MethodGet, "/settings", "")
	s := a.object(h.t)
	own, _ = s["timeZone"].(string)
	device, _ = s["deviceTimeZone"].(string)
	version, _ = s["version"].(float64)
	return own, device, version
}

// TestHelloSetsTheDevicesTimeZone checks that hello stores the device's time zone
// and ignores unknown names, and that the user's own setting stays.
func TestHelloSetsTheDevicesTimeZone(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for _, tt := range []struct{ sent, want string }{
		{"Asia/Tokyo", "Asia/Tokyo"},
		{"", "Asia/Tokyo"},
		{"Middle/Earth", "Asia/Tokyo"},
		{"Local", "Asia/Tokyo"},
		{"posixrules", "Asia/Tokyo"},
		{"../../etc/passwd", "Asia/Tokyo"},
		{strings.Repeat("x", 3000), "Asia/Tokyo"},
		{"America/Los_Angeles", "America/Los_Angeles"},
	} {
		h.connect(map[string]any{"timeZone": tt.sent})
		if _, device, version := h.zones(); device != tt.want || version != 0 {
			t.Errorf("after %.20q: zone %q, version %v of the settings, want %q, 0", tt.sent, device, version, tt.want)
		}
	}
	if a := h.rest(http.MethodPut, "/settings", `{"timeZone":"Europe/Berlin","deviceTimeZone":"Asia/Seoul"}`); a.status != http.StatusOK {
		t.Fatalf("put: %d %s", a.status, a.body)
	}
	h.connect(map[string]any{"timeZone": "Asia/Tokyo"})
	if own, device, version := h.zones(); own != "Europe/Berlin" || device != "Asia/Tokyo" || version != 1 {
		t.Errorf("zones %q and %q, version %v", own, device, version)
	}
	if a := h.rest(http.MethodPut, "/settings", `{"timeZone":""}`); a.status != http.StatusOK {
		t.Errorf("unset: %d %s", a.status, a.body)
	}
	if own, device, _ := h.zones(); own != "" || device != "Asia/Tokyo" {
		t.Errorf("unset: zones %q and %q", own, device)
	}
	for _, bad := range []string{"Middle/Earth", "Local", "../UTC", "Factory", "posixrules", "localtime", "posix/Asia/Tokyo", "right/UTC", "europe/berlin"} {
		a := h.rest(http.MethodPut, "/settings", `{"timeZone":"`+bad+`"}`)
		if a.status != http.StatusUnprocessableEntity && a.status != http.StatusBadRequest || !strings.Contains(string(a.body), "timeZone") {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
}

// TestRESTSetsTheDevicesTimeZone is for clients without a socket. Users do not share
// the setting.
func TestRESTSetsTheDevicesTimeZone(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	long := h.rest(http.MethodPut, "/settings/device-time-zone", `{"timeZone":"`+strings.Repeat("x", 100_000)+`"}`)
	if long.status != http.StatusBadRequest || len(long.body) > 2000 {
		t.Fatalf("a long name: %d, %d bytes", long.status, len(long.body))
	}
	a := h.rest(http.MethodPut, "/settings/device-time-zone", `{"timeZone":"Asia/Tokyo"}`)
	if a.status != http.StatusOK || a.object(t)["deviceTimeZone"] != "Asia/Tokyo" {
		t.Errorf("put: %d %s", a.status, a.body)
	}
	for _, bad := range []string{`{"timeZone":"Middle/Earth"}`, `{"timeZone":""}`, `{}`, `{"zone":"UTC"}`} {
		if a := h.rest(http.MethodPut, "/settings/device-time-zone", bad); a.status < 400 || a.status >= 500 {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
	if _, device, _ := h.zones(); device != "Asia/Tokyo" {
		t.Errorf("zone %q", device)
	}
	h.token = h.newMember("mia")
	if _, device, _ := h.zones(); device != "" {
		t.Errorf("another user's zone is %q", device)
	}
}
