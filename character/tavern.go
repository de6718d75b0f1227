package character

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/tavern"
	"nodest/framework/worldinfo"
)

// tavernParts are the documents of a turn as the SillyTavern dialect takes them: presets as they were
// imported, and world books that are found by their names. They are gathered while documents are read.
type tavernParts struct {
	own, global *card.Preset // nil = none
	books       []worldinfo.Source
	tags        []string           // tags of the character, for the filters of entries
	last        bool               // scripts of the card are gathered, to run behind all others
	scripts     []card.RegexScript // those
}

// addBook adds a world book that takes part; global says for all characters.
func (p *tavernParts) addBook(name string, b *card.WorldBook, global bool) {
	origin := worldinfo.OfCharacter
	if global {
		origin = worldinfo.Global
	}
	if len(b.Entries) > 0 && !slices.ContainsFunc(p.books, func(s worldinfo.Source) bool { return s.Name == name && s.Origin == origin }) {
		p.books = append(p.books, worldinfo.Source{Name: name, Origin: origin, Entries: b.Entries})
	}
}

// addPreset adds a preset in the place of others; one that says nothing of prompts is none.
func (p *tavernParts) addPreset(preset *card.Preset, global bool) {
	switch {
	case preset.BuiltIn:
	case global:
		p.global = preset
	default:
		p.own = preset
	}
}

// compile makes the documents ready. s are the same for the other dialect.
func (p *tavernParts) compile(s *framework.Sources) *tavern.Compiled {
	called := s.Card
	if s.Card.Nickname != "" { // {{char}} gives the nickname, as in greetings and in the other dialect; messages have the name
		called.Name, called.Nickname = s.Card.Nickname, s.Card.Name
	}
	return tavern.Compile(tavern.Sources{
		Card: called, Preset: cmp.Or(p.global, p.own), CardFields: s.CardFields, Language: s.Language,
		Books: p.books, Character: worldinfo.Character{File: s.Card.Name, Tags: p.tags},
	})
}

// bookNameOf is the name of a character's own world book, by which the state of a chat knows its entries.
func bookNameOf(name string, doc json.RawMessage) string {
	var book struct {
		Name any `json:"name"`
	}
	_ = json.Unmarshal(doc, &book) // a name of another type counts as none
	return cmp.Or(firstName(book.Name), name+"'s Lorebook")
}

// strategies are the words of the setting worldInfo.strategy.
var strategies = map[string]worldinfo.Strategy{"evenly": worldinfo.Evenly, "character": worldinfo.CharacterFirst, "global": worldinfo.GlobalFirst}

// WorldInfoRules are the settings of the scan for world-book entries in the SillyTavern dialect.
func (s *Settings) WorldInfoRules() worldinfo.Settings {
	w := &s.WorldInfo
	return worldinfo.Settings{
		Depth: w.Depth, BudgetPercent: w.Budget, BudgetCap: w.BudgetCap, MinActivations: w.MinActivations,
		MinActivationsDepth: w.MinActivationsDepth, MaxRecursionSteps: w.MaxRecursionSteps, Recursive: w.Recursive,
		IncludeNames: w.IncludeNames, CaseSensitive: w.CaseSensitive, MatchWholeWords: w.MatchWholeWords,
		UseGroupScoring: w.UseGroupScoring, Strategy: strategies[w.Strategy],
	}
}

// allowed are the scripts of a resource that may run where they stand. Those that came with a card wait until
// the user allows them, and run behind all others in the SillyTavern dialect.
func (d *Documents) allowed(res *Resource, scripts []card.RegexScript) []card.RegexScript {
	if len(scripts) == 0 || !IsOfCard(res) {
		return scripts
	}
	if !d.Settings.Scripts.Card {
		d.warnScripts("card", len(scripts))
		return nil
	}
	if d.parts.last {
		d.parts.scripts = append(d.parts.scripts, scripts...)
		return nil
	}
	return scripts
}

// tavernScripts are the scripts of the user, the preset and the card, in this order; in the other dialect
// they are all there.
func (d *Documents) tavernScripts(users []card.RegexScript, s *framework.Sources) []card.RegexScript {
	if s.Dialect != card.SillyTavern {
		return users
	}
	if p := cmp.Or(d.parts.global, d.parts.own); p != nil && len(p.Scripts) > 0 {
		if d.Settings.Scripts.Preset {
			users = append(users, p.Scripts...)
		} else {
			d.warnScripts("preset", len(p.Scripts))
		}
	}
	return append(users, d.parts.scripts...)
}

func (d *Documents) warnScripts(of string, n int) {
	d.Warnings = append(d.Warnings, framework.Warning{
		Code: "scripts_not_allowed", Detail: fmt.Sprintf("%d regex scripts of the %s do not run until the setting scripts.%s of the character allows them", n, of, of),
	})
}
