package nodest

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"nodest/chat"
	"nodest/framework"
	"nodest/framework/tavern"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest/record"
)

// turn is one request to a model in the making.
type turn struct {
	setup   *turnSetup
	gen     *chat.Generation // that it is for; of a preview, which asks no model, it has no id
	history history
	past    *past // the part of history that was read
	task    llm.Task
	input   *framework.Input

	question  *Question    // for its sources
	found     *found       // by them
	offer     *offer       // the tools that the model may call
	chat      *record.Chat // the part of the input that is stored
	sent      sent         // how much of the chat is sent
	shortened bool         // a summary was asked for
	since     time.Time    // when the making began

	*product // known once it is built
}

// product is what a turn builds.
type product struct {
	after     *tavern.Result // further results of the build; nil = the prompt is of the other dialect
	prompt    *framework.Prompt
	buildTime time.Duration
}

// newTurn is a turn with the parts of the input that do not depend on the chat.
func (e *Engine) newTurn(s *turnSetup, h history, g *chat.Generation) *turn {
	d := s.Docs
	in := &framework.Input{
		Compiled: d.Compiled, Note: s.Note, Settings: s.Settings, Persona: s.Persona, Scripts: d.Scripts.Run(e.counts),
		Options: d.BuildOptions(), Cache: e.counts,
	}
	o := &in.Options
	o.Context, o.Reserve = budget(s.Options, s.model)
	o.Tokenizer, o.StrictTurns = framework.TokenizerFor(s.model.Provider, s.model.Name), s.model.StrictTurns
	o.Seed, o.PickSeed = op.Seed(g.ID), op.Seed(s.Conversation.ID)
	return &turn{setup: s, gen: g, history: h, input: in, found: &found{}, offer: &offer{}, product: &product{}, since: time.Now()}
}

// gather makes the prompt of a generation: it reads the chat, asks the sources and builds.
func (e *Engine) gather(ctx context.Context, t *task) (*turn, error) {
	since := time.Now()
	e.publishStage(t, "building", since)
	read := t.watch.step(func(times *chat.Timing, took chat.Span) { times.Gather = &took })
	turn, err := e.read(ctx, t)
	read()
	if err != nil {
		return nil, err
	}
	turn.since = since
	e.askSources(ctx, turn, func(name string) func() {
		e.publishStage(t, name, since)
		return t.watch.step(func(times *chat.Timing, took chat.Span) {
			times.Sources = append(times.Sources, chat.SourceTiming{Name: name, Took: took})
		})
	})
	built := t.watch.step(func(times *chat.Timing, took chat.Span) { times.Build = &took })
	prompt, err := turn.buildShorter(ctx)
	built()
	if err != nil {
		return nil, err
	}
	turn.built(prompt, time.Since(since))
	return turn, nil
}

// read reads what the prompt of a generation is built from. It uses the setup that
// was read when the generation was accepted, unless it had to wait.
func (e *Engine) read(ctx context.Context, t *task) (*turn, error) {
	if t.queued {
		if err := e.renew(ctx, t); err != nil {
			return nil, err
		}
	}
	turn := e.newTurn(t.setup, t.history, t.generation())
	if err := turn.read(ctx); err != nil {
		return nil, err
	}
	if longer := turn.past.longer; longer != nil {
		t.text.Follow(utf8.RuneCountInString(longer.Text))
	}
	return turn, turn.shortenOverfull(ctx)
}

// renew reads again what a chat is played with, for a generation that had to wait.
func (e *Engine) renew(ctx context.Context, t *task) error {
	q := *t.setup.query
	q.waited = true
	q.messageID, q.typed = t.messageID, ""
	s, err := e.loadSetup(ctx, t.userID, q)
	if err != nil {
		return err
	}
	s.retold = cmp.Or(s.retold, t.setup.retold) // from the message beside which a new one is written
	t.setup, t.history = s, &storedChat{engine: e, userID: t.userID, conv: s.Conversation, kind: t.generation().Kind, target: s.target, plays: s.Docs.Tavern != nil}
	return nil
}

// read reads the chat into the input of the build. It may be called again.
func (t *turn) read(ctx context.Context) error {
	if err := t.readPast(ctx); err != nil {
		return err
	}
	switch t.gen.Kind {
	case chat.KindContinue:
		t.instruct(llm.Continue, "")
	case chat.KindImpersonate:
		t.instruct(llm.Impersonate, "")
	}
	t.noteQuestion(t.gen.CreatedAt, "")
	t.input.History = t.lines()
	switch t.gen.Kind {
	case chat.KindReply:
		t.answerLast()
		t.instructFound()
		t.opens()
	case chat.KindRegenerate:
		t.answerLast()
		t.input.User = t.withWish(t.input.User, t.gen.Instruction)
		t.question.Unasked, t.question.Retold = t.gen.MessageID, t.setup.retold
		t.instructFound()
	}
	return nil
}

