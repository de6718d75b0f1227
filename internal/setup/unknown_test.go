package setup

import (
	"slices"
	"testing"
)

// A variable that no setting has is named, with the setting that was meant.
func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	got := Unknown([]string{
		"PATH=/bin", "NODEST_MODEL=a", "NODEST_TOKEN=b", "NODEST_EMPTY=", "NODEST_TEST_DATABASE_URL=c",
		"NODEST_PORT=tcp://10.0.0.1:8080", "NODEST_PORT_8080_TCP_ADDR=10.0.0.1", "NODEST_SERVICE_HOST=10.0.0.1",
		"NODEST_MODELL=secret", "NODEST_GEMINI_API_KEY=d", "NODEST_BACKUP_DIR=e", "NODEST_WEATHER=f",
	})
	want := []string{
		"there is no setting NODEST_BACKUP_DIR; did you mean NODEST_BACKUP_FOLDER?",
		"there is no setting NODEST_GEMINI_API_KEY; did you mean GEMINI_API_KEY?",
		"there is no setting NODEST_MODELL; did you mean NODEST_MODEL?",
		"there is no setting NODEST_WEATHER",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
