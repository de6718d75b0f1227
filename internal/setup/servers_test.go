package setup

import (
	"context"
	"errors"
	"strings"
	"testing"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/server"
)

func serverOf(name, baseURL, model, key string) *account.OpenServer {
	return &account.OpenServer{ModelServer: account.ModelServer{Name: name, BaseURL: baseURL, Model: model}, Key: key}
}

// A server that owners have added is read when it is used: a change counts with the next turn, and turns of other
// providers do not read it.
func TestAddedServersAreProviders(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("small", "large")
	own := map[string]string{}
	m, err := modelsOf(t, own, "NODEST_GEMINI_BASE_URL", "https://user:secret@gemini.example/x?key=secret")
	if err != nil {
		t.Fatal(err)
	}
	var added []*account.OpenServer
	asked := 0
	m.UseServers(func(context.Context) ([]*account.OpenServer, error) { asked++; return added, nil })
	if _, err := m.Resolve(t.Context(), "ann", "local", "", ""); !fault.Is(err, fault.NotConfigured) {
		t.Errorf("no such server: %v", err)
	}
	if _, err := m.Resolve(t.Context(), "ann", "No such", "", ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("no name of a server: %v", err)
	}
	added = []*account.OpenServer{serverOf("local", fake.URL, "large", "sk-server"), serverOf("openai", "http://127.0.0.1:1", "", "")}
	wants := func(apiKey, key, model string) {
		t.Helper()
		fake.Script(llmtest.Say("Yes."))
		found, err := m.Resolve(t.Context(), "ann", "local", "", apiKey)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range found.Generator.Stream(t.Context(), llm.Request{Model: found.Name, Messages: []llm.Message{{Role: llm.User, Text: "Well?"}}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		requests := fake.Requests()
		if last := requests[len(requests)-1]; found.Provider != "local" || found.Name != model || last.Key != key || last.Model != model {
			t.Errorf("%s %s, asked with %s for %s; want %s for %s", found.Provider, found.Name, last.Key, last.Model, key, model)
		}
	}
	wants("", "sk-server", "large")
	wants("sk-once", "sk-once", "large")
	own["local"] = "sk-ann"
	wants("", "sk-ann", "large")
	added[0] = serverOf("local", fake.URL, "small", "")
	wants("", "sk-ann", "small")

	before := asked
	for _, name := range []string{"offline", "openai", ""} {
		_, _ = m.Resolve(t.Context(), "ann", name, "", "") // openai has no key here: the built-in provider is meant
	}
	if asked != before {
		t.Errorf("turns of built-in providers asked for the servers %d times", asked-before)
	}
	list, err := m.Providers(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	if last := list[len(list)-1]; len(list) != len(ProviderNames)+1 || last.Name != "local" || !last.Added || !last.Configured || !last.OwnKey || last.BaseURL != fake.URL || len(last.Models) != 2 {
		t.Errorf("%+v", list)
	}
	if got := list[0].BaseURL; got != "https://gemini.example/x" {
		t.Errorf("the address of Gemini is shown as %s", got)
	}
	down := errors.New("the database is down")
	m.UseServers(func(context.Context) ([]*account.OpenServer, error) { return nil, down })
	if _, err := m.Resolve(t.Context(), "ann", "local", "", ""); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
}

// Errors of a server, which all users see, do not name its address; a test by an owner does.
func TestErrorsOfAddedServersDoNotNameTheirAddress(t *testing.T) {
	t.Parallel()
	const nowhere = "http://127.0.0.1:1/v1"
	m, err := modelsOf(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.UseServers(func(context.Context) ([]*account.OpenServer, error) {
		return []*account.OpenServer{serverOf("local", nowhere, "", "")}, nil
	})
	list, err := m.Providers(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	if last := list[len(list)-1]; last.Error == nil || !strings.Contains(last.Error.Detail, "does not respond") || strings.Contains(last.Error.Detail, "127.0.0.1") {
		t.Errorf("%+v", last.Error)
	}
	var check *server.ServerCheck
	if check, err = m.TestServer(t.Context(), nowhere, ""); err != nil || check.Error == nil || !strings.Contains(check.Error.Message, nowhere) {
		t.Errorf("%+v, %v", check, err)
	}
}

// The settings can name a server that an owner has added, or adds later.
func TestASettingNamesAnAddedServer(t *testing.T) {
	t.Parallel()
	local, spare := llmtest.NewOpenAI(t), llmtest.NewOpenAI(t)
	m, err := modelsOf(t, nil, "NODEST_PROVIDER", "local", "NODEST_MODEL", "mine", "NODEST_FALLBACKS", "spare:second,later")
	if err != nil {
		t.Fatal(err)
	}
	var added []*account.OpenServer
	m.UseServers(func(context.Context) ([]*account.OpenServer, error) { return added, nil })
	if _, err := m.Resolve(t.Context(), "ann", "", "", ""); !fault.Is(err, fault.NotConfigured) {
		t.Errorf("before it is there: %v", err)
	}
	m.Prepare(t.Context())
	if absent, err := m.Absent(t.Context()); err != nil || strings.Join(absent, " ") != "local spare later" {
		t.Errorf("absent: %v, %v", absent, err)
	}
	added = []*account.OpenServer{serverOf("local", local.URL, "other", "sk-local"), serverOf("spare", spare.URL, "first", "sk-spare")}
	if absent, err := m.Absent(t.Context()); err != nil || strings.Join(absent, " ") != "later" {
		t.Errorf("absent: %v, %v", absent, err)
	}
	local.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Status: 500, Message: "No."} })
	spare.Script(llmtest.Say("Yes."))
	found, err := m.Resolve(t.Context(), "ann", "", "", "")
	if err != nil || found.Provider != "local" || found.Name != "mine" {
		t.Fatalf("%+v, %v", found, err)
	}
	text := ""
	for e, err := range found.Generator.Stream(t.Context(), llm.Request{Model: found.Name, Messages: []llm.Message{{Role: llm.User, Text: "Well?"}}}) {
		if err != nil {
			t.Fatal(err)
		}
		text += e.Text
	}
	asked := spare.Requests()
	if text != "Yes." || len(asked) == 0 || asked[len(asked)-1].Model != "second" || asked[len(asked)-1].Key != "sk-spare" {
		t.Errorf("%q by %+v", text, asked)
	}
	list, err := m.Providers(t.Context(), "ann")
	if err != nil || !list[len(ProviderNames)].Default || list[0].Default {
		t.Errorf("the list: %+v, %v", list, err)
	}
	for _, bad := range []string{"jina", "No such", "x"} {
		if _, err := Load(getenvOf("NODEST_PROVIDER", bad), nil); err == nil {
			t.Errorf("the provider %q is taken", bad)
		}
	}
	if _, err := modelsOf(t, nil, "NODEST_FALLBACKS", "gemini"); !fault.Is(err, fault.NotConfigured) {
		t.Errorf("a built-in fallback without a key: %v", err)
	}
}
