package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"nodest/internal/fault"
	"nodest/internal/setup"
	"nodest/knowledge"
	"nodest/store"
)

// mustRun runs a command that must succeed and returns what it printed.
func (i *installation) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, err := i.command(t, strings.NewReader(""), args...)
	require.NoError(t, err, "%v: %s", args, errOut)
	return out
}

func tempFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const miraCard = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Mira","description":"Keeps a lighthouse.","first_mes":"Hello.","extensions":{"shelf":{"row":7}}}}`

// TestCommandsWithoutAServer goes through the commands as a new user would, without a
// server, on one data folder.
func TestCommandsWithoutAServer(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	require.Equal(t, "the database is up to date\n", inst.mustRun(t, "migrate"))

	imported := inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	id, name, ok := strings.Cut(strings.TrimSpace(strings.SplitN(imported, "\n", 2)[0]), "  ")
	require.True(t, ok, imported)
	require.Equal(t, "Mira", name)
	require.NotEmpty(t, inst.mustRun(t, "import", "--sample"))

	var exported struct {
		Data struct {
			Name       string
			Extensions map[string]any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(inst.mustRun(t, "export", id, "--spec", "v2")), &exported))
	require.Equal(t, "Mira", exported.Data.Name)
	require.Equal(t, map[string]any{"row": 7.0}, exported.Data.Extensions["shelf"], "unknown fields stay")
	png := filepath.Join(t.TempDir(), "mira.png")
	require.Empty(t, inst.mustRun(t, "export", id, "--format", "png", "-o", png))
	require.Contains(t, inst.mustRun(t, "import", png), "Mira")

	out, _, err := inst.command(t, strings.NewReader("Good evening.\n/quit\n"), "chat", id, "--new") // by id, because two have the name now
	require.NoError(t, err)
	require.Contains(t, out, "Mira: Hello.")
	_, rest, _ := strings.Cut(out, "(conversation ")
	conversation, _, _ := strings.Cut(rest, ";")
	require.Contains(t, inst.mustRun(t, "prompt", conversation, "--text", "Where is the key?"), "Where is the key?")
	var prompt struct {
		Messages []struct{ Role, Content string }
	}
	require.NoError(t, json.Unmarshal([]byte(inst.mustRun(t, "prompt", conversation, "--json", "--text", "Where is the key?")), &prompt))
	require.NotEmpty(t, prompt.Messages)
	_, _, err = inst.command(t, nil, "export", id, "--format", "gif")
	require.ErrorContains(t, err, "format")
	report := inst.mustRun(t, "doctor", "--no-network")
	for _, line := range []string{"✓ database", "✓ documents: none yet", "idempotency keys: 48 hours", "✓ parser"} {
		require.Contains(t, report, line)
	}
}

func TestTokensAndUsersFromTheCommandLine(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	token := strings.TrimSpace(inst.mustRun(t, "token", "create", "--name", "phone", "--expires", "720h", "--quiet"))
	require.NotContains(t, token, " ")
	var phone string
	for line := range strings.Lines(inst.mustRun(t, "token", "list", "--json")) {
		var row struct{ ID, Name string }
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		require.NotContains(t, line, token)
		if row.Name == "phone" {
			phone = row.ID
		}
	}
	require.NotEmpty(t, phone)
	table := inst.mustRun(t, "token", "list")
	require.Regexp(t, `(?m)^ID +CREATED +NAME +LAST USED +EXPIRES$`, table)
	require.Regexp(t, `(?m)^`+phone+` +20[\d-]+ [\d:]+ +phone +never +20[\d-]+ [\d:]+$`, table)
	require.NotContains(t, table, token)
	_, _, err := inst.command(t, nil, "token", "revoke", "pho")
	require.ErrorContains(t, err, "did you mean phone", "deleting requires the whole name")
	inst.mustRun(t, "token", "revoke", phone)
	require.NotContains(t, inst.mustRun(t, "token", "list"), phone)
	inst.mustRun(t, "token", "create", "--name", "phone")
	inst.mustRun(t, "token", "create", "--name", "phone")
	_, _, err = inst.command(t, nil, "token", "revoke", "phone")
	require.ErrorContains(t, err, `"phone" is ambiguous (2 matches)`)
	inst.mustRun(t, "token", "create", "--name", "Tablet")
	inst.mustRun(t, "token", "revoke", "tablet")
	require.NotContains(t, inst.mustRun(t, "token", "list"), "Tablet")
	inst.mustRun(t, "token", "create")
	_, _, err = inst.command(t, nil, "token", "revoke", "nope")
	require.ErrorContains(t, err, `no token "nope"; run nodest token list to see all`, "a token without a name is no suggestion")

	out, _, err := inst.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
	require.NoError(t, err)
	id, name, _ := strings.Cut(strings.TrimSpace(out), "  ")
	require.Equal(t, "alice", name)
	require.Regexp(t, `(?m)^`+id+` +20[\d-]+ [\d:]+ +alice +member +yes$`, inst.mustRun(t, "user", "list"))
	require.Contains(t, inst.mustRun(t, "user", "list", "--json"), `"username":"alice"`)
	inst.mustRun(t, "user", "limits", "alice", "--megabytes", "5120")
	require.Equal(t, "storage: 5120 MB\ntokens per day: 9\nconcurrent replies: the server's default\n", inst.mustRun(t, "user", "limits", "Alice", "--tokens-per-day", "9"))
	require.Contains(t, inst.mustRun(t, "doctor", "--no-network"), "quotas: the counters are correct")
	_, _, err = inst.command(t, nil, "user", "delete", "alic", "--yes")
	require.ErrorContains(t, err, "did you mean alice", "deleting requires the whole name")
	_, _, err = inst.command(t, strings.NewReader("y\n"), "user", "delete", "alice")
	require.ErrorContains(t, err, "this would delete the account alice and all its data; add --yes to confirm")
	require.Equal(t, 2, exitCode(err, io.Discard))
	require.Contains(t, inst.mustRun(t, "user", "list"), "alice")
	inst.mustRun(t, "user", "delete", id, "--yes")
	require.NotContains(t, inst.mustRun(t, "user", "list"), id)
	_, _, err = inst.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "bob")
	require.NoError(t, err)
	_, _, err = inst.command(t, nil, "user", "delete", "bobby")
	require.ErrorContains(t, err, "did you mean bob?")
	inst.mustRun(t, "user", "delete", "bob", "--yes")
	require.NotContains(t, inst.mustRun(t, "user", "list"), "bob")
}

