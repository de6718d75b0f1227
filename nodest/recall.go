package nodest

import (
	"context"
	"slices"
	"strings"
	"time"

	"nodest/chat"
	"nodest/fault"
	"nodest/framework"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// Memories go into a prompt between reading the chat and building the request:
// one search that has Options.RecallTimeout. Whatever goes wrong in it, the turn
// goes on without memories and says so (warnNoMemory).

// warnNoMemory is the warning of a prompt whose memories could not be asked for.
const warnNoMemory = "memory_unavailable"

// shownShare is the part of the room for the chat in which its newest messages
// are sure to be shown: the frame of the prompt takes some of the room, and
// tokens are estimated here.
const shownShare = 0.7

// readWords is how many of the newest messages are compared word by word with
// what was recalled; older ones are by their names. Their words are analysed in
// every turn, which at 40 messages took longer than the recall itself.
const readWords = 8

// ground is what of the chat a turn rests on, for its memories.
type ground struct {
	here  memory.Place    // the branch that is written
	shown []*chat.Message // messages of it that go into the prompt by themselves, oldest first
	extra string          // a text in the prompt that is no message of it; "" = none
	text  string          // what the user said last
	last  []string        // the turn before it: what the user said, and the reply
	now   time.Time
}

// rests notes the branch that is written, what was said last in it and when that is
// answered; text is said behind it and not stored, "" = nothing.
func (t *turn) rests(now time.Time, path []*chat.Message, text string) {
	now = now.In(t.scene.Zone)
	t.input.Options.Now, t.input.Options.LastUserAt = now, userSpokeAt(path, text != "")
	t.ground = ground{here: memory.Place{ConversationID: t.scene.Conversation.ID}, shown: path, extra: text, text: text, now: now}
	if s := t.scene.save; s != nil {
		t.ground.here.HeadID, t.ground.here.Version = s.HeadID, s.Version
	} else if len(path) > 0 {
		t.ground.here.HeadID = path[len(path)-1].ID
	}
	at := len(path) - 1
	for ; at >= 0 && t.ground.text == ""; at-- {
		if path[at].Role == chat.RoleUser && !path[at].Hidden {
			t.ground.text = memory.Clean(lang.RoleUser, path[at].Text())
		}
	}
	t.ground.last = turnBefore(path[:at+1])
}

// turnBefore returns the last text of the user in path and the reply to it, as memory
// reads them. Without the one or the other it is "".
func turnBefore(path []*chat.Message) []string {
	said, reply := "", ""
	for i := len(path) - 1; i >= 0 && said == ""; i-- {
		switch m := path[i]; {
		case m.Hidden:
		case m.Role == chat.RoleUser:
			said = memory.Clean(lang.RoleUser, m.Text())
		case m.Role == chat.RoleAssistant && reply == "":
			reply = memory.Clean(lang.RoleCharacter, m.Text())
		}
	}
	return []string{said, reply}
}

// userSpokeAt is when the user wrote last before the newest message, which is the
// last one of path unless something newer is known.
func userSpokeAt(path []*chat.Message, newer bool) time.Time {
	for _, m := range slices.Backward(path) {
		switch {
		case m.Hidden || strings.TrimSpace(m.Text()) == "":
		case newer && m.Role == chat.RoleUser:
			return m.CreatedAt
		default:
			newer = true
		}
	}
	return time.Time{}
}

// remembers says whether a turn is to have memories.
func (e *Engine) remembers(t *turn) bool {
	wanted := t.scene.Options.Memory
	return e.opts.Memory != nil && t.scene.Docs.Settings.Retrieval.Enabled && (wanted == nil || *wanted)
}

// recall reads the profile and finds what fits the turn. It never fails: without an
// answer in time the prompt has a warning in place of memories.
func (e *Engine) recall(ctx context.Context, userID string, t *turn) {
	limited, cancel := context.WithTimeout(ctx, e.opts.RecallTimeout)
	defer cancel()
	scene := t.scene.MemoryScene()
	ask := memory.Ask{
		CharacterID: t.scene.Docs.CharacterID, Here: t.ground.here, Text: t.ground.text, Names: scene.Names,
		Now: t.ground.now, Scene: &scene, Before: t.ground.last,
	}
	if ask.Text != "" {
		ask.Visible = t.visible()
	}
	hits, err := e.opts.Memory.Turn(limited, userID, ask, func(facts []memory.Memory) (known []string) {
		t.input.Profile = memory.ProfileOf(facts, t.scene.Docs.Language)
		for _, f := range t.input.Profile.Facts {
			known = append(known, f.ID)
		}
		return known
	})
	if err != nil {
		e.opts.Log.WarnContext(ctx, "turn continues without memories", "conversation", t.scene.Conversation.ID, "err", err)
		t.warnings = append(t.warnings, framework.Warning{Code: warnNoMemory, Detail: "memories could not be searched"})
		return
	}
	for i := range hits {
		t.input.Findings.Memories = append(t.input.Findings.Memories,
			framework.Memory{ID: hits[i].ID, Text: memory.LineOf(&hits[i], scene.Names)})
	}
	t.uses = append(memory.UsesOf(hits), memory.ProfileUses(t.input.Profile)...)
}

// visible is what the prompt shows anyway: of a chat that is too long for it the
// messages that are sure to have room, and the newest one in any case.
func (t *turn) visible() memory.Visible {
	o := t.input.Options
	room := int(float64(o.Context-o.Reserve) * shownShare)
	said := []memory.Message{{Text: t.ground.extra}}
	if t.summary != nil {
		said = append(said, memory.Message{Text: t.summary.Text})
	}
	for n, m := range slices.Backward(t.ground.shown) {
		s := m.Chosen()
		if s == nil || m.Hidden {
			continue
		}
		back := len(t.ground.shown) - n // from 1
		if room -= llm.EstimateTokens(s.Text); room < 0 && back > 1 {
			break
		}
		one := memory.Message{Evidence: memory.Evidence{
			ConversationID: m.ConversationID, MessageID: m.ID, RevisionID: s.RevisionID, Seq: m.Seq,
		}}
		if back <= readWords {
			one.Role, one.Text = lang.Role(m.Role), s.Text
		}
		said = append(said, one)
	}
	return memory.VisibleIn(said)
}

// used are the memories that are in the prompt: there may have been no room for
// some.
func (t *turn) used() []memory.Use {
	in := map[string]bool{}
	for _, en := range t.prompt.Entries {
		if en.Source == framework.SourceMemory || en.Source == framework.SourceProfile {
			in[en.ID] = true
		}
	}
	return ranked(slices.DeleteFunc(slices.Clone(t.uses), func(u memory.Use) bool { return !in[u.ID] }))
}

// ranked numbers uses in their order, from 1.
func ranked(uses []memory.Use) []memory.Use {
	for i := range uses {
		uses[i].Rank = i + 1
	}
	return uses
}

// unitsOf are the units that were recalled.
func unitsOf(uses []memory.Use) []string {
	var ids []string
	for _, u := range uses {
		if u.Recalled() {
			ids = append(ids, u.ID)
		}
	}
	return ids
}

// usesBefore is what was recalled for the text that a generation lengthens. It is
// read before that text changes.
func usesBefore(tx Tx, m *chat.Message, g *chat.Generation) ([]memory.Use, error) {
	if s := m.Chosen(); g.Kind != chat.KindContinue || s == nil || s.ID != g.SwipeID {
		return nil, nil
	}
	return chat.Uses(tx.Chats, m)
}

// keepUses stores what was recalled for the text that a generation has put into
// m, behind what was for its beginning (before).
func keepUses(tx Tx, m *chat.Message, g *chat.Generation, before []memory.Use) error {
	at := slices.IndexFunc(m.Swipes, func(s chat.Swipe) bool { return s.ID == g.SwipeID })
	uses := slices.Clone(before)
	for _, u := range g.Uses {
		if !slices.ContainsFunc(before, func(o memory.Use) bool { return o.ID == u.ID }) {
			uses = append(uses, u)
		}
	}
	if at < 0 || len(uses) == 0 {
		return nil
	}
	return tx.Memory.PutUses(m.ID, m.Swipes[at].RevisionID, ranked(uses))
}

// united are the ids of both lists, each once.
func united(a, b []string) []string {
	all := slices.Clone(a)
	for _, id := range b {
		if !slices.Contains(a, id) {
			all = append(all, id)
		}
	}
	return all
}

// RecalledFor returns what was recalled for the shown text of a reply, by rank, and
// then the facts of the profile (signal "profile").
// What was purged since is left out.
func (e *Engine) RecalledFor(ctx context.Context, userID, messageID string) ([]memory.Found, error) {
	found := []memory.Found{}
	err := e.store.View(ctx, userID, func(tx Tx) error {
		found = found[:0]
		m, err := chat.LiveMessage(tx.Chats, messageID)
		if err != nil {
			return err
		}
		uses, err := tx.Memory.Uses(m.ID)
		if err != nil || len(uses) == 0 {
			return err
		}
		characterID, err := speakerOf(tx, m)
		if err != nil {
			return err
		}
		found, err = memory.ReadFound(tx.Memory, characterID, uses)
		return err
	})
	return found, err
}

// speakerOf is the character that wrote the shown text of a reply: the
// conversation's, or the one that its generation was asked of.
func speakerOf(tx Tx, m *chat.Message) (characterID string, err error) {
	if s := m.Chosen(); s != nil && s.GenerationID != "" {
		g, err := tx.Generation(s.GenerationID)
		if err == nil && g.Options.CharacterID != "" {
			return g.Options.CharacterID, nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
	}
	conv, err := tx.Chats.Conversation(m.ConversationID)
	if err != nil {
		return "", err
	}
	return conv.CharacterID, nil
}
