package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
)

// device is an app of the user. It shows what it knows from events alone. Only of
// conversations that were created with a history (forks, imports) does it load the
// messages that it does not know.
type device struct {
	g     *simulation
	name  string
	conn  *wsClient
	sent  int // commands on this connection
	epoch string
	seq   int64
	ended map[string]bool // generations
	chats map[string]*replica
}

// replica is what a device knows of a conversation.
type replica struct {
	wireChat
	messages map[string]*wireMessage
	deleted  map[string]bool
}

func newDevice(g *simulation, name string) *device {
	d := &device{g: g, name: name, ended: map[string]bool{}, chats: map[string]*replica{}}
	d.connect()
	return d
}

// connect dials and resumes where the last connection ended.
func (d *device) connect() {
	t := d.g.t
	t.Helper()
	p, err := dialWS(t, d.g.p.client, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.conn, d.sent = p, 1
	hello := map[string]any{"protocol": 1, "deviceId": d.name, "batch": d.g.chance(2), "want": []string{"memory"}}
	if d.epoch != "" {
		hello["resume"] = map[string]any{"epoch": d.epoch, "seq": d.seq}
	}
	f, err := p.answer(p.send("hello", "", hello))
	if err != nil {
		t.Fatal(err)
	}
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
	if !welcome.Resumed {
		t.Fatal(f.Data)
	}
}

// read processes one frame. If the connection has ended, it connects again and
// returns nil.
func (d *device) read() *frame {
	d.g.t.Helper()
	f, err := d.conn.next()
	if err != nil {
		d.g.record("%s was cut off: %v", d.name, err)
		d.connect()
		return nil
	}
	if f.Seq > 0 {
		if want := d.seq + 1; f.Seq != want {
			d.g.t.Fatalf("position of %s at %s: f.Seq is %d, want %d", f.Ev, d.name, f.Seq, want)
		}
		d.seq = f.Seq
		d.apply(f)
	}
	return f
}

// ask sends a command and waits for the answer.
func (d *device) ask(a apiCall, key string) *response {
	d.g.t.Helper()
	d.sent++
	id := d.conn.send(a.cmd, key, a.data())
	for {
		f := d.read()
		if f == nil {
			d.g.t.Fatalf("cut off within %s: f is nil, want a value", a.cmd)
		}
		if f.ID != id {
			continue
		}
		r := &response{data: f.Data}
		if !*f.OK {
			r.setProblem(d.g, f.Error)
		}
		return r
	}
}

// readUpTo reads events up to a position.
func (d *device) readUpTo(seq int64) {
	for d.seq < seq {
		d.read()
	}
}

// apply updates the replicas as an app would.
func (d *device) apply(f *frame) {
	t := d.g.t
	t.Helper()
	switch f.Ev {
	case "chat.created", "chat.updated":
		var data struct{ Conversation wireChat }
		f.into(t, &data)
		c := d.chats[f.Conv]
		if c == nil {
			c = &replica{messages: map[string]*wireMessage{}, deleted: map[string]bool{}}
			d.chats[f.Conv] = c
		}
		c.wireChat = data.Conversation
	case "chat.deleted":
		delete(d.chats, f.Conv)
	case "message.created", "message.updated":
		var data struct{ Message *wireMessage }
		f.into(t, &data)
		d.g.recordTexts(data.Message)
		d.chats[f.Conv].apply(data.Message, f.Ev == "message.created")
	case "message.deleted", "message.restored":
		var data struct{ MessageIDs []string }
		f.into(t, &data)
		d.chats[f.Conv].setDeleted(data.MessageIDs, f.Ev == "message.deleted")
	case "gen.done", "gen.failed":
		if d.ended[f.Gen] {
			t.Fatal("a generation ended twice")
		}
		d.ended[f.Gen] = true
	}
}

// apply stores the newest state of a message. A new message whose parent is the head
// becomes the head, unless it regenerates another reply; chat.updated announces any
// other change of the head.
func (c *replica) apply(m *wireMessage, created bool) {
	if had := c.messages[m.ID]; had == nil || had.Rev <= m.Rev {
		c.messages[m.ID] = m
	}
	follows := c.HeadID == nil && m.ParentID == nil || c.HeadID != nil && m.ParentID != nil && *c.HeadID == *m.ParentID
	if created && follows && !c.isRegenerated(m) {
		c.HeadID = &m.ID
	}
}

// setDeleted marks messages as deleted or restored. A restored message that the device
// never knew has to be loaded.
func (c *replica) setDeleted(ids []string, gone bool) {
	for _, id := range ids {
		c.deleted[id] = gone
		if m := c.messages[id]; !gone && m != nil && m.Seq == 0 {
			delete(c.messages, id)
		}
	}
}

func (c *replica) isRegenerated(m *wireMessage) bool {
	if m.Role != "assistant" || m.Status != "pending" || m.ParentID == nil {
		return false
	}
	for id, o := range c.messages {
		if id != m.ID && o.Role == "assistant" && o.ParentID != nil && *o.ParentID == *m.ParentID && !c.deleted[id] {
			return true
		}
	}
	return false
}

// shown returns the branch that a device shows. read loads missing messages.
func (c *replica) shown(read func()) []*wireMessage {
	var path []*wireMessage
	for again := true; again; {
		again, path = false, nil
		for id := c.HeadID; id != nil; {
			m := c.messages[*id]
			if m == nil {
				again = true
				read()
				break
			}
			if !c.deleted[m.ID] {
				path = append(path, m)
			}
			id = m.ParentID
		}
	}
	slices.Reverse(path)
	return path
}

// logEnd returns the seq of the newest event.
func (g *simulation) logEnd() int64 {
	g.t.Helper()
	var at struct{ Seq int64 }
	g.get(&at, "/sync?epoch=%s&since=%d", g.devices[0].epoch, int64(1)<<50)
	return at.Seq
}

// catchUp lets the devices read all events.
func (g *simulation) catchUp() {
	g.t.Helper()
	end := g.logEnd()
	for _, d := range g.devices {
		d.readUpTo(end)
	}
}

// compareDevices compares what the devices show with the model while no reply is
// being written.
func (g *simulation) compareDevices() {
	g.t.Helper()
	g.catchUp()
	for _, d := range g.devices {
		if len(d.chats) != len(g.chats) {
			g.t.Fatalf("conversations on %s: d.chats has %d, want %d: %+v", d.name, len(d.chats), len(g.chats), d.chats)
		}
		for _, p := range g.chats {
			g.compareDevice(d, p)
		}
	}
}

func (g *simulation) compareDevice(d *device, p *chatModel) {
	g.t.Helper()
	c := d.chats[p.id]
	if c == nil {
		g.t.Fatalf("conversation %s on %s: c is nil, want a value", p.id, d.name)
	}
	if c.Title != p.title {
		g.t.Fatalf("c.Title is %q, want %q", c.Title, p.title)
	}
	if got, want := c.fields(), p.now(); !reflect.DeepEqual(got, want) {
		g.t.Fatalf("conversation %s on %s: c.fields() is %+v, want %+v", p.id, d.name, got, want)
	}
	var want, got []string
	for _, s := range p.shown() {
		want = append(want, s.id)
	}
	for _, m := range c.shown(func() { d.loadMissing(p) }) {
		got = append(got, m.ID)
		if diff := p.messages[m.ID].diff(m); diff != "" {
			g.t.Fatalf("on %s: %s", d.name, diff)
		}
	}
	if !reflect.DeepEqual(got, want) {
		g.t.Fatalf("the branch of %s on %s: got is %q, want %q", p.id, d.name, got, want)
	}
	for _, id := range slices.Sorted(maps.Keys(c.messages)) {
		s := p.messages[id]
		if s == nil {
			g.t.Fatalf("message %s on %s: s is nil, want a value", id, d.name)
		}
		if want := !s.exists(); c.deleted[id] != want {
			g.t.Fatalf("message %s on %s is deleted: c.deleted[id] is %v, want %v", id, d.name, c.deleted[id], want)
		}
		if s.exists() {
			if got := s.diff(c.messages[id]); got != "" {
				g.t.Fatalf("on %s: s.diff(c.messages[id]) is %q, want none", d.name, got)
			}
		}
	}
}

// loadMissing loads the shown branch of a conversation that was created with a
// history, including deleted messages, for which there are no events.
func (d *device) loadMissing(p *chatModel) {
	g := d.g
	g.t.Helper()
	if !p.partly {
		g.t.Fatalf("%s does not know all of conversation %s, although it got an event for every message", d.name, p.id)
	}
	c := d.chats[p.id]
	known := len(c.messages)
	for _, s := range p.branch(p.head()) {
		if c.messages[s.id] != nil {
			continue
		}
		var m wireMessage
		r := g.rest(apiCall{method: http.MethodGet, path: "/messages/" + s.id}, "")
		if r.fault != nil { // deleted: an app only needs to know that it is not shown
			if got := r.code(); got != "not_found" {
				g.t.Fatalf("r.code() is %q, want %q", got, "not_found")
			}
			m, c.deleted[s.id] = wireMessage{ID: s.id, ParentID: &s.parent}, true
			if s.parent == "" {
				m.ParentID = nil
			}
		} else {
			if err := json.Unmarshal(r.data, &m); err != nil {
				g.t.Fatal(err)
			}
		}
		c.messages[s.id] = &m
	}
	if len(c.messages) <= known {
		g.t.Fatalf("%s: len(c.messages) is %d, want more than %d", fmt.Sprintf("conversation %s cannot be read", p.id), len(c.messages), known)
	}
}
