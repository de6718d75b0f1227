package main

import (
	"strings"
	"time"

	"nodest/internal/setup"
	"nodest/store"
)

// retention says how long things are kept, by the settings.
func retention(cfg *setup.Config) store.Retention {
	return store.Retention{
		Events:     time.Duration(cfg.Count("NODEST_EVENT_DAYS")) * 24 * time.Hour,
		EventCount: int64(cfg.Count("NODEST_EVENT_COUNT")),
	}
}

// checkRetention lists what the server removes by itself, and when.
func checkRetention(cfg *setup.Config) check {
	lines := []string{"a running server removes by itself"}
	for _, k := range retention(cfg).Rules() {
		lines = append(lines, k.What+": "+k.How)
	}
	return check{name: "retention", detail: strings.Join(lines, "\n    ")}
}
