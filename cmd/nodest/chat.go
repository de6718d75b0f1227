package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"nodest/internal/cite"
	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/llm/sse"
)

func (p *program) chatCommand() *cobra.Command {
	var conversation string
	var fresh, search bool
	cmd := &cobra.Command{
		Use: "chat [CHARACTER]", Short: "Chat with a character in the terminal", Args: cobra.MaximumNArgs(1),
		Long: "Chat with a character, given by the beginning of its name or by id; default: the character of the newest chat. Continues the\n" +
			"newest chat with that character, or starts one. Ctrl-C stops the reply, not the program; type /help for a list of commands.",
		Example: "  nodest chat\n  nodest chat Seraphina --new",
		RunE: func(cmd *cobra.Command, args []string) error {
			// Ctrl-C ends the context of every other command. Here it belongs to the
			// reply that is being written.
			ctx, stop := signal.NotifyContext(context.WithoutCancel(cmd.Context()), syscall.SIGTERM)
			defer stop()
			return p.withClient(ctx, func(c *cli.Client) error {
				if err := c.TellZone(ctx); err != nil {
					return err
				}
				t := &talk{p: p, c: c, in: bufio.NewScanner(p.in), out: p.out, web: search}
				t.in.Buffer(make([]byte, 64<<10), 1<<20)
				if err := t.open(ctx, strings.Join(args, ""), conversation, fresh); err != nil {
					return err
				}
				return t.loop(ctx)
			})
		},
	}
	cmd.Flags().StringVar(&conversation, "conversation", "", "continue this chat (title or id)")
	cmd.Flags().BoolVar(&fresh, "new", false, "start a new chat")
	cmd.Flags().BoolVar(&search, "search", false, "let replies search the web, whatever the settings of the chat are")
	return cmd
}

// talk is one conversation in the terminal.
type talk struct {
	p         *program
	c         *cli.Client
	in        *bufio.Scanner
	out       io.Writer
	id        string // id of the conversation
	character string // id of the character
	name      string // name of the character
	deleted   string // message that /undo brings back
	web       bool   // replies may search it

	// The lists that /branches and /saves numbered last; nil = nothing.
	listed      []chatBranch
	listedSaves []chatSave
}

type chatMessage struct {
	ID           string `json:"id"`
	Seq          int64  `json:"seq"`
	Rev          int64  `json:"rev"`
	Role         string `json:"role"`
	Name         string `json:"name"`
	Text         string `json:"text"`
	Status       string `json:"status"`
	GenerationID string `json:"generationId"`
	Swipes       []struct {
		ID string `json:"id"`
	} `json:"swipes"`
	SwipeIndex int `json:"swipeIndex"`
}

// open finds or makes the conversation and shows its end.
func (t *talk) open(ctx context.Context, name, conversation string, fresh bool) error {
	var conv, ch cli.Item
	var err error
	if conversation != "" {
		conv, err = t.c.Find(ctx, conversation, cli.Chats)
	} else if ch, err = t.find(ctx, name); err == nil {
		conv, err = t.newest(ctx, ch.ID, fresh)
	}
	if err != nil {
		return err
	}
	if err := t.c.Call(ctx, http.MethodGet, "/api/v1/characters/"+conv.CharacterID, nil, &ch); err != nil {
		return err
	}
	t.id, t.character, t.name = conv.ID, conv.CharacterID, ch.Name
	page, err := t.last(ctx, 10)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "%s (conversation %s; type /help for commands)\n", ch.Name, conv.ID)
	for _, m := range page {
		t.show(m)
	}
	return nil
}

// find returns a character by name or id; without one that of the newest chat,
// else the newest character.
func (t *talk) find(ctx context.Context, name string) (cli.Item, error) {
	if name != "" {
		return t.c.Find(ctx, name, cli.Characters)
	}
	list, err := t.c.Items(ctx, cli.Characters)
	if err != nil {
		return cli.Item{}, err
	}
	if len(list) == 0 {
		return cli.Item{}, fault.New(fault.NotFound, "no character yet; add one with: %s", cli.Characters.First)
	}
	newest, err := newestChat(ctx, t.c, "")
	if err != nil {
		return cli.Item{}, err
	}
	at := slices.IndexFunc(list, func(ch cli.Item) bool { return ch.ID == newest.CharacterID })
	return list[max(at, 0)], nil
}

