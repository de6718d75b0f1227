package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

const chatHelp = `  #N is the number shown before a message; the default is the latest message that fits.
  /regenerate [#N] [INSTRUCTION]
                              get another reply: a new swipe, or a new branch if the chat has continued
  /continue [#N]              continue a reply
  /impersonate                let the model write your next message
  /stop                       stop the current reply (or press Ctrl-C)
  /swipe [#N] next|prev|new   show another swipe of a reply; new generates one after the last
  /edit [#N] TEXT             change a message (default: your last one)
  /branch [#N] TEXT           send an edited message on a new branch and get a reply
  /delete [#N] [after|swipe]  delete a message, all messages from it on, or only the current swipe
  /undo                       undo the last /delete
  /fork [#N] [title]          continue in a copy of the chat up to a message
  /branches                   list all branches
  /head N                     switch to branch N of that list
  /reset                      restart the chat from the greeting; the old messages stay on a branch
  /save [description]         create a save point
  /saves                      list the save points
  /restore N                  restore save point N of that list
  /search WORDS               search your messages
  /memory [WORDS]             list or search what the character remembers
  /remember TEXT              add a memory
  /forget WORDS               show matching memories; /forget! WORDS deletes them permanently
  /why [#N]                   show the memories used for a reply
  /summary [now|delete]       show, create or delete the summary of the chat
  /history [n]                show the last n messages (default 20)
  /prompt [TEXT]              show the request that a message would send to the model
  /quit                       quit`

// command carries out a line that begins with a slash.
func (t *talk) command(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	run, ok := chatCommands[name]
	if !ok {
		return fault.New(fault.UnknownCommand, "unknown command %s; /help lists the commands", name)
	}
	return run(t, ctx, strings.TrimSpace(rest))
}

// chatCommand is a command of nodest chat; rest is what follows its name.
type chatCommand = func(t *talk, ctx context.Context, rest string) error

var chatCommands = map[string]chatCommand{
	"/help": func(t *talk, _ context.Context, _ string) error {
		_, err := fmt.Fprintln(t.out, chatHelp)
		return err
	},
	"/regenerate": about("assistant", (*talk).regenerate),
	"/continue": about("assistant", func(t *talk, ctx context.Context, m chatMessage, _ string) error {
		return t.stream(ctx, http.MethodPost, messagePath(m, "/continue"), map[string]any{})
	}),
	"/impersonate": func(t *talk, ctx context.Context, _ string) error {
		return t.stream(ctx, http.MethodPost, t.conversation("/impersonate"), map[string]any{})
	},
	"/stop":     about("assistant", (*talk).stop),
	"/swipe":    about("assistant", (*talk).swipe),
	"/edit":     about("user", (*talk).edit),
	"/branch":   about("user", (*talk).branch),
	"/delete":   about("", (*talk).remove),
	"/undo":     (*talk).undo,
	"/fork":     about("", (*talk).fork),
	"/branches": (*talk).branches,
	"/head":     (*talk).head,
	"/reset":    (*talk).reset,
	"/save":     (*talk).save,
	"/saves":    (*talk).saves,
	"/restore":  (*talk).restore,
	"/search":   (*talk).search,
	"/memory":   (*talk).memory,
	"/remember": (*talk).remember,
	"/forget":   func(t *talk, ctx context.Context, words string) error { return t.forget(ctx, words, true) },
	"/forget!":  func(t *talk, ctx context.Context, words string) error { return t.forget(ctx, words, false) },
	"/why":      about("assistant", (*talk).why),
	"/summary":  (*talk).summary,
	"/history":  (*talk).history,
	"/prompt": func(t *talk, ctx context.Context, text string) error {
		return t.p.showPrompt(ctx, t.c, cli.Item{ID: t.id}.As(cli.Chats), text)
	},
}

// conversation is the path of an operation on the chat.
func (t *talk) conversation(op string) string { return "/api/v1/conversations/" + t.id + op }

func messagePath(m chatMessage, op string) string { return "/api/v1/messages/" + m.ID + op }

var numbered = regexp.MustCompile(`^#(\d+)(?:\s+|$)`)

