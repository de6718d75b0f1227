package server

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"nodest/internal/fault"
	"nodest/server/api"
)

// gate bounds the bytes that requests hold at the same time, per holder and in all. A quarter
// of all is reserved for small requests of users, so that they continue while large requests,
// or clients that have not signed in, fill the rest. A quarter of what a holder may have is
// reserved for the holder's own small requests, which continue during a large import.
type gate struct {
	all, each int64 // bytes, in all and per holder

	mu    sync.Mutex
	held  int64
	by    map[holder]int64
	turns map[turn]bool // that requests have
	freed chan struct{} // closed when bytes or turns are given back; nil = nobody waits

	patience time.Duration // how long a request waits; 0 = gateWait
}

// turn is the right to keep a processor busy. A holder has one for reading stored documents, which
// is soon over, and one for everything else.
type turn struct {
	who   holder
	reads bool
}

// holder is whoever bytes are counted for: a user, or the network of a client that has not
// signed in.
type holder struct {
	user    string
	network string
}

// largeBody is the size in bytes above which a body or an answer is large: it is kept in a
// temporary file while it arrives or waits for its reader.
const largeBody = 1 << 20

// work is how many times its size in memory a large document or file is assumed to take while
// it is read or written: as bytes, as a tree, and as the result.
const work = 4

// valueWork is how many bytes each JSON value in a large body adds to that: decoded, a list of
// {} takes tens of times its size.
const valueWork = 64

// tempBytes bounds the temporary files of bodies and answers; a user may have an eighth.
const tempBytes = 8 << 30

// gateWait is how long a request waits for bytes that others hold.
const gateWait = 10 * time.Second

// try takes n bytes if they are free.
func (g *gate) try(who holder, n int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.takeLocked(who, n, n > largeBody)
}

func (g *gate) takeLocked(who holder, n int64, large bool) bool {
	all := g.all
	if large || who.user == "" {
		all -= all / 4
	}
	if g.held+n > all || g.by[who]+n > g.mostOf(large) {
		return false
	}
	if g.by == nil {
		g.by = map[holder]int64{}
	}
	g.held += n
	g.by[who] += n
	return true
}

// mostOf is how much a holder may have in all when a large or a small request takes more.
func (g *gate) mostOf(large bool) int64 {
	if large {
		return g.each - g.each/4
	}
	return g.each
}

// take takes n bytes, and waits up to gateWait for them. What is not large may be of the reserves.
func (g *gate) take(ctx context.Context, who holder, n int64, large bool) error {
	return g.wait(ctx, func() bool { return g.takeLocked(who, n, large) })
}

// wait calls take, with the gate locked, until it succeeds, for up to gateWait.
func (g *gate) wait(ctx context.Context, take func() bool) error {
	late := time.NewTimer(cmp.Or(g.patience, gateWait))
	defer late.Stop()
	for {
		g.mu.Lock()
		if take() {
			g.mu.Unlock()
			return nil
		}
		if g.freed == nil {
			g.freed = make(chan struct{})
		}
		freed := g.freed
		g.mu.Unlock()
		select {
		case <-freed:
		case <-late.C:
			return errCrowded()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// give gives n bytes back.
func (g *gate) give(who holder, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= n
	if g.by[who] -= n; g.by[who] == 0 {
		delete(g.by, who)
	}
	g.wakeLocked()
}

func (g *gate) wakeLocked() {
	if g.freed != nil {
		close(g.freed)
		g.freed = nil
	}
}

func errCrowded() error {
	return fault.New(fault.RateLimited, "too many large requests at once").After(time.Second)
}

// hold is what one request has taken from a gate. It is used by one goroutine.
type hold struct {
	s    *Server
	g    *gate
	who  holder
	n    int64
	turn *turn // nil = none

	document bool // its body is a document
}

// try takes n more bytes if they are free.
func (h *hold) try(n int64) bool {
	ok := h.g.try(h.who, n)
	if ok {
		h.n += n
	}
	return ok
}

// take takes n more bytes, and waits up to gateWait for them. A request for more than a holder
// may have counts as all of it, and so runs without other large ones of the holder.
func (h *hold) take(ctx context.Context, n int64) error { return h.takeAs(ctx, n, n > largeBody) }

func (h *hold) takeAs(ctx context.Context, n int64, large bool) error {
	n = max(0, min(n, h.g.mostOf(large)-h.n))
	if n == 0 {
		return nil
	}
	err := h.g.take(ctx, h.who, n, large)
	if err == nil {
		h.n += n
	}
	return err
}

// pageWork is the memory that a page of a list, of at most 4 MiB, takes while it is made.
const pageWork = work * 4 << 20

// takeAnswer takes the memory for the answer of a reading operation while that is made, and the turn
// for a large one. A page is not large: lists continue to work while large requests fill the rest.
func (h *hold) takeAnswer(ctx context.Context, o *api.Operation) error {
	_, isPage := o.Data.Members["limit"]
	reads := strings.HasPrefix(o.Route, "GET ")
	if o.Alone || reads && o.Bytes > 0 {
		if err := h.takeTurn(ctx, reads); err != nil {
			return err
		}
	}
	switch {
	case !reads:
		return nil
	case o.Bytes > 0:
		return h.take(ctx, work*o.Bytes)
	case isPage:
		return h.takeAs(ctx, pageWork, false)
	}
	return nil
}

// room is the Room of a call that runs while h is held.
func (h *hold) room(ctx context.Context) func(bytes, values int) error {
	return func(bytes, values int) error { return h.take(ctx, work*int64(bytes)+valueWork*int64(values)) }
}

// takeTurn waits up to gateWait until no other request of the holder reads a large document, or until
// none unpacks a file, stores or checks a large document or runs alone for another reason. It comes
// before the memory for that, as two of them could wait for each other.
func (h *hold) takeTurn(ctx context.Context, reads bool) error {
	if h.turn != nil {
		return nil
	}
	mine := turn{h.who, reads}
	err := h.g.wait(ctx, func() bool {
		if h.g.turns[mine] {
			return false
		}
		if h.g.turns == nil {
			h.g.turns = map[turn]bool{}
		}
		h.g.turns[mine] = true
		return true
	})
	if err == nil {
		h.turn = &mine
	}
	return err
}

// release gives everything back. It may be called more than once.
func (h *hold) release() {
	if h.turn != nil {
		h.g.mu.Lock()
		delete(h.g.turns, *h.turn)
		h.g.wakeLocked()
		h.g.mu.Unlock()
		h.turn = nil
	}
	if h.n > 0 {
		h.g.give(h.who, h.n)
		h.n = 0
	}
}

const holdKey = "hold"

// holding runs a handler whose body and answer are counted for who.
func (s *Server) holding(c echo.Context, who holder, handle func() error) error {
	h := &hold{s: s, g: &s.memory, who: who}
	c.Set(holdKey, h)
	defer h.release()
	return handle()
}

// holdOf returns what a request holds of the memory for bodies and answers.
func holdOf(c echo.Context) *hold { return c.Get(holdKey).(*hold) }
