package chat_test

import (
	"testing"

	"nodest/nodest/nodesttest"
)

func TestMain(m *testing.M) { nodesttest.Main(m) }

func TestOnPostgres(t *testing.T) {
	t.Parallel()
	nodesttest.OnPostgres(t, []nodesttest.Test{
		{"ConcurrentRestores", TestConcurrentRestores},
		{"VariablesBelongToTheirBranch", TestVariablesBelongToTheirBranch},
		{"SavePointsRestoreVariables", TestSavePointsRestoreVariables},
		{"ForksHaveVariablesOfTheirOwn", TestForksHaveVariablesOfTheirOwn},
		{"FilesKeepVariables", TestFilesKeepVariables},
		{"AHiddenMessageIsInNoPrompt", TestAHiddenMessageIsInNoPrompt},
		{"AStoredPromptStaysAsItWasSent", TestAStoredPromptStaysAsItWasSent},
		{"ASummaryOfAHiddenMessageIsMadeAgain", TestASummaryOfAHiddenMessageIsMadeAgain},
		{"FilesKeepWhatIsHidden", TestFilesKeepWhatIsHidden},
		{"ALongForkIsCompletedByItsJob", TestALongForkIsCompletedByItsJob},
		{"SearchFindsTextsThatHaveAllWords", TestSearchFindsTextsThatHaveAllWords},
		{"ChangesWhileASummaryIsWritten", TestChangesWhileASummaryIsWritten},
		{"SummariesSurviveCrashes", TestSummariesSurviveCrashes},
	})
}
