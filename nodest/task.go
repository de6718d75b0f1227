package nodest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"nodest/chat"
	"nodest/cite"
	"nodest/framework"
	"nodest/llm"
	"nodest/op"
)

// Why a generation is stopped from outside.
var (
	errCancelled = errors.New("cancelled by the user")
	errStopping  = errors.New("the server is shutting down")
	errLost      = errors.New("another process ended the generation, or it is gone")
	errTooLong   = errors.New("the generation took too long")
)

// task is a generation that this process works on, from the moment it is
// accepted until its end is stored. One goroutine (play) does the work;
// everybody else reads through the methods.
type task struct {
	id             string
	userID         string
	conversationID string
	messageID      string // "" = impersonation

	device  string        // Event.By of what it causes
	target  *chat.Message // what is to be written: see assignment
	version int64         // of the chat when it was accepted
	setup   *turnSetup    // what accepting has looked up, the key of the request included
	queued  bool          // it had to wait, so the setup is old
	ctx     context.Context
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when the end is stored
	full    chan struct{} // asks for a checkpoint

	mu      sync.Mutex
	watch   stopwatch
	gen     chat.Generation // but for what it has written
	offset  int             // of the text in its message, in code points
	text    growing
	thought growing
	block   growing // text of the open block
	thinks  int     // where the open block of thoughts begins in thought, in bytes
	blocks  []chat.Block
	written int // text, reasoning and blocks together, in code points
	saved   int // of them at the last checkpoint
	said    int // text and reasoning of the model, in bytes
	usage   *llm.Usage
	earlier llm.Usage // of the requests before this one
	model   string    // that answers
	wanted  string    // the name by which it was asked
	by      string    // provider that answers

	buildTime time.Duration
	asked     int             // tokens of all requests
	asking    int             // of the last one
	reported  bool            // the provider has told the usage of the last one
	requests  int             // to the model
	interim   bool            // the text so far goes when more comes: tools were called behind it
	apart     bool            // what the model thinks next is about another request
	tools     *chat.ToolTrace // nil = the model has none
	sources   []cite.Source   // that the model was shown
	cites     bool            // they were found for this reply
	ruled     bool            // the model was told how to cite
	request   []llm.Message   // with sources
	sent      sent            // of the chat
	finished  llm.Finish
	ending    bool // its end is being stored: the state in memory may be older than published events
}

// growing is a text that only grows. A string taken from it stays valid.
type growing struct {
	b     strings.Builder
	runes int
}

// add returns the length of s in code points.
func (g *growing) add(s string) int {
	n := utf8.RuneCountInString(s)
	g.b.WriteString(s)
	g.runes += n
	return n
}

func newTask(c *op.Call, s *turnSetup, as *assignment) *task {
	// A generation outlives the request that began it.
	ctx, cancel := context.WithCancelCause(context.Background())
	watch := stopwatch{zero: as.gen.CreatedAt}
	watch.times.Accepted = watch.now()
	return &task{
		id: as.gen.ID, userID: c.UserID, conversationID: as.gen.ConversationID, messageID: as.gen.MessageID,
		device: c.By(), target: as.target, version: as.version, setup: s,
		queued: as.gen.Status == chat.GenQueued,
		ctx:    ctx, cancel: cancel, done: make(chan struct{}), full: make(chan struct{}, 1),
		gen: *as.gen, watch: watch,
	}
}

// stopWaiting cancels a task that has not had its turn yet.
func (t *task) stopWaiting(cause error) {
	t.mu.Lock()
	waiting := t.gen.Status == chat.GenQueued
	t.mu.Unlock()
	if waiting {
		t.cancel(cause)
	}
}

// generation returns the generation as it is now, text included. Its slices and
// strings are the caller's to read.
func (t *task) generation() *chat.Generation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now()
}

// current is generation; sure is false while the end is being stored. The end is
// published before the task knows that it is stored, and a client that has seen it
// must not get a running generation.
func (t *task) current() (g *chat.Generation, sure bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now(), !t.ending
}

// startEnding notes that the end is about to be stored.
func (t *task) startEnding() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending = true
}

