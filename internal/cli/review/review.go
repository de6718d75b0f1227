// Package review has a person decide about the extractions of a chat, one after the other. It reads answers and shows texts;
// it must not know a command, or keep anything itself.
package review

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// Extraction is knowledge that was proposed in a chat.
type Extraction struct {
	ID        string          `json:"extraction_id"`
	State     string          `json:"state"`
	Sequence  int64           `json:"sequence"`
	Payload   json.RawMessage `json:"payload"`
	Timestamp time.Time       `json:"timestamp"`
}

// Content is what a memory of it would say.
func (x *Extraction) Content() string {
	var p struct{ Content string }
	_ = json.Unmarshal(x.Payload, &p) // one that cannot be read says nothing
	return p.Content
}

// List returns all extractions of the chat at a path in a state, "" = in any, as the server sends them.
func List(ctx context.Context, c *cli.Client, path, state string) (all []json.RawMessage, err error) {
	for after := int64(0); ; {
		var page struct {
			Items     []json.RawMessage `json:"items"`
			NextAfter int64             `json:"next_after"`
		}
		query := url.Values{"limit": {"200"}, "after": {fmt.Sprint(after)}}
		if state != "" {
			query.Set("state", state)
		}
		if err := c.Call(ctx, http.MethodGet, path+"/extractions?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if after = page.NextAfter; after == 0 {
			return all, nil
		}
	}
}

// Desk is where a person decides.
type Desk struct {
	Client *cli.Client
	Path   string // the chat's path
	In     *bufio.Reader
	Out    io.Writer                         // shows control characters
	Edit   func(text string) (string, error) // lets the person edit a text; nil = they type another content
}

// errQuit ends a review.
var errQuit = errors.New("enough")

// Review asks about extractions until all are decided or the person quits, and returns how many were approved.
func (d *Desk) Review(ctx context.Context, all []Extraction) (approved int, err error) {
	for i := range all {
		x := &all[i]
		fmt.Fprintf(d.Out, "\n[%d/%d] %s  message %d  %s\n%s\n", i+1, len(all), x.ID, x.Sequence, cli.ShortTime(x.Timestamp), indented(x.Payload))
		decision, err := d.decide(ctx, x)
		switch {
		case errors.Is(err, errQuit):
			return approved, nil
		case fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound): // decided on another device
			fmt.Fprintf(d.Out, "skipped: %s\n", fault.Public(err).Message)
		case err != nil:
			return approved, err
		case decision == "approve" || decision == "edit":
			approved++
		}
	}
	return approved, nil
}

// decide asks about one until the answer is a decision; "" = it was skipped.
func (d *Desk) decide(ctx context.Context, x *Extraction) (decision string, err error) {
	for {
		answer, err := d.Ask("approve, edit, discard, skip or quit? [a/e/d/s/q] ")
		if err != nil {
			return "", err
		}
		switch strings.ToLower(answer) {
		case "a", "approve":
			return "approve", d.send(ctx, x, map[string]any{"decision": "approve"})
		case "d", "discard":
			return "discard", d.send(ctx, x, map[string]any{"decision": "discard"})
		case "s", "skip":
			return "", nil
		case "q", "quit":
			return "", errQuit
		case "e", "edit":
			edited, err := d.edit(x.Payload)
			if err != nil {
				return "", err
			}
			if edited != nil {
				return "edit", d.send(ctx, x, map[string]any{"decision": "edit", "editedPayload": edited})
			}
		}
	}
}

func (d *Desk) send(ctx context.Context, x *Extraction, review map[string]any) error {
	return d.Client.Call(ctx, http.MethodPost, d.Path+"/extractions/"+url.PathEscape(x.ID)+"/review", review, nil)
}

// edit returns a payload that the person has edited and, having seen its differences, accepted; nil = they have not.
func (d *Desk) edit(payload json.RawMessage) (json.RawMessage, error) {
	before := indented(payload)
	after, err := d.edited(payload, before)
	if err != nil && d.Edit != nil {
		fmt.Fprintf(d.Out, "not edited: %v\n", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	edited := Extraction{Payload: json.RawMessage(after)}
	if !json.Valid(edited.Payload) || strings.TrimSpace(edited.Content()) == "" {
		fmt.Fprintln(d.Out, "not accepted: this must be a JSON object with a content")
		return nil, nil
	}
	after = indented(edited.Payload)
	if after == before {
		fmt.Fprintln(d.Out, "nothing was changed")
		return nil, nil
	}
	fmt.Fprint(d.Out, Diff(before, after))
	answer, err := d.Ask("accept this edit? [y/N] ")
	if err != nil || !isYes(answer) {
		return nil, err
	}
	return edited.Payload, nil
}

func (d *Desk) edited(payload json.RawMessage, text string) (string, error) {
	if d.Edit != nil {
		return d.Edit(text)
	}
	content, err := d.Ask("new content: ")
	if err != nil {
		return "", err
	}
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(payload, &members) // one that cannot be read is replaced
	members["content"], _ = json.Marshal(content)
	whole, err := json.Marshal(members)
	return string(whole), err
}

// Ask returns the answer to a question, without spaces around it; at the end of the input the person has quit.
func (d *Desk) Ask(question string) (string, error) {
	fmt.Fprint(d.Out, question)
	line, err := d.In.ReadString('\n')
	if errors.Is(err, io.EOF) && line == "" {
		fmt.Fprintln(d.Out)
		return "", errQuit
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// Confirm asks a question that is answered with yes or no.
func (d *Desk) Confirm(question string) bool {
	answer, err := d.Ask(question + " [y/N] ")
	return err == nil && isYes(answer)
}

func isYes(answer string) bool {
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}

// indented is a payload with a member on each line.
func indented(payload json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, payload, "", "  ") != nil {
		return string(payload)
	}
	return b.String()
}

// mostLines are compared line by line.
const mostLines = 2000

// Diff shows two texts as one: the lines that both have, those of the first alone behind -, and of the second behind +.
func Diff(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	if len(a) > mostLines || len(b) > mostLines {
		return fmt.Sprintf("- %d lines\n+ %d lines\n", len(a), len(b))
	}
	same := make([][]int, len(a)+1) // same[i][j] = the most lines that a[i:] and b[j:] share in order
	for i := range same {
		same[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				same[i][j] = same[i+1][j+1] + 1
			} else {
				same[i][j] = max(same[i+1][j], same[i][j+1])
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out.WriteString("  " + a[i] + "\n")
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && same[i+1][j] >= same[i][j+1]:
			out.WriteString("- " + a[i] + "\n")
			i++
		default:
			out.WriteString("+ " + b[j] + "\n")
			j++
		}
	}
	return out.String()
}
