package framework

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"nodest/framework/keyscan"
	"nodest/llm"
)

// Build makes the request of a turn.
//
// The order is that of the preset, with the chat in the place that it lists (or
// at the end), entries of depth in the chat, what was found behind the text of
// the message that is answered, and the instruction last. Macros are replaced in
// everything but summaries and findings; what is blank then is left out. Messages
// are merged with Options.StrictTurns alone.
//
// With Options.Context set, what does not fit is dropped in this order: history,
// oldest first; summaries, oldest first; world-book entries that a key brought
// in, lowest order first; documents, which are shortened first; memories, least
// relevant first; the web block; the block of passages of documents. Nothing else is
// ever dropped: fault.ContextTooLarge says that the rest alone exceeds the budget, with
// its largest parts in details.parts. Build ends early, with the cause, when ctx ends.
func Build(ctx context.Context, in Input) (*Prompt, error) {
	if in.Options.StrictTurns {
		in.Options.Reserve += openingTokens // an opening that the request may need
	}
	b := newBuilder(ctx, &in)
	if err := b.search(); err != nil {
		return nil, err
	}
	b.buildFrame()
	b.buildChat()
	b.buildInstruction()
	if err := b.fit(); err != nil {
		return nil, err
	}
	return b.prompt(), nil
}

// defaultScanDepth is how many of the newest messages are searched for keys.
const defaultScanDepth = 20

// builder is one build. The steps of Build fill it from top to bottom.
type builder struct {
	ctx      context.Context
	in       *Input
	c        *Compiled
	counter  counter
	macros   macros
	settings []*item
	note     *item
	base     int         // index of the message that is answered in the chat; -1 = none
	hits     keyscan.Set // keys that occur in the scanned messages

	head, tail []piece // the frame before and behind the chat
	runs       []run   // the pieces that are inserted into the chat
	knowledge  *piece  // the documents, in head; nil = none
	documents  []KnowledgePart
	talk

	dropped  []Dropped
	warnings []Warning
}

// talk is the part of a request that comes from the chat.
type talk struct {
	answered  *piece // the message that is answered; nil = none
	findings  found
	behind    []piece // messages behind the base, by their order in the chat
	summaries []piece // before the base, oldest first
	history   []piece // other messages before the base that fit, oldest first
	last      *piece  // the instruction; nil = none
}

// piece is a message of the request in the making.
type piece struct {
	entry  Entry
	more   []Entry // entries that follow the text in the same message
	text   string
	name   string
	chat   int  // index in the chat; -1 = not of the chat
	keyed  bool // brought in by a key: may be dropped
	order  float64
	budget bool // dropped: did not fit
}

func (p *piece) tokens() int {
	n := p.entry.Tokens
	for i := range p.more {
		n += p.more[i].Tokens
	}
	return n
}

// run is what is inserted into the chat before the message at index at.
type run struct {
	at     int
	pieces []piece
}

func newBuilder(ctx context.Context, in *Input) *builder {
	b := &builder{ctx: ctx, in: in, c: in.Compiled, counter: newCounter(in.Options.Tokenizer, in.Cache)}
	if b.c == nil {
		b.c = Compile(in.Sources)
	}
	b.base = b.findBase()
	b.macros = macros{
		Char: b.c.name, User: in.Persona.Name, Seed: in.Options.Seed, PickSeed: in.Options.PickSeed,
		clock: clock{in.Options.Now, in.Options.LastUserAt, in.Options.Language},
	}
	if b.base >= 0 {
		b.macros.LastUserMessage = b.message(b.base).Text
	}
	for i := b.length() - 1; i >= 0; i-- {
		if m := b.message(i); roleOf(m.Role) == llm.Assistant {
			b.macros.LastCharMessage = m.Text
			break
		}
	}
	b.dropped = slices.Clone(b.c.dropped)
	if n := b.c.unread; n > 0 {
		b.warnings = append(b.warnings, Warning{Code: "too_many_keys", Detail: fmt.Sprintf(
			"the keys of the world books together are longer than %d MiB; %d entries were not looked for", maxKeys>>20, n)})
	}
	b.settings = b.requestSettings()
	if n := in.Note; n != nil {
		b.note = &item{source: SourceNote, name: "Author Note", text: n.Text, role: n.Role, position: noPosition, depth: n.Depth, constant: true}
	}
	return b
}

// length is that of the chat: the history and the user's message.
func (b *builder) length() int {
	if b.in.User.Text == "" {
		return len(b.in.History)
	}
	return len(b.in.History) + 1
}

func (b *builder) message(i int) *Message {
	if i < len(b.in.History) {
		return &b.in.History[i]
	}
	return &b.in.User
}

func (b *builder) isUser(i int) bool {
	if i == len(b.in.History) {
		return true
	}
	role := b.in.History[i].Role
	return role != RoleSummary && roleOf(role) == llm.User
}

