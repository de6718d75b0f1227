package llm_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
)

// testPieces shows that nothing is held back: each piece is read before the fake
// sends the next one.
func testPieces(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	gate := make(chan struct{}, 1)
	reply := llmtest.Say("one ", "two ", "three")
	reply.Gate = gate
	a.Fake.Script(reply)
	gate <- struct{}{}
	var text string
	for c, err := range a.Provider.Stream(t.Context(), llmtest.Ask("count")) {
		if err != nil {
			t.Fatal(err)
		}
		if text += c.Text; c.Text != "" {
			gate <- struct{}{}
		}
	}
	if text != "one two three" {
		t.Errorf("text %q", text)
	}
}

// testCrowd shows that the first piece does not wait for other streams, and that nothing is lost
// where many are read at common beats.
func testCrowd(t *testing.T, build factory) {
	const streams, pieces = 20, 30
	a := build(t, llm.NewKey("key-1"))
	var want []string
	for i := range pieces {
		want = append(want, fmt.Sprintf("piece %d, ", i))
	}
	gates := make(chan chan struct{}, streams)
	a.Fake.Always(func(llmtest.Request) llmtest.Reply {
		reply, gate := llmtest.Say(want...), make(chan struct{})
		reply.Gate = gate
		gates <- gate
		return reply
	})
	started, texts := make(chan struct{}), make(chan string, streams)
	for range streams {
		go func() {
			var text string
			for c, err := range a.Provider.Stream(t.Context(), llmtest.Ask("count")) {
				if err != nil {
					text += err.Error()
				}
				if text == "" && c.Text != "" {
					started <- struct{}{}
				}
				text += c.Text
			}
			texts <- text
		}()
	}
	var waiting []chan struct{}
	for range streams {
		gate := <-gates
		gate <- struct{}{} // the first piece
		<-started
		waiting = append(waiting, gate)
	}
	for _, gate := range waiting {
		close(gate)
	}
	for range streams {
		if text := <-texts; text != strings.Join(want, "") {
			t.Errorf("text %q", text)
		}
	}
}

func testSplits(t *testing.T, build factory) {
	for _, split := range []int{1, 2, 3, 5, 7, 64} {
		t.Run(fmt.Sprint(split), func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			want := "茶香四溢，👩‍👩‍👧 says “привет”\n\\\"end\u2028"
			reply := llmtest.Say(strings.SplitAfter(want, "，")...)
			reply.Split = split
			a.Fake.Script(reply)
			for c, err := range a.Provider.Stream(t.Context(), llmtest.Ask("hi")) {
				if err != nil || strings.ContainsRune(c.Text, '\uFFFD') {
					t.Errorf("chunk %q is damaged: %v", c.Text, err)
				}
			}
			a.Fake.Script(reply)
			if r := llmtest.Read(t, a.Provider.Stream(t.Context(), llmtest.Ask("hi"))); r.Text != want || r.Err != nil {
				t.Errorf("text %q, %v; want %q", r.Text, r.Err, want)
			}
		})
	}
}

// patience is how long a test waits for something that must happen.
const patience = 60 * time.Second

// waitClosed waits until the fake sees that its client has gone away.
func waitClosed(t testing.TB, f *llmtest.Fake) time.Time {
	t.Helper()
	select {
	case c := <-f.Closed():
		return c
	case <-time.After(patience):
		t.Fatal("the provider's request was never closed")
	}
	return time.Time{}
}

func testBreak(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	reply := llmtest.Say("one")
	reply.End = llmtest.Stall
	a.Fake.Script(reply)
	for _, err := range a.Provider.Stream(t.Context(), llmtest.Ask("hi")) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	start := time.Now()
	t.Logf("closed %v after the loop was left (aim: 100 ms)", waitClosed(t, a.Fake).Sub(start))
}

