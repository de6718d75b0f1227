package nodest_test

import (
	"sync"
	"testing"

	"nodest/chat"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestOnPostgres(t *testing.T) {
	t.Parallel()
	nodesttest.OnPostgres(t, []nodesttest.Test{
		{"SendAnswersWhenTheMessageIsStored", TestSendAnswersWhenTheMessageIsStored},
		{"ARepeatedCallHasOneEffect", TestARepeatedCallHasOneEffect},
		{"CancelBeforeTheFirstWord", TestCancelBeforeTheFirstWord},
		{"Close", TestClose},
		{"OneReplyAtATimeInAConversation", TestOneReplyAtATimeInAConversation},
		{"ANewMessageReplacesTheRunningReply", TestANewMessageReplacesTheRunningReply},
		{"ReplyLimitAndQueueOfAUser", TestReplyLimitAndQueueOfAUser},
		{"CancelOfAQueuedGeneration", TestCancelOfAQueuedGeneration},
		{"AfterACrash", TestAfterACrash},
		{"AProcessThatLostItsLeaseStoresNothing", TestAProcessThatLostItsLeaseStoresNothing},
		{"CancelOfAGenerationOfAnotherProcess", TestCancelOfAGenerationOfAnotherProcess},
		{"RecoverRespectsLeases", TestRecoverRespectsLeases},
		{"RecoverEndsGenerationsWithExpiredLeases", TestRecoverEndsGenerationsWithExpiredLeases},
		{"ContinueOfAReplyThatIsStillBeingWritten", TestContinueOfAReplyThatIsStillBeingWritten},
		{"DeletingAConversationCancelsItsReply", TestDeletingAConversationCancelsItsReply},
		{"AReplyBeingWrittenKeepsTheHead", TestAReplyBeingWrittenKeepsTheHead},
		{"AStoredPromptShowsWhatWasRecalled", TestAStoredPromptShowsWhatWasRecalled},
		{"ConcurrentSendsRespectTheUsersReplyLimit", TestConcurrentSendsRespectTheUsersReplyLimit},
		{"TheLogRepeatsWhatWasPublished", TestTheLogRepeatsWhatWasPublished},
	})
}

// Messages are sent to several conversations at the same time: only as many as the
// user may have are answered at once; the others are queued.
func TestConcurrentSendsRespectTheUsersReplyLimit(t *testing.T) {
	t.Parallel()
	const chats, places, rounds = 6, 2, 3
	s := newFixture(t, nodest.Options{GenerationsPerUser: places, QueuePerUser: chats})
	var all [chats]*chat.Conversation
	for i := range all {
		all[i] = s.Chat()
	}
	for range rounds {
		gate := make(chan struct{})
		for range chats {
			l := nodesttest.Reply("Well.")
			l.Gate = gate
			s.Model.Enqueue(l)
		}
		var sent [chats]*nodest.Sent
		var group sync.WaitGroup
		for i, c := range all {
			call := s.Call()
			group.Go(func() {
				var err error
				sent[i], err = s.Send(t.Context(), call, nodest.SendInput{ConversationID: c.ID, Text: "Hi"})
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if t.Failed() {
			close(gate)
			return
		}
		working := 0
		for _, m := range sent {
			if s.Generation(m.GenerationID).Status != chat.GenQueued {
				working++
			}
		}
		if working != places {
			t.Errorf("%d replies are written at once, want %d", working, places)
		}
		close(gate)
		for _, m := range sent {
			if g := s.Await(m.GenerationID); g.Status != chat.GenDone {
				t.Errorf("a reply has ended as %s", g.Status)
			}
		}
	}
}
