package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"nodest/internal/fault"
)

// TestKnowledgeCommands adds documents from a terminal, searches them, gives them to a
// character and deletes them.
func TestKnowledgeCommands(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	inst.mustRun(t, "kb", "create", "Harbour", "--description", "The lighthouse.", "--chunk-size", "1000")
	_, _, err := inst.command(t, nil, "kb", "create", "Broken", "--chunk-size", "5")
	if err := fault.Public(err); err == nil || !strings.Contains(err.Error(), "chunkSize") {
		t.Fatalf("got error %v, want one with %q", err, "chunkSize")
	}
	_, errOut, err := inst.command(t, nil, "kb", "create", "Twice")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(errOut, "of this name") {
		t.Fatalf("errOut is %q, want it without %q", errOut, "of this name")
	}
	_, errOut, err = inst.command(t, nil, "kb", "create", "Twice")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errOut, "there is another knowledge base of this name") {
		t.Fatalf("errOut is %q, want it with %q", errOut, "there is another knowledge base of this name")
	}
	if got := inst.mustRun(t, "kb", "list"); !regexp.MustCompile(`(?m)^[0-9a-f-]{36}  .*  Harbour  0 +owner$`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `(?m)^[0-9a-f-]{36}  .*  Harbour  0 +owner$`)
	}

	keepers := tempFile(t, "keepers.md", "# Keepers\n\nThe light was automated in March 1987. Maren Oduya kept it before that.\n")
	if got := inst.mustRun(t, "kb", "add", keepers, "--base", "Harbour"); !regexp.MustCompile(`^[0-9a-f-]{36}  keepers\.md  ready`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `^[0-9a-f-]{36}  keepers\.md  ready`)
	}
	if got := inst.mustRun(t, "kb", "add", keepers); !strings.Contains(got, "(you had it already)") {
		t.Fatalf("got %q, want it with %q", got, "(you had it already)")
	}
	_, errOut, err = inst.command(t, nil, "kb", "add", "nowhere.md", tempFile(t, "blank.md", " \n"))
	if err == nil || !strings.Contains(err.Error(), "failed") {
		t.Fatalf("got error %v, want one with %q", err, "failed")
	}
	if err == nil || !strings.Contains(err.Error(), "not stored: 1") {
		t.Fatalf("got error %v, want one with %q", err, "not stored: 1")
	}
	if !strings.Contains(errOut, "nowhere.md: no such file") {
		t.Fatalf("errOut is %q, want it with %q", errOut, "nowhere.md: no such file")
	}
	_, errOut, err = inst.command(t, nil, "kb", "add", t.TempDir())
	if err == nil {
		t.Fatal("got no error, want one")
	}
	if !strings.Contains(errOut, "a folder; nodest kb sync ") {
		t.Fatalf("errOut is %q, want it with %q", errOut, "a folder; nodest kb sync ")
	}
	_, _, err = inst.command(t, nil, "kb", "add", tempFile(t, "a.zip", "PK"))
	if err == nil {
		t.Fatal("got no error, want one")
	}

	if got := inst.mustRun(t, "kb", "files", "Harbour"); !regexp.MustCompile(`keepers\.md +ready +\d+ bytes +1`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `keepers\.md +ready +\d+ bytes +1`)
	}
	if got := inst.mustRun(t, "kb", "files", "--state", "failed"); !regexp.MustCompile(`blank\.md +failed`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `blank\.md +failed`)
	}
	_, _, err = inst.command(t, nil, "kb", "retry", "blank")
	if err == nil || !strings.Contains(err.Error(), "failed: 1 of 1") {
		t.Fatalf("got error %v, want one with %q", err, "failed: 1 of 1")
	}
	if got := inst.mustRun(t, "kb", "search", "When", "was", "the", "light", "automated?", "--base", "Harbour"); !regexp.MustCompile(`1\. keepers\.md, Keepers \(\d\.\d\d\)\n    The light was automated in March 1987`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `1\. keepers\.md, Keepers \(\d\.\d\d\)\n    The light was automated in March 1987`)
	}
	if got := inst.mustRun(t, "kb", "ask", "When was the light automated?"); !regexp.MustCompile(`^The light was automated in March 1987\.?\[\^1\]\.?\n\n\[\^1\] keepers\.md\n`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `^The light was automated in March 1987\.?\[\^1\]\.?\n\n\[\^1\] keepers\.md\n`)
	}
	if got := inst.mustRun(t, "kb", "reindex", "Harbour"); !strings.Contains(got, "1 of 1 chunks have a vector") {
		t.Fatalf("got %q, want it with %q", got, "1 of 1 chunks have a vector")
	}

	inst.mustRun(t, "kb", "create", "With lines", "--context-lines")
	if got := inst.mustRun(t, "kb", "show", "With lines"); !regexp.MustCompile(`nodest kb reindex [0-9a-f-]{36} --start\n`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `nodest kb reindex [0-9a-f-]{36} --start\n`)
	}
	inst.mustRun(t, "kb", "bind", "Harbour", "Mira")
	inst.mustRun(t, "kb", "bind", "keepers.md", "Mira", "--file")
	inst.mustRun(t, "kb", "unbind", "keepers.md", "Mira", "--file")
	inst.mustRun(t, "kb", "unbind", "Harbour", "Mira")
	_, _, err = inst.command(t, nil, "kb", "grant", "Harbour", "nobody")
	if err == nil || !strings.Contains(err.Error(), `no user "nobody"; run nodest user list to see all`) {
		t.Fatalf("got error %v, want one with %q", err, `no user "nobody"; run nodest user list to see all`)
	}
	_, _, err = inst.command(t, nil, "kb", "revoke", "Harbour", "nobody")
	if err == nil || !strings.Contains(err.Error(), `Harbour is not shared with "nobody"`) {
		t.Fatalf("got error %v, want one with %q", err, `Harbour is not shared with "nobody"`)
	}
	if got := inst.mustRun(t, "kb", "show", "Harbour"); !regexp.MustCompile(`Harbour \(owner\)\n    The lighthouse\.\n    chunks of 1000 characters`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `Harbour \(owner\)\n    The lighthouse\.\n    chunks of 1000 characters`)
	}

	more := tempFile(t, "more.md", "# More\n\nThe tower has 214 steps.\n")
	inst.mustRun(t, "kb", "add", more, "--base", "Harbour")
	_, _, err = inst.command(t, nil, "kb", "remove", "more", "--base", "Harbour")
	if err == nil {
		t.Fatal("removing requires the whole name: got no error, want one")
	}
	inst.mustRun(t, "kb", "remove", "more.md", "--base", "Harbour")
	if got := inst.mustRun(t, "kb", "files", "Harbour"); strings.Contains(got, "more.md") {
		t.Fatalf("got %q, want it without %q", got, "more.md")
	}
	_, _, err = inst.command(t, nil, "kb", "remove", "more.md")
	if err == nil || !strings.Contains(err.Error(), "add --yes to confirm") {
		t.Fatalf("got error %v, want one with %q", err, "add --yes to confirm")
	}
	inst.mustRun(t, "kb", "remove", "more.md", "--yes")
	if got := inst.mustRun(t, "kb", "files"); strings.Contains(got, "more.md") {
		t.Fatalf("got %q, want it without %q", got, "more.md")
	}

	_, _, err = inst.command(t, nil, "kb", "delete", "Harb", "--yes")
	if err == nil {
		t.Fatal("deleting requires the whole name: got no error, want one")
	}
	_, _, err = inst.command(t, nil, "kb", "delete", "Harbour")
	if err == nil || !strings.Contains(err.Error(), "add --yes to confirm") {
		t.Fatalf("got error %v, want one with %q", err, "add --yes to confirm")
	}
	inst.mustRun(t, "kb", "delete", "Harbour", "--files", "--yes")
	if got := inst.mustRun(t, "kb", "files"); strings.Contains(got, "keepers") {
		t.Fatalf("got %q, want it without %q", got, "keepers")
	}
}

