package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// The commands of nodest chat about what the character remembers, and about the
// summary of the chat.

// chatMemory is a remembered fact.
type chatMemory struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Kind   string `json:"kind"`
	Origin string `json:"origin"`
	Pinned bool   `json:"pinned"`
}

// chatFound is a fact or a text of a chat that was found, with its score.
type chatFound struct {
	Score  float64     `json:"score"`
	Memory *chatMemory `json:"memory"`
	Said   *struct {
		ConversationID string `json:"conversationId"`
		Seq            int64  `json:"seq"`
		Role           string `json:"role"`
		Name           string `json:"name"`
		Text           string `json:"text"`
	} `json:"said"`
}

// chatSummary is a summary of a chat, as the list has it.
type chatSummary struct {
	ID     string `json:"id"`
	Text   string `json:"summary"`
	Method string `json:"method"`
	Stale  bool   `json:"stale"`
	Active bool   `json:"active"`
	Range  struct {
		Start int `json:"start"`
		End   int `json:"end"`
	} `json:"originalMessagesRange"`
}

// memories is the path of an operation on the memory of the character.
func (t *talk) memories(op string) string {
	return "/api/v1/characters/" + t.character + "/memories" + op
}

// memory lists what is remembered; with words it looks for them.
func (t *talk) memory(ctx context.Context, words string) error {
	if words != "" {
		var page cli.PageOf[chatFound]
		if err := t.c.Call(ctx, http.MethodGet, t.memories("?limit=10&q="+url.QueryEscape(words)), nil, &page); err != nil {
			return err
		}
		return t.found(page.Items)
	}
	list, err := cli.All[chatMemory](ctx, t.c, t.memories(""))
	if err != nil {
		return err
	}
	for _, m := range list {
		fmt.Fprintf(t.out, "  %s (%s)\n", onOneLine(m.Text), m.marks())
	}
	if len(list) == 0 {
		fmt.Fprintln(t.out, "no facts yet; /memory WORDS also searches chat messages")
	}
	return nil
}

// marks are what a list says about a fact besides its text.
func (m *chatMemory) marks() string {
	marks := m.Kind
	if m.Pinned {
		marks += ", pinned"
	}
	if m.Origin == "user" {
		marks += ", by you"
	}
	return marks
}

// found shows units with their scores, the best first.
func (t *talk) found(units []chatFound) error {
	for _, u := range units {
		switch {
		case u.Memory != nil:
			fmt.Fprintf(t.out, "  %.2f  %s (%s)\n", u.Score, onOneLine(u.Memory.Text), u.Memory.marks())
		case u.Said != nil:
			where := t.place(u.Said.ConversationID, u.Said.Seq)
			fmt.Fprintf(t.out, "  %.2f  %s %s: %s\n", u.Score, where, cmp.Or(u.Said.Name, u.Said.Role), beginning(u.Said.Text))
		default:
			fmt.Fprintf(t.out, "  %.2f  (forgotten since)\n", u.Score)
		}
	}
	if len(units) == 0 {
		fmt.Fprintln(t.out, "nothing found")
	}
	return nil
}

func (t *talk) remember(ctx context.Context, text string) error {
	if text == "" {
		return fault.InvalidField("TEXT", "required", "usage: /remember TEXT")
	}
	var m chatMemory
	if err := t.c.Call(ctx, http.MethodPost, t.memories(""), map[string]any{"text": text}, &m); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.out, "remembered: %s\n", onOneLine(m.Text))
	return err
}

// forget removes what is remembered about some words for good; preview only shows it.
func (t *talk) forget(ctx context.Context, words string, preview bool) error {
	if words == "" {
		return fault.InvalidField("WORDS", "required", "usage: /forget WORDS")
	}
	var out struct {
		Memories []struct {
			Text string `json:"text"`
		} `json:"memories"`
		Echoes []struct {
			Role string `json:"role"`
			Name string `json:"name"`
			Text string `json:"text"`
		} `json:"echoes"`
		Truncated bool `json:"truncated"`
	}
	if err := t.c.Call(ctx, http.MethodPost, t.memories("/forget"), map[string]any{"query": words, "dryRun": preview}, &out); err != nil {
		return err
	}
	for _, m := range out.Memories {
		fmt.Fprintf(t.out, "  %s\n", beginning(m.Text))
	}
	switch n := len(out.Memories); {
	case n == 0:
		fmt.Fprintln(t.out, "nothing found")
	case preview:
		fmt.Fprintf(t.out, "/forget! %s permanently deletes %s; the chat messages are kept\n", words, these(n))
	default:
		fmt.Fprintf(t.out, "%s forgotten\n", these(n))
	}
	if len(out.Echoes) > 0 {
		fmt.Fprintln(t.out, "these lines say the same; they stay in the chats and are not recalled for it any more:")
	}
	for _, e := range out.Echoes {
		fmt.Fprintf(t.out, "  %s: %s\n", cmp.Or(e.Name, e.Role), beginning(e.Text))
	}
	if out.Truncated {
		fmt.Fprintln(t.out, "there are more matches; repeat the command")
	}
	return nil
}

// why shows what was recalled for a reply.
func (t *talk) why(ctx context.Context, m chatMessage, _ string) error {
	var page cli.PageOf[chatFound]
	if err := t.c.Call(ctx, http.MethodGet, messagePath(m, "/memories"), nil, &page); err != nil {
		return err
	}
	if len(page.Items) == 0 {
		_, err := fmt.Fprintf(t.out, "no memories were used for #%d\n", m.Seq)
		return err
	}
	return t.found(page.Items)
}

// summary shows the active summary, creates one, or deletes it.
func (t *talk) summary(ctx context.Context, what string) error {
	s := &chatSummary{}
	var err error
	switch what {
	case "", "delete":
		s, err = t.activeSummary(ctx)
	case "now":
		err = t.c.Call(ctx, http.MethodPost, t.conversation("/summaries?wait=1"), map[string]any{}, s)
	default:
		err = fault.InvalidField("summary", "value", "must be now or delete, not %q", what)
	}
	if err == nil && what == "delete" {
		err = t.c.Call(ctx, http.MethodDelete, t.conversation("/summaries/"+s.ID), nil, nil)
	}
	switch {
	case err != nil:
		return err
	case what == "delete":
		fmt.Fprintln(t.out, "summary deleted; replies use the whole chat again")
	default:
		t.showSummary(s)
	}
	return nil
}

// activeSummary returns the summary that prompts contain.
func (t *talk) activeSummary(ctx context.Context) (*chatSummary, error) {
	var page cli.PageOf[chatSummary]
	if err := t.c.Call(ctx, http.MethodGet, t.conversation("/summaries"), nil, &page); err != nil {
		return nil, err
	}
	for i := range page.Items {
		if page.Items[i].Active {
			return &page.Items[i], nil
		}
	}
	return nil, fault.New(fault.NotFound, "this chat has no summary; /summary now creates one")
}

func (t *talk) showSummary(s *chatSummary) {
	stale := ""
	if s.Stale {
		stale = ", but some of them have changed since"
	}
	fmt.Fprintf(t.out, "messages %d to %d (%s%s):\n%s\n", s.Range.Start+1, s.Range.End+1, s.Method, stale, s.Text)
}

// these is a number of memories in words.
func these(n int) string {
	if n == 1 {
		return "this memory"
	}
	return fmt.Sprintf("these %d memories", n)
}

// onOneLine is a text without line breaks.
func onOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
