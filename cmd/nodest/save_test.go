package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// conversationOf is the id in the first line of nodest chat.
func conversationIn(t *testing.T, out string) string {
	t.Helper()
	found := regexp.MustCompile(`\(conversation ([0-9a-f-]+);`).FindStringSubmatch(out)
	require.NotNil(t, found, out)
	return found[1]
}

// TestSavePointsFromTheCommandLine makes a save point, goes on, looks at it, goes
// back and takes it along as a file.
func TestSavePointsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	_, _, err := inst.command(t, nil, "save", "list")
	require.ErrorContains(t, err, "no chat yet")
	inst.ok(t, "import", inFile(t, "mira.json", miraCard))
	out, _, err := inst.command(t, strings.NewReader("Is the lamp lit?\n/quit\n"), "chat", "Mira")
	require.NoError(t, err)
	conversation := conversationIn(t, out)

	var save chatSave
	require.NoError(t, json.Unmarshal([]byte(inst.ok(t, "save", "create", "-d", "the lamp", "--json")), &save))
	require.Equal(t, 3, save.MessageCount)
	_, _, err = inst.command(t, strings.NewReader("/edit Is the lamp out?\nAnd the boat?\n/quit\n"), "chat", "Mira")
	require.NoError(t, err)
	require.Contains(t, inst.ok(t, "save", "list", conversation), "the lamp")
	shown := inst.ok(t, "save", "show", save.ID)
	require.Contains(t, shown, "Is the lamp lit?")
	require.NotContains(t, shown, "And the boat?")

	require.Contains(t, inst.ok(t, "save", "restore", save.ID), "nodest save restore ")
	out, _, err = inst.command(t, strings.NewReader("/branches\n/quit\n"), "chat", "--conversation", conversation)
	require.NoError(t, err)
	require.Contains(t, out, "Is the lamp lit?")
	require.NotContains(t, out, "Is the lamp out?")
	require.Contains(t, out, "* ")
	require.Regexp(t, `5 messages, to #5`, out, "what came after it is a branch")

	file := filepath.Join(t.TempDir(), "lamp.json")
	require.Empty(t, inst.ok(t, "save", "export", save.ID, "-o", file))
	require.Contains(t, inst.ok(t, "save", "import", file, "--conversation", conversation), "the lamp")
	inst.ok(t, "save", "delete", save.ID)
	_, _, err = inst.command(t, nil, "save", "show", save.ID)
	require.ErrorContains(t, err, "not_found")
}

// TestChatsTravelAsFiles exports a chat with its branches, and the shown branch
// alone, and reads both again.
func TestChatsTravelAsFiles(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.ok(t, "import", inFile(t, "mira.json", miraCard))
	out, _, err := inst.command(t, strings.NewReader("Is the lamp lit?\n/branch Is the boat dry?\n/quit\n"), "chat", "Mira")
	require.NoError(t, err)
	conversation := conversationIn(t, out)
	for format, branches := range map[string]int{"json": 2, "jsonl": 1} {
		file := filepath.Join(t.TempDir(), "chat."+format)
		require.Empty(t, inst.ok(t, "export", conversation, "--chat", "--format", format, "-o", file))
		imported := inst.ok(t, "import", "--character", "mira", file)
		id, _, _ := strings.Cut(imported, " ")
		out, _, err := inst.command(t, strings.NewReader("/branches\n/quit\n"), "chat", "--conversation", id)
		require.NoError(t, err)
		require.Equal(t, branches, strings.Count(out, " messages, to #"), "%s: %s", format, out)
		require.Contains(t, out, "Is the boat dry?")
	}
}

// TestSlashCommandsReachEveryMessage works on messages by their numbers, not only
// on the last one.
func TestSlashCommandsReachEveryMessage(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.ok(t, "import", inFile(t, "mira.json", miraCard))
	lines := []string{
		"One.", "Two.", // #1 is the greeting, #2 to #5 these and their answers
		"/edit #2 Uno.", "/history",
		"/regenerate #3 shorter", "/branches", // #3 was answered on: a branch of its own
		"/head 2", "/swipe #5 new", "/swipe #5 prev",
		"/delete #4 after", "/undo", "/search uno", "/fork #3 A fork", "/reset",
		"/save once more", "/saves", "/restore 1",
		"/continue", "/impersonate", "/stop", "/nonsense", "/edit #99 x", "/quit",
	}
	out, _, err := inst.command(t, strings.NewReader(strings.Join(lines, "\n")+"\n"), "chat", "Mira")
	require.NoError(t, err)
	require.Contains(t, out, "#2 you: Uno.")
	require.Contains(t, out, "* 1  3 messages, to #6")
	require.Contains(t, out, "  2  5 messages, to #5")
	require.Contains(t, out, "#5 Mira [1/2]:")
	require.Contains(t, out, "  #2 User: Uno.")
	require.Contains(t, out, "now in conversation ")
	require.Contains(t, out, "saved, 1 message\n")
	require.Contains(t, out, "once more")
	require.Contains(t, out, "! no reply is being written")
	require.Contains(t, out, "! unknown command /nonsense")
	require.Contains(t, out, "! no such message")
	require.Equal(t, 3, strings.Count(out, "! "), "the others work: %s", out)
	require.Regexp(t, `Mira: Hello\.\n\n> \nMira: .*\w.*\n\n> \nsuggested message: .+\n\n> ! no reply`, out, "the greeting, more of it, and a line for the user")
}
