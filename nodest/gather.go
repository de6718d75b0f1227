package nodest

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/framework"
	"nodest/llm"
	"nodest/memory"
	"nodest/nodest/record"
	"nodest/nodest/tools"
	"nodest/summary"
)

// turn is one request to a model in the making.
type turn struct {
	setup   *turnSetup
	version int64 // of the chat that is read
	begun   time.Time
	base    string // continue: the text so far
	swipeID string // continue: the swipe that is lengthened
	begunBy string // continue: the generation that wrote the text so far; "" = none did
	variant int    // number of texts that the message already has
	input   framework.Input
	task    llm.Task

	question Question      // for its sources
	uses     []memory.Use  // what was recalled, best first
	numbers  tools.Numbers // of the sources that may be cited
	search   []Search

	kits         []*Toolkit
	tools        []tools.Tool   // that the model may call
	replyReserve int            // with tools: the tokens that are kept for the reply
	trace        chat.ToolTrace // Path is "" while nothing was offered

	chat      record.Chat       // that was read
	at        int64             // version of the chat that was read
	recalled  []record.Recalled // texts of the chat that were recalled
	read      func() error      // reads the chat into input; it may be called again
	elsewhere bool              // it does not go on with the shown branch
	shortened bool              // a summary was asked for
	made      *summary.Summary  // for this prompt alone; nil = that in force counts
	summary   *summary.Summary  // in the prompt; nil = none
	front     int               // messages before it
	preview   bool              // no model is asked
	behind    int               // messages behind those that are read
	length    int               // of what is sent of the chat, in UTF-16 units
	lines     int               // messages that are sent

	unread   bool                // older history was not read
	warnings []framework.Warning // from before the build

	// Known once it is built.
	prompt    *framework.Prompt
	buildTime time.Duration
}

func (t *turn) built(p *framework.Prompt, took time.Duration) {
	p.Warnings = append(p.Warnings, t.warnings...)
	if t.unread {
		p.Dropped = append(p.Dropped, framework.Dropped{
			Source: framework.SourceHistory, Name: "older messages", Reason: framework.DropBudget,
		})
	}
	t.prompt, t.buildTime = p, took
}

