package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// documents are what prompts are made of besides the chats.
type documents struct {
	character string
	cards     [][]string // greetings of the card, by version
	personas  []string
	book      string // bound to all, or to the character
	global    string // a world book that the settings may name
	preset    string // likewise
	scripts   string
}

func (d *documents) make(g *game) {
	g.t.Helper()
	var made struct{ ID string }
	g.must(act{method: http.MethodPost, path: "/characters", body: map[string]any{"roleCard": d.card(g)}}).into(g, &made)
	d.character = made.ID
	d.settings(g)
	create := func(path string, body map[string]any) string {
		g.must(act{method: http.MethodPost, path: path, body: body}).into(g, &made)
		return made.ID
	}
	for _, name := range []string{"Ada", "Ben"} {
		d.personas = append(d.personas, create("/personas", map[string]any{"document": d.persona(g, name)}))
	}
	d.book = create("/worldbooks", map[string]any{"name": "World", "document": d.world(g), "bindAll": true})
	d.global = create("/worldbooks", map[string]any{"name": "Global", "document": d.world(g)})
	d.preset = create("/presets", map[string]any{"name": "Plain", "document": d.plan(g)})
	d.scripts = create("/regexscripts", map[string]any{"name": "Words", "document": d.script(g), "bindAll": true})
}

// settings are those of the character; summaries come early, and are short.
func (d *documents) settings(g *game) {
	g.must(act{method: http.MethodPut, path: "/characters/" + d.character + "/settings", body: map[string]any{
		"user": map[string]any{"name": pick(g, []string{"", "Dear"})}, "memory": map[string]any{"summaryThreshold": 3000, "summaryLength": 500},
	}})
}

// plan is a preset whose main part tells its version.
func (d *documents) plan(g *game) map[string]any {
	return map[string]any{"prompts": []any{
		map[string]any{"identifier": "main", "content": "Plan: " + g.sentence(), "role": "system"},
		map[string]any{"identifier": "chatHistory", "marker": true},
	}}
}

// script changes what users say, each time it is sent.
func (d *documents) script(g *game) map[string]any {
	g.talking++
	return map[string]any{"scriptName": "in", "findRegex": "/lamp/g", "replaceString": fmt.Sprintf("lantern %d", g.talking), "placement": []int{1}}
}

func (d *documents) card(g *game) map[string]any {
	greetings := []string{fmt.Sprintf("Welcome, for the %d. time.", len(d.cards)), "You again?", "The lamp is out."}[:2+g.rng.IntN(2)]
	d.cards = append(d.cards, greetings)
	return map[string]any{
		"name": "Mira", "description": g.sentence() + " She likes {{user}}. Mood: {{random:calm,wild,shy}}.", "first_mes": greetings[0], "alternate_greetings": greetings[1:],
	}
}

func (d *documents) persona(g *game, name string) map[string]any {
	return map[string]any{"name": name, "description": g.sentence()}
}

// world is a world book whose entries tell their version.
func (d *documents) world(g *game) map[string]any {
	return map[string]any{"entries": map[string]any{
		"0": map[string]any{"uid": 0, "key": []string{}, "content": "Always: " + g.sentence(), "constant": true},
		"1": map[string]any{"uid": 1, "key": []string{"lamp"}, "content": "Of the lamp: " + g.sentence()},
	}}
}

// greetings is the card whose greetings begin the texts.
func (d *documents) greetings(texts []string) []string {
	for i := len(d.cards) - 1; i >= 0; i-- {
		if n := len(d.cards[i]); n <= len(texts) && slices.Equal(d.cards[i], texts[:n]) {
			return d.cards[i]
		}
	}
	return nil
}

// opDocuments changes one of the documents.
func (g *game) opDocuments(*plain) bool {
	g.t.Helper()
	d := &g.docs
	patch := func(path string, body map[string]any) {
		g.must(act{method: http.MethodPatch, path: path, body: body})
	}
	switch g.rng.IntN(10) {
	case 0:
		patch("/characters/"+d.character, map[string]any{"roleCard": d.card(g)})
	case 1:
		patch("/worldbooks/"+d.book, map[string]any{"document": d.world(g)})
	case 2:
		patch("/worldbooks/"+d.global, map[string]any{"document": d.world(g)})
	case 3:
		patch("/personas/"+pick(g, d.personas), map[string]any{"document": d.persona(g, pick(g, []string{"Ada", "Ben", "Cy"}))})
	case 4:
		patch("/presets/"+d.preset, map[string]any{"document": d.plan(g)})
	case 5:
		patch("/regexscripts/"+d.scripts, map[string]any{"document": d.script(g)})
	case 6:
		d.settings(g)
	case 7: // bound in another way, or another one altogether
		if g.chance(2) {
			patch("/worldbooks/"+d.book, map[string]any{"bindAll": g.chance(2), "characterIds": []string{d.character}[:g.rng.IntN(2)]})
			break
		}
		g.must(act{method: http.MethodDelete, path: "/worldbooks/" + d.book})
		var made struct{ ID string }
		body := map[string]any{"name": "World", "document": d.world(g), "bindAll": true}
		g.must(act{method: http.MethodPost, path: "/worldbooks", body: body}).into(g, &made)
		d.book = made.ID
	default:
		g.must(act{method: http.MethodPut, path: "/settings", body: map[string]any{
			"userName":           pick(g, []string{"Dora", "Emil", ""}),
			"personaId":          pick(g, []string{"", d.personas[0]}),
			"globalWorldBook":    map[string]any{"enabled": g.chance(2), "id": d.global},
			"globalPreset":       map[string]any{"enabled": g.chance(4), "id": d.preset},
			"globalRegexEnabled": g.chance(2),
		}})
	}
	return true
}

// mood is what a macro draws anew in a copy, whose ids are other ones.
var mood = regexp.MustCompile("Mood: [a-z]+")

func withoutMood(prompt string) string { return mood.ReplaceAllString(prompt, "") }
