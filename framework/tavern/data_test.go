package tavern

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/worldinfo"
	"nodest/internal/sharedtest"
)

// No published card loses a line of its texts, whatever preset it is played with, and the prompt is
// the same each time.
func TestNoPublishedCardLosesAnInstruction(t *testing.T) {
	presets := map[string]*card.Preset{"built in": nil}
	for _, path := range sharedtest.Files(t, "data/presets/*.json") {
		data, err := os.ReadFile(path)
		must(t, err)
		if res, err := card.ImportPreset(data, filepath.Base(path), card.Limits{}); err == nil {
			presets[filepath.Base(path)] = preset(t, string(res.Doc))
		}
	}
	cards, built, checked := 0, 0, 0
	for _, path := range sharedtest.Files(t, "data/cards/*") {
		data, err := os.ReadFile(path)
		must(t, err)
		ch, err := card.Import(data, filepath.Base(path), card.Limits{})
		if err != nil {
			continue // that is the card package's business
		}
		cards++
		c, err := card.ParseRoleCard(ch.RoleCard)
		must(t, err)
		book, err := card.ParseWorldBook(ch.WorldBook, card.SillyTavern)
		must(t, err)
		for name, p := range presets {
			s := Sources{Card: c, Preset: p, Books: []worldinfo.Source{{Name: c.Name, Origin: worldinfo.OfCharacter, Entries: book.Entries}}}
			in := framework.Input{History: talk(9), User: framework.Message{Text: "Hello."}}
			sent := build(t, s, in, Play{})
			in.Cache = framework.NewCache(0)
			again := build(t, s, in, Play{})
			all := strings.Join(lines(sent), "\n")
			if all != strings.Join(lines(again), "\n") {
				t.Errorf("%s with %s: twice is not the same", path, name)
			}
			built++
			for field, text := range textsOf(c, book) {
				for l := range strings.Lines(text) {
					if l = strings.TrimSpace(l); l == "" || strings.ContainsAny(l, "{<") {
						continue
					}
					if checked++; !strings.Contains(all, l) {
						t.Errorf("%s with %s: %s lost %q", path, name, field, l)
					}
				}
			}
		}
	}
	t.Logf("%d cards, %d prompts, %d lines", cards, built, checked)
}

func textsOf(c card.RoleCard, book card.WorldBook) map[string]string {
	examples := strings.NewReplacer("{{char}}:", "", "{{user}}:", "", c.Name+":", "").Replace(c.MesExample)
	texts := map[string]string{
		"description": c.Description, "personality": c.Personality, "scenario": c.Scenario, "mes_example": examples,
		"system_prompt": c.SystemPrompt, "post_history_instructions": c.PostHistoryInstructions, "depth_prompt": c.DepthPrompt.Prompt,
	}
	for _, e := range book.Entries {
		if e.Constant && !e.Disable {
			texts["entry "+e.ID] = e.Content
		}
	}
	return texts
}
