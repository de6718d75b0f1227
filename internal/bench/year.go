package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"nodest/chat"
	"nodest/cognition/side"
	"nodest/internal/bench/figure"
	"nodest/llm"
	"nodest/memory/dream"
)

// YearOptions are those of Year.
type YearOptions struct {
	ServerOptions
	Messages int           // messages of the long chat, at least 100
	Users    int           // who take turns, each with a chat of Texts
	Texts    int           // 0 = 15 % of Messages
	Scopes   int           // memories that are searched before the memory of the process is read: the long one and those of other users
	Turns    int           // whose size on disk is measured; 0 = 200, in small chats fewer
	Limit    time.Duration // time for each series of measurements, which ends there; 0 = a minute
	Wait     time.Duration // until all texts have vectors; 0 = ten minutes
}

func (o *YearOptions) defaults() error {
	if o.Messages < 100 {
		return fmt.Errorf("a year needs at least 100 messages, not %d", o.Messages)
	}
	if o.Texts == 0 {
		o.Texts = o.Messages * 15 / 100
	}
	if o.Turns == 0 {
		o.Turns = max(10, min(200, o.Messages/50))
	}
	if o.Limit == 0 {
		o.Limit = time.Minute
	}
	if o.Wait == 0 {
		o.Wait = 10 * time.Minute
	}
	return nil
}

// yearSteps are the figures, in the order of their lines.
var yearSteps = []struct{ name, says string }{
	{"bytesPerTurn", "bytes on disk per turn"},
	{"bytesPerTurnKept", "the same, after what has a time limit is removed"},
	{"textPerTurn", "the text of a turn itself, bytes"},
	{"fillS", "writing the chats, s"},
	{"indexedAfterS", "until all texts have vectors, s; -1 = not within the wait"},
	{"firstTurnMs", "first turn after a start, until the provider is asked, ms"},
	{"turnMs", "further turns, until the provider is asked, ms p50"},
	{"firstRecallMs", "first memory search after a start, ms"},
	{"recallP50Ms", "further memory searches, ms p50"},
	{"recallP95Ms", "further memory searches, ms p95"},
	{"recallFound", "share of the searches that find the line with the answer"},
	{"searchMs", "search of all messages for a rare word, ms p50"},
	{"rssMb", "memory of the server after a search in each scope, MB"},
	{"firstTokenMs", "added time to first token, users in turn, ms p50"},
	{"cpuPerTurnMs", "processor time per turn, users in turn, ms"},
	{"turnsWithoutMemories", "share of these turns without memories"},
}

// year is one run of Year.
type year struct {
	*run
	o     YearOptions
	p     *provider
	turns int // that were tagged
}

// Year measures a life with a character: how much a turn takes on disk, and how quick turns,
// memories and searches are when a chat is long. It starts servers on SQLite in a temporary
// folder, with a provider that costs nothing. On PostgreSQL it measures the former alone.
func Year(ctx context.Context, out io.Writer, o YearOptions) error {
	if err := o.defaults(); err != nil {
		return err
	}
	return withServers(ctx, out, o.ServerOptions, func(r *run) error {
		p, err := newProvider(ctx, 0, 0, 0)
		if err != nil {
			return err
		}
		defer p.close()
		p.words = func(turn int) []string {
			return strings.SplitAfter(yearChat{seed: 1 << 20}.line(2*max(0, turn)+1).text, " ")
		}
		y := &year{run: r, o: o, p: p}
		r.figures["messages"], r.figures["users"], r.figures["texts"], r.figures["scopes"] = o.Messages, o.Users, o.Texts, o.Scopes
		if err := y.disk(ctx); err != nil {
			return fmt.Errorf("disk: %w", err)
		}
		if r.Database == "" {
			if err := y.long(ctx); err != nil {
				return err
			}
		}
		for _, step := range yearSteps {
			if figure, ok := r.figures[step.name]; ok {
				fmt.Fprintf(r.out, "%-62s %12.2f\n", step.says, figure)
			}
		}
		return nil
	})
}

