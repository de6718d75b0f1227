package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// chat runs the command chat with lines as input and returns what it printed.
func (i *installation) chat(t *testing.T, args []string, lines ...string) string {
	t.Helper()
	out, errOut, err := i.command(t, strings.NewReader(strings.Join(append(lines, "/quit", ""), "\n")), append([]string{"chat"}, args...)...)
	require.NoError(t, err, errOut)
	return out
}

// TestChatMemoryCommands: /remember, /memory, /why and /forget add a memory, list and
// find it, show why it was recalled in another chat, and delete it.
func TestChatMemoryCommands(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))

	out := inst.chat(t, []string{"Mira", "--new"}, "/memory", "/remember Ana is allergic to peanuts.", "/memory", "My sister Ana keeps bees in Lisbon.", "/memory who keeps bees?")
	require.Contains(t, out, "no facts yet")
	require.Contains(t, out, "remembered: Ana is allergic to peanuts.")
	require.Contains(t, out, "  Ana is allergic to peanuts. (other, by you)")
	require.Regexp(t, `(?m)  0\.\d\d  #2 .*: My sister Ana keeps bees in Lisbon\.$`, out, "messages are found, too")

	out = inst.chat(t, []string{"Mira", "--new"}, "/why", "Can Ana eat peanuts?", "/why")
	require.Contains(t, out, "no memories were used for #1")
	require.Regexp(t, `(?m)  \d\.\d\d  Ana is allergic to peanuts\. \(other, by you\)$`, out)

	out = inst.chat(t, []string{"Mira"}, "/forget peanuts", "/memory")
	require.Contains(t, out, "/forget! peanuts permanently deletes")
	require.Contains(t, out, "allergic to peanuts. (other, by you)", "a preview removes nothing")
	out = inst.chat(t, []string{"Mira"}, "/forget! peanuts", "/forget peanuts", "/memory")
	require.Contains(t, out, "forgotten\n")
	require.Contains(t, out, "nothing found", "neither the fact nor the message")
	require.NotContains(t, out, "(other, by you)")
}

// TestChatSummaryCommands creates a summary of a chat that is long enough, shows it and
// deletes it.
func TestChatSummaryCommands(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	out := inst.chat(t, []string{"Mira", "--new"}, "/summary", "/summary now", "/summary tomorrow", "/remember", "/forget", "/forget!")
	require.Contains(t, out, "! this chat has no summary; /summary now creates one")
	require.Contains(t, out, "! nothing to summarise", "of two messages there is nothing to summarise")
	require.Contains(t, out, `must be now or delete, not "tomorrow"`)
	require.Equal(t, 1, strings.Count(out, "/remember TEXT"))
	require.Equal(t, 2, strings.Count(out, "/forget WORDS"))

	said := []string{
		"I live in Lisbon with my sister Ana.", "We keep nine hives of bees on the roof.", "On 4 May we promised the baker forty jars.",
		"The queen of the third hive died in the storm.", "Tomorrow I will buy a new one in Sintra.",
	}
	out = inst.chat(t, []string{"Mira"}, append(said, "/summary now", "/summary", "/summary delete", "/summary")...)
	require.Equal(t, 2, strings.Count(out, "messages 4 to 8 (extractive):\n"), out)
	require.Contains(t, out, "summary deleted; replies use the whole chat again")
	require.Contains(t, out, "this chat has no summary")
}
