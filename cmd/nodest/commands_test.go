package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"nodest/internal/fault"
	"nodest/internal/setup"
	"nodest/knowledge"
	"nodest/store"
)

// mustRun runs a command that must succeed and returns what it printed.
func (i *installation) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, err := i.command(t, strings.NewReader(""), args...)
	if err != nil {
		t.Fatalf("%v: %s: %v", args, errOut, err)
	}
	return out
}

func tempFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const miraCard = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Mira","description":"Keeps a lighthouse.","first_mes":"Hello.","extensions":{"shelf":{"row":7}}}}`

// TestCommandsWithoutAServer goes through the commands as a new user would, without a
// server, on one data folder.
func TestCommandsWithoutAServer(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	if got := inst.mustRun(t, "migrate"); got != "the database is up to date\n" {
		t.Fatalf("got %q, want %q", got, "the database is up to date\n")
	}

	imported := inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	id, name, ok := strings.Cut(strings.TrimSpace(strings.SplitN(imported, "\n", 2)[0]), "  ")
	if !ok {
		t.Fatal(imported)
	}
	if name != "Mira" {
		t.Fatalf("name is %q, want %q", name, "Mira")
	}
	if got := inst.mustRun(t, "import", "--sample"); got == "" {
		t.Fatalf("got %q, want more", got)
	}

	var exported struct {
		Data struct {
			Name       string
			Extensions map[string]any
		}
	}
	if err := json.Unmarshal([]byte(inst.mustRun(t, "export", id, "--spec", "v2")), &exported); err != nil {
		t.Fatal(err)
	}
	if exported.Data.Name != "Mira" {
		t.Fatalf("exported.Data.Name is %q, want %q", exported.Data.Name, "Mira")
	}
	if want := (map[string]any{"row": 7.0}); !reflect.DeepEqual(exported.Data.Extensions["shelf"], want) {
		t.Fatalf("unknown fields stay: got %+v, want %+v", exported.Data.Extensions["shelf"], want)
	}
	png := filepath.Join(t.TempDir(), "mira.png")
	if got := inst.mustRun(t, "export", id, "--format", "png", "-o", png); got != "" {
		t.Fatalf("got %q, want none", got)
	}
	if got := inst.mustRun(t, "import", png); !strings.Contains(got, "Mira") {
		t.Fatalf("got %q, want it with %q", got, "Mira")
	}

	out, _, err := inst.command(t, strings.NewReader("Good evening.\n/quit\n"), "chat", id, "--new") // by id, because two have the name now
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "Mira: Hello.") {
		t.Fatalf("out is %q, want it with %q", out, "Mira: Hello.")
	}
	_, rest, _ := strings.Cut(out, "(conversation ")
	conversation, _, _ := strings.Cut(rest, ";")
	if got := inst.mustRun(t, "prompt", conversation, "--text", "Where is the key?"); !strings.Contains(got, "Where is the key?") {
		t.Fatalf("got %q, want it with %q", got, "Where is the key?")
	}
	var prompt struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(inst.mustRun(t, "prompt", conversation, "--json", "--text", "Where is the key?")), &prompt); err != nil {
		t.Fatal(err)
	}
	if len(prompt.Messages) == 0 {
		t.Fatalf("prompt.Messages is %+v, want more", prompt.Messages)
	}
	_, _, err = inst.command(t, nil, "export", id, "--format", "gif")
	if err == nil || !strings.Contains(err.Error(), "format") {
		t.Fatalf("got error %v, want one with %q", err, "format")
	}
	report := inst.mustRun(t, "doctor", "--no-network")
	for _, line := range []string{"✓ database", "✓ documents: none yet", "idempotency keys: 48 hours", "✓ parser"} {
		if !strings.Contains(report, line) {
			t.Fatalf("report is %q, want it with %q", report, line)
		}
	}
}