func testCancel(t *testing.T, build factory) {
	for _, when := range []string{"before the first piece", "in the middle"} {
		t.Run(when, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			reply := llmtest.Reply{End: llmtest.Stall}
			if when == "in the middle" {
				reply.Parts = []llmtest.Part{{Text: "one"}}
			}
			a.Fake.Script(reply)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var at time.Time
			stop := func() {
				at = time.Now()
				cancel()
			}
			done := make(chan struct{})
			if when != "in the middle" {
				go func() {
					defer close(done)
					select {
					case <-a.Fake.Arrived():
					case <-time.After(patience):
						t.Error("no request arrived")
					}
					stop()
				}()
			} else {
				close(done)
			}
			var last error
			for c, err := range a.Provider.Stream(ctx, llmtest.Ask("hi")) {
				if last = err; c.Text != "" {
					stop()
				}
			}
			<-done
			checkCode(t, last, fault.Cancelled)
			t.Logf("closed %v after the context ended (aim: 100 ms)", waitClosed(t, a.Fake).Sub(at))
		})
	}
}

func testDeadline(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	a.Fake.Script(llmtest.Reply{End: llmtest.Stall})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r := llmtest.Read(t, a.Provider.Stream(ctx, llmtest.Ask("hi")))
	checkCode(t, r.Err, fault.UpstreamTimeout)
}

