package researchtool

import (
	"context"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/websearch/research"
)

// JobTell is the kind of the jobs that have a character tell what came of a research. Their subject is the message.
const JobTell = "research.tell"

// Ended lets the character of a conversation tell what came of its research: part of research.Options.Ended. The
// message has its id from now on, so that it is told once.
func Ended(tx research.Tx, run *research.Run) error {
	run.MessageID = op.NewID()
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobTell, Subject: run.MessageID})
}

// Kinds are the jobs of the package, for jobs.Runner.Handle.
func Kinds(r *research.Service, e *nodest.Engine) []jobs.Kind {
	return []jobs.Kind{{Name: JobTell, AtOnce: 64, PerUser: 4, Attempts: 20, Timeout: time.Hour, Run: func(ctx context.Context, j *jobs.Job) error {
		run, err := r.ToldBy(ctx, j.UserID, j.Subject)
		if run == nil || err != nil { // it was removed
			return err
		}
		in := nodest.TellInput{
			GreetInput: nodest.GreetInput{ConversationID: run.ConversationID, MessageID: run.MessageID, WhenBusy: "queue"},
			Text:       textsIn(framework.Language(run.Plan.Language)).plain + run.Plan.Question,
		}
		if run.Result != nil {
			in.Text, in.Citations = op.Truncate(run.Result.Answer, chat.MaxText), citations(run)
		}
		if err := e.Tell(ctx, j.UserID, in); !fault.Is(err, fault.NotFound) {
			return err
		}
		return nil // the conversation was deleted
	}}}
}
