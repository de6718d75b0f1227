package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportForSillyTavern exports to a new folder, and leaves one that is not empty alone.
func TestExportForSillyTavern(t *testing.T) {
	t.Parallel()
	f, _ := importSamples(t)
	dir := filepath.Join(t.TempDir(), "new", "default-user")
	if got := f.mustRun(t, "export", "--sillytavern", dir); !strings.Contains(got, "files are in "+dir) {
		t.Errorf("it says %q", got)
	}
	for _, name := range []string{"characters/玄清.png", "worlds/Tides.json", "settings.json", "NodeST/report.json"} {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "characters", "*"))
	if err != nil || len(found) != 3 {
		t.Errorf("cards %q, %v: Mira and mira are two", found, err)
	}
	var settings struct {
		PowerUser struct{ Personas map[string]string } `json:"power_user"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "settings.json")) //nolint:gosec // a folder of the test
	if err != nil || json.Unmarshal(text, &settings) != nil || settings.PowerUser.Personas["Ann.png"] != "Ann" {
		t.Errorf("settings %s, %v", text, err)
	}
	if text, code := f.run(t, "export", "--sillytavern", dir); code == 0 || !strings.Contains(text, "is not empty") {
		t.Errorf("a second time: %d, %s", code, text)
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("%d entries are left beside the folder", len(left))
	}
}
