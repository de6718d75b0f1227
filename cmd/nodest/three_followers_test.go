package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

// mirror is what a client knows of all conversations from events alone.
type mirror struct {
	seq   int64
	chats map[string]*replica
	raw   map[string]json.RawMessage // message by id
	ended map[string]bool            // generations
}

func newMirror() *mirror {
	return &mirror{chats: map[string]*replica{}, raw: map[string]json.RawMessage{}, ended: map[string]bool{}}
}

// apply takes the next event of the log. It refuses one that is not the next one, or that
// cannot follow the others.
func (r *mirror) apply(f *frame) error {
	if f.Seq != r.seq+1 {
		return fmt.Errorf("event %d (%s) follows %d", f.Seq, f.Ev, r.seq)
	}
	r.seq = f.Seq
	var d struct {
		Conversation wireChat
		Message      json.RawMessage
		MessageIDs   []string
	}
	if err := json.Unmarshal(f.Data, &d); err != nil {
		return err
	}
	c := r.chats[f.Conv]
	switch f.Ev {
	case "chat.created":
		r.chats[f.Conv] = &replica{wireChat: d.Conversation, messages: map[string]*wireMessage{}, deleted: map[string]bool{}}
	case "chat.updated":
		c.wireChat = d.Conversation
	case "message.created", "message.updated":
		var m wireMessage
		if err := json.Unmarshal(d.Message, &m); err != nil {
			return err
		}
		had, created := c.messages[m.ID], f.Ev == "message.created"
		if created != (had == nil) || had != nil && had.Rev >= m.Rev {
			return fmt.Errorf("event %d: %s of message %s at rev %d, known was %+v", f.Seq, f.Ev, m.ID, m.Rev, had)
		}
		r.raw[m.ID] = d.Message
		c.apply(&m, created)
	case "message.deleted", "message.restored":
		c.setDeleted(d.MessageIDs, f.Ev == "message.deleted")
	case "gen.done", "gen.failed":
		if r.ended[f.Gen] {
			return fmt.Errorf("event %d: generation %s ended twice", f.Seq, f.Gen)
		}
		r.ended[f.Gen] = true
	}
	return nil
}

// follower is a client that follows the events from the first one on, over one WebSocket after
// another, each at some server of the fleet.
type follower struct {
	*fleet
	*mirror
	t      *testing.T
	device string
	rng    *rand.Rand
	epoch  string
	hops   int
}

func newFollower(t *testing.T, f *fleet, device string, rng *rand.Rand) *follower {
	t.Helper()
	var at struct{ Epoch string }
	if err := f.client(0).Call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &at); err != nil {
		t.Fatal(err)
	}
	return &follower{fleet: f, mirror: newMirror(), t: t, device: device, rng: rng, epoch: at.Epoch}
}

// errCut says that a connection has ended.
var errCut = errors.New("cut off")

// follow receives events until stop.
func (w *follower) follow(stop context.Context) error {
	for stop.Err() == nil {
		err := w.connection(stop, 1+w.rng.IntN(200), 0)
		if err != nil && !errors.Is(err, errCut) {
			return fmt.Errorf("%s after event %d: %w", w.device, w.seq, err)
		}
		if err != nil {
			<-time.After(20 * time.Millisecond)
		}
	}
	return nil
}

// catchUp receives the events up to a position.
func (w *follower) catchUp(t *testing.T, to int64) error {
	t.Helper()
	err := w.connection(t.Context(), -1, to)
	if err == nil && w.seq != to {
		err = fmt.Errorf("%s is at %d, the log ends at %d", w.device, w.seq, to)
	}
	return err
}

// connection resumes over a new connection and takes a number of frames from it, or, with -1,
// all events up to a position.
func (w *follower) connection(stop context.Context, frames int, to int64) error {
	p, err := dialWS(w.t, w.client(w.rng.IntN(3)), nil)
	if err != nil {
		return errCut
	}
	w.hops++
	defer context.AfterFunc(stop, func() { _ = p.ws.Close() })()
	defer p.ws.Close() //nolint:errcheck // the next connection resumes
	p.send("hello", "", map[string]any{"protocol": 1, "deviceId": w.device, "resume": map[string]any{"epoch": w.epoch, "seq": w.seq}})
	next := map[string]int{} // where the next delta of a generation begins
	for n := 0; n != frames && (frames > 0 || w.seq < to); n++ {
		_ = p.ws.SetReadDeadline(time.Now().Add(testTimeout))
		_, text, err := p.ws.ReadMessage()
		if err != nil {
			return errCut
		}
		var f frame
		if err := json.Unmarshal(text, &f); err != nil {
			return err
		}
		if err := w.take(&f, next); err != nil {
			return err
		}
	}
	return nil
}

func (w *follower) take(f *frame, next map[string]int) error {
	switch {
	case f.ID != "":
		var hello struct{ Resumed bool }
		if err := json.Unmarshal(f.Data, &hello); err != nil || !hello.Resumed {
			return fmt.Errorf("hello was answered with %s%s", f.Data, f.Error)
		}
	case f.Seq > 0:
		return w.apply(f)
	case f.Ev == "gen.delta":
		var d struct{ Text, Part string }
		if err := json.Unmarshal(f.Data, &d); err != nil || d.Part != "text" {
			return err
		}
		if at, ok := next[f.Gen]; w.ended[f.Gen] || ok && at != f.Off {
			return fmt.Errorf("a delta of generation %s at %d, expected at %d, ended %t", f.Gen, f.Off, at, w.ended[f.Gen])
		}
		next[f.Gen] = f.Off + len([]rune(d.Text))
	}
	return nil
}
