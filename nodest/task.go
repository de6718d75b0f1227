package nodest

import (
	"context"
	"sync"

	"nodest/chat"
	"nodest/framework/tavern"
	"nodest/internal/cite"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest/recent"
	"nodest/nodest/transcript"
)

// identity names a generation, and whom its events name as their cause.
type identity struct {
	id, userID, conversationID string
	messageID                  string // "" = impersonation
	device                     string // Event.By of what it causes
}

func (i identity) chat() recent.Chat { return recent.Chat{UserID: i.userID, ID: i.conversationID} }

// task is a generation that this process works on, from the moment it is
// accepted until its end is stored. One goroutine (play) does the work;
// everybody else reads through the methods.
type task struct {
	identity
	setup   *turnSetup // the lookups of accepting, the key of the request included
	history history
	queued  bool // it had to wait, so the setup is old
	ctx     context.Context
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when the end is stored
	asked   chan struct{} // another process asks for a checkpoint
	leave   func()        // ends hearing that

	text  *transcript.Transcript
	meter *meter
	shown *provenance
	watch *stopwatch

	mu    sync.Mutex
	phase phase
	gen   *chat.Generation // but for what it has written
}

func newTask(c *op.Call, s *turnSetup, as *assignment) *task {
	// A generation outlives the request that asked for it.
	ctx, cancel := context.WithCancelCause(context.Background())
	g := *as.gen
	t := &task{
		identity: identity{g.ID, c.UserID, g.ConversationID, g.MessageID, c.By()},
		setup:    s, history: as.history, queued: g.Status == chat.GenQueued,
		ctx: ctx, cancel: cancel, done: make(chan struct{}), asked: make(chan struct{}, 1),
		text: transcript.New(), meter: &meter{}, shown: &provenance{}, watch: newStopwatch(g.CreatedAt),
		gen: &g,
	}
	if !t.queued {
		t.on(turnCame)
	}
	return t
}

// on moves the task to the phase that follows on an event, and returns the phase.
func (t *task) on(ev event) phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next, ok := transitions[t.phase][ev]; ok {
		t.phase = next
	}
	if t.phase == streaming {
		t.gen.Status = chat.GenStreaming
	}
	return t.phase
}

// stopWaiting cancels a task that has not had its turn yet.
func (t *task) stopWaiting(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == accepted {
		t.cancel(cause)
	}
}

// generation returns the generation as it is now, text included. Its slices and
// strings are the caller's to read.
func (t *task) generation() *chat.Generation {
	t.mu.Lock()
	g := *t.gen
	t.mu.Unlock()
	if !g.Ended() {
		t.text.Tell(&g)
		t.meter.tell(&g)
		t.watch.tell(&g)
		t.shown.tell(&g)
	}
	return &g
}

// current is generation; sure is false while the end is being stored. The end is
// published before the task knows that it is stored, and a client that has seen it
// must not get a running generation.
func (t *task) current() (g *chat.Generation, sure bool) {
	g = t.generation()
	t.mu.Lock()
	defer t.mu.Unlock()
	return g, g.Ended() || t.phase < ending
}

func (t *task) setStored(g *chat.Generation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gen = g
}

func (t *task) setPrompt(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gen.PromptID = id
}

// hear notes a chunk of the model but for its text.
func (t *task) hear(c llm.Chunk) {
	t.text.Hear(c)
	t.meter.noteChunk(c)
	if c.Text != "" || c.Reasoning != "" {
		t.watch.token()
		t.on(tokenCame)
	}
}

// nextRequest notes that the model is asked, with added tokens behind the prompt.
func (t *task) nextRequest(turn *turn, added int) {
	turn.offer.trace.Rounds++
	t.shown.note(turn)
	t.meter.noteRequest(turn.prompt.Tokens + added)
	t.text.NextRequest()
}

// provenance is what a reply is made from. The goroutine of the task writes it.
type provenance struct {
	sent    sent          // how much of the chat was sent
	sources []cite.Source // that the model was shown
	cites   bool          // they were found for this reply
	ruled   bool          // the model was told how to cite
	request []llm.Message // with sources
	lookups []Lookup
	past    *past          // that the prompt was built from
	after   *tavern.Result // the prompt hands it on; nil in the NodeST dialect
	tells   string         // the research whose result it tells; "" = none

	mu    sync.Mutex
	tools *chat.ToolTrace // nil = the model has none
}

// note notes what the model was shown so far, and how the tools were used.
func (p *provenance) note(turn *turn) {
	p.past, p.after = turn.past, turn.after
	p.sent, p.ruled, p.tells = turn.sent, p.ruled || turn.input.Rules != "", turn.found.research
	if p.sources, p.cites = turn.citable(); p.sources != nil {
		p.request = turn.prompt.Messages
	}
	p.lookups = turn.lookups(p.sources)
	if trace := turn.offer.trace; trace.Path != "" {
		trace.Searches, trace.Reads = append([]chat.ToolSearch{}, trace.Searches...), append([]string{}, trace.Reads...)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.tools = &trace
	}
}

// tell sets what g has of it.
func (p *provenance) tell(g *chat.Generation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.Tools = p.tools
}
