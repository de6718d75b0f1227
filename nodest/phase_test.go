package nodest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/llm"
)

// Every pair of a phase and an event, as a person reads it: what is empty changes nothing.
func TestTheTransitionsOfATask(t *testing.T) {
	t.Parallel()
	const table = `
		             accepted  building  waiting    streaming  ending  ended
		turnCame     building  .         .          .          .       .
		promptStored .         waiting   .          .          .       .
		tokenCame    .         .         streaming  .          .       .
		replied      .         .         ending     ending     .       .
		cancelled    ending    ending    ending     ending     .       .
		stopped      ending    ending    ending     ending     .       .
		timedOut     ending    ending    ending     ending     .       .
		failed       ending    ending    ending     ending     .       .
		unstored     ending    ending    ending     ending     ended   .
		lost         ended     ended     ended      ended      ended   .
		endStored    .         .         .          .          ended   .`
	rows := strings.Split(strings.TrimSpace(table), "\n")
	phases := strings.Fields(rows[0])
	if len(phases) != len(transitions) || len(rows) != int(endStored)+2 {
		t.Fatalf("%d phases, %d events", len(phases), len(rows)-1)
	}
	for i, row := range rows[1:] {
		cells := strings.Fields(row)
		for from, want := range cells[1:] {
			got := &task{phase: phase(from), gen: &chat.Generation{Status: chat.GenBuilding}}
			got.on(event(i))
			if want == "." {
				want = phases[from]
			}
			if phases[got.phase] != want {
				t.Errorf("%s in phase %s: %s, want %s", cells[0], phases[from], phases[got.phase], want)
			}
			if writes := phases[got.phase] == "streaming"; writes != (got.gen.Status == chat.GenStreaming) {
				t.Errorf("%s in phase %s: the generation is %s", cells[0], phases[from], got.gen.Status)
			}
		}
	}
}

// No phase is left without a way to the end, and none but the last is without one.
func TestEveryPhaseHasAnEnd(t *testing.T) {
	t.Parallel()
	for from, next := range transitions {
		if _, gone := next[lost]; gone != (phase(from) != ended) {
			t.Errorf("phase %d: a lost task ends: %t", from, gone)
		}
		for ev, to := range next {
			if to <= phase(from) {
				t.Errorf("phase %d goes back to %d on %d", from, to, ev)
			}
			if how, known := ends[ev]; to == ending && (!known || how.status == "") {
				t.Errorf("event %d ends a task, and says not how", ev)
			}
		}
	}
}

// The event that ended a generation is told by the cause of its context before its error.
func TestWhatEndedAGeneration(t *testing.T) {
	t.Parallel()
	provider := fault.New(fault.UpstreamDown, "away")
	for _, c := range []struct {
		cause, err error
		want       event
		status     string
		finish     llm.Finish
		code       fault.Code
	}{
		{nil, nil, replied, chat.GenDone, "", ""},
		{errCancelled, nil, replied, chat.GenDone, "", ""}, // too late
		{errCancelled, provider, cancelled, chat.GenCancelled, llm.FinishCancelled, ""},
		{errStopping, provider, stopped, chat.GenInterrupted, llm.FinishInterrupted, ""},
		{errTooLong, provider, timedOut, chat.GenFailed, llm.FinishError, fault.UpstreamTimeout},
		{nil, provider, failed, chat.GenFailed, llm.FinishError, fault.UpstreamDown},
		{nil, fault.New(fault.Blocked, "no"), failed, chat.GenFailed, llm.FinishBlocked, fault.Blocked},
		{nil, errors.New("a bug"), failed, chat.GenFailed, llm.FinishError, fault.Internal},
		{nil, fault.New(fault.StorageDown, "away"), unstored, chat.GenInterrupted, llm.FinishInterrupted, ""},
		{nil, fault.New(fault.StorageBusy, "full"), unstored, chat.GenInterrupted, llm.FinishInterrupted, ""},
		{errLost, provider, lost, "", "", ""},
		{nil, errLost, lost, "", "", ""},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.cause != nil {
			cancel(c.cause)
		}
		over := whatEnded(ctx, c.err)
		cancel(nil)
		if over != c.want {
			t.Errorf("cause %v, error %v: event %d, want %d", c.cause, c.err, over, c.want)
		}
		if over == lost {
			continue // nothing is stored
		}
		how := endOf(over, c.err)
		var code fault.Code
		if how.err != nil {
			code = how.err.Code
		}
		if how.status != c.status || how.finish != c.finish || code != c.code {
			t.Errorf("cause %v, error %v: %+v", c.cause, c.err, how)
		}
	}
}
