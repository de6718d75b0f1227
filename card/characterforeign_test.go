package card_test

import (
	"strings"
	"testing"

	"nodest/card"
	"nodest/internal/fault"
)

// Characters of other programs, made up in their forms.
const (
	webUICharacter = "\ufeffname: Wren\ngreeting: |-\n  *looks up* Hello, {{user}}.\n  Tea?\ncontext: |-\n  Wren keeps the light of Halden.\n  <BOT> speaks little.\n" +
		"example_dialogue: |-\n  You: Is it cold?\n  {{char}}: Always.\nyour_name: Ada\n"
	caiCharacter = `{"character":{"external_id":"x1","title":"Keeper of the light","description":"Wren lives on a rock.","greeting":"Hello, {{user}}.","participant__name":"Wren",
		"visibility":"PUBLIC","participant__num_interactions":7,"voice":"low",
		"definition":"Wren is calm.\n\nEND_OF_DIALOG\n{{user}}: Cold?\n{{char}}: Always.\nEND_OF_DIALOG\nWren: Tea?\nEND_OF_DIALOG"},"status":"OK"}`
	agnaiCharacter = `{"kind":"character","name":"Wren","greeting":"Hello, {{user}}.","scenario":"A lighthouse.","sampleChat":"{{user}}: Cold?\n{{char}}: Always.",
		"description":"Made for tests.","persona":{"kind":"sbf","attributes":{"mind":["calm","dry"],"age":["60"]}},"alternateGreetings":["Who is there?"],
		"insert":{"prompt":"It storms.","depth":2},"voice":{"service":"x"},"tags":["sea"],
		"characterBook":{"kind":"memory","name":"Halden","entries":[{"name":"Rock","entry":"The rock is black.","keywords":["rock"],"weight":3,"enabled":true}]}}`
	risuCharacter = `{"type":"character","name":"Wren","firstMessage":"Hello, {{user}}.","desc":"Wren keeps the light.","personality":"calm","scenario":"A lighthouse.",
		"exampleMessage":"<START>\n{{user}}: Cold?\n{{char}}: Always.","creatorNotes":"Made for tests.","alternateGreetings":["Who is there?"],"replaceGlobalNote":"Stay calm.",
		"globalLore":[{"key":"rock, stone","secondkey":"","comment":"Rock","content":"The rock is black.","alwaysActive":false,"insertorder":5,"mode":"normal"}],
		"customscript":[{"in":"a","out":"b"}],"chats":[{"message":[]}],"emotionImages":[["happy","x"]]}`
)

func TestCharactersOfOtherPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		file                                       string
		description, scenario, examples, greetings string
		book                                       string
		warnings                                   []string // parts of what is said
	}{
		"text-generation-webui": {
			file: webUICharacter, description: "Wren keeps the light of Halden.\n<BOT> speaks little.", examples: "{{user}}: Is it cold?\n{{char}}: Always.",
			greetings: "*looks up* Hello, {{user}}.\nTea?", warnings: []string{"make a persona of it"},
		},
		"text-generation-webui, JSON": {
			file: `{"name":"Wren","greeting":"Hi.","context":"Wren is calm.","example_dialogue":"You: A?\nWren: B."}`, description: "Wren is calm.", examples: "{{user}}: A?\nWren: B.", greetings: "Hi.",
		},
		"Pygmalion": {
			file:        `{"char_name":"Wren","char_persona":"Wren is calm.","char_greeting":"Hi.","world_scenario":"A lighthouse.","example_dialogue":"{{char}}: B."}`,
			description: "Wren is calm.", scenario: "A lighthouse.", examples: "{{char}}: B.", greetings: "Hi.",
		},
		"Pygmalion, YAML": {file: "char_name: Wren\nchar_persona: Calm.\nchar_greeting: Hi.\n", description: "Calm.", greetings: "Hi."},
		"character.ai": {
			file: caiCharacter, description: "Keeper of the light\n\nWren lives on a rock.\n\nWren is calm.", greetings: "Hello, {{user}}.",
			examples: "<START>\n{{user}}: Cold?\n{{char}}: Always.\n<START>\nWren: Tea?", warnings: []string{"replies are not spoken"},
		},
		"character.ai, the character alone": {
			file: `{"name":"Wren","greeting":"Hi.","definition":"{{char}}: I am calm.","title":"Keeper"}`, description: "Keeper\n\n{{char}}: I am calm.", greetings: "Hi.",
		},
		"Agnai": {
			file: agnaiCharacter, description: `[ character: "Wren"; age: "60"; mind: "calm", "dry" ]`, scenario: "A lighthouse.", examples: "{{user}}: Cold?\n{{char}}: Always.",
			greetings: "Hello, {{user}}. | Who is there?", book: "The rock is black.", warnings: []string{"replies are not spoken"},
		},
		"Risu": {
			file: risuCharacter, description: "Wren keeps the light.", scenario: "A lighthouse.", examples: "<START>\n{{user}}: Cold?\n{{char}}: Always.",
			greetings: "Hello, {{user}}. | Who is there?", book: "The rock is black.",
			warnings: []string{"the chats in the file are not imported", "scripts of Risu are not run", "only the icon of a card is used"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := card.Detect([]byte(c.file)); got != card.KindCharacter {
				t.Errorf("detected as %q", got)
			}
			ch := mustImport(t, c.file)
			role, err := card.ParseRoleCard(ch.RoleCard)
			if err != nil {
				t.Fatal(err)
			}
			if role.Name != "Wren" || role.Description != c.description || role.Scenario != c.scenario || role.MesExample != c.examples || strings.Join(ch.Greetings, " | ") != c.greetings {
				t.Errorf("%s\n%q %q %q %q", ch.RoleCard, role.Description, role.Scenario, role.MesExample, ch.Greetings)
			}
			if c.book != "" && mustBook(t, string(ch.WorldBook), ch.Dialect).Entries[0].Content != c.book {
				t.Errorf("book %s", ch.WorldBook)
			}
			said := ""
			for _, w := range ch.Warnings {
				said += w.Detail + "\n"
			}
			for _, part := range c.warnings {
				if !strings.Contains(said, part) {
					t.Errorf("no word about %q: %s", part, said)
				}
			}
			if len(c.warnings) == 0 && said != "" {
				t.Errorf("warnings: %s", said)
			}
		})
	}
}

