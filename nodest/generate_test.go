package nodest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/framework"
	"nodest/llm"
	"nodest/nodest"
	"nodest/op"
	"nodest/stream"
)

// seed returns the seed of a randomized test; NODEST_SEED overrides it.
func seed(t *testing.T) uint64 {
	n, err := strconv.ParseUint(os.Getenv("NODEST_SEED"), 10, 64)
	if err != nil {
		n = 20261121
	}
	t.Logf("NODEST_SEED=%d", n)
	return n
}

// However the reply is cut into chunks, the deltas of each part join without a gap to
// the stored text, and their offsets are code points.
func TestDeltasMatchTheStoredText(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 5})
	rng := rand.New(rand.NewPCG(seed(t), 1))
	bits := []string{"Tea", "茶", " ", "\n", "😀", "<", ">", "<me", "m>", "</mem>", "<mem>", "<b>", "e\u0301", "<websearch>", "</websearch>", "<think>", "</thinking>", "ok."}
	c := s.chat()
	for round := range 40 {
		var whole strings.Builder
		whole.WriteString("x")
		for range rng.IntN(30) {
			whole.WriteString(bits[rng.IntN(len(bits))])
		}
		reply := replyWithChunks()
		runes := []rune(whole.String())
		for len(runes) > 0 {
			n := 1 + rng.IntN(len(runes))
			reply.chunks = append(reply.chunks, llm.Chunk{Text: string(runes[:n])})
			runes = runes[n:]
		}
		if rng.IntN(4) == 0 {
			reply.err = llm.CutOff("scripted", nil)
		}
		s.model.enqueue(reply)
		m := s.sendAndWait(c, fmt.Sprintf("round %d", round))
		if got := s.events.deltas(t, m.GenerationID, "text", 0); got != m.Text() {
			t.Fatalf("round %d of %q: deltas %q, stored %q", round, whole.String(), got, m.Text())
		}
		for _, b := range m.Chosen().Blocks {
			if b.At > len([]rune(m.Text())) {
				t.Errorf("round %d: a block stands at %d of %q", round, b.At, m.Text())
			}
		}
	}
}

// A block is streamed and stored apart from the text and is not sent in the next
// prompt.
func TestBlocksAreSeparatedFromTheText(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWith("Yes. <m", "em>you like ", "tea</mem> I ", "remember."))
	m := s.sendAndWait(c, "Do you know me?")
	if strings.Contains(m.Text(), "tea") || !strings.HasPrefix(m.Text(), "Yes.") || !strings.HasSuffix(m.Text(), "I remember.") {
		t.Errorf("text = %q", m.Text())
	}
	blocks := m.Chosen().Blocks
	if len(blocks) != 1 || blocks[0].Part != "mem" || blocks[0].Text != "you like tea" || blocks[0].At != 4 {
		t.Errorf("blocks = %+v", blocks)
	}
	var order []string
	for _, ev := range s.events.ofGeneration(m.GenerationID) {
		if ev.Type == "gen.block" {
			order = append(order, string(ev.Data))
		}
	}
	if len(order) != 2 || !strings.Contains(order[0], "open") || !strings.Contains(order[1], "close") {
		t.Errorf("gen.block = %v", order)
	}
	// A block is streamed as a part, but not sent in the next prompt.
	open := ""
	for _, ev := range s.events.ofGeneration(m.GenerationID) {
		if d := ev.Delta(); d.Part == "mem" {
			open += d.Text
		}
	}
	if open != "you like tea" {
		t.Errorf("deltas of the block = %q", open)
	}
	s.sendAndWait(c, "Good.")
	if strings.Contains(s.model.lastRequest(), "you like tea") {
		t.Error("the block went into the next prompt")
	}
}

func TestRegexScriptsForInputAndReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	all := true
	for _, script := range []string{
		`{"scriptName":"in","findRegex":"/cat/g","replaceString":"dog","placement":[1]}`,
		`{"scriptName":"out","findRegex":"/o+/g","replaceString":"0","placement":[2]}`,
	} {
		_, err := s.Characters.CreateResource(t.Context(), s.call(), character.RegexScript,
			character.ResourceInput{Name: "r", Document: json.RawMessage(script), BindAll: &all})
		s.must(err)
	}
	user, err := s.Characters.UserSettings(t.Context(), ann)
	s.must(err)
	user.GlobalRegexEnabled = true
	_, err = s.Characters.PutUserSettings(t.Context(), s.call(), *user, 0)
	s.must(err)

	c := s.chat()
	s.model.enqueue(replyWith("Good", " food."))
	sent := s.send(c, "my cat")
	s.wait(sent.GenerationID)
	if m := s.message(sent.UserMessage.ID); m.Text() != "my cat" {
		t.Errorf("stored %q, want it as it was typed", m.Text())
	}
	if !strings.Contains(s.model.lastRequest(), "my dog") || strings.Contains(s.model.lastRequest(), "my cat") {
		t.Errorf("sent:\n%s", s.model.lastRequest())
	}
	reply := s.message(sent.Message.ID)
	if reply.Text() != "G0d f0d." {
		t.Errorf("stored reply = %q", reply.Text())
	}
	if got := s.events.deltas(t, sent.GenerationID, "text", 0); got != "Good food." {
		t.Errorf("deltas = %q", got)
	}
	s.sendAndWait(c, "and now")
	if !strings.Contains(s.model.lastRequest(), "my dog") {
		t.Errorf("what was said before is sent as it was then:\n%s", s.model.lastRequest())
	}
	// The stored prompt has the text that was sent, not the text in the chat.
	p, err := s.Prompt(t.Context(), ann, s.generation(sent.GenerationID).PromptID)
	s.must(err)
	if last := p.Prompt.Messages[p.Prompt.Base]; !strings.Contains(last.Text, "my dog") {
		t.Errorf("stored prompt has %q", last.Text)
	}

	user.GlobalRegexEnabled, user.Version = false, 0
	_, err = s.Characters.PutUserSettings(t.Context(), s.call(), *user, 0)
	s.must(err)
	s.model.enqueue(replyWith("Good."))
	if m := s.sendAndWait(c, "a cat"); m.Text() != "Good." || !strings.Contains(s.model.lastRequest(), "a cat") {
		t.Errorf("scripts are switched off, the reply is %q to:\n%s", m.Text(), s.model.lastRequest())
	}
}

func TestASlowScriptIsDisabledUntilItIsEdited(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	all := true
	script, err := s.Characters.CreateResource(t.Context(), s.call(), character.RegexScript, character.ResourceInput{
		Name: "r", BindAll: &all,
		Document: json.RawMessage(`{"scriptName":"hostile","findRegex":"/(a+)+$/g","replaceString":"x","placement":[1]}`),
	})
	s.must(err)
	user, err := s.Characters.UserSettings(t.Context(), ann)
	s.must(err)
	user.GlobalRegexEnabled = true
	_, err = s.Characters.PutUserSettings(t.Context(), s.call(), *user, 0)
	s.must(err)
	c := s.chat()
	text := strings.Repeat("a", 60) + "!"
	preview := func() *framework.Prompt {
		p, err := s.PreviewPrompt(t.Context(), ann, nodest.PreviewInput{ConversationID: c.ID, Text: text})
		s.must(err)
		return p
	}
	for range 2 {
		p := preview()
		if len(p.Warnings) != 1 || p.Warnings[0].Code != "slow_pattern" || p.Warnings[0].Path != "regexScripts.hostile" {
			t.Errorf("warnings = %+v", p.Warnings)
		}
		if p.Messages[p.Base].Text != text {
			t.Errorf("sent %q", p.Messages[p.Base].Text)
		}
	}
	_, err = s.Characters.UpdateResource(t.Context(), s.call(), character.RegexScript, script.ID, character.ResourceInput{
		Document: json.RawMessage(`{"scriptName":"hostile","findRegex":"/a+/g","replaceString":"x","placement":[1]}`),
	}, false, 0)
	s.must(err)
	if p := preview(); len(p.Warnings) != 0 || p.Messages[p.Base].Text != "x!" {
		t.Errorf("after an edit: sent %q, warnings %+v", p.Messages[p.Base].Text, p.Warnings)
	}
}

