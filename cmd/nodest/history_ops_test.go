package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// operation is one thing that the devices do.
type operation struct {
	name    string
	weight  int
	besides bool // also while a reply is being written
	do      func(g *game, p *plain) bool
}

// operations are all that there are, and how often each is drawn.
var operations = []operation{
	{"send", 30, true, (*game).opSend},
	{"send elsewhere", 6, false, (*game).opSendElsewhere},
	{"regenerate", 12, false, (*game).opRegenerate},
	{"continue", 4, false, (*game).opContinue},
	{"impersonate", 2, true, (*game).opImpersonate},
	{"swipe", 12, false, (*game).opSwipe},
	{"edit", 12, false, (*game).opEdit},
	{"edit as a branch", 6, false, (*game).opBranch},
	{"delete", 11, false, (*game).opDelete},
	{"undelete", 7, false, (*game).opUndelete},
	{"head", 9, false, (*game).opHead},
	{"stale", 4, false, (*game).opStale},
	{"race", 3, false, (*game).opRace},
	{"wrong", 2, true, (*game).opWrong},
	{"frame", 6, true, (*game).opFrame},
	{"reset", 2, true, (*game).opReset},
	{"save", 9, true, (*game).opSave},
	{"restore", 11, false, (*game).opRestore},
	{"preview save", 4, true, (*game).opPreviewSave},
	{"read save", 2, true, (*game).opReadSave},
	{"list saves", 1, true, (*game).opListSaves},
	{"delete save", 1, true, (*game).opDeleteSave},
	{"copy save", 2, false, (*game).opCopySave},
	{"fork", 2, false, (*game).opFork},
	{"archive", 1, false, (*game).opArchive},
	{"branches", 2, false, (*game).opBranches},
	{"search", 2, false, (*game).opSearch},
	{"documents", 5, true, (*game).opDocuments},
	{"memory", 10, true, (*game).opMemory},
	{"list memories", 1, true, (*game).opListMemories},
	{"search memory", 8, false, (*game).opSearchMemory},
	{"summarise", 3, false, (*game).opSummarise},
	{"change summary", 1, false, (*game).opChangeSummary},
	{"begin", 1, false, func(g *game, _ *plain) bool { g.begin(); return true }},
	{"forget", 1, false, (*game).opForget},
}

func toChat(p *plain) map[string]string   { return map[string]string{"conversationId": p.id} }
func toMessage(s *spot) map[string]string { return map[string]string{"messageId": s.id} }

// most is how many conversations there are at a time.
const most = 6

// begin makes a conversation.
func (g *game) begin() {
	g.t.Helper()
	if len(g.chats) >= most {
		g.opForget(pick(g, g.chats[1:]))
	}
	r := g.must(act{cmd: "chat.create", method: http.MethodPost, path: "/conversations", body: map[string]any{"characterId": g.docs.character}})
	var c wireChat
	r.into(g, &c)
	p := newPlain(c.ID, c.CharacterID)
	p.title = c.Title
	var page pageOf[*wireSpot]
	g.get(&page, "/conversations/%s/messages", c.ID)
	require.Len(g.t, page.Items, 1)
	p.change(func() {
		p.insert(page.Items[0])
		p.lead(page.Items[0].ID)
	})
	g.witness(page.Items[0])
	g.chats = append(g.chats, p)
	g.look(p, true)
}

// opForget deletes a conversation.
func (g *game) opForget(p *plain) bool {
	if len(g.chats) < 4 || p == g.chats[0] {
		return false
	}
	g.settle(p)
	g.must(act{cmd: "chat.delete", method: http.MethodDelete, path: "/conversations/" + p.id, ids: toChat(p)})
	g.chats = slices.DeleteFunc(g.chats, func(o *plain) bool { return o == p })
	g.saves = slices.DeleteFunc(g.saves, func(k *kept) bool { return k.chat == p })
	for id := range p.spots {
		delete(g.words, id)
	}
	return true
}

