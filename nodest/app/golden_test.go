package app_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/sharedtest"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/nodest/nodesttest"
)

type historyVector = sharedtest.Vector[historyOp, json.RawMessage]

// historyOp is the input of a vector of history_ops.
type historyOp struct {
	Op                                      string
	Parts                                   []json.RawMessage
	Args                                    []json.RawMessage
	RoleCard, Preset, WorldBook, AuthorNote json.RawMessage
	UserName                                string
}

// historyResult is the result of an operation, in a form that can be compared.
type historyResult struct {
	OK     *bool
	Result *string
	Parts  []goldenMessage
	Sent   []goldenSent
}

type goldenMessage struct {
	Role     string
	Parts    []struct{ Text string }
	FirstMes bool `json:"is_first_mes"`
	Inserted bool `json:"is_d_entry"`
}

type goldenSent struct{ Role, Text string }

const goldenUser = "阿泽"

// expect reads the wanted result of a vector. The engine stores no inserted entries,
// uses one name for both of the character's roles, and expands the user's name in a
// greeting when it is stored.
func expect(t *testing.T, v historyVector, user string) historyResult {
	t.Helper()
	var want historyResult
	nodesttest.Must(t, json.Unmarshal([]byte(strings.ReplaceAll(string(v.Output), "{{user}}", user)), &want))
	want.Parts = cleanParts(want.Parts)
	return want
}

func cleanParts(parts []goldenMessage) []goldenMessage {
	clean := []goldenMessage{}
	for _, p := range parts {
		if p.Inserted {
			continue
		}
		if p.Role == "assistant" {
			p.Role = "model"
		}
		clean = append(clean, p)
	}
	return clean
}

// The golden history operations give the recorded results through the engine and the
// store: a character is created with the history of the vector, the operation is
// called, and the resulting history is compared.
func TestGoldenHistoryOps(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*testing.T) []byte{
		"recorded": func(t *testing.T) []byte { return sharedtest.Read(t, "golden/nodest/history_ops.json") },
		"own": func(t *testing.T) []byte {
			return nodesttest.ReadFile(t, filepath.Join("testdata", "history_ops.json"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			vectors := sharedtest.Vectors[historyOp, json.RawMessage](t, read(t))
			card := anyCard(vectors)
			sharedtest.Each(t, vectors, func(t *testing.T, v historyVector) { runHistoryOp(t, v, card) })
		})
	}
}

// anyCard is the card for vectors that were recorded without one.
func anyCard(vectors []historyVector) json.RawMessage {
	for _, v := range vectors {
		if v.Input.RoleCard != nil {
			return v.Input.RoleCard
		}
	}
	return nil
}

func runHistoryOp(t *testing.T, v historyVector, card json.RawMessage) {
	in := v.Input
	if in.RoleCard == nil {
		in.RoleCard = card
	}
	if in.UserName == "" {
		in.UserName = goldenUser
	}
	s := newFixture(t, nodest.Options{})
	made, err := s.Apps.Chat(t.Context(), s.Call(), app.Request{
		ConversationID: "golden", Status: app.StatusNewCharacter, CustomUserName: in.UserName,
		JSONString: nodesttest.AsJSON(t, map[string]any{
			"roleCard": in.RoleCard, "preset": in.Preset, "worldBook": in.WorldBook, "authorNote": in.AuthorNote,
			"chatHistory": map[string]any{"parts": in.Parts},
		}),
	})
	nodesttest.Must(t, err)
	s.useAppPrompt(t, made.ConversationID)

	want, got := expect(t, v, in.UserName), historyResult{}
	if in.Op == "updateChatHistory" {
		s.exchange(t, made.ConversationID, in)
	} else {
		done := s.historyOp(t, in)
		if want.OK != nil {
			got.OK = &done.OK
		}
		if want.Result != nil {
			got.Result = &done.Response
		}
	}
	shown, err := s.Apps.History(t.Context(), s.Call(), app.HistoryRequest{ConversationID: "golden", Action: app.ActionGet})
	nodesttest.Must(t, err)
	var history struct{ Parts []goldenMessage }
	nodesttest.Must(t, json.Unmarshal(shown.History, &history))
	got.Parts = cleanParts(history.Parts)
	asked := s.Model.AllRequests()
	if in.Op == app.ActionRegenerate && len(asked) > 0 {
		got.Sent = sentOf(asked[len(asked)-1])
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", nodesttest.AsJSON(t, got), nodesttest.AsJSON(t, want))
	}
}

// useAppPrompt gives the character of a conversation the settings of the recorded
// vectors: Chinese texts, and only the card fields that the preset lists.
func (s *fixture) useAppPrompt(t *testing.T, conversationID string) {
	t.Helper()
	conv, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, conversationID)
	nodesttest.Must(t, err)
	raw, _, err := s.Characters.Settings(t.Context(), nodesttest.Ann, conv.CharacterID)
	nodesttest.Must(t, err)
	var set map[string]map[string]any
	nodesttest.Must(t, json.Unmarshal(raw, &set))
	set["prompt"]["language"], set["prompt"]["cardFields"] = "zh", "listed"
	_, _, err = s.Characters.PutSettings(t.Context(), s.Call(), conv.CharacterID, nodesttest.AsJSON(t, set), 0)
	nodesttest.Must(t, err)
}

// historyOp calls an operation by index.
func (s *fixture) historyOp(t *testing.T, in historyOp) *app.HistoryAnswer {
	t.Helper()
	call := app.HistoryRequest{ConversationID: "golden", Action: in.Op}
	switch {
	case in.Op == app.ActionRestore:
		call.History = in.Args[0]
	case len(in.Args) > 0:
		nodesttest.Must(t, json.Unmarshal(in.Args[0], &call.Index))
		if len(in.Args) > 1 {
			nodesttest.Must(t, json.Unmarshal(in.Args[1], &call.Text)) // null = no wish
		}
	}
	s.Model.Enqueue(nodesttest.Reply("NEW", " REPLY"))
	done, err := s.Apps.History(t.Context(), s.Call(), call)
	nodesttest.Must(t, err)
	return done
}

// exchange has the model answer a user message. If the history already ends with that
// message, it is answered there.
func (s *fixture) exchange(t *testing.T, conversationID string, in historyOp) {
	t.Helper()
	var said, reply string
	nodesttest.Must(t, json.Unmarshal(in.Args[0], &said))
	nodesttest.Must(t, json.Unmarshal(in.Args[1], &reply))
	s.Model.Enqueue(nodesttest.Reply(reply))
	page, err := s.Chats.History(t.Context(), nodesttest.Ann, conversationID, "", 1)
	nodesttest.Must(t, err)
	if last := page.Items[0]; last.Role == chat.RoleUser && last.Text() == said {
		done, err := s.Edit(t.Context(), s.Call(), chat.EditInput{MessageID: last.ID, Text: said, Regenerate: true})
		nodesttest.Must(t, err)
		s.Await(done.GenerationID)
		return
	}
	_, err = s.Apps.Chat(t.Context(), s.Call(), app.Request{
		ConversationID: "golden", Status: app.StatusSameChat, UserMessage: said,
	})
	nodesttest.Must(t, err)
}

func sentOf(req llm.Request) []goldenSent {
	var sent []goldenSent
	for _, m := range req.Messages {
		role := "user"
		if m.Role == llm.Assistant {
			role = "model"
		}
		sent = append(sent, goldenSent{role, m.Text})
	}
	return sent
}