// newest returns the newest conversation with a character, or a new one.
func (t *talk) newest(ctx context.Context, characterID string, fresh bool) (conv cli.Item, err error) {
	if !fresh {
		if conv, err = newestChat(ctx, t.c, characterID); err != nil || conv.ID != "" {
			return conv, err
		}
	}
	err = t.c.Call(ctx, http.MethodPost, "/api/v1/conversations", map[string]any{"characterId": characterID}, &conv)
	return conv, err
}

// newestChat is the chat that changed last, of a character where one is given; zero
// where there is none.
func newestChat(ctx context.Context, c *cli.Client, characterID string) (cli.Item, error) {
	var page cli.PageOf[cli.Item]
	err := c.Call(ctx, http.MethodGet, cli.Chats.Path+"?limit=1&characterId="+url.QueryEscape(characterID), nil, &page)
	if err != nil || len(page.Items) == 0 {
		return cli.Item{}, err
	}
	return page.Items[0].As(cli.Chats), nil
}

// last returns the newest n messages, oldest first.
func (t *talk) last(ctx context.Context, n int) ([]chatMessage, error) {
	var page cli.PageOf[chatMessage]
	err := t.c.Call(ctx, http.MethodGet, t.conversation("/messages?limit="+strconv.Itoa(n)), nil, &page)
	return page.Items, err
}

func (t *talk) show(m chatMessage) {
	who := cmp.Or(m.Name, m.Role)
	if m.Role == "user" {
		who = "you"
	}
	more := ""
	if len(m.Swipes) > 1 {
		more = fmt.Sprintf(" [%d/%d]", m.SwipeIndex+1, len(m.Swipes))
	}
	fmt.Fprintf(t.out, "\n#%d %s%s: %s\n", m.Seq, who, more, m.Text)
}

// loop reads lines until the end of the input or /quit. An error in one
// line is printed, and the next one is read.
func (t *talk) loop(ctx context.Context) error {
	for {
		fmt.Fprint(t.out, "\n> ")
		if !t.in.Scan() {
			fmt.Fprintln(t.out)
			return t.in.Err()
		}
		line := strings.TrimSpace(t.in.Text())
		if line == "/quit" || line == "/exit" {
			return nil
		}
		var err error
		switch {
		case line == "":
		case strings.HasPrefix(line, "/"):
			err = t.command(ctx, line)
		default:
			err = t.stream(ctx, http.MethodPost, t.conversation("/messages"), t.sending(line))
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // a stop signal is no failure
		}
		if err != nil {
			fmt.Fprintln(t.out, "!", oneLine(err))
		}
	}
}

// stream starts a generation and prints it as it comes. Ctrl-C cancels it.
func (t *talk) stream(ctx context.Context, method, path string, body any) error {
	res, err := t.c.Send(ctx, method, path, body, "text/event-stream")
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	defer signal.Stop(stop)
	watch, done := context.WithCancel(ctx)
	defer done()
	print := &printer{out: t.out, name: t.name, whole: func(generation string, from int) (string, error) {
		var got struct{ Text string }
		path := "/api/v1/generations/" + generation + "?off=" + strconv.Itoa(from)
		return got.Text, t.c.Call(ctx, http.MethodGet, path, nil, &got)
	}}
	started := make(chan string, 1)
	finished := make(chan struct{})
	go func() { // ends with watch, before stream returns
		defer close(finished)
		t.cancelOn(watch, stop, started)
	}()
	err = readEvents(res.Body, func(ev event) error { return print.event(ev, started) })
	done()
	<-finished
	return err
}

// sending is what a line sends.
func (t *talk) sending(line string) map[string]any {
	body := map[string]any{"text": line}
	if t.web {
		body["options"] = map[string]bool{"searchEnabled": true}
	}
	return body
}

// cancelOn asks the server to stop the generation when stop fires.
func (t *talk) cancelOn(ctx context.Context, stop <-chan os.Signal, started <-chan string) {
	generation := ""
	for {
		select {
		case generation = <-started:
		case <-stop:
			if generation != "" {
				// The answer does not matter: the stream reports how it ended.
				_ = t.c.Call(ctx, http.MethodPost, "/api/v1/generations/"+generation+"/cancel", nil, nil)
			}
		case <-ctx.Done():
			return
		}
	}
}

// event is one server-sent event of the protocol.
type event struct {
	Ev           string          `json:"ev"`
	GenerationID string          `json:"generationId"`
	Off          int             `json:"off"` // position of a delta
	Data         json.RawMessage `json:"data"`
}

// readEvents calls f for each event of an SSE body.
func readEvents(body io.Reader, f func(event) error) error {
	events := sse.NewReader(body, longestEvent)
	for {
		data, err := events.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var ev event
		if err := json.Unmarshal(data, &ev); err != nil {
			return fmt.Errorf("the server sent an event that is not valid JSON: %w", err)
		}
		if err := f(ev); err != nil {
			return err
		}
	}
}

