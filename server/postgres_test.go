package server

import (
	"strings"
	"testing"

	"nodest/store/storetest"
)

// TestOnPostgres repeats the tests of conversations, over both transports, on
// PostgreSQL.
func TestOnPostgres(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"AReplyFromEndToEnd", TestAReplyFromEndToEnd},
		{"CancelKeepsTheTextSoFar", TestCancelKeepsTheTextSoFar},
		{"LosingTheSocketDoesNotCancelTheReply", TestLosingTheSocketDoesNotCancelTheReply},
		{"ResumeReplaysMissedEvents", TestResumeReplaysMissedEvents},
		{"FilteredEventsLeaveNoGaps", TestFilteredEventsLeaveNoGaps},
		{"AnAckIsSentToAllDevices", TestAnAckIsSentToAllDevices},
		{"AWriteRepeatedFiveTimesIsDoneOnce", TestAWriteRepeatedFiveTimesIsDoneOnce},
		{"AKeyStillInProgress", TestAKeyStillInProgress},
		{"CutConnectionsLoseNothing", TestCutConnectionsLoseNothing},
		{"ATokenRevokedByAnotherProcess", TestATokenRevokedByAnotherProcess},
		{"DrainingAnnouncesItselfAndClosesConnections", TestDrainingAnnouncesItselfAndClosesConnections},
		{"AReplyIsStreamedAsEvents", TestAReplyIsStreamedAsEvents},
		{"AFailedReplyEndsItsStream", TestAFailedReplyEndsItsStream},
		{"EventsOverSSE", TestEventsOverSSE},
		{"Sync", TestSync},
		{"BothTransportsGiveTheSameAnswers", TestBothTransportsGiveTheSameAnswers},
		{"StrangersSeeNothingOnAnyRoute", TestStrangersSeeNothingOnAnyRoute},
		{"IfMatchPreventsLostUpdates", TestIfMatchPreventsLostUpdates},
		{"TagsOfCharacters", TestTagsOfCharacters},
		{"TagsOfConversations", TestTagsOfConversations},
		{"ArchiveOfCharacters", TestArchiveOfCharacters},
		{"TwoDevicesSeeTheSameTree", TestTwoDevicesSeeTheSameTree},
		{"TwoDevicesAtOnce", TestTwoDevicesAtOnce},
		{"RestoringASavePoint", TestRestoringASavePoint},
		{"TwoRestoresAtOnce", TestTwoRestoresAtOnce},
		{"ImportDetectsEveryKind", TestImportDetectsEveryKind},
		{"ImportBindsResources", TestImportBindsResources},
		{"FilesThatCannotBeImported", TestFilesThatCannotBeImported},
		{"ASearchFindsOnlyOnesOwnMessages", TestASearchFindsOnlyOnesOwnMessages},
		{"TheAppChangesItsHistory", TestTheAppChangesItsHistory},
		{"PagesHaveNoGapsOrDuplicates", TestPagesHaveNoGapsOrDuplicates},
		{"ManagingMemoriesOverAWebSocket", TestManagingMemoriesOverAWebSocket},
		{"MemorySearchFindsMessages", TestMemorySearchFindsMessages},
		{"InvalidMemoryRequests", TestInvalidMemoryRequests},
		{"MemoriesInPages", TestMemoriesInPages},
		{"MemoryExportAndImport", TestMemoryExportAndImport},
		{"MemoryJobsAreListed", TestMemoryJobsAreListed},
		{"APinnedMemoryNeedsTheUsersDecision", TestAPinnedMemoryNeedsTheUsersDecision},
		{"SummaryLifecycle", TestSummaryLifecycle},
		{"AStoryOfTheCircle", TestAStoryOfTheCircle},
		{"BadCommandsToTheCircleStoreNothing", TestBadCommandsToTheCircleStoreNothing},
	} {
		t.Run(test.name, test.run)
	}
}

// database returns the function that opens a test's database: PostgreSQL below
// TestOnPostgres (skipped where there is none), SQLite elsewhere.
func database(t testing.TB) storetest.Opener {
	if strings.HasPrefix(t.Name(), "TestOnPostgres/") {
		return storetest.OpenPostgres
	}
	return storetest.OpenWith
}
