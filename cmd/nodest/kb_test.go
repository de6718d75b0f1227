package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.ErrorContains(t, fault.Public(err), "chunkSize")
	_, errOut, err := inst.command(t, nil, "kb", "create", "Twice")
	require.NoError(t, err)
	require.NotContains(t, errOut, "of this name")
	_, errOut, err = inst.command(t, nil, "kb", "create", "Twice")
	require.NoError(t, err)
	require.Contains(t, errOut, "there is another knowledge base of this name")
	require.Regexp(t, `(?m)^[0-9a-f-]{36}  .*  Harbour  0 +owner$`, inst.mustRun(t, "kb", "list"))

	keepers := tempFile(t, "keepers.md", "# Keepers\n\nThe light was automated in March 1987. Maren Oduya kept it before that.\n")
	require.Regexp(t, `^[0-9a-f-]{36}  keepers\.md  ready`, inst.mustRun(t, "kb", "add", keepers, "--base", "Harbour"))
	require.Contains(t, inst.mustRun(t, "kb", "add", keepers), "(you had it already)")
	_, errOut, err = inst.command(t, nil, "kb", "add", "nowhere.md", tempFile(t, "blank.md", " \n"))
	require.ErrorContains(t, err, "failed")
	require.ErrorContains(t, err, "not stored: 1")
	require.Contains(t, errOut, "nowhere.md: no such file")
	_, errOut, err = inst.command(t, nil, "kb", "add", t.TempDir())
	require.Error(t, err)
	require.Contains(t, errOut, "a folder; nodest kb sync ")
	_, _, err = inst.command(t, nil, "kb", "add", tempFile(t, "a.zip", "PK"))
	require.Error(t, err)

	require.Regexp(t, `keepers\.md +ready +\d+ bytes +1`, inst.mustRun(t, "kb", "files", "Harbour"))
	require.Regexp(t, `blank\.md +failed`, inst.mustRun(t, "kb", "files", "--state", "failed"))
	_, _, err = inst.command(t, nil, "kb", "retry", "blank")
	require.ErrorContains(t, err, "failed: 1 of 1")
	require.Regexp(t, `1\. keepers\.md, Keepers \(\d\.\d\d\)\n    The light was automated in March 1987`, inst.mustRun(t, "kb", "search", "When", "was", "the", "light", "automated?", "--base", "Harbour"))
	require.Regexp(t, `^The light was automated in March 1987\.?\[\^1\]\.?\n\n\[\^1\] keepers\.md\n`, inst.mustRun(t, "kb", "ask", "When was the light automated?"))
	require.Contains(t, inst.mustRun(t, "kb", "reindex", "Harbour"), "1 of 1 chunks have a vector")

	inst.mustRun(t, "kb", "create", "With lines", "--context-lines")
	require.Regexp(t, `nodest kb reindex [0-9a-f-]{36} --start\n`, inst.mustRun(t, "kb", "show", "With lines"))
	inst.mustRun(t, "kb", "bind", "Harbour", "Mira")
	inst.mustRun(t, "kb", "bind", "keepers.md", "Mira", "--file")
	inst.mustRun(t, "kb", "unbind", "keepers.md", "Mira", "--file")
	inst.mustRun(t, "kb", "unbind", "Harbour", "Mira")
	_, _, err = inst.command(t, nil, "kb", "grant", "Harbour", "nobody")
	require.ErrorContains(t, err, `no user "nobody"; run nodest user list to see all`)
	_, _, err = inst.command(t, nil, "kb", "revoke", "Harbour", "nobody")
	require.ErrorContains(t, err, `Harbour is not shared with "nobody"`)
	require.Regexp(t, `Harbour \(owner\)\n    The lighthouse\.\n    chunks of 1000 characters`, inst.mustRun(t, "kb", "show", "Harbour"))

	more := tempFile(t, "more.md", "# More\n\nThe tower has 214 steps.\n")
	inst.mustRun(t, "kb", "add", more, "--base", "Harbour")
	_, _, err = inst.command(t, nil, "kb", "remove", "more", "--base", "Harbour")
	require.Error(t, err, "removing requires the whole name")
	inst.mustRun(t, "kb", "remove", "more.md", "--base", "Harbour")
	require.NotContains(t, inst.mustRun(t, "kb", "files", "Harbour"), "more.md")
	_, _, err = inst.command(t, nil, "kb", "remove", "more.md")
	require.ErrorContains(t, err, "add --yes to confirm")
	inst.mustRun(t, "kb", "remove", "more.md", "--yes")
	require.NotContains(t, inst.mustRun(t, "kb", "files"), "more.md")

	_, _, err = inst.command(t, nil, "kb", "delete", "Harb", "--yes")
	require.Error(t, err, "deleting requires the whole name")
	_, _, err = inst.command(t, nil, "kb", "delete", "Harbour")
	require.ErrorContains(t, err, "add --yes to confirm")
	inst.mustRun(t, "kb", "delete", "Harbour", "--files", "--yes")
	require.NotContains(t, inst.mustRun(t, "kb", "files"), "keepers")
}

