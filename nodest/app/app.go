package app

import (
	"context"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
)

// statuses are the statuses of the app, and English words for them.
var statuses = map[string]string{
	StatusNewCharacter: StatusNewCharacter, "create": StatusNewCharacter,
	StatusSameChat: StatusSameChat, "continue": StatusSameChat,
	StatusUpdateCard: StatusUpdateCard, "update": StatusUpdateCard,
}

// characterUpdated is what the app expects after an update of its character.
const characterUpdated = "Character updated successfully"

// Chat serves the app's processChatMessage.
//
// 新建角色 makes a character of JSONString and a conversation under the app's key,
// and answers with its greeting. Keys in use are moved to the new character and conversation;
// the old ones stay.
//
// 更新人设 replaces the documents in JSONString, and removes those that are null. The
// history stays.
//
// 同一角色继续对话 sends UserMessage and waits for the reply. If the key has no
// conversation yet, one is created with the character CharacterID. The end of ctx ends
// the waiting but not the reply: a repeated call returns it.
//
// The app's key of a character is the CharacterID that 新建角色 gives it, or else its
// ConversationID; later calls may give it further ones.
//
// CustomUserName becomes the character's name for the user.
//
// Errors: Invalid with the field; NotFound for a key without a conversation or a character,
// with the call that has to come first; those of CreateCharacter and Send; the failure of the reply.
func (svc *Service) Chat(ctx context.Context, c *op.Call, in Request) (*Answer, error) {
	status, ok := statuses[in.Status]
	if !ok {
		unknown := fault.New(fault.Invalid, "Unknown status") // the app's words
		unknown.Fields = []fault.Field{{Field: "status", Code: "enum", Detail: unknown.Message}}
		return nil, unknown
	}
	if err := checkKeys(in.ConversationID, in.CharacterID); err != nil {
		return nil, err
	}
	if err := op.CheckLine("customUserName", in.CustomUserName, maxCalledName); err != nil {
		return nil, err
	}
	if status == StatusSameChat {
		return svc.goOn(ctx, c, in)
	}
	docs, err := readDocuments(in.JSONString)
	if err != nil {
		return nil, err
	}
	given, err := docs.input(in.IsCradleGeneration)
	if err != nil {
		return nil, err
	}
	prepared, err := given.Prepare(status == StatusNewCharacter)
	if err != nil {
		return nil, err
	}
	if status == StatusNewCharacter {
		return svc.create(ctx, c, in, docs, prepared)
	}
	return svc.update(ctx, c, in, prepared)
}

// maxCalledName is how long the user's name for a character may be, in code points; as in the
// character's settings.
const maxCalledName = 100

func (svc *Service) update(ctx context.Context, c *op.Call, in Request, prepared *character.Checked) (*Answer, error) {
	return op.LastWins(ctx, svc.store, c, 0, func(tx Tx) (*Answer, error) {
		conv, err := find(tx, in.ConversationID)
		if err != nil {
			return nil, err
		}
		ch, err := tx.Characters.Character(conv.CharacterID)
		if err != nil {
			return nil, err
		}
		if _, err := ch.SetUserName(in.CustomUserName); err != nil {
			return nil, err
		}
		if err := character.PutDocuments(tx.Characters, c, ch, prepared); err != nil {
			return nil, err
		}
		return &Answer{Response: characterUpdated, ConversationID: conv.ID, CharacterID: ch.ID}, learnKey(tx, in.CharacterID, ch)
	})
}

func (svc *Service) goOn(ctx context.Context, c *op.Call, in Request) (*Answer, error) {
	if err := op.CheckText("userMessage", in.UserMessage, chat.MaxText); err != nil {
		return nil, err
	}
	conv, err := svc.target(ctx, c, in)
	if err != nil {
		return nil, err
	}
	sent, err := svc.engine.Send(ctx, c, nodest.SendInput{
		ConversationID: conv.ID, Text: in.UserMessage, APIKey: in.APIKey, App: true,
		Options: character.TurnOptions{Provider: in.Provider, UseToolCalls: in.UseToolCalls, SearchEnabled: in.UseToolCalls},
	})
	if err != nil {
		return nil, err
	}
	text, err := svc.reply(ctx, c, sent.GenerationID)
	if err != nil {
		return nil, err
	}
	return &Answer{
		Response: text, ConversationID: conv.ID, CharacterID: conv.CharacterID, MessageID: sent.Message.ID,
	}, nil
}

