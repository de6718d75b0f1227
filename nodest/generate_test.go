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
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
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
	c := s.Chat()
	for round := range 40 {
		var whole strings.Builder
		whole.WriteString("x")
		for range rng.IntN(30) {
			whole.WriteString(bits[rng.IntN(len(bits))])
		}
		reply := nodesttest.ReplyOfChunks()
		runes := []rune(whole.String())
		for len(runes) > 0 {
			n := 1 + rng.IntN(len(runes))
			reply.Chunks = append(reply.Chunks, llm.Chunk{Text: string(runes[:n])})
			runes = runes[n:]
		}
		if rng.IntN(4) == 0 {
			reply.Err = llm.CutOff("scripted", nil)
		}
		s.Model.Enqueue(reply)
		m := s.SayAndWait(c, fmt.Sprintf("round %d", round))
		if got := s.Events.Deltas(t, m.GenerationID, "text", 0); got != m.Text() {
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
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("Yes. <m", "em>you like ", "tea</mem> I ", "remember."))
	m := s.SayAndWait(c, "Do you know me?")
	if strings.Contains(m.Text(), "tea") || !strings.HasPrefix(m.Text(), "Yes.") || !strings.HasSuffix(m.Text(), "I remember.") {
		t.Errorf("text = %q", m.Text())
	}
	blocks := m.Chosen().Blocks
	if len(blocks) != 1 || blocks[0].Part != "mem" || blocks[0].Text != "you like tea" || blocks[0].At != 4 {
		t.Errorf("blocks = %+v", blocks)
	}
	var order []string
	for _, ev := range s.Events.OfGeneration(m.GenerationID) {
		if ev.Type == "gen.block" {
			order = append(order, string(ev.Data))
		}
	}
	if len(order) != 2 || !strings.Contains(order[0], "open") || !strings.Contains(order[1], "close") {
		t.Errorf("gen.block = %v", order)
	}
	// A block is streamed as a part, but not sent in the next prompt.
	open := ""
	for _, ev := range s.Events.OfGeneration(m.GenerationID) {
		if d := ev.Delta(); d.Part == "mem" {
			open += d.Text
		}
	}
	if open != "you like tea" {
		t.Errorf("deltas of the block = %q", open)
	}
	s.SayAndWait(c, "Good.")
	if strings.Contains(s.Model.LastRequest(), "you like tea") {
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
		_, err := s.Characters.CreateResource(t.Context(), s.Call(), character.RegexScript,
			character.ResourceInput{Name: "r", Document: json.RawMessage(script), BindAll: &all})
		s.Must(err)
	}
	user, err := s.Characters.UserSettings(t.Context(), nodesttest.Ann)
	s.Must(err)
	user.GlobalRegexEnabled = true
	_, err = s.Characters.PutUserSettings(t.Context(), s.Call(), *user, 0)
	s.Must(err)

	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("Good", " food."))
	sent := s.Say(c, "my cat")
	s.Await(sent.GenerationID)
	if m := s.Message(sent.UserMessage.ID); m.Text() != "my cat" {
		t.Errorf("stored %q, want it as it was typed", m.Text())
	}
	if !strings.Contains(s.Model.LastRequest(), "my dog") || strings.Contains(s.Model.LastRequest(), "my cat") {
		t.Errorf("sent:\n%s", s.Model.LastRequest())
	}
	reply := s.Message(sent.Message.ID)
	if reply.Text() != "G0d f0d." {
		t.Errorf("stored reply = %q", reply.Text())
	}
	if got := s.Events.Deltas(t, sent.GenerationID, "text", 0); got != "Good food." {
		t.Errorf("deltas = %q", got)
	}
	s.SayAndWait(c, "and now")
	if !strings.Contains(s.Model.LastRequest(), "my dog") {
		t.Errorf("what was said before is sent as it was then:\n%s", s.Model.LastRequest())
	}
	// The stored prompt has the text that was sent, not the text in the chat.
	p, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(sent.GenerationID).PromptID)
	s.Must(err)
	if last := p.Prompt.Messages[p.Prompt.Base]; !strings.Contains(last.Text, "my dog") {
		t.Errorf("stored prompt has %q", last.Text)
	}

	user.GlobalRegexEnabled, user.Version = false, 0
	_, err = s.Characters.PutUserSettings(t.Context(), s.Call(), *user, 0)
	s.Must(err)
	s.Model.Enqueue(nodesttest.Reply("Good."))
	if m := s.SayAndWait(c, "a cat"); m.Text() != "Good." || !strings.Contains(s.Model.LastRequest(), "a cat") {
		t.Errorf("scripts are switched off, the reply is %q to:\n%s", m.Text(), s.Model.LastRequest())
	}
}

