package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// documents holds everything besides the chats that prompts are built from.
type documents struct {
	character string
	cards     [][]string // greetings of the card, by version
	personas  []string
	book      string // bound to all characters, or to this one
	global    string // a world book that the settings may select
	preset    string // a preset that the settings may select
	scripts   string
}

func (d *documents) create(g *simulation) {
	g.t.Helper()
	var made struct{ ID string }
	g.must(apiCall{method: http.MethodPost, path: "/characters", body: map[string]any{"roleCard": d.cardDocument(g)}}).into(g, &made)
	d.character = made.ID
	d.changeSettings(g)
	create := func(path string, body map[string]any) string {
		g.must(apiCall{method: http.MethodPost, path: path, body: body}).into(g, &made)
		return made.ID
	}
	for _, name := range []string{"Ada", "Ben"} {
		d.personas = append(d.personas, create("/personas", map[string]any{"document": d.personaDocument(g, name)}))
	}
	d.book = create("/worldbooks", map[string]any{"name": "World", "document": d.bookDocument(g), "bindAll": true})
	d.global = create("/worldbooks", map[string]any{"name": "Global", "document": d.bookDocument(g)})
	d.preset = create("/presets", map[string]any{"name": "Plain", "document": d.presetDocument(g)})
	d.scripts = create("/regexscripts", map[string]any{"name": "Words", "document": d.scriptDocument(g), "bindAll": true})
}

// changeSettings updates the character's settings so that summaries come early and are
// short.
func (d *documents) changeSettings(g *simulation) {
	g.must(apiCall{method: http.MethodPut, path: "/characters/" + d.character + "/settings", body: map[string]any{
		"user": map[string]any{"name": pick(g, []string{"", "Dear"})}, "memory": map[string]any{"summaryThreshold": 3000, "summaryLength": 500},
	}})
}

// presetDocument returns a preset whose main prompt is unique.
func (d *documents) presetDocument(g *simulation) map[string]any {
	return map[string]any{"prompts": []any{
		map[string]any{"identifier": "main", "content": "Plan: " + g.sentence(), "role": "system"},
		map[string]any{"identifier": "chatHistory", "marker": true},
	}}
}

// scriptDocument returns a regex script that replaces a word in user messages.
func (d *documents) scriptDocument(g *simulation) map[string]any {
	g.sentences++
	return map[string]any{"scriptName": "in", "findRegex": "/lamp/g", "replaceString": fmt.Sprintf("lantern %d", g.sentences), "placement": []int{1}}
}

func (d *documents) cardDocument(g *simulation) map[string]any {
	greetings := []string{fmt.Sprintf("Welcome, for the %d. time.", len(d.cards)), "You again?", "The lamp is out."}[:2+g.rng.IntN(2)]
	d.cards = append(d.cards, greetings)
	return map[string]any{
		"name": "Mira", "description": g.sentence() + " She likes {{user}}. Mood: {{random:calm,wild,shy}}.", "first_mes": greetings[0], "alternate_greetings": greetings[1:],
	}
}

func (d *documents) personaDocument(g *simulation, name string) map[string]any {
	return map[string]any{"name": name, "description": g.sentence()}
}

// bookDocument returns a world book with unique entries.
func (d *documents) bookDocument(g *simulation) map[string]any {
	return map[string]any{"entries": map[string]any{
		"0": map[string]any{"uid": 0, "key": []string{}, "content": "Always: " + g.sentence(), "constant": true},
		"1": map[string]any{"uid": 1, "key": []string{"lamp"}, "content": "Of the lamp: " + g.sentence()},
	}}
}

// cardGreetings returns the greetings of the card whose greetings the texts start with.
func (d *documents) cardGreetings(texts []string) []string {
	for i := len(d.cards) - 1; i >= 0; i-- {
		if n := len(d.cards[i]); n <= len(texts) && slices.Equal(d.cards[i], texts[:n]) {
			return d.cards[i]
		}
	}
	return nil
}

// opDocuments changes one of the documents.
func (g *simulation) opDocuments(*chatModel) bool {
	g.t.Helper()
	d := &g.docs
	patch := func(path string, body map[string]any) {
		g.must(apiCall{method: http.MethodPatch, path: path, body: body})
	}
	switch g.rng.IntN(10) {
	case 0:
		patch("/characters/"+d.character, map[string]any{"roleCard": d.cardDocument(g)})
	case 1:
		patch("/worldbooks/"+d.book, map[string]any{"document": d.bookDocument(g)})
	case 2:
		patch("/worldbooks/"+d.global, map[string]any{"document": d.bookDocument(g)})
	case 3:
		patch("/personas/"+pick(g, d.personas), map[string]any{"document": d.personaDocument(g, pick(g, []string{"Ada", "Ben", "Cy"}))})
	case 4:
		patch("/presets/"+d.preset, map[string]any{"document": d.presetDocument(g)})
	case 5:
		patch("/regexscripts/"+d.scripts, map[string]any{"document": d.scriptDocument(g)})
	case 6:
		d.changeSettings(g)
	case 7: // bind it differently, or replace it
		if g.chance(2) {
			patch("/worldbooks/"+d.book, map[string]any{"bindAll": g.chance(2), "characterIds": []string{d.character}[:g.rng.IntN(2)]})
			break
		}
		g.must(apiCall{method: http.MethodDelete, path: "/worldbooks/" + d.book})
		var made struct{ ID string }
		body := map[string]any{"name": "World", "document": d.bookDocument(g), "bindAll": true}
		g.must(apiCall{method: http.MethodPost, path: "/worldbooks", body: body}).into(g, &made)
		d.book = made.ID
	default:
		g.must(apiCall{method: http.MethodPut, path: "/settings", body: map[string]any{
			"userName":           pick(g, []string{"Dora", "Emil", ""}),
			"personaId":          pick(g, []string{"", d.personas[0]}),
			"globalWorldBook":    map[string]any{"enabled": g.chance(2), "id": d.global},
			"globalPreset":       map[string]any{"enabled": g.chance(4), "id": d.preset},
			"globalRegexEnabled": g.chance(2),
		}})
	}
	return true
}

// mood matches what a random macro produces: it depends on ids, which differ in copies.
var mood = regexp.MustCompile("Mood: [a-z]+")

func withoutMood(prompt string) string { return mood.ReplaceAllString(prompt, "") }
