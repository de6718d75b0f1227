package cli

import (
	"testing"
	"time"
)

func TestLocalZone(t *testing.T) {
	for value, want := range map[string]string{
		"Asia/Tokyo":                           "Asia/Tokyo",
		":Asia/Tokyo":                          "Asia/Tokyo",
		"/usr/share/zoneinfo/America/New_York": "America/New_York",
		"CET-1CEST":                            "CET-1CEST",
	} {
		t.Setenv("TZ", value)
		if got := localZone(); got != want {
			t.Errorf("TZ=%s: %q, want %q", value, got, want)
		}
	}
}

// TestZonesAreInTheProgram loads a time zone without the files of the machine.
func TestZonesAreInTheProgram(t *testing.T) {
	t.Setenv("ZONEINFO", t.TempDir())
	if _, err := time.LoadLocation("Pacific/Chatham"); err != nil {
		t.Error(err)
	}
}
