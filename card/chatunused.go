package card

// warnChat is about what a chat log has and a conversation does not use.
func (im *importer) warnChat(c *Chat) {
	metadata := fieldsOf(c.Metadata)
	im.unused("chat_metadata.", "metadata", "", labelled{"", metadata})
	im.macros([]textAt{{"chat_metadata.note_prompt", metadata.text("note_prompt", "")}})
	lines, extras := make([]labelled, len(c.Messages)), make([]labelled, len(c.Messages))
	var names []string
	seen := map[string]bool{}
	for i, m := range c.Messages {
		f := fieldsOf(m.Raw)
		lines[i].fields, extras[i].fields = f, fieldsOf(f["extra"])
		if m.Role == "assistant" && !m.Hidden && m.Name != "" && !seen[m.Name] {
			seen[m.Name] = true
			names = append(names, clip(m.Name, maxLabel))
		}
	}
	im.unused("", "message", "messages", lines...)
	im.unused("extra.", "messageExtra", "messages", extras...)
	if len(names) > 1 {
		im.warn("name", "group_chat", "a chat with %d characters becomes one with a single character, who gets all replies: %s", len(names), some(names, maxNames))
	}
	im.warnUndated(c)
}