func TestTokensAndUsersFromTheCommandLine(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	token := strings.TrimSpace(inst.mustRun(t, "token", "create", "--name", "phone", "--expires", "720h", "--quiet"))
	if strings.Contains(token, " ") {
		t.Fatalf("token is %q, want it without %q", token, " ")
	}
	var phone string
	for line := range strings.Lines(inst.mustRun(t, "token", "list", "--json")) {
		var row struct{ ID, Name string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, token) {
			t.Fatalf("line is %q, want it without %q", line, token)
		}
		if row.Name == "phone" {
			phone = row.ID
		}
	}
	if phone == "" {
		t.Fatalf("phone is %q, want more", phone)
	}
	table := inst.mustRun(t, "token", "list")
	if !regexp.MustCompile(`(?m)^ID +CREATED +NAME +LAST USED +EXPIRES$`).MatchString(table) {
		t.Fatalf("got %q, want a match of %s", table, `(?m)^ID +CREATED +NAME +LAST USED +EXPIRES$`)
	}
	if !regexp.MustCompile(`(?m)^` + phone + ` +20[\d-]+ [\d:]+ +phone +never +20[\d-]+ [\d:]+$`).MatchString(table) {
		t.Fatalf("got %q, want a match of %s", table, `(?m)^`+phone+` +20[\d-]+ [\d:]+ +phone +never +20[\d-]+ [\d:]+$`)
	}
	if strings.Contains(table, token) {
		t.Fatalf("table is %q, want it without %q", table, token)
	}
	_, _, err := inst.command(t, nil, "token", "revoke", "pho")
	if err == nil || !strings.Contains(err.Error(), "did you mean phone") {
		t.Fatalf("deleting requires the whole name: got error %v, want one with %q", err, "did you mean phone")
	}
	inst.mustRun(t, "token", "revoke", phone)
	if got := inst.mustRun(t, "token", "list"); strings.Contains(got, phone) {
		t.Fatalf("got %q, want it without %q", got, phone)
	}
	inst.mustRun(t, "token", "create", "--name", "phone")
	inst.mustRun(t, "token", "create", "--name", "phone")
	_, _, err = inst.command(t, nil, "token", "revoke", "phone")
	if err == nil || !strings.Contains(err.Error(), `"phone" is ambiguous (2 matches)`) {
		t.Fatalf("got error %v, want one with %q", err, `"phone" is ambiguous (2 matches)`)
	}
	inst.mustRun(t, "token", "create", "--name", "Tablet")
	inst.mustRun(t, "token", "revoke", "tablet")
	if got := inst.mustRun(t, "token", "list"); strings.Contains(got, "Tablet") {
		t.Fatalf("got %q, want it without %q", got, "Tablet")
	}
	inst.mustRun(t, "token", "create")
	_, _, err = inst.command(t, nil, "token", "revoke", "nope")
	if err == nil || !strings.Contains(err.Error(), `no token "nope"; run nodest token list to see all`) {
		t.Fatalf("a token without a name is no suggestion: got error %v, want one with %q", err, `no token "nope"; run nodest token list to see all`)
	}

	out, _, err := inst.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
	if err != nil {
		t.Fatal(err)
	}
	id, name, _ := strings.Cut(strings.TrimSpace(out), "  ")
	if name != "alice" {
		t.Fatalf("name is %q, want %q", name, "alice")
	}
	if got := inst.mustRun(t, "user", "list"); !regexp.MustCompile(`(?m)^` + id + ` +20[\d-]+ [\d:]+ +alice +member +yes$`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `(?m)^`+id+` +20[\d-]+ [\d:]+ +alice +member +yes$`)
	}
	if got := inst.mustRun(t, "user", "list", "--json"); !strings.Contains(got, `"username":"alice"`) {
		t.Fatalf("got %q, want it with %q", got, `"username":"alice"`)
	}
	inst.mustRun(t, "user", "limits", "alice", "--megabytes", "5120")
	if got := inst.mustRun(t, "user", "limits", "Alice", "--tokens-per-day", "9"); got != "storage: 5120 MB\ntokens per day: 9\nUS dollars per month: the server's default\nconcurrent replies: the server's default\n" {
		t.Fatalf("got %q, want %q", got, "storage: 5120 MB\ntokens per day: 9\nUS dollars per month: the server's default\nconcurrent replies: the server's default\n")
	}
	if got := inst.mustRun(t, "doctor", "--no-network"); !strings.Contains(got, "quotas: the counters are correct") {
		t.Fatalf("got %q, want it with %q", got, "quotas: the counters are correct")
	}
	_, _, err = inst.command(t, nil, "user", "delete", "alic", "--yes")
	if err == nil || !strings.Contains(err.Error(), "did you mean alice") {
		t.Fatalf("deleting requires the whole name: got error %v, want one with %q", err, "did you mean alice")
	}
	_, _, err = inst.command(t, strings.NewReader("y\n"), "user", "delete", "alice")
	if err == nil || !strings.Contains(err.Error(), "this would delete the account alice and all its data; add --yes to confirm") {
		t.Fatalf("got error %v, want one with %q", err, "this would delete the account alice and all its data; add --yes to confirm")
	}
	if got := exitCode(err, io.Discard); got != 2 {
		t.Fatalf("exitCode(err, io.Discard) is %d, want %d", got, 2)
	}
	if got := inst.mustRun(t, "user", "list"); !strings.Contains(got, "alice") {
		t.Fatalf("got %q, want it with %q", got, "alice")
	}
	inst.mustRun(t, "user", "delete", id, "--yes")
	if got := inst.mustRun(t, "user", "list"); strings.Contains(got, id) {
		t.Fatalf("got %q, want it without %q", got, id)
	}
	_, _, err = inst.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "bob")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = inst.command(t, nil, "user", "delete", "bobby")
	if err == nil || !strings.Contains(err.Error(), "did you mean bob?") {
		t.Fatalf("got error %v, want one with %q", err, "did you mean bob?")
	}
	inst.mustRun(t, "user", "delete", "bob", "--yes")
	if got := inst.mustRun(t, "user", "list"); strings.Contains(got, "bob") {
		t.Fatalf("got %q, want it without %q", got, "bob")
	}
}

