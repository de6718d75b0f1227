// Package transcript keeps the text of a reply while the model writes it.
package transcript

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"nodest/chat"
	"nodest/framework"
	"nodest/llm"
)

// Transcript is the text, the thoughts and the blocks of one generation. It is safe for concurrent use. Positions
// are code points.
type Transcript struct {
	mu      sync.Mutex
	offset  int // offset of the text in its message
	text    growing
	thought growing
	block   growing // text of the open block
	thinks  int     // where the open block of thoughts begins in thought, in bytes
	blocks  []chat.Block
	written int           // text, reasoning and blocks together, in code points
	saved   int           // how many of them the last checkpoint had
	said    int           // text and reasoning of the model, in bytes
	interim bool          // the text so far goes when more comes: tools were called behind it
	apart   bool          // the next thoughts of the model are about another request
	finish  llm.Finish    // why the model has stopped
	full    chan struct{} // asks for a checkpoint; New makes it
}

// New is an empty transcript.
func New() *Transcript { return &Transcript{full: make(chan struct{}, 1)} }

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

// Follow sets where the text begins in its message.
func (t *Transcript) Follow(offset int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offset = offset
}

// Hear counts a chunk of the model.
func (t *Transcript) Hear(c llm.Chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said += len(c.Text) + len(c.Reasoning)
}

// Tell gives g the text so far. Its slices and strings are the caller's to read.
func (t *Transcript) Tell(g *chat.Generation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g.Text, g.Reasoning, g.Blocks = t.text.b.String(), t.thought.b.String(), slices.Clone(t.blocks)
}

// Save notes that what is written is about to be stored.
func (t *Transcript) Save() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saved = t.written
}

// End notes why the model has stopped.
func (t *Transcript) End(why llm.Finish) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finish = why
}

// NextRequest sets the thoughts about another request apart from those so far.
func (t *Transcript) NextRequest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.apart = t.thought.runes > 0
}

// AddReasoning appends to the reasoning and returns the position, in code points.
func (t *Transcript) AddReasoning(s string) (off int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	off = t.thought.runes
	t.written += t.thought.add(s)
	return off
}

// AddPiece adds a piece of the reply. It returns the position of the piece in the
// text that it belongs to: the message's text, or its own block. Positions are
// code points; those of a continue count from the beginning of the message.
func (t *Transcript) AddPiece(p framework.Piece) (off int) {
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

// Unclosed makes text of a block that the reply has ended in, and returns it with
// its position. Thoughts stay thoughts if there is anything else.
func (t *Transcript) Unclosed(p framework.Piece) (text string, off int) {
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

// TextToReasoning turns the text so far into reasoning. It returns the positions of
// both, and whether text had been published.
func (t *Transcript) TextToReasoning(p framework.Piece) (thought, text int, told bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	thought, told = t.thought.runes, t.text.runes > 0
	t.text, t.block, t.blocks = growing{}, growing{}, nil
	t.written += t.thought.add(p.Text)
	return thought, t.offset, told
}

// BlocksToText makes a reply without text out of the text of its blocks. It returns the
// text with its position; "" = nothing has changed.
func (t *Transcript) BlocksToText() (text string, off int) {
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

// Unsaved is how much was written since the last checkpoint, in code points.
func (t *Transcript) Unsaved() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written - t.saved
}

// Separated is a thought, apart from those about an earlier request.
func (t *Transcript) Separated(thought string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.apart {
		thought = "\n\n" + thought
	}
	t.apart = false
	return thought
}

// Supersede notes that the text so far is no part of the reply if more comes.
func (t *Transcript) Supersede() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.interim = true
}

// Replace removes text that the piece takes the place of. It returns where the text goes
// on, and whether any had been published.
func (t *Transcript) Replace(p framework.Piece) (off int, told bool) {
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

// Room is how many bytes of a reply with at most limit bytes are left, at least 1.
func (t *Transcript) Room(limit int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(limit-t.said, 1)
}

// HasText reports whether the reply has more than blanks.
func (t *Transcript) HasText() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.text.b.String()) != ""
}

// Tokens estimates the tokens of what is written.
func (t *Transcript) Tokens() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	tokens := llm.EstimateTokens(t.text.b.String()) + llm.EstimateTokens(t.thought.b.String())
	for _, b := range t.blocks {
		tokens += llm.EstimateTokens(b.Text)
	}
	return tokens
}

// AskCheckpoint wakes the keeper; it never waits.
func (t *Transcript) AskCheckpoint() {
	select {
	case t.full <- struct{}{}:
	default:
	}
}

// Full is ready to be received from when AskCheckpoint was called.
func (t *Transcript) Full() <-chan struct{} { return t.full }

// Finish is why the model has stopped; "" = it has not.
func (t *Transcript) Finish() llm.Finish {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.finish
}
