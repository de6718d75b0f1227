package tavern

import (
	"slices"
	"strings"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo"
	"nodest/llm"
)

// chatState is the chat as it is read for a build.
type chatState struct {
	length int
	base   int // index of the message that is answered; -1 = none
	texts  []string
	users  int // messages of the user

	moved    int // index of the message that is lengthened, which leaves its place; -1 = none
	kept     []saidPiece
	answered *piece
}

// saidPiece is a message of the chat at an index.
type saidPiece struct {
	at int
	*piece
}

func (b *builder) message(i int) *framework.Message {
	if i < len(b.in.History) {
		return &b.in.History[i]
	}
	return &b.in.User
}

func isSummary(m *framework.Message) bool { return m.Role == framework.RoleSummary }

func (b *builder) isUser(i int) bool {
	m := b.message(i)
	return i == len(b.in.History) || m.Role == string(llm.User)
}

// readChat finds the message that is answered, and runs the scripts for prompts over the chat.
func (b *builder) readChat() {
	c := &b.chat
	c.length, c.base, c.moved = len(b.in.History), -1, -1
	if b.in.User.Text != "" {
		c.length++
	}
	c.users = b.play.Before.Users
	behind := 1
	if b.task == Continue {
		behind = 2 // the message that is lengthened is not there yet
		if last := c.length - 1; last >= 0 && !isSummary(b.message(last)) && !b.isUser(last) {
			c.moved = last
		}
	}
	b.env.Chat = b.macroChat()
	b.scripts = b.in.Scripts.With(b.env)
	c.texts = make([]string, c.length)
	for i := range c.texts {
		m := b.message(i)
		c.texts[i] = m.Text
		if isSummary(m) {
			continue
		}
		role := m.Role
		if b.isUser(i) {
			role = string(llm.User)
			c.base = i
			c.users++
		}
		c.texts[i] = b.scripts.Request(role, m.Text, c.length-i-behind)
	}
}

// macroChat is the chat for macros.
func (b *builder) macroChat() macro.Chat {
	chat := macro.Chat{Messages: make([]macro.Message, 0, b.chat.length), Before: b.play.Before.Messages, Included: -1}
	for i := range b.chat.length {
		if m := b.message(i); !isSummary(m) {
			chat.Messages = append(chat.Messages, macro.Message{User: b.isUser(i), Text: m.Text, At: m.At})
		}
	}
	return chat
}

// speakerOf is the name of who speaks in a message.
func (b *builder) speakerOf(i int) string {
	m := b.message(i)
	switch {
	case m.Name != "":
		return m.Name
	case b.isUser(i):
		return b.in.Persona.Name
	case m.Role == framework.RoleNarrator || m.Role == string(llm.System):
		return ""
	}
	return b.c.name()
}

// before is what world info counts before the chat that it scans, in which a summary is no message.
func (b *builder) before() worldinfo.Before {
	before := b.play.Before
	for i := range b.chat.length {
		if b.in.Options.ScanSummary && isSummary(b.message(i)) {
			before.Messages--
		}
	}
	return before
}

// scanned is the chat for world info.
func (b *builder) scanned() []worldinfo.Message {
	list := make([]worldinfo.Message, 0, b.chat.length)
	for i, text := range b.chat.texts {
		if isSummary(b.message(i)) && !b.in.Options.ScanSummary {
			continue
		}
		list = append(list, worldinfo.Message{Name: b.speakerOf(i), Text: strings.TrimSpace(text), User: b.isUser(i)})
	}
	return list
}

// said makes the message of the chat at an index.
func (b *builder) said(i int) *piece {
	m := *b.message(i)
	if b.isUser(i) {
		m.Role = string(llm.User)
	}
	message, entry := m.Said()
	if i == b.chat.base {
		entry.Source = framework.SourceUser
	}
	p := onePart(plain, message.Role, entry, m.Text)
	if isSummary(&m) {
		return p
	}
	p.parts[0].text = b.expandAt(&m, strings.ReplaceAll(b.prefix(i)+b.chat.texts[i], "\r", ""))
	if b.c.preset.Behaviour.Names == card.NamesCompletion {
		p.name = b.speakerOf(i)
		b.named(p)
	}
	return p
}

// prefix is what the preset puts before a message for its speaker.
func (b *builder) prefix(i int) string {
	m, name := b.message(i), b.speakerOf(i)
	other := !b.isUser(i) && name != b.c.name() && name != b.c.card.Nickname && name != b.in.Persona.Name
	narrates := m.Role == framework.RoleNarrator || m.Role == string(llm.System)
	switch behaviour := b.c.preset.Behaviour.Names; {
	case name == "" || narrates:
	case behaviour == card.NamesContent, behaviour == card.NamesDefault && other:
		return name + ": "
	}
	return ""
}

// expandAt replaces the macros of a message as of the time when it was written, so that it reads
// the same in every later request.
func (b *builder) expandAt(m *framework.Message, text string) string {
	if !b.in.Options.Now.IsZero() && !m.At.IsZero() {
		now := b.env.Now
		b.env.Now = m.At.In(now.Location())
		defer func() { b.env.Now = now }()
	}
	return b.env.Expand(text)
}

// keep adds a message of the chat to the prompt.
func (b *builder) keep(i int, p *piece) {
	b.chat.kept = append(b.chat.kept, saidPiece{i, p})
}

// dropRun reports the messages from one index to another, without summaries, as left out because
// they do not fit.
func (b *builder) dropRun(from, to int) {
	d := framework.Dropped{Source: framework.SourceHistory, Reason: framework.DropBudget}
	for i := from; i <= to; i++ {
		if m := b.message(i); !isSummary(m) && i != b.chat.base && i != b.chat.moved {
			if d.Count == 0 {
				d.ID = m.ID
			}
			d.LastID = m.ID
			d.Count++
		}
	}
	if d.Count > 0 {
		b.dropped = append(b.dropped, d)
	}
}

// inOrder sorts the messages that are kept.
func (c *chatState) inOrder() {
	slices.SortStableFunc(c.kept, func(x, y saidPiece) int { return x.at - y.at })
}