// long makes the long chat and those of the other users, and measures with them.
func (y *year) long(ctx context.Context) error {
	begun := time.Now()
	dir, list, err := y.homeOf(ctx, 1+max(y.o.Users, y.o.Scopes-1), func(user int) []chatScript {
		length := y.o.Texts
		if user == 0 {
			length = y.o.Messages
		}
		return []chatScript{{length, y.chat(user).line}}
	})
	if err != nil {
		return fmt.Errorf("write the chats: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	y.figures["fillS"] = time.Since(begun).Seconds()
	for _, part := range []struct {
		name string
		do   func(context.Context, *child, []*guest) error
	}{
		{"vectors", y.indexed}, {"turns", y.longTurns}, {"recall", y.recall}, {"users", y.inTurn},
	} {
		err := y.serve(ctx, dir, y.p.url, func(s *child) error { return part.do(ctx, s, list) })
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// chat is what a user's chat is filled with.
func (y *year) chat(user int) yearChat {
	length := y.o.Texts
	if user == 0 {
		length = y.o.Messages
	}
	return yearChat{seed: uint64(user) + 1, exchanges: length / 2}
}

// indexed waits until the memories are complete.
func (y *year) indexed(ctx context.Context, s *child, list []*guest) error {
	begun := time.Now()
	waiting, stop := context.WithTimeout(ctx, y.o.Wait)
	defer stop()
	for _, g := range list {
		if err := g.idle(waiting, s.base); err != nil {
			if waiting.Err() == nil || ctx.Err() != nil {
				return err
			}
			y.figures["indexedAfterS"] = -1.0
			return nil
		}
	}
	y.figures["indexedAfterS"] = time.Since(begun).Seconds()
	return nil
}

// idle waits until the texts of a guest can be found, whatever facts and summaries are still to
// be made of them. Work that has not been seen after some seconds is not expected any more.
func (g *guest) idle(ctx context.Context, base string) error {
	const soon = 5 * time.Second
	later := []string{"memory.extract", chat.JobSummarise, side.JobSide, dream.JobDream} // a night is planned ahead
	seen := time.Now()
	return g.jobs(ctx, base, func(kinds map[string]int) bool {
		open, known := 0, time.Since(seen) > soon
		for kind, n := range kinds {
			if kind == chat.JobWords || strings.HasPrefix(kind, "memory.") && !slices.Contains(later, kind) {
				open, known = open+n, true
			}
		}
		return known && open == 0
	})
}

// jobs looks at the jobs of a guest until enough says so. It gets the kinds that the guest has
// had, with the number of those that have not ended.
func (g *guest) jobs(ctx context.Context, base string, enough func(open map[string]int) bool) error {
	for {
		var page struct {
			Items []struct{ Kind, State string }
		}
		if err := g.rest(ctx, http.MethodGet, base+"/api/v1/jobs?limit=200", nil, &page); err != nil {
			return err
		}
		open := map[string]int{}
		for _, j := range page.Items {
			if j.State == "queued" || j.State == "running" {
				open[j.Kind]++
			} else {
				open[j.Kind] += 0
			}
		}
		if enough(open) {
			return nil
		}
		if err := llm.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// longTurns measures turns in the long chat. Those after the first one wait until the written chat has
// the summary that it asks for.
func (y *year) longTurns(ctx context.Context, s *child, list []*guest) error {
	const further = 20
	var asked []time.Duration
	err := y.series(1+further, func(i int) error {
		if i == 1 {
			if err := y.summarised(ctx, s, list[:1]); err != nil {
				return err
			}
		}
		question, _ := y.chat(0).question(i % y.chat(0).facts())
		t, err := y.turn(ctx, s, list[0], question)
		asked = append(asked, y.p.moments(t.n).arrived.Sub(t.sent))
		return err
	})
	if err != nil {
		return err
	}
	y.figures["firstTurnMs"], y.figures["turnMs"] = figure.Millis(asked[0]), figure.Millis(figure.At(asked[1:], 0.5))
	return nil
}

// series does something n times, at least twice, until the limit.
func (y *year) series(n int, do func(i int) error) error {
	begun := time.Now()
	for i := 0; i < n && (i < 2 || time.Since(begun) < y.o.Limit); i++ {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

// turn lets a guest say something in the first chat. A connection takes a limited number of
// commands, so each turn has its own.
func (y *year) turn(ctx context.Context, s *child, g *guest, text string) (turnTimes, error) {
	t, err := greet(ctx, s.base, g, "bench")
	defer hangUp([]*talker{t})
	if err != nil {
		return turnTimes{}, err
	}
	y.turns++
	size := 0
	times, err := t.say(y.turns, fmt.Sprintf("%s (turn-%d-)", text, y.turns), func(delta []byte) { size += len(delta) })
	if err == nil && size == 0 {
		err = fmt.Errorf("turn %d has no reply", y.turns)
	}
	return times, err
}

// recall measures searches in the memory, and in the messages, of the long chat; then the memory
// of the server.
func (y *year) recall(ctx context.Context, s *child, list []*guest) error {
	const further = 100
	g, c, found := list[0], y.chat(0), 0
	w := stopwatch{}
	first := func() error { return y.search(ctx, s, g, c, 0, &found) }
	if err := w.rounds(1, step{"first", first}); err != nil {
		return err
	}
	found = 0
	err := y.series(further, func(i int) error {
		return w.rounds(1, step{"next", func() error { return y.search(ctx, s, g, c, i+1, &found) }})
	})
	if err != nil {
		return err
	}
	next := spreadOf(w["next"])
	y.figures["firstRecallMs"], y.figures["recallP50Ms"], y.figures["recallP95Ms"] = figure.Millis(w["first"][0]), next.P50, next.P95
	y.figures["recallFound"] = float64(found) / float64(len(w["next"]))
	api := s.base + "/api/v1"
	l := &longChat{g: g, api: api, chat: chatURL(s.base, g.chats[0].id), filledChat: g.chats[0]}
	if err := y.series(5, func(int) error { return w.rounds(1, step{"rare", func() error { return l.search(ctx, rareWord) }}) }); err != nil {
		return err
	}
	y.figures["searchMs"] = figure.Millis(figure.At(w["rare"], 0.5))
	for user := 1; user < y.o.Scopes; user++ {
		if err := y.search(ctx, s, list[user], y.chat(user), 0, &found); err != nil {
			return err
		}
	}
	resident, err := s.resident()
	y.figures["rssMb"] = float64(resident) / 1e6
	return err
}

// search asks a memory for fact k, and counts if the line with it is found.
func (y *year) search(ctx context.Context, s *child, g *guest, c yearChat, k int, found *int) error {
	question, answer := c.question(k * 7 % c.facts())
	var page struct{ Items []struct{ Text string } }
	address := s.base + "/api/v1/characters/" + g.chats[0].character + "/memories?" + url.Values{"q": {question}}.Encode()
	if err := g.rest(ctx, http.MethodGet, address, nil, &page); err != nil {
		return err
	}
	for _, item := range page.Items {
		if strings.Contains(item.Text, answer) {
			*found++
			break
		}
	}
	return nil
}

// inTurn lets the users have turns one after the other. The first round is not counted, and the
// others begin when the chats, which nobody has had a turn in before, have their summaries.
func (y *year) inTurn(ctx context.Context, s *child, list []*guest) error {
	const rounds = 5
	if y.o.Users == 0 {
		y.figures["firstTokenMs"], y.figures["cpuPerTurnMs"], y.figures["turnsWithoutMemories"] = 0.0, 0.0, 0.0
		return nil
	}
	var added []time.Duration
	var before time.Duration
	err := y.series((1+rounds)*y.o.Users, func(i int) (err error) {
		if i == y.o.Users {
			if err := y.summarised(ctx, s, list[1:1+y.o.Users]); err != nil {
				return err
			}
			if before, err = s.cpu(); err != nil {
				return err
			}
			added = nil
		}
		user := 1 + i%y.o.Users
		c := y.chat(user)
		question, _ := c.question(i / y.o.Users % c.facts())
		t, err := y.turn(ctx, s, list[user], question)
		m := y.p.moments(t.n)
		added = append(added, m.arrived.Sub(t.sent)+t.first.Sub(m.spoke))
		return err
	})
	if err != nil {
		return err
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	y.figures["firstTokenMs"] = figure.Millis(figure.At(added, 0.5))
	y.figures["cpuPerTurnMs"] = figure.Millis((after - before) / time.Duration(len(added)))
	without, replies := 0, 0
	for _, g := range list[1 : 1+y.o.Users] {
		if err := g.withoutMemories(ctx, s.base, len(added)/y.o.Users, &without, &replies); err != nil {
			return err
		}
	}
	y.figures["turnsWithoutMemories"] = float64(without) / float64(max(1, replies))
	return nil
}

// summarised waits until no summary of the users is due any more.
func (y *year) summarised(ctx context.Context, s *child, list []*guest) error {
	for _, g := range list {
		if err := g.jobs(ctx, s.base, func(open map[string]int) bool { return open[chat.JobSummarise] == 0 }); err != nil {
			return err
		}
	}
	return nil
}

// withoutMemories counts the last replies of the first chat, and those for which nothing was
// recalled.
func (g *guest) withoutMemories(ctx context.Context, base string, last int, without, replies *int) error {
	var page struct{ Items []struct{ ID, Role string } }
	if err := g.rest(ctx, http.MethodGet, fmt.Sprintf("%s/messages?limit=%d", chatURL(base, g.chats[0].id), max(1, 2*last)), nil, &page); err != nil {
		return err
	}
	for _, m := range page.Items {
		if m.Role != "assistant" {
			continue
		}
		var recalled struct{ Items []json.RawMessage }
		if err := g.rest(ctx, http.MethodGet, base+"/api/v1/messages/"+m.ID+"/memories", nil, &recalled); err != nil {
			return err
		}
		*replies++
		if len(recalled.Items) == 0 {
			*without++
		}
	}
	return nil
}
