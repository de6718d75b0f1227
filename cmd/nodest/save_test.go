package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// conversationID returns the id in the first line of nodest chat.
func conversationID(t *testing.T, out string) string {
	t.Helper()
	found := regexp.MustCompile(`\(conversation ([0-9a-f-]+);`).FindStringSubmatch(out)
	require.NotNil(t, found, out)
	return found[1]
}

// TestSavePointsFromTheCommandLine creates, shows, restores, exports and imports a
// save point.
func TestSavePointsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	_, _, err := inst.command(t, nil, "save", "list")
	require.ErrorContains(t, err, "no chat yet")
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	out, _, err := inst.command(t, strings.NewReader("Is the lamp lit?\n/quit\n"), "chat", "Mira")
	require.NoError(t, err)
	conversation := conversationID(t, out)

	var save chatSave
	require.NoError(t, json.Unmarshal([]byte(inst.mustRun(t, "save", "create", "-d", "the lamp", "--json")), &save))
	require.Equal(t, 3, save.MessageCount)
	_, _, err = inst.command(t, strings.NewReader("/edit Is the lamp out?\nAnd the boat?\n/quit\n"), "chat", "Mira")
	require.NoError(t, err)
	require.Contains(t, inst.mustRun(t, "save", "list", conversation), "the lamp")
	shown := inst.mustRun(t, "save", "show", save.ID)
	require.Contains(t, shown, "Is the lamp lit?")
	require.NotContains(t, shown, "And the boat?")

	require.Contains(t, inst.mustRun(t, "save", "restore", save.ID), "nodest save restore ")
	out, _, err = inst.command(t, strings.NewReader("/branches\n/quit\n"), "chat", "--conversation", conversation)
	require.NoError(t, err)
	require.Contains(t, out, "Is the lamp lit?")
	require.NotContains(t, out, "Is the lamp out?")
	require.Contains(t, out, "* ")
	require.Regexp(t, `5 messages, to #5`, out, "the later messages are a branch")

	file := filepath.Join(t.TempDir(), "lamp.json")
	require.Empty(t, inst.mustRun(t, "save", "export", save.ID, "-o", file))
	require.Contains(t, inst.mustRun(t, "save", "import", file, "--conversation", conversation), "the lamp")
	inst.mustRun(t, "save", "delete", save.ID)
	_, _, err = inst.command(t, nil, "save", "show", save.ID)
	require.ErrorContains(t, err, "not_found")
}

// TestChatExportAndImport exports a chat with all branches and with the shown branch
// alone, and imports both.
func TestChatExportAndImport(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	out, _, err := inst.command(t, strings.NewReader("Is the lamp lit?\n/branch Is the boat dry?\n/quit\n"), "chat", "Mira")
	require.NoError(t, err)
	conversation := conversationID(t, out)
	for format, branches := range map[string]int{"json": 2, "jsonl": 1} {
		file := filepath.Join(t.TempDir(), "chat."+format)
		require.Empty(t, inst.mustRun(t, "export", conversation, "--chat", "--format", format, "-o", file))
		imported := inst.mustRun(t, "import", "--character", "mira", file)
		id, _, _ := strings.Cut(imported, " ")
		out, _, err := inst.command(t, strings.NewReader("/branches\n/quit\n"), "chat", "--conversation", id)
		require.NoError(t, err)
		require.Equal(t, branches, strings.Count(out, " messages, to #"), "%s: %s", format, out)
		require.Contains(t, out, "Is the boat dry?")
	}
}

// TestSlashCommandsReachEveryMessage uses commands on messages by number, not only on the
// last one.
func TestSlashCommandsReachEveryMessage(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	lines := []string{
		"One.", "Two.", // #1 is the greeting, #2 to #5 are these and the replies
		"/edit #2 Uno.", "/history",
		"/regenerate #3 shorter", "/branches", // #3 has children, so this starts a branch
		"/head 2", "/swipe #5 new", "/swipe #5 prev",
		"/delete #4 after", "/undo", "/search uno", "/fork #3 A fork", "/reset",
		"/save once more", "/saves", "/restore 1",
		"/continue", "/impersonate", "/stop", "/nonsense", "/edit #99 x", "/prompt Drei?", "/quit",
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
	require.Contains(t, out, "[user]\nDrei?\n")
	require.Equal(t, 3, strings.Count(out, "! "), "the others work: %s", out)
	require.Regexp(t, `Mira: Hello\.\n\n> \nMira: .*\w.*\n\n> \nsuggested message: .+\n\n> ! no reply`, out, "the greeting, more of it, and a line for the user")
}
