package framework

import "nodest/llm"

// Said returns what a prompt has of a message of the chat that is sent word for word: the message,
// and its entry without Tokens and Message.
func (m *Message) Said() (llm.Message, Entry) {
	e := Entry{Source: SourceHistory, ID: m.ID, Name: m.Name, Why: WhyChat, Role: roleOf(m.Role)}
	if m.Role == RoleSummary {
		e.Source = SourceSummary
	}
	if m.Greeting {
		e.Why = WhyGreeting
	}
	return llm.Message{Role: e.Role, Name: m.Name, Text: m.Text}, e
}

// MessageTokens counts the tokens of a message with the tokenizer of that name (Prompt.Tokenizer).
func MessageTokens(tokenizerName, text string) int {
	return CountTokens(tokenizerName, text) + MessageOverhead
}
