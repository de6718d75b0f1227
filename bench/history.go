package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// historyFigures are what History found.
type historyFigures struct {
	Machine  string         `json:"machine"`
	Chats    []chatHistory  `json:"chats"`
	Measured time.Time      `json:"measured"`
	Far      int            `json:"far"` // messages that "far ahead" means
	Samples  map[string]int `json:"samples"`
}

// chatHistory is what one chat costs. Times are by the names of historySteps.
type chatHistory struct {
	Messages int               `json:"messages"`
	Times    map[string]spread `json:"times"`
}

// spread is a time in milliseconds.
type spread struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

// historySteps are the measurements, in the order of their lines.
var historySteps = []struct{ name, says string }{
	{"save", "make a save point"},
	{"restore", "restore it after three edits and two messages"},
	{"restoreFar", "restore over the messages since, back and forth"},
	{"saveRead", "the last 50 messages of a save point"},
	{"head", "show the branch from the middle, and the first again"},
	{"pageEnd", "page of 50 at the end"},
	{"pageMiddle", "page of 50 in the middle"},
	{"pageBranch", "page of 50 on the branch from the middle"},
	{"branches", "list the branches"},
	{"searchCommon", "search for words that every message has, 50 hits"},
	{"searchRare", "search all of it for a word of the first message"},
	{"fork", "fork the chat, until the answer"},
	{"forkWhole", "fork the chat, until all of it is there"},
}

// historySizes are how much History does.
type historySizes struct {
	chats []int // messages
	times int   // each measurement
	far   int   // messages between a save point and the restore over them
	forks int
}

var (
	fullHistory  = historySizes{chats: []int{100, 10_000, 100_000}, times: 100, far: 1000, forks: 10}
	smallHistory = historySizes{chats: []int{20, 200}, times: 3, far: 5, forks: 1}
)

// History measures save points, branches, forks and search in chats of three
// lengths from outside, as an app sees it: over REST, with a process of its own on
// SQLite in a temporary folder.
func History(ctx context.Context, out io.Writer, o ServerOptions) error {
	n := fullHistory
	if o.Small {
		n = smallHistory
	}
	return withServers(out, o, func(c *chatRun, machine string, at time.Time) (any, error) {
		f := &historyFigures{Machine: machine, Measured: at, Far: n.far, Samples: map[string]int{"each": n.times, "forks": n.forks}}
		for _, messages := range n.chats {
			h, err := c.history(ctx, n, messages)
			if err != nil {
				return nil, fmt.Errorf("a chat of %d messages: %w", messages, err)
			}
			f.Chats = append(f.Chats, *h)
		}
		f.print(c.out)
		return f, nil
	})
}

// print writes a line per measurement, the chats side by side.
func (f *historyFigures) print(out io.Writer) {
	fmt.Fprintf(out, "REST, ms p50 / p95; far = over %d messages\n\n%-52s", f.Far, "")
	for _, c := range f.Chats {
		fmt.Fprintf(out, "%18s", fmt.Sprintf("%d messages", c.Messages))
	}
	fmt.Fprintln(out)
	for _, step := range historySteps {
		fmt.Fprintf(out, "%-52s", step.says)
		for _, c := range f.Chats {
			fmt.Fprintf(out, "%18s", fmt.Sprintf("%.1f / %.1f", c.Times[step.name].P50, c.Times[step.name].P95))
		}
		fmt.Fprintln(out)
	}
}

// longChat is the chat under measure.
type longChat struct {
	g      *guest
	api    string // …/api/v1
	chat   string // …/api/v1/conversations/{id}
	middle string // a message
	n      historySizes
	times  map[string][]time.Duration
}

func (c *chatRun) history(ctx context.Context, n historySizes, messages int) (h *chatHistory, err error) {
	name := fmt.Sprintf("history-%d", messages)
	s, list, err := c.house(ctx, name, 1, "")
	if err != nil {
		return nil, err
	}
	g := list[0]
	err = g.rest(ctx, http.MethodPost, s.base+"/api/v1/conversations/"+g.conversation+"/messages", map[string]any{"text": "Remember zanzibar.", "reply": false}, nil)
	if err = errors.Join(err, s.stop()); err != nil {
		return nil, err
	}
	ids, err := fill(ctx, c.folder(name), g, g.conversation, messages)
	if err != nil {
		return nil, err
	}
	if s, err = c.server(ctx, c.folder(name), ""); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(c.folder(name))) }()
	api := s.base + "/api/v1"
	l := &longChat{
		g: g, api: api, chat: api + "/conversations/" + g.conversation, middle: ids[len(ids)/2], n: n, times: map[string][]time.Duration{},
	}
	for _, step := range []func(context.Context) error{l.pages, l.searches, l.saves, l.far, l.branch, l.forks} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	h = &chatHistory{Messages: messages, Times: map[string]spread{}}
	for name, times := range l.times {
		h.Times[name] = spread{P50: millis(at(times, 0.5)), P95: millis(at(times, 0.95))}
	}
	return h, nil
}

// timed runs f and notes under a name how long it took.
func (l *longChat) timed(name string, f func() error) error {
	begun := time.Now()
	if err := f(); err != nil {
		return err
	}
	l.times[name] = append(l.times[name], time.Since(begun))
	return nil
}

// call sends a request; out may be nil.
func (l *longChat) call(ctx context.Context, method, url string, body, out any) func() error {
	return func() error { return l.g.rest(ctx, method, url, body, out) }
}

