package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/stretchr/testify/require"
)

// device is an app of the user. What it shows it has from its events alone,
// except for conversations that came with a history: of those it reads what it
// does not know when it shows it.
type device struct {
	g     *game
	name  string
	phone *phone
	sent  int // commands over this connection
	epoch string
	seq   int64
	ended map[string]bool // generations
	chats map[string]*replica
}

// replica is what a device has of a conversation.
type replica struct {
	wireChat
	messages map[string]*wireSpot
	gone     map[string]bool
}

func newDevice(g *game, name string) *device {
	d := &device{g: g, name: name, ended: map[string]bool{}, chats: map[string]*replica{}}
	d.connect()
	return d
}

// connect goes on where the last connection ended.
func (d *device) connect() {
	t := d.g.t
	t.Helper()
	p, err := dialPhone(t, d.g.p.client, nil)
	require.NoError(t, err)
	d.phone, d.sent = p, 1
	hello := map[string]any{"protocol": 1, "deviceId": d.name, "batch": d.g.chance(2), "want": []string{"memory"}}
	if d.epoch != "" {
		hello["resume"] = map[string]any{"epoch": d.epoch, "seq": d.seq}
	}
	f, err := p.answer(p.send("hello", "", hello))
	require.NoError(t, err)
	var welcome struct {
		Epoch   string
		Seq     int64
		Resumed bool
	}
	f.into(t, &welcome)
	if d.epoch == "" {
		d.epoch, d.seq = welcome.Epoch, welcome.Seq
		return
	}
	require.True(t, welcome.Resumed, "%s", f.Data)
}

// read takes one frame in; nil means that the connection had ended, and there is
// another one now.
func (d *device) read() *frame {
	d.g.t.Helper()
	f, err := d.phone.next()
	if err != nil {
		d.g.note("%s was cut off: %v", d.name, err)
		d.connect()
		return nil
	}
	if f.Seq > 0 {
		require.Equal(d.g.t, d.seq+1, f.Seq, "position of %s at %s", f.Ev, d.name)
		d.seq = f.Seq
		d.apply(f)
	}
	return f
}

// ask sends a command and waits for the answer.
func (d *device) ask(a act, key string) *reply {
	d.g.t.Helper()
	d.sent++
	id := d.phone.send(a.cmd, key, a.data())
	for {
		f := d.read()
		require.NotNil(d.g.t, f, "cut off within %s", a.cmd)
		if f.ID != id {
			continue
		}
		r := &reply{data: f.Data}
		if !*f.OK {
			r.refused(d.g, f.Error)
		}
		return r
	}
}

// upTo reads the events up to a position.
func (d *device) upTo(seq int64) {
	for d.seq < seq {
		d.read()
	}
}

// apply is what an app does with an event.
func (d *device) apply(f *frame) {
	t := d.g.t
	t.Helper()
	switch f.Ev {
	case "chat.created", "chat.updated":
		var data struct{ Conversation wireChat }
		f.into(t, &data)
		c := d.chats[f.Conv]
		if c == nil {
			c = &replica{messages: map[string]*wireSpot{}, gone: map[string]bool{}}
			d.chats[f.Conv] = c
		}
		c.wireChat = data.Conversation
	case "chat.deleted":
		delete(d.chats, f.Conv)
	case "message.created", "message.updated":
		var data struct{ Message *wireSpot }
		f.into(t, &data)
		d.g.witness(data.Message)
		d.chats[f.Conv].take(data.Message, f.Ev == "message.created")
	case "message.deleted", "message.restored":
		var data struct{ MessageIDs []string }
		f.into(t, &data)
		d.chats[f.Conv].hide(data.MessageIDs, f.Ev == "message.deleted")
	case "gen.done", "gen.failed":
		require.False(t, d.ended[f.Gen], "a generation ended twice")
		d.ended[f.Gen] = true
	}
}

// take keeps the newest state of a message. A new one that follows the end of the
// shown branch is its end now, unless it is a reply that is written beside another
// one. Of other moves a chat.updated tells.
func (c *replica) take(m *wireSpot, created bool) {
	if had := c.messages[m.ID]; had == nil || had.Rev <= m.Rev {
		c.messages[m.ID] = m
	}
	follows := c.HeadID == nil && m.ParentID == nil || c.HeadID != nil && m.ParentID != nil && *c.HeadID == *m.ParentID
	if created && follows && !c.beside(m) {
		c.HeadID = &m.ID
	}
}