// TestRetryWithoutFailedFiles says that there is nothing to do.
func TestRetryWithoutFailedFiles(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	_, _, err := inst.command(t, nil, "kb", "retry", "one.md")
	if err == nil || !strings.Contains(err.Error(), "none of your files has failed") {
		t.Fatalf("got error %v, want one with %q", err, "none of your files has failed")
	}
	_, _, err = inst.command(t, nil, "kb", "add", tempFile(t, "blank.txt", " "))
	if err == nil {
		t.Fatal("got no error, want one")
	}
	_, errOut, err := inst.command(t, nil, "kb", "retry", "--all")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errOut, "nothing to retry; failed for good: 1 ") {
		t.Fatalf("errOut is %q, want it with %q", errOut, "nothing to retry; failed for good: 1 ")
	}
}

// TestKnowledgeSync makes a knowledge base follow a folder.
func TestKnowledgeSync(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "kb", "create", "Notes")
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sync := func(more ...string) (out, errOut string) {
		t.Helper()
		out, errOut, err := inst.command(t, nil, append([]string{"kb", "sync", dir, "--base", "Notes"}, more...)...)
		if err != nil {
			t.Fatalf("%s: %v", errOut, err)
		}
		return out, errOut
	}
	write("one.md", "The first note.")
	write("lore/two.md", "The second note.")
	write("lore/copy.md", "The second note.")
	write(".hidden/three.md", "A hidden note.")
	write(".secret", "Another hidden note.")
	out, _ := sync()
	if !strings.Contains(out, "lore/copy.md  ready") {
		t.Fatalf("out is %q, want it with %q", out, "lore/copy.md  ready")
	}
	if !strings.Contains(out, "2 new, 0 changed, 0 gone, 1 unchanged\n") {
		t.Fatalf("of the same content there is one file: out is %q, want it with %q", out, "2 new, 0 changed, 0 gone, 1 unchanged\n")
	}
	if strings.Contains(out, "lore/two.md") {
		t.Fatalf("out is %q, want it without %q", out, "lore/two.md")
	}
	out, _ = sync()
	if out != "0 new, 0 changed, 0 gone, 3 unchanged\n" {
		t.Fatalf("out is %q, want %q", out, "0 new, 0 changed, 0 gone, 3 unchanged\n")
	}

	write("one.md", "The first note, again.")
	if err := os.RemoveAll(filepath.Join(dir, "lore")); err != nil {
		t.Fatal(err)
	}
	out, errOut := sync()
	if !strings.Contains(out, "0 new, 1 changed, 1 gone, 0 unchanged\n") {
		t.Fatalf("out is %q, want it with %q", out, "0 new, 1 changed, 1 gone, 0 unchanged\n")
	}
	if !strings.Contains(errOut, "gone: lore/copy.md; --delete removes it\n") {
		t.Fatalf("errOut is %q, want it with %q", errOut, "gone: lore/copy.md; --delete removes it\n")
	}
	if got := inst.mustRun(t, "kb", "files", "Notes"); !strings.Contains(got, "lore/copy.md") {
		t.Fatalf("got %q, want it with %q", got, "lore/copy.md")
	}
	out, _ = sync("--delete", "--json")
	var sum map[string]any
	if err := json.Unmarshal([]byte(out), &sum); err != nil {
		t.Fatal(err)
	}
	if want := (map[string]any{"new": 0.0, "changed": 0.0, "gone": 1.0, "removed": true, "unchanged": 1.0, "failed": 0.0}); !reflect.DeepEqual(sum, want) {
		t.Fatalf("sum is %+v, want %+v", sum, want)
	}
	if got := inst.mustRun(t, "kb", "files", "Notes"); strings.Contains(got, "lore") {
		t.Fatalf("got %q, want it without %q", got, "lore")
	}
	if got := inst.mustRun(t, "kb", "files"); strings.Contains(got, "lore") {
		t.Fatalf("a file that nothing else has is deleted: got %q, want it without %q", got, "lore")
	}

	// Files that are gone are removed only if the command added them; those in use elsewhere stay.
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	inst.mustRun(t, "kb", "create", "Other")
	inst.mustRun(t, "kb", "add", tempFile(t, "by-hand.md", "Added by hand."), "--base", "Notes")
	write("shared.md", "In two knowledge bases.")
	write("bound.md", "Known to a character.")
	write("a\u200bb  c.md", "Its name is cleaned.") // a zero-width space and two blanks
	sync()
	inst.mustRun(t, "kb", "add", filepath.Join(dir, "shared.md"), "--base", "Other")
	inst.mustRun(t, "kb", "bind", "bound.md", "Mira", "--file")
	out, _ = sync()
	if out != "0 new, 0 changed, 0 gone, 4 unchanged\n" {
		t.Fatalf("out is %q, want %q", out, "0 new, 0 changed, 0 gone, 4 unchanged\n")
	}
	write("a\u200bb  c.md", "Its name is cleaned, and its content is new.")
	if err := os.Remove(filepath.Join(dir, "shared.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "bound.md")); err != nil {
		t.Fatal(err)
	}
	out, _ = sync("--delete")
	if !strings.Contains(out, "0 new, 1 changed, 2 removed, 1 unchanged\n") {
		t.Fatalf("out is %q, want it with %q", out, "0 new, 1 changed, 2 removed, 1 unchanged\n")
	}
	left := inst.mustRun(t, "kb", "files", "Notes")
	if !strings.Contains(left, "by-hand.md") {
		t.Fatalf("left is %q, want it with %q", left, "by-hand.md")
	}
	if strings.Contains(left, "shared.md") {
		t.Fatalf("left is %q, want it without %q", left, "shared.md")
	}
	if strings.Contains(left, "bound.md") {
		t.Fatalf("left is %q, want it without %q", left, "bound.md")
	}
	if got := inst.mustRun(t, "kb", "files", "Other"); !strings.Contains(got, "shared.md") {
		t.Fatalf("got %q, want it with %q", got, "shared.md")
	}
	if got := inst.mustRun(t, "kb", "files"); !strings.Contains(got, "bound.md") {
		t.Fatalf("got %q, want it with %q", got, "bound.md")
	}

	// It is the place in a knowledge base that belongs to a folder, not the file.
	inst.mustRun(t, "kb", "add", filepath.Join(dir, "one.md"), "--base", "Other")
	other := t.TempDir()
	elsewhere := func(more ...string) string {
		t.Helper()
		out, errOut, err := inst.command(t, nil, append([]string{"kb", "sync", other, "--base", "Other"}, more...)...)
		if err != nil {
			t.Fatalf("%s: %v", errOut, err)
		}
		return out
	}
	if got := elsewhere("--delete"); !strings.Contains(got, "0 new, 0 changed, 0 removed, 0 unchanged\n") {
		t.Fatalf("both files were added by hand: got %q, want it with %q", got, "0 new, 0 changed, 0 removed, 0 unchanged\n")
	}
	if err := os.WriteFile(filepath.Join(other, "hand.md"), []byte("Added by hand."), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := elsewhere(); !strings.Contains(got, "1 new, 0 changed, 0 gone, 0 unchanged\n") {
		t.Fatalf("elsewhere() is %q, want it with %q", got, "1 new, 0 changed, 0 gone, 0 unchanged\n")
	}
	if err := os.Remove(filepath.Join(other, "hand.md")); err != nil {
		t.Fatal(err)
	}
	if got := elsewhere("--delete"); !strings.Contains(got, "0 new, 0 changed, 1 removed, 0 unchanged\n") {
		t.Fatalf("got %q, want it with %q", got, "0 new, 0 changed, 1 removed, 0 unchanged\n")
	}
	if got := inst.mustRun(t, "kb", "files", "Notes"); !strings.Contains(got, "by-hand.md") {
		t.Fatalf("there it was added by hand: got %q, want it with %q", got, "by-hand.md")
	}
	inst.mustRun(t, "kb", "remove", "one.md", "--base", "Other")

	// Contents that change their names, or that another knowledge base has.
	write("one.md", "In two knowledge bases.")
	out, _ = sync()
	if !strings.Contains(out, "0 new, 1 changed, 0 gone, 1 unchanged\n") {
		t.Fatalf("out is %q, want it with %q", out, "0 new, 1 changed, 0 gone, 1 unchanged\n")
	}
	write("two.md", "Another note.")
	sync()
	write("one.md", "Another note.")
	write("two.md", "In two knowledge bases.")
	out, _ = sync()
	if out != "0 new, 0 changed, 0 gone, 3 unchanged\n" {
		t.Fatalf("out is %q, want %q", out, "0 new, 0 changed, 0 gone, 3 unchanged\n")
	}
	write("one.md", "In two knowledge bases.")
	out, _ = sync()
	if out != "0 new, 1 changed, 0 gone, 2 unchanged\n" {
		t.Fatalf("out is %q, want %q", out, "0 new, 1 changed, 0 gone, 2 unchanged\n")
	}
	if got := inst.mustRun(t, "kb", "files", "Notes"); strings.Contains(got, "two.md") {
		t.Fatalf("the other content has left: got %q, want it without %q", got, "two.md")
	}
	out, _ = sync()
	if out != "0 new, 0 changed, 0 gone, 3 unchanged\n" {
		t.Fatalf("out is %q, want %q", out, "0 new, 0 changed, 0 gone, 3 unchanged\n")
	}

	_, _, err := inst.command(t, nil, "kb", "sync", filepath.Join(dir, "one.md"), "--base", "Notes")
	if err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Fatalf("got error %v, want one with %q", err, "is not a folder")
	}
	_, _, err = inst.command(t, nil, "kb", "sync", filepath.Join(dir, "missing"), "--base", "Notes")
	if got := exitCode(err, io.Discard); got != 2 {
		t.Fatalf("exitCode(err, io.Discard) is %d, want %d", got, 2)
	}
	if err == nil || err.Error() != filepath.Join(dir, "missing")+": no such file or directory" {
		t.Fatalf("got error %v, want %q", err, filepath.Join(dir, "missing")+": no such file or directory")
	}
	for _, args := range [][]string{{"sync", dir}, {"reindex", "Notes", "--start", "--cancel"}} {
		_, _, err = inst.command(t, nil, append([]string{"kb"}, args...)...)
		if got := exitCode(err, io.Discard); got != 2 {
			t.Fatalf("%v: exitCode(err, io.Discard) is %d, want %d", args, got, 2)
		}
	}
	_, _, err = inst.command(t, nil, "kb", "sync", dir, "--base", "Nowhere")
	if err == nil || !strings.Contains(err.Error(), `no knowledge base "Nowhere"`) {
		t.Fatalf("got error %v, want one with %q", err, `no knowledge base "Nowhere"`)
	}
}