// request is what the model is asked, with added tokens to come behind the prompt.
func (t *turn) request(added int) llm.Request {
	o := t.setup.Options
	r := llm.Request{
		Model: t.setup.model.Name, Messages: t.prompt.Messages,
		Temperature: o.Temperature, TopP: o.TopP, Stop: o.Stop,
		Variant: t.variant, Task: t.task, UserName: t.setup.Persona.Name, UserText: t.input.User.Text,
		CharName: cmp.Or(t.setup.Docs.Card.Nickname, t.setup.Docs.Card.Name),
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

// gather makes the prompt of a generation: it reads the chat, asks the sources and builds.
func (e *Engine) gather(ctx context.Context, t *task) (*turn, error) {
	begun := time.Now()
	e.publishStage(t, "building", begun)
	gathered := t.step(func(times *chat.Timing, took chat.Span) { times.Gather = &took })
	turn, err := e.read(ctx, t)
	gathered()
	if err != nil {
		return nil, err
	}
	turn.begun = begun
	e.askSources(ctx, turn, func(name string) func() {
		e.publishStage(t, name, begun)
		return t.step(func(times *chat.Timing, took chat.Span) {
			times.Sources = append(times.Sources, chat.SourceTiming{Name: name, Took: took})
		})
	})
	built := t.step(func(times *chat.Timing, took chat.Span) { times.Build = &took })
	prompt, err := e.build(ctx, turn)
	built()
	if err != nil {
		return nil, err
	}
	turn.built(prompt, time.Since(begun))
	return turn, nil
}

// read reads what the prompt of a generation is built from. It uses the setup that
// was read when the generation was accepted, unless it had to wait.
func (e *Engine) read(ctx context.Context, t *task) (*turn, error) {
	s, target := t.setup, t.target
	if t.queued {
		fresh := s.query
		fresh.waited = true
		if target != nil {
			fresh.messageID = target.ID
		}
		var err error
		if s, err = e.loadSetup(ctx, t.userID, fresh); err != nil {
			return nil, err
		}
		target = s.target
	}
	turn := &turn{setup: s, version: t.version}
	if t.queued {
		turn.version = s.Conversation.Version
	}
	g := t.generation()
	if err := turn.setTarget(g, target); err != nil {
		return nil, err
	}
	t.startsAt(utf8.RuneCountInString(turn.base))
	e.prepare(turn, seedOf(g.ID))
	turn.elsewhere = g.Kind != chat.KindReply && target != nil && target.ID != s.Conversation.HeadID
	turn.read = func() error {
		return e.store.View(ctx, t.userID, func(tx Tx) error { return e.compose(tx, turn, g, target) })
	}
	err := turn.read()
	if err == nil && turn.overfull() {
		_, err = e.shorten(ctx, turn)
	}
	return turn, err
}

// setTarget notes the text that a generation adds to or replaces.
func (t *turn) setTarget(g *chat.Generation, target *chat.Message) error {
	if target == nil {
		return nil
	}
	t.variant = len(target.Swipes)
	if g.Kind != chat.KindContinue {
		return nil
	}
	chosen := target.Chosen()
	if chosen == nil || strings.TrimSpace(chosen.Text) == "" {
		return fault.InvalidField("messageId", "state", "the message has no text to continue")
	}
	t.base, t.swipeID, t.begunBy = chosen.Text, chosen.ID, chosen.GenerationID
	return nil
}

// compose reads the chat into the input of the build.
func (e *Engine) compose(tx Tx, t *turn, g *chat.Generation, target *chat.Message) error {
	in := &t.input
	head := t.setup.Conversation.HeadID
	switch g.Kind {
	case chat.KindReply, chat.KindRegenerate:
		head = target.ParentID
	case chat.KindContinue:
		head = target.ID
		t.continues()
	case chat.KindImpersonate:
		t.task = llm.Impersonate
		in.Instruction = &framework.Instruction{Task: llm.Impersonate}
	}
	path, err := e.readHistory(tx, t, head)
	if err != nil {
		return err
	}
	if g.Kind == chat.KindRegenerate {
		path = t.upToUser(path)
		if t.variant, err = textsAt(tx, target); err != nil {
			return err
		}
	}
	t.noteQuestion(tx.UserID(), g.CreatedAt, path, "")
	in.History = t.chatOf(path)
	switch g.Kind {
	case chat.KindReply:
		t.answerLast()
		t.opens()
	case chat.KindRegenerate:
		t.answerLast()
		t.input.User = t.withWish(t.input.User, g.Instruction)
	}
	return e.readPrevious(tx, t)
}

// textsAt counts the swipes of a reply and of the replies beside it, deleted ones
// included.
func textsAt(tx Tx, reply *chat.Message) (n int, err error) {
	beside, err := tx.Chats.Children(reply.ConversationID, reply.ParentID)
	for _, m := range beside {
		n += len(m.Swipes)
	}
	return n, err
}

func (t *turn) continues() {
	t.task = llm.Continue
	t.input.Instruction = &framework.Instruction{Task: llm.Continue}
}

// prepare sets the parts of the input that do not depend on the chat.
func (e *Engine) prepare(t *turn, seed uint64) {
	s := t.setup
	d := s.Docs
	t.input = framework.Input{
		Compiled: d.Compiled, Note: s.Note, Settings: s.Settings, Persona: s.Persona, Scripts: d.Scripts.Run(e.counts),
		Options: d.BuildOptions(), Cache: e.counts,
	}
	o := &t.input.Options
	o.Context, o.Reserve = budget(s.Options, s.model)
	o.Tokenizer, o.StrictTurns = framework.TokenizerFor(s.model.Provider, s.model.Name), s.model.StrictTurns
	o.Seed, o.PickSeed = seed, seedOf(s.Conversation.ID)
}

// Defaults in tokens: the context of a model that reports none, and the reserve for a
// reply without a limit.
const (
	unknownContext = 32_768
	usualReply     = 4_096
)

// budget returns how many tokens request and reply may have together, and how
// many of them are kept for the reply.
func budget(o character.TurnOptions, m Model) (context, reserve int) {
	context = m.ContextTokens
	switch set := o.ContextTokens; {
	case set != nil && (context <= 0 || *set < context):
		context = *set
	case context <= 0:
		context = unknownContext
	}
	reserve = min(usualReply, context/4)
	if o.MaxTokens != nil {
		reserve = min(*o.MaxTokens, context/2)
	}
	return context, reserve
}

// seedOf fixes the random macros of a generation, so that its prompt can be made
// again.
func seedOf(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}

// readHistory reads the branch that ends in head, oldest first, as far back as the budget can
// reach. What is older is noted as dropped, unread, so the cost of a turn does not grow with the
// chat. Messages that the active summary (turn.summary) replaces are left out.
func (e *Engine) readHistory(tx Tx, t *turn, head string) ([]*chat.Message, error) {
	conv := t.setup.Conversation
	version := int64(0)
	if t.setup.save != nil {
		if t.setup.save.HeadID == "" {
			m, err := chat.FreshGreeting(tx.Chats, conv)
			return []*chat.Message{m}, err
		}
		head, version = t.setup.save.HeadID, t.setup.save.Version
		t.at = version
	}
	if head == "" {
		return nil, nil
	}
	t.summary, t.front = t.made, 0
	if t.made == nil {
		k, err := chat.ActiveSummary(tx.Chats, conv.SummaryID, head, version)
		if err != nil {
			return nil, err
		}
		if k != nil {
			t.summary = k.Summary
		}
	}
	path, err := e.readSummarised(tx, t, head)
	if err != nil {
		return nil, err
	}
	t.measure(path)
	return path, nil
}

// readSummarised is readHistory with the summary that was found.
func (e *Engine) readSummarised(tx Tx, t *turn, head string) ([]*chat.Message, error) {
	room := t.input.Options.Context - t.input.Options.Reserve
	read := t.reader(tx, head)
	if t.summary == nil {
		path, more, err := e.readTail(tx, t, head, "", room, read)
		t.unread = more
		return path, err
	}
	tail, more, err := e.readTail(tx, t, head, t.summary.Range.EndID, room, read)
	if err != nil {
		return nil, err
	}
	front := func(before string, size int) ([]*chat.Message, bool, error) { // as it was when the end was read
		return tx.Chats.PathAt(t.setup.Conversation.ID, t.at, head, before, size)
	}
	a, ok, err := chat.ReadSummarised(t.summary, tail, t.behind, more, room, front)
	if err != nil {
		return nil, err
	}
	if !ok {
		t.summary = nil
		return e.readSummarised(tx, t, head)
	}
	t.front, t.unread = len(a.Front), a.More
	return slices.Concat(a.Front, a.Rest), nil
}

// reader reads the branch that ends in head, as it is or as the save point of the
// setup has it.
func (t *turn) reader(tx Tx, head string) chat.PageReader {
	if s := t.setup.save; s != nil {
		return func(before string, size int) ([]*chat.Message, bool, error) {
			return tx.Chats.PathAt(s.ConversationID, s.Version, s.HeadID, before, size)
		}
	}
	return func(before string, size int) ([]*chat.Message, bool, error) {
		return tx.Chats.Path(t.setup.Conversation.ID, head, before, size)
	}
}

// readTail reads the end of a branch, as far back as room or the message until.
func (e *Engine) readTail(tx Tx, t *turn, head, until string, room int, read chat.PageReader) ([]*chat.Message, bool, error) {
	conv := t.setup.Conversation.ID
	if t.setup.save == nil {
		if path, more, ok := e.histories.find(conv, t.version, head, until, room); ok {
			t.at = t.version
			return path, more, nil
		}
	}
	path, more, err := chat.ReadPath("", room, until, read)
	if err != nil {
		return nil, false, err
	}
	now, err := tx.Chats.Conversation(conv) // its version in this snapshot
	if err != nil {
		return nil, false, err
	}
	if t.setup.save == nil {
		t.at = now.Version
		e.histories.put(conv, now.Version, path, !more, room)
	}
	return path, more, nil
}

// chatOf turns messages into the chat of a prompt, with the summary in its place.
func (t *turn) chatOf(path []*chat.Message) []framework.Message {
	history := make([]framework.Message, 0, len(path)+1)
	t.chat = record.Chat{}
	add := func(version int64, messages ...*chat.Message) {
		shown, lines := t.chat.Add(version, messages...)
		for i, line := range lines {
			if shown[i].Role == chat.RoleUser {
				line = withText(line, t.input.Scripts.User(line.Text))
			}
			history = append(history, line)
			t.addWish(history, shown[i].Chosen())
		}
	}
	if t.summary != nil && t.front < len(path) {
		add(t.at, path[:t.front]...)
		history, path = append(history, t.chat.AddSummary(t.summary)), path[t.front:]
	}
	add(t.at, path...)
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

// upToUser cuts what follows the newest user message, if there is one behind the
// summary.
func (t *turn) upToUser(path []*chat.Message) []*chat.Message {
	for i := len(path) - 1; i >= t.front; i-- {
		if path[i].Role == chat.RoleUser {
			return path[:i+1]
		}
	}
	return path
}

// readPrevious reads the previous request of the conversation, which the provider may
// have cached: the one that was sent last, even if its reply has been deleted since.
func (e *Engine) readPrevious(tx Tx, t *turn) error {
	conv := t.setup.Conversation.ID
	last := e.histories.lastSent(conv)
	if last.promptID == "" || !e.opts.Alone { // another process may have sent a newer one
		id, err := tx.LastPrompt(conv)
		if err != nil || id == "" {
			return err
		}
		if id != last.promptID {
			p, err := tx.Prompt(id)
			if err != nil {
				return err
			}
			messages, err := record.Messages(tx.Chats, conv, p.Body)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
			last = sentPrompt{id, p.GenerationID, framework.HashesOf(messages)}
		}
	}
	t.input.Previous, t.input.PreviousOf = last.hashes, last.generationID
	return nil
}
