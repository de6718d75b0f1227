package nodest

import (
	"context"
	"strings"
	"time"

	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/llm"
)

type modelAnswer struct {
	text  string // as it was written
	calls []llm.ToolCall
	echo  *llm.Echo
}

// stream streams the model's answer to one request and publishes it. Text that came before an error
// stays in t.
//
// Breaking off the loop closes the provider's request.
func (e *Engine) stream(ctx context.Context, t *task, turn *turn, r llm.Request) (modelAnswer, error) {
	var said strings.Builder
	var split framework.Splitter
	defer func() { e.pass(t, split.Close()) }()
	for chunk, err := range turn.setup.model.Generator.Stream(ctx, r) {
		if err != nil {
			return modelAnswer{}, err
		}
		t.hear(chunk)
		e.addWarnings(ctx, t, turn, chunk.Warnings)
		if chunk.Reasoning != "" {
			text := t.text.Separated(chunk.Reasoning)
			e.publishDelta(t, "reasoning", text, t.text.AddReasoning(text))
		}
		if chunk.Text != "" {
			said.WriteString(chunk.Text)
			e.pass(t, split.Feed(chunk.Text))
		}
		if chunk.Last {
			t.text.End(chunk.Finish)
			return modelAnswer{said.String(), chunk.Calls, chunk.Echo}, nil
		}
		if t.text.Unsaved() >= e.opts.CheckpointChars {
			t.text.AskCheckpoint()
		}
	}
	return modelAnswer{}, llm.CutOff(turn.setup.model.Provider, nil)
}

func (e *Engine) pass(t *task, pieces []framework.Piece) {
	for _, p := range pieces {
		if off, told := t.text.Replace(p); told {
			e.publishRewind(t, off)
		}
		if p.State == framework.StateUnclosed {
			e.publishBlock(t, p.Part, framework.StateClose)
			text, off := t.text.Unclosed(p)
			e.publishText(t, text, off)
			continue
		}
		if p.State == framework.StateThought {
			e.rewind(t, p)
			continue
		}
		off := t.text.AddPiece(p)
		if p.State != "" {
			e.publishBlock(t, p.Part, p.State)
			continue
		}
		part := string(p.Part)
		if p.Part == framework.PartThink {
			part = "reasoning"
		}
		e.publishDelta(t, part, p.Text, off)
	}
}

// rewind turns text that was already published into reasoning.
func (e *Engine) rewind(t *task, p framework.Piece) {
	thought, text, told := t.text.TextToReasoning(p)
	if told {
		e.publishRewind(t, text)
	}
	if p.Text != "" {
		e.publishDelta(t, "reasoning", p.Text, thought)
	}
}

// publishRewind publishes that the text behind off is no part of the reply.
func (e *Engine) publishRewind(t *task, off int) {
	ev := t.transient("gen.rewind", struct{}{})
	ev.Off = off
	e.pub.Transient(ev)
}

// settle makes the text of the blocks the reply if there is no other.
func (e *Engine) settle(t *task) {
	text, off := t.text.BlocksToText()
	e.publishText(t, text, off)
}

// publishBlock publishes the start or end of a tagged block. Reasoning has deltas only.
func (e *Engine) publishBlock(t *task, part framework.Part, state string) {
	if part != framework.PartThink {
		e.publish(t, "gen.block", blockData{Part: string(part), State: state})
	}
}

func (e *Engine) publishText(t *task, text string, off int) {
	if text != "" {
		e.publishDelta(t, string(framework.PartText), text, off)
	}
}

// publishDelta publishes a piece of text; off is its position in code points.
func (e *Engine) publishDelta(t *task, part, text string, off int) {
	ev := &stream.Event{
		UserID: t.userID, ConversationID: t.conversationID, MessageID: t.messageID, GenerationID: t.id,
		Off: off, At: time.Now().UTC(), By: t.device,
	}
	ev.Say(text, part)
	e.pub.Transient(ev)
}

// publishStage publishes the stage of a generation, and how long its making takes so far.
func (e *Engine) publishStage(t *task, stage string, since time.Time) {
	e.publish(t, "gen.stage", stageData{Stage: stage, Ms: time.Since(since).Milliseconds()})
}

func (e *Engine) publish(t *task, kind string, data any) {
	e.pub.Transient(t.transient(kind, data))
}

// transient makes an event that is not stored.
func (t *task) transient(kind string, data any) *stream.Event {
	ev := op.Event(t.userID, kind, t.device, data)
	ev.ConversationID, ev.MessageID, ev.GenerationID = t.conversationID, t.messageID, t.id
	ev.At = time.Now().UTC()
	return ev
}

// keep stores checkpoints of what is written and renews the lease until the
// function that it returns is called, which waits for the last one.
func (e *Engine) keep(t *task) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := min(e.opts.CheckpointEvery, e.opts.Lease/3)
		renewed := time.Now()
		due := time.NewTimer(time.Until(nextCheckpoint(renewed, every)))
		defer due.Stop()
		for {
			select {
			case <-quit:
				return
			case <-due.C:
			case <-t.text.Full():
				if t.text.Unsaved() < e.opts.CheckpointChars {
					continue // asked for twice
				}
			case <-t.asked:
				if !e.checkpoint(t) {
					return
				}
				e.others.Stored(t.userID)
				renewed = time.Now()
			}
			if t.text.Unsaved() > 0 || time.Since(renewed) >= e.opts.Lease/3 {
				if !e.checkpoint(t) {
					return
				}
				renewed = time.Now()
			}
			due.Reset(time.Until(nextCheckpoint(time.Now(), every)))
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// nextCheckpoint is when the checkpoint after one at a time is due: every later or up to a quarter
// sooner, at a moment that other replies share, so that one commit can store all of theirs.
func nextCheckpoint(last time.Time, every time.Duration) time.Time {
	return last.Add(every).Truncate(every / 4)
}

// checkpoint stores what is written so far. It returns false when the generation
// is no longer ours; then it is stopped.
func (e *Engine) checkpoint(t *task) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), e.opts.Lease)
	defer cancel()
	t.text.Save()
	err := e.store.Checkpoint(ctx, t.generation(), e.opts.Lease)
	switch {
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
		t.cancel(errLost)
		return false
	case err != nil:
		e.opts.Log.WarnContext(ctx, "checkpoint of a reply not stored", "generation", t.id, "err", err)
	}
	return true
}
