package nodest_test

import (
	"strings"
	"sync"
	"testing"

	"nodest/chat"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// TestOnPostgres runs the tests of turns again on PostgreSQL, where several
// transactions of a user are open at once.
func TestOnPostgres(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"SendAnswersWhenTheMessageIsStored", TestSendAnswersWhenTheMessageIsStored},
		{"AReplyOutlivesItsCaller", TestAReplyOutlivesItsCaller},
		{"AClientMessageIDNamesOneMessage", TestAClientMessageIDNamesOneMessage},
		{"ARepeatedCallHasOneEffect", TestARepeatedCallHasOneEffect},
		{"AnotherUsersThingsDoNotExist", TestAnotherUsersThingsDoNotExist},
		{"UsageIsMetered", TestUsageIsMetered},
		{"DeltasAreTheStoredText", TestDeltasAreTheStoredText},
		{"BlocksAreKeptApart", TestBlocksAreKeptApart},
		{"Failures", TestFailures},
		{"AFailedExchangeIsNotSentAgain", TestAFailedExchangeIsNotSentAgain},
		{"Cancel", TestCancel},
		{"CancelBeforeTheFirstWord", TestCancelBeforeTheFirstWord},
		{"AttachAndActive", TestAttachAndActive},
		{"Checkpoints", TestCheckpoints},
		{"Close", TestClose},
		{"MessagesOfADeletedConversation", TestMessagesOfADeletedConversation},
		{"OneReplyAtATimeInAConversation", TestOneReplyAtATimeInAConversation},
		{"ANewMessageReplacesTheRunningReply", TestANewMessageReplacesTheRunningReply},
		{"PlacesAndQueueOfAUser", TestPlacesAndQueueOfAUser},
		{"CancelOfAQueuedGeneration", TestCancelOfAQueuedGeneration},
		{"Quota", TestQuota},
		{"AfterACrash", TestAfterACrash},
		{"AGenerationThatWasTakenAway", TestAGenerationThatWasTakenAway},
		{"CancelOfAnotherProcess", TestCancelOfAnotherProcess},
		{"RecoverRespectsLeases", TestRecoverRespectsLeases},
		{"ALeaseThatIsOver", TestALeaseThatIsOver},
		{"RegenerateOfTheLastReplyAddsASwipe", TestRegenerateOfTheLastReplyAddsASwipe},
		{"RegenerateOfAnEarlierReplyIsABranch", TestRegenerateOfAnEarlierReplyIsABranch},
		{"AWishStaysWithItsText", TestAWishStaysWithItsText},
		{"Edits", TestEdits},
		{"WhichReplyAnEditWritesAnew", TestWhichReplyAnEditWritesAnew},
		{"Reset", TestReset},
		{"AFailedRegenerateChangesNothing", TestAFailedRegenerateChangesNothing},
		{"ContinueLengthensTheSwipe", TestContinueLengthensTheSwipe},
		{"ContinueOfAReplyThatIsStillBeingWritten", TestContinueOfAReplyThatIsStillBeingWritten},
		{"Impersonate", TestImpersonate},
		{"SwipingBeyondTheLastReplyWritesAnother", TestSwipingBeyondTheLastReplyWritesAnother},
		{"DeletingAConversationCancelsItsReply", TestDeletingAConversationCancelsItsReply},
		{"AReplyBeingWrittenKeepsTheHead", TestAReplyBeingWrittenKeepsTheHead},
		{"AnEditedTextIsWhatTheModelReads", TestAnEditedTextIsWhatTheModelReads},
		{"AnEditOfWhatHasChangedIsAConflict", TestAnEditOfWhatHasChangedIsAConflict},
		{"Swipes", TestSwipes},
		{"ADeletedMessageLeavesItsChildrenAndComesBack", TestADeletedMessageLeavesItsChildrenAndComesBack},
		{"DeletingAfterTakesTheBranchesToo", TestDeletingAfterTakesTheBranchesToo},
		{"AStoredPromptIsTheRequest", TestAStoredPromptIsTheRequest},
		{"TheThingsOfOthersDoNotExist", TestTheThingsOfOthersDoNotExist},
		{"ACommandThatIsRepeatedHasOneEffect", TestACommandThatIsRepeatedHasOneEffect},
		{"AnAckTellsTheOtherDevicesWhatWasRead", TestAnAckTellsTheOtherDevicesWhatWasRead},
		{"AUsersPlacesAreNotExceeded", TestAUsersPlacesAreNotExceeded},
		{"ARestoreBringsThePromptBack", TestARestoreBringsThePromptBack},
		{"WhatARestoreTells", TestWhatARestoreTells},
		{"ABranchThatWasLeftShowsWhatItShowed", TestABranchThatWasLeftShowsWhatItShowed},
		{"RestoresSideBySide", TestRestoresSideBySide},
		{"TheSavePointsOfOthersDoNotExist", TestTheSavePointsOfOthersDoNotExist},
		{"AFileOfASavePointLosesNothing", TestAFileOfASavePointLosesNothing},
		{"AForkIsTheBranch", TestAForkIsTheBranch},
		{"AForkReadsLikeItsSource", TestAForkReadsLikeItsSource},
		{"ALongForkIsCompletedByItsJob", TestALongForkIsCompletedByItsJob},
		{"BranchesAreTheEndsOfTheTree", TestBranchesAreTheEndsOfTheTree},
		{"SearchFindsTextsThatHaveAllWords", TestSearchFindsTextsThatHaveAllWords},
		{"SearchGoesOnWhereItStopped", TestSearchGoesOnWhereItStopped},
		{"AnArchiveIsAllThereIs", TestAnArchiveIsAllThereIs},
		{"ImportedSavePointsRestore", TestImportedSavePointsRestore},
		{"ASummaryWhoseMessageChangedIsUsedUntilItIsRebuilt", TestASummaryWhoseMessageChangedIsUsedUntilItIsRebuilt},
		{"ASwipeBackMakesASummaryRightAgain", TestASwipeBackMakesASummaryRightAgain},
		{"ASummaryGoesWithADeletedMessage", TestASummaryGoesWithADeletedMessage},
		{"EveryBranchHasItsSummary", TestEveryBranchHasItsSummary},
		{"ASavePointShowsItsSummary", TestASavePointShowsItsSummary},
		{"ADeletedSummaryGivesTheHistoryBack", TestADeletedSummaryGivesTheHistoryBack},
		{"ASummaryThatWasOvertaken", TestASummaryThatWasOvertaken},
		{"SummariesSurviveCrashes", TestSummariesSurviveCrashes},
		{"SummariesMoveWithAnArchive", TestSummariesMoveWithAnArchive},
		{"AForkHasTheSummaryOfItsPlace", TestAForkHasTheSummaryOfItsPlace},
		{"ALongForkHasTheSummaryOfItsPlace", TestALongForkHasTheSummaryOfItsPlace},
		{"AnImportThatFailedHalfwayIsCompleted", TestAnImportThatFailedHalfwayIsCompleted},
		{"OneThingIsDoneToManyMemories", TestOneThingIsDoneToManyMemories},
		{"OneThingIsDoneToNamedMemories", TestOneThingIsDoneToNamedMemories},
		{"ABulkThatFailedHalfwayIsCompleted", TestABulkThatFailedHalfwayIsCompleted},
		{"TheListTellsWhatCounts", TestTheListTellsWhatCounts},
	} {
		t.Run(test.name, test.run)
	}
}

