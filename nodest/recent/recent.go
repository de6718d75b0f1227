// Package recent keeps the ends of the most recently active chats, so that a turn in a long chat need not
// read it again. It reads and stores nothing.
package recent

import (
	"slices"

	"nodest/chat"
	"nodest/internal/lru"
)

// Chats keeps the ends of chats. An entry is what the database holds at one
// version of the conversation; since every change of a chat is a new version, an
// entry is either exact or not found.
type Chats struct {
	byChat *lru.Cache[Chat, *branchEnd]
}

// Chat names a chat. Ids are unique within a user only: two may have imported the same one.
type Chat struct{ UserID, ID string }

// branchEnd is the end of the branch that ends in the last message of path.
type branchEnd struct {
	chat    Chat
	version int64
	path    []*chat.Message // oldest first; shared, never changed
	whole   bool            // it begins with the first message
	room    int             // tokens that it was read for
	sent    Sent            // the last in the chat by this process, at this or an earlier version
}

// Sent is a prompt that later ones are compared with.
type Sent struct {
	PromptID, GenerationID string
	Hashes                 []uint64 // hashes of its messages: framework.Prompt.Hashes
}

// keepHistory bounds the kept texts, in bytes.
const keepHistory = 64 << 20

// New returns an empty Chats.
func New() Chats { return Chats{lru.New[Chat, *branchEnd](keepHistory)} }

// Find returns the branch that ends in head at a version of the
// chat, if it is kept and reaches as far back as room tokens, or as the message
// until ("" = none); more says that it does not begin with the first message.
func (p Chats) Find(conv Chat, version int64, head, until string, room int) (path []*chat.Message, more, ok bool) {
	kept, ok := p.byChat.Get(conv)
	if !ok || kept.version != version {
		return nil, false, false
	}
	for end := len(kept.path); end > 0; end-- {
		if kept.path[end-1].ID != head {
			continue
		}
		path = kept.path[:end:end]
		if !kept.whole && chat.PathTokens(path) < room && !holds(path, until) {
			return nil, false, false
		}
		return path, !kept.whole, true
	}
	return nil, false, false
}

// holds reports whether a message is on a path, not among its first.
func holds(path []*chat.Message, id string) bool {
	return id != "" && len(path) >= chat.FirstPage && slices.ContainsFunc(path, func(m *chat.Message) bool { return m.ID == id })
}

// Put keeps what was read.
func (p Chats) Put(conv Chat, version int64, path []*chat.Message, whole bool, room int) {
	slim := make([]*chat.Message, len(path))
	for i, m := range path {
		slim[i] = slimmed(m)
	}
	p.keep(&branchEnd{chat: conv, version: version, path: slim, whole: whole, room: room})
}

// Append applies a change that only added m at the end of the kept branch and made that
// version of the chat. Any other change removes the entry.
func (p Chats) Append(conv Chat, version int64, m *chat.Message) {
	old, ok := p.byChat.Get(conv)
	if !ok {
		return
	}
	if old.version != version-1 || len(old.path) == 0 || old.path[len(old.path)-1].ID != m.ParentID {
		p.byChat.Take(conv)
		return
	}
	next := &branchEnd{chat: conv, version: version, whole: old.whole, room: old.room, sent: old.sent}
	next.path = slices.Concat(old.path, []*chat.Message{slimmed(m)})
	if chat.PathTokens(next.path) > 2*next.room {
		next.cut()
	}
	p.keep(next)
}

// NoteSent keeps the hashes of a prompt with the kept branch of its chat.
func (p Chats) NoteSent(conv Chat, sent Sent) {
	if old, ok := p.byChat.Get(conv); ok {
		next := *old
		next.sent = sent
		p.keep(&next)
	}
}

// LastSent is the prompt that was noted last; without one its id is "".
func (p Chats) LastSent(conv Chat) Sent {
	if kept, ok := p.byChat.Get(conv); ok {
		return kept.sent
	}
	return Sent{}
}

// cut leaves as much of the path as it was read for, and some more.
func (p *branchEnd) cut() {
	from, weight := len(p.path), 0
	for from > 0 && weight <= p.room+p.room/4 {
		from--
		weight += chat.MessageTokens(p.path[from])
	}
	p.path, p.whole = slices.Clone(p.path[from:]), p.whole && from == 0
}

func (p Chats) keep(n *branchEnd) {
	bytes := 8 * len(n.sent.Hashes)
	for _, m := range n.path {
		const frame = 300 // bytes of a message without text, about
		bytes += len(m.Text()) + frame
	}
	p.byChat.Put(n.chat, n, bytes)
}

// slimmed is a copy of m with the chosen text only, which is all that a prompt needs.
func slimmed(m *chat.Message) *chat.Message {
	slim := *m
	slim.Swipes, slim.SwipeIndex = nil, 0
	if s := m.Chosen(); s != nil {
		slim.Swipes = []chat.Swipe{{ID: s.ID, RevisionID: s.RevisionID, Rev: s.Rev, Text: s.Text, Wish: s.Wish, GenerationID: s.GenerationID}}
	}
	return &slim
}
