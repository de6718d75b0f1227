package main

import (
	"fmt"
	"net/http"
	"slices"
)

// documents are what prompts are made of besides the chats.
type documents struct {
	character string
	cards     [][]string // greetings of the card, by version
	personas  []string
	book      string
	global    string // a world book that the settings may name
}

func (d *documents) make(g *game) {
	g.t.Helper()
	var made struct{ ID string }
	g.must(act{method: http.MethodPost, path: "/characters", body: map[string]any{"roleCard": d.card(g)}}).into(g, &made)
	d.character = made.ID
	for _, name := range []string{"Ada", "Ben"} {
		body := map[string]any{"document": d.persona(g, name)}
		g.must(act{method: http.MethodPost, path: "/personas", body: body}).into(g, &made)
		d.personas = append(d.personas, made.ID)
	}
	g.must(act{method: http.MethodPost, path: "/worldbooks", body: map[string]any{"name": "World", "document": d.world(g), "bindAll": true}}).into(g, &made)
	d.book = made.ID
	g.must(act{method: http.MethodPost, path: "/worldbooks", body: map[string]any{"name": "Global", "document": d.world(g)}}).into(g, &made)
	d.global = made.ID
}

func (d *documents) card(g *game) map[string]any {
	greetings := []string{fmt.Sprintf("Welcome, for the %d. time.", len(d.cards)), "You again?", "The lamp is out."}[:2+g.rng.IntN(2)]
	d.cards = append(d.cards, greetings)
	return map[string]any{
		"name": "Mira", "description": g.sentence() + " She likes {{user}}.", "first_mes": greetings[0], "alternate_greetings": greetings[1:],
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
	d := &g.docs
	switch g.rng.IntN(5) {
	case 0:
		g.must(act{method: http.MethodPatch, path: "/characters/" + d.character, body: map[string]any{"roleCard": d.card(g)}})
	case 1:
		g.must(act{method: http.MethodPatch, path: "/worldbooks/" + d.book, body: map[string]any{"document": d.world(g)}})
	case 2:
		g.must(act{method: http.MethodPatch, path: "/worldbooks/" + d.global, body: map[string]any{"document": d.world(g)}})
	case 3:
		g.must(act{method: http.MethodPatch, path: "/personas/" + pick(g, d.personas), body: map[string]any{"document": d.persona(g, pick(g, []string{"Ada", "Ben", "Cy"}))}})
	default:
		body := map[string]any{
			"userName":        pick(g, []string{"Dora", "Emil", ""}),
			"globalWorldBook": map[string]any{"enabled": g.chance(2), "id": d.global},
		}
		g.must(act{method: http.MethodPut, path: "/settings", body: body})
	}
	return true
}
