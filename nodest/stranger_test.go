package nodest_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest/nodesttest"
)

// Every operation with an id of another user answers NotFound, changes nothing and
// publishes no event.
func TestOtherUsersObjectsAnswerNotFound(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 2)
	resources := map[character.ResourceKind]string{}
	for _, kind := range nodesttest.Kinds {
		r, err := h.Characters.CreateResource(t.Context(), h.Call(), kind, character.ResourceInput{Document: nodesttest.Documents[kind]})
		nodesttest.Must(t, err)
		resources[kind] = r.ID
	}
	ch, message := conv.CharacterID, all[2].ID
	_, err := h.Characters.PutAvatar(t.Context(), h.Call(), ch, nodesttest.PNGOfSize(t, 2, 2))
	nodesttest.Must(t, err)
	own, err := h.Characters.Create(t.Context(), &op.Call{UserID: nodesttest.Bob}, character.Input{})
	nodesttest.Must(t, err)
	mine, err := h.Chats.CreateConversation(t.Context(), &op.Call{UserID: nodesttest.Bob}, chat.ConversationInput{CharacterID: own.ID})
	nodesttest.Must(t, err)
	h.TakeEventTypes()

	title := "x"
	bob := character.Input{RoleCard: json.RawMessage(`{"name":"Bob"}`)}
	operations := map[string]func(ctx context.Context, c *op.Call) error{
		"character": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Characters.Get(ctx, c.UserID, ch))
		},
		"update character": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Characters.Update(ctx, c, ch, bob, true, 0))
		},
		"delete character": func(ctx context.Context, c *op.Call) error { return h.DeleteCharacter(ctx, c, ch) },
		"avatar": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Characters.Avatar(ctx, c.UserID, ch))
		},
		"put avatar": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Characters.PutAvatar(ctx, c, ch, nodesttest.PNGOfSize(t, 2, 2)))
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
			return nodesttest.ErrOf(h.Chats.CreateConversation(ctx, c, chat.ConversationInput{CharacterID: ch}))
		},
		"create conversation with persona": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.CreateConversation(ctx, c, chat.ConversationInput{CharacterID: own.ID, PersonaID: resources[character.Persona]}))
		},
		"conversation": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.Conversation(ctx, c.UserID, conv.ID))
		},
		"update conversation": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.UpdateConversation(ctx, c, chat.ConversationPatch{ID: conv.ID, Title: &title}))
		},
		"delete conversation": func(ctx context.Context, c *op.Call) error { return h.DeleteConversation(ctx, c, conv.ID) },
		"choose head": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.ChooseHead(ctx, c, conv.ID, all[1].ID))
		},
		"choose a foreign head": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.ChooseHead(ctx, c, mine.ID, all[1].ID))
		},
		"history": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.History(ctx, c.UserID, conv.ID, "", 0))
		},
		"history before a foreign message": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.History(ctx, c.UserID, mine.ID, message, 0))
		},
		"history after a foreign message": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.HistoryAfter(ctx, c.UserID, mine.ID, message, 0))
		},
		"show a foreign message": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.ShowMessage(ctx, c, mine.ID, message))
		},
		"import chat": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Archives.ImportChat(ctx, c, ch, []byte(nodesttest.SmallLog), "x.jsonl"))
		},
		"fork": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.Fork(ctx, c, chat.ForkInput{ConversationID: conv.ID}))
		},
		"fork a foreign message": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.Fork(ctx, c, chat.ForkInput{ConversationID: mine.ID, MessageID: message}))
		},
		"branches": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.Branches(ctx, c.UserID, conv.ID, "", 0))
		},
		"tree": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.Tree(ctx, c.UserID, conv.ID))
		},
		"search": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.Search(ctx, c.UserID, chat.SearchInput{Query: "a", ConversationID: conv.ID}))
		},
		"export archive": func(ctx context.Context, c *op.Call) error {
			_, _, err := nodesttest.Written(ctx, h.Archives.ExportArchive, c.UserID, conv.ID)
			return err
		},
		"import archive": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Archives.ImportArchive(ctx, c, ch, []byte(nodesttest.SmallArchive)))
		},
		"export chat": func(ctx context.Context, c *op.Call) error {
			_, _, err := nodesttest.Written(ctx, h.Archives.ExportChat, c.UserID, conv.ID)
			return err
		},
		"message": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.Message(ctx, c.UserID, message))
		},
		"edit": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Edit(ctx, c, chat.EditInput{MessageID: message, Text: "x"}))
		},
		"swipe": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Swipe(ctx, c, chat.SwipeInput{MessageID: message, Swipe: "next", GenerateIfLast: true}))
		},
		"delete message": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.DeleteMessage(ctx, c, message, "after"))
		},
		"restore message": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Chats.RestoreMessage(ctx, c, message))
		},
		"put settings": func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Characters.PutUserSettings(ctx, c, character.UserSettings{PersonaID: resources[character.Persona]}, 0))
		},
		"ack": func(ctx context.Context, c *op.Call) error {
			return h.Ack(ctx, c, 1, map[string]string{conv.ID: message})
		},
	}
	for _, kind := range nodesttest.Kinds {
		id := resources[kind]
		name := " " + string(kind)
		operations["get"+name] = func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Characters.Resource(ctx, c.UserID, kind, id))
		}
		operations["update"+name] = func(ctx context.Context, c *op.Call) error {
			return nodesttest.ErrOf(h.Characters.UpdateResource(ctx, c, kind, id, character.ResourceInput{Name: "x"}, false, 0))
		}
		operations["delete"+name] = func(ctx context.Context, c *op.Call) error { return h.Characters.DeleteResource(ctx, c, kind, id) }
		operations["export"+name] = func(ctx context.Context, c *op.Call) error {
			_, _, err := h.Characters.ExportResource(ctx, c.UserID, kind, id)
			return err
		}
	}
	for name, do := range operations {
		t.Run(name, func(t *testing.T) {
			nodesttest.WantError(t, do(t.Context(), &op.Call{UserID: nodesttest.Bob, Device: "pc", Key: name, Hash: "h"}), fault.NotFound, "")
		})
	}
	if events := h.TakeEventTypes(); len(events) != 0 {
		t.Errorf("events = %v, want none", events)
	}
	after, err := h.Chats.Conversation(t.Context(), nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	if after.Version != conv.Version {
		t.Error("the conversation was changed by another request")
	}
}