func TestASlowScriptIsDisabledUntilItIsEdited(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	all := true
	script, err := s.Characters.CreateResource(t.Context(), s.Call(), character.RegexScript, character.ResourceInput{
		Name: "r", BindAll: &all,
		Document: json.RawMessage(`{"scriptName":"hostile","findRegex":"/(a+)+$/g","replaceString":"x","placement":[1]}`),
	})
	s.Must(err)
	user, err := s.Characters.UserSettings(t.Context(), nodesttest.Ann)
	s.Must(err)
	user.GlobalRegexEnabled = true
	_, err = s.Characters.PutUserSettings(t.Context(), s.Call(), *user, 0)
	s.Must(err)
	c := s.Chat()
	text := strings.Repeat("a", 60) + "!"
	preview := func() *framework.Prompt {
		p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: text})
		s.Must(err)
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
	_, err = s.Characters.UpdateResource(t.Context(), s.Call(), character.RegexScript, script.ID, character.ResourceInput{
		Document: json.RawMessage(`{"scriptName":"hostile","findRegex":"/a+/g","replaceString":"x","placement":[1]}`),
	}, false, 0)
	s.Must(err)
	if p := preview(); len(p.Warnings) != 0 || p.Messages[p.Base].Text != "x!" {
		t.Errorf("after an edit: sent %q, warnings %+v", p.Messages[p.Base].Text, p.Warnings)
	}
}