func (t *turn) readPast(ctx context.Context) (err error) {
	o := &t.input.Options
	if t.past, err = t.history.read(ctx, o.Context-o.Reserve); err != nil {
		return err
	}
	t.input.Previous, t.input.PreviousOf = t.past.previous.Hashes, t.past.previous.GenerationID
	t.measure()
	return nil
}

// instruct has the model do something else than to answer the last message.
func (t *turn) instruct(task llm.Task, text string) {
	t.task, t.input.Instruction = task, &framework.Instruction{Task: task, Text: text}
}

// lines are the messages that were read as lines of a prompt, with the summary in its place.
func (t *turn) lines() []framework.Message {
	p := t.past
	history := make([]framework.Message, 0, len(p.messages)+1)
	t.chat = &record.Chat{}
	rest := p.messages
	if p.summary != nil && p.front < len(rest) {
		history = append(t.addLines(history, rest[:p.front]), t.chat.AddSummary(p.summary))
		rest = rest[p.front:]
	}
	return t.addLines(history, rest)
}

func (t *turn) addLines(history []framework.Message, messages []*chat.Message) []framework.Message {
	shown, lines := t.chat.Add(t.past.version, messages...)
	for i, line := range lines {
		if shown[i].Role == chat.RoleUser && t.setup.Docs.Tavern == nil {
			line = withText(line, t.input.Scripts.User(line.Text))
		}
		history = append(history, line)
		t.addWish(history, shown[i].Chosen())
	}
	return history
}

// addWish puts the rewrite instruction of the last text into the user's message before
// it. An instruction in the text of that message, as in logs of the app, was for another
// reply: it is removed directly before a text that we generated.
func (t *turn) addWish(conv []framework.Message, written *chat.Swipe) {
	for i := len(conv) - 1; i >= 0 && conv[i].Role != framework.RoleSummary; i-- {
		if conv[i].Role != chat.RoleUser {
			continue
		}
		if written.Wish != "" || written.GenerationID != "" && i == len(conv)-2 {
			conv[i] = t.withWish(conv[i], written.Wish)
		}
		return
	}
}

// withWish is a user's message with a rewrite instruction in place of an earlier one;
// "" = none.
func (t *turn) withWish(m framework.Message, wish string) framework.Message {
	if m.Text == "" {
		return m
	}
	return withText(m, framework.WithRewrite(m.Text, wish, t.setup.Docs.Language))
}

// withText is a message with another text, which is that of no revision.
func withText(m framework.Message, text string) framework.Message {
	if text != m.Text {
		m.Text, m.ID = text, ""
	}
	return m
}

// answerLast makes the user's message at the end of the history the one that is
// answered.
func (t *turn) answerLast() {
	h := t.input.History
	if len(h) == 0 || h[len(h)-1].Role != chat.RoleUser {
		return
	}
	t.input.History, t.input.User = h[:len(h)-1], h[len(h)-1]
}

func (t *turn) built(p *framework.Prompt, took time.Duration) {
	p.Warnings = slices.Concat(p.Warnings, t.found.warnings, t.setup.Docs.Warnings)
	if t.past.unread {
		p.Dropped = append(p.Dropped, framework.Dropped{
			Source: framework.SourceHistory, Name: "older messages", Reason: framework.DropBudget,
		})
	}
	t.prompt, t.buildTime, t.sent.room = p, took, roomIn(p)
}

// request is what the model is asked, with added tokens to come behind the prompt.
func (t *turn) request(added int) llm.Request {
	o := t.setup.Options
	r := llm.Request{
		Model: t.setup.model.Name, Messages: t.prompt.Messages,
		Temperature: o.Temperature, TopP: o.TopP, Stop: o.Stop,
		Variant: t.past.texts, Task: t.task, UserName: t.setup.Persona.Name, UserText: t.input.User.Text,
		CharName: cmp.Or(t.setup.Docs.Card.Nickname, t.setup.Docs.Card.Name),
	}
	if d := t.setup.Docs.Tavern; d != nil {
		d.Sample(&r)
		r.Begun = tavern.Begins(t.prompt)
	}
	if o.MaxTokens != nil {
		r.MaxTokens = *o.MaxTokens
		if o.ContextTokens != nil || t.setup.model.ContextTokens > 0 { // servers refuse what is larger than the context
			r.MaxTokens = min(r.MaxTokens, max(t.input.Options.Context-t.prompt.Tokens-added, 1))
		}
	}
	if text := t.prompt.UserText(); text != "" {
		r.UserText = text
	}
	return r
}
