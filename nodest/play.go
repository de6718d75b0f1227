package nodest

import (
	"context"
	"fmt"

	"nodest/chat"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/tavern"
	"nodest/framework/worldinfo"
	"nodest/nodest/carried"
)

// A prompt of the SillyTavern dialect hands something on to the next one: variables, and the timed effects
// of world-book entries. It is stored when the model is asked, named by the generation, and named by the
// text when that is stored. So a reply without a text changes nothing, also if its process dies, and one
// that is written again begins where the first one began.

// readPlay reads what the prompt starts from: what the branch has before the reply, or after the
// text that is lengthened.
func (h *storedChat) readPlay(tx Tx, p *past) (err error) {
	if !h.plays {
		return nil
	}
	id := h.conv.PlayID
	// At the end of the shown branch the Play in force is known, or that there is none: it need not be walked.
	last := h.target != nil && h.target.ID == h.conv.HeadID
	switch {
	case last && (id == "" || h.kind != chat.KindRegenerate):
	case h.kind == chat.KindReply || h.kind == chat.KindRegenerate:
		id, err = tx.Chats.PlayAt(h.conv.ID, h.target.ParentID)
	case h.kind == chat.KindContinue:
		id, err = tx.Chats.PlayAt(h.conv.ID, h.target.ID)
	}
	if err != nil {
		return err
	}
	if p.play, err = chat.PlayOf(tx.Chats, id); err != nil {
		return err
	}
	if n := len(p.messages); n > 0 && (p.unread || p.summary != nil) {
		length, err := tx.Chats.Count(h.conv.ID, p.messages[n-1].ID)
		if err != nil {
			return err
		}
		p.earlier = max(0, length-n)
	}
	p.globals, err = tx.Chats.Characters.Variables()
	return err
}

// make is the prompt of the turn in the dialect of its character.
func (t *turn) make(ctx context.Context) (*framework.Prompt, error) {
	d := t.setup.Docs
	if d.Tavern == nil {
		return framework.Build(ctx, *t.input)
	}
	play, unreadable := t.playing()
	p, after, err := tavern.Build(ctx, t.input, play)
	if err == nil {
		p.Warnings = append(p.Warnings, unreadable...)
	}
	t.after = after
	return p, err
}

// playing is what the build needs besides the input that all dialects share, with warnings about what could
// not be read of it.
func (t *turn) playing() (*tavern.Play, []framework.Warning) {
	set := &t.setup.Docs.Settings
	info := set.WorldInfoRules()
	p := &tavern.Play{
		Compiled: t.setup.Docs.Tavern, Trigger: t.trigger(), WorldInfo: &info, Greeting: t.greeting(), Explain: t.gen.ID == "", Forced: t.found.lore,
		Settings: tavern.Settings{
			PinExamples: set.Prompt.PinExamples, IgnoreSystemPrompt: !set.Prompt.CardSystemPrompt, IgnorePostHistory: !set.Prompt.CardPostHistory,
		},
	}
	p.Before, p.Prefills = t.past.before(), t.setup.model.Begins
	p.Model = t.setup.model.Name
	p.Overrides = tavern.Overrides(t.setup.Overrides)
	if note := t.setup.Note; note != nil {
		p.Note = &tavern.Note{
			Text: note.Text, Position: tavern.NotePosition(note.Position), Depth: note.Depth, Role: tavern.RoleOf(note.Role), Interval: note.Interval, Scan: note.Scan,
		}
	}
	var unreadable []framework.Warning
	p.State, p.Globals, unreadable = carried.Read(t.past.play, t.past.globals)
	return p, unreadable
}

// before counts the messages that were not read. The user's are estimated: both speak in turn, so the first message that was
// read tells who spoke before it.
func (p *past) before() worldinfo.Before {
	b := worldinfo.Before{Messages: p.earlier, Users: p.earlier / 2}
	if p.front < len(p.messages) && p.messages[p.front].Role != chat.RoleUser {
		b.Users = (p.earlier + 1) / 2
	}
	return b
}

// trigger is the kind of the reply by SillyTavern's words.
func (t *turn) trigger() tavern.Trigger {
	switch t.gen.Kind {
	case chat.KindContinue:
		return tavern.Continue
	case chat.KindImpersonate:
		return tavern.Impersonate
	case chat.KindRegenerate:
		return tavern.Swipe
	}
	return tavern.Normal
}

// keepPlay stores what the prompt hands on, and has g name it. An impersonation makes no text that could.
func (t *turn) keepPlay(tx Tx, g *chat.Generation) error {
	if t.after == nil || g.Kind == chat.KindImpersonate {
		return nil
	}
	g.Globals = carried.Changed(t.past.globals, t.after.Globals)
	g.PlayID = t.past.play.ID
	next := carried.Play(g.ConversationID, &t.after.State)
	if string(next.Variables) == string(t.past.play.Variables) && string(next.Timed) == string(t.past.play.Timed) {
		return nil
	}
	if !next.Fits() {
		t.prompt.Warnings = append(t.prompt.Warnings, framework.Warning{
			Code: "variables_too_large", Detail: fmt.Sprintf("the variables of the chat exceed %d bytes or are too many; what this prompt changed of them is not kept", chat.MaxPlay),
		})
		return nil
	}
	g.PlayID = next.ID
	return tx.Chats.InsertPlay(next)
}

// scriptMacros are those of the scripts that change a reply before it is stored. They begin with what the
// prompt hands on.
func (t *task) scriptMacros(g *chat.Generation) *macro.Env {
	env, after := t.setup.ScriptMacros(g.CreatedAt), t.shown.after
	if env != nil && after != nil {
		env.Local, env.Global = after.State.Variables.Clone(), after.Globals.Clone()
	}
	return env
}

// keepOf has g name what scripts have changed of the variables, and returns the Play that is to be stored with
// the text; nil = the prompt's stays, also where the variables became too large.
func (t *task) keepOf(env *macro.Env, g *chat.Generation) *chat.Play {
	after := t.shown.after
	if env == nil || after == nil {
		return nil
	}
	if env.Global.Changed() {
		g.Globals = carried.Changed(t.shown.past.globals, env.Global)
	}
	if !env.Local.Changed() {
		return nil
	}
	next := carried.Play(g.ConversationID, &tavern.State{Variables: env.Local, Timed: after.State.Timed})
	if !next.Fits() {
		return nil
	}
	g.PlayID = next.ID
	return next
}

// greeting is which greeting of the card the chat began with; below 0 = none, or the first message was not read.
func (t *turn) greeting() int {
	if t.past.unread || len(t.past.messages) == 0 || !t.past.messages[0].Greeting {
		return -1
	}
	return t.past.messages[0].SwipeIndex
}

// setGlobals makes the changes of a generation to the user's variables, if its text is kept.
func setGlobals(tx Tx, g *chat.Generation, kept bool) error {
	sent := g.Globals
	g.Globals = nil
	if !kept || len(sent) == 0 {
		return nil
	}
	stored, err := tx.Chats.Characters.LockVariables()
	if err != nil {
		return err
	}
	merged, err := carried.Merge(stored, sent)
	if err != nil || merged == nil {
		return err
	}
	return tx.Chats.Characters.PutVariables(merged)
}
