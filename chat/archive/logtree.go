package archive

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"nodest/card"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// maxLogSwipes bounds the swipes of a message that several logs have.
const maxLogSwipes = 1000

// logTree is the tree of the messages of logs. It has their lines, and makes messages of them when these are needed: a log
// may be large, and messages are many times as large.
type logTree struct {
	names card.ChatNames
	nodes []*logNode // by seq, from 1
	first *logNode   // the first of the roots
	bytes int
}

// logNode is a message of the tree.
type logNode struct {
	id          string
	seq         int64
	parent      *logNode
	child, next *logNode          // the first one below it; the next one below its parent
	line        json.RawMessage   // as it came; nil for a log of another program
	said        *card.ChatMessage // in the place of such a line
	first       bool              // its log begins with it
	rows        int
	at          time.Time
	more        []chat.Swipe // those that other logs have
	playID      string       // that of a log that ends here
	shown       *chat.Swipe  // the chosen one, where its ids are known already; nil = they are not
}

// logBranch is the path of a log in the tree.
type logBranch struct {
	head    *logNode // nil = the log is empty
	count   int      // messages
	isJSON  bool     // its messages have lines
	several bool     // it is not the first log
	shared  bool     // so far, the tree has all of its messages
	sent    []time.Time
	made    []*logNode                // by message; nil = the tree has it already
	lines   map[int64]json.RawMessage // by seq: its own, where the message in the tree has another
	room    int
}

// begin begins a log.
func (t *logTree) begin() *logBranch {
	return &logBranch{lines: map[int64]json.RawMessage{}, room: maxLogHeader, several: len(t.nodes) > 0, shared: len(t.nodes) > 0}
}

// add adds the next message of a log: it goes along the messages that say the same as its own, and adds the others.
func (t *logTree) add(b *logBranch, said *card.ChatMessage) error {
	m := importedMessage(said, t.names, said.SentAt)
	b.count++
	b.isJSON = b.isJSON || said.Raw != nil
	b.sent = append(b.sent, said.SentAt)
	if b.shared {
		if next := t.follow(b, m); next != nil {
			b.head, b.made = next, append(b.made, nil)
			return nil
		}
		b.shared = false
	}
	if t.bytes += len(said.Raw); len(t.nodes) == maxLoaded || t.bytes > maxLogsBytes {
		return fault.New(fault.TooLarge, "the files have more than %d different messages, or %s of them", maxLoaded, fault.Size(maxLogsBytes))
	}
	line := said.Raw
	if b.several { // it is a part of a file of which little may be new
		line = bytes.Clone(line)
	}
	n := &logNode{id: m.ID, seq: int64(len(t.nodes) + 1), parent: b.head, line: line, first: b.count == 1, rows: rowsOf(m.Swipes)}
	if n.line == nil {
		own := *said
		n.said = &own
	}
	last := t.below(b.head)
	for *last != nil {
		last = &(*last).next
	}
	*last = n
	t.nodes, b.made, b.head = append(t.nodes, n), append(b.made, n), n
	return nil
}

// end ends a log, whose messages get their times.
func (t *logTree) end(b *logBranch, log *card.Chat, now time.Time) {
	for i, at := range log.TimesOf(b.sent, now) {
		if n := b.made[i]; n != nil {
			n.at = at
		}
	}
	b.sent, b.made = nil, nil
}

// below is where the first message below another one is; nil = below none.
func (t *logTree) below(n *logNode) **logNode {
	if n == nil {
		return &t.first
	}
	return &n.child
}

// message makes the message of a node.
func (t *logTree) message(n *logNode) *chat.Message {
	said := n.said
	if said == nil {
		line := card.ChatLine(n.line)
		said = &line
	}
	m := importedMessage(said, t.names, n.at)
	m.ID, m.Seq, m.Greeting = n.id, n.seq, n.first && m.Role == chat.RoleAssistant
	if n.parent != nil {
		m.ParentID = n.parent.id
	}
	if n.shown != nil {
		*m.Chosen() = *n.shown
	}
	m.Swipes = append(m.Swipes, n.more...)
	if n.playID != "" {
		m.Chosen().PlayID = n.playID
	}
	return m
}

// preview is that of the message of a node, whose ids it has.
func (t *logTree) preview(n *logNode) *chat.Preview {
	m := t.message(n)
	n.shown = new(*m.Chosen())
	return m.Preview()
}