func TestALimitBelowAMegabyteIsShown(t *testing.T) {
	t.Parallel()
	if got := (limits{Bytes: 500_000}.String()); !strings.Contains(got, "storage: 488 kB\n") {
		t.Fatalf("limits{Bytes: 500_000}.String() is %q, want it with %q", got, "storage: 488 kB\n")
	}
	if got := (limits{}.String()); !strings.Contains(got, "storage: the server's default\n") {
		t.Fatalf("limits{}.String() is %q, want it with %q", got, "storage: the server's default\n")
	}
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	if got, want := inst.mustRun(t, "version"), "nodest "+version+"\n"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	p := &program{getenv: func(string) string { return "" }, flags: map[string]string{}}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Example == "" {
			t.Fatalf("%s --help has no example: c.Example is %q, want more", c.CommandPath(), c.Example)
		}
		if c.Short == "" {
			t.Fatalf("%s: c.Short is %q, want more", c.CommandPath(), c.Short)
		}
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
	if got := inst.mustRun(t, "lint", good); got != "" {
		t.Fatalf("got %q, want none", got)
	}
	out, _, err := inst.command(t, nil, "lint", tempFile(t, "mira.json", miraCard))
	if !errors.Is(err, errSaid) {
		t.Fatalf("got error %v, want %v", err, errSaid)
	}
	if !strings.Contains(out, "data.extensions.shelf: unknown_field: kept, not used: shelf") {
		t.Fatalf("out is %q, want it with %q", out, "data.extensions.shelf: unknown_field: kept, not used: shelf")
	}
	bad := tempFile(t, "bad.json", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Mira","first_mes":"Hello.","character_book":{"entries":[{"keys":[],"content":"","enabled":true,"insertion_order":0,"extensions":{}}]}}}`)
	out, _, err = inst.command(t, nil, "lint", bad)
	if !errors.Is(err, errSaid) {
		t.Fatalf("got error %v, want %v", err, errSaid)
	}
	if !strings.Contains(out, bad+": ") {
		t.Fatalf("out is %q, want it with %q", out, bad+": ")
	}
	out, _, err = inst.command(t, nil, "lint", "--json", bad, good)
	if !errors.Is(err, errSaid) {
		t.Fatalf("got error %v, want %v", err, errSaid)
	}
	var found map[string][]struct{ Path, Code, Detail string }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	if len(found[bad]) == 0 {
		t.Fatalf("found[bad] is %+v, want more", found[bad])
	}
	if len(found[good]) != 0 {
		t.Fatalf("found[good] is %+v, want none", found[good])
	}

	nameless := tempFile(t, "nameless.json", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":""}}`)
	out, said, err := inst.command(t, nil, "lint", nameless, bad)
	if !errors.Is(err, errSaid) {
		t.Fatalf("got error %v, want %v", err, errSaid)
	}
	if !strings.Contains(said, nameless) {
		t.Fatalf("said is %q, want it with %q", said, nameless)
	}
	if !strings.Contains(out, bad+": ") {
		t.Fatalf("the other files are checked all the same: out is %q, want it with %q", out, bad+": ")
	}
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
			if err == nil {
				t.Fatalf("%s: got no error, want one", out)
			}
			line := oneLine(err)
			if strings.Contains(line, "\n") {
				t.Fatalf("line is %q, want it without %q", line, "\n")
			}
			if strings.Contains(line, "goroutine") {
				t.Fatalf("line is %q, want it without %q", line, "goroutine")
			}
			if got := errOut + line; !strings.Contains(got, tt.want) {
				t.Fatalf("errOut+line is %q, want it with %q", got, tt.want)
			}
		})
	}
}

