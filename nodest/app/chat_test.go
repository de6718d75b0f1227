package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/nodest/nodesttest"
)

const idasCard = `{"name":"Ida","first_mes":"Come in, {{user}}. I am {{char}}.","description":"Keeps a tea house.","unknown":[1]}`

// appDocuments are the documents of Ida as an app sends them.
func appDocuments(more string) json.RawMessage {
	return json.RawMessage(`{"roleCard":` + idasCard + more + `}`)
}

// createInApp creates Ida and a conversation under the key "app-1".
func (s *fixture) createInApp(more string) *app.Answer {
	s.T.Helper()
	answer, err := s.Apps.Chat(s.T.Context(), s.Call(), app.Request{
		ConversationID: "app-1", Status: app.StatusNewCharacter, CustomUserName: "Mo", JSONString: appDocuments(more),
	})
	s.Must(err)
	return answer
}

// sendInApp continues the conversation "app-1".
func (s *fixture) sendInApp(text string) *app.Answer {
	s.T.Helper()
	answer, err := s.Apps.Chat(s.T.Context(), s.Call(), app.Request{
		ConversationID: "app-1", Status: app.StatusSameChat, UserMessage: text,
	})
	s.Must(err)
	return answer
}

// countObjects counts ann's characters and conversations.
func (s *fixture) countObjects() (characters, conversations int) {
	s.T.Helper()
	all, err := s.Characters.List(s.T.Context(), nodesttest.Ann, character.Filter{}, "", 200)
	s.Must(err)
	chats, err := s.Chats.Conversations(s.T.Context(), nodesttest.Ann, chat.ConversationFilter{}, "", 200)
	s.Must(err)
	return len(all.Items), len(chats.Items)
}

func TestAppCreatesACharacterAndAChat(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(string(appDocuments(`,"extraGreetings":["Tea?"]`)))
	nodesttest.Must(t, err)
	for name, documents := range map[string]json.RawMessage{
		"an object": appDocuments(`,"extraGreetings":["Tea?"]`), "the text of one": text,
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			cradle := true
			answer, err := s.Apps.Chat(t.Context(), s.Call(), app.Request{
				ConversationID: "app-1", Status: "create", CustomUserName: "Mo", JSONString: documents, IsCradleGeneration: &cradle,
			})
			nodesttest.Must(t, err)
			if want := "Come in, Mo. I am Ida."; answer.Response != want {
				t.Errorf("response = %q, want %q", answer.Response, want)
			}
			ch, err := s.Characters.Get(t.Context(), nodesttest.Ann, answer.CharacterID)
			nodesttest.Must(t, err)
			nodesttest.SameJSON(t, "card", ch.RoleCard, []byte(idasCard))
			if ch.Name != "Ida" || !ch.IsCradle || ch.Dialect != "nodest" {
				t.Errorf("character = %+v", ch)
			}
			conv, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, answer.ConversationID)
			nodesttest.Must(t, err)
			first := s.Message(answer.MessageID)
			if conv.HeadID != first.ID || first.Text() != answer.Response || !first.Greeting || len(first.Swipes) != 2 {
				t.Errorf("greeting = %+v", first)
			}
			if n := len(s.Model.AllRequests()); n != 0 {
				t.Errorf("the model received %d requests", n)
			}
		})
	}
}

func TestAppDefaultsForMissingDocuments(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, documents, greeting, character, sent string }{
		{"nothing at all", `{}`, "Hello!", "Unnamed Character", "This character has missing information."},
		{"a card without a name", `{"roleCard":{"description":"Tall."}}`, "Hello!", "Unnamed Character", "Tall."},
		{"no world book", `{"roleCard":{"name":"Ida","personality":"patient"}}`, "Hello!", "Ida", "<personality>patient</personality>"},
		{"no preset", `{"roleCard":{"name":"Ida"}}`, "Hello!", "Ida", "[Understood]"},
		{"a preset without a place for the chat", `{"worldBook":{"entries":{}},"preset":{"prompts":[{"identifier":"a","name":"A","content":"Only this."}],
			"prompt_order":[{"order":[{"identifier":"a","enabled":true}]}]}}`, "Hello!", "Unnamed Character", "[user] Only this.\n[user] This character has missing information.\n[assistant] Hello!"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			answer, err := s.Apps.Chat(t.Context(), s.Call(), app.Request{
				ConversationID: "app-1", Status: app.StatusNewCharacter, JSONString: json.RawMessage(tt.documents),
			})
			nodesttest.Must(t, err)
			ch, err := s.Characters.Get(t.Context(), nodesttest.Ann, answer.CharacterID)
			nodesttest.Must(t, err)
			if answer.Response != tt.greeting || ch.Name != tt.character {
				t.Errorf("%q says %q, want %q and %q", ch.Name, answer.Response, tt.character, tt.greeting)
			}
			s.sendInApp("Good evening")
			if !strings.Contains(s.Model.LastRequest(), tt.sent) {
				t.Errorf("the request lacks %q:\n%s", tt.sent, s.Model.LastRequest())
			}
		})
	}
}

