package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// The commands of nodest chat that leave the shown branch: forks, branches, save
// points, search.

// chatBranch is one end of a chat, as GET …/branches lists it.
type chatBranch struct {
	Head         chatMessage `json:"head"`
	Shown        bool        `json:"shown"`
	MessageCount int         `json:"messageCount"`
}

// chatSave is a save point in a list.
type chatSave struct {
	ID           string `json:"id"`
	Timestamp    int64  `json:"timestamp"`
	Description  string `json:"description"`
	PreviewText  string `json:"previewText"`
	MessageCount int    `json:"messageCount"`
	Automatic    bool   `json:"automatic"`
}

func (t *talk) fork(ctx context.Context, m chatMessage, title string) error {
	var conv struct {
		ID      string `json:"id"`
		Copying bool   `json:"copying"`
	}
	if err := t.c.Call(ctx, http.MethodPost, t.conversation("/fork"), map[string]any{"messageId": m.ID, "title": title}, &conv); err != nil {
		return err
	}
	if conv.Copying {
		_, err := fmt.Fprintf(t.out, "conversation %s is being copied; open it later with --conversation\n", conv.ID)
		return err
	}
	t.id, t.deleted = conv.ID, ""
	t.listed, t.listedSaves = nil, nil
	_, err := fmt.Fprintf(t.out, "now in conversation %s\n", conv.ID)
	return err
}

func (t *talk) branches(ctx context.Context, _ string) error {
	list, err := cli.All[chatBranch](ctx, t.c, t.conversation("/branches"))
	if err != nil {
		return err
	}
	t.listed = list
	for i, b := range list {
		mark := " "
		if b.Shown {
			mark = "*"
		}
		fmt.Fprintf(t.out, "%s %d  %s, to #%d: %s\n", mark, i+1, count(b.MessageCount), b.Head.Seq, beginning(b.Head.Text))
	}
	return nil
}

func (t *talk) head(ctx context.Context, rest string) error {
	b, err := chosen(t.listed, "/branches", rest)
	if err != nil {
		return err
	}
	if err := t.c.Call(ctx, http.MethodPut, t.conversation("/head"), map[string]any{"messageId": b.Head.ID}, nil); err != nil {
		return err
	}
	return t.history(ctx, "3")
}

// chosen is the entry with a number in what a command listed last.
func chosen[T any](list []T, command, number string) (entry T, err error) {
	if list == nil {
		return entry, fault.New(fault.NotFound, "run %s first", command)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(list) {
		return entry, fault.InvalidField("N", "range", "must be a number from the %s list, 1 to %d", command, len(list))
	}
	return list[n-1], nil
}

func (t *talk) reset(ctx context.Context, _ string) error {
	if err := t.c.Call(ctx, http.MethodPost, t.conversation("/reset"), map[string]any{}, nil); err != nil {
		return err
	}
	t.deleted = ""
	return t.history(ctx, "1")
}

func (t *talk) save(ctx context.Context, rest string) error {
	var s chatSave
	if err := t.c.Call(ctx, http.MethodPost, t.conversation("/saves"), map[string]any{"description": rest}, &s); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.out, "saved, %s\n", count(s.MessageCount))
	return err
}

func (t *talk) saves(ctx context.Context, _ string) error {
	list, err := cli.All[chatSave](ctx, t.c, t.conversation("/saves?automatic=true"))
	if err != nil {
		return err
	}
	t.listedSaves = list
	for i, s := range list {
		fmt.Fprintf(t.out, "  %d  %s\n", i+1, lineOf(s))
	}
	return nil
}

func (t *talk) restore(ctx context.Context, rest string) error {
	s, err := chosen(t.listedSaves, "/saves", rest)
	if err != nil {
		return err
	}
	if err := t.c.Call(ctx, http.MethodPost, "/api/v1/saves/"+s.ID+"/restore", map[string]any{}, nil); err != nil {
		return err
	}
	t.deleted, t.listed, t.listedSaves = "", nil, nil
	return t.history(ctx, "3")
}

func (t *talk) search(ctx context.Context, rest string) error {
	var page cli.PageOf[struct {
		Message        chatMessage `json:"message"`
		ConversationID string      `json:"conversationId"`
		Snippet        string      `json:"snippet"`
	}]
	if err := t.c.Call(ctx, http.MethodGet, "/api/v1/messages/search?limit=20&q="+url.QueryEscape(rest), nil, &page); err != nil {
		return err
	}
	for _, hit := range page.Items {
		fmt.Fprintf(t.out, "  %s %s: %s\n", t.place(hit.ConversationID, hit.Message.Seq), hit.Message.Name, beginning(hit.Snippet))
	}
	if len(page.Items) == 0 && page.NextCursor == nil {
		fmt.Fprintln(t.out, "nothing found")
	}
	return nil
}

// place is where a message stands: its number, and its chat if that is another one.
func (t *talk) place(conversationID string, seq int64) string {
	if conversationID == t.id {
		return fmt.Sprintf("#%d", seq)
	}
	return fmt.Sprintf("#%d of %s", seq, conversationID)
}

// lineOf is a save point in one line.
func lineOf(s chatSave) string {
	line := time.UnixMilli(s.Timestamp).Local().Format(time.DateTime) + "  " + count(s.MessageCount)
	if s.Automatic {
		line += "  (automatic)"
	}
	if s.Description != "" {
		line += "  " + beginning(s.Description)
	}
	if s.PreviewText != "" {
		line += "  – " + beginning(s.PreviewText)
	}
	return line
}

// count is a number of messages in words.
func count(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// beginning is the first 60 characters of a text, on one line.
func beginning(text string) string { return cli.Brief(text, 60) }