// TestDoctorReportsProblems checks that doctor fails with a line that names the problem.
func TestDoctorReportsProblems(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "", "NODEST_PROVIDER=gemini")
	out, _, err := inst.command(t, nil, "doctor", "--no-network")
	if !errors.Is(err, errSaid) {
		t.Fatalf("got error %v, want %v", err, errSaid)
	}
	if !strings.Contains(out, "GEMINI_API_KEY") {
		t.Fatalf("out is %q, want it with %q", out, "GEMINI_API_KEY")
	}
	inst = newInstallation(t, "", "NODEST_GRACE=soon")
	out, _, err = inst.command(t, nil, "doctor", "--no-network")
	if !errors.Is(err, errSaid) {
		t.Fatalf("got error %v, want %v", err, errSaid)
	}
	if !strings.Contains(out, "NODEST_GRACE") {
		t.Fatalf("out is %q, want it with %q", out, "NODEST_GRACE")
	}
}

func TestDoctorSaysWhereFailedFilesAreListed(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]map[string]int64{
		"none yet": nil,
		"8 ready":  {knowledge.Ready: 8},
		"8 ready, 6 failed (nodest kb files --state failed lists yours that have failed)": {knowledge.Ready: 8, knowledge.Failed: 6},
	} {
		if got := documentCounts(&store.Documents{Files: files}); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func TestAllSettingsButSecretsAreFlagsOfServe(t *testing.T) {
	t.Parallel()
	p := &program{getenv: os.Getenv, in: strings.NewReader(""), out: &strings.Builder{}, data: &strings.Builder{}, err: &strings.Builder{}, flags: map[string]string{}}
	serve, _, err := p.root().Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range setup.Settings {
		name := s.Flag()
		there := serve.Flags().Lookup(name) != nil || serve.InheritedFlags().Lookup(name) != nil
		if s.Env != "NODEST_DATABASE_URL" { // may contain a password, but need not
			if there != !s.Secret {
				t.Fatalf("%s: there is %v, want %v", s.Env, there, !s.Secret)
			}
		}
	}
}

func TestSettingsRefuseAnUnknownProvider(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	p := inst.start(t)
	err := p.client.Call(t.Context(), http.MethodPut, "/api/v1/settings", map[string]any{"provider": "nope"}, nil)
	if err == nil {
		t.Fatal("got no error, want one")
	}
	if got := fault.Public(err).Code; got != fault.Invalid {
		t.Fatalf("fault.Public(err).Code is %q, want %q", got, fault.Invalid)
	}
	if err := p.client.Call(t.Context(), http.MethodPut, "/api/v1/settings", map[string]any{"provider": "gemini"}, nil); err != nil {
		t.Fatalf("its key can come later: %v", err)
	}
	p.stop(t)
}