func TestAppImportsAHistory(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ given, want string }{
		"the greeting comes first": {`{"role":"user","parts":[{"text":"Rain"}]},{"role":"model","parts":[{"text":"Yes"}]}`,
			"model*: Come in, Mo. I am Ida. | user: Rain | model: Yes"},
		"a greeting is not doubled": {`{"role":"model","is_first_mes":true,"parts":[{"text":"Welcome"}]},{"role":"user","parts":[{"text":"Rain"}]}`,
			"model*: Welcome | user: Rain"},
		"what a prompt inserted is left out": {`{"role":"user","is_d_entry":true,"parts":[{"text":"E"}]},{"role":"user","parts":[{"text":"Rain"},{"text":"again"}]},
			{"is_chat_history_placeholder":true,"parts":[]}`, "model*: Come in, Mo. I am Ida. | user: Rain\nagain"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			answer := s.createInApp(`,"chatHistory":{"parts":[` + tt.given + `]}`)
			if got := s.readAppHistory(); got != tt.want {
				t.Errorf("history = %s\nwant      %s", got, tt.want)
			}
			if answer.Response != "Come in, Mo. I am Ida." || !s.Message(answer.MessageID).Greeting {
				t.Errorf("answer = %+v", answer)
			}
		})
	}
}

func TestAppKeyNamesTheNewestConversation(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	first := s.createInApp("")
	s.sendInApp("Rain")
	second := s.createInApp("")
	if first.ConversationID == second.ConversationID || first.CharacterID == second.CharacterID {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if got := s.readAppHistory(); got != "model*: Come in, Mo. I am Ida." {
		t.Errorf("history = %s", got)
	}
	answer, err := s.Apps.Chat(t.Context(), s.Call(), app.Request{
		ConversationID: first.ConversationID, Status: "continue", UserMessage: "Still there?",
	})
	nodesttest.Must(t, err)
	if answer.ConversationID != first.ConversationID {
		t.Errorf("our id leads to %s, want %s", answer.ConversationID, first.ConversationID)
	}
	nodesttest.Must(t, s.DeleteConversation(t.Context(), s.Call(), second.ConversationID))
	_, err = s.Apps.Chat(t.Context(), s.Call(), app.Request{ConversationID: "app-1", Status: "continue", UserMessage: "Rain"})
	nodesttest.WantError(t, err, fault.NotFound, "conversationId")
}

func TestARepeatedAppCallHasOneEffect(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.createInApp("")
	other := s.Character(nodesttest.PlainAlice)
	for name, in := range map[string]app.Request{
		"create":            {ConversationID: "app-2", Status: "create", JSONString: appDocuments("")},
		"update":            {ConversationID: "app-1", Status: "update", JSONString: appDocuments("")},
		"continue":          {ConversationID: "app-1", Status: "continue", UserMessage: "Rain", CustomUserName: "Jo"},
		"continue of a new": {ConversationID: "app-3", Status: "continue", UserMessage: "Rain", CharacterID: other.ID, CustomUserName: "Jo"},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.Call()
			first, err := s.Apps.Chat(t.Context(), c, in)
			nodesttest.Must(t, err)
			characters, chats := s.countObjects()
			asked := len(s.Model.AllRequests())
			version := s.version(first.CharacterID)
			twice := nodesttest.RetryOf(c)
			second, err := s.Apps.Chat(t.Context(), twice, in)
			nodesttest.Must(t, err)
			if *second != *first || !twice.Replayed {
				t.Errorf("the second answer is %+v (replayed: %v), the first %+v", second, twice.Replayed, first)
			}
			if nowCharacters, nowChats := s.countObjects(); nowCharacters != characters || nowChats != chats {
				t.Errorf("%d characters and %d conversations, before %d and %d", nowCharacters, nowChats, characters, chats)
			}
			if now := len(s.Model.AllRequests()); now != asked {
				t.Errorf("the model was asked %d times, before %d", now, asked)
			}
			if now := s.version(first.CharacterID); now != version {
				t.Errorf("the character is at version %d, before %d", now, version)
			}
		})
	}
}

