package reader

import (
	"context"
	"errors"
	"io"
	"runtime"
	"time"

	"nodest/internal/fair"
)

// The bounds of the pages that a process reads at once. A user may have half of the places
// and of the bytes, and the users take turns at the work.
const (
	maxOpen   = 64       // reads that have begun
	maxBodies = 96 << 20 // bytes of the bodies that are larger than smallBody, and of what unpacks them
	maxWork   = 4 << 20  // bytes of the pages that are parsed
	smallBody = 64 << 10 // bytes
	gateWait  = 10 * time.Second
)

// gate bounds the weight of what runs at the same time, in all and per user.
type gate struct {
	*fair.Gate
	wait time.Duration
}

func newGate(all, each int64, wait time.Duration) *gate {
	return &gate{fair.New(fair.Rules{Places: fair.Fixed(all), Each: each}), wait}
}

// take takes n, or all that a user may have if that is less, and returns what gives it
// back. The error is an *Error with the outcome Busy after too long a wait, or that of ctx.
func (g *gate) take(ctx context.Context, user string, n int64) (give func(), err error) {
	within, cancel := context.WithTimeout(ctx, g.wait)
	defer cancel()
	if give, err = g.Enter(within, user, n, false); err == nil {
		return give, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, &Error{Outcome: Busy}
}

// bounds are the gates of a reader.
type bounds struct{ open, bodies, work, use *gate }

func newBounds(wait time.Duration) bounds {
	return bounds{
		open:   newGate(maxOpen, maxOpen/2, wait),
		bodies: newGate(maxBodies, maxBodies/2, wait),
		work:   newGate(maxWork, maxWork, wait),
		use:    newGate(maxWork, maxWork, wait),
	}
}

// workOf is the weight of work on n bytes. One processor always remains for others.
func workOf(n int) int64 { return max(int64(n), maxWork/int64(max(1, runtime.GOMAXPROCS(0)-1))) }

// Use waits until a user may work with the text of a page of so many bytes, beside others;
// give ends that. Small pages need not wait.
//
// The error is an *Error with the outcome Busy, or that of ctx.
func (r *Reader) Use(ctx context.Context, user string, bytes int) (give func(), err error) {
	if bytes <= smallPage {
		return func() {}, nil
	}
	return r.bounds.use.take(ctx, user, workOf(bytes))
}

const smallPage = 256 << 10 // bytes of a text

// hold is what one request holds of the bytes for bodies. It is used by one goroutine.
type hold struct {
	ctx  context.Context
	gate *gate
	user string
	give func()
}

// take takes n bytes once. Who holds some takes no more: two of them could wait for each other.
func (h *hold) take(n int64) (err error) {
	if h.give == nil {
		h.give, err = h.gate.take(h.ctx, h.user, n)
	}
	return err
}

func (h *hold) release() {
	if h.give != nil {
		h.give()
		h.give = nil
	}
}

// collect reads a body to its end and returns at most its first keep bytes. It takes room
// for them when they are more than a few.
func collect(body io.Reader, keep int, h *hold) ([]byte, error) {
	text, whole, err := fill(make([]byte, 0, min(keep, smallBody)), body)
	if err != nil || whole {
		return text, err
	}
	if keep > smallBody {
		if err := h.take(int64(keep)); err != nil {
			return nil, err
		}
		text, whole, err = fill(append(make([]byte, 0, keep), text...), body)
		if err != nil || whole {
			return text, err
		}
	}
	_, err = io.Copy(io.Discard, body) // it may be too large, or broken
	return text, err
}

// fill reads until text is as long as its capacity; whole says that the body has ended.
func fill(text []byte, body io.Reader) (filled []byte, whole bool, err error) {
	for len(text) < cap(text) {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	return text, false, nil
}
