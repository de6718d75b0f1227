package nodest_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/sharedtest"
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
	must(t, json.Unmarshal([]byte(strings.ReplaceAll(string(v.Output), "{{user}}", user)), &want))
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
		"own":      func(t *testing.T) []byte { return readFile(t, filepath.Join("testdata", "golden", "history_ops.json")) },
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
	made, err := s.Apps.Chat(t.Context(), s.call(), app.Request{
		ConversationID: "golden", Status: app.StatusNewCharacter, CustomUserName: in.UserName,
		JSONString: asJSON(t, map[string]any{
			"roleCard": in.RoleCard, "preset": in.Preset, "worldBook": in.WorldBook, "authorNote": in.AuthorNote,
			"chatHistory": map[string]any{"parts": in.Parts},
		}),
	})
	must(t, err)
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
	shown, err := s.Apps.History(t.Context(), s.call(), app.HistoryRequest{ConversationID: "golden", Action: app.ActionGet})
	must(t, err)
	var history struct{ Parts []goldenMessage }
	must(t, json.Unmarshal(shown.History, &history))
	got.Parts = cleanParts(history.Parts)
	asked := s.model.allRequests()
	if in.Op == app.ActionRegenerate && len(asked) > 0 {
		got.Sent = sentOf(asked[len(asked)-1])
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", asJSON(t, got), asJSON(t, want))
	}
}

// useAppPrompt gives the character of a conversation the settings of the recorded
// vectors: Chinese texts, and only the card fields that the preset lists.
func (s *fixture) useAppPrompt(t *testing.T, conversationID string) {
	t.Helper()
	conv, err := s.Chats.Conversation(t.Context(), ann, conversationID)
	must(t, err)
	raw, _, err := s.Characters.Settings(t.Context(), ann, conv.CharacterID)
	must(t, err)
	var set map[string]map[string]any
	must(t, json.Unmarshal(raw, &set))
	set["prompt"]["language"], set["prompt"]["cardFields"] = "zh", "listed"
	_, _, err = s.Characters.PutSettings(t.Context(), s.call(), conv.CharacterID, asJSON(t, set), 0)
	must(t, err)
}

// historyOp calls an operation by index.
func (s *fixture) historyOp(t *testing.T, in historyOp) *app.HistoryAnswer {
	t.Helper()
	call := app.HistoryRequest{ConversationID: "golden", Action: in.Op}
	switch {
	case in.Op == app.ActionRestore:
		call.History = in.Args[0]
	case len(in.Args) > 0:
		must(t, json.Unmarshal(in.Args[0], &call.Index))
		if len(in.Args) > 1 {
			must(t, json.Unmarshal(in.Args[1], &call.Text)) // null = no wish
		}
	}
	s.model.enqueue(replyWith("NEW", " REPLY"))
	done, err := s.Apps.History(t.Context(), s.call(), call)
	must(t, err)
	return done
}

// exchange has the model answer a user message. If the history already ends with that
// message, it is answered there.
func (s *fixture) exchange(t *testing.T, conversationID string, in historyOp) {
	t.Helper()
	var said, reply string
	must(t, json.Unmarshal(in.Args[0], &said))
	must(t, json.Unmarshal(in.Args[1], &reply))
	s.model.enqueue(replyWith(reply))
	page, err := s.Chats.History(t.Context(), ann, conversationID, "", 1)
	must(t, err)
	if last := page.Items[0]; last.Role == chat.RoleUser && last.Text() == said {
		done, err := s.Edit(t.Context(), s.call(), chat.EditInput{MessageID: last.ID, Text: said, Regenerate: true})
		must(t, err)
		s.wait(done.GenerationID)
		return
	}
	_, err = s.Apps.Chat(t.Context(), s.call(), app.Request{
		ConversationID: "golden", Status: app.StatusSameChat, UserMessage: said,
	})
	must(t, err)
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
