package tavern

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo"
	"nodest/llm"
)

// Build makes the request of a turn. Of in it uses everything but Compiled and Sources.
//
// The order is that of the preset. What NodeST adds comes directly before the chat (rules for tools,
// documents, profile, notes) and behind the message that is answered (findings). With Options.Context
// set, history is left out from the oldest message on, and examples from the first block on that does
// not fit; prompts, insertions into the chat and the message that is answered stay. If these alone do
// not fit, the following is left out in this order: summaries, world-book entries that a key brought
// in, lowest order first, documents, findings, other entries of world books. Then the reply gets less
// room, down to a quarter of it, with a warning.
//
// Errors: fault.ContextTooLarge if the rest does not fit even so, as for framework.Build; the cause
// when ctx ends.
func Build(ctx context.Context, in *framework.Input, play *Play) (*framework.Prompt, *Result, error) {
	b := newBuilder(ctx, in, play)
	b.readChat()
	b.readCard()
	if err := b.scan(); err != nil {
		return nil, nil, err
	}
	b.buildFrame()
	b.buildInjections()
	b.buildEnd()
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err := b.fit(); err != nil {
		return nil, nil, err
	}
	return b.prompt(), b.result(), nil
}

// builder is one build. The steps of Build fill it from top to bottom.
type builder struct {
	ctx     context.Context
	in      *framework.Input
	play    *Play
	c       *Compiled
	common  *framework.Common
	env     *macro.Env
	scripts *framework.ScriptRun
	task    Trigger

	chat    chatState
	texts   cardTexts
	world   *worldinfo.Output
	slots   []slot
	inserts []insertion
	groups  []inserted // inserts, grouped
	ends    ends

	dropped  []framework.Dropped
	warnings []framework.Warning
}

// replyPriming is what a provider adds to a request for the beginning of the reply, in tokens, as
// SillyTavern reckons.
const replyPriming = 3

// usualOrder is the order among insertions of one depth that a prompt has without its own, and that
// of everything else.
const usualOrder = 100

func newBuilder(ctx context.Context, in *framework.Input, play *Play) *builder {
	b := &builder{ctx: ctx, in: in, play: play, c: play.Compiled, task: play.Trigger}
	if b.task == "" {
		b.task = triggerOf(in.Instruction)
	}
	b.common = framework.NewCommon(in, b.c.name())
	b.env = b.newEnv()
	b.dropped = append(b.dropped, b.c.dropped...)
	b.warnings = append(b.warnings, b.c.warnings...)
	return b
}

// triggerOf is the kind of reply that an instruction asks for.
func triggerOf(in *framework.Instruction) Trigger {
	if in != nil {
		switch in.Task {
		case llm.Continue:
			return Continue
		case llm.Impersonate:
			return Impersonate
		}
	}
	return Normal
}

// newEnv returns the values of macros that are known from the start.
func (b *builder) newEnv() *macro.Env {
	o := &b.in.Options
	e := &macro.Env{
		Names: macro.People{User: b.in.Persona.Name, Char: b.c.name()},
		Model: macro.Model{Name: b.play.Model, MaxContext: o.Context, MaxReply: o.Reserve, Generation: string(b.task)},
		Now:   o.Now, Rand: b.play.Rand, Seed: o.PickSeed, Done: b.ctx.Done(),
		Local: b.play.State.Variables.Clone(), Global: b.play.Globals.Clone(),
	}
	if e.Rand == nil {
		e.Rand = rand.New(rand.NewPCG(o.Seed, o.PickSeed)).Float64
	}
	if o.Language == framework.Chinese {
		e.Locale = macro.Chinese
	}
	return e
}

func (b *builder) result() *Result {
	return &Result{State: State{Variables: b.env.Local, Timed: b.world.Timed}, Globals: b.env.Global, World: b.world}
}

func (b *builder) drop(source framework.Source, id, name, reason string) {
	b.dropped = append(b.dropped, framework.Dropped{Source: source, ID: id, Name: name, Reason: reason})
}

func (b *builder) warn(code, path, detail string) {
	b.warnings = append(b.warnings, framework.Warning{Code: code, Path: path, Detail: detail})
}

// kind says how a message of the prompt is treated.
type kind int

const (
	plain    kind = iota
	heading       // announces the chat or an example: stays alone
	example       // a message of the example dialogue: stays alone
	finished      // made by framework.Common
)

