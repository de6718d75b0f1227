// Package nodesttest gives tests of turns, and of what turns use, a whole engine: a Fixture has a
// real store, two users and a model that follows a script (New, NewWithoutModel, NewWithMemory);
// FullChat and Summaries are chats that are made already. Each fixture compares in the end what
// the log and the stored prompts repeat with what happened.
//
// The package is for tests only.
package nodesttest

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"nodest/store/storetest"
)

// Main runs the tests of a package and fails if one leaves a goroutine behind: every generation
// has ended when its engine is closed. The clock of the regular expressions belongs to the process
// and stops by itself soon after the last match.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"),
		goleak.Cleanup(storetest.Exit))
}

// Test is a test that TestOnPostgres repeats.
type Test = struct {
	Name string
	Run  func(*testing.T)
}

// OnPostgres repeats tests on PostgreSQL; the caller is called TestOnPostgres. They are those that
// several open transactions of a user, several processes or a job that begins again could break:
// SQLite has one writer. Single statements are tested in package store, on both databases.
func OnPostgres(t *testing.T, tests []Test) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.Name, test.Run)
	}
}

// database returns the function that opens the database of a test: PostgreSQL for the
// subtests of TestOnPostgres (skipped where there is none), SQLite for all others.
func database(t *testing.T) storetest.Opener {
	if strings.HasPrefix(t.Name(), "TestOnPostgres/") {
		return storetest.OpenPostgres
	}
	return storetest.OpenWith
}