func (s *fixture) version(characterID string) int64 {
	s.T.Helper()
	ch, err := s.Characters.Get(s.T.Context(), nodesttest.Ann, characterID)
	s.Must(err)
	return ch.Version
}

func TestAppUpdatesTheCharacterAndKeepsTheHistory(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	made := s.createInApp(`,"authorNote":{"content":"Be brief."},"worldBook":{"entries":{"0":{"content":"The cups are blue.","position":4}}}`)
	s.sendInApp("Rain")
	before := s.readAppHistory()
	answer, err := s.Apps.Chat(t.Context(), s.Call(), app.Request{
		ConversationID: "app-1", Status: app.StatusUpdateCard,
		JSONString: json.RawMessage(`{"roleCard":{"name":"Ida","first_mes":"Hm?","description":"Sells umbrellas."},"authorNote":null}`),
	})
	nodesttest.Must(t, err)
	if answer.Response != "Character updated successfully" || answer.CharacterID != made.CharacterID || s.readAppHistory() != before {
		t.Errorf("answer %+v, history %s\nbefore %s", answer, s.readAppHistory(), before)
	}
	s.sendInApp("And now?")
	sent := s.Model.LastRequest()
	if !strings.Contains(sent, "Sells umbrellas.") || strings.Contains(sent, "Keeps a tea house.") || strings.Contains(sent, "Be brief.") {
		t.Errorf("the request has not the new documents:\n%s", sent)
	}
	if !strings.Contains(sent, "The cups are blue.") {
		t.Errorf("the book is gone, though it was not sent:\n%s", sent)
	}
}

func TestAppContinuesTheChat(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.createInApp("")
	search := true
	s.Model.Enqueue(nodesttest.Reply("Wet", ", yes."))
	answer, err := s.Apps.Chat(t.Context(), s.Call(), app.Request{
		ConversationID: "app-1", Status: app.StatusSameChat, UserMessage: "Rain, {{user}} says.", CustomUserName: "Jo", UseToolCalls: &search,
		CharacterID: "a name of the app",
	})
	nodesttest.Must(t, err)
	if answer.Response != "Wet, yes." || s.Message(answer.MessageID).Text() != "Wet, yes." {
		t.Errorf("answer = %+v", answer)
	}
	g := s.Generation(s.Message(answer.MessageID).GenerationID)
	if o := g.Options; o.SearchEnabled == nil || !*o.SearchEnabled || o.UseToolCalls == nil || !*o.UseToolCalls {
		t.Errorf("options = %+v, want search on", g.Options)
	}
	if !strings.Contains(s.Model.LastRequest(), "Rain, Jo says.") {
		t.Errorf("the user has another name:\n%s", s.Model.LastRequest())
	}
	s.sendInApp("More, {{user}}?")
	if !strings.Contains(s.Model.LastRequest(), "More, Jo?") {
		t.Errorf("the name is forgotten:\n%s", s.Model.LastRequest())
	}
}

func TestAppStartsAChatWithAnExistingCharacter(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.Character(nodesttest.PlainAlice)
	answer, err := s.Apps.Chat(t.Context(), s.Call(), app.Request{
		ConversationID: "app-1", Status: "continue", UserMessage: "Hello", CharacterID: ch.ID,
	})
	nodesttest.Must(t, err)
	if answer.CharacterID != ch.ID || s.readAppHistory() != "model*: Hello, traveller. | user: Hello | model: Fine." {
		t.Errorf("answer %+v, history %s", answer, s.readAppHistory())
	}
	if s.sendInApp("Again").ConversationID != answer.ConversationID {
		t.Error("the key names another conversation")
	}
}

func TestAppReportsWhyAReplyFailed(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.createInApp("")
	s.Model.Enqueue(nodesttest.Reply().Failing(llm.Upstream("scripted", fault.UpstreamDown, 503, nil)))
	c := s.Call()
	in := app.Request{ConversationID: "app-1", Status: "continue", UserMessage: "Rain"}
	_, err := s.Apps.Chat(t.Context(), c, in)
	s.WantCode(err, fault.UpstreamDown)
	_, err = s.Apps.Chat(t.Context(), nodesttest.RetryOf(c), in)
	s.WantCode(err, fault.UpstreamDown)
	s.sendInApp("Rain")
	if got := s.readAppHistory(); got != "model*: Come in, Mo. I am Ida. | user: Rain | model: Fine." {
		t.Errorf("history = %s", got)
	}
	_, err = s.Apps.Chat(t.Context(), s.Call(), app.Request{ConversationID: "app-1", Status: "continue", UserMessage: "x", Provider: "missing"})
	s.WantCode(err, fault.NotConfigured)
}

