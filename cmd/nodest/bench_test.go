package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/bench"
)

// TestBenchHistoryRuns runs the measurement in small sizes; its figures mean
// nothing.
func TestBenchHistoryRuns(t *testing.T) {
	t.Parallel()
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