func (t *task) now() *chat.Generation {
	g := t.gen
	if !g.Ended() {
		g.Text, g.Reasoning, g.Blocks = t.text.b.String(), t.thought.b.String(), slices.Clone(t.blocks)
		g.NameModels(t.model, t.wanted)
		g.Timing, g.Tools = t.watch.soFar(), t.tools
		if t.usage != nil {
			u := *t.usage
			g.Usage = &u
		}
	}
	return &g
}

// setStored copies the generation as it was stored. Only the task knows the time
// of the first token.
func (t *task) setStored(g *chat.Generation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.gen.FirstTokenAt
	t.gen = *g
	if t.gen.FirstTokenAt == nil {
		t.gen.FirstTokenAt = first
	}
}

// setPrompt sets the prompt that the generation is stored with.
func (t *task) setPrompt(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gen.PromptID = id
}

// startsAt sets where the text begins in its message, in code points.
func (t *task) startsAt(offset int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offset = offset
}

// noteChunk notes what a chunk contains besides its text.
func (t *task) noteChunk(c llm.Chunk, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said += len(c.Text) + len(c.Reasoning)
	if c.Usage != nil {
		t.usage, t.reported = new(t.earlier.Plus(*c.Usage)), true
	}
	t.model, t.wanted = cmp.Or(c.Model, t.model), cmp.Or(c.Asked, t.wanted)
	if c.Provider != "" {
		t.by = c.Provider
	}
	if c.Text == "" && c.Reasoning == "" {
		return
	}
	t.watch.times.LastToken = new(t.watch.now())
	if t.gen.FirstTokenAt == nil {
		at := now.UTC().Truncate(time.Millisecond)
		t.gen.FirstTokenAt, t.gen.Status = &at, chat.GenStreaming
	}
}

// addReasoning appends to the reasoning and returns the position, in code points.
func (t *task) addReasoning(s string) (off int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	off = t.thought.runes
	t.written += t.thought.add(s)
	return off
}

// addPiece adds a piece of the reply. It returns the position of the piece in the
// text that it belongs to: the message's text, or its own block. Positions are
// code points; those of a continue count from the beginning of the message.
func (t *task) addPiece(p framework.Piece) (off int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case p.State == framework.StateOpen && p.Part == framework.PartThink:
		t.thinks = t.thought.b.Len()
	case p.State == framework.StateOpen:
		t.block = growing{}
		t.blocks = append(t.blocks, chat.Block{Part: string(p.Part), At: t.offset + t.text.runes})
	case p.State == framework.StateClose:
	case p.Part == framework.PartThink:
		off = t.thought.runes
		t.written += t.thought.add(p.Text)
	case p.Part == framework.PartText:
		off = t.offset + t.text.runes
		t.written += t.text.add(p.Text)
	case len(t.blocks) > 0:
		off = t.block.runes
		t.written += t.block.add(p.Text)
		t.blocks[len(t.blocks)-1].Text = t.block.b.String()
	}
	return off
}

// unclosed makes text of a block that the reply has ended in, and returns it with
// its position. Thoughts stay thoughts if there is anything else.
func (t *task) unclosed(p framework.Piece) (text string, off int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Part == framework.PartThink {
		if t.text.runes > 0 || len(t.blocks) > 0 {
			return "", 0
		}
		all := t.thought.b.String()
		text, t.thought = all[t.thinks:], growing{}
		t.thought.add(all[:t.thinks])
	} else {
		text, t.blocks = t.block.b.String(), t.blocks[:len(t.blocks)-1]
	}
	off = t.offset + t.text.runes
	if off > 0 {
		text = p.Text + text
	}
	t.text.add(text)
	return text, off
}

// textToReasoning turns the text so far into reasoning. It returns the positions of
// both, and whether text had been published.
func (t *task) textToReasoning(p framework.Piece) (thought, text int, told bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	thought, told = t.thought.runes, t.text.runes > 0
	t.text, t.block, t.blocks = growing{}, growing{}, nil
	t.written += t.thought.add(p.Text)
	return thought, t.offset, told
}

// blocksToText makes a reply without text out of the text of its blocks. It returns the
// text with its position; "" = nothing has changed.
func (t *task) blocksToText() (text string, off int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.runes > 0 {
		return "", 0
	}
	if text = chat.TextOfBlocks(t.blocks, t.offset > 0); text != "" {
		t.blocks = nil
		t.text.add(text)
	}
	return text, t.offset
}

