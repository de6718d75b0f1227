package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/knowledge/chunk"
)

// getenvOf returns a getenv function for pairs of name and value.
func getenvOf(pairs ...string) func(string) string {
	env := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return env[name] }
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodest.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestNetworksOfIPv4MayBeWrittenAsIPv6(t *testing.T) {
	t.Parallel()
	nets, err := Networks("::ffff:10.0.0.0/104, ::ffff:127.0.0.1, 127.0.0.2, fd00::/8, ::/0")
	require.NoError(t, err)
	var got []string
	for _, n := range nets {
		got = append(got, n.String())
	}
	require.Equal(t, []string{"10.0.0.0/8", "127.0.0.1/32", "127.0.0.2/32", "fd00::/8", "::/0"}, got)
	_, err = Networks("::ffff:10.0.0.0/129")
	require.Error(t, err)
}

func TestFlagBeforeEnvironmentBeforeFileBeforeDefault(t *testing.T) {
	t.Parallel()
	file := configFile(t, "log_level: warn\nmodel: from-file\ngrace: 5s\nfallbacks: [gemini, openrouter:vendor/model]\ngemini_api_key: key-of-file\nmemory.idle_close: 5m\n")
	for _, tt := range []struct {
		name, env, want, from string
		getenv                func(string) string
		flags                 map[string]string
	}{
		{name: "default", env: "NODEST_LOG_LEVEL", want: "info", from: "default", getenv: getenvOf()},
		{name: "file", env: "NODEST_LOG_LEVEL", want: "warn", from: file, getenv: getenvOf("NODEST_CONFIG", file)},
		{name: "a list in the file", env: "NODEST_FALLBACKS", want: "gemini,openrouter:vendor/model", from: file, getenv: getenvOf("NODEST_CONFIG", file)},
		{name: "a name with a dot", env: "NODEST_MEMORY_IDLE_CLOSE", want: "5m", from: file, getenv: getenvOf("NODEST_CONFIG", file)},
		{name: "a name without NODEST_", env: "GEMINI_API_KEY", want: "key-of-file", from: file, getenv: getenvOf("NODEST_CONFIG", file)},
		{name: "environment", env: "NODEST_LOG_LEVEL", want: "error", from: "environment", getenv: getenvOf("NODEST_CONFIG", file, "NODEST_LOG_LEVEL", "error")},
		{name: "empty in the environment is not set", env: "NODEST_MODEL", want: "from-file", from: file, getenv: getenvOf("NODEST_CONFIG", file, "NODEST_MODEL", "")},
		{
			name: "flag", env: "NODEST_LOG_LEVEL", want: "debug", from: "flag",
			getenv: getenvOf("NODEST_CONFIG", file, "NODEST_LOG_LEVEL", "error"), flags: map[string]string{"NODEST_LOG_LEVEL": "debug"},
		},
		{name: "an empty flag is set", env: "NODEST_MODEL", want: "", from: "flag", getenv: getenvOf("NODEST_MODEL", "m"), flags: map[string]string{"NODEST_MODEL": ""}},
		{name: "file named by a flag", env: "NODEST_GRACE", want: "5s", from: file, getenv: getenvOf("NODEST_CONFIG", "/nowhere"), flags: map[string]string{"NODEST_CONFIG": file}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := Load(tt.getenv, tt.flags)
			require.NoError(t, err)
			require.Equal(t, tt.want, cfg.Get(tt.env))
			require.Equal(t, tt.from, cfg.From(tt.env))
		})
	}
}

// TestConfigErrorsNameTheSetting: an error names the setting to change and contains no
// secret.
func TestConfigErrorsNameTheSetting(t *testing.T) {
	t.Parallel()
	for env, wrong := range map[string]string{
		"NODEST_ADDR": "8080", "NODEST_DATABASE_URL": "mysql://u:hunter2hunter2@h/d", "NODEST_ADMIN_TOKEN": "hunter2", "NODEST_PROVIDER": "claude",
		"NODEST_GEMINI_BASE_URL": "ftp://host", "NODEST_GEMINI_TRANSPORT": "grpc", "NODEST_OPENROUTER_BASE_URL": "host/path",
		"OPENAI_BASE_URL": "127.0.0.1:11434", "NODEST_TOKENS_PER_DAY": "many", "NODEST_GENERATIONS": "-1", "NODEST_MAX_CONNECTIONS": "1.5", "NODEST_QUOTA_MEGABYTES": "8796093022208", "NODEST_REQUEST_MEGABYTES": "99999999999999",
		"NODEST_GRACE": "20", "NODEST_OFFLINE_DELAY": "-1s", "NODEST_LOG_LEVEL": "loud", "NODEST_LOG_FORMAT": "xml",
		"NODEST_EMBEDDINGS": "word2vec", "NODEST_MEMORY_IDLE_CLOSE": "soon", "NODEST_MEMORY_SUMMARY_SYNC_WAIT": "3",
	} {
		_, err := Load(getenvOf(env, wrong), nil)
		require.ErrorContains(t, err, env)
		require.NotContains(t, err.Error(), "hunter2", env)
		require.NotContains(t, err.Error(), "\n", env)
	}
}

func TestConfigFileRefusesUnknownSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"adr: 127.0.0.1:1\n": `unknown setting "adr"`,
		"NODEST_ADDR: x\n":   `unknown setting "NODEST_ADDR"`,
		"log_level: loud\n":  "NODEST_LOG_LEVEL",
		"addr: [":            "yaml",
	} {
		path := configFile(t, text)
		_, err := Load(getenvOf("NODEST_CONFIG", path), nil)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
	}
	_, err := Load(getenvOf("NODEST_CONFIG", "/no/such.yaml"), nil)
	require.ErrorContains(t, err, "NODEST_CONFIG: no file /no/such.yaml")
}

func TestChunkRulesAreRead(t *testing.T) {
	t.Parallel()
	rules, err := ChunkRules("code=1500/200, csv=2000/0,default=800/100")
	require.NoError(t, err)
	require.Equal(t, map[string]chunk.Rules{"": {Size: 800, Overlap: 100}, "code": {Size: 1500, Overlap: 200}, "csv": {Size: 2000}}, rules)
	for _, wrong := range []string{"code", "code=1500", "code=99/0", "code=800/401", "=800/400", "code=x/1"} {
		_, err := ChunkRules(wrong)
		require.Error(t, err, wrong)
	}
}