// TestRetryWithoutFailedFiles says that there is nothing to do.
func TestRetryWithoutFailedFiles(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	_, _, err := inst.command(t, nil, "kb", "retry", "one.md")
	require.ErrorContains(t, err, "none of your files has failed")
	_, _, err = inst.command(t, nil, "kb", "add", tempFile(t, "blank.txt", " "))
	require.Error(t, err)
	_, errOut, err := inst.command(t, nil, "kb", "retry", "--all")
	require.NoError(t, err)
	require.Contains(t, errOut, "nothing to retry; failed for good: 1 ")
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
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	sync := func(more ...string) (out, errOut string) {
		t.Helper()
		out, errOut, err := inst.command(t, nil, append([]string{"kb", "sync", dir, "--base", "Notes"}, more...)...)
		require.NoError(t, err, errOut)
		return out, errOut
	}
	write("one.md", "The first note.")
	write("lore/two.md", "The second note.")
	write("lore/copy.md", "The second note.")
	write(".hidden/three.md", "A hidden note.")
	write(".secret", "Another hidden note.")
	out, _ := sync()
	require.Contains(t, out, "lore/copy.md  ready")
	require.Contains(t, out, "2 new, 0 changed, 0 gone, 1 unchanged\n", "of the same content there is one file")
	require.NotContains(t, out, "lore/two.md")
	out, _ = sync()
	require.Equal(t, "0 new, 0 changed, 0 gone, 3 unchanged\n", out)

	write("one.md", "The first note, again.")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "lore")))
	out, errOut := sync()
	require.Contains(t, out, "0 new, 1 changed, 1 gone, 0 unchanged\n")
	require.Contains(t, errOut, "gone: lore/copy.md; --delete removes it\n")
	require.Contains(t, inst.mustRun(t, "kb", "files", "Notes"), "lore/copy.md")
	out, _ = sync("--delete", "--json")
	var sum map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &sum))
	require.Equal(t, map[string]any{"new": 0.0, "changed": 0.0, "gone": 1.0, "removed": true, "unchanged": 1.0, "failed": 0.0}, sum)
	require.NotContains(t, inst.mustRun(t, "kb", "files", "Notes"), "lore")
	require.NotContains(t, inst.mustRun(t, "kb", "files"), "lore", "a file that nothing else has is deleted")

	// Of what is gone, only the files of the command itself leave; those in use elsewhere stay.
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
	require.Equal(t, "0 new, 0 changed, 0 gone, 4 unchanged\n", out)
	write("a\u200bb  c.md", "Its name is cleaned, and its content is new.")
	require.NoError(t, os.Remove(filepath.Join(dir, "shared.md")))
	require.NoError(t, os.Remove(filepath.Join(dir, "bound.md")))
	out, _ = sync("--delete")
	require.Contains(t, out, "0 new, 1 changed, 2 removed, 1 unchanged\n")
	left := inst.mustRun(t, "kb", "files", "Notes")
	require.Contains(t, left, "by-hand.md")
	require.NotContains(t, left, "shared.md")
	require.NotContains(t, left, "bound.md")
	require.Contains(t, inst.mustRun(t, "kb", "files", "Other"), "shared.md")
	require.Contains(t, inst.mustRun(t, "kb", "files"), "bound.md")

	// It is the place in a knowledge base that belongs to a folder, not the file.
	inst.mustRun(t, "kb", "add", filepath.Join(dir, "one.md"), "--base", "Other")
	other := t.TempDir()
	elsewhere := func(more ...string) string {
		t.Helper()
		out, errOut, err := inst.command(t, nil, append([]string{"kb", "sync", other, "--base", "Other"}, more...)...)
		require.NoError(t, err, errOut)
		return out
	}
	require.Contains(t, elsewhere("--delete"), "0 new, 0 changed, 0 removed, 0 unchanged\n", "both files were added by hand")
	require.NoError(t, os.WriteFile(filepath.Join(other, "hand.md"), []byte("Added by hand."), 0o600))
	require.Contains(t, elsewhere(), "1 new, 0 changed, 0 gone, 0 unchanged\n")
	require.NoError(t, os.Remove(filepath.Join(other, "hand.md")))
	require.Contains(t, elsewhere("--delete"), "0 new, 0 changed, 1 removed, 0 unchanged\n")
	require.Contains(t, inst.mustRun(t, "kb", "files", "Notes"), "by-hand.md", "there it was added by hand")
	inst.mustRun(t, "kb", "remove", "one.md", "--base", "Other")

	// Contents that change their names, or that another knowledge base has.
	write("one.md", "In two knowledge bases.")
	out, _ = sync()
	require.Contains(t, out, "0 new, 1 changed, 0 gone, 1 unchanged\n")
	write("two.md", "Another note.")
	sync()
	write("one.md", "Another note.")
	write("two.md", "In two knowledge bases.")
	out, _ = sync()
	require.Equal(t, "0 new, 0 changed, 0 gone, 3 unchanged\n", out)
	write("one.md", "In two knowledge bases.")
	out, _ = sync()
	require.Equal(t, "0 new, 1 changed, 0 gone, 2 unchanged\n", out)
	require.NotContains(t, inst.mustRun(t, "kb", "files", "Notes"), "two.md", "the other content has left")
	out, _ = sync()
	require.Equal(t, "0 new, 0 changed, 0 gone, 3 unchanged\n", out)

	_, _, err := inst.command(t, nil, "kb", "sync", filepath.Join(dir, "one.md"), "--base", "Notes")
	require.ErrorContains(t, err, "is not a folder")
	_, _, err = inst.command(t, nil, "kb", "sync", filepath.Join(dir, "missing"), "--base", "Notes")
	require.Equal(t, 2, exitCode(err, io.Discard))
	require.EqualError(t, err, filepath.Join(dir, "missing")+": no such file or directory")
	for _, args := range [][]string{{"sync", dir}, {"reindex", "Notes", "--start", "--cancel"}} {
		_, _, err = inst.command(t, nil, append([]string{"kb"}, args...)...)
		require.Equal(t, 2, exitCode(err, io.Discard), args)
	}
	_, _, err = inst.command(t, nil, "kb", "sync", dir, "--base", "Nowhere")
	require.ErrorContains(t, err, `no knowledge base "Nowhere"`)
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
		require.Equal(t, want, warning(code))
	}
	f := knowledgeFile{State: "ready", Warnings: []string{"invalid_csv", "lexical_only"}}
	require.Equal(t, "not valid CSV, so read as plain text; found by words only, without an embedding provider", f.note())
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
		require.Equal(t, c[2], withoutHeadings(c[0], c[1]))
	}
}
