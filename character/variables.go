package character

import (
	"context"
	"encoding/json"

	"nodest/framework/macro"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// MaxVariables bounds the variables that macros set, in bytes of the object: those of a chat, and those that all
// chats of a user share. A prompt with a hundred variables has a few kilobytes.
const MaxVariables = macro.MaxVars

// Variables returns those that macros share in all chats of the user ({{getglobalvar::x}}): an object of
// values by name.
func (svc *Service) Variables(ctx context.Context, userID string) (json.RawMessage, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (json.RawMessage, error) { return tx.Variables() })
}

// PutVariables replaces them; {} removes all.
//
// Errors: Invalid with the field for what is no object, or too large.
func (svc *Service) PutVariables(ctx context.Context, c *op.Call, variables json.RawMessage) (json.RawMessage, error) {
	if op.IsNull(variables) {
		return nil, fault.InvalidField("variables", "required", "must be an object")
	}
	if err := CheckVariables("variables", variables); err != nil {
		return nil, err
	}
	return variables, op.Do(ctx, svc.store, c, func(tx Tx) error {
		if _, err := tx.LockVariables(); err != nil {
			return err
		}
		return tx.PutVariables(variables)
	})
}

// CheckVariables refuses variables that are no object, or beyond the limits, which are those of the macros that
// read them. null passes.
func CheckVariables(field string, doc json.RawMessage) error {
	n, err := checkObject(field, doc)
	if n == 0 || err != nil {
		return err
	}
	read := macro.NewVars(nil)
	if err := op.DecodeLenient(field, doc, read); err != nil {
		return err
	}
	if len(read.All()) < n { // lists and objects are texts to macros, which are longer
		return fault.InvalidField(field, "range", "values must have at most %s, and all of them as texts at most %s", fault.Size(macro.MaxVarValue), fault.Size(MaxVariables))
	}
	return nil
}

// CheckState is CheckVariables for another object that prompts hand on: its values are of any size.
func CheckState(field string, doc json.RawMessage) error {
	_, err := checkObject(field, doc)
	return err
}

// checkObject returns the number of members of an object within the limits; 0 for null.
func checkObject(field string, doc json.RawMessage) (int, error) {
	if op.IsNull(doc) {
		return 0, nil
	}
	if err := op.CheckKind(field, doc, "{"); err != nil {
		return 0, err
	}
	var members map[string]json.RawMessage
	if err := op.DecodeLenient(field, doc, &members); err != nil {
		return 0, err
	}
	if len(doc) > MaxVariables || len(members) > macro.MaxVarCount {
		return 0, fault.InvalidField(field, "range", "must have at most %d members and %s", macro.MaxVarCount, fault.Size(MaxVariables))
	}
	for name := range members {
		if name == "" || len(name) > macro.MaxVarName {
			return 0, fault.InvalidField(field, "range", "names must have 1 to %d bytes", macro.MaxVarName)
		}
	}
	return len(members), nil
}
