package stream

import (
	"encoding/json"
	"fmt"
	"time"
)

// Relay carries what is not stored to the other processes on the same database: within one process there is none. It
// may lose anything at any time. Then a reply is seen later, with its next checkpoint or its end, but nothing is
// missing: the logs hold what is durable, and the Hub reads them anyway.
type Relay interface {
	// Receive says who takes what other processes send. It is called once, before the others; take does not block.
	Receive(take func(Message))
	// Send hands a message to the processes that follow its user. It neither blocks nor fails.
	Send(m Message)
	// Follow has this process receive the messages of a user, soon, until stop is called.
	Follow(userID string) (stop func())
	Close() error
}

// RelayMeasure is told of the messages of a relay. Its functions may be nil.
type RelayMeasure struct {
	Sent, Received, Dropped func(n int)
	Lag                     func(time.Duration) // between sending and receiving
}

// Count tells one of the functions of a number of messages.
func (RelayMeasure) Count(of func(int), n int) {
	if of != nil && n > 0 {
		of(n)
	}
}

// Message is what one process tells others about a user: a short-lived event, that it asks for something, or else
// that something is stored.
type Message struct {
	UserID string
	Event  *Event // not stored
	Ask    bool   // who works for the user stores what it has, and looks whether it still may
	Seq    int64  // the user's log goes at least to here
}

// wireMessage is a message on its way. A short-lived event goes as clients get it.
type wireMessage struct {
	UserID string          `json:"u"`
	Event  json.RawMessage `json:"e,omitempty"`
	Ask    bool            `json:"ask,omitempty"`
	Seq    int64           `json:"seq,omitempty"`
}

// AppendMessage appends a message as a line of JSON.
func AppendMessage(b []byte, m Message) []byte {
	b = appendText(append(b, '{'), "u", m.UserID)
	if m.Event != nil {
		b = append(appendName(b, "e"), m.Event.Frame()...)
	}
	if m.Ask {
		b = append(appendName(b, "ask"), "true"...)
	}
	if m.Seq != 0 {
		b = appendNumber(b, "seq", m.Seq)
	}
	return append(b, '}', '\n')
}

// ReadMessage reads what AppendMessage wrote.
func ReadMessage(line []byte) (Message, error) {
	var w wireMessage
	if err := json.Unmarshal(line, &w); err != nil {
		return Message{}, fmt.Errorf("stream: read a message of another process: %w", err)
	}
	m := Message{UserID: w.UserID, Ask: w.Ask, Seq: w.Seq}
	if w.Event == nil {
		return m, nil
	}
	e, err := readFrame(w.UserID, w.Event)
	m.Event = e
	return m, err
}

// readFrame reads the frame of a short-lived event. It stays the frame of the event.
func readFrame(userID string, frame []byte) (*Event, error) {
	var f struct {
		Event
		Off int   `json:"off"`
		At  int64 `json:"at"`
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		return nil, fmt.Errorf("stream: read an event of another process: %w", err)
	}
	e := &Event{
		UserID: userID, Type: f.Type, ConversationID: f.ConversationID, MessageID: f.MessageID, GenerationID: f.GenerationID,
		Off: f.Off, At: time.UnixMilli(f.At).UTC(), By: f.By, Data: f.Data,
	}
	if e.Type == "gen.delta" {
		var d Delta
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return nil, fmt.Errorf("stream: read a delta of another process: %w", err)
		}
		e.Data = nil
		e.Say(d.Text, d.Part)
	}
	e.once.Do(func() { e.frame = frame })
	return e, nil
}
