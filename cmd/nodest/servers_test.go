package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/llm/llmtest"
	"nodest/store/storetest"
)

// serverTurn sends a message to a chat that has chosen a provider.
func serverTurn(t *testing.T, c *cli.Client, provider string) error {
	t.Helper()
	conversation := newConversation(t, c, sampleCharacter(t, c))
	if err := c.Call(t.Context(), http.MethodPatch, "/api/v1/conversations/"+conversation, map[string]any{"settings": map[string]any{"provider": provider}}, nil); err != nil {
		t.Fatal(err)
	}
	return c.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": "Well?"}, nil)
}

// lastKey is the key of the last request for a reply that a fake got; "" = none was asked for.
func lastKey(fake *llmtest.Fake) (key string) {
	for _, r := range fake.Requests() {
		if strings.HasSuffix(r.Path, "/chat/completions") {
			key = "key " + r.Key + ", model " + r.Model
		}
	}
	return key
}

// TestServersOfModels adds a server while NodeST runs. Every user can choose it at once and after a restart, with the
// owner's key or one of their own, which does not follow the server to another host. No answer and no log has a key.
func TestServersOfModels(t *testing.T) {
	t.Parallel()
	fake, elsewhere := llmtest.NewOpenAI(t), llmtest.NewOpenAI(t)
	for _, f := range []*llmtest.Fake{fake, elsewhere} {
		f.SetModels("small", "large")
		f.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say("Yes.") })
	}
	inst := newInstallation(t, "", "NODEST_LOG_LEVEL=info")
	p := inst.start(t)
	mia := p.member(t, "mia")
	var tested struct {
		OK     bool
		Models []string
	}
	api(t, p, http.MethodPost, "/servers/local/test", map[string]any{"baseUrl": fake.URL, "key": "sk-of-the-owner"}, &tested)
	if !tested.OK || strings.Join(tested.Models, " ") != "small large" {
		t.Fatalf("%+v", tested)
	}
	if err := serverTurn(t, mia, "local"); !fault.Is(err, fault.NotConfigured) {
		t.Fatalf("before the server is added: %v", err)
	}
	api(t, p, http.MethodPut, "/servers/local", map[string]any{"baseUrl": fake.URL, "model": "large", "key": "sk-of-the-owner"}, nil)
	talk := func(c *cli.Client, f *llmtest.Fake, want string) {
		t.Helper()
		if err := serverTurn(t, c, "local"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the server is asked with "+want, func() error {
			if lastKey(f) != want {
				return errNotYet
			}
			return nil
		})
	}
	talk(mia, fake, "key sk-of-the-owner, model large")

	answers := seenBy(t, mia)
	for _, secret := range []string{fake.URL, "sk-of-the-owner"} {
		if strings.Contains(answers, secret) {
			t.Errorf("a member sees %s: %s", secret, answers)
		}
	}
	if all := seenBy(t, p.client); !strings.Contains(all, fake.URL) || !strings.Contains(all, "https://api.openai.com/v1") || strings.Contains(all, "sk-of") {
		t.Errorf("the owner sees %s", all)
	}
	if err := mia.Call(t.Context(), http.MethodPut, "/api/v1/providers/local/key", map[string]any{"key": "sk-of-mia"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := mia.Call(t.Context(), http.MethodPut, "/api/v1/settings", map[string]any{"provider": "local"}, nil); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	logged := p.stderr.String()
	p = inst.start(t)
	mia.Base = p.client.Base
	talk(mia, fake, "key sk-of-mia, model large")
	talk(p.client, fake, "key sk-of-the-owner, model large")

	// The server moves: neither key goes to the other host.
	api(t, p, http.MethodPut, "/servers/local", map[string]any{"baseUrl": elsewhere.URL, "key": ""}, nil)
	talk(mia, elsewhere, "key , model small")

	// It is removed: its chats say so, and a user who has chosen it can change other settings.
	api(t, p, http.MethodDelete, "/servers/local", nil, nil)
	err := serverTurn(t, mia, "local")
	if !fault.Is(err, fault.NotConfigured) || !strings.Contains(err.Error(), "there is no provider local") {
		t.Errorf("after the server is removed: %v", err)
	}
	if err := mia.Call(t.Context(), http.MethodPut, "/api/v1/settings", map[string]any{"provider": "local", "model": "x"}, nil); err != nil {
		t.Errorf("settings with a server that was removed: %v", err)
	}
	if err := mia.Call(t.Context(), http.MethodPut, "/api/v1/settings", map[string]any{"provider": "another"}, nil); err == nil {
		t.Error("a provider that does not exist can be chosen")
	}
	p.stop(t)
	if logged += p.stderr.String(); strings.Contains(logged, "sk-of") {
		t.Errorf("the log has a key:\n%s", logged)
	}
	inst.mustRun(t, "backup", filepath.Join(t.TempDir(), "backup.zip"), "--local")
}

// seenBy is what a user reads about providers.
func seenBy(t *testing.T, c *cli.Client) string {
	t.Helper()
	var list struct{ Items []map[string]any }
	if err := c.Call(t.Context(), http.MethodGet, "/api/v1/providers", nil, &list); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, p := range list.Items {
		for k, v := range p {
			if k == "name" || k == "baseUrl" || k == "error" {
				all.WriteString(k + " " + jsonText(v) + "\n")
			}
		}
	}
	if !strings.Contains(all.String(), `"local"`) {
		t.Fatalf("the server is not listed: %s", all.String())
	}
	return all.String()
}

// TestServersOfModelsInTwoProcesses changes a server through one process; the other one notices at once.
func TestServersOfModelsInTwoProcesses(t *testing.T) {
	t.Parallel()
	database := storetest.PostgresURL(t)
	first, second := llmtest.NewOpenAI(t), llmtest.NewOpenAI(t)
	env := []string{"NODEST_SECRET_KEY=shared by both servers"}
	a := newInstallation(t, database, env...).start(t)
	b := newInstallation(t, database, env...).start(t)
	for _, fake := range []*llmtest.Fake{first, second} {
		fake.SetModels("m")
		fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say("Yes.") })
		api(t, a, http.MethodPut, "/servers/local", map[string]any{"baseUrl": fake.URL, "key": "sk-1"}, nil)
		if err := serverTurn(t, b.client, "local"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the other process asks the server", func() error {
			if lastKey(fake) != "key sk-1, model m" {
				return errNotYet
			}
			return nil
		})
	}
	api(t, a, http.MethodDelete, "/servers/local", nil, nil)
	if err := serverTurn(t, b.client, "local"); !fault.Is(err, fault.NotConfigured) {
		t.Errorf("after the server is removed: %v", err)
	}
	a.stop(t)
	b.stop(t)
}
