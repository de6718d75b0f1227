package character

import (
	"context"
	"encoding/json"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// Limits of variables that macros set: those of a chat, and those that all chats of a user share. A prompt
// with a hundred variables has a few kilobytes.
const (
	MaxVariables  = 256 << 10 // bytes of the object
	mostVariables = 5_000
	maxVariable   = 256 // bytes of a name
)

// Variables returns those that macros share in all chats of the user ({{getglobalvar::x}}): an object of
// values by name.
func (svc *Service) Variables(ctx context.Context, userID string) (json.RawMessage, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (json.RawMessage, error) { return tx.Variables() })
}

// PutVariables replaces them; null removes all.
//
// Errors: Invalid with the field for what is no object, or too large.
func (svc *Service) PutVariables(ctx context.Context, c *op.Call, variables json.RawMessage) (json.RawMessage, error) {
	if len(variables) == 0 {
		return nil, fault.InvalidField("variables", "required", "required")
	}
	if err := CheckVariables("variables", variables); err != nil {
		return nil, err
	}
	if op.IsNull(variables) {
		variables = json.RawMessage("{}")
	}
	return variables, op.Do(ctx, svc.store, c, func(tx Tx) error {
		if _, err := tx.LockVariables(); err != nil {
			return err
		}
		return tx.PutVariables(variables)
	})
}

// CheckVariables refuses variables that are no object, or beyond the limits. null passes.
func CheckVariables(field string, doc json.RawMessage) error {
	if op.IsNull(doc) {
		return nil
	}
	if err := op.CheckKind(field, doc, "{"); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := op.DecodeLenient(field, doc, &members); err != nil {
		return err
	}
	if len(doc) > MaxVariables || len(members) > mostVariables {
		return fault.InvalidField(field, "range", "must have at most %d members and %s", mostVariables, fault.Size(MaxVariables))
	}
	for name := range members {
		if name == "" || len(name) > maxVariable {
			return fault.InvalidField(field, "range", "names must have 1 to %d bytes", maxVariable)
		}
	}
	return nil
}
