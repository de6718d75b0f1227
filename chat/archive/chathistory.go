package archive

import (
	"encoding/json"
	"iter"
	"strings"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/jsonlimit"
	"nodest/internal/op"
)

// Names of a history in the documents of the NodeST app.
const (
	chatHistoryName       = "Chat History"
	chatHistoryRole       = "system"
	chatHistoryIdentifier = "chatHistory"
)

// chatHistory is the app's ChatHistoryEntity: the messages without insertions of a
// prompt.
type chatHistory struct {
	Name       string  `json:"name"`
	Role       string  `json:"role"`
	Identifier string  `json:"identifier"`
	Parts      []Entry `json:"parts"`
}

// Entry is one message of it: the app's ChatMessage.
type Entry struct {
	ID        string     `json:"id,omitempty"` // our message
	Role      string     `json:"role"`         // user, model or system
	Parts     []chatPart `json:"parts"`
	FirstMes  bool       `json:"is_first_mes,omitempty"`
	Timestamp int64      `json:"timestamp,omitempty"` // ms since 1970
}

type chatPart struct {
	Text string `json:"text"`
}

// History is a branch, oldest first, as the app's ChatHistoryEntity. Like a prompt it has
// no hidden messages, empty messages and failed exchanges, and a message whose reply was
// rewritten contains the instruction of that rewrite.
func History(messages []*chat.Message) json.RawMessage {
	h := chatHistory{
		Name: chatHistoryName, Role: chatHistoryRole, Identifier: chatHistoryIdentifier, Parts: []Entry{},
	}
	_ = eachEntry(branchOf(messages), func(e Entry) error { // neither has errors
		h.Parts = append(h.Parts, e)
		return nil
	})
	return op.MustJSON(h)
}

// branchOf is a branch that is in memory, as one that is read as it goes.
func branchOf(messages []*chat.Message) iter.Seq2[*chat.Message, error] {
	return func(yield func(*chat.Message, error) bool) {
		for _, m := range messages {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// eachEntry passes the entries of a branch to f. It reads the branch twice at the same time: the
// rewrites of a reply are known before the message that it answers is passed on.
func eachEntry(branch iter.Seq2[*chat.Message, error], f func(Entry) error) error {
	sent := chat.EachInPrompt(branch)
	next, stop := iter.Pull2(wishesOf(sent))
	defer stop()
	for m, err := range sent {
		if err != nil {
			return err
		}
		var wishes []string
		if m.Role == chat.RoleUser {
			if wishes, err, _ = next(); err != nil {
				return err
			}
		}
		if err := f(entryOf(m, wishes)); err != nil {
			return err
		}
	}
	return nil
}

// wishesOf returns, for each message of the user, the rewrite instructions that a history puts into
// it. "" stands for a reply without one.
func wishesOf(sent iter.Seq2[*chat.Message, error]) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var wishes []string
		asked, just := false, false // the user has spoken, with the message before
		for m, err := range sent {
			if err != nil {
				yield(nil, err)
				return
			}
			if m.Role == chat.RoleUser {
				if asked && !yield(wishes, nil) {
					return
				}
				wishes, asked, just = nil, true, true
				continue
			}
			if written := m.Chosen(); m.Role == chat.RoleAssistant && asked && (written.Wish != "" || written.GenerationID != "" && just) {
				wishes = append(wishes, written.Wish)
			}
			just = false
		}
		if asked {
			yield(wishes, nil)
		}
	}
}

func entryOf(m *chat.Message, wishes []string) Entry {
	text := m.Text()
	for _, wish := range wishes {
		text = framework.WithRewrite(text, wish, framework.Chinese) // as the app writes it
	}
	return Entry{
		ID: m.ID, Role: chatRole(m), Parts: []chatPart{{text}}, FirstMes: m.Greeting, Timestamp: m.CreatedAt.UnixMilli(),
	}
}

func chatRole(m *chat.Message) string {
	switch m.Role {
	case chat.RoleUser:
		return "user"
	case chat.RoleAssistant:
		return "model"
	}
	return "system"
}

// appHistory is a ChatHistoryEntity as an app sends it. Its
// name and unlisted members are ignored.
type appHistory struct {
	Parts []struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
		Content     any  `json:"content"` // in place of parts
		FirstMes    bool `json:"is_first_mes"`
		Inserted    bool `json:"is_d_entry"`
		Note        bool `json:"is_author_note"`
		Placeholder bool `json:"is_chat_history_placeholder"`
		Timestamp   any  `json:"timestamp"`
	} `json:"parts"`
}

// historyLimits bounds a history as it was sent: the parts are the messages with the texts
// of each.
var historyLimits = jsonlimit.Limits{
	Depth: op.MaxDepth, Deep: fault.Invalid, Values: maxSavedValues, Lists: map[string]int{"parts": 4 * maxSaved},
}

// ReadHistory reads a ChatHistoryEntity without insertions of a prompt and empty
// entries.
//
// Errors: Invalid; TooLarge for more messages than a chat log may have.
func ReadHistory(field string, raw json.RawMessage) ([]Entry, error) {
	if err := jsonlimit.Check(raw, historyLimits); err != nil {
		return nil, op.InField(field, err)
	}
	var h appHistory
	if err := op.DecodeLenient(field, raw, &h); err != nil {
		return nil, err
	}
	if n := len(h.Parts); n > maxSaved {
		return nil, fault.New(fault.TooLarge, "%s: %d messages, limit %d", field, n, maxSaved).With("limit", maxSaved)
	}
	entries := make([]Entry, 0, len(h.Parts))
	for _, p := range h.Parts {
		var texts []string
		for _, part := range p.Parts {
			if part.Text != "" {
				texts = append(texts, part.Text)
			}
		}
		if content, ok := p.Content.(string); ok && len(p.Parts) == 0 {
			texts = []string{content}
		}
		text := chat.CleanText(strings.Join(texts, "\n"))
		if p.Inserted || p.Note || p.Placeholder || strings.TrimSpace(text) == "" {
			continue
		}
		at, _ := p.Timestamp.(float64)
		entries = append(entries, Entry{
			Role: p.Role, Parts: []chatPart{{text}}, FirstMes: p.FirstMes, Timestamp: int64(min(max(at, 0), 1<<52)),
		})
	}
	return entries, nil
}

// Messages are entries as new messages of a conversation between character and user.
// One without a time, or with a time in the future, gets now.
func Messages(entries []Entry, character, user string, now time.Time) []*chat.Message {
	messages := make([]*chat.Message, len(entries))
	for i, p := range entries {
		m := &chat.Message{ID: op.NewID(), Role: chat.RoleSystem, Rev: 1, Status: chat.StatusComplete, Dates: chat.Dates{CreatedAt: now}}
		switch p.Role {
		case "user":
			m.Role, m.Name = chat.RoleUser, user
		case "model", "assistant":
			m.Role, m.Name, m.Greeting = chat.RoleAssistant, character, p.FirstMes
		}
		if at := time.UnixMilli(p.Timestamp).UTC(); p.Timestamp > 0 && at.Before(now) {
			m.CreatedAt = at
		}
		m.Swipes = []chat.Swipe{chat.NewSwipe(p.Parts[0].Text, m.CreatedAt)}
		messages[i] = m
	}
	return messages
}