func TestWarningsOfFilesAreWords(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"invalid_json":                "not valid JSON, so read as plain text",
		"type_mismatch:pdf":           "its name says something else; read as pdf",
		"12_chunks_without_context":   "chunks without a context line: 12",
		"1_chunks_without_vector":     "chunks found by words only, because the embedding model rejects them: 1",
		"a_warning_of_a_newer_server": "a_warning_of_a_newer_server",
		"3_of_a_newer_server":         "3_of_a_newer_server",
	} {
		if got := warning(code); got != want {
			t.Fatalf("warning(code) is %q, want %q", got, want)
		}
	}
	f := knowledgeFile{State: "ready", Warnings: []string{"invalid_csv", "lexical_only"}}
	if got := f.note(); got != "not valid CSV, so read as plain text; found by words only, without an embedding provider" {
		t.Fatalf("f.note() is %q, want %q", got, "not valid CSV, so read as plain text; found by words only, without an embedding provider")
	}
}

func TestPassagesBeginBehindTheirHeadings(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"# Harbour\n\n## The light\n\nIt was automated.\n# Harbour", "Harbour › The light", "It was automated.\n# Harbour"},
		{"# Harbour\n## The light\nIt was automated.", "Harbour", "## The light\nIt was automated."},
		{"It was automated.\nIn 1987.", "Harbour", "It was automated.\nIn 1987."},
		{"# Harbour", "Harbour", "# Harbour"},
		{"One.\nTwo.", "", "One.\nTwo."},
	} {
		if got := withoutHeadings(c[0], c[1]); got != c[2] {
			t.Fatalf("withoutHeadings(c[0], c[1]) is %q, want %q", got, c[2])
		}
	}
}
