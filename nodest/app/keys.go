package app

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/character"
	"nodest/chat"
	"nodest/circle"
	"nodest/internal/fault"
	"nodest/internal/op"
)

const maxAppKey = 255 // characters

// checkKeys refuses keys that the app itself would refuse; that of a character may be "".
func checkKeys(conversation, character string) error {
	if err := checkKey("conversationId", conversation); err != nil || character == "" {
		return err
	}
	return checkKey("characterId", character)
}

func checkKey(field, key string) error {
	switch {
	case key == "":
		return fault.InvalidField(field, "required", "required")
	case !utf8.ValidString(key):
		return fault.InvalidField(field, "encoding", "must be valid UTF-8")
	case utf8.RuneCountInString(key) > maxAppKey:
		return fault.InvalidField(field, "range", "must have at most %d characters", maxAppKey)
	case strings.ContainsAny(key, `<>:"|?*/\`), strings.Contains(key, ".."), strings.ContainsFunc(key, unicode.IsControl):
		return fault.InvalidField(field, "format", `must not contain < > : " | ? * / \ .. or control characters`)
	}
	return nil
}

// find finds a conversation by the app's key or by our id.
func find(tx Tx, key string) (*chat.Conversation, error) {
	id, err := tx.AppChat(key)
	if fault.Is(err, fault.NotFound) {
		id, err = key, nil
	}
	if err != nil {
		return nil, err
	}
	conv, err := tx.Chats.Conversation(id)
	if fault.Is(err, fault.NotFound) {
		return nil, missing("conversationId", "conversation", "this conversationId",
			"; or continue (同一角色继续对话) with characterId, the app's key or our id of a character that is there")
	}
	return conv, err
}

// named finds a character by the app's key, by that of a conversation with it, or by our id.
func named(tx Tx, field, key string) (*character.Character, error) {
	id, err := characterOf(tx, key)
	if fault.Is(err, fault.NotFound) {
		id, err = key, nil
	}
	if err != nil {
		return nil, err
	}
	ch, err := tx.Characters.Character(id)
	if fault.Is(err, fault.NotFound) {
		return nil, missing(field, "character", "it as characterId", "")
	}
	return ch, err
}

// characterOf is our id of the character that a key of the app stands for.
func characterOf(tx Tx, key string) (id string, err error) {
	id, err = tx.AppCharacter(key)
	if !fault.Is(err, fault.NotFound) {
		return id, err
	}
	if id, err = tx.AppChat(key); err != nil {
		return "", err
	}
	conv, err := tx.Chats.Conversation(id)
	if err != nil {
		return "", err
	}
	return conv.CharacterID, nil
}

// missing says which call has to come first.
func missing(field, what, as, otherwise string) error {
	detail := fmt.Sprintf("there is no such %s yet; first send POST /api/v1/nodest/chat with the status 新建角色 (create), %s and the character in jsonString%s",
		what, as, otherwise)
	f := fault.New(fault.NotFound, "%s: %s", field, detail)
	f.Fields = []fault.Field{{Field: field, Code: "unknown", Detail: detail}}
	return f
}

// knowsKey reports whether a key of a character, which may be "", is one that the app need not be
// asked about again: it stands for a character, or has the form of our ids.
func knowsKey(tx Tx, key string) (bool, error) {
	if key == "" || op.HasIDForm(key) {
		return true, nil
	}
	_, err := characterOf(tx, key)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return true, err
}

// learnKey makes a key of the app that stands for no character that of ch.
func learnKey(tx Tx, key string, ch *character.Character) error {
	known, err := knowsKey(tx, key)
	if err != nil || known {
		return err
	}
	return tx.PutAppCharacter(key, ch.ID)
}

// CharacterID is our id of the character that the user's app calls by key.
//
// Errors: NotFound.
func (svc *Service) CharacterID(ctx context.Context, userID, key string) (string, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (string, error) { return characterOf(tx, key) })
}

// userInApp is what the original app calls its only user.
const userInApp = "user-1"

// NameInCircle puts our ids in the place of those that the app has for the author and the
// responder of an interaction. The app's user is the account.
//
// Errors: NotFound with the field, and the call that has to come first; Invalid for a post of the
// user that no character is to react to.
func (svc *Service) NameInCircle(ctx context.Context, userID string, in *circle.Interaction) error {
	return svc.store.View(ctx, userID, func(tx Tx) error {
		author, responder := in.Content.AuthorID, in.ResponderID
		if responder != "" {
			ch, err := named(tx, "responderId", responder)
			if err != nil {
				return err
			}
			responder = ch.ID
		}
		if author != "" && author != userID {
			ch, err := named(tx, "content.authorId", author)
			switch {
			case err == nil:
				author = ch.ID
			case fault.Is(err, fault.NotFound) && author == userInApp:
				author = userID
			default:
				return err
			}
		}
		if responder == "" && author == userID {
			return fault.InvalidField("responderId", "required", "required: the character that reacts to what the user shows it")
		}
		in.Content.AuthorID, in.ResponderID = author, responder
		return nil
	})
}
