package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// talker is a client with a conversation of its own. It does one thing after another, and
// remembers what was acknowledged.
type talker struct {
	*fleet
	conversation string
	rng          *rand.Rand
	*told

	commands int
	asked    []string // generations, in order
	open     []string // those that may not have ended
	repeated int      // commands
	past     []answered
	streams  int
	done     map[string]int // by kind of command
	log      []string       // the last commands
	failing  atomic.Value   // the last error, for the log
}

func newTalker(t *testing.T, f *fleet, character string, rng *rand.Rand) *talker {
	t.Helper()
	c := f.processes[0].client
	w := &talker{fleet: f, conversation: newConversation(t, c, character), rng: rng, told: newTold(), done: map[string]int{}}
	var page cli.PageOf[*wireMessage]
	if err := c.Call(t.Context(), http.MethodGet, "/api/v1/conversations/"+w.conversation+"/messages", nil, &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != 1 {
		t.Fatalf("page.Items has %d, want %d: %+v", len(page.Items), 1, page.Items)
	}
	if err := w.add(page.Items[0], "assistant", ""); err != nil {
		t.Fatal(err)
	}
	w.shows(page.Items[0].ID)
	return w
}

// things lists what a talker does, with weights.
var things = []struct {
	name   string
	weight int
	do     func(w *talker, stop context.Context) error
}{
	{"send", 30, (*talker).say},
	{"regenerate", 14, (*talker).regenerate},
	{"continue", 8, (*talker).extend},
	{"edit", 8, (*talker).edit},
	{"edit as a branch", 4, (*talker).branch},
	{"edit and answer", 4, (*talker).editAndAnswer},
	{"delete", 5, (*talker).remove},
	{"restore", 4, (*talker).restore},
	{"swipe", 6, (*talker).swipe},
	{"delete a swipe", 2, (*talker).dropSwipe},
	{"restore swipes", 2, (*talker).restoreSwipes},
	{"choose a branch", 4, (*talker).chooseHead},
	{"read", 10, (*talker).look},
	{"repeat", 6, (*talker).repeat},
}

// errNothing says that there is nothing now to do it with.
var errNothing = errors.New("not possible now")

// talk does one thing after another until stop.
func (w *talker) talk(stop context.Context) error {
	total := 0
	for _, thing := range things {
		total += thing.weight
	}
	for stop.Err() == nil {
		n := w.rng.IntN(total)
		for _, thing := range things {
			if n -= thing.weight; n >= 0 {
				continue
			}
			err := thing.do(w, stop)
			if err == nil {
				w.done[thing.name]++
				err = w.meanwhile(stop)
			}
			if err != nil && !errors.Is(err, errNothing) && stop.Err() == nil {
				return fmt.Errorf("%s in conversation %s: %w; after:\n%s", thing.name, w.conversation, err, strings.Join(w.log, "\n"))
			}
			break
		}
	}
	return nil
}

// meanwhile cancels the last reply, waits for its end or follows it, or does none of these.
func (w *talker) meanwhile(stop context.Context) error {
	if len(w.open) == 0 {
		return nil
	}
	last := w.open[len(w.open)-1]
	switch w.rng.IntN(6) {
	case 0:
		_ = w.client(w.rng.IntN(3)).Call(stop, http.MethodPost, "/api/v1/generations/"+last+"/cancel", nil, nil)
	case 1, 2:
		return w.awaitEnd(stop, last)
	case 3:
		return w.listen(stop, last)
	}
	return nil
}

func (w *talker) chance(n int) bool { return w.rng.IntN(n) == 0 }

// pick returns a random message that ok accepts, more often one of the last.
func (w *talker) pick(ok func(*toldMessage) bool) *toldMessage {
	var found []*toldMessage
	for _, m := range w.order {
		if w.sure(m) && ok(m) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil
	}
	if !w.chance(3) {
		found = found[max(0, len(found)-5):]
	}
	return found[w.rng.IntN(len(found))]
}

func (w *talker) say(context.Context) error {
	text := fmt.Sprintf("%s says %d", w.conversation[len(w.conversation)-4:], w.commands)
	body := map[string]any{"text": text, "clientMsgId": fmt.Sprintf("m-%d", w.commands)}
	parents := w.heads
	if w.chance(4) {
		m := w.pick((*toldMessage).live)
		if m == nil {
			return errNothing
		}
		body["parentId"], parents = m.id, []string{m.id}
	}
	answered := !w.chance(8)
	if answered {
		w.whenBusy(body)
	} else {
		body["reply"] = false
	}
	var got startedReply
	if err := w.command(http.MethodPost, "/conversations/"+w.conversation+"/messages", body, &got); err != nil {
		return err
	}
	if got.UserMessage == nil || got.UserMessage.Text != text {
		return fmt.Errorf("sent %q, stored %+v", text, got.UserMessage)
	}
	if err := w.add(got.UserMessage, "user", parents...); err != nil {
		return err
	}
	if !answered {
		w.shows(got.UserMessage.ID)
		return nil
	}
	return w.begun(got.UserMessage.ID, got.Message, got.GenerationID)
}

// begun notes a reply that was begun at the end of a branch.
func (w *talker) begun(to string, reply *wireMessage, generation string) error {
	if reply == nil || generation == "" {
		return errors.New("no reply was begun")
	}
	if err := w.add(reply, "assistant", to); err != nil {
		return err
	}
	w.shows(reply.ID)
	w.wants(reply.ID, generation)
	return nil
}

// wants notes a request for a text of a message.
func (w *talker) wants(message, generation string) {
	w.asked, w.open = append(w.asked, generation), append(w.open, generation)
	m := w.messages[message]
	m.acts = append(m.acts, act{generation: generation})
}

func (w *talker) whenBusy(body map[string]any) {
	if word := []string{"", "cancel", "queue"}[w.rng.IntN(3)]; word != "" {
		body["whenBusy"] = word
	}
}

func reply(m *toldMessage) bool { return m.live() && m.role == "assistant" && !m.greeting }

func (w *talker) regenerate(context.Context) error {
	m := w.pick(reply)
	if m == nil {
		return errNothing
	}
	body := map[string]any{}
	w.whenBusy(body)
	var got startedReply
	if err := w.command(http.MethodPost, "/messages/"+m.id+"/regenerate", body, &got); err != nil {
		return err
	}
	return w.regenerated(m, got.Message, got.GenerationID)
}

// regenerated notes another text for a reply: a swipe, or a message beside one that others follow.
func (w *talker) regenerated(m *toldMessage, to *wireMessage, generation string) error {
	followed := w.followed(m)
	switch {
	case to == nil || generation == "":
		return errors.New("no reply was begun")
	case followed == (to.ID == m.id):
		return fmt.Errorf("message %s is followed: %t, its new text belongs to %s", m.id, followed, to.ID)
	case !followed:
		w.wants(m.id, generation)
		return nil
	}
	if err := w.add(to, "assistant", m.parent); err != nil {
		return err
	}
	w.messages[to.ID].beside = true
	w.mayShow(to.ID)
	w.wants(to.ID, generation)
	return nil
}

func (w *talker) extend(context.Context) error {
	m := w.pick(func(m *toldMessage) bool { return reply(m) && m.written })
	if m == nil {
		return errNothing
	}
	body := map[string]any{}
	w.whenBusy(body)
	var got startedReply
	if err := w.command(http.MethodPost, "/messages/"+m.id+"/continue", body, &got); err != nil {
		return err
	}
	if got.Message == nil || got.Message.ID != m.id || got.GenerationID == "" {
		return fmt.Errorf("continued %s: %+v", m.id, got)
	}
	w.wants(m.id, got.GenerationID)
	return nil
}

func (w *talker) words() string { return fmt.Sprintf("edited by command %d", w.commands) }

func (w *talker) edit(context.Context) error {
	m := w.pick((*toldMessage).live)
	if m == nil {
		return errNothing
	}
	text := w.words()
	var got startedReply
	if err := w.command(http.MethodPatch, "/messages/"+m.id, map[string]any{"text": text}, &got); err != nil {
		return err
	}
	return m.edited(got.Message, text)
}

// branch edits a message as a branch.
func (w *talker) branch(context.Context) error {
	m := w.pick((*toldMessage).live)
	if m == nil {
		return errNothing
	}
	body := map[string]any{"text": w.words(), "mode": "branch"}
	again := m.role == "user" && w.chance(2)
	if again {
		body["regenerate"] = true
	}
	var got startedReply
	if err := w.command(http.MethodPatch, "/messages/"+m.id, body, &got); err != nil {
		return err
	}
	if err := w.add(got.Message, m.role, m.parent); err != nil {
		return err
	}
	w.shows(got.Message.ID)
	if !again {
		return nil
	}
	return w.begun(got.Message.ID, got.Reply, got.GenerationID)
}

// editAndAnswer edits a message of the user in place and asks for another reply.
func (w *talker) editAndAnswer(stop context.Context) error {
	if err := w.awaitAll(stop); err != nil {
		return err
	}
	m := w.pick(func(m *toldMessage) bool { return m.live() && m.role == "user" })
	if m == nil {
		return errNothing
	}
	text := w.words()
	var got startedReply
	if err := w.command(http.MethodPatch, "/messages/"+m.id, map[string]any{"text": text, "regenerate": true}, &got); err != nil {
		return err
	}
	if err := m.edited(got.Message, text); err != nil {
		return err
	}
	var replies []*toldMessage
	for _, r := range w.children(m) {
		if r.live() && r.role == "assistant" {
			replies = append(replies, r)
		}
	}
	if len(replies) == 0 {
		return w.begun(m.id, got.Reply, got.GenerationID)
	}
	known := w.messages[got.Reply.ID] != nil
	for _, r := range replies { // which of them is shown only the server knows
		if r.id == got.Reply.ID || !known && w.followed(r) {
			return w.regenerated(r, got.Reply, got.GenerationID)
		}
	}
	return fmt.Errorf("message %s is answered in %s", m.id, got.Reply.ID)
}

// deletion is the answer to a delete or a restore.
type deletion struct {
	MessageIDs []string
	HeadID     string
}

func (w *talker) remove(context.Context) error {
	m := w.pick(func(m *toldMessage) bool { return m.live() && !m.greeting })
	if m == nil {
		return errNothing
	}
	gone, scope := []*toldMessage{m}, "one"
	if all := w.subtree(m, (*toldMessage).live); w.chance(2) && len(all) < 8 {
		gone, scope = all, "after"
	}
	var got deletion
	if err := w.command(http.MethodDelete, "/messages/"+m.id+"?scope="+scope, nil, &got); err != nil {
		return err
	}
	return w.deleted(gone, got, w.commands)
}

func (w *talker) restore(context.Context) error {
	m := w.pick(func(m *toldMessage) bool { return m.deletedBy > 0 })
	if m == nil {
		return errNothing
	}
	together := w.subtree(m, func(o *toldMessage) bool { return o.deletedBy == m.deletedBy })
	var got deletion
	if err := w.command(http.MethodPost, "/messages/"+m.id+"/restore", nil, &got); err != nil {
		return err
	}
	return w.deleted(together, got, 0)
}

func (w *talker) chooseHead(context.Context) error {
	m := w.pick((*toldMessage).live)
	if m == nil {
		return errNothing
	}
	var got wireChat
	if err := w.command(http.MethodPut, "/conversations/"+w.conversation+"/head", map[string]any{"messageId": m.id}, &got); err != nil {
		return err
	}
	if got.HeadID == nil || *got.HeadID != m.id {
		return fmt.Errorf("chose %s, shown is %v", m.id, got.HeadID)
	}
	w.shows(m.id)
	return nil
}

// awaitAll waits until nothing is being written.
func (w *talker) awaitAll(stop context.Context) error {
	for len(w.open) > 0 {
		if err := errors.Join(w.awaitEnd(stop, w.open[0]), stop.Err()); err != nil {
			return err
		}
	}
	return nil
}

// quiet waits until nothing is being written, and reads a reply with several swipes.
func (w *talker) quiet(stop context.Context, ok func(*toldMessage) bool) (*toldMessage, *wireMessage, error) {
	if err := w.awaitAll(stop); err != nil {
		return nil, nil, err
	}
	m := w.pick(func(m *toldMessage) bool { return reply(m) && len(m.acts) > 1 && ok(m) })
	if m == nil {
		return nil, nil, errNothing
	}
	var got wireMessage
	if err := w.read("/messages/"+m.id, &got); err != nil {
		return nil, nil, err
	}
	if len(got.Swipes) == 0 {
		return nil, nil, errNothing
	}
	return m, &got, nil
}

func anyTold(*toldMessage) bool { return true }

func (w *talker) swipe(stop context.Context) error {
	m, now, err := w.quiet(stop, anyTold)
	if err != nil {
		return err
	}
	to := w.rng.IntN(len(now.Swipes))
	body := map[string]any{"swipe": now.Swipes[to].ID, "ifRev": now.Rev}
	if to == len(now.Swipes)-1 {
		body, to = map[string]any{"swipe": "next", "generateIfLast": true}, now.SwipeIndex+1
	}
	var got startedReply
	if err := w.command(http.MethodPost, "/messages/"+m.id+"/swipe", body, &got); err != nil {
		return err
	}
	if to == len(now.Swipes) {
		return w.regenerated(m, got.Message, got.GenerationID)
	}
	if chosen := got.Message.Swipes[got.Message.SwipeIndex].ID; chosen != now.Swipes[to].ID {
		return fmt.Errorf("chose swipe %s of %s, shown is %s", now.Swipes[to].ID, m.id, chosen)
	}
	m.acts = append(m.acts, act{chosen: now.Swipes[to].ID})
	return nil
}

// dropSwipe deletes the shown swipe.
func (w *talker) dropSwipe(stop context.Context) error {
	m, now, err := w.quiet(stop, anyTold)
	if err != nil {
		return err
	}
	if len(now.Swipes) < 2 {
		return errNothing
	}
	next := now.SwipeIndex + 1
	if next == len(now.Swipes) {
		next = now.SwipeIndex - 1
	}
	if err := w.command(http.MethodDelete, "/messages/"+m.id+"?scope=swipe", nil, &deletion{}); err != nil {
		return err
	}
	m.acts = append(m.acts, act{dropped: now.Swipes[now.SwipeIndex].ID, chosen: now.Swipes[next].ID})
	return nil
}

func (w *talker) restoreSwipes(stop context.Context) error {
	m, _, err := w.quiet(stop, func(m *toldMessage) bool {
		return slices.ContainsFunc(m.acts, func(a act) bool { return a.dropped != "" })
	})
	if err != nil {
		return err
	}
	if err := w.command(http.MethodPost, "/messages/"+m.id+"/restore", nil, &deletion{}); err != nil {
		return err
	}
	m.acts = append(m.acts, act{undrop: true})
	return nil
}

// look reads a message at some server.
func (w *talker) look(context.Context) error {
	m := w.pick(anyTold)
	if m == nil {
		return errNothing
	}
	var got wireMessage
	err := w.read("/messages/"+m.id, &got)
	if !m.live() && fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil && !m.live() {
		err = fmt.Errorf("message %s was deleted by command %d", m.id, m.deletedBy)
	}
	if err == nil && m.role == "user" && got.Text != m.acts[len(m.acts)-1].text {
		err = fmt.Errorf("message %s has the text %q, acknowledged was %+v", m.id, got.Text, m.acts)
	}
	return err
}
