package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/chat"
	"nodest/internal/cli"
	"nodest/internal/fault"
)

// read reads something at random servers until one answers.
func (w *talker) read(path string, out any) error {
	for deadline := time.Now().Add(testTimeout); ; <-time.After(20 * time.Millisecond) {
		err := w.client(w.rng.IntN(3)).Call(context.Background(), http.MethodGet, "/api/v1"+path, nil, out)
		var f *fault.Error
		if err == nil || errors.As(err, &f) || time.Now().After(deadline) {
			return err
		}
	}
}

// answered is a command that was carried out.
type answered struct {
	method, path, key string
	body              map[string]any
	answer            json.RawMessage
}

// repeat sends an old command again. It has no effect, and the same answer.
func (w *talker) repeat(context.Context) error {
	if len(w.past) == 0 {
		return errNothing
	}
	a := w.past[w.rng.IntN(len(w.past))]
	again, err := keyed(w.client(w.rng.IntN(3)), a.method, a.path, a.key, a.body)
	var f *fault.Error
	switch {
	case err != nil && !errors.As(err, &f):
		return errNothing // the server is dead
	case err == nil && !sameJSON(again, a.answer):
		err = fmt.Errorf("%s instead of %s", again, a.answer)
	}
	if err != nil {
		err = fmt.Errorf("%s %s %v again: %w", a.method, a.path, a.body, err)
	}
	return err
}

// command sends a command with its key until it is carried out, now and then to two servers
// at once, or first over a stream that is cut. All answers must be the same.
func (w *talker) command(method, path string, body map[string]any, out any) error {
	w.commands++
	key := fmt.Sprintf("%s-%d", w.conversation, w.commands)
	line := fmt.Sprintf("%d: %s %s %v", w.commands, method, path, body)
	w.log = append(w.log[max(0, len(w.log)-30):], line)
	if w.chance(6) {
		streamed(w.client(w.rng.IntN(3)), method, path, key, body, w.rng.IntN(30))
		w.streams++
	}
	for deadline := time.Now().Add(testTimeout); ; w.repeated++ {
		answers, failed := make([]json.RawMessage, 1+w.rng.IntN(4)/3), make([]error, 2)
		first := w.rng.IntN(3)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i], failed[i] = keyed(w.client(first+i), method, path, key, body) })
		}
		all.Wait()
		var answer json.RawMessage
		for i, a := range answers {
			var f *fault.Error
			switch {
			case failed[i] == nil && answer != nil && !sameJSON(a, answer):
				return fmt.Errorf("%s has two answers: %s and %s", line, a, answer)
			case failed[i] == nil:
				answer = a
			case !errors.As(failed[i], &f): // the server is dead
			case f.Code != fault.Busy && f.Code != fault.TooManyGenerations && f.Code != fault.InProgress:
				return fmt.Errorf("%s: %w", line, failed[i])
			}
		}
		if answer != nil {
			select {
			case w.acks <- struct{}{}:
			default: // a server is being started
			}
			w.past = append(w.past[max(0, len(w.past)-50):], answered{method, path, key, body, answer})
			return json.Unmarshal(answer, out)
		}
		err := errors.Join(failed...)
		w.failing.Store(line + ": " + err.Error())
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %w", line, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// keyed sends a command and returns its answer, which does not wait for a reply.
func keyed(c *cli.Client, method, path, key string, body map[string]any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	res, err := sendKeyed(ctx, c, method, path, key, body, "Prefer", "respond-async")
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return io.ReadAll(res.Body)
}

// streamed sends a command whose answer is a stream, and hangs up after some events.
func streamed(c *cli.Client, method, path, key string, body map[string]any, events int) {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	res, err := sendKeyed(ctx, c, method, path, key, body, "Accept", "text/event-stream")
	if err != nil {
		return
	}
	defer func() { _ = res.Body.Close() }()
	_ = readEvents(res.Body, func(event) error {
		if events--; events < 0 {
			return io.EOF
		}
		return nil
	})
}

func sendKeyed(ctx context.Context, c *cli.Client, method, path, key string, body map[string]any, header, value string) (*http.Response, error) {
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+"/api/v1"+path, content)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer " + c.Token, "Idempotency-Key": key, header: value,
	} {
		req.Header.Set(name, value)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 400 {
		defer func() { _ = res.Body.Close() }()
		return nil, cli.ProblemOf(res)
	}
	return res, nil
}

