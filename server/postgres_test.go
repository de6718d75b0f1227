package server

import (
	"strings"
	"testing"

	"nodest/store/storetest"
)

// TestOnPostgres repeats what requests at the same time could break where a user may have
// several open transactions, and asks every route once. The rest of what PostgreSQL must
// do is tested in package store.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"AReplyFromEndToEnd", TestAReplyFromEndToEnd},
		{"ResumeReplaysMissedEvents", TestResumeReplaysMissedEvents},
		{"AWriteRepeatedFiveTimesIsDoneOnce", TestAWriteRepeatedFiveTimesIsDoneOnce},
		{"AKeyStillInProgress", TestAKeyStillInProgress},
		{"CutConnectionsLoseNothing", TestCutConnectionsLoseNothing},
		{"ATokenRevokedByAnotherProcess", TestATokenRevokedByAnotherProcess},
		{"StrangersSeeNothingOnAnyRoute", TestStrangersSeeNothingOnAnyRoute},
		{"IfMatchPreventsLostUpdates", TestIfMatchPreventsLostUpdates},
		{"TwoDevicesAtOnce", TestTwoDevicesAtOnce},
		{"TwoRestoresAtOnce", TestTwoRestoresAtOnce},
		{"ABackupOfTheFirstSchemaIsRestored", TestABackupOfTheFirstSchemaIsRestored},
		{"ALogIsReadBackAsItWasImported", TestALogIsReadBackAsItWasImported},
		{"AnOldLogIsImported", TestAnOldLogIsImported},
		{"ALogWithStrangeIdsIsImported", TestALogWithStrangeIdsIsImported},
		{"AnEndedGoalHasWhatWasLookedUpEvaluated", TestAnEndedGoalHasWhatWasLookedUpEvaluated},
		{"AReviewedExtractionBecomesOneMemory", TestAReviewedExtractionBecomesOneMemory},
		{"WhatIsLookedUpForAReplyIsLogged", TestWhatIsLookedUpForAReplyIsLogged},
		{"NothingIsLeftOfAPurgedMemory", TestNothingIsLeftOfAPurgedMemory},
		{"NothingIsLeftOfADeletedMessage", TestNothingIsLeftOfADeletedMessage},
		{"NothingIsLeftOfADeletedChat", TestNothingIsLeftOfADeletedChat},
		{"NothingIsLeftOfADeletedDocument", TestNothingIsLeftOfADeletedDocument},
		{"NothingIsLeftOfADeletedUser", TestNothingIsLeftOfADeletedUser},
		{"NothingIsLeftOfADeletedMemoryDocument", TestNothingIsLeftOfADeletedMemoryDocument},
		{"ADreamWorksChatsIntoDocuments", TestADreamWorksChatsIntoDocuments},
		{"ADreamMeetsWhatTheUserDoesMeanwhile", TestADreamMeetsWhatTheUserDoesMeanwhile},
		{"DreamsThatChangeNothing", TestDreamsThatChangeNothing},
		{"DreamsAndDocumentsOfOthersAreNotFound", TestDreamsAndDocumentsOfOthersAreNotFound},
		{"RequestsAboutDreamsAndDocumentsThatAreWrong", TestRequestsAboutDreamsAndDocumentsThatAreWrong},
	} {
		t.Run(test.name, test.run)
	}
}

// database returns the function that opens a test's database: PostgreSQL below
// TestOnPostgres (skipped where there is none), SQLite elsewhere.
func database(t testing.TB) storetest.Opener {
	if onPostgres(t) {
		return storetest.OpenPostgres
	}
	return storetest.OpenWith
}

func onPostgres(t testing.TB) bool { return strings.HasPrefix(t.Name(), "TestOnPostgres/") }
