package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"nodest/internal/bench/figure"
)

// ttftFigures are about what a server adds to the model's own time to the first
// token, in milliseconds: from the command to the provider's request, and from
// the provider's first byte to the first delta in the app (back).
type ttftFigures struct {
	Streams int `json:"streams"`
	Samples int `json:"samples"`
	spread
	BackP50  float64 `json:"backP50"`
	FloorP50 float64 `json:"floorP50"`
	FloorP95 float64 `json:"floorP95"`
}

// cpuFigures compare processor time for the same replies.
type cpuFigures struct {
	Streams   int     `json:"streams"`
	PerReply  int     `json:"perReply"`  // tokens
	Thousand  float64 `json:"per1000"`   // ms of processor time per 1,000 tokens
	FloorEach float64 `json:"floor1000"` // the same of the floor
	Ratio     float64 `json:"ratio"`
}

// tokenGap is between the tokens of the provider: they come as fast as from a quick model.
const tokenGap = 20 * time.Millisecond

// both runs f against NodeST and against the floor, with n apps each.
func (r *run) both(ctx context.Context, n, tokens int, f func(s *child, apps []*talker, p *provider, floor bool) error) error {
	p, err := newProvider(ctx, tokens, r.FirstToken, tokenGap)
	if err != nil {
		return err
	}
	defer p.close()
	dir, list, err := r.home(ctx, n, 0)
	if err != nil {
		return err
	}
	against := func(floor bool, open func(s *child, i int) (*talker, error)) func(*child) error {
		return func(s *child) error {
			apps, err := connect(n, func(i int) (*talker, error) { return open(s, i) })
			defer hangUp(apps)
			if err != nil {
				return err
			}
			return f(s, apps, p, floor)
		}
	}
	err = r.serve(ctx, dir, p.url, against(false, func(s *child, i int) (*talker, error) { return greet(ctx, s.base, list[i], "bench") }))
	if err != nil {
		return err
	}
	return r.floor(ctx, p.url, against(true, func(s *child, _ int) (*talker, error) { return dial(ctx, s.base, "") }))
}

// turns lets every app have some turns, one after the other, and all apps at the same
// time, beginning at different moments of a reply.
func turns(apps []*talker, some, tokens int, number *atomic.Int64) ([]turnTimes, error) {
	times := make([][]turnTimes, len(apps))
	err := each(len(apps), len(apps), func(i int) error {
		time.Sleep(rand.N(time.Duration(tokens) * tokenGap))
		for range some {
			t, err := apps[i].turn(int(number.Add(1)), tokens)
			if err != nil {
				return err
			}
			times[i] = append(times[i], t)
		}
		return nil
	})
	return slices.Concat(times...), err
}

func (r *run) ttft(ctx context.Context) error {
	rows := make([]ttftFigures, len(r.n.streams))
	most, tokens := slices.Max(r.n.streams), r.n.ttftTokens
	var number atomic.Int64
	err := r.both(ctx, most, tokens, func(_ *child, apps []*talker, p *provider, floor bool) error {
		if _, err := turns(apps, 1, tokens, &number); err != nil { // warm up
			return err
		}
		// The widest first: apps that have nothing to do any more do not answer
		// pings, and are disconnected.
		for i, n := range slices.Backward(r.n.streams) {
			// An app has one turn at a time, so n streams need n apps.
			times, err := turns(apps[:n], max(min(4, r.n.samples), r.n.samples/n), tokens, &number)
			if err != nil {
				return err
			}
			rows[i].Streams = n
			rows[i].add(times, p, floor)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.figures["ttft"] = rows
	fmt.Fprintf(r.out, "\nadded time to first token, ms (replies of %d tokens, the first after %v, the others %v apart)\n", tokens, r.FirstToken, tokenGap)
	fmt.Fprintf(r.out, "%8s %8s %11s %11s %10s %11s %11s\n", "streams", "samples", "NodeST p50", "NodeST p95", "back p50", "floor p50", "floor p95")
	for _, f := range rows {
		fmt.Fprintf(r.out, "%8d %8d %11.2f %11.2f %10.2f %11.2f %11.2f\n", f.Streams, f.Samples, f.P50, f.P95, f.BackP50, f.FloorP50, f.FloorP95)
	}
	return nil
}

func (f *ttftFigures) add(times []turnTimes, p *provider, floor bool) {
	var added, back []time.Duration
	for _, t := range times {
		m := p.moments(t.n)
		back = append(back, t.first.Sub(m.spoke))
		added = append(added, m.arrived.Sub(t.sent)+t.first.Sub(m.spoke))
	}
	s := spreadOf(added)
	if floor {
		f.FloorP50, f.FloorP95 = s.P50, s.P95
		return
	}
	f.Samples, f.spread, f.BackP50 = len(times), s, figure.Millis(figure.At(back, 0.5))
}

func (r *run) cpu(ctx context.Context) error {
	f := cpuFigures{Streams: r.n.cpuStreams, PerReply: r.n.cpuTokens}
	var number atomic.Int64
	err := r.both(ctx, f.Streams, f.PerReply, func(s *child, apps []*talker, _ *provider, floor bool) error {
		if _, err := turns(apps, 1, f.PerReply, &number); err != nil { // warm up
			return err
		}
		before, err := s.cpu()
		if err != nil {
			return err
		}
		if _, err := turns(apps, r.n.cpuTurns, f.PerReply, &number); err != nil {
			return err
		}
		after, err := s.cpu()
		thousand := figure.Millis((after - before) * 1000 / time.Duration(f.Streams*r.n.cpuTurns*f.PerReply))
		if floor {
			f.FloorEach = thousand
		} else {
			f.Thousand = thousand
		}
		return err
	})
	if err != nil {
		return err
	}
	if f.FloorEach > 0 {
		f.Ratio = f.Thousand / f.FloorEach
	}
	r.figures["cpu"] = f
	fmt.Fprintf(r.out, "\nprocessor time per 1,000 tokens, %d streams, replies of %d tokens: NodeST %.1f ms, floor %.1f ms, ratio %.2f\n",
		f.Streams, f.PerReply, f.Thousand, f.FloorEach, f.Ratio)
	return nil
}
