package nodesttest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"nodest/memory"
	"nodest/nodest"
)

// WithMemory gives the engine of a fixture a memory. No extraction runs in the
// background: tests add their facts themselves.
func (s *Fixture) WithMemory(o memory.Options) {
	o.Scenes = func(ctx context.Context, userID, characterID, conversationID string) (memory.Scene, error) {
		return s.Chats.MemoryScene(ctx, userID, characterID, conversationID)
	}
	o.Settings = func(ctx context.Context, userID, characterID string) (memory.ExportedSettings, error) {
		return s.Chats.MemorySettings(ctx, userID, characterID)
	}
	o.Log = DiscardLog
	s.UseMemory(memory.New(s.DB.Memory(), o), WaitLimit)
}

// UseMemory makes the engine recall from a memory, with a time limit.
func (s *Fixture) UseMemory(m *memory.Service, limit time.Duration) {
	s.Memory, s.Options.Sources = m, []nodest.Source{nodest.Memories(m, limit)}
	s.Engine = s.AnotherEngine()
}

// NewWithMemory returns a fixture with a memory.
func NewWithMemory(t *testing.T) *Fixture {
	t.Helper()
	s := New(t, nodest.Options{})
	s.WithMemory(memory.Options{})
	return s
}

// AddFact stores a memory of one of Ann's characters.
func (s *Fixture) AddFact(characterID, text string) *memory.Memory {
	s.T.Helper()
	m, err := s.Memory.Create(s.T.Context(), s.Call(), characterID, memory.Draft{Text: text})
	s.Must(err)
	return m
}

// PutSettings replaces the settings of a character.
func (s *Fixture) PutSettings(characterID, settings string) {
	s.T.Helper()
	_, _, err := s.Characters.PutSettings(s.T.Context(), s.Call(), characterID, json.RawMessage(settings), 0)
	s.Must(err)
}

// ContextOf returns what gen.context and gen.stage of a generation report.
func (s *Fixture) ContextOf(generationID string) (memories, warnings, stages []string) {
	s.T.Helper()
	for _, ev := range s.Events.OfGeneration(generationID) {
		if ev.Type == "gen.delta" {
			continue
		}
		var d struct {
			Memories, Warnings []string
			Stage              string
		}
		s.Must(json.Unmarshal(ev.Data, &d))
		switch ev.Type {
		case "gen.context":
			memories, warnings = d.Memories, d.Warnings
		case "gen.stage":
			stages = append(stages, d.Stage)
		}
	}
	return memories, warnings, stages
}

// Birthday is a text that BirthdayQuestion asks about.
const (
	Birthday         = "My sister Clara celebrates her birthday in Lisbon on the ninth of March."
	BirthdayQuestion = "Where does Clara celebrate her birthday?"
)
