package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/bench"
	"nodest/store/storetest"
)

// TestBenchHistoryRuns runs the measurement in small sizes; its figures mean
// nothing.
func TestBenchHistoryRuns(t *testing.T) {
	t.Parallel()
	storetest.NeedSQLite(t)
	var out strings.Builder
	o := bench.ServerOptions{Program: commandLine(t), Small: true, JSON: true, Env: []string{asProgram + "=1", raceOptions()}}
	require.NoError(t, bench.History(t.Context(), &out, o))
	var found struct {
		Chats []struct {
			Times map[string]struct{ P50 float64 }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &found))
	require.Len(t, found.Chats, 2)
	for _, chat := range found.Chats {
		require.Len(t, chat.Times, 9, "%v", chat)
		for name, times := range chat.Times {
			require.Positive(t, times.P50, name)
		}
	}
}

// TestBenchYearRuns runs the measurement with few messages: it prints every figure, and the
// searches find what was said.
func TestBenchYearRuns(t *testing.T) {
	t.Parallel()
	storetest.NeedSQLite(t)
	var out strings.Builder
	o := bench.YearOptions{
		ServerOptions: bench.ServerOptions{Program: commandLine(t), JSON: true, Env: []string{asProgram + "=1", raceOptions()}},
		Messages:      300, Users: 2, Scopes: 2, Texts: 100,
	}
	require.NoError(t, bench.Year(t.Context(), &out, o))
	found := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &found))
	for _, name := range []string{
		"bytesPerTurn", "bytesPerTurnKept", "textPerTurn", "indexedAfterS", "firstTurnMs", "turnMs", "firstRecallMs",
		"recallP50Ms", "recallP95Ms", "recallFound", "searchMs", "rssMb", "firstTokenMs", "cpuPerTurnMs",
	} {
		require.Positive(t, found[name], name)
	}
	require.Greater(t, found["recallFound"], 0.9)
	require.Contains(t, found, "turnsWithoutMemories") // so short a chat is in the prompt as a whole
}