func TestFailedReplies(t *testing.T) {
	t.Parallel()
	down := llm.Upstream("scripted", fault.UpstreamDown, 503, errors.New("no connection to 10.0.0.1 with key sk-secret"))
	tests := []struct {
		name   string
		reply  *nodesttest.ScriptedReply
		code   fault.Code
		text   string // kept; "" = no swipe
		finish string
	}{
		{"before the first word", nodesttest.Reply().Failing(down), fault.UpstreamDown, "", ""},
		{"in the middle", nodesttest.Reply("Half a ", "sentence").Failing(down), fault.UpstreamDown, "Half a sentence", "error"},
		{"with half a tag held back", nodesttest.Reply("a <me").Failing(down), fault.UpstreamDown, "a <me", "error"},
		{"blocked at once", nodesttest.Reply().Failing(llm.BlockedError("scripted", llm.StagePrompt, "SAFETY")), fault.Blocked, "", ""},
		{"blocked in the middle", nodesttest.Reply("Once").Failing(llm.BlockedError("scripted", llm.StageReply, "SAFETY")), fault.Blocked, "Once", "blocked"},
		{"nothing but blanks", nodesttest.Reply(" \n"), fault.EmptyReply, "", ""},
		{"nothing but an empty block", nodesttest.Reply("<mem> </mem>"), fault.EmptyReply, "", ""},
		{"in a block", nodesttest.Reply("Yes. <mem>You like tea").Failing(down), fault.UpstreamDown, "Yes. You like tea", "error"},
		{"an error of ours", nodesttest.Reply("So").Failing(errors.New("secret internals")), fault.Internal, "So", "error"},
		{"no end", nodesttest.Reply("So").Failing(errNoEnd), fault.UpstreamBadAnswer, "So", "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			c := s.Chat()
			s.Model.Enqueue(tt.reply)
			m := s.SayAndWait(c, "Tell me")
			if m.Status != chat.StatusError || m.Error == nil || m.Error.Code != tt.code {
				t.Errorf("status %s, error %v; want %s", m.Status, m.Error, tt.code)
			}
			if tt.text == "" && len(m.Swipes) != 0 {
				t.Errorf("swipes = %+v, want none", m.Swipes)
			}
			if tt.text != "" && (m.Text() != tt.text || m.Chosen().Finish != tt.finish) {
				t.Errorf("kept %q with finish %q, want %q with %q", m.Text(), m.Chosen().Finish, tt.text, tt.finish)
			}
			g := s.Generation(m.GenerationID)
			if g.Status != chat.GenFailed || g.Error.Code != tt.code {
				t.Errorf("generation %s, %v", g.Status, g.Error)
			}
			if want := "message.created gen.started gen.context message.updated gen.failed"; s.Events.TypesOf(g.ID) != want {
				t.Errorf("events = %s, want %s", s.Events.TypesOf(g.ID), want)
			}
			for _, ev := range s.Events.OfGeneration(g.ID) {
				if strings.Contains(string(ev.Data), "secret") {
					t.Errorf("%s contains %s", ev.Type, ev.Data)
				}
			}
			// The conversation can be continued.
			if next := s.SayAndWait(c, "Again"); next.Text() != "Fine." {
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
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply().Failing(llm.Upstream("scripted", fault.UpstreamDown, 503, nil)))
	failed := s.SayAndWait(c, "Lost words")
	s.SayAndWait(c, "New words")
	if strings.Contains(s.Model.LastRequest(), "Lost words") {
		t.Errorf("the failed exchange is in the prompt:\n%s", s.Model.LastRequest())
	}
	// Once it has a reply it is part of the chat.
	m := s.RegenerateReply(failed.ID, "")
	if m.Status != chat.StatusComplete || m.Error != nil || m.Text() != "Fine." || m.ParentID != failed.ParentID {
		t.Errorf("after the repair: %+v", m)
	}
	if !strings.Contains(s.Model.LastRequest(), "Lost words") || strings.Contains(s.Model.LastRequest(), "New words") {
		t.Errorf("the request of the repair:\n%s", s.Model.LastRequest())
	}
	s.SayAndWait(c, "Third words")
	if !strings.Contains(s.Model.LastRequest(), "Lost words") {
		t.Errorf("the repaired exchange is not in the prompt:\n%s", s.Model.LastRequest())
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := nodesttest.Reply("One", " two", " three").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Count")
	reply.Step(2)
	s.Eventually("two pieces arrive", func() bool { return s.Events.Deltas(t, sent.GenerationID, "text", 0) == "One two" })
	began := time.Now()
	status, err := s.Cancel(t.Context(), nodesttest.Ann, sent.GenerationID)
	s.Must(err)
	t.Logf("cancelled and stored after %v", time.Since(began))
	if status != chat.GenCancelled || s.Model.ClosedRequests() != 1 {
		t.Errorf("status %s, %d requests closed", status, s.Model.ClosedRequests())
	}
	m := s.Message(sent.Message.ID)
	if m.Text() != "One two" || m.Status != chat.StatusCancelled || m.Chosen().Finish != "cancelled" || m.Error != nil {
		t.Errorf("kept %+v", m)
	}
	if want := "message.created gen.started gen.context message.updated gen.done"; s.Events.TypesOf(sent.GenerationID) != want {
		t.Errorf("events = %s, want %s", s.Events.TypesOf(sent.GenerationID), want)
	}
	// Cancelling twice or after the end changes nothing.
	if status, err := s.Cancel(t.Context(), nodesttest.Ann, sent.GenerationID); status != chat.GenCancelled || err != nil {
		t.Errorf("a second cancel: %s, %v", status, err)
	}
	done := s.SayAndWait(c, "Go on")
	if status, err := s.Cancel(t.Context(), nodesttest.Ann, done.GenerationID); status != chat.GenDone || err != nil {
		t.Errorf("a late cancel: %s, %v", status, err)
	}
	if !strings.Contains(s.Model.LastRequest(), "One two") {
		t.Error("what was kept is part of the chat")
	}
	_, err = s.Cancel(t.Context(), nodesttest.Ann, "nothing")
	s.WantCode(err, fault.NotFound)
}

func TestCancelBeforeTheFirstWord(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := nodesttest.Reply("One").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Count")
	<-reply.Started
	if status, err := s.Cancel(t.Context(), nodesttest.Ann, sent.GenerationID); status != chat.GenCancelled || err != nil {
		t.Errorf("cancel: %s, %v", status, err)
	}
	m := s.Message(sent.Message.ID)
	if len(m.Swipes) != 0 || m.Status != chat.StatusCancelled {
		t.Errorf("kept %+v", m)
	}
	rows, err := s.Usage(t.Context(), nodesttest.Ann, "2000-01-01", "2999-12-31")
	s.Must(err)
	if len(rows) != 0 {
		t.Errorf("metered %+v although nothing came", rows[0])
	}
}

func TestAttachAndActive(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := nodesttest.Reply("茶", "tea", "😀", "!").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Drink?")
	reply.Step(3)
	s.Eventually("three pieces arrive", func() bool { return s.Events.Deltas(t, sent.GenerationID, "text", 0) == "茶tea😀" })
	for off, want := range map[int]string{0: "茶tea😀", 1: "tea😀", 4: "😀", 5: "", 9: ""} {
		a, err := s.Attach(t.Context(), nodesttest.Ann, sent.GenerationID, off)
		s.Must(err)
		if a.Text != want || a.Off != min(off, 5) || a.Generation.Status != chat.GenStreaming {
			t.Errorf("from %d: %q at %d, %s; want %q", off, a.Text, a.Off, a.Generation.Status, want)
		}
	}
	_, err := s.Attach(t.Context(), nodesttest.Ann, sent.GenerationID, -1)
	s.WantCode(err, fault.Invalid)
	active, err := s.Active(t.Context(), nodesttest.Ann)
	s.Must(err)
	if len(active) != 1 || active[0].Off != 5 || active[0].Text != "" || active[0].Generation.ID != sent.GenerationID {
		t.Errorf("active = %+v", active)
	}
	reply.Release()
	s.Await(sent.GenerationID)
	a, err := s.Attach(t.Context(), nodesttest.Ann, sent.GenerationID, 4)
	s.Must(err)
	if a.Text != "😀!" || a.Generation.Status != chat.GenDone {
		t.Errorf("after the end: %q, %s", a.Text, a.Generation.Status)
	}
	if active, err := s.Active(t.Context(), nodesttest.Ann); err != nil || len(active) != 0 {
		t.Errorf("active = %v, %v", active, err)
	}
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 1000, CheckpointEvery: time.Hour, Lease: 24 * time.Hour})
	c := s.Chat()
	reply := nodesttest.Reply(strings.Repeat("茶", 999), "x", "y").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Long")
	reply.Step(2)
	s.Eventually("a checkpoint after 1,000 code points", func() bool {
		return len([]rune(s.Generation(sent.GenerationID).Text)) == 1000
	})
	if m := s.Message(sent.Message.ID); len(m.Swipes) != 0 {
		t.Errorf("a checkpoint is not a swipe: %+v", m.Swipes)
	}
	reply.Release()
	s.Await(sent.GenerationID)
}

func TestAGenerationHasATimeLimit(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{TurnTimeout: time.Millisecond})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("never").Gated())
	sent := s.Say(c, "Hello")
	s.Await(sent.GenerationID)
	if m := s.Message(sent.Message.ID); m.Status != chat.StatusError || m.Error.Code != fault.UpstreamTimeout {
		t.Errorf("%s, %v", m.Status, m.Error)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	t.Run("waits for what runs", func(t *testing.T) {
		s := newFixture(t, nodest.Options{})
		c := s.Chat()
		reply := nodesttest.Reply("All ", "of it.").Gated()
		s.Model.Enqueue(reply)
		sent := s.Say(c, "Hello")
		<-reply.Started
		closed := make(chan error)
		go func() { closed <- s.Close(context.WithoutCancel(t.Context())) }()
		s.Eventually("new ones are refused", func() bool {
			_, err := s.Send(t.Context(), &op.Call{UserID: nodesttest.Ann}, nodest.SendInput{ConversationID: c.ID, Text: "More", WhenBusy: "later"})
			if !fault.Is(err, fault.Invalid) { // the input is checked first
				t.Fatal(err)
			}
			_, err = s.Impersonate(t.Context(), &op.Call{UserID: nodesttest.Ann}, nodest.GenerateInput{ConversationID: c.ID})
			return fault.Is(err, fault.ShuttingDown)
		})
		reply.Release()
		s.Must(<-closed)
		if m := s.Message(sent.Message.ID); m.Text() != "All of it." || m.Status != chat.StatusComplete {
			t.Errorf("%s: %q", m.Status, m.Text())
		}
		s.Must(s.Close(t.Context())) // a second time
	})
	t.Run("stores what it interrupts", func(t *testing.T) {
		s := newFixture(t, nodest.Options{GenerationsPerUser: 1})
		c, other := s.Chat(), s.Chat()
		reply := nodesttest.Reply("Part", " never").Gated()
		s.Model.Enqueue(reply)
		sent := s.Say(c, "Hello")
		queued := s.Say(other, "Hello")
		reply.Step(1)
		s.Eventually("a piece arrives", func() bool { return s.Events.Deltas(t, sent.GenerationID, "text", 0) == "Part" })
		now, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Close(now); !errors.Is(err, context.Canceled) {
			t.Errorf("Close = %v", err)
		}
		if m := s.Message(sent.Message.ID); m.Text() != "Part" || m.Status != chat.StatusInterrupted || m.Chosen().Finish != "interrupted" {
			t.Errorf("%s: %+v", m.Status, m.Chosen())
		}
		if m := s.Message(queued.Message.ID); m.Status != chat.StatusInterrupted || len(m.Swipes) != 0 {
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
	s.Events.AfterCommit = func(events []*stream.Event) {
		for _, ev := range events {
			if ev.Type != "gen.done" {
				continue
			}
			begun := make(chan struct{})
			go func() {
				close(begun)
				a, err := s.Attach(t.Context(), nodesttest.Ann, ev.GenerationID, 0)
				if err != nil {
					t.Error(err)
				}
				found <- a
			}()
			<-begun
		}
	}
	c := s.Chat()
	for range turns {
		sent := s.Say(c, "Hi")
		s.Await(sent.GenerationID)
		if a := <-found; a == nil || !a.Generation.Ended() {
			t.Errorf("attached to %+v after its end event", a)
		}
	}
}