// Each way in which Agnai keeps a persona becomes the text that it sends to the model.
func TestPersonasOfAgnai(t *testing.T) {
	for kind, want := range map[string]string{
		"attributes": "age: 60\nmind: calm, dry", "boostyle": "Wren + 60 + calm + dry", "text": "60\ncalm\ndry",
		"wpp": "[character(\"Wren\") {\nage(\"60\")\nmind(\"calm\" + \"dry\")\n}]", "sbf": `[ character: "Wren"; age: "60"; mind: "calm", "dry" ]`,
	} {
		ch := mustImport(t, strings.Replace(agnaiCharacter, `"kind":"sbf"`, `"kind":"`+kind+`"`, 1))
		if role, err := card.ParseRoleCard(ch.RoleCard); err != nil || role.Description != want {
			t.Errorf("%s: %q, %v", kind, role.Description, err)
		}
	}
}

func TestForeignCharactersAreRefusedWithOneError(t *testing.T) {
	for name, c := range map[string]struct {
		file, words string
		code        fault.Code
	}{
		"YAML with aliases":     {"name: &a Wren\ngreeting: *a\n", "YAML", fault.UnsupportedCard},
		"deep YAML":             {"name: Wren\ngreeting: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n", "YAML", fault.UnsupportedCard},
		"YAML that is cut":      {"name: Wren\ngreeting: \"Hi\n", "YAML", fault.UnsupportedCard},
		"YAML without a name":   {"name:\ngreeting: Hi.\n", "", fault.UnsupportedCard},
		"large YAML":            {"name: Wren\ngreeting: Hi.\ncontext: " + strings.Repeat("a", 1<<20) + "\n", "text/plain", fault.UnsupportedCard},
		"a character of no one": {`{"character":{"participant__name":" ","greeting":"Hi."}}`, "needs a name", fault.UnsupportedCard},
		"a book of no entries":  {`{"kind":"character","name":"A","greeting":"Hi.","characterBook":{"kind":"memory","entries":7}}`, "", fault.InvalidWorldBook},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := card.Import([]byte(c.file), "x", card.Limits{})
			wantCode(t, err, c.code, c.words)
		})
	}
	_, err := card.Import(picture(t, chunk("tEXt", "chara\x00rcc||rccv1||AAAA||")), "x.png", card.Limits{})
	wantCode(t, err, fault.UnsupportedCard, "encrypted by Risu")
}

// The histories of CAI Tools are a chat; the character beside them can be imported as one.
func TestHistoriesNameTheirCharacter(t *testing.T) {
	file := []byte(`{"info":` + caiCharacter + `,"histories":{"histories":[{"msgs":[{"text":"Hello.","src":{"is_human":false}},{"text":"Hi!","src":{"is_human":true}}]}]}}`)
	if got := card.Detect(file); got != card.KindChat {
		t.Errorf("detected as %q", got)
	}
	chat, err := card.ImportChat(file, card.ChatNames{User: "Ada", Character: "Bo"}, card.Limits{})
	if err != nil || chat.CharacterName != "Wren" || len(chat.Messages) != 2 || chat.Messages[0].Name != "Bo" {
		t.Errorf("%+v, %v", chat, err)
	}
	ch, err := card.Import(file, "x", card.Limits{})
	if err != nil || ch.Name != "Wren" || ch.Greetings[0] != "Hello, {{user}}." {
		t.Errorf("%+v, %v", ch, err)
	}
}