func TestFailedReplies(t *testing.T) {
	t.Parallel()
	down := llm.Upstream("scripted", fault.UpstreamDown, 503, errors.New("no connection to 10.0.0.1 with key sk-secret"))
	tests := []struct {
		name   string
		reply  *scriptedReply
		code   fault.Code
		text   string // kept; "" = no swipe
		finish string
	}{
		{"before the first word", replyWith().failing(down), fault.UpstreamDown, "", ""},
		{"in the middle", replyWith("Half a ", "sentence").failing(down), fault.UpstreamDown, "Half a sentence", "error"},
		{"with half a tag held back", replyWith("a <me").failing(down), fault.UpstreamDown, "a <me", "error"},
		{"blocked at once", replyWith().failing(llm.BlockedError("scripted", llm.StagePrompt, "SAFETY")), fault.Blocked, "", ""},
		{"blocked in the middle", replyWith("Once").failing(llm.BlockedError("scripted", llm.StageReply, "SAFETY")), fault.Blocked, "Once", "blocked"},
		{"nothing but blanks", replyWith(" \n"), fault.EmptyReply, "", ""},
		{"nothing but an empty block", replyWith("<mem> </mem>"), fault.EmptyReply, "", ""},
		{"in a block", replyWith("Yes. <mem>You like tea").failing(down), fault.UpstreamDown, "Yes. You like tea", "error"},
		{"an error of ours", replyWith("So").failing(errors.New("secret internals")), fault.Internal, "So", "error"},
		{"no end", replyWith("So").failing(errNoEnd), fault.UpstreamBadAnswer, "So", "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			c := s.chat()
			s.model.enqueue(tt.reply)
			m := s.sendAndWait(c, "Tell me")
			if m.Status != chat.StatusError || m.Error == nil || m.Error.Code != tt.code {
				t.Errorf("status %s, error %v; want %s", m.Status, m.Error, tt.code)
			}
			if tt.text == "" && len(m.Swipes) != 0 {
				t.Errorf("swipes = %+v, want none", m.Swipes)
			}
			if tt.text != "" && (m.Text() != tt.text || m.Chosen().Finish != tt.finish) {
				t.Errorf("kept %q with finish %q, want %q with %q", m.Text(), m.Chosen().Finish, tt.text, tt.finish)
			}
			g := s.generation(m.GenerationID)
			if g.Status != chat.GenFailed || g.Error.Code != tt.code {
				t.Errorf("generation %s, %v", g.Status, g.Error)
			}
			if want := "message.created gen.started gen.context message.updated gen.failed"; s.events.typesOf(g.ID) != want {
				t.Errorf("events = %s, want %s", s.events.typesOf(g.ID), want)
			}
			for _, ev := range s.events.ofGeneration(g.ID) {
				if strings.Contains(string(ev.Data), "secret") {
					t.Errorf("%s contains %s", ev.Type, ev.Data)
				}
			}
			// The conversation can be continued.
			if next := s.sendAndWait(c, "Again"); next.Text() != "Fine." {
				t.Errorf("the next reply = %q", next.Text())
			}
		})
	}
}

// errNoEnd ends the reply of a scripted model without its last chunk.
var errNoEnd = llm.CutOff("scripted", nil)

func TestAFailedExchangeIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWith().failing(llm.Upstream("scripted", fault.UpstreamDown, 503, nil)))
	failed := s.sendAndWait(c, "Lost words")
	s.sendAndWait(c, "New words")
	if strings.Contains(s.model.lastRequest(), "Lost words") {
		t.Errorf("the failed exchange is in the prompt:\n%s", s.model.lastRequest())
	}
	// Once it has a reply it is part of the chat.
	m := s.regenerate(failed.ID, "")
	if m.Status != chat.StatusComplete || m.Error != nil || m.Text() != "Fine." || m.ParentID != failed.ParentID {
		t.Errorf("after the repair: %+v", m)
	}
	if !strings.Contains(s.model.lastRequest(), "Lost words") || strings.Contains(s.model.lastRequest(), "New words") {
		t.Errorf("the request of the repair:\n%s", s.model.lastRequest())
	}
	s.sendAndWait(c, "Third words")
	if !strings.Contains(s.model.lastRequest(), "Lost words") {
		t.Errorf("the repaired exchange is not in the prompt:\n%s", s.model.lastRequest())
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := replyWith("One", " two", " three").gated()
	s.model.enqueue(reply)
	sent := s.send(c, "Count")
	reply.step(2)
	s.eventually("two pieces arrive", func() bool { return s.events.deltas(t, sent.GenerationID, "text", 0) == "One two" })
	began := time.Now()
	status, err := s.Cancel(t.Context(), ann, sent.GenerationID)
	s.must(err)
	t.Logf("cancelled and stored after %v", time.Since(began))
	if status != chat.GenCancelled || s.model.closedRequests() != 1 {
		t.Errorf("status %s, %d requests closed", status, s.model.closedRequests())
	}
	m := s.message(sent.Message.ID)
	if m.Text() != "One two" || m.Status != chat.StatusCancelled || m.Chosen().Finish != "cancelled" || m.Error != nil {
		t.Errorf("kept %+v", m)
	}
	if want := "message.created gen.started gen.context message.updated gen.done"; s.events.typesOf(sent.GenerationID) != want {
		t.Errorf("events = %s, want %s", s.events.typesOf(sent.GenerationID), want)
	}
	// Cancelling twice or after the end changes nothing.
	if status, err := s.Cancel(t.Context(), ann, sent.GenerationID); status != chat.GenCancelled || err != nil {
		t.Errorf("a second cancel: %s, %v", status, err)
	}
	done := s.sendAndWait(c, "Go on")
	if status, err := s.Cancel(t.Context(), ann, done.GenerationID); status != chat.GenDone || err != nil {
		t.Errorf("a late cancel: %s, %v", status, err)
	}
	if !strings.Contains(s.model.lastRequest(), "One two") {
		t.Error("what was kept is part of the chat")
	}
	_, err = s.Cancel(t.Context(), ann, "nothing")
	s.wantCode(err, fault.NotFound)
}

func TestCancelBeforeTheFirstWord(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := replyWith("One").gated()
	s.model.enqueue(reply)
	sent := s.send(c, "Count")
	<-reply.started
	if status, err := s.Cancel(t.Context(), ann, sent.GenerationID); status != chat.GenCancelled || err != nil {
		t.Errorf("cancel: %s, %v", status, err)
	}
	m := s.message(sent.Message.ID)
	if len(m.Swipes) != 0 || m.Status != chat.StatusCancelled {
		t.Errorf("kept %+v", m)
	}
	rows, err := s.Usage(t.Context(), ann, "2000-01-01", "2999-12-31")
	s.must(err)
	if len(rows) != 0 {
		t.Errorf("metered %+v although nothing came", rows[0])
	}
}

func TestAttachAndActive(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := replyWith("茶", "tea", "😀", "!").gated()
	s.model.enqueue(reply)
	sent := s.send(c, "Drink?")
	reply.step(3)
	s.eventually("three pieces arrive", func() bool { return s.events.deltas(t, sent.GenerationID, "text", 0) == "茶tea😀" })
	for off, want := range map[int]string{0: "茶tea😀", 1: "tea😀", 4: "😀", 5: "", 9: ""} {
		a, err := s.Attach(t.Context(), ann, sent.GenerationID, off)
		s.must(err)
		if a.Text != want || a.Off != min(off, 5) || a.Generation.Status != chat.GenStreaming {
			t.Errorf("from %d: %q at %d, %s; want %q", off, a.Text, a.Off, a.Generation.Status, want)
		}
	}
	_, err := s.Attach(t.Context(), ann, sent.GenerationID, -1)
	s.wantCode(err, fault.Invalid)
	active, err := s.Active(t.Context(), ann)
	s.must(err)
	if len(active) != 1 || active[0].Off != 5 || active[0].Text != "" || active[0].Generation.ID != sent.GenerationID {
		t.Errorf("active = %+v", active)
	}
	reply.release()
	s.wait(sent.GenerationID)
	a, err := s.Attach(t.Context(), ann, sent.GenerationID, 4)
	s.must(err)
	if a.Text != "😀!" || a.Generation.Status != chat.GenDone {
		t.Errorf("after the end: %q, %s", a.Text, a.Generation.Status)
	}
	if active, err := s.Active(t.Context(), ann); err != nil || len(active) != 0 {
		t.Errorf("active = %v, %v", active, err)
	}
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 1000, CheckpointEvery: time.Hour, Lease: 24 * time.Hour})
	c := s.chat()
	reply := replyWith(strings.Repeat("茶", 999), "x", "y").gated()
	s.model.enqueue(reply)
	sent := s.send(c, "Long")
	reply.step(2)
	s.eventually("a checkpoint after 1,000 code points", func() bool {
		return len([]rune(s.generation(sent.GenerationID).Text)) == 1000
	})
	if m := s.message(sent.Message.ID); len(m.Swipes) != 0 {
		t.Errorf("a checkpoint is not a swipe: %+v", m.Swipes)
	}
	reply.release()
	s.wait(sent.GenerationID)
}

