package nodest

import (
	"context"
	"sync"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/nodest/recent"
)

// Engine is the chat engine. Its methods are safe for concurrent use.
type Engine struct {
	store  Store
	models Models
	pub    Publisher
	others Others
	opts   Options

	Characters *character.Service
	Chats      *chat.Service

	histories recent.Chats     // the ends of chats by version
	counts    *framework.Cache // token counts and key scans by content

	toolless toolless // models that have refused tools

	thought sync.Map // models that have spent a limit of tokens on thinking; see asker
	checks  sync.Map // users for whom a model is being checked

	working sync.WaitGroup // accepting calls, generations

	mu       sync.Mutex
	closing  bool
	tasks    map[string]*task         // generations of this process, by id
	turns    map[string]chan struct{} // by user: closed when one of the user's generations ends
	reserved map[string]int64         // by user: tokens of the day that requests in the background have reserved
}

// Deps are the dependencies of an engine.
type Deps struct {
	Store      Store
	Characters *character.Service
	Chats      *chat.Service
	Models     Models
	Publisher  Publisher
	Others     Others // nil = there are none
}

// New returns an engine. Close ends it.
func New(d Deps, opts Options) *Engine {
	if d.Others == nil {
		d.Others = nobody{}
	}
	return &Engine{
		store: d.Store, models: d.Models, pub: d.Publisher, others: d.Others, opts: opts.withDefaults(),
		Characters: d.Characters, Chats: d.Chats, histories: recent.New(), counts: framework.NewCache(0), toolless: newToolless(),
		tasks: map[string]*task{}, turns: map[string]chan struct{}{}, reserved: map[string]int64{},
	}
}

// Close refuses new generations with fault.ShuttingDown, ends those that wait in
// a queue as interrupted, and waits for the running ones. Those that still run
// when ctx ends are stopped and stored as interrupted, with their text. Close
// returns when every generation is stored and no goroutine of the engine is
// left; a second call only waits.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closing = true
	for _, t := range e.tasks {
		t.stopWaiting(errStopping)
	}
	e.mu.Unlock()

	idle := make(chan struct{})
	go func() {
		e.working.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	for _, t := range e.tasks {
		t.cancel(errStopping)
	}
	e.mu.Unlock()
	<-idle
	return context.Cause(ctx)
}

// enter admits a call that may begin a generation; leave ends it. Between the
// two Close waits.
func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return fault.New(fault.ShuttingDown, "the server is shutting down")
	}
	e.working.Add(1)
	return nil
}

func (e *Engine) leave() { e.working.Done() }

// task returns a generation that this process works on for the user, or nil.
func (e *Engine) task(userID, generationID string) *task {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.tasks[generationID]; t != nil && t.userID == userID {
		return t
	}
	return nil
}

// nextEnd returns a channel that is closed when one of the user's generations in
// this process ends, or another process tells of something that it has stored.
func (e *Engine) nextEnd(userID string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	ch := e.turns[userID]
	if ch == nil {
		ch = make(chan struct{})
		e.turns[userID] = ch
	}
	return ch
}

func (e *Engine) track(t *task) {
	e.working.Add(1)
	t.leave = e.others.Attend(t.userID)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks[t.id] = t
	if e.closing { // it was accepted just before, and will not run
		t.stopWaiting(errStopping)
	}
}

// untrack removes a task whose end is stored, and wakes those that wait for it.
func (e *Engine) untrack(t *task) {
	e.mu.Lock()
	delete(e.tasks, t.id)
	e.wake(t.userID)
	e.mu.Unlock()
	t.leave()
	e.others.Stored(t.userID)
	t.cancel(nil)
	close(t.done)
	e.working.Done()
}
