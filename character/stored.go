package character

import (
	"encoding/json"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// CheckStored refuses a version of a character that the operations would not have stored: one of a file that somebody
// may have written. Settings that are none any more may stay.
func (ch *Character) CheckStored() error {
	in := Input{RoleCard: ch.RoleCard, WorldBook: ch.WorldBook, Preset: ch.Preset, AuthorNote: ch.AuthorNote, RegexScripts: ch.RegexScripts, Dialect: ch.Dialect}
	if err := in.check(); err != nil {
		return err
	}
	if err := op.CheckLine("name", ch.Name, maxCharacterName); err != nil {
		return err
	}
	if _, err := op.CheckTags("tags", ch.Tags); err != nil {
		return err
	}
	if err := op.CheckKind("source", ch.Source, "{"); err != nil {
		return err
	}
	return checkStoredSettings(ch.Settings)
}

func checkStoredSettings(doc json.RawMessage) error {
	if op.IsNull(doc) {
		return nil
	}
	set, err := storedSettings(doc)
	if err != nil {
		return fault.InvalidField("settings", "type", "must be an object of groups")
	}
	for _, g := range characterSettings {
		for _, r := range g.rules {
			if value, ok := set[g.name][r.name]; ok {
				if err := r.check(g.name+"."+r.name, value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// CheckStored refuses a version of a resource that the operations would not have stored.
func (r *Resource) CheckStored() error {
	in, err := ResourceInput{Dialect: r.Dialect, Document: r.Document}.check(r.Kind, false)
	if err != nil {
		return err
	}
	if len(r.Characters) > maxBindings {
		return fault.InvalidField("characterIds", "range", "must have at most %d ids", maxBindings)
	}
	named := *r
	return in.applyName(&named, false)
}

// CheckStored refuses settings that PutUserSettings would not have stored.
func (s *UserSettings) CheckStored() error {
	if err := s.Check(); err != nil {
		return err
	}
	return checkZone(s.DeviceTimeZone)
}
