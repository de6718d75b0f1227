package loretool

import (
	"context"
	"slices"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/framework/worldinfo"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// velmar is a card with entries that no key brings in, as SillyTavern exports it.
const velmar = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","description":"A guide.","first_mes":"Hello.",
	"character_book":{"name":"lore","entries":[
	{"id":0,"keys":[],"content":"LIGHT: the lighthouse of Velmar has been dark since the great storm.","insertion_order":1,"enabled":true,"extensions":{"vectorized":true}},
	{"id":1,"keys":[],"content":"ICE: the dragon sleeps beneath a glacier.","insertion_order":2,"enabled":true,"extensions":{"vectorized":true}},
	{"id":2,"keys":[],"content":"ASH: the plague turns skin to ash.","insertion_order":3,"enabled":false,"extensions":{"vectorized":true}},
	{"id":3,"keys":[],"content":"EYE: the king has one eye.","insertion_order":4,"enabled":true,"extensions":{"vectorized":true,"probability":0,"useProbability":true}},
	{"id":4,"keys":["railway"],"content":"NIGHT: the train leaves at two.","insertion_order":5,"enabled":true,"extensions":{}}]}}}`

type turns struct {
	*nodesttest.Fixture
	lore *Service
	chat *chat.Conversation
}

// play begins a chat with a card, with the provider of its user.
func play(t *testing.T, card string, embedder func(context.Context, string) (llm.Embedder, error)) *turns {
	t.Helper()
	s := New(Options{Embedder: embedder, Limit: nodesttest.WaitLimit})
	f := nodesttest.New(t, nodest.Options{Sources: []nodest.Source{s.Source()}})
	t.Cleanup(s.Close)
	got, err := f.Characters.Import(t.Context(), f.Call(), []byte(card), "card.json")
	f.Must(err)
	return &turns{f, s, f.ChatWith(got.Character.ID)}
}

// say sends a message and returns the prompt, and the warnings of the turn.
func (s *turns) say(text string) (prompt string, warnings []string) {
	s.T.Helper()
	reply := s.SayAndWait(s.chat, text)
	if reply.Status != chat.StatusComplete {
		s.T.Fatalf("the reply is %s: %v", reply.Status, reply.Error)
	}
	_, warnings, _ = s.ContextOf(reply.GenerationID)
	return s.Model.LastRequest(), warnings
}

// idle waits until nothing is made in the background.
func (s *Service) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs) == 0
}

// Before the vectors are there, words find an entry; then its meaning does.
func TestATurnFindsEntriesByTheirMeaning(t *testing.T) {
	t.Parallel()
	m := &meaning{t: t, model: "fake:m", gate: make(chan struct{})}
	s := play(t, velmar, only(map[string]*meaning{nodesttest.Ann: m}))
	if prompt, warnings := s.say("Has the wyrm woken?"); strings.Contains(prompt, "ICE") || len(warnings) > 0 {
		t.Errorf("without vectors: %v\n%s", warnings, prompt)
	}
	if prompt, _ := s.say("Why is the lighthouse of Velmar dark?"); !strings.Contains(prompt, "LIGHT") || strings.Contains(prompt, "ICE") {
		t.Errorf("by words:\n%s", prompt)
	}
	close(m.gate)
	s.Eventually("the vectors are made", s.lore.idle)
	if prompt, warnings := s.say("Has the wyrm woken?"); !strings.Contains(prompt, "ICE") || len(warnings) > 0 {
		t.Errorf("by meaning: %v\n%s", warnings, prompt)
	}
	prompt, _ := s.say("What an illness! The monarch of the railway...")
	for text, want := range map[string]bool{"ICE": false, "ASH": false, "EYE": false, "LIGHT": false, "NIGHT": true} {
		if strings.Contains(prompt, text) != want {
			t.Errorf("%s is in the prompt: %v\n%s", text, !want, prompt)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.calls, []int{3}) || slices.ContainsFunc(m.passages, func(p string) bool { return strings.Contains(p, "ASH") || strings.Contains(p, "NIGHT") }) {
		t.Errorf("the provider got %v: %q", m.calls, m.passages)
	}
	if want := []string{"Has the wyrm woken?\nFine.", "What an illness! The monarch of the railway...\nFine."}; !slices.Equal(m.queries, want) {
		t.Errorf("searched with %q", m.queries)
	}
}

// A preview finds what the turn would, and says why.
func TestAPreviewSaysThatAnEntryWasFoundByMeaning(t *testing.T) {
	t.Parallel()
	m := &meaning{t: t, model: "fake:m"}
	s := play(t, velmar, only(map[string]*meaning{nodesttest.Ann: m}))
	s.say("Hello!")
	s.Eventually("the vectors are made", s.lore.idle)
	p, err := s.ExplainPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: s.chat.ID, Text: "Is the monarch near a wyrm?"})
	s.Must(err)
	why := map[string]string{}
	for _, e := range p.World.Verdicts {
		why[e.ID] = e.Why + e.Reason
	}
	want := map[string]string{"lore.1": worldinfo.WhyForced, "lore.3": worldinfo.ReasonProbability, "lore.2": worldinfo.ReasonDisabled}
	for id, w := range want {
		if why[id] != w && !strings.HasSuffix(why[id], w) {
			t.Errorf("%s is %q, want %q", id, why[id], w)
		}
	}
	if !strings.Contains(nodesttest.PromptText(p.Messages), "ICE") {
		t.Errorf("the prompt is %s", nodesttest.PromptText(p.Messages))
	}
}

// A provider that fails costs a warning, and words find what they can.
func TestATurnGoesOnWithoutTheProvider(t *testing.T) {
	t.Parallel()
	m := &meaning{t: t, model: "fake:m", err: fault.New(fault.UpstreamDown, "down")}
	s := play(t, velmar, only(map[string]*meaning{nodesttest.Ann: m}))
	s.say("Hello!")
	s.Eventually("the vectors have failed", s.lore.idle)
	prompt, warnings := s.say("Why is the lighthouse of Velmar dark?")
	if !strings.Contains(prompt, "LIGHT") || !slices.Equal(warnings, []string{"worldinfo_unavailable"}) {
		t.Errorf("%v\n%s", warnings, prompt)
	}
	if passages, queries := m.seen(); passages != 3 || queries != 0 {
		t.Errorf("%d passages and %d queries; a failure is not repeated at once", passages, queries)
	}

	for name, embedder := range map[string]func(context.Context, string) (llm.Embedder, error){
		"the key cannot be read": func(context.Context, string) (llm.Embedder, error) { return nil, fault.New(fault.StorageDown, "away") },
		"there is no key": func(context.Context, string) (llm.Embedder, error) {
			return nil, fault.New(fault.NotConfigured, "none")
		},
	} {
		s := play(t, velmar, embedder)
		prompt, warnings := s.say("Why is the lighthouse of Velmar dark?")
		if !strings.Contains(prompt, "LIGHT") || (len(warnings) > 0) != (name == "the key cannot be read") {
			t.Errorf("%s: %v\n%s", name, warnings, prompt)
		}
	}
}

// A question that cannot be embedded is searched by its words, although entries have vectors.
func TestAFailedQuestionIsSearchedByWords(t *testing.T) {
	t.Parallel()
	m := &meaning{t: t, model: "fake:m"}
	s := play(t, velmar, only(map[string]*meaning{nodesttest.Ann: m}))
	s.say("Hello!")
	s.Eventually("the vectors are made", s.lore.idle)
	m.set(func() { m.err = fault.New(fault.UpstreamDown, "down") })
	prompt, warnings := s.say("Why is the lighthouse of Velmar dark?")
	if !strings.Contains(prompt, "LIGHT") || !slices.Equal(warnings, []string{"worldinfo_unavailable"}) {
		t.Errorf("%v\n%s", warnings, prompt)
	}
}

// The NodeST dialect, and books without such entries, ask nobody.
func TestOtherCharactersAreNotSearched(t *testing.T) {
	t.Parallel()
	m := &meaning{t: t, model: "fake:m"}
	s := play(t, strings.ReplaceAll(velmar, `"vectorized":true`, `"vectorized":false`), only(map[string]*meaning{nodesttest.Ann: m}))
	s.say("Has the wyrm woken?")
	s.chat = s.Chat()
	s.say("Has the wyrm woken?")
	if passages, queries := m.seen(); passages+queries != 0 {
		t.Errorf("%d passages, %d queries", passages, queries)
	}
}
