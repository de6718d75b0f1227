package store_test

import (
	"encoding/json"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
)

func init() {
	variables := func(read func(nodest.Tx) (json.RawMessage, error)) func(*env, nodest.Tx, fixture) error {
		return func(e *env, tx nodest.Tx, _ fixture) error {
			got, err := read(tx)
			return wantEmpty(e, string(got) == "{}", err)
		}
	}
	addIntrusions(map[string]func(e *env, tx nodest.Tx, x fixture) error{
		"InsertPlay": func(e *env, tx nodest.Tx, x fixture) error {
			if err := tx.Chats.InsertPlay(&chat.Play{ID: x.play, ConversationID: x.conversation, Variables: []byte(`{"intruder":1}`)}); err == nil {
				e.Error("a state was stored in another user's chat")
			}
			return errRefused
		},
		"Play": func(e *env, tx nodest.Tx, x fixture) error {
			_, err := tx.Chats.Play(x.play)
			return wantNotFound(e, err)
		},
		"Plays": func(e *env, tx nodest.Tx, x fixture) error {
			_, err := tx.Chats.Plays(x.conversation, "", 0)
			return wantNotFound(e, err)
		},
		"PlayAt": func(e *env, tx nodest.Tx, x fixture) error {
			got, err := tx.Chats.PlayAt(x.conversation, x.message)
			return wantEmpty(e, got == "", err)
		},
		"KeepPlay": func(e *env, tx nodest.Tx, x fixture) error {
			return wantNotFound(e, tx.Chats.KeepPlay(x.conversation, x.message, id()))
		},
		"Variables":     variables(func(tx nodest.Tx) (json.RawMessage, error) { return tx.Characters.Variables() }),
		"LockVariables": variables(func(tx nodest.Tx) (json.RawMessage, error) { return tx.Characters.LockVariables() }),
		"PutVariables": func(e *env, tx nodest.Tx, x fixture) error {
			return tx.Characters.PutVariables([]byte(`{"intruder":1}`))
		},
	})
}

// errRefused ends the transaction of an intrusion that the database has refused.
var errRefused = fault.New(fault.Conflict, "refused")