func (l *longChat) get(ctx context.Context, url string) func() error {
	return l.call(ctx, http.MethodGet, url, nil, nil)
}

// say adds a message that nobody answers.
func (l *longChat) say(ctx context.Context, parent string) (id string, err error) {
	body := map[string]any{"text": "The rain goes on and on.", "reply": false}
	if parent != "" {
		body["parentId"] = parent
	}
	var sent struct{ UserMessage struct{ ID string } }
	err = l.g.rest(ctx, http.MethodPost, l.chat+"/messages", body, &sent)
	return sent.UserMessage.ID, err
}

// turns measures several things in turn, so that whatever else the machine does is
// shared.
func (l *longChat) turns(names []string, kinds ...func() error) error {
	times, err := takeTurns(l.n.times, kinds...)
	for i := range times {
		l.times[names[i]] = append(l.times[names[i]], times[i]...)
	}
	return err
}

func (l *longChat) pages(ctx context.Context) error {
	return l.turns([]string{"pageEnd", "pageMiddle"},
		l.get(ctx, l.chat+"/messages?limit=50"), l.get(ctx, l.chat+"/messages?limit=50&before="+l.middle))
}

func (l *longChat) searches(ctx context.Context) error {
	in := "&limit=50&conversationId=" + url.QueryEscape(l.g.conversation)
	return l.turns([]string{"searchCommon", "searchRare"},
		l.get(ctx, l.api+"/messages/search?q=tea+rain"+in),
		func() error { return l.searchAll(ctx, l.api+"/messages/search?q=zanzibar"+in) })
}

// searchAll goes on to the end of the chat: one call looks at a part of it.
func (l *longChat) searchAll(ctx context.Context, address string) error {
	found := 0
	for cursor := ""; ; {
		var page struct {
			Items      []json.RawMessage
			NextCursor *string
		}
		if err := l.g.rest(ctx, http.MethodGet, address+"&cursor="+url.QueryEscape(cursor), nil, &page); err != nil {
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

// save makes a save point and returns its address.
func (l *longChat) save(ctx context.Context) (address string, err error) {
	var made struct{ ID string }
	err = l.g.rest(ctx, http.MethodPost, l.chat+"/saves", map[string]any{"description": "bench"}, &made)
	return l.api + "/saves/" + made.ID, err
}

func (l *longChat) saves(ctx context.Context) error {
	for range l.n.times {
		var saved string
		err := l.timed("save", func() (err error) {
			saved, err = l.save(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if err := l.changeSome(ctx); err != nil {
			return err
		}
		if err := l.timed("restore", l.call(ctx, http.MethodPost, saved+"/restore", map[string]any{}, nil)); err != nil {
			return err
		}
		if err := l.timed("saveRead", l.get(ctx, saved+"?limit=50")); err != nil {
			return err
		}
	}
	return nil
}

// changeSome edits the last three messages and adds two.
func (l *longChat) changeSome(ctx context.Context) error {
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
		if _, err := l.say(ctx, ""); err != nil {
			return err
		}
	}
	return nil
}

// far restores a save point that many messages followed, and comes back.
func (l *longChat) far(ctx context.Context) error {
	first, err := l.save(ctx)
	if err != nil {
		return err
	}
	for range l.n.far {
		if _, err := l.say(ctx, ""); err != nil {
			return err
		}
	}
	last, err := l.save(ctx)
	if err != nil {
		return err
	}
	for i := range l.n.times {
		address := []string{first, last}[i%2]
		if err := l.timed("restoreFar", l.call(ctx, http.MethodPost, address+"/restore", map[string]any{}, nil)); err != nil {
			return err
		}
	}
	return l.g.rest(ctx, http.MethodPost, last+"/restore", map[string]any{}, nil)
}

// branch leaves the chat in its middle and reads there.
func (l *longChat) branch(ctx context.Context) error {
	var main struct{ HeadID string }
	if err := l.g.rest(ctx, http.MethodGet, l.chat, nil, &main); err != nil {
		return err
	}
	other, err := l.say(ctx, l.middle)
	if err != nil {
		return err
	}
	if err := l.turns([]string{"pageBranch", "branches"}, l.get(ctx, l.chat+"/messages?limit=50"), l.get(ctx, l.chat+"/branches")); err != nil {
		return err
	}
	for range l.n.times {
		for _, id := range []string{main.HeadID, other} {
			if err := l.timed("head", l.call(ctx, http.MethodPut, l.chat+"/head", map[string]any{"messageId": id}, nil)); err != nil {
				return err
			}
		}
	}
	return l.g.rest(ctx, http.MethodPut, l.chat+"/head", map[string]any{"messageId": main.HeadID}, nil)
}

// forks makes copies and deletes them again.
func (l *longChat) forks(ctx context.Context) error {
	for range l.n.forks {
		var fork struct {
			ID      string
			Copying bool
		}
		begun := time.Now()
		if err := l.timed("fork", l.call(ctx, http.MethodPost, l.chat+"/fork", map[string]any{}, &fork)); err != nil {
			return err
		}
		address := l.api + "/conversations/" + fork.ID
		for fork.Copying && l.g.rest(ctx, http.MethodGet, address, nil, nil) != nil { // not there yet
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
		l.times["forkWhole"] = append(l.times["forkWhole"], time.Since(begun))
		if err := l.g.rest(ctx, http.MethodDelete, address, nil, nil); err != nil {
			return err
		}
	}
	return nil
}
