package nodest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/sharedtest"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// part is a message of testdata/whole/request.txt: a line "=== role", lines "# why it stands there: vectors", the text.
type part struct {
	role, text string
	vectors    []string
}

func wholeParts(t *testing.T) (parts []part) {
	t.Helper()
	for _, block := range strings.Split("\n"+wholeFile(t, "request.txt"), "\n=== ")[1:] {
		role, rest, _ := strings.Cut(block, "\n")
		p := part{role: role}
		for strings.HasPrefix(rest, "# ") {
			var remark string
			remark, rest, _ = strings.Cut(rest, "\n")
			p.vectors = append(p.vectors, vectorName.FindAllString(remark, -1)...)
		}
		p.text = strings.TrimSuffix(rest, "\n")
		parts = append(parts, p)
	}
	return parts
}

var vectorName = regexp.MustCompile(`\b(prompt(-real)?|gemini)/[\w-]+`)

func wholeFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "whole", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wholeChat is a chat with everything that a request of the SillyTavern dialect can have: a card that uses each field of
// the V3 specification, the stock preset, a persona, an author's note, a book for all characters, and regex scripts of the
// user, the preset and the card.
func wholeChat(s *fixture) (conv *chat.Conversation, persona *character.Resource) {
	s.T.Helper()
	t := s.T
	ch := s.importCard(wholeFile(t, "card.json"))
	resource := func(kind character.ResourceKind, file string, bound ...string) *character.Resource {
		r, err := s.Characters.CreateResource(t.Context(), s.Call(), kind, character.ResourceInput{Document: json.RawMessage(wholeFile(t, file)), Characters: bound})
		s.Must(err)
		return r
	}
	resource(character.RegexScript, "scripts.json", ch.ID)
	persona = resource(character.Persona, "persona.json")
	_, err := s.Characters.PutUserSettings(t.Context(), s.Call(), character.UserSettings{
		PersonaID: persona.ID, GlobalRegexEnabled: true,
		GlobalPreset:    character.GlobalResource{Enabled: true, ID: resource(character.Preset, "preset.json").ID},
		GlobalWorldBook: character.GlobalResource{Enabled: true, ID: resource(character.WorldBook, "book.json").ID},
	}, 0)
	s.Must(err)
	_, _, err = s.Characters.PutSettings(t.Context(), s.Call(), ch.ID, json.RawMessage(`{"scripts":{"card":true,"preset":true}}`), 0)
	s.Must(err)
	conv = s.ChatWith(ch.ID)
	_, err = s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{
		ID: conv.ID, AuthorNote: json.RawMessage(`{"content":"[Few words, {{char}}.]","role":"system","injection_depth":3}`),
	})
	s.Must(err)
	s.Model.Enqueue(nodesttest.Reply("*nods* Tea is on."))
	reply := s.SayAndWait(conv, "Good evening. (ooc: slow start)")
	note, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: conv.ID, ParentID: reply.ID, Text: "A note for me alone.", NoReply: true})
	s.Must(err)
	hidden := true
	_, err = s.Chats.HideMessage(t.Context(), s.Call(), chat.HideInput{MessageID: note.UserMessage.ID, Hidden: &hidden})
	s.Must(err)
	return conv, persona
}

const wholeQuestion = "Is teh storm near the reef? I saw wreckage from my boat."

// The request to the model is SillyTavern's, part by part. Each part names the vectors that show its place.
func TestAWholeRequestIsSillyTaverns(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	conv, _ := wholeChat(s)
	want := wholeParts(t)
	save, err := s.Chats.CreateSave(t.Context(), s.Call(), chat.SaveInput{ConversationID: conv.ID})
	s.Must(err)
	s.SayAndWait(conv, wholeQuestion)
	requests := s.Model.AllRequests()
	asked := requests[len(requests)-1]
	wantParts(t, asked.Messages, want)
	if asked.MaxTokens != 300 || asked.Temperature == nil || *asked.Temperature != 1 {
		t.Errorf("the preset's samplers: %d tokens, temperature %v", asked.MaxTokens, asked.Temperature)
	}

	t.Run("a preview of the save point", func(t *testing.T) {
		p, err := s.PreviewSave(t.Context(), nodesttest.Ann, save.ID, nodest.PreviewInput{Text: wholeQuestion})
		s.Must(err)
		wantParts(t, p.Messages, want)
		if p.World == nil || len(p.World.Verdicts) != 21 {
			t.Fatalf("it tells of the world books: %+v", p.World)
		}
		for _, v := range p.World.Verdicts {
			if v.Fires == strings.HasPrefix(v.Name, "Never") {
				t.Errorf("%s fires: %t", v.Name, v.Fires)
			}
		}
	})
}

// The persona stands where its position says, and nothing else moves.
func TestThePersonaOfAWholeRequestStandsWhereItsPositionSays(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	conv, persona := wholeChat(s)
	want := wholeParts(t)
	at := func(text string) int {
		return slices.IndexFunc(want, func(p part) bool { return strings.Contains(p.text, text) })
	}
	of, note, answered := at("what the sea takes"), at("Above the note"), at("Is the storm")
	text := want[of].text
	for name, c := range map[string]struct {
		place string
		move  func(parts []part) []part
	}{
		"prompt/persona-top-an":    {`"position":2`, func(parts []part) []part { parts[note].text = text + "\n" + parts[note].text; return parts }},
		"prompt/persona-bottom-an": {`"position":3`, func(parts []part) []part { parts[note].text += "\n" + text; return parts }},
		"prompt/persona-at-depth": {`"position":4,"depth":0,"role":1`, func(parts []part) []part {
			return slices.Insert(parts, answered+2, part{role: "user", text: text})
		}},
		"prompt/persona-none": {`"position":9`, func(parts []part) []part { return parts }},
	} {
		t.Run(name, func(t *testing.T) {
			doc := fmt.Sprintf(`{"name":"Tamsin","description":"{{user}} writes down what the sea takes.",%s}`, c.place)
			_, err := s.Characters.UpdateResource(t.Context(), s.Call(), character.Persona, persona.ID, character.ResourceInput{Document: json.RawMessage(doc)}, false, 0)
			s.Must(err)
			moved := c.move(slices.Clone(want))
			wantParts(t, s.preview(conv, wholeQuestion).Messages, slices.Delete(moved, of, of+1))
		})
	}
}

func wantParts(t *testing.T, got []llm.Message, want []part) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		var g, w part
		if i < len(got) {
			g = part{role: string(got[i].Role), text: got[i].Text}
		}
		if i < len(want) {
			w = want[i]
		}
		if g.role != w.role || g.text != w.text {
			t.Errorf("message %d:\n got %s %q\nwant %s %q", i, g.role, g.text, w.role, w.text)
		}
	}
}

// The vectors that the parts name exist; package tavern runs those of prompts.
func TestTheGoldenVectorsOfAWholeRequestExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, file := range []string{"prompt", "provider"} {
		for _, v := range sharedtest.Vectors[json.RawMessage, json.RawMessage](t, sharedtest.Read(t, "golden/sillytavern/"+file+".json")) {
			known[v.Name] = true
		}
	}
	named := 0
	for _, p := range wholeParts(t) {
		for _, name := range p.vectors {
			named++
			if !known[name] {
				t.Errorf("%.30q names the vector %s, which does not exist", p.text, name)
			}
		}
	}
	t.Logf("%d names", named)
}