func TestListsShowOnlyTheUsersOwnObjects(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	h.NewChat(t, 0)
	for _, kind := range nodesttest.Kinds {
		_, err := h.Characters.CreateResource(t.Context(), h.Call(), kind, character.ResourceInput{Document: nodesttest.Documents[kind]})
		nodesttest.Must(t, err)
		page, err := h.Characters.Resources(t.Context(), nodesttest.Bob, kind, "", 0)
		nodesttest.Must(t, err)
		if len(page.Items) != 0 {
			t.Errorf("a stranger sees %d of kind %s", len(page.Items), kind)
		}
	}
	characters, err := h.Characters.List(t.Context(), nodesttest.Bob, character.Filter{}, "", 0)
	nodesttest.Must(t, err)
	conversations, err := h.Chats.Conversations(t.Context(), nodesttest.Bob, chat.ConversationFilter{}, "", 0)
	nodesttest.Must(t, err)
	snap, err := h.Snapshot(t.Context(), nodesttest.Bob)
	nodesttest.Must(t, err)
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
		do   func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, all []*chat.Message) (any, error)
	}
	ctx := t.Context()
	title := "other"
	commands := []command{
		{"create character", func(h *nodesttest.Fixture, c *op.Call, _ *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.Create(ctx, c, character.Input{RoleCard: json.RawMessage(nodesttest.AliceWithGreetings)})
		}},
		{"import character", func(h *nodesttest.Fixture, c *op.Call, _ *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.Import(ctx, c, []byte(nodesttest.AliceWithGreetings), "alice.json")
		}},
		{"update character", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.Update(ctx, c, conv.CharacterID, character.Input{Dialect: "sillytavern"}, false, 1)
		}},
		{"delete character", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return nil, h.DeleteCharacter(ctx, c, conv.CharacterID)
		}},
		{"put avatar", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.PutAvatar(ctx, c, conv.CharacterID, nodesttest.PNGOfSize(t, 2, 2))
		}},
		{"put character settings", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			_, version, err := h.Characters.PutSettings(ctx, c, conv.CharacterID, json.RawMessage(`{}`), 1)
			return version, err
		}},
		{"create resource", func(h *nodesttest.Fixture, c *op.Call, _ *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.CreateResource(ctx, c, character.Persona, character.ResourceInput{Document: nodesttest.Documents[character.Persona]})
		}},
		{"put settings", func(h *nodesttest.Fixture, c *op.Call, _ *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Characters.PutUserSettings(ctx, c, character.UserSettings{UserName: "Mia"}, 0)
		}},
		{"create conversation", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Chats.CreateConversation(ctx, c, chat.ConversationInput{CharacterID: conv.CharacterID})
		}},
		{"import chat", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Archives.ImportChat(ctx, c, conv.CharacterID, []byte(nodesttest.SmallLog), "x.jsonl")
		}},
		{"update conversation", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return h.Chats.UpdateConversation(ctx, c, chat.ConversationPatch{ID: conv.ID, Title: &title, IfVersion: conv.Version})
		}},
		{"delete conversation", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, _ []*chat.Message) (any, error) {
			return nil, h.DeleteConversation(ctx, c, conv.ID)
		}},
		{"choose head", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Chats.ChooseHead(ctx, c, conv.ID, all[0].ID)
		}},
		{"edit", func(h *nodesttest.Fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Edit(ctx, c, chat.EditInput{MessageID: all[1].ID, Text: "x", IfRev: 1})
		}},
		{"swipe", func(h *nodesttest.Fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Swipe(ctx, c, chat.SwipeInput{MessageID: all[0].ID, Swipe: "next"})
		}},
		{"delete message", func(h *nodesttest.Fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Chats.DeleteMessage(ctx, c, all[1].ID, "after")
		}},
		{"delete swipe", func(h *nodesttest.Fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Chats.DeleteMessage(ctx, c, all[0].ID, "swipe")
		}},
		{"restore message", func(h *nodesttest.Fixture, c *op.Call, _ *chat.Conversation, all []*chat.Message) (any, error) {
			return h.Chats.RestoreMessage(ctx, c, all[1].ID)
		}},
		{"ack", func(h *nodesttest.Fixture, c *op.Call, conv *chat.Conversation, all []*chat.Message) (any, error) {
			return nil, h.Ack(ctx, c, 1, map[string]string{conv.ID: all[1].ID})
		}},
	}
	h := nodesttest.NewWithoutModel(t)
	for _, cmd := range commands {
		t.Run(cmd.name, func(t *testing.T) {
			ch := h.Character(nodesttest.AliceWithGreetings)
			conv, err := h.Chats.CreateConversation(ctx, h.Call(), chat.ConversationInput{CharacterID: ch.ID})
			nodesttest.Must(t, err)
			conv = h.AddMessage(t, conv.ID, conv.HeadID, "hi")
			page, err := h.Chats.History(ctx, nodesttest.Ann, conv.ID, "", 0)
			nodesttest.Must(t, err)
			h.TakeEventTypes()

			c := h.Call()
			first, err := cmd.do(h, c, conv, page.Items)
			nodesttest.Must(t, err)
			events := h.TakeEventTypes()
			if c.Replayed {
				t.Error("the first call says that it is a repetition")
			}
			for range 2 {
				c := nodesttest.RetryOf(c)
				answer, err := cmd.do(h, c, conv, page.Items)
				nodesttest.Must(t, err)
				if !c.Replayed || !slices.Equal(nodesttest.AsJSON(t, answer), nodesttest.AsJSON(t, first)) {
					t.Errorf("repeated: %v, %s\nwant %s", c.Replayed, nodesttest.AsJSON(t, answer), nodesttest.AsJSON(t, first))
				}
			}
			if more := h.TakeEventTypes(); len(more) != 0 {
				t.Errorf("the repetitions published %v after %v", more, events)
			}
			other := nodesttest.RetryOf(c)
			other.Hash = "other"
			_, err = cmd.do(h, other, conv, page.Items)
			nodesttest.WantError(t, err, fault.KeyReused, "")
		})
	}
}
