package bench

import (
	"context"
	"fmt"
	"sync/atomic"

	"nodest/llm"
)

// idleFigures are about connections on which nothing happens.
type idleFigures struct {
	Connections int     `json:"connections"`
	Each        float64 `json:"kibEach"` // resident memory that one adds
}

// perUser is how many connections a user may have: a limit of the protocol.
const perUser = 8

func (r *run) idle(ctx context.Context) error {
	dir, list, err := r.home(ctx, (r.n.idle+perUser-1)/perUser)
	if err != nil {
		return err
	}
	return r.serve(ctx, dir, "", func(s *child) error {
		open := func(i int) (*talker, error) {
			return greet(ctx, s.base, list[i/perUser], fmt.Sprintf("d%d", i%perUser))
		}
		warm, err := connect(min(100, r.n.idle), open)
		hangUp(warm)
		if err != nil {
			return err
		}
		before, err := s.resident()
		if err != nil {
			return err
		}
		all, err := connect(r.n.idle, open)
		defer hangUp(all)
		if err != nil {
			return err
		}
		var lost atomic.Int64
		for _, t := range all { // answers pings; ends with the connection
			go func() {
				for {
					if _, _, err := t.ws.ReadMessage(); err != nil {
						lost.Add(1)
						return
					}
				}
			}()
		}
		if err := llm.Sleep(ctx, r.n.settle); err != nil { // more than one heartbeat
			return err
		}
		after, err := s.resident()
		if err != nil {
			return err
		}
		if n := lost.Load(); n > 0 {
			return fmt.Errorf("%d of %d connections were closed", n, len(all))
		}
		f := idleFigures{Connections: len(all), Each: float64(after-before) / float64(len(all)) / 1024}
		r.figures["idle"] = f
		fmt.Fprintf(r.out, "\n%d idle connections, signed in and greeted: %.1f KiB each\n", f.Connections, f.Each)
		return nil
	})
}
