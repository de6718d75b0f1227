package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"nodest/internal/setup"
)

var update = flag.Bool("update", false, "rewrite the table of docs/settings.md")

// getenvOf returns a getenv function for pairs of name and value.
func getenvOf(pairs ...string) func(string) string {
	env := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return env[name] }
}

func TestConfigMasksSecrets(t *testing.T) {
	t.Parallel()
	secrets := []string{
		"NODEST_DATABASE_URL=postgres://u:secret-1@h/d", "NODEST_ADMIN_TOKEN=secret-2-secret-2", "NODEST_SECRET_KEY=secret-3",
		"GEMINI_API_KEY=secret-4", "OPENROUTER_API_KEY=secret-5", "OPENAI_API_KEY=secret-6",
	}
	inst := newInstallation(t, "", secrets...)
	for _, args := range [][]string{{"config"}, {"config", "--json"}} {
		out, errOut, err := inst.command(t, nil, args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := out + errOut; strings.Contains(got, "secret-") {
			t.Fatalf("out+errOut is %q, want it without %q", got, "secret-")
		}
		if !strings.Contains(out, "NODEST_ADMIN_TOKEN") {
			t.Fatalf("out is %q, want it with %q", out, "NODEST_ADMIN_TOKEN")
		}
		for _, s := range setup.Settings {
			if !strings.Contains(out, s.Env) {
				t.Fatalf("out is %q, want it with %q", out, s.Env)
			}
		}
	}
}

// TestServeRefusesAPublicAddressWithoutAccounts: on a public address, the
// server starts only if somebody can sign in.
func TestServeRefusesAPublicAddressWithoutAccounts(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "", "NODEST_ADDR=0.0.0.0:0")
	_, _, err := inst.command(t, nil, "serve")
	if err == nil {
		t.Fatal("got no error, want one")
	}
	if got := oneLine(err); !strings.Contains(got, "NODEST_ADMIN_TOKEN") {
		t.Fatalf("oneLine(err) is %q, want it with %q", got, "NODEST_ADMIN_TOKEN")
	}
	if got := oneLine(err); strings.Contains(got, "\n") {
		t.Fatalf("oneLine(err) is %q, want it without %q", got, "\n")
	}
}

// TestSettingsPageListsTheSettings compares the table of docs/settings.md with the
// settings in config.go; -update rewrites it.
func TestSettingsPageListsTheSettings(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/settings.md", "<!-- settings: checked against internal/setup/config.go by a test -->\n", "<!-- end of settings -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	if !ok {
		t.Fatalf("the page has no %s", begin)
	}
	table, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("the page has no %s", end)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+settingsTable()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := settingsTable(); table != want {
		t.Fatalf("go test ./cmd/nodest -run TestSettingsPage -update writes it: table is %q, want %q", table, want)
	}
}

// settingsTable returns the settings as a Markdown table.
func settingsTable() string {
	var b strings.Builder
	b.WriteString("| setting | default | meaning |\n| --- | --- | --- |\n")
	for _, s := range setup.Settings {
		def := ""
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		b.WriteString("| `" + s.Env + "` | " + def + " | " + s.Help + " |\n")
	}
	return b.String()
}
