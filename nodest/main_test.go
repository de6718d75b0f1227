package nodest_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No test leaves a goroutine behind: every generation has ended when its engine
// is closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
