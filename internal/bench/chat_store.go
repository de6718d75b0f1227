package bench

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"nodest/internal/bench/figure"
)

// startFigures are about starting with a full database.
type startFigures struct {
	Messages int     `json:"messages"`
	P50      float64 `json:"p50"` // ms from the start of the process until it listens
	Max      float64 `json:"max"`
}

// appendFigures compare a short and a long chat, in milliseconds a request.
type appendFigures struct {
	Short      int     `json:"short"` // messages
	Long       int     `json:"long"`
	AppendP50  float64 `json:"appendShortP50"`
	AppendLong float64 `json:"appendLongP50"`
	PageP50    float64 `json:"pageShortP50"`
	PageLong   float64 `json:"pageLongP50"`
}

// storeFigures are about many clients that write at the same time.
type storeFigures struct {
	Clients   int     `json:"clients"`
	PerSecond float64 `json:"messagesPerSecond"`
	P50       float64 `json:"p50"` // ms until a message is acknowledged
}

const shortChat = 100

func (r *run) startup(ctx context.Context) error {
	dir, _, err := r.home(ctx, 1, shortChat, r.n.long)
	if err != nil {
		return err
	}
	var times []time.Duration
	for range r.n.starts + 1 {
		err := r.serve(ctx, dir, "", func(s *child) error {
			times = append(times, s.took)
			return nil
		})
		if err != nil {
			return err
		}
	}
	times = times[1:] // the first one reads the program
	f := startFigures{Messages: r.n.long, P50: figure.Millis(figure.At(times, 0.5)), Max: figure.Millis(figure.At(times, 1))}
	r.figures["startup"] = f
	fmt.Fprintf(r.out, "\nstart-up with %d messages: %.0f ms p50, %.0f ms at most, of %d\n", f.Messages, f.P50, f.Max, len(times))
	return nil
}

func (r *run) appending(ctx context.Context) error {
	dir, list, err := r.home(ctx, 1, shortChat, r.n.long)
	if err != nil {
		return err
	}
	return r.serve(ctx, dir, "", func(s *child) error {
		g := list[0]
		say := func(c filledChat) func() error { return func() error { return g.say(ctx, chatURL(s.base, c.id)) } }
		page := func(c filledChat) func() error {
			return func() error { return g.rest(ctx, http.MethodGet, chatURL(s.base, c.id)+"/messages?limit=50", nil, nil) }
		}
		w, short, long := stopwatch{}, g.chats[0], g.chats[1]
		if err := w.rounds(r.n.requests, step{"say", say(short)}, step{"say long", say(long)}, step{"page", page(short)}, step{"page long", page(long)}); err != nil {
			return err
		}
		p50 := func(name string) float64 { return figure.Millis(figure.At(w[name], 0.5)) }
		f := appendFigures{
			Short: shortChat, Long: r.n.long,
			AppendP50: p50("say"), AppendLong: p50("say long"), PageP50: p50("page"), PageLong: p50("page long"),
		}
		r.figures["append"] = f
		fmt.Fprintf(r.out, "\nappend a message (REST, on disk when answered), ms p50: %.2f with %d in the chat, %.2f with %d\n", f.AppendP50, f.Short, f.AppendLong, f.Long)
		fmt.Fprintf(r.out, "page of 50 messages (REST), ms p50: %.2f with %d in the chat, %.2f with %d\n", f.PageP50, f.Short, f.PageLong, f.Long)
		return nil
	})
}

// chatURL is the address of a chat.
func chatURL(base, conversation string) string { return base + "/api/v1/conversations/" + conversation }

// say adds a message that nobody answers.
func (g *guest) say(ctx context.Context, chat string) error {
	return g.rest(ctx, http.MethodPost, chat+"/messages", map[string]any{"text": "One more word about the rain.", "reply": false}, nil)
}

func (r *run) storing(ctx context.Context) error {
	const clients = 32
	dir, list, err := r.home(ctx, clients, 0)
	if err != nil {
		return err
	}
	return r.serve(ctx, dir, "", func(s *child) error {
		times := make([][]time.Duration, clients)
		begun := time.Now()
		err := each(clients, clients, func(i int) error {
			for time.Since(begun) < r.n.storing {
				sent := time.Now()
				if err := list[i].say(ctx, chatURL(s.base, list[i].chats[0].id)); err != nil {
					return err
				}
				times[i] = append(times[i], time.Since(sent))
			}
			return nil
		})
		if err != nil {
			return err
		}
		took, all := time.Since(begun), slices.Concat(times...)
		f := storeFigures{Clients: clients, PerSecond: float64(len(all)) / took.Seconds(), P50: figure.Millis(figure.At(all, 0.5))}
		r.figures["store"] = f
		fmt.Fprintf(r.out, "\n%d clients (REST): %.0f messages stored a second, acknowledged within %.1f ms p50\n", f.Clients, f.PerSecond, f.P50)
		return nil
	})
}