// longestEvent bounds an event of the server, in bytes.
const longestEvent = 16 << 20

// printer shows the events of one generation.
type printer struct {
	out   io.Writer
	name  string
	whole func(generation string, from int) (string, error) // text of a generation from a position on
	text  string                                            // that was printed
	from  int                                               // where it begins, in code points
	cited []citedSource
}

// citedSource is a source of a reply.
type citedSource struct {
	Kind                   string
	Marker, Page           int
	Title, URL, ExactQuote string
}

// String is a line about the source: a page of the web has an address to open, a document a
// passage to look for.
func (r *citedSource) String() string {
	if r.Kind != cite.KindKnowledge {
		return fmt.Sprintf("[%d] %s – %s", r.Marker, r.Title, r.URL)
	}
	return fmt.Sprintf("[%d] %s: “%s”", r.Marker, onPage(r.Title, r.Page), cli.Brief(r.ExactQuote, 300))
}

// onPage is a title with the number of a page, if there is one.
func onPage(title string, page int) string {
	if page > 0 {
		title += ", page " + strconv.Itoa(page)
	}
	return title
}

// eventData is what the events of a generation carry, each some of it.
type eventData struct {
	Kind, Text, Part, Status string
	Warnings                 []string
	References               []citedSource
	Error                    *struct{ Detail string }
}

func (p *printer) event(ev event, started chan<- string) error {
	var d eventData
	switch ev.Ev {
	case "gen.started", "gen.context", "gen.references", "gen.delta", "gen.done", "gen.failed":
		if err := json.Unmarshal(ev.Data, &d); err != nil {
			return err
		}
	}
	switch ev.Ev {
	case "gen.started":
		if d.Kind == "impersonate" {
			p.name = "suggested message"
		}
		select {
		case started <- ev.GenerationID:
		default:
		}
	case "gen.context":
		if slices.Contains(d.Warnings, "search_unavailable") {
			fmt.Fprintln(p.out, "(The web could not be searched; the reply does without.)")
		}
	case "gen.references":
		p.cited = d.References
	case "gen.delta":
		p.delta(ev, &d)
	case "gen.rewind":
		if p.text != "" {
			fmt.Fprintln(p.out, "\n(The text above is what the model thought, not its reply.)")
		}
		p.text = ""
	case "gen.done", "gen.failed":
		return p.end(ev.GenerationID, &d)
	}
	return nil
}

// delta prints a streamed piece, unless it is of the model's thoughts.
func (p *printer) delta(ev event, d *eventData) {
	if d.Part != "" && d.Part != "text" {
		return
	}
	if p.text == "" {
		p.from = ev.Off
	}
	p.say(d.Text)
}

// say prints a piece of the reply.
func (p *printer) say(text string) {
	if p.text == "" {
		fmt.Fprintf(p.out, "\n%s: ", p.name)
	}
	p.text += text
	fmt.Fprint(p.out, text)
}

// complete prints the rest of a reply that ended before all of its text was streamed: the
// server leaves out the deltas that it could not send before the end. Where the check of the
// citations has changed the numbers that were streamed, the lines with the right ones follow.
func (p *printer) complete(generation string) error {
	text, err := p.whole(generation, p.from)
	if err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(text, p.text); ok {
		if rest != "" {
			p.say(rest)
		}
		return nil
	}
	if slices.Equal(cite.Marks(text), cite.Marks(p.text)) {
		return nil
	}
	fmt.Fprint(p.out, "\n\n(With its citations checked:)")
	streamed := strings.Split(p.text, "\n")
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.Contains(streamed, line) {
			fmt.Fprint(p.out, "\n", line)
		}
	}
	return nil
}

// endings says why a reply ended early, by its status.
var endings = map[string]string{
	"cancelled":   "(stopped)",
	"interrupted": "(interrupted: the server stopped; /continue goes on)",
}

func (p *printer) end(generation string, d *eventData) error {
	if d.Error == nil && endings[d.Status] == "" {
		if err := p.complete(generation); err != nil {
			return err
		}
	}
	if p.text != "" {
		fmt.Fprintln(p.out)
	}
	for _, r := range p.cited {
		fmt.Fprintf(p.out, "  %s\n", &r)
	}
	if d.Error != nil {
		fmt.Fprintln(p.out, "!", d.Error.Detail)
	} else if note := endings[d.Status]; note != "" {
		fmt.Fprintln(p.out, note)
	}
	return nil
}