func testRotation(t *testing.T, build factory) {
	for _, status := range []int{401, 403, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			a := build(t, llm.NewKey("bad"), llm.NewKey("good"))
			a.Fake.ForKey("bad", llmtest.Fail(status))
			r := llmtest.Read(t, a.Provider.Stream(t.Context(), llmtest.Ask("hi")))
			checkCode(t, r.Err, "")
			var used []string
			for _, req := range a.Fake.Requests() {
				used = append(used, req.Key)
			}
			if fmt.Sprint(used) != "[bad good]" {
				t.Errorf("keys used: %v", used)
			}
		})
	}
	t.Run("400 is not the key's fault", func(t *testing.T) {
		a := build(t, llm.NewKey("bad"), llm.NewKey("good"))
		a.Fake.ForKey("bad", llmtest.Fail(400))
		r := llmtest.Read(t, a.Provider.Stream(t.Context(), llmtest.Ask("hi")))
		checkCode(t, r.Err, fault.UpstreamBadAnswer)
		if n := len(a.Fake.Requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
	t.Run("not after text was delivered", func(t *testing.T) {
		a := build(t, llm.NewKey("first"), llm.NewKey("second"))
		a.Fake.ForKey("first", llmtest.Reply{Parts: []llmtest.Part{{Text: "half"}}, End: llmtest.MidError})
		r := llmtest.Read(t, a.Provider.Stream(t.Context(), llmtest.Ask("hi")))
		checkCode(t, r.Err, fault.UpstreamDown)
		if n := len(a.Fake.Requests()); n != 1 || r.Text != "half" {
			t.Errorf("%d requests, text %q", n, r.Text)
		}
	})
}

// testSecrecy lets every way of failing happen with a key that must not show, and
// with providers that quote it.
func testSecrecy(t *testing.T, build factory) {
	const secret = "sk-7Zq-secret"
	const prompt = "my diary of today"
	var seen strings.Builder
	log.SetOutput(&seen) // an SDK may write there
	defer log.SetOutput(os.Stderr)
	record := func(err error) {
		fmt.Fprintf(&seen, "%v %+v %#v\n", err, err, fault.Public(err))
		slog.New(slog.NewTextHandler(&seen, &slog.HandlerOptions{Level: slog.LevelDebug})).Error("failed", "err", err)
	}
	replies := []llmtest.Reply{{End: llmtest.Cut}, {End: llmtest.Truncated}, {End: llmtest.Garbage}, {HTML: true}, {Finish: llmtest.Safety},
		{End: llmtest.MidError, Message: "bad key " + secret + " for " + prompt}}
	for _, status := range []int{307, 400, 401, 402, 403, 404, 429, 500, 503} {
		replies = append(replies, llmtest.Reply{Status: status, Message: "bad key " + secret + " for " + prompt, Reason: secret})
	}
	for _, reply := range replies {
		a := build(t, llm.NewKey(secret))
		a.Fake.Script(reply)
		r := llmtest.Read(t, a.Provider.Stream(t.Context(), llmtest.Ask(prompt)))
		if r.Err == nil {
			t.Errorf("%+v gave no error", reply)
			continue
		}
		record(r.Err)
		if reply.Status != 0 {
			reply.Message = "bad key " + secret // the list is asked for without a prompt to quote
			a.Fake.Always(func(llmtest.Request) llmtest.Reply { return reply })
			if _, err := a.Provider.Models(t.Context()); err != nil {
				record(err)
			}
			if a.Embedder != nil {
				reply.Message += " for " + prompt
				_, err := a.Embedder.Embed(t.Context(), llm.Query, []string{prompt})
				record(err)
			}
		}
		for _, req := range a.Fake.Requests() {
			if strings.Contains(req.Path+req.Query, secret) {
				t.Error("the key is in the address")
			}
			if req.Key != secret {
				t.Errorf("the key arrived as %q", req.Key)
			}
		}
		fmt.Fprintf(&seen, "%v %+v\n", a.Provider, a.Embedder)
	}
	for _, word := range []string{secret, "7Zq", prompt} {
		if at := strings.Index(seen.String(), word); at >= 0 {
			t.Errorf("%q shows in: …%s…", word, seen.String()[max(0, at-120):min(seen.Len(), at+60)])
		}
	}
}

func testPrompt(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	temperature, topP := 1.25, 0.5
	r := llmtest.Read(t, a.Provider.Stream(t.Context(), llm.Request{
		Messages: []llm.Message{
			{Role: llm.System, Text: "You are Mei."},
			{Role: llm.Assistant, Text: "*bows* <b>你好</b> & welcome"},
			{Role: llm.User, Text: "hi"},
		},
		Temperature: &temperature, TopP: &topP, MaxTokens: 321, Stop: []string{"\nUser:"},
	}))
	checkCode(t, r.Err, "")
	req := a.Fake.Requests()[0]
	if req.Model != a.Provider.DefaultModel(t.Context()) {
		t.Errorf("model %q, want the default", req.Model)
	}
	var all strings.Builder
	fmt.Fprintf(&all, "%s|", req.System)
	for _, m := range req.Messages {
		fmt.Fprintf(&all, "%s: %s|", m.Role, m.Text)
	}
	for _, want := range []string{"You are Mei.", "*bows* <b>你好</b> & welcome|user: hi|"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the prompt %q lacks %q", all.String(), want)
		}
	}
	body := string(req.Body)
	for _, want := range []string{"1.25", "0.5", "321", `\nUser:`} {
		if !strings.Contains(body, want) {
			t.Errorf("the request lacks %s: %s", want, body)
		}
	}
}

// testImages shows that images arrive in the message that they belong to, and that every
// other message is sent as it would be without them.
func testImages(t *testing.T, build factory) {
	cat, dog := llm.Image{ContentType: "image/png", Data: []byte("\x89PNG \xff cat")}, llm.Image{ContentType: "image/jpeg", Data: []byte("dog")}
	for _, tt := range []struct {
		name     string
		messages []llm.Message
		want     []llmtest.Message // roles: u and a
	}{
		{"a text with two", []llm.Message{{Role: llm.User, Text: "look", Images: []llm.Image{cat, dog}}},
			[]llmtest.Message{{Role: "u", Text: "look", Images: []llm.Image{cat, dog}}}},
		{"alone", []llm.Message{{Role: llm.User, Images: []llm.Image{cat}}}, []llmtest.Message{{Role: "u", Images: []llm.Image{cat}}}},
		{"in an older message", []llm.Message{{Role: llm.User, Text: "look", Images: []llm.Image{dog}}, {Role: llm.Assistant, Text: "a dog"}, {Role: llm.User, Text: "yes"}},
			[]llmtest.Message{{Role: "u", Text: "look", Images: []llm.Image{dog}}, {Role: "a", Text: "a dog"}, {Role: "u", Text: "yes"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			r := llmtest.Read(t, a.Provider.Stream(t.Context(), llm.Request{Messages: tt.messages}))
			checkCode(t, r.Err, "")
			got := a.Fake.Requests()[0].Messages
			for i := range got {
				got[i].Role = map[string]string{"user": "u", "assistant": "a", "model": "a"}[got[i].Role]
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v arrived, want %+v", got, tt.want)
			}
		})
	}
}

func testTwice(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	seq := a.Provider.Stream(t.Context(), llmtest.Ask("hi"))
	if n := len(a.Fake.Requests()); n != 0 {
		t.Errorf("%d requests before the sequence is read", n)
	}
	if one, two := llmtest.Read(t, seq), llmtest.Read(t, seq); one.Text != two.Text || len(a.Fake.Requests()) != 2 {
		t.Errorf("%q and %q with %d requests", one.Text, two.Text, len(a.Fake.Requests()))
		return
	}
	all := a.Fake.Requests()
	t.Logf("connection used again: %v", all[0].From == all[1].From)
}

func testNoServer(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	a.Fake.Stop()
	r := llmtest.Read(t, a.Provider.Stream(t.Context(), llmtest.Ask("hi")))
	checkCode(t, r.Err, fault.UpstreamDown)
	if r.Err != nil && strings.Contains(r.Err.Error(), "key-1") {
		t.Error("the key shows")
	}
}

func testModels(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	a.Fake.SetModels("chat-1", "text-embedding-1")
	models, err := a.Provider.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(models) != 2 || models[0].ID != "chat-1" || !models[0].Generates || !models[1].Embeds || models[1].Generates {
		t.Errorf("models %+v", models)
	}
}

func testEmbeddings(t *testing.T, build factory) {
	texts := []string{"茶", "tea", "coffee"}
	for range 300 {
		texts = append(texts, fmt.Sprintf("text %d", len(texts)))
	}
	a := build(t, llm.NewKey("bad"), llm.NewKey("good"))
	if a.Embedder == nil {
		t.Skip("no embedder")
	}
	a.Fake.ForKey("bad", llmtest.Fail(401))
	got, err := a.Embedder.Embed(t.Context(), llm.Passage, texts)
	if err != nil {
		t.Fatal(err)
	}
	if got.Dim == 0 || got.Dim != a.Embedder.Dim() || got.Model != a.Embedder.ModelID() || len(got.Vectors) != len(texts) {
		t.Fatalf("%d vectors of %d numbers by %q", len(got.Vectors), got.Dim, got.Model)
	}
	for i, v := range got.Vectors {
		want := llmtest.Vector(texts[i], len(v))
		for j := range v {
			if math.Abs(float64(v[j]-want[j])) > 1e-6 {
				t.Fatalf("vector %d is not that of its text", i)
			}
		}
	}
	if n := len(a.Fake.Requests()); n < 4 {
		t.Errorf("%d requests: the texts were not split into batches", n)
	}
	t.Run("one vector is missing", func(t *testing.T) {
		a := build(t, llm.NewKey("key-1"))
		a.Fake.LoseVectors()
		_, err := a.Embedder.Embed(t.Context(), llm.Query, []string{"a", "b"})
		checkCode(t, err, fault.UpstreamBadAnswer)
	})
	t.Run("no texts", func(t *testing.T) {
		got, err := build(t, llm.NewKey("key-1")).Embedder.Embed(t.Context(), llm.Query, nil)
		if err != nil || len(got.Vectors) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
}
