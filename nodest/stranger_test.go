package nodest_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/op"
)

// Every operation with an id of another user answers NotFound, changes nothing and
// publishes no event.
func TestOtherUsersObjectsAnswerNotFound(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 2)
	resources := map[character.ResourceKind]string{}
	for _, kind := range kinds {
		r, err := h.Characters.CreateResource(t.Context(), h.call(), kind, character.ResourceInput{Document: documents[kind]})
		must(t, err)
		resources[kind] = r.ID
	}
	ch, message := conv.CharacterID, all[2].ID
	_, err := h.Characters.PutAvatar(t.Context(), h.call(), ch, pngOfSize(t, 2, 2))
	must(t, err)
	own, err := h.Characters.Create(t.Context(), &op.Call{UserID: stranger}, character.Input{})
	must(t, err)
	mine, err := h.Chats.CreateConversation(t.Context(), &op.Call{UserID: stranger}, chat.ConversationInput{CharacterID: own.ID})
	must(t, err)
	h.takeEventTypes()

	title := "x"
	bob := character.Input{RoleCard: json.RawMessage(`{"name":"Bob"}`)}
	operations := map[string]func(ctx context.Context, c *op.Call) error{
		"character": func(ctx context.Context, c *op.Call) error { return errOf(h.Characters.Get(ctx, c.UserID, ch)) },
		"update character": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Characters.Update(ctx, c, ch, bob, true, 0))
		},
		"delete character": func(ctx context.Context, c *op.Call) error { return h.DeleteCharacter(ctx, c, ch) },
		"avatar":           func(ctx context.Context, c *op.Call) error { return errOf(h.Characters.Avatar(ctx, c.UserID, ch)) },
		"put avatar": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Characters.PutAvatar(ctx, c, ch, pngOfSize(t, 2, 2)))
		},
		"character settings": func(ctx context.Context, c *op.Call) error {
			_, _, err := h.Characters.Settings(ctx, c.UserID, ch)
			return err
		},
		"put character settings": func(ctx context.Context, c *op.Call) error {
			_, _, err := h.Characters.PutSettings(ctx, c, ch, json.RawMessage(`{}`), 0)
			return err
		},
		"export character": func(ctx context.Context, c *op.Call) error {
			_, _, _, err := h.Characters.Export(ctx, c.UserID, ch, "json", "")
			return err
		},
		"create conversation": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.CreateConversation(ctx, c, chat.ConversationInput{CharacterID: ch}))
		},
		"create conversation with persona": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.CreateConversation(ctx, c, chat.ConversationInput{CharacterID: own.ID, PersonaID: resources[character.Persona]}))
		},
		"conversation": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.Conversation(ctx, c.UserID, conv.ID))
		},
		"update conversation": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.UpdateConversation(ctx, c, chat.ConversationPatch{ID: conv.ID, Title: &title}))
		},
		"delete conversation": func(ctx context.Context, c *op.Call) error { return h.DeleteConversation(ctx, c, conv.ID) },
		"choose head": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.ChooseHead(ctx, c, conv.ID, all[1].ID))
		},
		"choose a foreign head": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.ChooseHead(ctx, c, mine.ID, all[1].ID))
		},
		"history": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.History(ctx, c.UserID, conv.ID, "", 0))
		},
		"history before a foreign message": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.History(ctx, c.UserID, mine.ID, message, 0))
		},
		"history after a foreign message": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.HistoryAfter(ctx, c.UserID, mine.ID, message, 0))
		},
		"show a foreign message": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.ShowMessage(ctx, c, mine.ID, message))
		},
		"import chat": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Archives.ImportChat(ctx, c, ch, []byte(smallLog), "x.jsonl"))
		},
		"fork": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.Fork(ctx, c, chat.ForkInput{ConversationID: conv.ID}))
		},
		"fork a foreign message": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.Fork(ctx, c, chat.ForkInput{ConversationID: mine.ID, MessageID: message}))
		},
		"branches": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.Branches(ctx, c.UserID, conv.ID, "", 0))
		},
		"tree": func(ctx context.Context, c *op.Call) error { return errOf(h.Chats.Tree(ctx, c.UserID, conv.ID)) },
		"search": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.Search(ctx, c.UserID, chat.SearchInput{Query: "a", ConversationID: conv.ID}))
		},
		"export archive": func(ctx context.Context, c *op.Call) error {
			_, _, err := written(ctx, h.Archives.ExportArchive, c.UserID, conv.ID)
			return err
		},
		"import archive": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Archives.ImportArchive(ctx, c, ch, []byte(smallArchive)))
		},
		"export chat": func(ctx context.Context, c *op.Call) error {
			_, _, err := written(ctx, h.Archives.ExportChat, c.UserID, conv.ID)
			return err
		},
		"message": func(ctx context.Context, c *op.Call) error { return errOf(h.Chats.Message(ctx, c.UserID, message)) },
		"edit": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Edit(ctx, c, chat.EditInput{MessageID: message, Text: "x"}))
		},
		"swipe": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Swipe(ctx, c, chat.SwipeInput{MessageID: message, Swipe: "next", GenerateIfLast: true}))
		},
		"delete message": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Chats.DeleteMessage(ctx, c, message, "after"))
		},
		"restore message": func(ctx context.Context, c *op.Call) error { return errOf(h.Chats.RestoreMessage(ctx, c, message)) },
		"put settings": func(ctx context.Context, c *op.Call) error {
			return errOf(h.Characters.PutUserSettings(ctx, c, character.UserSettings{PersonaID: resources[character.Persona]}, 0))
		},
		"ack": func(ctx context.Context, c *op.Call) error {
			return h.Ack(ctx, c, 1, map[string]string{conv.ID: message})
		},
	}
	for _, kind := range kinds {
		id := resources[kind]
		name := " " + string(kind)
		operations["get"+name] = func(ctx context.Context, c *op.Call) error {
			return errOf(h.Characters.Resource(ctx, c.UserID, kind, id))
		}
		operations["update"+name] = func(ctx context.Context, c *op.Call) error {
			return errOf(h.Characters.UpdateResource(ctx, c, kind, id, character.ResourceInput{Name: "x"}, false, 0))
		}
		operations["delete"+name] = func(ctx context.Context, c *op.Call) error { return h.Characters.DeleteResource(ctx, c, kind, id) }
		operations["export"+name] = func(ctx context.Context, c *op.Call) error {
			_, _, err := h.Characters.ExportResource(ctx, c.UserID, kind, id)
			return err
		}
	}
	for name, do := range operations {
		t.Run(name, func(t *testing.T) {
			wantError(t, do(t.Context(), &op.Call{UserID: stranger, Device: "pc", Key: name, Hash: "h"}), fault.NotFound, "")
		})
	}
	if events := h.takeEventTypes(); len(events) != 0 {
		t.Errorf("events = %v, want none", events)
	}
	after, err := h.Chats.Conversation(t.Context(), me, conv.ID)
	must(t, err)
	if after.Version != conv.Version {
		t.Error("the conversation was changed by another request")
	}
}