// sentence is a text that nobody has said before, with a word that a world book
// may look for.
func (g *game) sentence() string {
	g.talking++
	return fmt.Sprintf("Sentence %d about the %s.", g.talking, pick(g, []string{"harbour", "lamp", "storm", "茶館", "map"}))
}

// somewhere is a message that is there and that ok takes; nil if there is none.
// Those at the end of the shown branch are drawn more often.
func (g *game) somewhere(p *plain, ok func(*spot) bool) *spot {
	list := p.line
	if !g.chance(3) {
		list = p.shown()
		list = list[max(0, len(list)-6):]
	}
	var found []*spot
	for _, s := range list {
		if s.living() && ok(s) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return pick(g, found)
}

func anySpot(*spot) bool     { return true }
func assistant(s *spot) bool { return s.role == "assistant" }
func written(s *spot) bool   { return assistant(s) && !s.greeting }
func hasText(s *spot) bool   { return s.now().swipe != "" }

// begun is the answer to what may begin a generation.
type begun struct {
	UserMessage, Message, Reply *wireSpot
	GenerationID, PromptID      string
}

// asPlaceholder is a message before anything was written into it.
func asPlaceholder(m *wireSpot) *wireSpot {
	c := *m
	c.Text, c.Swipes, c.SwipeIndex, c.Status, c.Rev = "", nil, 0, "pending", 1
	return &c
}

// busy says whether an operation failed because a reply is being written; if it
// did not although one was, that reply has ended before.
func (g *game) busy(p *plain, r *reply) bool {
	g.t.Helper()
	if p.writing != nil && r.code() == "busy" {
		g.done["busy"]++
		return true
	}
	require.Empty(g.t, r.code(), "%+v", r.fault)
	g.settle(p)
	return false
}

func (g *game) opSend(p *plain) bool {
	if p.writing != nil && p.writing.sibling {
		g.settle(p) // the head moves at its end
	}
	return g.sends(p, "")
}

func (g *game) opSendElsewhere(p *plain) bool {
	s := g.somewhere(p, anySpot)
	if s == nil {
		return false
	}
	return g.sends(p, s.id)
}

// sends says something after a message; "" = the head.
func (g *game) sends(p *plain, parent string) bool { return g.says(p, parent, !g.chance(3)) }

func (g *game) says(p *plain, parent string, answered bool) bool {
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
		body["clientMsgId"] = fmt.Sprintf("mine-%d", g.talking)
	}
	told, summary := "", (*overlay)(nil)
	if parent == "" && answered && p.writing == nil && g.chance(2) {
		summary = g.inForce(p)
		told = g.preview("/conversations/"+p.id, text)
	}
	r := g.do(act{cmd: "chat.send", method: http.MethodPost, path: "/conversations/" + p.id + "/messages", ids: toChat(p), body: body, wait: answered && g.chance(2)})
	if g.busy(p, r) {
		return true
	}
	if parent == "" {
		parent = p.head()
	}
	var got begun
	r.into(g, &got)
	require.Equal(g.t, text, got.UserMessage.Text)
	require.Equal(g.t, "user", got.UserMessage.Role)
	g.follows(got.UserMessage, parent)
	g.witness(got.UserMessage)
	p.change(func() {
		p.insert(got.UserMessage)
		p.lead(got.UserMessage.ID)
		if answered {
			g.answers(p, p.spots[got.UserMessage.ID], got.Message, got.GenerationID)
		}
	})
	g.after(p, r, got.Message)
	if told != "" && got.PromptID != "" && reflect.DeepEqual(summary, g.inForce(p)) { // a turn may first have more summarised
		var sent struct{ Messages json.RawMessage }
		g.get(&sent, "/prompts/%s", got.PromptID)
		messages, _ := withoutRecall(sent.Messages)
		require.Equal(g.t, withoutMood(told), withoutMood(messages), "what was sent to the model")
		g.done["prompts"]++
	}
	return true
}

