package nodest

import (
	"context"
	"errors"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/llm"
)

// phase is how far a task has come.
type phase int

const (
	accepted  phase = iota // it is stored, and waits for its turn
	building               // the prompt is made and stored
	waiting                // the model was asked
	streaming              // the model writes
	ending                 // the end is being stored: published events may be newer than the task
	ended                  // nothing follows
)

// event is something that happens to a task.
type event int

const (
	turnCame     event = iota // there is a place for it
	promptStored              // the model is asked next
	tokenCame                 // the first of the reply
	replied                   // the model has written all
	cancelled                 // by the user
	stopped                   // the process ends
	timedOut                  // it took too long
	failed                    // the provider, or the making of the prompt
	unstored                  // a transaction was not committed
	lost                      // another process has ended it, or it is gone
	endStored                 // the reply is in its message
)

// transitions say which phase follows on an event. One that is not here changes nothing.
var transitions = [...]map[event]phase{
	accepted:  {turnCame: building, cancelled: ending, stopped: ending, timedOut: ending, failed: ending, unstored: ending, lost: ended},
	building:  {promptStored: waiting, cancelled: ending, stopped: ending, timedOut: ending, failed: ending, unstored: ending, lost: ended},
	waiting:   {tokenCame: streaming, replied: ending, cancelled: ending, stopped: ending, timedOut: ending, failed: ending, unstored: ending, lost: ended},
	streaming: {replied: ending, cancelled: ending, stopped: ending, timedOut: ending, failed: ending, unstored: ending, lost: ended},
	ending:    {unstored: ended, lost: ended, endStored: ended},
	ended:     {},
}

// Causes of the end of a task's context, which are events.
var (
	errCancelled = errors.New("cancelled by the user")
	errStopping  = errors.New("the server is shutting down")
	errLost      = errors.New("another process ended the generation, or it is gone")
	errTooLong   = errors.New("the generation took too long")
)

// whatEnded is the event that has ended a generation, which ran in ctx.
func whatEnded(ctx context.Context, err error) event {
	if err == nil {
		return replied
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errLost), errors.Is(cause, errLost):
		return lost
	case errors.Is(cause, errCancelled):
		return cancelled
	case errors.Is(cause, errStopping):
		return stopped
	case errors.Is(cause, errTooLong):
		return timedOut
	case fault.Is(err, fault.StorageDown), fault.Is(err, fault.StorageBusy):
		return unstored
	}
	return failed
}

// end is how a generation came to its end.
type end struct {
	status string
	finish llm.Finish // "" = as the model reported
	err    *fault.Error
	cause  error      // for the log
	usage  *UsageRow  // nil = nothing to meter
	play   *chat.Play // that scripts have made for the text; nil = that of the prompt
}

// ends say how a generation ends by what has ended it. One that could not be stored is no failure: its
// message is stored, and its key must not answer with an error for good.
var ends = map[event]end{
	replied:   {status: chat.GenDone},
	cancelled: {status: chat.GenCancelled, finish: llm.FinishCancelled},
	stopped:   {status: chat.GenInterrupted, finish: llm.FinishInterrupted},
	timedOut:  {status: chat.GenFailed, finish: llm.FinishError},
	failed:    {status: chat.GenFailed, finish: llm.FinishError},
	unstored:  {status: chat.GenInterrupted, finish: llm.FinishInterrupted},
}

// endOf is the end of a generation on an event, which came with an error.
func endOf(over event, err error) end {
	how := ends[over]
	switch over {
	case timedOut:
		err = fault.Wrap(errTooLong, fault.UpstreamTimeout, "the reply took too long")
	case cancelled, stopped:
		return how
	}
	how.cause = err
	if how.status == chat.GenFailed {
		how.err = fault.Public(err)
		if how.err.Code == fault.Blocked {
			how.finish = llm.FinishBlocked
		}
	}
	return how
}
