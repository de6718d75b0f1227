package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"nodest/internal/setup"
	"nodest/knowledge"
	"nodest/knowledge/parse"
	"nodest/store"
)

// checkDocuments counts the documents of all users, also while a server runs.
func checkDocuments(ctx context.Context, cfg *setup.Config, log *slog.Logger) check {
	c := check{name: "documents"}
	if !hasDatabase(cfg) {
		c.detail = "none yet"
		return c
	}
	found, err := store.CountDocuments(ctx, storeOptions(cfg, log))
	if err != nil {
		c.detail, c.fix = "cannot be counted", oneLine(err)
		return c
	}
	c.detail = documentCounts(found)
	if len(found.Orphans) > 0 {
		var tables []string
		for _, table := range slices.Sorted(maps.Keys(found.Orphans)) {
			tables = append(tables, fmt.Sprintf("%d in %s", found.Orphans[table], table))
		}
		c.fix = "rows that belong to no document: " + strings.Join(tables, ", ") +
			". They are never found, and go when the documents are deleted. Please report this."
	}
	return c
}

// checkCounters compares the counters of quotas with what users have, also while a server runs.
func checkCounters(ctx context.Context, cfg *setup.Config, log *slog.Logger) check {
	c := check{name: "quotas", detail: "the counters are correct"}
	if !hasDatabase(cfg) {
		c.detail = "none yet"
		return c
	}
	wrong, err := store.CheckCounters(ctx, storeOptions(cfg, log))
	if err != nil {
		c.detail, c.fix = "cannot be checked", oneLine(err)
		return c
	}
	var high, low []string
	for _, w := range wrong {
		line := fmt.Sprintf("%s of %s: %d instead of %d", w.Kind, w.Username, w.Used, w.Counted)
		if w.Used > w.Counted {
			high = append(high, line)
		} else {
			low = append(low, line)
		}
	}
	if len(high) > 0 {
		c.detail = "too high after deletions, corrected within a day: " + strings.Join(high, "; ")
	}
	if len(low) > 0 {
		c.detail = "counters are too low"
		c.fix = "some counters are too low: " + strings.Join(low, "; ") + ". They are corrected within a day. Please report this."
	}
	return c
}

func documentCounts(d *store.Documents) string {
	var counts []string
	for _, state := range []string{knowledge.Ready, knowledge.Pending, knowledge.Parsing, knowledge.Chunking, knowledge.Embedding, knowledge.Failed} {
		if n := d.Files[state]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if d.Deleted > 0 {
		counts = append(counts, fmt.Sprintf("%d deleted, being removed", d.Deleted))
	}
	if d.Abandoned > 0 {
		counts = append(counts, fmt.Sprintf("%d interrupted uploads, removed after a day", d.Abandoned))
	}
	if counts == nil {
		return "none yet"
	}
	text := strings.Join(counts, ", ")
	if d.Files[knowledge.Failed] > 0 {
		text += " (nodest kb files --state failed lists yours that have failed)"
	}
	return text
}

// checkParser starts the process that reads documents.
func checkParser(ctx context.Context) check {
	parser := &parse.Child{}
	_, err := parser.Parse(ctx, parse.Input{Name: "check.html", Data: []byte("<p>One line.</p>")})
	if err != nil {
		return check{"parser", "cannot read documents", "the server cannot start itself as a process: " + oneLine(err)}
	}
	return check{name: "parser", detail: "reads documents in a process of its own"}
}
