package llm

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// While few answers are streamed, each is read as it comes. From crowd on, those whose text has
// begun are read at beats that up to crowd of them share: share for each stream apart, and longest
// at most. A phone shows text as smoothly ten times a second, and the tokens of a beat cost hardly
// more than one, since each alone would wake its stream, and be a read, an event and a frame. If all
// streams shared one beat, whoever sends a message at that moment would wait for all of them.
const (
	crowd   = 16
	share   = 3 * time.Millisecond
	longest = 100 * time.Millisecond
	plenty  = 2 << 10 // bytes of a read behind which more may be waiting
)

// Paced is the body of a streamed answer, read at the pace of the process.
type Paced struct {
	ctx     context.Context
	body    io.Reader
	pace    *pace
	flowing atomic.Bool
	emptied bool // the last read took all there was
}

// NewPaced returns the reader of a body, of a request made with ctx. It needs Close, which does not
// close the body.
func NewPaced(ctx context.Context, body io.Reader) *Paced {
	return &Paced{ctx: ctx, body: body, pace: &everybody}
}

// Flows says that text has come: nobody waits for the first word any more.
func (p *Paced) Flows() {
	if p.flowing.CompareAndSwap(false, true) {
		p.pace.add(1)
	}
}

// Close takes the stream out of the pace.
func (p *Paced) Close() {
	if p.flowing.CompareAndSwap(true, false) {
		p.pace.add(-1)
	}
}

func (p *Paced) Read(b []byte) (int, error) {
	if p.emptied && p.flowing.Load() {
		if beat := p.pace.next(); beat != nil {
			select {
			case <-beat:
			case <-p.ctx.Done(): // the body says so, too
			}
		}
	}
	n, err := p.body.Read(b)
	p.emptied = n < min(len(b), plenty)
	return n, err
}

// everybody is the pace of all streams of the process.
var everybody pace

// pace is the beats of some streams.
type pace struct {
	mu      sync.Mutex
	streams int           // whose text has begun
	beat    chan struct{} // closed at the beat for those that begin to wait now; nil = nobody waits
	waiting int           // for it
}

func (p *pace) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams += n
}

// next is closed at the caller's next beat; nil = the streams are no crowd.
func (p *pace) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams < crowd {
		return nil
	}
	if p.beat == nil || p.waiting == crowd {
		beat := make(chan struct{})
		p.beat, p.waiting = beat, 0
		time.AfterFunc(min(time.Duration(p.streams)*share, longest), func() { p.strike(beat) })
	}
	p.waiting++
	return p.beat
}

func (p *pace) strike(beat chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(beat)
	if p.beat == beat {
		p.beat = nil
	}
}