// pieces are the messages of the tree, which become those of a conversation.
func (t *logTree) pieces(conv *chat.Conversation) *Pieces {
	return &Pieces{
		all:  len(t.nodes),
		rows: func(i int) int { return t.nodes[i].rows },
		put: func(tx chat.Tx, from, to int) (chat.Load, error) {
			if from == 0 {
				begun := *conv
				if err := tx.BeginLoad(&begun); err != nil {
					return chat.Load{}, err
				}
			}
			piece := make([]*chat.DumpedMessage, 0, to-from)
			for _, n := range t.nodes[from:to] {
				piece = append(piece, dumped(t.message(n), conv.Version))
			}
			return chat.Load{ConversationID: conv.ID}, tx.Load(conv.ID, piece)
		},
	}
}

// follow returns the message below the head of a branch that is m; nil = none is.
func (t *logTree) follow(b *logBranch, m *chat.Message) *logNode {
	for next := *t.below(b.head); next != nil; next = next.next {
		if has := t.message(next); sameSaid(has, m) && t.merge(b, next, has, m) {
			return next
		}
	}
	return nil
}

// sameSaid reports whether messages say the same, whatever swipes they have.
func sameSaid(a, b *chat.Message) bool {
	return a.Text() == b.Text() && a.Role == b.Role && a.Name == b.Name && a.Hidden == b.Hidden
}

// merge gives a message, which has these swipes so far, the swipes of m that it lacks, and notes the line of m in a branch.
// Where that is too much, the message is another one.
func (t *logTree) merge(b *logBranch, to *logNode, has, m *chat.Message) bool {
	other := !bytes.Equal(has.Extra, m.Extra)
	if other && len(m.Extra) > b.room {
		return false
	}
	var more []chat.Swipe
	for _, s := range m.Swipes {
		if !slices.ContainsFunc(has.Swipes, func(has chat.Swipe) bool { return has.Text == s.Text }) {
			if s.CreatedAt.IsZero() {
				s.CreatedAt = to.at
			}
			more = append(more, s)
		}
	}
	if len(has.Swipes)+len(more) > maxLogSwipes {
		return false
	}
	if len(more) > 0 {
		to.more = append(to.more, more...)
		to.rows += rowsOf(more) - 1
	}
	if other {
		b.room -= len(m.Extra)
		b.lines[to.seq] = bytes.Clone(m.Extra)
	}
	return true
}

// merged are the messages whose lines lack swipes that they have.
func (t *logTree) merged() []int64 {
	var seqs []int64
	for _, n := range t.nodes {
		if len(n.more) > 0 {
			seqs = append(seqs, n.seq)
		}
	}
	return seqs
}

func (b *logBranch) seq() int64 {
	if b.head == nil {
		return 0
	}
	return b.head.seq
}

// keepPlay makes the last message of the branch name a Play, unless another file ends there.
func (b *logBranch) keepPlay(id string) {
	if b.head != nil && b.head.playID == "" {
		b.head.playID = id
	}
}

// logExtra is what is kept of a log beside its messages: of the main one with the conversation,
// of others with their save points.
type logExtra struct {
	Header   json.RawMessage `json:"header,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Open     bool            `json:"open,omitempty"` // the last line has no line break, as SillyTavern writes it

	// Only logs that came with others have these.
	Name   string                    `json:"name,omitempty"`
	Head   int64                     `json:"head,omitempty"`   // seq of the last message of the main file
	Grows  bool                      `json:"grows,omitempty"`  // it was no part of the files before it, so what is written behind its end belongs to it
	Lines  map[int64]json.RawMessage `json:"lines,omitempty"`  // by seq: the lines that differ from those of the messages
	Merged []int64                   `json:"merged,omitempty"` // seqs of messages that have more swipes than their lines
}

func recordOf(log *card.Chat, branch *logBranch, data []byte) logExtra {
	return logExtra{
		Header: op.JSONOrNil(log.Header), Metadata: op.JSONOrNil(log.Metadata),
		Open: branch.count > 0 && !bytes.HasSuffix(data, []byte("\n")) && branch.isJSON && isLines(data),
	}
}

// isLines reports whether a file is JSON Lines: the logs of other programs are one document.
func isLines(data []byte) bool { return !json.Valid(data) }

// encode is the record as JSON; nil where it says nothing.
func (x *logExtra) encode() json.RawMessage {
	if x.Header == nil && x.Metadata == nil && !x.Open && x.Name == "" && x.Merged == nil {
		return nil
	}
	return encoded(x)
}
