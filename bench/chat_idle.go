package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gorilla/websocket"
)

// idleFigures are about connections on which nothing happens.
type idleFigures struct {
	Connections int     `json:"connections"`
	Each        float64 `json:"kibEach"` // resident memory that one adds
	HeapEach    float64 `json:"heapKibEach"`
	StackEach   float64 `json:"stackKibEach"`
	Resident    float64 `json:"residentMiB"` // with all of them
	PerSecond   float64 `json:"handshakesPerSecond"`
	CPUPercent  float64 `json:"cpuPercent"` // of one core, while they idle
}

// perUser is how many connections a user may have: a limit of the protocol.
const perUser = 8

// footprint is the memory of a process.
type footprint struct{ resident, heap, stack float64 }

func (c *chatRun) idle(ctx context.Context) error {
	dir := c.folder("idle")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	list, err := guests(ctx, dir, (c.n.idle+perUser-1)/perUser)
	if err != nil {
		return err
	}
	s, err := c.server(ctx, dir, "")
	if err != nil {
		return err
	}
	f, err := c.holdIdle(ctx, s, list)
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	c.figures.Idle = f
	fmt.Fprintf(c.out, "\n%d idle connections, signed in and greeted: %.1f KiB each (heap in use %.1f, stacks %.1f), %.0f MiB in all, %.1f %% of a core; %.0f handshakes a second\n",
		f.Connections, f.Each, f.HeapEach, f.StackEach, f.Resident, f.CPUPercent, f.PerSecond)
	return nil
}

func (c *chatRun) holdIdle(ctx context.Context, s *child, list []*guest) (*idleFigures, error) {
	warm, err := c.connect(ctx, s, list, min(100, c.n.idle))
	hangUpAll(warm)
	if err != nil {
		return nil, err
	}
	before, err := s.memory(ctx)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	all, err := c.connect(ctx, s, list, c.n.idle)
	took := time.Since(begun)
	defer hangUpAll(all)
	if err != nil {
		return nil, err
	}
	for _, ws := range all { // answers pings; ends with the connection
		go func() {
			for {
				if _, _, err := ws.ReadMessage(); err != nil {
					return
				}
			}
		}()
	}
	cpu, err := s.cpu()
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(c.n.settle): // more than one heartbeat
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	after, err := s.memory(ctx)
	if err != nil {
		return nil, err
	}
	used, err := s.cpu()
	if err != nil {
		return nil, err
	}
	// The first ones may not all have been noticed to be gone.
	if open, err := s.metric(ctx, "nodest_websocket_connections"); err != nil || int(open) < len(all) {
		return nil, errors.Join(fmt.Errorf("opened %d connections, but %.0f are open", len(all), open), err)
	}
	n := float64(len(all))
	f := &idleFigures{
		Connections: len(all), Each: (after.resident - before.resident) / n / 1024, HeapEach: (after.heap - before.heap) / n / 1024,
		StackEach: (after.stack - before.stack) / n / 1024, Resident: after.resident / (1 << 20), PerSecond: n / took.Seconds(),
	}
	if c.n.settle > 0 {
		f.CPUPercent = 100 * float64(used-cpu) / float64(c.n.settle)
	}
	return f, nil
}

// connect opens n connections, spread over the guests.
func (c *chatRun) connect(ctx context.Context, s *child, list []*guest, n int) ([]*websocket.Conn, error) {
	all := make([]*websocket.Conn, n)
	err := each(n, 64, func(i int) (err error) {
		all[i], err = greet(ctx, s.base, list[i/perUser], fmt.Sprintf("d%d", i%perUser))
		return err
	})
	return all, err
}

func hangUpAll(all []*websocket.Conn) {
	for _, ws := range all {
		if ws != nil {
			_ = ws.Close()
		}
	}
}

func (c *child) memory(ctx context.Context) (m footprint, err error) {
	resident, err := c.resident()
	if err != nil {
		return m, err
	}
	m.resident = float64(resident)
	if m.heap, err = c.metric(ctx, "go_memstats_heap_inuse_bytes"); err != nil {
		return m, err
	}
	m.stack, err = c.metric(ctx, "go_memstats_stack_inuse_bytes")
	return m, err
}
