package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"nodest/internal/cli"
)

// operation is something that the devices can do.
type operation struct {
	name         string
	weight       int
	whileWriting bool // also possible while a reply is being written
	do           func(g *simulation, p *chatModel) bool
}

// operations lists all operations with their weights.
var operations = []operation{
	{"send", 30, true, (*simulation).opSend},
	{"send elsewhere", 6, false, (*simulation).opSendElsewhere},
	{"regenerate", 12, false, (*simulation).opRegenerate},
	{"continue", 4, false, (*simulation).opContinue},
	{"impersonate", 2, true, (*simulation).opImpersonate},
	{"swipe", 12, false, (*simulation).opSwipe},
	{"edit", 12, false, (*simulation).opEdit},
	{"edit as a branch", 6, false, (*simulation).opBranch},
	{"delete", 11, false, (*simulation).opDelete},
	{"undelete", 7, false, (*simulation).opUndelete},
	{"head", 9, false, (*simulation).opHead},
	{"stale", 4, false, (*simulation).opStale},
	{"race", 3, false, (*simulation).opRace},
	{"invalid", 2, true, (*simulation).opInvalid},
	{"update chat", 6, true, (*simulation).opUpdateChat},
	{"reset", 2, true, (*simulation).opReset},
	{"save", 9, true, (*simulation).opSave},
	{"restore", 11, false, (*simulation).opRestore},
	{"preview save", 4, true, (*simulation).opPreviewSave},
	{"read save", 2, true, (*simulation).opReadSave},
	{"list saves", 1, true, (*simulation).opListSaves},
	{"delete save", 1, true, (*simulation).opDeleteSave},
	{"copy save", 2, false, (*simulation).opCopySave},
	{"fork", 2, false, (*simulation).opFork},
	{"archive", 1, false, (*simulation).opArchive},
	{"branches", 2, false, (*simulation).opBranches},
	{"search", 2, false, (*simulation).opSearch},
	{"documents", 5, true, (*simulation).opDocuments},
	{"memory", 10, true, (*simulation).opMemory},
	{"list memories", 1, true, (*simulation).opListMemories},
	{"search memory", 8, false, (*simulation).opSearchMemory},
	{"summarise", 3, false, (*simulation).opSummarise},
	{"change summary", 1, false, (*simulation).opChangeSummary},
	{"create chat", 1, false, func(g *simulation, _ *chatModel) bool { g.createChat(); return true }},
	{"delete chat", 1, false, (*simulation).opDeleteChat},
}

func toChat(p *chatModel) map[string]string       { return map[string]string{"conversationId": p.id} }
func toMessage(s *messageModel) map[string]string { return map[string]string{"messageId": s.id} }

// maxChats is how many conversations exist at a time.
const maxChats = 6

// createChat creates a conversation.
func (g *simulation) createChat() {
	g.t.Helper()
	if len(g.chats) >= maxChats {
		g.opDeleteChat(pick(g, g.chats[1:]))
	}
	r := g.must(apiCall{cmd: "chat.create", method: http.MethodPost, path: "/conversations", body: map[string]any{"characterId": g.docs.character}})
	var c wireChat
	r.into(g, &c)
	p := newChatModel(c.ID, c.CharacterID)
	p.title = c.Title
	var page cli.PageOf[*wireMessage]
	g.get(&page, "/conversations/%s/messages", c.ID)
	if len(page.Items) != 1 {
		g.t.Fatalf("page.Items has %d, want %d: %+v", len(page.Items), 1, page.Items)
	}
	p.change(func() {
		p.insert(page.Items[0])
		p.setHead(page.Items[0].ID)
	})
	g.recordTexts(page.Items[0])
	g.chats = append(g.chats, p)
	g.checkChat(p, true)
}

