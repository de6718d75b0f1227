// Package fair shares a bounded number of places among owners, mostly users, so that nobody who
// asks for many keeps another one waiting. It knows nothing of what is done in a place.
package fair

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Gate lets in who asks while there are places. When one is given back, it goes to the owner who
// holds the fewest, and among these to the one who was let in longest ago; each owner's own
// requests are let in in their order. It is safe for concurrent use.
type Gate struct {
	rules Rules

	mu     sync.Mutex
	used   int64
	count  int64 // counts who came and who was let in
	owners map[string]*owner
}

// Rules say how many places a gate has.
type Rules struct {
	Places func() int64 // may change
	Each   int64        // an owner holds at most; 0 = all
	Spare  int64        // beside Places, for small requests of owners who hold none
}

// Fixed is a number of places that does not change.
func Fixed(n int64) func() int64 { return func() int64 { return n } }

// owner is whoever holds places or waits for some.
type owner struct {
	held         int64
	last, joined int64 // when the owner was let in, and came, as counts
	waiting      []*request
}

// request asks for places.
type request struct {
	n     int64
	small bool
	in    chan struct{} // closed when it is let in
}

// New returns a gate with all places free.
func New(r Rules) *Gate { return &Gate{rules: r, owners: map[string]*owner{}} }

// Enter waits for n places, or until ctx ends, whose cause it returns. A request for more than
// there are, or than an owner may hold, is for all of them. leave gives the places back; it may be
// called more than once.
func (g *Gate) Enter(ctx context.Context, name string, n int64, small bool) (leave func(), err error) {
	r := &request{n: g.atMost(n), small: small, in: make(chan struct{})}
	g.mu.Lock()
	o := g.owners[name]
	if o == nil {
		g.count++
		o = &owner{joined: g.count}
		g.owners[name] = o
	}
	o.waiting = append(o.waiting, r)
	g.admit()
	g.mu.Unlock()
	leave = sync.OnceFunc(func() { g.leave(name, r.n) })
	select {
	case <-r.in:
		return leave, nil
	default: // also when ctx has ended
	}
	select {
	case <-r.in:
		return leave, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(o.waiting, r); i >= 0 {
		o.waiting = slices.Delete(o.waiting, i, i+1)
		g.tidy(name)
		g.admit() // it may have stood before others
		return nil, context.Cause(ctx)
	}
	return leave, nil // it was let in just now
}

func (g *Gate) atMost(n int64) int64 {
	if g.rules.Each > 0 {
		n = min(n, g.rules.Each)
	}
	return max(1, n)
}

func (g *Gate) leave(name string, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= n
	g.owners[name].held -= n
	g.tidy(name)
	g.admit()
}

// tidy forgets an owner who neither holds nor wants anything.
func (g *Gate) tidy(name string) {
	if o := g.owners[name]; o.held == 0 && len(o.waiting) == 0 {
		delete(g.owners, name)
	}
}

// admit lets in whoever can be.
func (g *Gate) admit() {
	for {
		places := max(1, g.rules.Places())
		if o := g.next(func(o *owner) bool { return len(o.waiting) > 0 }); o != nil && g.fits(o.waiting[0], places) {
			g.let(o, 0)
			continue
		}
		small := func(r *request) bool { return r.small && g.fits(r, places+g.rules.Spare) }
		o := g.next(func(o *owner) bool { return o.held == 0 && slices.ContainsFunc(o.waiting, small) })
		if o == nil {
			return
		}
		g.let(o, slices.IndexFunc(o.waiting, small))
	}
}

// next is the owner whose turn it is, of those that may be let in; nil = nobody's.
func (g *Gate) next(may func(*owner) bool) (first *owner) {
	for _, o := range g.owners {
		if !may(o) || g.rules.Each > 0 && len(o.waiting) > 0 && o.held+o.waiting[0].n > g.rules.Each {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(o.held, first.held), cmp.Compare(o.last, first.last), cmp.Compare(o.joined, first.joined)) < 0 {
			first = o
		}
	}
	return first
}

// fits reports whether there is room; a request for more than there is waits for all.
func (g *Gate) fits(r *request, places int64) bool {
	return g.used+min(r.n, places) <= places
}

func (g *Gate) let(o *owner, i int) {
	r := o.waiting[i]
	o.waiting = slices.Delete(o.waiting, i, i+1)
	g.count++
	o.held, o.last = o.held+r.n, g.count
	g.used += r.n
	close(r.in)
}
