package nodest_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"nodest/store/storetest"
)

// TestMain fails if a test leaves a goroutine behind: every generation has ended when
// its engine is closed. The clock of the regular expressions belongs to the process
// and stops by itself soon after the last match.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"),
		goleak.Cleanup(func(code int) {
			if err := storetest.DropSchemas(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
			os.Exit(code)
		}))
}
