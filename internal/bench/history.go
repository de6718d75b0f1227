package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"nodest/llm"
)

// chatHistory is what one chat costs. Times are by the names of historySteps.
type chatHistory struct {
	Messages int               `json:"messages"`
	Times    map[string]spread `json:"times"`
}

// historySteps are the measurements, in the order of their lines.
var historySteps = []struct{ name, says string }{
	{"save", "create a save point"},
	{"restore", "restore it after three edits and two messages"},
	{"head", "show the branch from the middle, and the first again"},
	{"pageEnd", "page of 50 at the end"},
	{"pageMiddle", "page of 50 in the middle"},
	{"pageBranch", "page of 50 on the branch from the middle"},
	{"searchRare", "search all of it for a word of the first message"},
	{"fork", "fork the chat, until the answer"},
	{"forkWhole", "fork the chat, until all of it is there"},
}

// History measures save points, branches, forks and search in chats of three
// lengths from outside, as an app sees it: over REST, with a process of its own on
// SQLite in a temporary folder.
func History(ctx context.Context, out io.Writer, o ServerOptions) error {
	return withServers(ctx, out, o, func(r *run) error {
		var chats []chatHistory
		for _, messages := range r.n.chats {
			h, err := r.history(ctx, messages)
			if err != nil {
				return fmt.Errorf("a chat of %d messages: %w", messages, err)
			}
			chats = append(chats, h)
		}
		r.figures["chats"] = chats
		printHistory(r.out, chats)
		return nil
	})
}

// printHistory writes a line per measurement, the chats side by side.
func printHistory(out io.Writer, chats []chatHistory) {
	fmt.Fprintf(out, "REST, ms p50 / p95\n\n%-52s", "")
	for _, c := range chats {
		fmt.Fprintf(out, "%18s", fmt.Sprintf("%d messages", c.Messages))
	}
	fmt.Fprintln(out)
	for _, step := range historySteps {
		fmt.Fprintf(out, "%-52s", step.says)
		for _, c := range chats {
			fmt.Fprintf(out, "%18s", fmt.Sprintf("%.1f / %.1f", c.Times[step.name].P50, c.Times[step.name].P95))
		}
		fmt.Fprintln(out)
	}
}

// longChat is the chat that is measured.
type longChat struct {
	stopwatch
	g    *guest
	api  string // …/api/v1
	chat string // …/api/v1/conversations/{id}
	filledChat
	n sizes
}

func (r *run) history(ctx context.Context, messages int) (h chatHistory, err error) {
	dir, list, err := r.home(ctx, 1, messages)
	if err != nil {
		return h, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	h = chatHistory{Messages: messages, Times: map[string]spread{}}
	return h, r.serve(ctx, dir, "", func(s *child) error {
		api, c := s.base+"/api/v1", list[0].chats[0]
		l := &longChat{stopwatch: stopwatch{}, g: list[0], api: api, chat: chatURL(s.base, c.id), filledChat: c, n: r.n}
		for _, measure := range []func(context.Context) error{l.pages, l.saves, l.branch, l.forks} {
			if err := measure(ctx); err != nil {
				return err
			}
		}
		for name, times := range l.stopwatch {
			h.Times[name] = spreadOf(times)
		}
		return nil
	})
}

// call sends a request; out may be nil.
func (l *longChat) call(ctx context.Context, method, url string, body, out any) func() error {
	return func() error { return l.g.rest(ctx, method, url, body, out) }
}

func (l *longChat) get(ctx context.Context, url string) func() error {
	return l.call(ctx, http.MethodGet, url, nil, nil)
}

func (l *longChat) pages(ctx context.Context) error {
	return l.rounds(l.n.steps,
		step{"pageEnd", l.get(ctx, l.chat+"/messages?limit=50")},
		step{"pageMiddle", l.get(ctx, l.chat+"/messages?limit=50&before="+l.middle)},
		step{"searchRare", func() error { return l.search(ctx, rareWord) }})
}

// search goes on to the end of the chat: one call looks at a part of it.
func (l *longChat) search(ctx context.Context, word string) error {
	found := 0
	for cursor := ""; ; {
		var page struct {
			Items      []json.RawMessage
			NextCursor *string
		}
		query := url.Values{"q": {word}, "limit": {"50"}, "conversationId": {l.id}, "cursor": {cursor}}
		if err := l.g.rest(ctx, http.MethodGet, l.api+"/messages/search?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		found += len(page.Items)
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if found != 1 {
		return fmt.Errorf("found %d messages, want 1", found)
	}
	return nil
}

func (l *longChat) saves(ctx context.Context) error {
	var made struct{ ID string }
	return l.rounds(l.n.steps,
		step{"save", l.call(ctx, http.MethodPost, l.chat+"/saves", map[string]any{"description": "bench"}, &made)},
		step{"", func() error { return l.change(ctx) }},
		step{"restore", func() error {
			return l.g.rest(ctx, http.MethodPost, l.api+"/saves/"+made.ID+"/restore", map[string]any{}, nil)
		}})
}

// change edits the last three messages and adds two.
func (l *longChat) change(ctx context.Context) error {
	var page struct{ Items []struct{ ID string } }
	if err := l.g.rest(ctx, http.MethodGet, l.chat+"/messages?limit=3", nil, &page); err != nil {
		return err
	}
	for _, m := range page.Items {
		if err := l.g.rest(ctx, http.MethodPatch, l.api+"/messages/"+m.ID, map[string]any{"text": "Other words."}, nil); err != nil {
			return err
		}
	}
	for range 2 {
		if err := l.g.say(ctx, l.chat); err != nil {
			return err
		}
	}
	return nil
}

// branch leaves the chat in its middle and reads there.
func (l *longChat) branch(ctx context.Context) error {
	var main struct{ HeadID string }
	if err := l.g.rest(ctx, http.MethodGet, l.chat, nil, &main); err != nil {
		return err
	}
	var other struct{ UserMessage struct{ ID string } }
	say := map[string]any{"text": "The rain goes on and on.", "reply": false, "parentId": l.middle}
	if err := l.g.rest(ctx, http.MethodPost, l.chat+"/messages", say, &other); err != nil {
		return err
	}
	if err := l.rounds(l.n.steps, step{"pageBranch", l.get(ctx, l.chat+"/messages?limit=50")}); err != nil {
		return err
	}
	show := func(id string) func() error {
		return l.call(ctx, http.MethodPut, l.chat+"/head", map[string]any{"messageId": id}, nil)
	}
	if err := l.rounds(l.n.steps, step{"head", show(main.HeadID)}, step{"head", show(other.UserMessage.ID)}); err != nil {
		return err
	}
	return show(main.HeadID)()
}

// forks makes copies and deletes them again.
func (l *longChat) forks(ctx context.Context) error {
	var address string
	copied := func() error {
		var fork struct {
			ID      string
			Copying bool
		}
		begun := time.Now()
		if err := l.g.rest(ctx, http.MethodPost, l.chat+"/fork", map[string]any{}, &fork); err != nil {
			return err
		}
		l.stopwatch["fork"] = append(l.stopwatch["fork"], time.Since(begun))
		address = l.api + "/conversations/" + fork.ID
		for fork.Copying && l.get(ctx, address)() != nil { // not there yet
			if err := llm.Sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}
	return l.rounds(l.n.forks, step{"forkWhole", copied}, step{"", func() error { return l.g.rest(ctx, http.MethodDelete, address, nil, nil) }})
}