// findBase returns the index of the message that is answered: the new one, else
// the newest of the user.
func (b *builder) findBase() int {
	i := b.length() - 1
	for i >= 0 && !b.isUser(i) {
		i--
	}
	return i
}

// requestSettings returns what the user says about themselves.
func (b *builder) requestSettings() []*item {
	var items []*item
	for i, s := range b.in.Settings {
		it := settingItem(s, b.in.Options.Language)
		it.id = "character"
		if s.Global {
			it.id = "global"
		}
		switch {
		case i > 0 && s.Global:
		case s.Disable:
			b.drop(it, DropDisabled)
		default:
			items = append(items, it)
		}
	}
	if p := b.in.Persona; !isBlank(p.Description) && !b.c.persona {
		it := settingItem(Setting{Name: p.Name, Text: p.Description}, b.in.Options.Language)
		it.source = SourcePersona
		items = append(items, it)
	}
	return items
}

// settingItem wraps a setting so that the model knows whom it describes.
func settingItem(s Setting, l Language) *item {
	w := l.words()
	it := &item{
		source: SourceSetting, name: s.Name, role: "user",
		text:     w.Setting + "\n\n<{{user}}'s_info>" + s.Text + "</{{user}}'s_info>",
		position: atDepth, order: s.Order, depth: max(s.Depth, 1), constant: true,
	}
	it.name = cmp.Or(it.name, w.SettingName)
	if isBlank(s.Text) {
		it.text = ""
	}
	if s.Position != nil && *s.Position >= beforeChar && *s.Position < atDepth {
		it.position = *s.Position
	}
	return it
}

// search looks for keys in the newest messages.
func (b *builder) search() (err error) {
	depth := cmp.Or(b.in.Options.ScanDepth, defaultScanDepth)
	var texts []string
	for i := b.length() - 1; i >= 0 && (depth < 0 || len(texts) < depth); i-- {
		if m := b.message(i); m.Role != RoleSummary || b.in.Options.ScanSummary {
			texts = append(texts, m.Text)
		}
	}
	slices.Reverse(texts)
	b.hits, err = b.c.keys.Search(b.ctx, texts, b.in.Cache.Memo())
	return err
}

func (b *builder) buildFrame() {
	placed := false
	for _, it := range b.c.frame.with(b.settings).all() {
		if it == placeOfChat {
			if placed {
				b.dropped = append(b.dropped, Dropped{Source: SourceHistory, ID: b.c.frame.historyID, Name: historyName, Reason: DropHistory})
			}
			placed = true
			continue
		}
		p, ok := b.framePiece(it)
		switch {
		case !ok:
		case placed:
			b.tail = append(b.tail, p)
		default:
			b.head = append(b.head, p)
		}
	}
	b.head = append(b.head, b.knowledgePieces()...)
	documents := len(b.head) - 1
	b.head = append(b.head, b.knownPieces()...)
	if len(b.documents) > 0 {
		b.knowledge = &b.head[documents]
	}
}

// knownPieces make the messages of the profile and the notes.
func (b *builder) knownPieces() (pieces []piece) {
	if p := b.in.Profile; len(p.Facts) > 0 {
		pieces = append(pieces, b.profilePiece(p))
	}
	if n := b.in.Notes; len(n.Documents) > 0 {
		pieces = append(pieces, b.notesPiece(n))
	}
	return pieces
}

// profilePiece makes the message of the profile.
func (b *builder) profilePiece(p Profile) piece {
	return b.listPiece(SourceProfile, "Profile", p.Heading, "\n- ", p.Facts)
}

// notesPiece makes the message of the notes.
func (b *builder) notesPiece(n Notes) piece {
	return b.listPiece(SourceDocument, "Notes", n.Heading, "\n", n.Documents)
}

// listPiece makes a message of items. Like everything that was said it has the rank of the user.
func (b *builder) listPiece(source Source, name, text, mark string, items []Memory) piece {
	p := piece{chat: -1, entry: Entry{
		Source: source, Name: name, Why: WhyFixed, Role: llm.User,
		Tokens: b.counter.count(text) + MessageOverhead,
	}}
	for _, item := range items {
		line := mark + item.Text
		text += line
		p.more = append(p.more, Entry{Source: source, ID: item.ID, Why: WhyFixed, Role: llm.User, Tokens: b.counter.count(line)})
	}
	p.text = text
	return p
}

// framePiece makes the message of an item of the frame. Keys count only when
// Options or the book of the item ask for it (FilterKeyed); without any, an entry that is
// not constant is never used.
func (b *builder) framePiece(it *item) (piece, bool) {
	why, key := cmp.Or(it.why, WhyFixed), ""
	filtered := !it.constant && it.position != noPosition && (b.in.Options.FilterKeyed || it.filter || len(it.keys) == 0)
	if it.constant {
		why = WhyConstant
	} else if filtered {
		var ok bool
		if why, key, ok = it.active(b.hits); !ok {
			b.drop(it, DropNoKey)
			return piece{}, false
		}
	}
	if it.persona && !isBlank(b.in.Persona.Description) {
		withPersona := *it
		withPersona.source, withPersona.text = SourcePersona, b.in.Persona.Description
		it = &withPersona
	}
	p, ok := b.piece(it, why, key)
	p.keyed = filtered
	return p, ok
}