func TestListsShowOnlyTheUsersOwnObjects(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	h.newChat(t, 0)
	for _, kind := range kinds {
		_, err := h.Characters.CreateResource(t.Context(), h.call(), kind, character.ResourceInput{Document: documents[kind]})
		must(t, err)
		page, err := h.Characters.Resources(t.Context(), stranger, kind, "", 0)
		must(t, err)
		if len(page.Items) != 0 {
			t.Errorf("a stranger sees %d of kind %s", len(page.Items), kind)
		}
	}
	characters, err := h.Characters.List(t.Context(), stranger, character.Filter{}, "", 0)
	must(t, err)
	conversations, err := h.Chats.Conversations(t.Context(), stranger, chat.ConversationFilter{}, "", 0)
	must(t, err)
	snap, err := h.Snapshot(t.Context(), stranger)
	must(t, err)
	if len(characters.Items)+len(conversations.Items)+len(snap.Characters)+len(snap.Conversations) != 0 {
		t.Error("a stranger sees characters or conversations")
	}
}

// Each command sent three times under one idempotency key has one effect and returns
// the same answer each time.
func TestARepeatedCommandHasOneEffect(t *testing.T) {
	t.Parallel()
	type command struct {
		name string
		do   func(h *fixture, c *op.Call, conv *chat.Conversation, all []*chat.Message) (any, error)
	}
	ctx := t.Context()
	title := "other"
	commands := []command{
		{"create character", func(h *fixture, c *op.Call, _ *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.Create(ctx, c, character.Input{RoleCard: json.RawMessage(aliceWithGreetings)})
		}},
		{"import character", func(h *fixture, c *op.Call, _ *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.Import(ctx, c, []byte(aliceWithGreetings), "alice.json")
		}},
		{"update character", func(h *fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.Update(ctx, c, conv.CharacterID, character.Input{Dialect: "sillytavern"}, false, 1)
		}},
		{"delete character", func(h *fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return nil, h.DeleteCharacter(ctx, c, conv.CharacterID)
		}},
		{"put avatar", func(h *fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.PutAvatar(ctx, c, conv.CharacterID, pngOfSize(t, 2, 2))
		}},
		{"put character settings", func(h *fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			_, version, err := h.Characters.PutSettings(ctx, c, conv.CharacterID, json.RawMessage(`{}`), 1)
			return version, err
		}},
		{"create resource", func(h *fixture, c *op.Call, _ *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.CreateResource(ctx, c, character.Persona, character.ResourceInput{Document: documents[character.Persona]})
		}},
		{"put settings", func(h *fixture, c *op.Call, _ *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.PutUserSettings(ctx, c, character.UserSettings{UserName: "Mia"}, 0)
		}},
		{"create conversation", func(h *fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Chats.CreateConversation(ctx, c, chat.ConversationInput{CharacterID: conv.CharacterID})
		}},
		{"import chat", func(h *fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Archives.ImportChat(ctx, c, conv.CharacterID, []byte(smallLog), "x.jsonl")
		}},
		{"update conversation", func(h *fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Chats.UpdateConversation(ctx, c, chat.ConversationPatch{ID: conv.ID, Title: &title, IfVersion: conv.Version})
		}},
		{"delete conversation", func(h *fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return nil, h.DeleteConversation(ctx, c, conv.ID)
		}},
		{"choose head", func(h *fixture, c *op.Call, conv *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Chats.ChooseHead(ctx, c, conv.ID, all[0].ID)
		}},
		{"edit", func(h *fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Edit(ctx, c, chat.EditInput{MessageID: all[1].ID, Text: "x", IfRev: 1})
		}},
		{"swipe", func(h *fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Swipe(ctx, c, chat.SwipeInput{MessageID: all[0].ID, Swipe: "next"})
		}},
		{"delete message", func(h *fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Chats.DeleteMessage(ctx, c, all[1].ID, "after")
		}},
		{"delete swipe", func(h *fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Chats.DeleteMessage(ctx, c, all[0].ID, "swipe")
		}},
		{"restore message", func(h *fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Chats.RestoreMessage(ctx, c, all[1].ID)
		}},
		{"ack", func(h *fixture, c *op.Call, conv *chat.Conversation, all []*chat.Message) (any, error) {
			return nil, h.Ack(ctx, c, 1, map[string]string{conv.ID: all[1].ID})
		}},
	}
	h := newChatFixture(t)
	for _, cmd := range commands {
		t.Run(cmd.name, func(t *testing.T) {
			ch := h.character(aliceWithGreetings)
			conv, err := h.Chats.CreateConversation(ctx, h.call(), chat.ConversationInput{CharacterID: ch.ID})
			must(t, err)
			conv = h.addMessage(t, conv.ID, conv.HeadID, "hi")
			page, err := h.Chats.History(ctx, me, conv.ID, "", 0)
			must(t, err)
			h.takeEventTypes()

			c := h.call()
			first, err := cmd.do(h, c, conv, page.Items)
			must(t, err)
			events := h.takeEventTypes()
			if c.Replayed {
				t.Error("the first call says that it is a repetition")
			}
			for range 2 {
				c := retryOf(c)
				answer, err := cmd.do(h, c, conv, page.Items)
				must(t, err)
				if !c.Replayed || !slices.Equal(asJSON(t, answer), asJSON(t, first)) {
					t.Errorf("repeated: %v, %s\nwant %s", c.Replayed, asJSON(t, answer), asJSON(t, first))
				}
			}
			if more := h.takeEventTypes(); len(more) != 0 {
				t.Errorf("the repetitions published %v after %v", more, events)
			}
			other := retryOf(c)
			other.Hash = "other"
			_, err = cmd.do(h, other, conv, page.Items)
			wantError(t, err, fault.KeyReused, "")
		})
	}
}
