package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// lines decodes what a command printed, one JSON document a line.
func lines(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out) {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		all = append(all, v)
	}
	return all
}

func TestCommandsPrintDataAsJSON(t *testing.T) {
	i := newInstallation(t, "")
	do := func(args ...string) string {
		t.Helper()
		out, errOut, err := i.command(t, strings.NewReader("correct horse\n"), args...)
		require.NoError(t, err, errOut)
		return out
	}
	got := lines(t, do("import", "--sample", "--json"))
	require.Len(t, got, 1)
	require.NotEmpty(t, got[0]["character"].(map[string]any)["id"])
	require.Contains(t, got[0], "warnings")

	created := lines(t, do("token", "create", "--name", "phone", "--json"))
	require.NotEmpty(t, created[0]["token"])
	names := []any{}
	for _, token := range lines(t, do("token", "list", "--json")) {
		require.NotContains(t, token, "token", "a secret is shown once")
		names = append(names, token["name"])
	}
	require.Contains(t, names, "phone")

	user := lines(t, do("user", "create", "alice", "--json"))
	require.Equal(t, "alice", user[0]["username"])
	require.Equal(t, "member", user[0]["role"])
	require.Len(t, lines(t, do("user", "list", "--json")), 2)

	require.Equal(t, version, lines(t, do("version", "--json"))[0]["version"])
	var checks []map[string]any
	require.NoError(t, json.Unmarshal([]byte(do("doctor", "--no-network", "--json")), &checks))
	for _, c := range checks {
		require.Equal(t, true, c["ok"], c)
	}
}

func TestACommandFailsWithOneLine(t *testing.T) {
	i := newInstallation(t, "")
	missing := filepath.Join(i.dir, "missing.png")
	for _, args := range [][]string{
		{"frob"}, {"serve", "--frob"}, {"prompt"}, {"prompt", "unknown"}, {"lint", missing}, {"import"}, {"export", "unknown"},
		{"config", "--data", i.dir, "--log-level", "loud"}, {"token", "revoke", "unknown"},
	} {
		_, _, err := i.command(t, strings.NewReader(""), args...)
		require.Error(t, err, args)
		require.NotContains(t, oneLine(err), "\n", args)
	}
}

// Every command says how it is used, with an example.
func TestEveryCommandHasAnExample(t *testing.T) {
	p := &program{getenv: os.Getenv, in: strings.NewReader(""), out: &strings.Builder{}, err: &strings.Builder{}, flags: map[string]string{}}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		require.NotEmpty(t, c.Example, c.CommandPath())
		require.NotEmpty(t, c.Short, c.CommandPath())
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(p.root())
}

func TestWhereASettingComesFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nodest.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("addr: 127.0.0.1:1\nmodel: of-file\nfallbacks: [gemini:a, openai]\ngemini_api_key: secret\n")
	env := map[string]string{"NODEST_CONFIG": file, "NODEST_ADDR": "127.0.0.1:2", "NODEST_DATA": "of-env"}
	load := func(flags map[string]string) (*config, error) {
		return loadConfig(func(name string) string { return env[name] }, flags)
	}
	cfg, err := load(map[string]string{"NODEST_ADDR": "127.0.0.1:3"})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:3", cfg.get("NODEST_ADDR"))
	require.Equal(t, "of-env", cfg.get("NODEST_DATA"))
	require.Equal(t, "of-file", cfg.get("NODEST_MODEL"))
	require.Equal(t, "gemini:a,openai", cfg.get("NODEST_FALLBACKS"))
	require.Equal(t, "info", cfg.get("NODEST_LOG_LEVEL"))
	require.Equal(t, "secret", cfg.get("GEMINI_API_KEY"))

	for _, text := range []string{"frob: 1\n", "addr: nowhere\n", "grace: soon\n", "generations: -1\n", "\t"} {
		write(text)
		env["NODEST_ADDR"] = ""
		_, err := load(nil)
		require.Error(t, err, text)
	}
	env["NODEST_CONFIG"] = file + ".gone"
	_, err = load(nil)
	require.Error(t, err)
}