// target finds the conversation that the app continues. It creates the conversation, sets the
// character's name for the user and learns the app's key of the character if necessary; a
// repeated call finds all of it done.
func (svc *Service) target(ctx context.Context, c *op.Call, in Request) (*chat.Conversation, error) {
	var conv *chat.Conversation
	ready := false
	err := svc.store.View(ctx, c.UserID, func(tx Tx) (err error) {
		conv, ready, err = readyChat(tx, c, in)
		return err
	})
	if err != nil || ready {
		return conv, err
	}
	before := c.Part("chat")
	return op.LastWins(ctx, svc.store, before, 0, func(tx Tx) (*chat.Conversation, error) {
		// A lock: of two first messages at the same time, one begins the conversation.
		if _, err := tx.ClaimKey("app chat "+in.ConversationID, ""); err != nil {
			return nil, err
		}
		conv, ch, err := chatAndCharacter(tx, in)
		if err != nil {
			return nil, err
		}
		if changed, err := ch.SetUserName(in.CustomUserName); err != nil {
			return nil, err
		} else if changed {
			if err := character.Put(tx.Characters, before, ch); err != nil {
				return nil, err
			}
		}
		if conv != nil {
			return conv, learnKey(tx, in.CharacterID, ch)
		}
		n := &newcomer{key: in.ConversationID, ch: ch}
		err = n.insert(tx, before, nil)
		return n.conv, err
	})
}

// chatAndCharacter finds the conversation that a message continues and its character. conv is nil
// if the message begins a conversation with the character that it names.
func chatAndCharacter(tx Tx, in Request) (conv *chat.Conversation, ch *character.Character, err error) {
	conv, err = find(tx, in.ConversationID)
	switch {
	case err == nil:
		ch, err = tx.Characters.Character(conv.CharacterID)
	case fault.Is(err, fault.NotFound) && in.CharacterID != "":
		ch, err = named(tx, "characterId", in.CharacterID)
	}
	return conv, ch, err
}

// readyChat is the conversation that a call continues; false if it has to be created, or
// its character has another name for the user or a key that is not known yet.
func readyChat(tx Tx, c *op.Call, in Request) (conv *chat.Conversation, ready bool, err error) {
	conv, err = find(tx, in.ConversationID)
	if fault.Is(err, fault.NotFound) && in.CharacterID != "" {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if known, err := knowsKey(tx, in.CharacterID); err != nil || !known {
		return conv, false, err
	}
	if in.CustomUserName == "" {
		return conv, true, nil
	}
	if c.Key != "" {
		known, err := tx.Key(c.Key)
		if err != nil || known != nil { // a repeated call: the name may have changed since
			return conv, true, err
		}
	}
	ch, err := tx.Characters.Character(conv.CharacterID)
	if err != nil {
		return nil, false, err
	}
	changed, err := ch.SetUserName(in.CustomUserName)
	return conv, !changed, err
}

// reply waits for the end of a generation and returns its text, also if it was stopped.
func (svc *Service) reply(ctx context.Context, c *op.Call, generationID string) (string, error) {
	g, err := svc.engine.Wait(ctx, c.UserID, generationID)
	if err != nil {
		return "", err
	}
	switch {
	case g.Status == chat.GenDone, g.Status == chat.GenCancelled && g.HasText():
		return g.Text, nil
	case g.Error != nil:
		return "", g.Error
	case g.Status == chat.GenCancelled:
		return "", fault.New(fault.Cancelled, "the reply was cancelled")
	}
	return "", fault.New(fault.ShuttingDown, "the server shut down while the reply was being written")
}