// after takes in the reply where the call has waited for it.
func (g *game) after(p *plain, r *reply, m *wireSpot) {
	g.t.Helper()
	if p.writing == nil || !r.waited {
		return
	}
	g.settle(p)
	if m != nil {
		g.agree(p, m)
	}
}

func (g *game) follows(m *wireSpot, parent string) {
	g.t.Helper()
	if m.ParentID == nil {
		require.Empty(g.t, parent, "parent of message %s", m.ID)
		return
	}
	require.Equal(g.t, parent, *m.ParentID, "parent of message %s", m.ID)
}

func (g *game) opRegenerate(p *plain) bool {
	s := g.somewhere(p, assistant)
	if s == nil {
		return false
	}
	body := map[string]any{}
	if g.chance(3) {
		body["wish"] = "More " + pick(g, []string{"rain", "warmth", "silence"}) + "."
	}
	r := g.must(act{cmd: "gen.regenerate", method: http.MethodPost, path: "/messages/" + s.id + "/regenerate", ids: toMessage(s), body: body, wait: g.chance(2)})
	g.rewrites(p, s, r)
	return true
}

// rewrites takes in the answer to what writes a reply anew: another swipe, or
// another message beside it where something follows it.
func (g *game) rewrites(p *plain, s *spot, r *reply) {
	g.t.Helper()
	var got begun
	r.into(g, &got)
	if s.greeting {
		g.greets(p, s, got.Message)
		return
	}
	require.NotEmpty(g.t, got.GenerationID)
	if !p.answered(s) {
		p.writing = &writing{gen: got.GenerationID, kind: "regenerate", spot: s}
		g.after(p, r, got.Message)
		return
	}
	p.writing = &writing{gen: got.GenerationID, kind: "regenerate", sibling: true}
	m := got.Message
	require.NotEqual(g.t, s.id, m.ID, "a reply that something follows is written beside it")
	g.follows(m, s.parent)
	p.change(func() { p.writing.spot = p.insert(asPlaceholder(m)) })
	g.after(p, r, m)
}

// greets sets a greeting back to the texts of the card.
func (g *game) greets(p *plain, s *spot, m *wireSpot) {
	g.t.Helper()
	texts := make([]string, len(m.Swipes))
	for i, v := range m.Swipes {
		texts[i] = v.Text
	}
	card := g.docs.greetings(texts)
	require.NotNil(g.t, card, "no card begins with %q", texts)
	p.change(func() {
		for i, text := range card {
			if i == len(s.swipes) {
				s.swipes = append(s.swipes, &variant{id: m.Swipes[i].ID})
			}
			s.swipes[i].text, s.swipes[i].gone = text, false
		}
		p.choose(s, s.swipes[0], "complete")
	})
	g.agree(p, m)
}

func (g *game) opContinue(p *plain) bool {
	s := g.somewhere(p, func(s *spot) bool { return assistant(s) && strings.TrimSpace(s.now().text) != "" })
	if s == nil {
		return false
	}
	r := g.must(act{cmd: "gen.continue", method: http.MethodPost, path: "/messages/" + s.id + "/continue", ids: toMessage(s), wait: g.chance(2)})
	var got begun
	r.into(g, &got)
	p.writing = &writing{gen: got.GenerationID, kind: "continue", spot: s, swipe: s.now().swipe, base: s.now().text}
	g.after(p, r, got.Message)
	return true
}

func (g *game) opImpersonate(p *plain) bool {
	r := g.do(act{cmd: "gen.impersonate", method: http.MethodPost, path: "/conversations/" + p.id + "/impersonate", ids: toChat(p)})
	if g.busy(p, r) {
		return true
	}
	var got begun
	r.into(g, &got)
	p.writing = &writing{gen: got.GenerationID, kind: "impersonate"}
	return true
}

// stop cancels what is being written, or what has just ended.
func (g *game) stop(p *plain) {
	g.must(act{cmd: "gen.cancel", method: http.MethodPost, path: "/generations/" + p.writing.gen + "/cancel", ids: map[string]string{"generationId": p.writing.gen}})
	g.done["stop"]++
}