// unsaved is how much was written since the last checkpoint, in code points.
func (t *task) unsaved() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written - t.saved
}

// toSave is generation for a checkpoint.
func (t *task) toSave() *chat.Generation {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saved = t.written
	return t.now()
}

// noteRequest notes what the model is about to be asked.
func (t *task) noteRequest(turn *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buildTime = turn.buildTime
	t.sent = turn.sent()
	t.watch.times.Asked = new(t.watch.now())
	t.by, t.model = turn.setup.model.Provider, turn.setup.model.Name
}

// beginRequest notes that the model is asked once more, with added tokens behind the prompt.
func (t *task) beginRequest(turn *turn, added int) {
	turn.trace.Rounds++
	t.noteSources(turn)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	t.reported, t.asking = false, turn.prompt.Tokens+added
	t.asked += t.asking
	if t.usage != nil {
		t.earlier = *t.usage
	}
	t.apart = t.thought.runes > 0
}

// noteSources notes what the model was shown so far, and how the tools were used.
func (t *task) noteSources(turn *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ruled = t.ruled || turn.input.Rules != ""
	if t.sources, t.cites = turn.citable(); t.sources != nil {
		t.request = turn.prompt.Messages
	}
	if trace := turn.trace; trace.Path != "" {
		trace.Searches, trace.Reads = append([]chat.ToolSearch{}, trace.Searches...), append([]string{}, trace.Reads...)
		t.tools = &trace
	}
}

// separated is a thought, apart from those about an earlier request.
func (t *task) separated(thought string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.apart {
		thought = "\n\n" + thought
	}
	t.apart = false
	return thought
}

// supersede notes that the text so far is no part of the reply if more comes.
func (t *task) supersede() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.interim = true
}

// replace removes text that the piece takes the place of. It returns where the text goes
// on, and whether any had been published.
func (t *task) replace(p framework.Piece) (off int, told bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	more := p.State == framework.StateOpen || p.State == "" && strings.TrimSpace(p.Text) != ""
	if !t.interim || p.Part == framework.PartThink || !more {
		return 0, false
	}
	told = t.text.runes > 0
	t.interim, t.text, t.block, t.blocks = false, growing{}, growing{}, nil
	return t.offset, told
}

// room is how many bytes of a reply with at most limit bytes are left, at least 1.
func (t *task) room(limit int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(limit-t.said, 1)
}

// hasText reports whether there is a text so far.
func (t *task) hasText() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.text.b.String()) != ""
}

// finish notes why the model has stopped.
func (t *task) finish(word llm.Finish) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = word
}

// metered is the usage of the generation: each count as the provider reported it, else an
// estimate once the model had started to answer. nil means none.
func (t *task) metered() *UsageRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := &UsageRow{Provider: t.by, Model: t.model, Requests: int64(max(t.requests, 1))}
	switch {
	case t.usage != nil:
		row.PromptTokens, row.CompletionTokens = int64(cmp.Or(t.usage.PromptTokens, t.asked)), int64(cmp.Or(t.usage.CompletionTokens, t.wrote()))
		if t.usage.CostUSD != nil {
			row.CostUSD = *t.usage.CostUSD
		}
		if !t.reported { // the last request was broken off, after others that reported theirs
			row.PromptTokens, row.CompletionTokens = row.PromptTokens+int64(t.asking), row.CompletionTokens+int64(t.wrote())
		}
	case t.written > 0:
		row.PromptTokens, row.CompletionTokens = int64(t.asked), int64(t.wrote())
	default:
		return nil
	}
	return row
}

// wrote estimates the tokens of what the generation has.
func (t *task) wrote() int {
	tokens := llm.EstimateTokens(t.text.b.String()) + llm.EstimateTokens(t.thought.b.String())
	for _, b := range t.blocks {
		tokens += llm.EstimateTokens(b.Text)
	}
	return tokens
}

// askCheckpoint wakes the keeper; it never waits.
func (t *task) askCheckpoint() {
	select {
	case t.full <- struct{}{}:
	default:
	}
}
