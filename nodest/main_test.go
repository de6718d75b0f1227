package nodest_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"nodest/store/storetest"
)

// No test leaves a goroutine behind: every generation has ended when its engine
// is closed. The clock of the regular expressions belongs to the process and
// ends by itself a moment after the last of them.
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
