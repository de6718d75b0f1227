package server

import (
	"strings"
	"testing"

	"nodest/store"
	"nodest/store/storetest"
)

// TestOnPostgres runs the tests of conversations over both transports again on
// PostgreSQL.
func TestOnPostgres(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"AReplyFromEndToEnd", TestAReplyFromEndToEnd},
		{"CancelKeepsWhatWasSaid", TestCancelKeepsWhatWasSaid},
		{"ALostSocketIsNotACancel", TestALostSocketIsNotACancel},
		{"ResumeGivesWhatWasMissed", TestResumeGivesWhatWasMissed},
		{"QuietAndWantLeaveNoHoles", TestQuietAndWantLeaveNoHoles},
		{"AckIsTold", TestAckIsTold},
		{"EveryWriteFiveTimes", TestEveryWriteFiveTimes},
		{"AKeyThatIsStillInWork", TestAKeyThatIsStillInWork},
		{"CutConnectionsLoseNothing", TestCutConnectionsLoseNothing},
		{"ATokenThatAnotherProcessRevoked", TestATokenThatAnotherProcessRevoked},
		{"GoingAway", TestGoingAway},
		{"AMessageIsAnsweredAsEvents", TestAMessageIsAnsweredAsEvents},
		{"AFailedReplyEndsItsStream", TestAFailedReplyEndsItsStream},
		{"EventsOverSSE", TestEventsOverSSE},
		{"Sync", TestSync},
		{"BothTransportsGiveTheSameAnswers", TestBothTransportsGiveTheSameAnswers},
		{"StrangersSeeNothingOnAnyRoute", TestStrangersSeeNothingOnAnyRoute},
		{"IfMatchKeepsOthersChanges", TestIfMatchKeepsOthersChanges},
		{"TwoDevicesSeeTheSameTree", TestTwoDevicesSeeTheSameTree},
		{"TwoDevicesAtOnce", TestTwoDevicesAtOnce},
		{"ThereAndBackAgain", TestThereAndBackAgain},
		{"TwoRestoresAtOnce", TestTwoRestoresAtOnce},
		{"FilesThatCannotBeImported", TestFilesThatCannotBeImported},
		{"ASearchFindsOnesOwnWords", TestASearchFindsOnesOwnWords},
		{"TheAppChangesItsHistory", TestTheAppChangesItsHistory},
		{"ListsInPages", TestListsInPages},
		{"APhoneAndWhatIsRemembered", TestAPhoneAndWhatIsRemembered},
		{"WhatWasSaidIsFound", TestWhatWasSaidIsFound},
		{"MemoriesThatCannotBe", TestMemoriesThatCannotBe},
		{"MemoriesInPages", TestMemoriesInPages},
		{"MemoriesAsAFile", TestMemoriesAsAFile},
		{"WorkOnAMemoryIsSeen", TestWorkOnAMemoryIsSeen},
		{"WhatOnlyTheUserMayChange", TestWhatOnlyTheUserMayChange},
		{"ASummaryComesAndGoes", TestASummaryComesAndGoes},
	} {
		t.Run(test.name, test.run)
	}
}

// database is what opens the database of a test: PostgreSQL for the tests below
// TestOnPostgres, which are skipped without one, SQLite for all others.
func database(t testing.TB) func(testing.TB, store.Options) *store.DB {
	if strings.HasPrefix(t.Name(), "TestOnPostgres/") {
		return storetest.OpenPostgres
	}
	return storetest.OpenWith
}
