// Package worldinfotest reads the parts that recorded vectors of SillyTavern have in common: world books, who they belong
// to, and the settings of world info. It is for tests only.
package worldinfotest

import (
	"encoding/json"
	"slices"
	"testing"

	"nodest/card"
	"nodest/framework/worldinfo"
)

// Books are the members of a vector about world books, as the README of the vectors explains them.
type Books struct {
	Books     map[string]json.RawMessage
	Global    []string `json:"global_books"`
	ChatWorld string   `json:"chat_world"`
	Persona   struct{ Lorebook string }
	Character struct {
		Extra      []string `json:"_extra_books"`
		Extensions struct{ World string }
	}
	Settings json.RawMessage `json:"wi_settings"`
	Rolls    []float64
}

// Sources are the books in effect.
func (b *Books) Sources(tb testing.TB) (all []worldinfo.Source) {
	tb.Helper()
	add := func(origin worldinfo.Origin, names ...string) {
		for _, name := range names {
			doc, ok := b.Books[name]
			if !ok {
				continue
			}
			book, err := card.ParseWorldBook(doc, card.SillyTavern)
			if err != nil {
				tb.Fatal(err)
			}
			all = append(all, worldinfo.Source{Name: name, Origin: origin, Entries: book.Entries})
		}
	}
	add(worldinfo.OfChat, b.ChatWorld)
	add(worldinfo.OfPersona, b.Persona.Lorebook)
	add(worldinfo.OfCharacter, slices.Concat([]string{b.Character.Extensions.World}, b.Character.Extra)...)
	add(worldinfo.Global, b.Global...)
	return all
}

// Rules are the settings of world info, with SillyTavern's defaults for missing ones.
func (b *Books) Rules(tb testing.TB) worldinfo.Settings {
	tb.Helper()
	s := struct {
		Depth        int
		Budget       int  `json:"budget_percent"`
		Cap          int  `json:"budget_cap"`
		Names        bool `json:"include_names"`
		Recursive    bool
		Case         bool `json:"case_sensitive"`
		Words        bool `json:"match_whole_words"`
		Scoring      bool `json:"use_group_scoring"`
		Strategy     int  `json:"character_strategy"`
		Minimum      int  `json:"min_activations"`
		MinimumDepth int  `json:"min_activations_depth_max"`
		Steps        int  `json:"max_recursion_steps"`
	}{Depth: 2, Budget: 25, Names: true, Strategy: 1}
	if b.Settings != nil {
		if err := json.Unmarshal(b.Settings, &s); err != nil {
			tb.Fatal(err)
		}
	}
	return worldinfo.Settings{
		Depth: s.Depth, BudgetPercent: s.Budget, BudgetCap: s.Cap, MinActivations: s.Minimum, MinActivationsDepth: s.MinimumDepth,
		MaxRecursionSteps: s.Steps, Recursive: s.Recursive, IncludeNames: s.Names, CaseSensitive: s.Case, MatchWholeWords: s.Words,
		UseGroupScoring: s.Scoring, Strategy: worldinfo.Strategy(s.Strategy),
	}
}

// Roll returns the numbers of a vector one after another, and again from the first; 0 without any. drawn counts them.
func (b *Books) Roll(drawn *int) func() float64 {
	return func() float64 {
		*drawn++
		if len(b.Rolls) == 0 {
			return 0
		}
		return b.Rolls[(*drawn-1)%len(b.Rolls)]
	}
}
