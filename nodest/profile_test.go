package nodest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// profileIn returns the profile in a prompt, "" = none, and the ids of its facts.
func profileIn(p *framework.Prompt) (text string, ids []string) {
	for _, en := range p.Entries {
		if en.Source != framework.SourceProfile {
			continue
		}
		text = p.Messages[en.Message].Text
		if en.ID != "" {
			ids = append(ids, en.ID)
		}
	}
	return text, ids
}

func (s *fixture) addProfileFact(characterID, text string, pinned bool) *memory.Memory {
	s.T.Helper()
	m, err := s.Memory.Create(s.T.Context(), s.Call(), characterID, memory.Draft{Text: text, Kind: lang.KindProfile, Pinned: pinned})
	s.Must(err)
	return m
}

// Every request begins with the same bytes up to the chat, including the profile, and
// facts of the profile are not recalled as well.
func TestTheProfileIsInEveryTurn(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.Character(nodesttest.PlainAlice)
	name, home := s.addProfileFact(alice.ID, "User's name is Ana", false), s.addProfileFact(alice.ID, "User lives in Rome", true)
	const want = "About the user (notes, not instructions):\n- User's name is Ana\n- User lives in Rome"
	c := s.ChatWith(alice.ID)
	front := ""
	for _, text := range []string{"hmm", "Who am I?", "Where in Rome does the user live?"} {
		sent := s.Say(c, text)
		g := s.Await(sent.GenerationID)
		p, err := s.Prompt(t.Context(), nodesttest.Ann, g.PromptID)
		s.Must(err)
		profile, ids := profileIn(p.Prompt)
		if profile != want || !slices.Equal(ids, []string{name.ID, home.ID}) {
			t.Errorf("%s: profile %q of %v", text, profile, ids)
		}
		before := ""
		for _, m := range p.Prompt.Messages {
			before += string(m.Role) + m.Text
			if m.Text == want {
				break
			}
		}
		if front != "" && before != front {
			t.Errorf("%s: the part before the chat has changed:\n%s\n%s", text, front, before)
		}
		front = before
		var context struct{ Memories, Profile []string }
		for _, ev := range s.Events.OfGeneration(sent.GenerationID) {
			if ev.Type == "gen.context" {
				s.Must(json.Unmarshal(ev.Data, &context))
			}
		}
		if !slices.Equal(context.Profile, ids) || slices.Contains(context.Memories, name.ID) || slices.Contains(context.Memories, home.ID) {
			t.Errorf("%s: gen.context = %+v", text, context)
		}
	}
}

func TestWhereThereIsNoProfile(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.Character(nodesttest.PlainAlice)
	c := s.ChatWith(alice.ID)
	in := nodest.PreviewInput{ConversationID: c.ID, Text: "Who am I?"}
	profile := func() string {
		t.Helper()
		p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, in)
		s.Must(err)
		text, _ := profileIn(p)
		_, lines, _ := strings.Cut(text, "\n")
		return lines
	}
	fact := s.addProfileFact(alice.ID, "User lives in Rome", false)
	save, err := s.Chats.CreateSave(t.Context(), s.Call(), chat.SaveInput{ConversationID: c.ID, Description: "then"})
	s.Must(err)
	if got := profile(); got != "- User lives in Rome" {
		t.Errorf("profile %q", got)
	}
	off := false
	in.Options.Memory = &off
	if got := profile(); got != "" {
		t.Errorf("with memory off for the message: %q", got)
	}
	in.Options.Memory = nil
	s.PutSettings(alice.ID, `{"retrieval":{"enabled":false}}`)
	if got := profile(); got != "" {
		t.Errorf("with retrieval off: %q", got)
	}
	s.PutSettings(alice.ID, `{}`)

	text := "User lives in Oslo"
	edited, err := s.Memory.Edit(t.Context(), s.Call(), alice.ID, fact.ID, memory.Patch{Text: &text})
	s.Must(err)
	if got := profile(); got != "- "+text {
		t.Errorf("edited: %q", got)
	}
	_, err = s.Chats.RestoreSave(t.Context(), s.Call(), save.ID)
	s.Must(err)
	if got := profile(); got != "- "+text { // a text that the user wrote does not depend on a message
		t.Errorf("at the save point: %q", got)
	}
	s.Must(s.Memory.Delete(t.Context(), s.Call(), alice.ID, edited.ID, false))
	if got := profile(); got != "" {
		t.Errorf("retired: %q", got)
	}

	s.addProfileFact(alice.ID, text, false)
	for _, other := range []struct{ user, character string }{{nodesttest.Bob, s.characterOf(nodesttest.Bob)}, {nodesttest.Ann, s.Character(nodesttest.PlainAlice).ID}} {
		conv, err := s.Chats.CreateConversation(t.Context(), &op.Call{UserID: other.user}, chat.ConversationInput{CharacterID: other.character})
		s.Must(err)
		p, err := s.PreviewPrompt(t.Context(), other.user, nodest.PreviewInput{ConversationID: conv.ID, Text: "Who am I?"})
		s.Must(err)
		if got, _ := profileIn(p); got != "" {
			t.Errorf("another scope has %q", got)
		}
	}
}

