package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// conversationID returns the id in the first line of nodest chat.
func conversationID(t *testing.T, out string) string {
	t.Helper()
	found := regexp.MustCompile(`\(conversation ([0-9a-f-]+);`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("%s: found is nil, want a value", out)
	}
	return found[1]
}

// TestSavePointsFromTheCommandLine creates, shows, restores, exports and imports a
// save point.
func TestSavePointsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	_, _, err := inst.command(t, nil, "save", "list")
	if err == nil || !strings.Contains(err.Error(), "no chat yet") {
		t.Fatalf("got error %v, want one with %q", err, "no chat yet")
	}
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	out, _, err := inst.command(t, strings.NewReader("Is the lamp lit?\n/quit\n"), "chat", "Mira")
	if err != nil {
		t.Fatal(err)
	}
	conversation := conversationID(t, out)

	var save chatSave
	if err := json.Unmarshal([]byte(inst.mustRun(t, "save", "create", "-d", "the lamp", "--json")), &save); err != nil {
		t.Fatal(err)
	}
	if save.MessageCount != 3 {
		t.Fatalf("save.MessageCount is %d, want %d", save.MessageCount, 3)
	}
	_, _, err = inst.command(t, strings.NewReader("/edit Is the lamp out?\nAnd the boat?\n/quit\n"), "chat", "Mira")
	if err != nil {
		t.Fatal(err)
	}
	if got := inst.mustRun(t, "save", "list", conversation); !strings.Contains(got, "the lamp") {
		t.Fatalf("got %q, want it with %q", got, "the lamp")
	}
	shown := inst.mustRun(t, "save", "show", save.ID)
	if !strings.Contains(shown, "Is the lamp lit?") {
		t.Fatalf("shown is %q, want it with %q", shown, "Is the lamp lit?")
	}
	if strings.Contains(shown, "And the boat?") {
		t.Fatalf("shown is %q, want it without %q", shown, "And the boat?")
	}

	if got := inst.mustRun(t, "save", "restore", save.ID); !strings.Contains(got, "nodest save restore ") {
		t.Fatalf("got %q, want it with %q", got, "nodest save restore ")
	}
	out, _, err = inst.command(t, strings.NewReader("/branches\n/quit\n"), "chat", "--conversation", conversation)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "Is the lamp lit?") {
		t.Fatalf("out is %q, want it with %q", out, "Is the lamp lit?")
	}
	if strings.Contains(out, "Is the lamp out?") {
		t.Fatalf("out is %q, want it without %q", out, "Is the lamp out?")
	}
	if !strings.Contains(out, "* ") {
		t.Fatalf("out is %q, want it with %q", out, "* ")
	}
	if !regexp.MustCompile(`5 messages, to #5`).MatchString(out) {
		t.Fatalf("the later messages are a branch: got %q, want a match of %s", out, `5 messages, to #5`)
	}

	file := filepath.Join(t.TempDir(), "lamp.json")
	if got := inst.mustRun(t, "save", "export", save.ID, "-o", file); got != "" {
		t.Fatalf("got %q, want none", got)
	}
	if got := inst.mustRun(t, "save", "import", file, "--conversation", conversation); !strings.Contains(got, "the lamp") {
		t.Fatalf("got %q, want it with %q", got, "the lamp")
	}
	inst.mustRun(t, "save", "delete", save.ID)
	_, _, err = inst.command(t, nil, "save", "show", save.ID)
	if err == nil || !strings.Contains(err.Error(), "not_found") {
		t.Fatalf("got error %v, want one with %q", err, "not_found")
	}
}

// TestChatExportAndImport exports a chat with all branches and with the shown branch
// alone, and imports both.
func TestChatExportAndImport(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	out, _, err := inst.command(t, strings.NewReader("Is the lamp lit?\n/branch Is the boat dry?\n/quit\n"), "chat", "Mira")
	if err != nil {
		t.Fatal(err)
	}
	conversation := conversationID(t, out)
	for format, branches := range map[string]int{"json": 2, "jsonl": 1} {
		file := filepath.Join(t.TempDir(), "chat."+format)
		if got := inst.mustRun(t, "export", conversation, "--chat", "--format", format, "-o", file); got != "" {
			t.Fatalf("got %q, want none", got)
		}
		imported := inst.mustRun(t, "import", "--character", "mira", file)
		id, _, _ := strings.Cut(imported, " ")
		out, _, err := inst.command(t, strings.NewReader("/branches\n/quit\n"), "chat", "--conversation", id)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out, " messages, to #"); got != branches {
			t.Fatalf("%s: %s: got %d, want %d", format, out, got, branches)
		}
		if !strings.Contains(out, "Is the boat dry?") {
			t.Fatalf("out is %q, want it with %q", out, "Is the boat dry?")
		}
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
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "#2 you: Uno.") {
		t.Fatalf("out is %q, want it with %q", out, "#2 you: Uno.")
	}
	if !strings.Contains(out, "* 1  3 messages, to #6") {
		t.Fatalf("out is %q, want it with %q", out, "* 1  3 messages, to #6")
	}
	if !strings.Contains(out, "  2  5 messages, to #5") {
		t.Fatalf("out is %q, want it with %q", out, "  2  5 messages, to #5")
	}
	if !strings.Contains(out, "#5 Mira [1/2]:") {
		t.Fatalf("out is %q, want it with %q", out, "#5 Mira [1/2]:")
	}
	if !strings.Contains(out, "  #2 User: Uno.") {
		t.Fatalf("out is %q, want it with %q", out, "  #2 User: Uno.")
	}
	if !strings.Contains(out, "now in conversation ") {
		t.Fatalf("out is %q, want it with %q", out, "now in conversation ")
	}
	if !strings.Contains(out, "saved, 1 message\n") {
		t.Fatalf("out is %q, want it with %q", out, "saved, 1 message\n")
	}
	if !strings.Contains(out, "once more") {
		t.Fatalf("out is %q, want it with %q", out, "once more")
	}
	if !strings.Contains(out, "! no reply is being written") {
		t.Fatalf("out is %q, want it with %q", out, "! no reply is being written")
	}
	if !strings.Contains(out, "! unknown command /nonsense") {
		t.Fatalf("out is %q, want it with %q", out, "! unknown command /nonsense")
	}
	if !strings.Contains(out, "! no such message") {
		t.Fatalf("out is %q, want it with %q", out, "! no such message")
	}
	if !strings.Contains(out, "[user]\nDrei?\n") {
		t.Fatalf("out is %q, want it with %q", out, "[user]\nDrei?\n")
	}
	if got := strings.Count(out, "! "); got != 3 {
		t.Fatalf("the others work: %s: got %d, want %d", out, got, 3)
	}
	if !regexp.MustCompile(`Mira: Hello\.\n\n> \nMira: .*\w.*\n\n> \nsuggested message: .+\n\n> ! no reply`).MatchString(out) {
		t.Fatalf("the greeting, more of it, and a line for the user: got %q, want a match of %s", out, `Mira: Hello\.\n\n> \nMira: .*\w.*\n\n> \nsuggested message: .+\n\n> ! no reply`)
	}
}
