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

// logTree is the tree of the messages of logs.
type logTree struct {
	messages []*chat.Message // by seq
	below    map[string][]*chat.Message
	grown    map[int64]bool // messages that have swipes of several logs
	bytes    int
}

// logBranch is the path of a log in the tree.
type logBranch struct {
	head  *chat.Message             // nil = the log is empty
	lines map[int64]json.RawMessage // by seq: its own, where the message in the tree has another
	room  int
}

// add adds a log: it goes along the messages that say the same as its own, and adds the others.
func (t *logTree) add(log *card.Chat, names card.ChatNames, now time.Time) (*logBranch, error) {
	if t.below == nil {
		t.below, t.grown = map[string][]*chat.Message{}, map[int64]bool{}
	}
	b := &logBranch{lines: map[int64]json.RawMessage{}, room: maxLogHeader}
	times, first := log.Times(now), len(t.messages) == 0
	for i, shared := 0, !first; i < len(log.Messages); i++ {
		m := importedMessage(&log.Messages[i], names, times[i])
		m.Greeting = i == 0 && m.Role == chat.RoleAssistant
		if shared {
			if next := t.follow(b, m); next != nil {
				b.head = next
				continue
			}
			shared = false
		}
		if t.bytes += len(m.Extra); len(t.messages) == maxLoaded || t.bytes > maxLogsBytes {
			return nil, fault.New(fault.TooLarge, "the files have more than %d different messages, or %s of them", maxLoaded, fault.Size(maxLogsBytes))
		}
		if m.Seq = int64(len(t.messages) + 1); b.head != nil {
			m.ParentID = b.head.ID
		}
		t.messages, t.below[m.ParentID], b.head = append(t.messages, m), append(t.below[m.ParentID], m), m
	}
	return b, nil
}

// follow returns the message below the head of a branch that is m; nil = none is.
func (t *logTree) follow(b *logBranch, m *chat.Message) *chat.Message {
	parent := ""
	if b.head != nil {
		parent = b.head.ID
	}
	for _, next := range t.below[parent] {
		if sameSaid(next, m) && t.merge(b, next, m) {
			return next
		}
	}
	return nil
}

// sameSaid reports whether messages say the same, whatever swipes they have.
func sameSaid(a, b *chat.Message) bool {
	return a.Text() == b.Text() && a.Role == b.Role && a.Name == b.Name && a.Hidden == b.Hidden
}

// merge gives a message the swipes of m that it lacks, and notes the line of m in a branch. Where
// that is too much, the message is another one.
func (t *logTree) merge(b *logBranch, to, m *chat.Message) bool {
	other := !bytes.Equal(to.Extra, m.Extra)
	if other && len(m.Extra) > b.room {
		return false
	}
	var more []chat.Swipe
	for _, s := range m.Swipes {
		if !slices.ContainsFunc(to.Swipes, func(has chat.Swipe) bool { return has.Text == s.Text }) {
			more = append(more, s)
		}
	}
	if len(to.Swipes)+len(more) > maxLogSwipes {
		return false
	}
	if len(more) > 0 {
		to.Swipes = append(to.Swipes, more...)
		t.grown[to.Seq] = true
	}
	if other {
		b.room -= len(m.Extra)
		b.lines[to.Seq] = m.Extra
	}
	return true
}

// merged are the messages whose lines lack swipes that they have.
func (t *logTree) merged() []int64 {
	var seqs []int64
	for _, m := range t.messages {
		if t.grown[m.Seq] {
			seqs = append(seqs, m.Seq)
		}
	}
	return seqs
}

func (b *logBranch) seq() int64 {
	if b.head == nil {
		return 0
	}
	return b.head.Seq
}

// keepPlay makes the last message of the branch name a Play, unless another file ends there.
func (b *logBranch) keepPlay(id string) {
	if b.head != nil && b.head.Chosen().PlayID == "" {
		b.head.Chosen().PlayID = id
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

func recordOf(log *card.Chat, data []byte) logExtra {
	return logExtra{
		Header: op.JSONOrNil(log.Header), Metadata: op.JSONOrNil(log.Metadata),
		Open: len(log.Messages) > 0 && !bytes.HasSuffix(data, []byte("\n")) && log.Messages[0].Raw != nil && isLines(data),
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
