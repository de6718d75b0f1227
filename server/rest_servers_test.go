package server

import (
	"fmt"
	"strings"
	"testing"

	"nodest/internal/account"
)

func TestOwnersAddServersOfModels(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	added := h.rest("PUT", "/servers/ollama", `{"baseUrl":" HTTP://127.0.0.1:11434/v1/ ","model":"qwen3:8b"}`).wants(t, 200)
	if added["name"] != "ollama" || added["baseUrl"] != "http://127.0.0.1:11434/v1" || added["model"] != "qwen3:8b" || added["hasKey"] != false {
		t.Errorf("%v", added)
	}
	h.rest("PUT", "/servers/deepseek", `{"baseUrl":"https://api.deepseek.com","key":"sk-secret-1"}`).wants(t, 200)
	list := h.rest("GET", "/servers", "")
	items := list.items(t)
	if len(items) != 2 || items[0]["name"] != "deepseek" || items[0]["hasKey"] != true {
		t.Errorf("%v", items)
	}

	// A key stays when it is not mentioned, but does not follow a server to another host.
	h.rest("PUT", "/servers/deepseek", `{"baseUrl":"https://api.deepseek.com/v1"}`).wants(t, 200)
	h.rest("PUT", "/servers/deepseek", `{"baseUrl":"https://api.deepseek.com:8443/v1"}`).refuses(t, 400, "invalid_field", "key")
	h.rest("PUT", "/servers/deepseek", `{"baseUrl":"http://api.deepseek.com/v1"}`).refuses(t, 400, "invalid_field", "key")
	keyOf := func(baseURL string) any {
		t.Helper()
		got := h.rest("POST", "/servers/deepseek/test", `{"baseUrl":"`+baseURL+`"}`).wants(t, 200)
		return got["models"].([]any)[1] // the length of the key that oneProvider got
	}
	if got := keyOf("https://api.deepseek.com/v2"); got != "11" {
		t.Errorf("the stored key is not used for a test: %v", got)
	}
	if got := keyOf("https://elsewhere.example/v1"); got != "0" {
		t.Errorf("the stored key is sent to another host: %v", got)
	}
	if got := h.rest("PUT", "/servers/deepseek", `{"baseUrl":"https://elsewhere.example/v1","key":""}`).wants(t, 200); got["hasKey"] != false {
		t.Errorf("%v", got)
	}
	h.rest("PUT", "/servers/test", `{"baseUrl":"http://a.example"}`).wants(t, 200) // as a name, beside POST
	h.rest("DELETE", "/servers/test", "").wants(t, 204)
	h.rest("DELETE", "/servers/deepseek", "").wants(t, 204)
	h.rest("DELETE", "/servers/deepseek", "").refuses(t, 404, "not_found")

	page := h.rest("GET", "/audit", "")
	found := strings.Join(actions(page.wants(t, 200)), " ")
	if !strings.HasPrefix(found, "server.removed server.removed server.added server.changed server.changed server.added server.added") {
		t.Error(found)
	}
	if first := page.items(t)[3]; first["object"] != "deepseek" || first["detail"] != "https://elsewhere.example" {
		t.Errorf("%v", first)
	}
	for _, a := range []*restResponse{list, page, h.rest("GET", "/providers", "")} {
		if strings.Contains(string(a.body), "sk-secret") {
			t.Errorf("an answer has the key: %s", a.body)
		}
	}
	if strings.Contains(h.log.String(), "sk-secret") {
		t.Error("the log has the key")
	}
}

func TestOnlyOwnersManageServersOfModels(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("PUT", "/servers/ollama", `{"baseUrl":"http://10.0.0.7/v1"}`).wants(t, 200)
	for _, who := range []struct {
		header, code string
		status       int
	}{{"Authorization: Bearer " + h.newMember("mia"), "forbidden", 403}, {"Authorization: ", "unauthenticated", 401}} {
		h.rest("GET", "/servers", "", who.header).refuses(t, who.status, who.code)
		h.rest("PUT", "/servers/ollama", `{"baseUrl":"http://10.0.0.8/v1"}`, who.header).refuses(t, who.status, who.code)
		h.rest("DELETE", "/servers/ollama", "", who.header).refuses(t, who.status, who.code)
		h.rest("POST", "/servers/ollama/test", `{"baseUrl":"http://10.0.0.8/v1"}`, who.header).refuses(t, who.status, who.code)
	}
	if got := h.rest("GET", "/servers", "").items(t); len(got) != 1 || got[0]["baseUrl"] != "http://10.0.0.7/v1" {
		t.Errorf("%v", got)
	}
}

func TestServersOfModelsAreChecked(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for _, name := range []string{"a", "Ollama", "2nd", "gemini", "a_b", strings.Repeat("a", 32)} {
		h.rest("PUT", "/servers/"+name, `{"baseUrl":"http://127.0.0.1/v1"}`).refuses(t, 400, "invalid_field", "name")
	}
	for _, address := range []string{
		"", "ollama", "ftp://a.example", "http://", "http:///v1", "http:a.example", "http://u:p@a.example", "http://a.example#x", "http://a.example#",
		"http://a.example?key=x", "http://a.example:0", "http://a.example:70000", "http://a.example:", "http://a b.example", "http://a.exämple", `http://a.example\\@b.example`,
		"http://" + strings.Repeat("a", 2050),
	} {
		body := `{"baseUrl":"` + address + `"}`
		h.rest("PUT", "/servers/ollama", body).refuses(t, 400, "invalid_field", "baseUrl")
		h.rest("POST", "/servers/ollama/test", body).refuses(t, 400, "invalid_field", "baseUrl")
	}
	h.rest("PUT", "/servers/ollama", `{"baseUrl":"http://a.example","key":"a\nb"}`).refuses(t, 400, "invalid_field", "key")
	h.rest("POST", "/servers/ollama/test", `{"baseUrl":"http://a.example","key":"a\nb"}`).refuses(t, 400, "invalid_field", "key")
	h.rest("PUT", "/servers/ollama", `{"baseUrl":"http://a.example","model":"`+strings.Repeat("m", 257)+`"}`).refuses(t, 400, "invalid_field", "model")
	h.rest("PUT", "/servers/ollama", `{"baseUrl":"http://a.example","apiKey":"x"}`).refuses(t, 400, "invalid_field", "apiKey")
	for i := range account.MaxServers {
		h.rest("PUT", fmt.Sprintf("/servers/s%d", i), `{"baseUrl":"http://[::1]:8080/v1"}`).wants(t, 200)
	}
	h.rest("PUT", "/servers/one-more", `{"baseUrl":"http://a.example"}`).refuses(t, 429, "quota_exceeded")
	h.rest("PUT", "/servers/s0", `{"baseUrl":"http://a.example"}`).wants(t, 200)
}
