package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// startFigures are about starting with a full database.
type startFigures struct {
	Messages int     `json:"messages"`
	P50      float64 `json:"p50"` // ms from the start of the process until it listens
	Max      float64 `json:"max"`
	EmptyP50 float64 `json:"emptyP50"` // with a database that has no message
}

// appendFigures compare a short and a long chat, in milliseconds a request.
type appendFigures struct {
	Short      int     `json:"short"` // messages
	Long       int     `json:"long"`
	AppendP50  float64 `json:"appendShortP50"`
	AppendLong float64 `json:"appendLongP50"`
	PageP50    float64 `json:"pageShortP50"`
	PageLong   float64 `json:"pageLongP50"`
	PageMiddle float64 `json:"pageMiddleP50"` // from the middle of the long chat
}

// storeFigures are about many who write at once.
type storeFigures struct {
	Clients   int     `json:"clients"`
	PerSecond float64 `json:"messagesPerSecond"`
	P50       float64 `json:"p50"` // ms until a message is acknowledged
	P95       float64 `json:"p95"`
}

const shortChat = 100

// longHouse is a data folder with one chat of 100 messages and one of 100,000; it
// is made once for the parts that need it. middle is a message of the long one.
func (c *chatRun) longHouse(ctx context.Context) (dir string, g *guest, short, long, middle string, err error) {
	dir = c.folder("long")
	s, list, err := c.house(ctx, "long", 1, "")
	if err != nil {
		return dir, nil, "", "", "", err
	}
	g = list[0]
	short = g.conversation
	err = g.settle(ctx, s.base)
	long = g.conversation
	if err = errors.Join(err, s.stop()); err != nil {
		return dir, nil, "", "", "", err
	}
	if _, err = fill(ctx, dir, g, short, shortChat); err != nil {
		return dir, nil, "", "", "", err
	}
	ids, err := fill(ctx, dir, g, long, c.n.long)
	if err != nil {
		return dir, nil, "", "", "", err
	}
	return dir, g, short, long, ids[len(ids)/2], nil
}

func (c *chatRun) startup(ctx context.Context) error {
	dir, _, _, _, _, err := c.longHouse(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	empty := c.folder("empty")
	if err := os.MkdirAll(empty, 0o700); err != nil {
		return err
	}
	var full, none []time.Duration
	for i := range c.n.starts + 1 {
		for _, at := range []struct {
			dir   string
			times *[]time.Duration
		}{{dir, &full}, {empty, &none}} {
			s, err := c.server(ctx, at.dir, "")
			if err != nil {
				return err
			}
			if err := s.stop(); err != nil {
				return err
			}
			if i > 0 { // the first one reads the program and makes the empty database
				*at.times = append(*at.times, s.took)
			}
		}
	}
	f := &startFigures{Messages: c.n.long, P50: millis(at(full, 0.5)), Max: millis(at(full, 1)), EmptyP50: millis(at(none, 0.5))}
	c.figures.Startup = f
	fmt.Fprintf(c.out, "\nstart-up with %d messages: %.0f ms p50, %.0f ms at most, of %d (with none: %.0f ms p50)\n", f.Messages, f.P50, f.Max, c.n.starts, f.EmptyP50)
	return nil
}

func (c *chatRun) appending(ctx context.Context) error {
	dir, g, short, long, middle, err := c.longHouse(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := c.server(ctx, dir, "")
	if err != nil {
		return err
	}
	url := func(conversation string) string {
		return s.base + "/api/v1/conversations/" + conversation + "/messages"
	}
	page := func(url string) func() error {
		return func() error { return g.rest(ctx, http.MethodGet, url, nil, nil) }
	}
	say := func(conversation string) func() error {
		return func() error {
			return g.rest(ctx, http.MethodPost, url(conversation), map[string]any{"text": "One more word about the rain.", "reply": false}, nil)
		}
	}
	// The kinds take turns, so that whatever else the machine does is shared.
	times, err := takeTurns(c.n.requests, say(short), say(long), page(url(short)+"?limit=50"), page(url(long)+"?limit=50"), page(url(long)+"?limit=50&before="+middle))
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	f := &appendFigures{
		Short: shortChat, Long: c.n.long, AppendP50: millis(at(times[0], 0.5)), AppendLong: millis(at(times[1], 0.5)),
		PageP50: millis(at(times[2], 0.5)), PageLong: millis(at(times[3], 0.5)), PageMiddle: millis(at(times[4], 0.5)),
	}
	c.figures.Append = f
	fmt.Fprintf(c.out, "\nappend a message (REST, on disk when answered), ms p50: %.2f with %d in the chat, %.2f with %d\n", f.AppendP50, f.Short, f.AppendLong, f.Long)
	fmt.Fprintf(c.out, "page of 50 messages (REST), ms p50: %.2f with %d in the chat, %.2f with %d, %.2f from its middle\n", f.PageP50, f.Short, f.PageLong, f.Long, f.PageMiddle)
	return nil
}

// takeTurns runs each of kinds n times, one after the other, after a tenth that
// is not counted.
func takeTurns(n int, kinds ...func() error) ([][]time.Duration, error) {
	times := make([][]time.Duration, len(kinds))
	for i := range n + n/10 {
		for k, f := range kinds {
			begun := time.Now()
			if err := f(); err != nil {
				return nil, err
			}
			if i >= n/10 {
				times[k] = append(times[k], time.Since(begun))
			}
		}
	}
	return times, nil
}

func (c *chatRun) storing(ctx context.Context) error {
	const clients = 32
	s, list, err := c.house(ctx, "store", clients, "")
	if err != nil {
		return err
	}
	times := make([][]time.Duration, clients)
	var stored atomic.Int64
	begun := time.Now()
	err = each(clients, clients, func(i int) error {
		for time.Since(begun) < c.n.storing {
			sent := time.Now()
			err := list[i].rest(ctx, http.MethodPost, s.base+"/api/v1/conversations/"+list[i].conversation+"/messages",
				map[string]any{"text": "One more word about the rain.", "reply": false}, nil)
			if err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(sent))
			stored.Add(1)
		}
		return nil
	})
	took := time.Since(begun)
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	var all []time.Duration
	for _, t := range times {
		all = append(all, t...)
	}
	f := &storeFigures{Clients: clients, PerSecond: float64(stored.Load()) / took.Seconds(), P50: millis(at(all, 0.5)), P95: millis(at(all, 0.95))}
	c.figures.Storing = f
	fmt.Fprintf(c.out, "\n%d clients (REST): %.0f messages stored a second, acknowledged within %.1f ms p50, %.1f ms p95\n", f.Clients, f.PerSecond, f.P50, f.P95)
	return nil
}