// piece is a message of the prompt in the making.
type piece struct {
	kind  kind
	role  llm.Role
	name  string // name of the speaker, where it is sent or goes before the text
	parts []part
	one   [1]part         // most messages have one, which needs no memory of its own
	block framework.Block // block of a finished piece
}

// part is a text in a message. sep stands before it unless it is the first.
type part struct {
	entry    framework.Entry
	text     string
	sep      string
	order    float64 // order of a world-book entry
	optional int     // above 0: may be left out where mandatory prompts do not fit, higher ones first
	number   int     // number of an optional part, where one is left out; 0 = none
}

// onePart makes a piece of one text.
func onePart(k kind, role llm.Role, e framework.Entry, text string) *piece {
	e.Role = role
	p := &piece{kind: k, role: role}
	p.one[0] = part{entry: e, text: text}
	p.parts = p.one[:]
	return p
}

// text joins the parts.
func (p *piece) text() string {
	switch {
	case p.kind == finished:
		return p.block.Message.Text
	case len(p.parts) == 1:
		return p.parts[0].text
	}
	var s strings.Builder
	for i := range p.parts {
		if i > 0 {
			s.WriteString(p.parts[i].sep)
		}
		s.WriteString(p.parts[i].text)
	}
	return s.String()
}

func (p *piece) blank() bool {
	if p.kind == finished {
		return len(p.block.Entries) == 0
	}
	for i := range p.parts {
		if p.parts[i].text != "" {
			return false
		}
	}
	return true
}

// measure counts the tokens of the parts and returns their sum. The first one gets what the message
// costs besides the others.
func (b *builder) measure(p *piece) int {
	if p.kind == finished {
		return p.block.Tokens()
	}
	if len(p.parts) == 0 {
		return 0
	}
	sum := framework.MessageOverhead
	for i := range p.parts {
		e := &p.parts[i].entry
		e.Tokens = b.common.Count(p.parts[i].text)
		sum += e.Tokens
	}
	first := &p.parts[0].entry
	if b.play.Count == nil {
		first.Tokens += framework.MessageOverhead
		if b.turns() == TurnsSingle && p.role != llm.System { // which puts a name before it
			name := b.common.Count(b.in.Persona.Name + b.c.name() + ": ")
			first.Tokens, sum = first.Tokens+name, sum+name
		}
		return sum
	}
	whole := b.play.Count(p.message())
	first.Tokens = whole - (sum - framework.MessageOverhead - first.Tokens)
	return whole
}

func (p *piece) message() llm.Message {
	return llm.Message{Role: p.role, Name: p.name, Text: p.text()}
}

// addTo adds the message to a prompt. Entries point to the beginnings of their texts.
func (p *piece) addTo(prompt *framework.Prompt) {
	if p.kind == finished {
		prompt.Add(p.block)
		return
	}
	at := 0
	for i := range p.parts {
		x := &p.parts[i]
		if i > 0 {
			at += utf8.RuneCountInString(x.sep)
		}
		e := x.entry
		e.Message, e.At = len(prompt.Messages), at
		prompt.Entries = append(prompt.Entries, e)
		prompt.Tokens += e.Tokens
		if i < len(p.parts)-1 {
			at += utf8.RuneCountInString(x.text)
		}
	}
	prompt.Messages = append(prompt.Messages, p.message())
}

// entries are those of the parts.
func (p *piece) entries() []framework.Entry {
	list := slices.Clone(p.block.Entries)
	for i := range p.parts {
		list = append(list, p.parts[i].entry)
	}
	return list
}

// named puts the name of the speaker before the text, unless names are sent as a property.
func (b *builder) named(p *piece) {
	if p.name == "" || len(p.parts) == 0 {
		return
	}
	if b.play.Names {
		if !isExample(p.name) {
			p.name = sanitized(p.name)
		}
		return
	}
	p.parts[0].text = spokenBy(p.name, p.parts[0].text, b.in.Persona.Name, b.c.name()) + p.parts[0].text
	p.name = ""
}

// RoleOf reads a role of the documents; system unless it says another.
func RoleOf(word string) llm.Role {
	switch strings.ToLower(word) {
	case "user":
		return llm.User
	case "assistant", "model":
		return llm.Assistant
	}
	return llm.System
}

// roleOfNumber reads a role as SillyTavern counts them.
func roleOfNumber(n int) llm.Role {
	switch n {
	case 1:
		return llm.User
	case 2:
		return llm.Assistant
	}
	return llm.System
}

func (b *builder) utility() *card.Utility { return &b.c.preset.Utility }
