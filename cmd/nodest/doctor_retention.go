package main

import (
	"strings"
	"time"

	"nodest/store"
)

// retention says how long things are kept, by the settings.
func retention(cfg *config) store.Retention {
	return store.Retention{
		Events:     time.Duration(cfg.count("NODEST_EVENT_DAYS")) * 24 * time.Hour,
		EventCount: int64(cfg.count("NODEST_EVENT_COUNT")),
	}
}

// checkRetention lists what the server removes by itself, and when.
func checkRetention(cfg *config) check {
	lines := []string{"a running server removes by itself"}
	for _, k := range retention(cfg).Rules() {
		lines = append(lines, k.What+": "+k.How)
	}
	return check{name: "retention", detail: strings.Join(lines, "\n    ")}
}