func TestAppReturnsThePartialTextOfACancelledReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.createInApp("")
	half := nodesttest.Reply("Half", " a word").Gated()
	s.Model.Enqueue(half)
	answered := make(chan *app.Answer)
	c := s.Call()
	go func() {
		answer, err := s.Apps.Chat(t.Context(), c, app.Request{ConversationID: "app-1", Status: "continue", UserMessage: "Rain"})
		if err != nil {
			t.Error(err)
		}
		answered <- answer
	}()
	<-half.Started
	half.Step(1)
	var id string
	s.Eventually("the reply is stored, which the model does not wait for", func() bool {
		active, err := s.Active(t.Context(), nodesttest.Ann)
		nodesttest.Must(t, err)
		for _, a := range active {
			id = a.Generation.ID
		}
		return id != ""
	})
	s.Eventually("a piece arrives", func() bool { return s.Events.Deltas(t, id, "text", 0) == "Half" })
	_, err := s.Cancel(t.Context(), nodesttest.Ann, id)
	nodesttest.Must(t, err)
	if answer := <-answered; answer == nil || answer.Response != "Half" {
		t.Errorf("answer = %+v", answer)
	}
}

func TestAppUsesAnAPIKeyForOneRequestOnly(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	keys := &keyRecorder{ScriptedModels: nodesttest.ScriptedModels{ScriptedModel: s.Model}}
	s.Engine = nodesttest.NewEngine(s.DB, keys, s.Events, s.Options)
	t.Cleanup(func() { nodesttest.Must(t, s.Close(context.WithoutCancel(t.Context()))) })
	s.createInApp("")
	const secret = "sk-for-once"
	in := app.Request{ConversationID: "app-1", Status: "continue", UserMessage: "Rain", APIKey: secret}
	_, err := s.Apps.Chat(t.Context(), s.Call(), in)
	nodesttest.Must(t, err)
	s.sendInApp("More")
	_, err = s.Apps.History(t.Context(), s.Call(), app.HistoryRequest{
		ConversationID: "app-1", Action: app.ActionRegenerate, Index: new(2), APIKey: secret,
	})
	nodesttest.Must(t, err)
	if got := keys.used(); got != "sk-for-once,,sk-for-once" {
		t.Errorf("keys = %s", got)
	}
	for _, ev := range s.Events.All() {
		if strings.Contains(string(ev.Data), secret) {
			t.Errorf("%s contains the key", ev.Type)
		}
	}
}

// keyRecorder records the API keys that models are resolved with.
type keyRecorder struct {
	nodesttest.ScriptedModels
	mu   sync.Mutex
	keys []string
}

func (k *keyRecorder) Resolve(ctx context.Context, userID, provider, model, apiKey string) (nodest.Model, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = append(k.keys, apiKey)
	return k.ScriptedModels.Resolve(ctx, userID, provider, model, apiKey)
}

func (k *keyRecorder) used() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.keys, ",")
}

func TestAppRefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.createInApp("")
	tests := []struct {
		name  string
		in    app.Request
		code  fault.Code
		field string
	}{
		{"an unknown status", app.Request{ConversationID: "app-1", Status: "x"}, fault.Invalid, "status"},
		{"no status", app.Request{ConversationID: "app-1"}, fault.Invalid, "status"},
		{"no key", app.Request{Status: "continue"}, fault.Invalid, "conversationId"},
		{"a key like a path", app.Request{ConversationID: "../x", Status: "continue"}, fault.Invalid, "conversationId"},
		{"a key with dots", app.Request{ConversationID: "a..b", Status: "continue"}, fault.Invalid, "conversationId"},
		{"a key that a file cannot have", app.Request{ConversationID: "a|b", Status: "continue"}, fault.Invalid, "conversationId"},
		{"a key of two lines", app.Request{ConversationID: "a\nb", Status: "continue"}, fault.Invalid, "conversationId"},
		{"a long key", app.Request{ConversationID: strings.Repeat("x", 256), Status: "continue"}, fault.Invalid, "conversationId"},
		{"a new character from nothing", app.Request{ConversationID: "a", Status: "create"}, fault.Invalid, "jsonString"},
		{"a text that is no JSON", app.Request{ConversationID: "a", Status: "create", JSONString: json.RawMessage(`"{oh"`)}, fault.Invalid, "jsonString"},
		{"a text with something after its JSON", app.Request{ConversationID: "a", Status: "create", JSONString: json.RawMessage(`"{}}]]"`)}, fault.Invalid, "jsonString"},
		{"a text that is nested too deep", app.Request{ConversationID: "a", Status: "create", JSONString: op.MustJSON(`{"roleCard":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}")}, fault.Invalid, "jsonString"},
		{"an array", app.Request{ConversationID: "a", Status: "create", JSONString: json.RawMessage(`[]`)}, fault.Invalid, "jsonString"},
		{"a card that is a text", app.Request{ConversationID: "a", Status: "create", JSONString: json.RawMessage(`{"roleCard":"x"}`)}, fault.Invalid, "jsonString.roleCard"},
		{"a history that is a text", app.Request{ConversationID: "a", Status: "create", JSONString: json.RawMessage(`{"chatHistory":{"parts":"x"}}`)}, fault.Invalid, "jsonString.chatHistory.parts"},
		{"a long name of the user", app.Request{ConversationID: "a", Status: "create", CustomUserName: strings.Repeat("x", 101), JSONString: json.RawMessage(`{}`)}, fault.Invalid, "customUserName"},
		{"an update of an unknown conversation", app.Request{ConversationID: "a", Status: "update", JSONString: json.RawMessage(`{}`)}, fault.NotFound, "conversationId"},
		{"a message to an unknown conversation", app.Request{ConversationID: "a", Status: "continue", UserMessage: "x"}, fault.NotFound, "conversationId"},
		{"a start with an unknown character", app.Request{ConversationID: "a", Status: "continue", UserMessage: "x", CharacterID: "c"}, fault.NotFound, "characterId"},
		{"an empty message", app.Request{ConversationID: "app-1", Status: "continue", UserMessage: " "}, fault.Invalid, "userMessage"},
		{"a message that is too long", app.Request{ConversationID: "app-1", Status: "continue", UserMessage: strings.Repeat("x", chat.MaxText+1)}, fault.TooLarge, ""},
	}
	characters, chats := s.countObjects()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Apps.Chat(t.Context(), s.Call(), tt.in)
			nodesttest.WantError(t, err, tt.code, tt.field)
			if tt.field == "status" {
				var e *fault.Error
				if errors.As(err, &e) && e.Message != "Unknown status" {
					t.Errorf("message = %q, want the app's words", e.Message)
				}
			}
		})
	}
	if nowCharacters, nowChats := s.countObjects(); nowCharacters != characters || nowChats != chats {
		t.Errorf("%d characters and %d conversations, before %d and %d", nowCharacters, nowChats, characters, chats)
	}
}

// Two users may use the same conversation key, and neither can reach the other's
// conversation by any name.
func TestAppKeysBelongToTheirUser(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	made := s.createInApp("")
	his := func() *op.Call { return &op.Call{UserID: nodesttest.Bob, Device: "tv"} }
	for _, key := range []string{"app-1", made.ConversationID} {
		_, err := s.Apps.Chat(t.Context(), his(), app.Request{ConversationID: key, Status: "continue", UserMessage: "x"})
		nodesttest.WantError(t, err, fault.NotFound, "conversationId")
		_, err = s.Apps.Chat(t.Context(), his(), app.Request{ConversationID: key, Status: "update", JSONString: appDocuments("")})
		nodesttest.WantError(t, err, fault.NotFound, "conversationId")
		_, err = s.Apps.History(t.Context(), his(), app.HistoryRequest{ConversationID: key, Action: app.ActionReset})
		nodesttest.WantError(t, err, fault.NotFound, "conversationId")
	}
	_, err := s.Apps.Chat(t.Context(), his(), app.Request{
		ConversationID: "app-1", Status: "continue", UserMessage: "x", CharacterID: made.CharacterID,
	})
	nodesttest.WantError(t, err, fault.NotFound, "characterId")
	theirs, err := s.Apps.Chat(t.Context(), his(), app.Request{ConversationID: "app-1", Status: "create", JSONString: appDocuments("")})
	nodesttest.Must(t, err)
	if theirs.ConversationID == made.ConversationID || s.sendInApp("Rain").ConversationID != made.ConversationID {
		t.Error("the same key of two users names one conversation")
	}
}