func (g *game) opSwipe(p *plain) bool {
	s := g.somewhere(p, hasText)
	if s == nil {
		return false
	}
	left, at := s.left(), s.index()
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
	r := g.must(act{cmd: "message.swipe", method: http.MethodPost, path: "/messages/" + s.id + "/swipe", ids: toMessage(s), body: body, wait: g.chance(2)})
	if another && to == at && written(s) {
		g.rewrites(p, s, r)
		return true
	}
	if to != at {
		p.change(func() { p.choose(s, left[to], "") })
	}
	g.changed(p, s, r)
	return true
}

// changed takes in the answer to what changed a message. The status of a message
// is that of its text; how a text ended is told by the answer.
func (g *game) changed(p *plain, s *spot, r *reply) {
	g.t.Helper()
	var got begun
	r.into(g, &got)
	if l := s.now(); l.status == "" {
		finish := got.Message.Swipes[got.Message.SwipeIndex].Finish
		if finish != "cancelled" && finish != "interrupted" && finish != "error" {
			finish = "complete"
		}
		p.show(s, func(l *look) { l.status = finish })
	}
	g.agree(p, got.Message)
}

func (g *game) opEdit(p *plain) bool {
	s := g.somewhere(p, anySpot)
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
	r := g.must(act{cmd: "message.edit", method: http.MethodPatch, path: "/messages/" + s.id, ids: toMessage(s), body: body})
	var got begun
	r.into(g, &got)
	p.change(func() {
		if hasText(s) {
			p.say(s, text)
			return
		}
		m := got.Message
		require.NotEmpty(g.t, m.Swipes)
		s.swipes = append(s.swipes, &variant{id: m.Swipes[len(m.Swipes)-1].ID, text: text})
		p.choose(s, s.swipes[len(s.swipes)-1], "complete")
	})
	g.agree(p, got.Message)
	return true
}

// opBranch edits into a message of its own, or has an edit answered.
func (g *game) opBranch(p *plain) bool {
	s := g.somewhere(p, anySpot)
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
	r := g.must(act{cmd: "message.edit", method: http.MethodPatch, path: "/messages/" + s.id, ids: toMessage(s), body: body, wait: answered && g.chance(2)})
	var got begun
	r.into(g, &got)
	if mode == "in_place" {
		g.answersAgain(p, s, text, &got)
	} else {
		require.Equal(g.t, s.role, got.Message.Role)
		require.Equal(g.t, text, got.Message.Text)
		g.follows(got.Message, s.parent)
		p.change(func() {
			m := p.insert(got.Message)
			p.lead(m.id)
			if answered {
				g.answers(p, m, got.Reply, got.GenerationID)
			}
		})
	}
	g.witness(got.Message)
	g.after(p, r, got.Reply)
	return true
}

// answers is a reply that begins to be written, at the end of the shown branch.
func (g *game) answers(p *plain, said *spot, reply *wireSpot, generation string) {
	g.t.Helper()
	g.follows(reply, said.id)
	s := p.insert(asPlaceholder(reply))
	p.lead(s.id)
	p.writing = &writing{gen: generation, kind: "reply", spot: s}
}

// answersAgain is an edit in place whose reply is written anew.
func (g *game) answersAgain(p *plain, s *spot, text string, got *begun) {
	g.t.Helper()
	old := p.replyTo(s)
	p.change(func() {
		p.say(s, text)
		switch {
		case old == nil:
			g.answers(p, s, got.Reply, got.GenerationID)
		case p.answered(old):
			g.follows(got.Reply, s.id)
			p.writing = &writing{gen: got.GenerationID, kind: "regenerate", sibling: true, spot: p.insert(asPlaceholder(got.Reply))}
		default:
			require.Equal(g.t, old.id, got.Reply.ID)
			p.writing = &writing{gen: got.GenerationID, kind: "regenerate", spot: old}
		}
	})
	if p.writing.spot != s {
		g.agree(p, got.Message)
	}
}
