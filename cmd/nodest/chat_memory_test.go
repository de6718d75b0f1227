package main

import (
	"regexp"
	"strings"
	"testing"
)

// chat runs the command chat with lines as input and returns what it printed.
func (i *installation) chat(t *testing.T, args []string, lines ...string) string {
	t.Helper()
	out, errOut, err := i.command(t, strings.NewReader(strings.Join(append(lines, "/quit", ""), "\n")), append([]string{"chat"}, args...)...)
	if err != nil {
		t.Fatalf("%s: %v", errOut, err)
	}
	return out
}

// TestChatMemoryCommands: /remember, /memory, /why and /forget add a memory, list and
// find it, show why it was recalled in another chat, and delete it.
func TestChatMemoryCommands(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))

	out := inst.chat(t, []string{"Mira", "--new"}, "/memory", "/remember Ana is allergic to peanuts.", "/memory", "My sister Ana keeps bees in Lisbon.", "/memory who keeps bees?")
	if !strings.Contains(out, "no facts yet") {
		t.Fatalf("out is %q, want it with %q", out, "no facts yet")
	}
	if !strings.Contains(out, "remembered: Ana is allergic to peanuts.") {
		t.Fatalf("out is %q, want it with %q", out, "remembered: Ana is allergic to peanuts.")
	}
	if !strings.Contains(out, "  Ana is allergic to peanuts. (other, by you)") {
		t.Fatalf("out is %q, want it with %q", out, "  Ana is allergic to peanuts. (other, by you)")
	}
	if !regexp.MustCompile(`(?m)  0\.\d\d  #2 .*: My sister Ana keeps bees in Lisbon\.$`).MatchString(out) {
		t.Fatalf("messages are found, too: got %q, want a match of %s", out, `(?m)  0\.\d\d  #2 .*: My sister Ana keeps bees in Lisbon\.$`)
	}

	out = inst.chat(t, []string{"Mira", "--new"}, "/why", "Can Ana eat peanuts?", "/why")
	if !strings.Contains(out, "no memories were used for #1") {
		t.Fatalf("out is %q, want it with %q", out, "no memories were used for #1")
	}
	if !regexp.MustCompile(`(?m)  \d\.\d\d  Ana is allergic to peanuts\. \(other, by you\)$`).MatchString(out) {
		t.Fatalf("got %q, want a match of %s", out, `(?m)  \d\.\d\d  Ana is allergic to peanuts\. \(other, by you\)$`)
	}

	out = inst.chat(t, []string{"Mira"}, "/forget peanuts", "/memory")
	if !strings.Contains(out, "/forget! peanuts permanently deletes") {
		t.Fatalf("out is %q, want it with %q", out, "/forget! peanuts permanently deletes")
	}
	if !strings.Contains(out, "allergic to peanuts. (other, by you)") {
		t.Fatalf("a preview removes nothing: out is %q, want it with %q", out, "allergic to peanuts. (other, by you)")
	}
	out = inst.chat(t, []string{"Mira"}, "/forget! peanuts", "/forget peanuts", "/memory")
	if !strings.Contains(out, "forgotten\n") {
		t.Fatalf("out is %q, want it with %q", out, "forgotten\n")
	}
	if !strings.Contains(out, "nothing found") {
		t.Fatalf("neither the fact nor the message: out is %q, want it with %q", out, "nothing found")
	}
	if strings.Contains(out, "(other, by you)") {
		t.Fatalf("out is %q, want it without %q", out, "(other, by you)")
	}
}

// TestChatSummaryCommands creates a summary of a chat that is long enough, shows it and
// deletes it.
func TestChatSummaryCommands(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	out := inst.chat(t, []string{"Mira", "--new"}, "/summary", "/summary now", "/summary tomorrow", "/remember", "/forget", "/forget!")
	if !strings.Contains(out, "! this chat has no summary; /summary now creates one") {
		t.Fatalf("out is %q, want it with %q", out, "! this chat has no summary; /summary now creates one")
	}
	if !strings.Contains(out, "! nothing to summarise") {
		t.Fatalf("of two messages there is nothing to summarise: out is %q, want it with %q", out, "! nothing to summarise")
	}
	if !strings.Contains(out, `must be now or delete, not "tomorrow"`) {
		t.Fatalf("out is %q, want it with %q", out, `must be now or delete, not "tomorrow"`)
	}
	if got := strings.Count(out, "/remember TEXT"); got != 1 {
		t.Fatalf("got %d, want %d", got, 1)
	}
	if got := strings.Count(out, "/forget WORDS"); got != 2 {
		t.Fatalf("got %d, want %d", got, 2)
	}

	said := []string{
		"I live in Lisbon with my sister Ana.", "We keep nine hives of bees on the roof.", "On 4 May we promised the baker forty jars.",
		"The queen of the third hive died in the storm.", "Tomorrow I will buy a new one in Sintra.",
	}
	out = inst.chat(t, []string{"Mira"}, append(said, "/summary now", "/summary", "/summary delete", "/summary")...)
	if got := strings.Count(out, "messages 4 to 8 (extractive):\n"); got != 2 {
		t.Fatalf("%s: got %d, want %d", out, got, 2)
	}
	if !strings.Contains(out, "summary deleted; replies use the whole chat again") {
		t.Fatalf("out is %q, want it with %q", out, "summary deleted; replies use the whole chat again")
	}
	if !strings.Contains(out, "this chat has no summary") {
		t.Fatalf("out is %q, want it with %q", out, "this chat has no summary")
	}
}
