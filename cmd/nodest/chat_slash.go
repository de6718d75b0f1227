package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"nodest/fault"
)

const chatHelp = `  /regenerate [wish]    another answer, as a further swipe
  /continue             lengthen the last answer
  /impersonate          let the model write a line for you
  /swipe next|prev      show another swipe of the last answer
  /edit TEXT            change the last message that you wrote
  /delete               delete the last message
  /undo                 bring back what /delete took
  /history [n]          show the last n messages (20)
  /prompt               show what would be sent
  /quit                 leave`

// command carries out a line that begins with a slash.
func (t *talk) command(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/help":
		fmt.Fprintln(t.out, chatHelp)
		return nil
	case "/regenerate":
		return t.onLast(ctx, "assistant", func(m chatMessage) error {
			return t.stream(ctx, "/api/v1/messages/"+m.ID+"/regenerate", map[string]any{"wish": rest})
		})
	case "/continue":
		return t.onLast(ctx, "assistant", func(m chatMessage) error {
			return t.stream(ctx, "/api/v1/messages/"+m.ID+"/continue", map[string]any{})
		})
	case "/impersonate":
		return t.stream(ctx, "/api/v1/conversations/"+t.id+"/impersonate", map[string]any{})
	case "/swipe":
		return t.onLast(ctx, "assistant", func(m chatMessage) error { return t.swipe(ctx, m, rest) })
	case "/edit":
		return t.onLast(ctx, "user", func(m chatMessage) error {
			return t.change(ctx, http.MethodPatch, m.ID, "", map[string]any{"text": rest, "mode": "in_place"})
		})
	case "/delete":
		return t.onLast(ctx, "", func(m chatMessage) error {
			t.deleted = m.ID
			return t.c.call(ctx, http.MethodDelete, "/api/v1/messages/"+m.ID+"?scope=one", nil, nil)
		})
	case "/undo":
		return t.undo(ctx)
	case "/history":
		return t.history(ctx, rest)
	case "/prompt":
		return showPrompt(ctx, t.c, t.out, t.id, "")
	}
	return fault.New(fault.UnknownCommand, "there is no command %s; /help lists them", name)
}

// onLast calls f with the last message of a role ("" = any).
func (t *talk) onLast(ctx context.Context, role string, f func(chatMessage) error) error {
	page, err := t.last(ctx, 50)
	if err != nil {
		return err
	}
	for i := len(page) - 1; i >= 0; i-- {
		if role == "" || page[i].Role == role {
			return f(page[i])
		}
	}
	return fault.New(fault.NotFound, "there is no such message")
}

func (t *talk) swipe(ctx context.Context, m chatMessage, to string) error {
	if to == "" {
		to = "next"
	}
	return t.change(ctx, http.MethodPost, m.ID, "/swipe", map[string]any{"swipe": to})
}

// change calls an operation on a message and shows the message afterwards.
func (t *talk) change(ctx context.Context, method, id, op string, body any) error {
	var out struct {
		Message chatMessage `json:"message"`
	}
	if err := t.c.call(ctx, method, "/api/v1/messages/"+id+op, body, &out); err != nil {
		return err
	}
	t.show(out.Message)
	return nil
}

func (t *talk) undo(ctx context.Context) error {
	if t.deleted == "" {
		return fault.New(fault.NotFound, "nothing was deleted here")
	}
	if err := t.c.call(ctx, http.MethodPost, "/api/v1/messages/"+t.deleted+"/restore", map[string]any{}, nil); err != nil {
		return err
	}
	t.deleted = ""
	return t.history(ctx, "2")
}

func (t *talk) history(ctx context.Context, n string) error {
	count := 20
	if n != "" {
		if _, err := fmt.Sscanf(n, "%d", &count); err != nil {
			return fault.InvalidField("n", "type", "%q is not a number", n)
		}
	}
	page, err := t.last(ctx, min(max(count, 1), 200))
	for _, m := range page {
		t.show(m)
	}
	return err
}