func TestAGenerationHasATimeLimit(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{TurnTimeout: time.Millisecond})
	c := s.chat()
	s.model.enqueue(replyWith("never").gated())
	sent := s.send(c, "Hello")
	s.wait(sent.GenerationID)
	if m := s.message(sent.Message.ID); m.Status != chat.StatusError || m.Error.Code != fault.UpstreamTimeout {
		t.Errorf("%s, %v", m.Status, m.Error)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	t.Run("waits for what runs", func(t *testing.T) {
		s := newFixture(t, nodest.Options{})
		c := s.chat()
		reply := replyWith("All ", "of it.").gated()
		s.model.enqueue(reply)
		sent := s.send(c, "Hello")
		<-reply.started
		closed := make(chan error)
		go func() { closed <- s.Close(context.WithoutCancel(t.Context())) }()
		s.eventually("new ones are refused", func() bool {
			_, err := s.Send(t.Context(), &op.Call{UserID: ann}, nodest.SendInput{ConversationID: c.ID, Text: "More", WhenBusy: "later"})
			if !fault.Is(err, fault.Invalid) { // the input is checked first
				t.Fatal(err)
			}
			_, err = s.Impersonate(t.Context(), &op.Call{UserID: ann}, nodest.GenerateInput{ConversationID: c.ID})
			return fault.Is(err, fault.ShuttingDown)
		})
		reply.release()
		s.must(<-closed)
		if m := s.message(sent.Message.ID); m.Text() != "All of it." || m.Status != chat.StatusComplete {
			t.Errorf("%s: %q", m.Status, m.Text())
		}
		s.must(s.Close(t.Context())) // a second time
	})
	t.Run("stores what it interrupts", func(t *testing.T) {
		s := newFixture(t, nodest.Options{GenerationsPerUser: 1})
		c, other := s.chat(), s.chat()
		reply := replyWith("Part", " never").gated()
		s.model.enqueue(reply)
		sent := s.send(c, "Hello")
		queued := s.send(other, "Hello")
		reply.step(1)
		s.eventually("a piece arrives", func() bool { return s.events.deltas(t, sent.GenerationID, "text", 0) == "Part" })
		now, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Close(now); !errors.Is(err, context.Canceled) {
			t.Errorf("Close = %v", err)
		}
		if m := s.message(sent.Message.ID); m.Text() != "Part" || m.Status != chat.StatusInterrupted || m.Chosen().Finish != "interrupted" {
			t.Errorf("%s: %+v", m.Status, m.Chosen())
		}
		if m := s.message(queued.Message.ID); m.Status != chat.StatusInterrupted || len(m.Swipes) != 0 {
			t.Errorf("the queued one: %s, %+v", m.Status, m.Swipes)
		}
	})
}

// A client that attaches when it receives the end event finds the generation ended
// and gets no text that would look like another delta.
func TestAttachAfterTheEndEventFindsTheGenerationEnded(t *testing.T) {
	t.Parallel()
	const turns = 10
	s := newFixture(t, nodest.Options{})
	found := make(chan *nodest.Attached, turns)
	s.events.afterCommit = func(events []*stream.Event) {
		for _, ev := range events {
			if ev.Type != "gen.done" {
				continue
			}
			begun := make(chan struct{})
			go func() {
				close(begun)
				a, err := s.Attach(t.Context(), ann, ev.GenerationID, 0)
				if err != nil {
					t.Error(err)
				}
				found <- a
			}()
			<-begun
		}
	}
	c := s.chat()
	for range turns {
		sent := s.send(c, "Hi")
		s.wait(sent.GenerationID)
		if a := <-found; a == nil || !a.Generation.Ended() {
			t.Errorf("attached to %+v after its end event", a)
		}
	}
}