// generationNow is a generation with its text so far.
type generationNow struct {
	Status, Text string
	Generation   struct{ MessageID string }
}

// awaitEnd waits for the end of a generation.
func (w *talker) awaitEnd(stop context.Context, generation string) error {
	for deadline := time.Now().Add(testTimeout); stop.Err() == nil; <-time.After(20 * time.Millisecond) {
		var g generationNow
		if err := w.read("/generations/"+generation+"?off=0", &g); err != nil {
			return err
		}
		if (&chat.Generation{Status: g.Status}).Ended() {
			w.hasEnded(generation, &g)
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("generation %s is %s", generation, g.Status)
		}
	}
	return nil
}

func (w *talker) hasEnded(generation string, g *generationNow) {
	w.open = slices.DeleteFunc(w.open, func(id string) bool { return id == generation })
	m := w.messages[g.Generation.MessageID]
	switch {
	case strings.TrimSpace(g.Text) != "":
		m.written = true
	case m.beside && !m.written:
		m.deletedBy = byItself
	}
}

// listen follows the text of a generation at one server after another, until its end. What
// was received is what is stored; of an interrupted one, the last part may be lost.
func (w *talker) listen(stop context.Context, generation string) error {
	var text []rune
	for stop.Err() == nil {
		now, ended, err := w.hear(stop, generation, text)
		if err != nil {
			return err
		}
		w.streams++
		if text = now; ended {
			return w.listened(generation, strings.TrimSpace(string(text)))
		}
	}
	return nil
}

// hear adds to a text what one stream tells: until the end of the generation or of the server,
// or some events.
func (w *talker) hear(stop context.Context, generation string, text []rune) (now []rune, ended bool, err error) {
	path := fmt.Sprintf("/api/v1/generations/%s?off=%d", generation, len(text))
	res, err := w.client(w.rng.IntN(3)).Send(stop, http.MethodGet, path, nil, "text/event-stream")
	var f *fault.Error
	if errors.As(err, &f) {
		return nil, false, err
	}
	if err != nil {
		<-time.After(20 * time.Millisecond)
		return text, false, nil //nolint:nilerr // the server is dead
	}
	defer func() { _ = res.Body.Close() }()
	most := 1 + w.rng.IntN(40)
	_ = readEvents(res.Body, func(e event) error { // its error says that the server is dead, or that it is enough
		if e.GenerationID == generation && (e.Ev == "gen.done" || e.Ev == "gen.failed") {
			ended = true
			return io.EOF
		}
		if text, err = heard(text, e, generation); err != nil {
			return err
		}
		if most--; most == 0 {
			return io.EOF
		}
		return nil
	})
	return text, ended, err
}

// heard adds an event of a stream to the text that was received so far. A server that does not
// write the reply sends no deltas, but the whole text at the end.
func heard(text []rune, e event, generation string) ([]rune, error) {
	var d struct {
		Text, Part string
		Message    struct {
			Swipes []struct{ GenerationID, Text string }
		}
	}
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return nil, err
	}
	switch {
	case e.Ev == "gen.delta" && d.Part == "text":
		if e.Off > len(text) {
			return nil, fmt.Errorf("generation %s: a delta at %d, known are %d", generation, e.Off, len(text))
		}
		return append(text[:e.Off], []rune(d.Text)...), nil
	case e.Ev == "message.updated":
		for _, s := range d.Message.Swipes {
			if s.GenerationID == generation && strings.HasPrefix(s.Text, strings.TrimSpace(string(text))) {
				return []rune(s.Text), nil
			}
		}
	}
	return text, nil
}

func (w *talker) listened(generation, text string) error {
	var g generationNow
	if err := w.read("/generations/"+generation+"?off=0", &g); err != nil {
		return err
	}
	if !(&chat.Generation{Status: g.Status}).Ended() {
		return fmt.Errorf("generation %s is %s after its end", generation, g.Status)
	}
	w.hasEnded(generation, &g)
	stored := strings.TrimSpace(g.Text)
	if stored == text || g.Status == chat.GenInterrupted && (strings.HasPrefix(text, stored) || strings.HasPrefix(stored, text)) {
		return nil
	}
	return fmt.Errorf("generation %s (%s): received %q, stored %q", generation, g.Status, text, stored)
}
