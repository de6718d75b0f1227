package nodest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// samplingFields lists the sampling fields of a recorded request.
func samplingFields(t *testing.T, r llmtest.Request) string {
	t.Helper()
	var body map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	var set []string
	for _, name := range []string{"temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop"} {
		if v, ok := body[name]; ok {
			set = append(set, name+"="+string(v))
		}
	}
	return strings.Join(set, " ")
}

// bindPreset creates a preset and binds it to a character.
func (s *fixture) bindPreset(characterID, document string) {
	s.T.Helper()
	_, err := s.Characters.CreateResource(s.T.Context(), s.Call(), character.Preset, character.ResourceInput{
		Document: json.RawMessage(document), Characters: []string{characterID},
	})
	s.Must(err)
}

// Only values that somebody set are sent. A message's options come first, then the
// conversation's, the preset's, and the user's defaults.
func TestPrecedenceOfSamplingSettings(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	fake.Always(llmtest.TokenLimit(8192, func(llmtest.Request) llmtest.Reply { return llmtest.Say("Yes.") }))
	c := s.Chat()
	check := func(who string, options character.TurnOptions, want string) {
		t.Helper()
		sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "Hello", Options: options})
		s.Must(err)
		if g := s.Await(sent.GenerationID); g.Status != chat.GenDone {
			t.Fatalf("%s: %s %v", who, g.Status, g.Error)
		}
		all := fake.Requests()
		if got := samplingFields(t, all[len(all)-1]); got != want {
			t.Errorf("%s: sent %q, want %q", who, got, want)
		}
	}
	float := func(f float64) *float64 { return &f }
	number := func(n int) *int { return &n }
	check("nobody", character.TurnOptions{}, "")

	_, err := s.Characters.PutUserSettings(t.Context(), s.Call(), character.UserSettings{TurnOptions: character.TurnOptions{Temperature: float(0.1), TopP: float(0.2)}}, 0)
	s.Must(err)
	check("the user", character.TurnOptions{}, "temperature=0.1 top_p=0.2")

	s.bindPreset(c.CharacterID, `{"prompts":[{"identifier":"main","content":"Play."},{"identifier":"chatHistory","marker":true}],
		"temperature":0.8,"top_p":"0.9","openai_max_tokens":900,"openai_max_context":65536,"seed":-1}`)
	check("the preset", character.TurnOptions{}, "temperature=0.8 top_p=0.9 max_tokens=900")

	settings := json.RawMessage(`{"temperature":1.2}`)
	_, err = s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{ID: c.ID, Settings: settings})
	s.Must(err)
	check("the conversation", character.TurnOptions{}, "temperature=1.2 top_p=0.9 max_tokens=900")
	check("the message", character.TurnOptions{Temperature: float(0), MaxTokens: number(20)}, "temperature=0 top_p=0.9 max_tokens=20")

	s.bindPreset(c.CharacterID, `{"top_p":0.3,"openai_max_tokens":700}`)
	check("a preset without prompts", character.TurnOptions{}, "temperature=1.2 top_p=0.3 max_tokens=700")
	s.bindPreset(c.CharacterID, `{"generation_settings":{"top_p":0.4}}`)
	check("a preset of TavernKit", character.TurnOptions{}, "temperature=1.2 top_p=0.4")
	s.bindPreset(c.CharacterID, `{"prompts":[],"temperature":3,"top_p":-1,"openai_max_tokens":0,"openai_max_context":1}`)
	check("a preset with invalid numbers", character.TurnOptions{}, "temperature=1.2 top_p=0.2")
}

// A reply limit beyond the context is reduced, because servers refuse it although
// SillyTavern presets have it. Where the context is unknown it is sent unchanged.
func TestTheReplyLimitStaysWithinTheContext(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	s.RealModel.ContextTokens = 0
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say("Yes.") })
	c := s.Chat()
	limit := func(context string) (n int) {
		t.Helper()
		s.bindPreset(c.CharacterID, `{"prompts":[{"identifier":"chatHistory","marker":true}],"openai_max_tokens":60000`+context+`}`)
		s.Await(s.Say(c, "Hello").GenerationID)
		all := fake.Requests()
		_, err := fmt.Sscanf(samplingFields(t, all[len(all)-1]), "max_tokens=%d", &n)
		s.Must(err)
		return n
	}
	if n := limit(""); n != 60000 {
		t.Errorf("without a context: %d", n)
	}
	if n := limit(`,"openai_max_context":8192`); n <= 4096 || n >= 8192 {
		t.Errorf("with a context of 8192: %d, want what the request leaves of it", n)
	}
}

// A background call has a reply limit of its own and otherwise the user's sampling
// values, because some models refuse any temperature.
func TestBackgroundCallsUseTheUsersSampling(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say("Noted.") })
	ask := func(want string) {
		t.Helper()
		model, err := s.MemoryModel(t.Context(), nodesttest.Ann, "")
		s.Must(err)
		_, err = model.Ask(t.Context(), llm.Prompt{Text: "Facts?", MaxTokens: 100})
		s.Must(err)
		all := fake.Requests()
		if got := samplingFields(t, all[len(all)-1]); got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
	ask("max_tokens=100")
	temperature, topP, tokens := 0.7, 0.9, 9000
	_, err := s.Characters.PutUserSettings(t.Context(), s.Call(), character.UserSettings{TurnOptions: character.TurnOptions{
		Temperature: &temperature, TopP: &topP, MaxTokens: &tokens, Stop: []string{"}"},
	}}, 0)
	s.Must(err)
	ask("temperature=0.7 top_p=0.9 max_tokens=100")
}

// The preset sets the context size, which may exceed the default where the size of
// the model is unknown.
func TestThePresetSetsTheContext(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	s.RealModel.ContextTokens = 0
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say("Yes.") })
	c := s.Chat()
	long := strings.Repeat("word ", 700)
	for range 4 {
		s.Await(s.Say(c, long).GenerationID)
	}
	preset := func(context string) {
		s.bindPreset(c.CharacterID, `{"prompts":[{"identifier":"chatHistory","marker":true}],"openai_max_tokens":50,"openai_max_context":`+context+`}`)
	}
	words := func() int {
		p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "Again"})
		s.Must(err)
		n := 0
		for _, m := range p.Messages {
			n += strings.Count(m.Text, "word ")
		}
		return n
	}
	if n := words(); n != 4*700 {
		t.Fatalf("without a preset the request has %d words", n)
	}
	preset("1000")
	if n := words(); n != 700 {
		t.Errorf("with a context of 1000 tokens the request has %d words, want one message", n)
	}
	preset("100000")
	for range 50 {
		s.Await(s.Say(c, long).GenerationID)
	}
	if n := words(); n != 54*700 {
		t.Errorf("with a context of 100,000 tokens the request has %d words, want all", n)
	}
}
