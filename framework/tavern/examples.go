package tavern

import (
	"regexp"
	"strings"
)

// The names of the messages of example dialogues.
const (
	exampleUser      = "example_user"
	exampleAssistant = "example_assistant"
)

const startMark = "<START>"

var anyStartMark = regexp.MustCompile(`(?i)<START>`)

// exampleBlocks cuts the example dialogues of a card into blocks. Each begins with a line
// <START>.
func exampleBlocks(text string) []string {
	if text == "" || text == startMark {
		return nil
	}
	if !strings.HasPrefix(text, startMark) {
		text = startMark + "\n" + strings.TrimSpace(text)
	}
	var blocks []string
	for _, block := range anyStartMark.Split(text, -1)[1:] {
		blocks = append(blocks, startMark+"\n"+strings.TrimSpace(block)+"\n")
	}
	return blocks
}

// line is a message of an example dialogue.
type line struct {
	name string // exampleUser or exampleAssistant
	text string
}

// exampleLines reads the messages of a block. A line that begins with the name of the user or the
// character and a colon changes the speaker. Text before the first one belongs to its message; a
// block without any has no messages.
func exampleLines(block, user, char string) []line {
	var lines []line
	var said []string
	speaker := ""
	add := func() {
		name := char
		if speaker == exampleUser {
			name = user
		}
		text := strings.Replace(strings.Join(said, "\n"), name+":", "", 1)
		lines = append(lines, line{speaker, strings.TrimSpace(text)})
		said = nil
	}
	turn := func(next string) {
		if speaker != "" && speaker != next {
			add()
		}
		speaker = next
	}
	_, rest, _ := strings.Cut(strings.ReplaceAll(block, "\r", ""), "\n")
	for s := range strings.SplitSeq(rest, "\n") {
		if strings.HasPrefix(s, user+":") {
			turn(exampleUser)
		} else if strings.HasPrefix(s, char+":") {
			turn(exampleAssistant)
		}
		said = append(said, s)
	}
	if speaker != "" {
		add()
	}
	return lines
}