func TestALimitBelowAMegabyteIsShown(t *testing.T) {
	t.Parallel()
	require.Contains(t, limits{Bytes: 500_000}.String(), "storage: 488 kB\n")
	require.Contains(t, limits{}.String(), "storage: the server's default\n")
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	require.Equal(t, "nodest "+version+"\n", inst.mustRun(t, "version"))
	p := &program{getenv: func(string) string { return "" }, flags: map[string]string{}}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		require.NotEmpty(t, c.Example, "%s --help has no example", c.CommandPath())
		require.NotEmpty(t, c.Short, c.CommandPath())
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(p.root())
}

// TestLintNamesFileAndPath checks that lint prints its findings with file and path,
// and fails when there are any.
func TestLintNamesFileAndPath(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	good := tempFile(t, "good.json", strings.Replace(miraCard, `{"shelf":{"row":7}}`, "{}", 1))
	require.Empty(t, inst.mustRun(t, "lint", good))
	out, _, err := inst.command(t, nil, "lint", tempFile(t, "mira.json", miraCard))
	require.ErrorIs(t, err, errSaid)
	require.Contains(t, out, "data.extensions.shelf: unknown_field: kept, not used: shelf")
	bad := tempFile(t, "bad.json", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Mira","first_mes":"Hello.","character_book":{"entries":[{"keys":[],"content":"","enabled":true,"insertion_order":0,"extensions":{}}]}}}`)
	out, _, err = inst.command(t, nil, "lint", bad)
	require.ErrorIs(t, err, errSaid)
	require.Contains(t, out, bad+": ")
	out, _, err = inst.command(t, nil, "lint", "--json", bad, good)
	require.ErrorIs(t, err, errSaid)
	var found map[string][]struct{ Path, Code, Detail string }
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.NotEmpty(t, found[bad])
	require.Empty(t, found[good])

	nameless := tempFile(t, "nameless.json", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":""}}`)
	out, said, err := inst.command(t, nil, "lint", nameless, bad)
	require.ErrorIs(t, err, errSaid)
	require.Contains(t, said, nameless)
	require.Contains(t, out, bad+": ", "the other files are checked all the same")
}

// TestErrorsAreOneLine: every wrong command fails with an error of one line that says
// what is wrong.
func TestErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	broken := tempFile(t, "broken.json", `{"name":`)
	nameless := tempFile(t, "nameless.json", `{"spec":"chara_card_v2","data":{"description":"nobody"}}`)
	cut := tempFile(t, "cut.png", "\x89PNG\r\n\x1a\n\x00\x00")
	for _, tt := range []struct {
		args []string
		in   string
		want string // in the error, or in the output before it
	}{
		{args: []string{"sing"}, want: `unknown command "sing"`},
		{args: []string{"serve", "--port", "1"}, want: "unknown flag: --port"},
		{args: []string{"serve", "extra"}, want: "wrong number of arguments; usage: nodest serve"},
		{args: []string{"--log-level", "loud", "config"}, want: "NODEST_LOG_LEVEL"},
		{args: []string{"--config", "/no/such.yaml", "config"}, want: "/no/such.yaml"},
		{args: []string{"import"}, want: "give a file (nodest import card.png) or --sample"},
		{args: []string{"import", "/no/such.png"}, want: "/no/such.png"},
		{args: []string{"import", broken}, want: broken},
		{args: []string{"import", nameless}, want: "name"},
		{args: []string{"import", cut}, want: cut},
		{args: []string{"export"}, want: "wrong number of arguments; usage: nodest export"},
		{args: []string{"export", "0199aaaa-0000-7000-8000-000000000000"}, want: "no such character"},
		{args: []string{"lint"}, want: "wrong number of arguments; usage: nodest lint"},
		{args: []string{"lint", "/no/such.json"}, want: "/no/such.json"},
		{args: []string{"lint", broken}, want: broken},
		{args: []string{"prompt", "nowhere"}, want: "no chat yet; add one with: nodest chat"},
		{args: []string{"chat", "Nobody"}, want: "no character yet; add one with: nodest import card.png"},
		{args: []string{"token", "create", "--expires", "soon"}, want: "expiresIn"},
		{args: []string{"token", "revoke", "0199aaaa-0000-7000-8000-000000000000"}, want: "run nodest token list to see all"},
		{args: []string{"user", "create", "bob"}, in: "\n", want: "password"},
		{args: []string{"user", "create", strings.Repeat("b", 65)}, in: "correct horse battery\n", want: "username"},
		{args: []string{"user", "delete", "0199aaaa-0000-7000-8000-000000000000"}, want: "run nodest user list to see all"},
		{args: []string{"bench", "chat", "--only", "ttft"}, want: "go run ./cmd/nodest-bench"},
		{args: []string{"doctor", "--health"}, want: "connect"},
	} {
		t.Run(strings.Join(tt.args[:min(2, len(tt.args))], " "), func(t *testing.T) {
			out, errOut, err := inst.command(t, strings.NewReader(tt.in), tt.args...)
			require.Error(t, err, out)
			line := oneLine(err)
			require.NotContains(t, line, "\n")
			require.NotContains(t, line, "goroutine")
			require.Contains(t, errOut+line, tt.want)
		})
	}
}

// TestDoctorReportsProblems checks that doctor fails with a line that names the problem.
func TestDoctorReportsProblems(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "", "NODEST_PROVIDER=gemini")
	out, _, err := inst.command(t, nil, "doctor", "--no-network")
	require.ErrorIs(t, err, errSaid)
	require.Contains(t, out, "GEMINI_API_KEY")
	inst = newInstallation(t, "", "NODEST_GRACE=soon")
	out, _, err = inst.command(t, nil, "doctor", "--no-network")
	require.ErrorIs(t, err, errSaid)
	require.Contains(t, out, "NODEST_GRACE")
}