// opDeleteChat deletes a conversation.
func (g *simulation) opDeleteChat(p *chatModel) bool {
	if len(g.chats) < 4 || p == g.chats[0] {
		return false
	}
	g.awaitGeneration(p)
	g.must(apiCall{cmd: "chat.delete", method: http.MethodDelete, path: "/conversations/" + p.id, ids: toChat(p)})
	g.chats = slices.DeleteFunc(g.chats, func(o *chatModel) bool { return o == p })
	g.saves = slices.DeleteFunc(g.saves, func(k *savePoint) bool { return k.chat == p })
	for id := range p.messages {
		delete(g.textsOf, id)
	}
	return true
}

// sentence returns a new text with a word that may be a world book key.
func (g *simulation) sentence() string {
	g.sentences++
	return fmt.Sprintf("Sentence %d about the %s.", g.sentences, pick(g, []string{"harbour", "lamp", "storm", "茶館", "map"}))
}

// pickMessage returns a random existing message that ok accepts, more often one at the
// end of the shown branch; nil if there is none.
func (g *simulation) pickMessage(p *chatModel, ok func(*messageModel) bool) *messageModel {
	list := p.order
	if !g.chance(3) {
		list = p.shown()
		list = list[max(0, len(list)-6):]
	}
	var found []*messageModel
	for _, s := range list {
		if s.exists() && ok(s) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return pick(g, found)
}

func anyMessage(*messageModel) bool  { return true }
func assistant(s *messageModel) bool { return s.role == "assistant" }
func written(s *messageModel) bool   { return assistant(s) && !s.greeting }
func hasText(s *messageModel) bool   { return s.now().swipe != "" }

// startedReply is the response to a request that may start a generation.
type startedReply struct {
	UserMessage, Message, Reply *wireMessage
	GenerationID, PromptID      string
}

// asPlaceholder returns a message as it was before it had a text.
func asPlaceholder(m *wireMessage) *wireMessage {
	c := *m
	c.Text, c.Swipes, c.SwipeIndex, c.Status, c.Rev = "", nil, 0, "pending", 1
	return &c
}

// busy reports whether an operation failed because a reply is being written. If it
// did not fail, that reply has ended.
func (g *simulation) busy(p *chatModel, r *response) bool {
	g.t.Helper()
	if p.active != nil && r.code() == "busy" {
		g.done["busy"]++
		return true
	}
	if got := r.code(); got != "" {
		g.t.Fatalf("%+v: r.code() is %q, want none", r.fault, got)
	}
	g.awaitGeneration(p)
	return false
}

func (g *simulation) opSend(p *chatModel) bool {
	if p.active != nil && p.active.sibling {
		g.awaitGeneration(p) // its end moves the head
	}
	return g.sendRandomly(p, "")
}

func (g *simulation) opSendElsewhere(p *chatModel) bool {
	s := g.pickMessage(p, anyMessage)
	if s == nil {
		return false
	}
	return g.sendRandomly(p, s.id)
}

// sendRandomly sends a message below parent, "" = the head, and mostly asks for a reply.
func (g *simulation) sendRandomly(p *chatModel, parent string) bool {
	return g.sendMessage(p, parent, !g.chance(3))
}

func (g *simulation) sendMessage(p *chatModel, parent string, answered bool) bool {
	text := g.sentence()
	body := map[string]any{"text": text}
	if parent != "" {
		body["parentId"] = parent
	}
	if !answered {
		body["reply"] = false
	}
	if answered && g.chance(2) {
		body["whenBusy"] = pick(g, []string{"cancel", "queue"})
	}
	if g.chance(4) {
		body["clientMsgId"] = fmt.Sprintf("mine-%d", g.sentences)
	}
	previewed, summary := "", (*wireSummary)(nil)
	if parent == "" && answered && p.active == nil && g.chance(2) {
		summary = g.activeSummary(p)
		previewed = g.preview("/conversations/"+p.id, text)
	}
	r := g.do(apiCall{cmd: "chat.send", method: http.MethodPost, path: "/conversations/" + p.id + "/messages", ids: toChat(p), body: body, wait: answered && g.chance(2)})
	if g.busy(p, r) {
		return true
	}
	if parent == "" {
		parent = p.head()
	}
	var got startedReply
	r.into(g, &got)
	if got.UserMessage.Text != text {
		g.t.Fatalf("got.UserMessage.Text is %q, want %q", got.UserMessage.Text, text)
	}
	if got.UserMessage.Role != "user" {
		g.t.Fatalf("got.UserMessage.Role is %q, want %q", got.UserMessage.Role, "user")
	}
	g.checkParent(got.UserMessage, parent)
	g.recordTexts(got.UserMessage)
	p.change(func() {
		p.insert(got.UserMessage)
		p.setHead(got.UserMessage.ID)
		if answered {
			g.startReply(p, p.messages[got.UserMessage.ID], got.Message, got.GenerationID)
		}
	})
	g.awaitIfWaited(p, r, got.Message)
	if previewed != "" && got.PromptID != "" && reflect.DeepEqual(summary, g.activeSummary(p)) { // the turn may have summarised more
		var sent struct{ Messages json.RawMessage }
		g.get(&sent, "/prompts/%s", got.PromptID)
		messages, _ := withoutRecall(sent.Messages)
		if got, want := withoutMood(messages), withoutMood(previewed); got != want {
			g.t.Fatalf("what was sent to the model: withoutMood(messages) is %q, want %q", got, want)
		}
		g.done["prompts"]++
	}
	return true
}

// awaitIfWaited processes the end of the reply if the request waited for it.
func (g *simulation) awaitIfWaited(p *chatModel, r *response, m *wireMessage) {
	g.t.Helper()
	if p.active == nil || !r.waited {
		return
	}
	g.awaitGeneration(p)
	if m != nil {
		g.checkMessage(p, m)
	}
}

func (g *simulation) checkParent(m *wireMessage, parent string) {
	g.t.Helper()
	if m.ParentID == nil {
		if parent != "" {
			g.t.Fatalf("parent of message %s: parent is %q, want none", m.ID, parent)
		}
		return
	}
	if *m.ParentID != parent {
		g.t.Fatalf("parent of message %s: *m.ParentID is %q, want %q", m.ID, *m.ParentID, parent)
	}
}

func (g *simulation) opRegenerate(p *chatModel) bool {
	s := g.pickMessage(p, assistant)
	if s == nil {
		return false
	}
	body := map[string]any{}
	if g.chance(3) {
		body["wish"] = "More " + pick(g, []string{"rain", "warmth", "silence"}) + "."
	}
	r := g.must(apiCall{cmd: "gen.regenerate", method: http.MethodPost, path: "/messages/" + s.id + "/regenerate", ids: toMessage(s), body: body, wait: g.chance(2)})
	g.applyRegenerate(p, s, r)
	return true
}

// applyRegenerate updates the model after a regenerate: another swipe, or another
// message if the reply has children.
func (g *simulation) applyRegenerate(p *chatModel, s *messageModel, r *response) {
	g.t.Helper()
	var got startedReply
	r.into(g, &got)
	if s.greeting {
		g.applyCardGreeting(p, s, got.Message)
		return
	}
	if got.GenerationID == "" {
		g.t.Fatalf("got.GenerationID is %q, want more", got.GenerationID)
	}
	if !p.hasChildren(s) {
		p.active = &activeGeneration{gen: got.GenerationID, kind: "regenerate", message: s}
		g.awaitIfWaited(p, r, got.Message)
		return
	}
	p.active = &activeGeneration{gen: got.GenerationID, kind: "regenerate", sibling: true}
	m := got.Message
	if m.ID == s.id {
		g.t.Fatalf("a reply with children is regenerated as a new message: got %q, want another", m.ID)
	}
	g.checkParent(m, s.parent)
	p.change(func() { p.active.message = p.insert(asPlaceholder(m)) })
	g.awaitIfWaited(p, r, m)
}

// applyCardGreeting resets a greeting to the texts of the card.
func (g *simulation) applyCardGreeting(p *chatModel, s *messageModel, m *wireMessage) {
	g.t.Helper()
	texts := make([]string, len(m.Swipes))
	for i, v := range m.Swipes {
		texts[i] = v.Text
	}
	card := g.docs.cardGreetings(texts)
	if card == nil {
		g.t.Fatalf("no card has the greetings %q: card is nil, want a value", texts)
	}
	p.change(func() {
		for i, text := range card {
			if i == len(s.swipes) {
				s.swipes = append(s.swipes, &swipeModel{id: m.Swipes[i].ID})
			}
			s.swipes[i].text, s.swipes[i].deleted = text, false
		}
		p.selectSwipe(s, s.swipes[0], "complete")
	})
	g.checkMessage(p, m)
}

func (g *simulation) opContinue(p *chatModel) bool {
	s := g.pickMessage(p, func(s *messageModel) bool { return assistant(s) && strings.TrimSpace(s.now().text) != "" })
	if s == nil {
		return false
	}
	r := g.must(apiCall{cmd: "gen.continue", method: http.MethodPost, path: "/messages/" + s.id + "/continue", ids: toMessage(s), wait: g.chance(2)})
	var got startedReply
	r.into(g, &got)
	p.active = &activeGeneration{gen: got.GenerationID, kind: "continue", message: s, swipe: s.now().swipe, base: s.now().text}
	g.awaitIfWaited(p, r, got.Message)
	return true
}

func (g *simulation) opImpersonate(p *chatModel) bool {
	r := g.do(apiCall{cmd: "gen.impersonate", method: http.MethodPost, path: "/conversations/" + p.id + "/impersonate", ids: toChat(p)})
	if g.busy(p, r) {
		return true
	}
	var got startedReply
	r.into(g, &got)
	p.active = &activeGeneration{gen: got.GenerationID, kind: "impersonate"}
	return true
}

// cancel cancels the generation, which may just have ended.
func (g *simulation) cancel(p *chatModel) {
	g.must(apiCall{cmd: "gen.cancel", method: http.MethodPost, path: "/generations/" + p.active.gen + "/cancel", ids: map[string]string{"generationId": p.active.gen}})
	g.done["stop"]++
}

func (g *simulation) opSwipe(p *chatModel) bool {
	s := g.pickMessage(p, hasText)
	if s == nil {
		return false
	}
	left, at := s.visibleSwipes(), s.swipeIndex()
	var word string
	to := at
	switch g.rng.IntN(4) {
	case 0:
		word, to = "next", min(at+1, len(left)-1)
	case 1:
		word, to = "prev", max(at-1, 0)
	default:
		to = g.rng.IntN(len(left))
		word = left[to].id
	}
	body := map[string]any{"swipe": word}
	if g.chance(3) {
		body["ifRev"] = g.rev(p, s)
	}
	another := word == "next" && g.chance(2)
	if another {
		body["generateIfLast"] = true
	}
	r := g.must(apiCall{cmd: "message.swipe", method: http.MethodPost, path: "/messages/" + s.id + "/swipe", ids: toMessage(s), body: body, wait: g.chance(2)})
	if another && to == at && written(s) {
		g.applyRegenerate(p, s, r)
		return true
	}
	if to != at {
		p.change(func() { p.selectSwipe(s, left[to], "") })
	}
	g.applyChange(p, s, r)
	return true
}

// applyChange updates the model after a message was changed. The status is that of the
// selected swipe, which the response contains.
func (g *simulation) applyChange(p *chatModel, s *messageModel, r *response) {
	g.t.Helper()
	var got startedReply
	r.into(g, &got)
	if l := s.now(); l.status == "" {
		finish := got.Message.Swipes[got.Message.SwipeIndex].Finish
		if finish != "cancelled" && finish != "interrupted" && finish != "error" {
			finish = "complete"
		}
		p.setState(s, func(l *messageState) { l.status = finish })
	}
	g.checkMessage(p, got.Message)
}

func (g *simulation) opEdit(p *chatModel) bool {
	s := g.pickMessage(p, anyMessage)
	if s == nil {
		return false
	}
	text := g.sentence()
	body := map[string]any{"text": text}
	if g.chance(2) {
		body["mode"] = "in_place"
	}
	if g.chance(3) {
		body["ifRev"] = g.rev(p, s)
	}
	r := g.must(apiCall{cmd: "message.edit", method: http.MethodPatch, path: "/messages/" + s.id, ids: toMessage(s), body: body})
	var got startedReply
	r.into(g, &got)
	p.change(func() {
		if hasText(s) {
			p.setText(s, text)
			return
		}
		m := got.Message
		if len(m.Swipes) == 0 {
			g.t.Fatalf("m.Swipes is %+v, want more", m.Swipes)
		}
		s.swipes = append(s.swipes, &swipeModel{id: m.Swipes[len(m.Swipes)-1].ID, text: text})
		p.selectSwipe(s, s.swipes[len(s.swipes)-1], "complete")
	})
	g.checkMessage(p, got.Message)
	return true
}

// opBranch edits a message as a branch, or with a new reply, or both.
func (g *simulation) opBranch(p *chatModel) bool {
	s := g.pickMessage(p, anyMessage)
	if s == nil {
		return false
	}
	mode, answered := "branch", false
	if s.role == "user" && g.chance(2) {
		answered = true
		mode = pick(g, []string{"branch", "in_place"})
	}
	text := g.sentence()
	body := map[string]any{"text": text, "mode": mode}
	if answered {
		body["regenerate"] = true
	}
	r := g.must(apiCall{cmd: "message.edit", method: http.MethodPatch, path: "/messages/" + s.id, ids: toMessage(s), body: body, wait: answered && g.chance(2)})
	var got startedReply
	r.into(g, &got)
	if mode == "in_place" {
		g.startReplyToEdit(p, s, text, &got)
	} else {
		if got.Message.Role != s.role {
			g.t.Fatalf("got.Message.Role is %q, want %q", got.Message.Role, s.role)
		}
		if got.Message.Text != text {
			g.t.Fatalf("got.Message.Text is %q, want %q", got.Message.Text, text)
		}
		g.checkParent(got.Message, s.parent)
		p.change(func() {
			m := p.insert(got.Message)
			p.setHead(m.id)
			if answered {
				g.startReply(p, m, got.Reply, got.GenerationID)
			}
		})
	}
	g.recordTexts(got.Message)
	g.awaitIfWaited(p, r, got.Reply)
	return true
}

// startReply adds a reply that is being written at the end of the shown branch.
func (g *simulation) startReply(p *chatModel, said *messageModel, reply *wireMessage, generation string) {
	g.t.Helper()
	g.checkParent(reply, said.id)
	s := p.insert(asPlaceholder(reply))
	p.setHead(s.id)
	p.active = &activeGeneration{gen: generation, kind: "reply", message: s}
}

// startReplyToEdit updates the model after an edit in place with a new reply.
func (g *simulation) startReplyToEdit(p *chatModel, s *messageModel, text string, got *startedReply) {
	g.t.Helper()
	old := p.replyTo(s)
	p.change(func() {
		p.setText(s, text)
		switch {
		case old == nil:
			g.startReply(p, s, got.Reply, got.GenerationID)
		case p.hasChildren(old):
			g.checkParent(got.Reply, s.id)
			p.active = &activeGeneration{gen: got.GenerationID, kind: "regenerate", sibling: true, message: p.insert(asPlaceholder(got.Reply))}
		default:
			if got.Reply.ID != old.id {
				g.t.Fatalf("got.Reply.ID is %q, want %q", got.Reply.ID, old.id)
			}
			p.active = &activeGeneration{gen: got.GenerationID, kind: "regenerate", message: old}
		}
	})
	if p.active.message != s {
		g.checkMessage(p, got.Message)
	}
}