// message finds the message that a command is for: the one named by #N at the
// beginning of rest, else the last one of a role ("" = any).
func (t *talk) message(ctx context.Context, rest, role string) (m chatMessage, after string, err error) {
	seq := int64(-1)
	if named := numbered.FindStringSubmatch(rest); named != nil {
		if seq, err = strconv.ParseInt(named[1], 10, 64); err != nil {
			return m, "", fault.InvalidField("N", "range", "no message %s", named[0])
		}
		rest = rest[len(named[0]):]
	}
	for before := ""; ; {
		var page cli.PageOf[chatMessage]
		if err := t.c.Call(ctx, http.MethodGet, t.conversation("/messages?limit=200&before="+before), nil, &page); err != nil {
			return m, "", err
		}
		for i := len(page.Items) - 1; i >= 0; i-- {
			m := page.Items[i]
			if seq >= 0 && m.Seq == seq || seq < 0 && (role == "" || m.Role == role) {
				return m, strings.TrimSpace(rest), nil
			}
		}
		if page.NextCursor == nil || len(page.Items) == 0 {
			return m, "", fault.New(fault.NotFound, "no such message in this chat")
		}
		before = url.QueryEscape(page.Items[0].ID)
	}
}

// about is a command for the message that t.message finds; rest is what follows #N.
func about(role string, run func(t *talk, ctx context.Context, m chatMessage, rest string) error) chatCommand {
	return func(t *talk, ctx context.Context, rest string) error {
		m, rest, err := t.message(ctx, rest, role)
		if err != nil {
			return err
		}
		return run(t, ctx, m, rest)
	}
}

func (t *talk) regenerate(ctx context.Context, m chatMessage, wish string) error {
	return t.stream(ctx, http.MethodPost, messagePath(m, "/regenerate"), map[string]any{"wish": wish})
}

// stop cancels what is being written in this chat, by whatever device.
func (t *talk) stop(ctx context.Context, m chatMessage, _ string) error {
	if m.Status != "pending" && m.Status != "streaming" || m.GenerationID == "" {
		return fault.New(fault.NotFound, "no reply is being written")
	}
	return t.c.Call(ctx, http.MethodPost, "/api/v1/generations/"+m.GenerationID+"/cancel", nil, nil)
}

func (t *talk) swipe(ctx context.Context, m chatMessage, to string) error {
	if to == "new" {
		return t.regenerate(ctx, m, "")
	}
	return t.change(ctx, http.MethodPost, messagePath(m, "/swipe"), map[string]any{"swipe": cmp.Or(to, "next")})
}

func (t *talk) edit(ctx context.Context, m chatMessage, text string) error {
	return t.change(ctx, http.MethodPatch, messagePath(m, ""), map[string]any{"text": text, "mode": "in_place", "ifRev": m.Rev})
}

// branch sends an edited message on a new branch. An edited reply is not answered.
func (t *talk) branch(ctx context.Context, m chatMessage, text string) error {
	body := map[string]any{"text": text, "mode": "branch", "ifRev": m.Rev}
	if m.Role != "user" {
		return t.change(ctx, http.MethodPatch, messagePath(m, ""), body)
	}
	body["regenerate"] = true
	return t.stream(ctx, http.MethodPatch, messagePath(m, ""), body)
}

func (t *talk) remove(ctx context.Context, m chatMessage, scope string) error {
	if err := t.c.Call(ctx, http.MethodDelete, messagePath(m, "?scope="+url.QueryEscape(cmp.Or(scope, "one"))), nil, nil); err != nil {
		return err
	}
	t.deleted = m.ID
	return nil
}

// change calls an operation on a message and shows the message afterwards.
func (t *talk) change(ctx context.Context, method, path string, body any) error {
	var out struct {
		Message chatMessage `json:"message"`
	}
	if err := t.c.Call(ctx, method, path, body, &out); err != nil {
		return err
	}
	t.show(out.Message)
	return nil
}

func (t *talk) undo(ctx context.Context, _ string) error {
	if t.deleted == "" {
		return fault.New(fault.NotFound, "nothing to undo")
	}
	if err := t.c.Call(ctx, http.MethodPost, "/api/v1/messages/"+t.deleted+"/restore", map[string]any{}, nil); err != nil {
		return err
	}
	t.deleted = ""
	return t.history(ctx, "2")
}

func (t *talk) history(ctx context.Context, n string) error {
	count, err := strconv.Atoi(cmp.Or(n, "20"))
	if err != nil {
		return fault.InvalidField("n", "type", "must be a number, not %q", n)
	}
	page, err := t.last(ctx, min(max(count, 1), 200))
	for _, m := range page {
		t.show(m)
	}
	return err
}
