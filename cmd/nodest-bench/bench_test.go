package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"nodest/internal/bench"
	"nodest/store/storetest"
)

// product is the program that is measured, built from the source code.
var product string

// TestMain also is the program when a measurement or a parser starts it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "floor" || os.Args[1] == "parse-worker") {
		main()
		return
	}
	var remove func() error
	var err error
	if product, remove, err = findProgram(context.Background(), os.TempDir()); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := remove(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// measured runs a command and returns the JSON that it prints.
func measured(t *testing.T, found any, args ...string) {
	t.Helper()
	storetest.NeedSQLite(t)
	var out, errOut strings.Builder
	env := func(name string) string { return map[string]string{"GORACE": os.Getenv("GORACE")}[name] }
	if err := run(t.Context(), args, env, &out, &errOut); err != nil {
		t.Fatalf("%v: %s", err, errOut.String())
	}
	if err := json.Unmarshal([]byte(out.String()), found); err != nil {
		t.Fatalf("%s: %v", out.String(), err)
	}
}

// Two measurements run in small sizes, with NODEST_LONG=1 all of them; their figures mean nothing.
func TestChatRuns(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: processor time and memory of processes are read from /proc")
	}
	parts := []string{"ttft", "idle"}
	if os.Getenv("NODEST_LONG") == "1" {
		parts = bench.ChatParts
	}
	for _, part := range parts {
		var found map[string]any
		measured(t, &found, "chat", "--small", "--json", "--only", part, "--program", product)
		if _, ok := found[part]; !ok {
			t.Fatalf("found is %+v, want it with %q", found, part)
		}
	}
}

// The measurement of long chats runs in small sizes; its figures mean nothing.
func TestHistoryRuns(t *testing.T) {
	t.Parallel()
	var found struct {
		Chats []struct {
			Times map[string]struct{ P50 float64 }
		}
	}
	measured(t, &found, "history", "--small", "--json", "--program", product)
	if len(found.Chats) != 2 {
		t.Fatalf("found.Chats has %d, want %d: %+v", len(found.Chats), 2, found.Chats)
	}
	for _, chat := range found.Chats {
		if len(chat.Times) != 9 {
			t.Fatalf("%v: chat.Times has %d, want %d: %+v", chat, len(chat.Times), 9, chat.Times)
		}
		for name, times := range chat.Times {
			if times.P50 <= 0 {
				t.Fatalf("%s: times.P50 is %v, want more than 0", name, times.P50)
			}
		}
	}
}

// The measurement of a long life runs with few messages: it prints every figure, and the searches
// find what was said.
func TestYearRuns(t *testing.T) {
	t.Parallel()
	found := map[string]any{}
	measured(t, &found, "year", "--json", "--messages", "300", "--users", "2", "--scopes", "2", "--texts", "100", "--program", product)
	for _, name := range []string{
		"bytesPerTurn", "bytesPerTurnKept", "textPerTurn", "indexedAfterS", "firstTurnMs", "turnMs", "firstRecallMs",
		"recallP50Ms", "recallP95Ms", "recallFound", "searchMs", "rssMb", "firstTokenMs", "cpuPerTurnMs",
	} {
		if n, _ := found[name].(float64); n <= 0 {
			t.Fatalf("%s is %v, want more than 0", name, found[name])
		}
	}
	if share, _ := found["recallFound"].(float64); share <= 0.9 {
		t.Fatalf("recallFound is %v, want more than 0.9", share)
	}
	if _, ok := found["turnsWithoutMemories"]; !ok {
		t.Fatalf("found is %+v, want it with %q", found, "turnsWithoutMemories")
	} // so short a chat is in the prompt as a whole
}

// The measurements within one process print JSON too, in their shortest runs.
func TestTheOthersRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	corpus := filepath.Join(folder, "corpus")
	if err := os.Mkdir(corpus, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(corpus, "light.md"), []byte("# The light\n\nThe lighthouse of Halden was automated in 1987."), 0o600); err != nil {
		t.Fatal(err)
	}
	queries := filepath.Join(folder, "queries.jsonl")
	line := `{"id":"1","lang":"en","question":"When was the lighthouse of Halden automated?","answerable":true,"file":"light.md","quote":"automated in 1987"}`
	if err := os.WriteFile(queries, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"retrieval", "--json", "--items", "100"},
		{"circle", "--json", "--days", "1", "--characters", "2"},
		{"kb", "--json", "--corpus", corpus, "--queries", queries},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			storetest.NeedSQLite(t)
			var out strings.Builder
			if err := run(t.Context(), args, os.Getenv, &out, &out); err != nil {
				t.Fatalf("%s: %v", out.String(), err)
			}
			if got := out.String(); !strings.Contains(got, `":`) {
				t.Fatalf("out.String() is %q, want it with %q", got, `":`)
			}
		})
	}
}

// A typing error is said, and nothing is measured.
func TestWrongCommandsAreRefused(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"luck":            {"chat", "--only", "luck", "--program", product},
		`unknown command`: {"memory"},
		"--embeddings":    {"kb", "--embeddings", "magic"},
		"unknown flag":    {"framework", "--json"},
	} {
		var out strings.Builder
		if err := run(t.Context(), args, os.Getenv, &out, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got error %v, want one with %q", err, want)
		}
	}
}

// An installed program measures the nodest beside it; without one, --program has to name it where
// there is no source code.
func TestTheProgramBesideIsMeasured(t *testing.T) {
	t.Parallel()
	installed := t.TempDir()
	beside := filepath.Join(installed, "nodest")
	if err := os.WriteFile(beside, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	path, remove, err := findProgram(t.Context(), installed)
	if err != nil {
		t.Fatal(err)
	}
	if path != beside {
		t.Fatalf("path is %q, want %q", path, beside)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(beside); err != nil {
		t.Fatal(err)
	}

	cancelled, cancel := context.WithCancel(t.Context()) // go build fails
	cancel()
	empty := t.TempDir()
	_, _, err = findProgram(cancelled, empty)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("there is no nodest in %s", empty)) {
		t.Fatalf("got error %v, want one with %q", err, fmt.Sprintf("there is no nodest in %s", empty))
	}
	if err == nil || !strings.Contains(err.Error(), "--program") {
		t.Fatalf("got error %v, want one with %q", err, "--program")
	}
}
