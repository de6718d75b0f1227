package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		require.NoError(t, err)
		require.NotContains(t, out+errOut, "secret-")
		require.Contains(t, out, "NODEST_ADMIN_TOKEN")
		for _, s := range setup.Settings {
			require.Contains(t, out, s.Env)
		}
	}
}

// TestServeRefusesAPublicAddressWithoutAccounts: on a public address, the
// server starts only if somebody can sign in.
func TestServeRefusesAPublicAddressWithoutAccounts(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "", "NODEST_ADDR=0.0.0.0:0")
	_, _, err := inst.command(t, nil, "serve")
	require.Error(t, err)
	require.Contains(t, oneLine(err), "NODEST_ADMIN_TOKEN")
	require.NotContains(t, oneLine(err), "\n")
}

// TestSettingsPageListsTheSettings compares the table of docs/settings.md with the
// settings in config.go; -update rewrites it.
func TestSettingsPageListsTheSettings(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/settings.md", "<!-- settings: checked against internal/setup/config.go by a test -->\n", "<!-- end of settings -->"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "the page has no %s", begin)
	table, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "the page has no %s", end)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+settingsTable()+end+after), 0o644))
		return
	}
	require.Equal(t, settingsTable(), table, "go test ./cmd/nodest -run TestSettingsPage -update writes it")
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