func TestDoctorSaysWhereFailedFilesAreListed(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]map[string]int64{
		"none yet": nil,
		"8 ready":  {knowledge.Ready: 8},
		"8 ready, 6 failed (nodest kb files --state failed lists yours that have failed)": {knowledge.Ready: 8, knowledge.Failed: 6},
	} {
		require.Equal(t, want, documentCounts(&store.Documents{Files: files}))
	}
}

func TestAllSettingsButSecretsAreFlagsOfServe(t *testing.T) {
	t.Parallel()
	p := &program{getenv: os.Getenv, in: strings.NewReader(""), out: &strings.Builder{}, data: &strings.Builder{}, err: &strings.Builder{}, flags: map[string]string{}}
	serve, _, err := p.root().Find([]string{"serve"})
	require.NoError(t, err)
	for _, s := range setup.Settings {
		name := s.Flag()
		there := serve.Flags().Lookup(name) != nil || serve.InheritedFlags().Lookup(name) != nil
		if s.Env != "NODEST_DATABASE_URL" { // may contain a password, but need not
			require.Equal(t, !s.Secret, there, s.Env)
		}
	}
}

func TestSettingsRefuseAnUnknownProvider(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	p := inst.start(t)
	err := p.client.Call(t.Context(), http.MethodPut, "/api/v1/settings", map[string]any{"provider": "nope"}, nil)
	require.Error(t, err)
	require.Equal(t, fault.Invalid, fault.Public(err).Code)
	require.NoError(t, p.client.Call(t.Context(), http.MethodPut, "/api/v1/settings", map[string]any{"provider": "gemini"}, nil), "its key can come later")
	p.stop(t)
}
