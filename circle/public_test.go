package circle_test

import (
	"strings"
	"testing"
	"time"

	"nodest/circle"
	"nodest/circle/rules"
)

// Every prompt names the language of the card, whichever that is.
func TestEveryPromptNamesTheLanguageOfItsCharacter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ description, want string }{
		"Ines":  {"Ines es panadera en un pueblo de la costa y siempre habla de las gaviotas, del pan y de los barcos que no vuelven.", "Write in Spanish"},
		"Hana":  {"花は海辺の町のパン屋です。毎朝早く起きて、かもめの話をするのが好きです。", "Write in Japanese"},
		"Anouk": {"Anouk est boulangère dans un village sur la côte et elle parle toujours de la mer avec les pêcheurs.", "Write in French"},
		"Bea":   {"Bea is a baker who loves bread and the sea.", "Write in English"},
		"小禾":    {"小禾是海边小镇的面包师，每天早起，喜欢和海鸥说话。", "请用中文写"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.tells()
			id := f.member(name, "description", c.description)
			f.set(id, map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00", "14:00", "15:00"}})
			f.post(name + ", bread? 面包？")
			f.live(6*time.Hour, 10*time.Minute)
			if len(f.prompts) < 2 {
				t.Fatalf("%d prompts", len(f.prompts))
			}
			for _, p := range f.prompts {
				if own := p.Messages[1].Text; !strings.Contains(own, c.want) {
					t.Errorf("%q is not in\n%s", c.want, own)
				}
			}
		})
	}
}

// No prompt and no plan has the private scene of a card, nor its words about the user.
func TestAPrivateSceneStaysOutOfPrompts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tells()
	bea := f.member("Bea",
		"description", "Bea is a baker by the sea. She is the SECRET lover of {{user}}. She feeds the gulls at dawn.",
		"personality", "patient, SECRETLY jealous when <USER> is away, fond of gulls, "+strings.Repeat("calm, ", 50)+"kind",
		"scenario", "{{char}} waits in the SECRET cottage.", "first_mes", "SECRET kiss.", "mes_example", "<START>\nBea: SECRET whisper.",
		"system_prompt", "A SECRET romance.")
	f.set(bea, map[string]any{"postsPerDay": 0, "scheduledTimes": []string{"13:00", "14:00", "15:00"}})
	f.post("Bea, bread?")
	f.live(6*time.Hour, 10*time.Minute)
	if len(f.prompts) < 3 {
		t.Fatalf("%d prompts", len(f.prompts))
	}
	for _, p := range f.prompts {
		text := p.Messages[0].Text + p.Messages[1].Text
		if strings.Contains(text, "SECRET") || strings.Contains(text, "\ue000") {
			t.Errorf("private text in\n%s", text)
		}
		for _, public := range []string{"Bea is a baker by the sea.", "She feeds the gulls at dawn.", "patient,", "fond of gulls"} {
			if !strings.Contains(text, public) {
				t.Errorf("%q is missing in\n%s", public, text)
			}
		}
	}
}

// Cards of games and tools are named as such where members are offered; they can join all the same.
func TestGamesAndToolsAreNotOfferedAsMembers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	baker := f.member("Bea")
	game := f.member("Kingdom Simulator", "description", "A strategy game in a small kingdom.")
	tool := f.member("Coding Assistant", "description", "A professional programming assistant.")
	for _, id := range []string{baker, game, tool} {
		f.update(func(tx circle.Tx) error {
			ch, err := tx.Characters.Character(id)
			if err != nil {
				return err
			}
			ch.Version++
			ch.Settings = []byte(`{"circle":{"enabled":false}}`)
			return tx.Characters.UpdateCharacter(ch)
		})
	}
	graph, err := f.svc.Relationships(t.Context(), f.user, "")
	f.must(err)
	if len(graph.Unfit) != 2 || graph.Unfit[game] != rules.UnfitGame || graph.Unfit[tool] != rules.UnfitTool {
		t.Errorf("unfit: %v", graph.Unfit)
	}
	_, err = f.svc.Join(t.Context(), f.call(), game)
	f.must(err)
	graph, err = f.svc.Relationships(t.Context(), f.user, "")
	f.must(err)
	if graph.Unfit[game] != "" || len(graph.Members) != 2 {
		t.Errorf("a game that takes part: %v, members %v", graph.Unfit, graph.Members)
	}
}