func (b *builder) drop(it *item, reason string) {
	b.dropped = append(b.dropped, it.dropped(reason))
}

// piece makes the message of an item; false when nothing is in it.
func (b *builder) piece(it *item, why, key string) (piece, bool) {
	text := b.macros.expand(it.text)
	if isBlank(text) {
		b.drop(it, DropEmpty)
		return piece{}, false
	}
	p := piece{text: text, chat: -1, order: it.order, entry: Entry{
		Source: it.source, ID: it.id, Name: it.name, Why: why, Key: key, Role: roleOf(it.role),
		Tokens: b.counter.count(text) + MessageOverhead,
	}}
	if it.position != noPosition {
		position := it.position
		p.entry.Position = &position
	}
	return p, true
}

// buildChat makes what is inserted into the chat, the base, and what follows it.
func (b *builder) buildChat() {
	chat := b.c.chat.with(b.settings, b.note != nil)
	if b.note == nil {
		for _, items := range [][]*item{chat.top, chat.bottom} {
			for _, it := range items {
				b.drop(it, DropNoNote)
			}
		}
	}
	if b.base < 0 {
		b.dropWithoutBase(chat)
		return
	}
	place := placeByMessages(b.base)
	if b.in.Options.DepthMode == depthUserMessages {
		place = placeByUsers(b.base, b.isUser)
	}
	for _, in := range chat.insertions(b.base, b.note, place) {
		if r := b.run(in); len(r.pieces) > 0 {
			b.runs = append(b.runs, r)
		}
	}
	b.findings = newFound(b)
	if p, ok := b.chatPiece(b.base); ok {
		b.answered = &p
		b.findings.attach(b.answered)
	}
	for i := b.base + 1; i < b.length(); i++ {
		if p, ok := b.chatPiece(i); ok {
			b.behind = append(b.behind, p)
		}
	}
}

// dropWithoutBase drops what would be inserted into the chat, because there is no
// message to answer.
func (b *builder) dropWithoutBase(chat *layout) {
	for _, g := range chat.groups {
		for _, it := range g.items {
			b.drop(it, dropNoBase)
		}
	}
	if b.note == nil {
		return
	}
	for _, it := range slices.Concat(chat.top, []*item{b.note}, chat.bottom) {
		b.drop(it, dropNoBase)
	}
}

// run makes the messages of an insertion.
func (b *builder) run(in insertion) run {
	r := run{at: in.at}
	for _, it := range in.items {
		why, key, ok := it.active(b.hits)
		if !ok {
			b.drop(it, DropNoKey)
			continue
		}
		if p, ok := b.piece(it, why, key); ok {
			depth := in.depth
			p.entry.Depth = &depth
			p.keyed = why == WhyKey
			r.pieces = append(r.pieces, p)
		}
	}
	return r
}

// chatPiece makes the message of the chat at index i; false when it is blank.
func (b *builder) chatPiece(i int) (piece, bool) {
	m := *b.message(i)
	if i == len(b.in.History) {
		m.Role = string(llm.User)
	}
	if m.Role != RoleSummary {
		m.Text = b.expandAt(m.At, b.in.Scripts.Request(m.Role, m.Text, b.length()-1-i))
	}
	said, entry := m.Said()
	if i == b.base {
		entry.Source = SourceUser
	}
	if isBlank(m.Text) {
		b.dropped = append(b.dropped, Dropped{Source: entry.Source, ID: m.ID, Name: m.Name, Reason: DropEmpty})
		return piece{}, false
	}
	entry.Tokens = b.counter.count(m.Text) + MessageOverhead
	return piece{text: said.Text, name: said.Name, chat: i, entry: entry}, true
}

// expandAt replaces the macros of a message that was written at a time, so that it
// reads the same in every later request.
func (b *builder) expandAt(at time.Time, text string) string {
	now := b.macros.clock
	if !now.now.IsZero() && !at.IsZero() {
		b.macros.clock.now = at.In(now.now.Location())
	}
	defer func() { b.macros.clock = now }()
	return b.macros.expand(text)
}

func (b *builder) buildInstruction() {
	in := b.in.Instruction
	if in == nil {
		return
	}
	text := cmp.Or(in.Text, b.in.Options.Language.words().instruction(in.Task))
	role := cmp.Or(in.Role, llm.System)
	it := &item{source: SourceInstruction, id: string(in.Task), text: text, role: string(role), position: noPosition}
	if isBlank(text) {
		return
	}
	if p, ok := b.piece(it, WhyTask, ""); ok {
		b.last = &p
	}
}