// database is what opens the database of a test: PostgreSQL for the tests below
// TestOnPostgres, which are skipped without one, SQLite for all others.
func database(t *testing.T) func(testing.TB, store.Options) *store.DB {
	if strings.HasPrefix(t.Name(), "TestOnPostgres/") {
		return storetest.OpenPostgres
	}
	return storetest.OpenWith
}

// TestAUsersPlacesAreNotExceeded sends in several conversations in the same
// instant: as many replies are written as the user may have, the others queue.
func TestAUsersPlacesAreNotExceeded(t *testing.T) {
	const chats, places, rounds = 6, 2, 3
	s := newStudio(t, nodest.Options{GenerationsPerUser: places, QueuePerUser: chats})
	var all [chats]*chat.Conversation
	for i := range all {
		all[i] = s.chat()
	}
	for range rounds {
		gate := make(chan struct{})
		for range chats {
			l := says("Well.")
			l.gate = gate
			s.model.next(l)
		}
		var sent [chats]*nodest.Sent
		var group sync.WaitGroup
		for i, c := range all {
			call := s.call()
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
			if s.generation(m.GenerationID).Status != chat.GenQueued {
				working++
			}
		}
		if working != places {
			t.Errorf("%d replies are written at once, want %d", working, places)
		}
		close(gate)
		for _, m := range sent {
			if g := s.wait(m.GenerationID); g.Status != chat.GenDone {
				t.Errorf("a reply has ended as %s", g.Status)
			}
		}
	}
}
