package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ttftFigures are about what a server adds to the model's own time to the first
// token, in milliseconds: from the command to the provider's request, and from
// the provider's first byte to the first delta in the app.
type ttftFigures struct {
	Streams  int     `json:"streams"`
	Samples  int     `json:"samples"`
	P50      float64 `json:"p50"`
	P95      float64 `json:"p95"`
	ThereP50 float64 `json:"toProviderP50"`
	BackP50  float64 `json:"backP50"`
	FloorP50 float64 `json:"floorP50"`
	FloorP95 float64 `json:"floorP95"`
}

// cpuFigures compare processor time for the same replies.
type cpuFigures struct {
	Streams   int     `json:"streams"`
	Tokens    int     `json:"tokens"`    // streamed in all
	PerReply  int     `json:"perReply"`  // tokens
	Thousand  float64 `json:"per1000"`   // ms of processor time per 1,000 tokens
	FloorEach float64 `json:"floor1000"` // the same of the floor
	Ratio     float64 `json:"ratio"`
}

// The provider of the measurements: tokens come as fast as from a quick model.
const (
	firstToken = 20 * time.Millisecond
	tokenGap   = 20 * time.Millisecond
)

// both runs f against NodeST and against the floor, with n apps each.
func (c *chatRun) both(ctx context.Context, name string, n, tokens int, f func(s *child, apps []*talker, p *provider, floor bool) error) error {
	p, err := newProvider(ctx, tokens, firstToken, tokenGap)
	if err != nil {
		return err
	}
	defer p.close()
	s, list, err := c.house(ctx, name, n, p.url)
	if err != nil {
		return err
	}
	apps, err := talkers(ctx, s.base, list)
	if err == nil {
		err = f(s, apps, p, false)
	}
	hangUp(apps)
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	s, err = c.floor(ctx, p.url)
	if err != nil {
		return err
	}
	apps, err = floorTalkers(ctx, s.base, n)
	if err == nil {
		err = f(s, apps, p, true)
	}
	hangUp(apps)
	return errors.Join(err, s.stop())
}

// turns lets every app have each turns one after the other, all apps at the same
// time, beginning at different moments of a reply.
func turns(apps []*talker, each, tokens int, number *atomic.Int64) ([]turnTimes, error) {
	var mu sync.Mutex
	var all []turnTimes
	var failed error
	var wg sync.WaitGroup
	rng := rand.New(rand.NewPCG(1, 2))
	for _, a := range apps {
		late := time.Duration(rng.Int64N(int64(tokens) * int64(tokenGap)))
		wg.Go(func() {
			time.Sleep(late)
			for range each {
				t, err := a.turn(int(number.Add(1)), tokens)
				mu.Lock()
				all, failed = append(all, t), cmp.Or(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return all, failed
}

func (c *chatRun) ttft(ctx context.Context) error {
	rows := make([]ttftFigures, len(c.n.streams))
	most := c.n.streams[len(c.n.streams)-1]
	var number atomic.Int64
	err := c.both(ctx, "ttft", most, c.n.ttftTokens, func(_ *child, apps []*talker, p *provider, floor bool) error {
		if _, err := turns(apps, 1, c.n.ttftTokens, &number); err != nil { // warm up
			return err
		}
		// The widest first: apps that have nothing to do any more do not answer
		// pings, and are disconnected.
		for i, n := range slices.Backward(c.n.streams) {
			// An app has one turn at a time, so n streams need n apps.
			times, err := turns(apps[:n], max(min(4, c.n.samples), c.n.samples/n), c.n.ttftTokens, &number)
			if err != nil {
				return err
			}
			rows[i].add(n, times, p, floor)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.figures.TTFT = rows
	fmt.Fprintf(c.out, "\nadded time to first token, ms (replies of %d tokens, %v apart)\n", c.n.ttftTokens, tokenGap)
	fmt.Fprintf(c.out, "%8s %8s %11s %11s %15s %10s %11s %11s\n", "streams", "samples", "NodeST p50", "NodeST p95", "to provider p50", "back p50", "floor p50", "floor p95")
	for _, r := range rows {
		fmt.Fprintf(c.out, "%8d %8d %11.2f %11.2f %15.2f %10.2f %11.2f %11.2f\n", r.Streams, r.Samples, r.P50, r.P95, r.ThereP50, r.BackP50, r.FloorP50, r.FloorP95)
	}
	return nil
}

func (r *ttftFigures) add(streams int, times []turnTimes, p *provider, floor bool) {
	var added, there, back []time.Duration
	for _, t := range times {
		m := p.moments(t.n)
		there, back = append(there, m.arrived.Sub(t.sent)), append(back, t.first.Sub(m.spoke))
		added = append(added, m.arrived.Sub(t.sent)+t.first.Sub(m.spoke))
	}
	if floor {
		r.FloorP50, r.FloorP95 = millis(at(added, 0.5)), millis(at(added, 0.95))
		return
	}
	r.Streams, r.Samples = streams, len(times)
	r.P50, r.P95 = millis(at(added, 0.5)), millis(at(added, 0.95))
	r.ThereP50, r.BackP50 = millis(at(there, 0.5)), millis(at(back, 0.5))
}

func (c *chatRun) cpu(ctx context.Context) error {
	f := &cpuFigures{Streams: c.n.cpuStreams, PerReply: c.n.cpuTokens, Tokens: c.n.cpuStreams * c.n.cpuTurns * c.n.cpuTokens}
	var number atomic.Int64
	err := c.both(ctx, "cpu", c.n.cpuStreams, c.n.cpuTokens, func(s *child, apps []*talker, _ *provider, floor bool) error {
		if _, err := turns(apps, 1, c.n.cpuTokens, &number); err != nil { // warm up
			return err
		}
		before, err := s.cpu()
		if err != nil {
			return err
		}
		if _, err := turns(apps, c.n.cpuTurns, c.n.cpuTokens, &number); err != nil {
			return err
		}
		after, err := s.cpu()
		each := millis((after - before) * 1000 / time.Duration(f.Tokens))
		if floor {
			f.FloorEach = each
		} else {
			f.Thousand = each
		}
		return err
	})
	if err != nil {
		return err
	}
	if f.FloorEach > 0 {
		f.Ratio = f.Thousand / f.FloorEach
	}
	c.figures.CPU = f
	fmt.Fprintf(c.out, "\nprocessor time per 1,000 tokens, %d streams, replies of %d tokens: NodeST %.1f ms, floor %.1f ms, ratio %.2f\n",
		f.Streams, f.PerReply, f.Thousand, f.FloorEach, f.Ratio)
	return nil
}
