package memory_test

import (
	"testing"

	"nodest/nodest/nodesttest"
)

func TestOnPostgres(t *testing.T) {
	t.Parallel()
	nodesttest.OnPostgres(t, []nodesttest.Test{
		{"ARetryCompletesAFailedImport", TestARetryCompletesAFailedImport},
		{"ARetryCompletesAFailedBulkAction", TestARetryCompletesAFailedBulkAction},
	})
}