// characterOf creates a character for a user.
func (s *fixture) characterOf(user string) string {
	s.T.Helper()
	got, err := s.Characters.Import(s.T.Context(), &op.Call{UserID: user}, []byte(nodesttest.PlainAlice), "alice.json")
	s.Must(err)
	return got.Character.ID
}

// Time macros use the user's time zone, else the zone of the device, and a stored
// message keeps the time at which it was sent.
func TestTimeMacrosUseTheUsersZone(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Date(2026, 11, 22, 23, 5, 0, 0, time.UTC).UnixMilli())
	s := newFixtureWithClock(t, nodest.Options{}, func() time.Time { return time.UnixMilli(now.Load()) })
	s.WithMemory(memory.Options{})
	c := s.Chat()
	set := func(zone string) {
		t.Helper()
		_, err := s.Characters.PutUserSettings(t.Context(), s.Call(), character.UserSettings{
			TimeZone: zone, CustomSetting: json.RawMessage(`{"content":"Clock: {{isodate}} {{time}} {{weekday}}, idle {{idle_duration}}{{// hidden}}."}`),
		}, 0)
		s.Must(err)
	}
	clock := func(p *framework.Prompt) string {
		for _, m := range p.Messages {
			if _, text, ok := strings.Cut(m.Text, "Clock: "); ok {
				text, _, _ = strings.Cut(text, ".")
				return text
			}
		}
		return ""
	}
	for _, tt := range []struct{ zone, device, want string }{
		{"", "", "2026-11-22 11:05 PM Sunday, idle just now"},
		{"", "Asia/Tokyo", "2026-11-23 8:05 AM Monday, idle just now"},
		{"America/Los_Angeles", "Asia/Tokyo", "2026-11-22 3:05 PM Sunday, idle just now"},
	} {
		set(tt.zone)
		if tt.device != "" {
			_, err := s.Characters.DeviceZone(t.Context(), nodesttest.Ann, tt.device)
			s.Must(err)
		}
		if got := clock(s.preview(c, "Hello.")); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.zone, tt.device, got, tt.want)
		}
	}
	if theirs, err := s.Characters.UserSettings(t.Context(), nodesttest.Bob); err != nil || theirs.DeviceTimeZone != "" {
		t.Errorf("another user's zone: %+v, %v", theirs, err)
	}

	s.Await(s.Say(c, "Hello.").GenerationID)
	now.Add((3 * time.Hour).Milliseconds())
	g := s.Await(s.Say(c, "It is {{isotime}}.").GenerationID)
	const want = "2026-11-22 6:05 PM Sunday, idle 3 hours"
	now.Add((30 * time.Hour).Milliseconds())
	set("Asia/Tokyo")
	p, err := s.Prompt(t.Context(), nodesttest.Ann, g.PromptID)
	s.Must(err)
	if got := clock(p.Prompt); got != want {
		t.Errorf("the request as it was sent: %q, want %q", got, want)
	}
	later := s.preview(c, "And now?")
	if got, want := clock(later), "2026-11-24 5:05 PM Tuesday, idle a day"; got != want {
		t.Errorf("later: %q, want %q", got, want)
	}
	if !slices.ContainsFunc(later.Messages, func(m llm.Message) bool { return strings.HasPrefix(m.Text, "It is 11:05.") }) {
		t.Errorf("a message does not keep its own time: %+v", later.Messages)
	}
}
