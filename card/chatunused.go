package card

// chatNotes are about what the messages of a log have and a conversation does not use.
type chatNotes struct {
	lines, extras *members
	names         []string // those who reply
	seen          map[string]bool
	all, undated  int
}

func newChatNotes() *chatNotes {
	return &chatNotes{newMembers("message"), newMembers("messageExtra"), nil, map[string]bool{}, 0, 0}
}

func (n *chatNotes) add(m *ChatMessage) {
	f := fieldsOf(m.Raw)
	n.lines.add("", labelled{fields: f})
	n.extras.add("", labelled{fields: fieldsOf(f["extra"])})
	if m.Role == "assistant" && !m.Hidden && m.Name != "" && !n.seen[m.Name] {
		n.seen[m.Name] = true
		n.names = append(n.names, clip(m.Name, maxLabel))
	}
	n.all++
	if m.SentAt.IsZero() {
		n.undated++
	}
}

// warnChat is about what a chat log has and a conversation does not use.
func (im *importer) warnChat(c *Chat, n *chatNotes) {
	metadata := fieldsOf(c.Metadata)
	im.unused("chat_metadata.", "metadata", "", labelled{"", metadata})
	im.macros([]textAt{{"chat_metadata.note_prompt", metadata.text("note_prompt", "")}})
	im.warnMembers("", "messages", n.lines)
	im.warnMembers("extra.", "messages", n.extras)
	if len(n.names) > 1 {
		im.warn("name", "group_chat", "a chat with %d characters becomes one with a single character, who gets all replies: %s", len(n.names), some(n.names, maxNames))
	}
	im.warnUndated(c, n.undated, n.all)
}