// hide takes in that messages are deleted or back. One that was deleted when this
// device came to it has to be read.
func (c *replica) hide(ids []string, gone bool) {
	for _, id := range ids {
		c.gone[id] = gone
		if m := c.messages[id]; !gone && m != nil && m.Seq == 0 {
			delete(c.messages, id)
		}
	}
}

func (c *replica) beside(m *wireSpot) bool {
	if m.Role != "assistant" || m.Status != "pending" || m.ParentID == nil {
		return false
	}
	for id, o := range c.messages {
		if id != m.ID && o.Role == "assistant" && o.ParentID != nil && *o.ParentID == *m.ParentID && !c.gone[id] {
			return true
		}
	}
	return false
}

// shown is the branch that a device shows. read gets what it does not know.
func (c *replica) shown(read func()) []*wireSpot {
	var path []*wireSpot
	for again := true; again; {
		again, path = false, nil
		for id := c.HeadID; id != nil; {
			m := c.messages[*id]
			if m == nil {
				again = true
				read()
				break
			}
			if !c.gone[m.ID] {
				path = append(path, m)
			}
			id = m.ParentID
		}
	}
	slices.Reverse(path)
	return path
}

// logEnd is the position of the newest event.
func (g *game) logEnd() int64 {
	g.t.Helper()
	var at struct{ Seq int64 }
	g.get(&at, "/sync?epoch=%s&since=%d", g.devices[0].epoch, int64(1)<<50)
	return at.Seq
}

// catchUp lets the devices read what they have not read.
func (g *game) catchUp() {
	g.t.Helper()
	end := g.logEnd()
	for _, d := range g.devices {
		d.upTo(end)
	}
}

// compareDevices compares what the devices show with what there is. Nothing is
// being written.
func (g *game) compareDevices() {
	g.t.Helper()
	g.catchUp()
	for _, d := range g.devices {
		require.Len(g.t, d.chats, len(g.chats), "conversations on %s", d.name)
		for _, p := range g.chats {
			g.compare(d, p)
		}
	}
}

func (g *game) compare(d *device, p *plain) {
	g.t.Helper()
	c := d.chats[p.id]
	require.NotNil(g.t, c, "conversation %s on %s", p.id, d.name)
	require.Equal(g.t, p.title, c.Title)
	require.Equal(g.t, p.now(), c.frame(), "conversation %s on %s", p.id, d.name)
	var want, got []string
	for _, s := range p.shown() {
		want = append(want, s.id)
	}
	for _, m := range c.shown(func() { d.load(p) }) {
		got = append(got, m.ID)
		if diff := p.spots[m.ID].differs(m); diff != "" {
			g.t.Fatalf("on %s: %s", d.name, diff)
		}
	}
	require.Equal(g.t, want, got, "the branch of %s on %s", p.id, d.name)
	for _, id := range slices.Sorted(maps.Keys(c.messages)) {
		s := p.spots[id]
		require.NotNil(g.t, s, "message %s on %s", id, d.name)
		require.Equal(g.t, !s.living(), c.gone[id], "message %s on %s is deleted", id, d.name)
		if s.living() {
			require.Empty(g.t, s.differs(c.messages[id]), "on %s", d.name)
		}
	}
}

// load reads what is shown of a conversation that came with a history, deleted
// messages too: those nobody tells of.
func (d *device) load(p *plain) {
	g := d.g
	g.t.Helper()
	require.True(g.t, p.partly, "%s does not know all of conversation %s, though every message of it was told", d.name, p.id)
	c := d.chats[p.id]
	known := len(c.messages)
	for _, s := range p.branch(p.head()) {
		if c.messages[s.id] != nil {
			continue
		}
		var m wireSpot
		r := g.rest(act{method: http.MethodGet, path: "/messages/" + s.id}, "")
		if r.fault != nil { // deleted: all an app needs is that it is not shown
			require.Equal(g.t, "not_found", r.code())
			m, c.gone[s.id] = wireSpot{ID: s.id, ParentID: &s.parent}, true
			if s.parent == "" {
				m.ParentID = nil
			}
		} else {
			require.NoError(g.t, json.Unmarshal(r.data, &m))
		}
		c.messages[s.id] = &m
	}
	require.Greater(g.t, len(c.messages), known, fmt.Sprintf("conversation %s cannot be read", p.id))
}
