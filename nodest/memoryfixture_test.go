package nodest_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"nodest/memory"
	"nodest/nodest"
)

// withMemory gives the engine of a fixture a memory. No extraction runs in the
// background: tests add their facts themselves.
func (s *fixture) withMemory(o memory.Options) *fixture {
	o.Scenes = func(ctx context.Context, userID, characterID, conversationID string) (memory.Scene, error) {
		return s.Chats.MemoryScene(ctx, userID, characterID, conversationID)
	}
	o.Settings = func(ctx context.Context, userID, characterID string) (memory.ExportedSettings, error) {
		return s.Chats.MemorySettings(ctx, userID, characterID)
	}
	o.Log = discardLog
	s.useMemory(memory.New(s.db.Memory(), o), waitLimit)
	return s
}

// useMemory makes the engine recall from a memory, with a time limit.
func (s *fixture) useMemory(m *memory.Service, limit time.Duration) {
	s.memory, s.opts.Sources = m, []nodest.Source{nodest.Memories(m, limit)}
	s.Engine = s.engine()
}

func newMemoryFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, nodest.Options{}).withMemory(memory.Options{})
}

// addFact stores a memory of one of ann's characters.
func (s *fixture) addFact(characterID, text string) *memory.Memory {
	s.t.Helper()
	m, err := s.memory.Create(s.t.Context(), s.call(), characterID, memory.Draft{Text: text})
	s.must(err)
	return m
}

// putSettings replaces the settings of a character.
func (s *fixture) putSettings(characterID, settings string) {
	s.t.Helper()
	_, _, err := s.Characters.PutSettings(s.t.Context(), s.call(), characterID, json.RawMessage(settings), 0)
	s.must(err)
}

// contextOf returns what gen.context and gen.stage of a generation report.
func (s *fixture) contextOf(generationID string) (memories, warnings, stages []string) {
	s.t.Helper()
	for _, ev := range s.events.ofGeneration(generationID) {
		if ev.Type == "gen.delta" {
			continue
		}
		var d struct {
			Memories, Warnings []string
			Stage              string
		}
		s.must(json.Unmarshal(ev.Data, &d))
		switch ev.Type {
		case "gen.context":
			memories, warnings = d.Memories, d.Warnings
		case "gen.stage":
			stages = append(stages, d.Stage)
		}
	}
	return memories, warnings, stages
}

const (
	birthday         = "My sister Clara celebrates her birthday in Lisbon on the ninth of March."
	birthdayQuestion = "Where does Clara celebrate her birthday?"
)
