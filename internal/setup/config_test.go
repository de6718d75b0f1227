package setup

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

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
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNetworksOfIPv4MayBeWrittenAsIPv6(t *testing.T) {
	t.Parallel()
	nets, err := Networks("::ffff:10.0.0.0/104, ::ffff:127.0.0.1, 127.0.0.2, fd00::/8, ::/0")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range nets {
		got = append(got, n.String())
	}
	if want := ([]string{"10.0.0.0/8", "127.0.0.1/32", "127.0.0.2/32", "fd00::/8", "::/0"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got is %q, want %q", got, want)
	}
	_, err = Networks("::ffff:10.0.0.0/129")
	if err == nil {
		t.Fatal("got no error, want one")
	}
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
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.Get(tt.env); got != tt.want {
				t.Fatalf("cfg.Get(tt.env) is %q, want %q", got, tt.want)
			}
			if got := cfg.From(tt.env); got != tt.from {
				t.Fatalf("cfg.From(tt.env) is %q, want %q", got, tt.from)
			}
		})
	}
}

// TestConfigErrorsNameTheSetting: an error names the setting to change and contains no
// secret.
func TestConfigErrorsNameTheSetting(t *testing.T) {
	t.Parallel()
	for env, wrong := range map[string]string{
		"NODEST_ADDR": "8080", "NODEST_DATABASE_URL": "mysql://u:hunter2hunter2@h/d", "NODEST_ADMIN_TOKEN": "hunter2", "NODEST_PROVIDER": "Claude 5",
		"NODEST_GEMINI_BASE_URL": "ftp://host", "NODEST_GEMINI_TRANSPORT": "grpc", "NODEST_OPENROUTER_BASE_URL": "host/path",
		"OPENAI_BASE_URL": "127.0.0.1:11434", "NODEST_TOKENS_PER_DAY": "many", "NODEST_GENERATIONS": "-1", "NODEST_MAX_CONNECTIONS": "1.5", "NODEST_QUOTA_MEGABYTES": "8796093022208", "NODEST_REQUEST_MEGABYTES": "99999999999999",
		"NODEST_GRACE": "20", "NODEST_OFFLINE_DELAY": "-1s", "NODEST_LOG_LEVEL": "loud", "NODEST_LOG_FORMAT": "xml",
		"NODEST_EMBEDDINGS": "word2vec", "NODEST_MEMORY_IDLE_CLOSE": "soon", "NODEST_MEMORY_SUMMARY_SYNC_WAIT": "3",
	} {
		_, err := Load(getenvOf(env, wrong), nil)
		if err == nil || !strings.Contains(err.Error(), env) {
			t.Fatalf("got error %v, want one with %q", err, env)
		}
		if got := err.Error(); strings.Contains(got, "hunter2") {
			t.Fatalf("%s: err.Error() is %q, want it without %q", env, got, "hunter2")
		}
		if got := err.Error(); strings.Contains(got, "\n") {
			t.Fatalf("%s: err.Error() is %q, want it without %q", env, got, "\n")
		}
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
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got error %v, want one with %q", err, want)
		}
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("got error %v, want one with %q", err, path)
		}
	}
	_, err := Load(getenvOf("NODEST_CONFIG", "/no/such.yaml"), nil)
	if err == nil || !strings.Contains(err.Error(), "NODEST_CONFIG: no file /no/such.yaml") {
		t.Fatalf("got error %v, want one with %q", err, "NODEST_CONFIG: no file /no/such.yaml")
	}
}

func TestChunkRulesAreRead(t *testing.T) {
	t.Parallel()
	rules, err := ChunkRules("code=1500/200, csv=2000/0,default=800/100")
	if err != nil {
		t.Fatal(err)
	}
	if want := (map[string]chunk.Rules{"": {Size: 800, Overlap: 100}, "code": {Size: 1500, Overlap: 200}, "csv": {Size: 2000}}); !reflect.DeepEqual(rules, want) {
		t.Fatalf("rules is %+v, want %+v", rules, want)
	}
	for _, wrong := range []string{"code", "code=1500", "code=99/0", "code=800/401", "=800/400", "code=x/1"} {
		_, err := ChunkRules(wrong)
		if err == nil {
			t.Fatalf("%s: got no error, want one", wrong)
		}
	}
}
