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

	"github.com/stretchr/testify/require"

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
	require.NoError(t, run(t.Context(), args, env, &out, &errOut), errOut.String())
	require.NoError(t, json.Unmarshal([]byte(out.String()), found), out.String())
}

// Two measurements run in small sizes, with NODEST_LONG=1 all of them; their figures mean nothing.
func TestChatRuns(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: processor time and memory of processes are read from /proc")
	}
	parts := []string{"ttft", "idle"}
	if os.Getenv("NODEST_LONG") != "" {
		parts = bench.ChatParts
	}
	for _, part := range parts {
		var found map[string]any
		measured(t, &found, "chat", "--small", "--json", "--only", part, "--program", product)
		require.Contains(t, found, part)
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
	require.Len(t, found.Chats, 2)
	for _, chat := range found.Chats {
		require.Len(t, chat.Times, 9, "%v", chat)
		for name, times := range chat.Times {
			require.Positive(t, times.P50, name)
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
		require.Positive(t, found[name], name)
	}
	require.Greater(t, found["recallFound"], 0.9)
	require.Contains(t, found, "turnsWithoutMemories") // so short a chat is in the prompt as a whole
}

// The measurements within one process print JSON too, in their shortest runs.
func TestTheOthersRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	corpus := filepath.Join(folder, "corpus")
	require.NoError(t, os.Mkdir(corpus, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(corpus, "light.md"), []byte("# The light\n\nThe lighthouse of Halden was automated in 1987."), 0o600))
	queries := filepath.Join(folder, "queries.jsonl")
	line := `{"id":"1","lang":"en","question":"When was the lighthouse of Halden automated?","answerable":true,"file":"light.md","quote":"automated in 1987"}`
	require.NoError(t, os.WriteFile(queries, []byte(line), 0o600))
	for _, args := range [][]string{
		{"retrieval", "--json", "--items", "100"},
		{"circle", "--json", "--days", "1", "--characters", "2"},
		{"kb", "--json", "--corpus", corpus, "--queries", queries},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			storetest.NeedSQLite(t)
			var out strings.Builder
			require.NoError(t, run(t.Context(), args, os.Getenv, &out, &out), out.String())
			require.Contains(t, out.String(), `":`)
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
		require.ErrorContains(t, run(t.Context(), args, os.Getenv, &out, &out), want)
	}
}

// An installed program measures the nodest beside it; without one, --program has to name it where
// there is no source code.
func TestTheProgramBesideIsMeasured(t *testing.T) {
	t.Parallel()
	installed := t.TempDir()
	beside := filepath.Join(installed, "nodest")
	require.NoError(t, os.WriteFile(beside, nil, 0o700))
	path, remove, err := findProgram(t.Context(), installed)
	require.NoError(t, err)
	require.Equal(t, beside, path)
	require.NoError(t, remove())
	require.FileExists(t, beside)

	cancelled, cancel := context.WithCancel(t.Context()) // go build fails
	cancel()
	empty := t.TempDir()
	_, _, err = findProgram(cancelled, empty)
	require.ErrorContains(t, err, fmt.Sprintf("there is no nodest in %s", empty))
	require.ErrorContains(t, err, "--program")
}
