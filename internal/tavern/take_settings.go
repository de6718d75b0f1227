package tavern

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

// noteDocument makes an author's note of the folder one of ours.
func noteDocument(n *folder.Note) json.RawMessage {
	or := func(v *int, otherwise int) int {
		if v == nil {
			return otherwise
		}
		return *v
	}
	roles := []string{"system", "user", "assistant"}
	doc := map[string]any{
		"content": n.Text, "injection_depth": max(0, min(or(n.Depth, 4), 10_000)), "role": roles[max(0, min(or(n.Role, 0), 2))],
		"position": max(0, min(or(n.Position, 1), 2)), "interval": max(0, min(or(n.Interval, 1), 10_000)),
	}
	return op.MustJSON(doc)
}

// worldMembers are the settings of world books that have a counterpart in those of a character.
var worldMembers = map[string]string{
	"world_info_depth": "depth", "world_info_budget": "budget", "world_info_budget_cap": "budgetCap",
	"world_info_min_activations": "minActivations", "world_info_min_activations_depth_max": "minActivationsDepth",
	"world_info_max_recursion_steps": "maxRecursionSteps", "world_info_recursive": "recursive", "world_info_include_names": "includeNames",
	"world_info_case_sensitive": "caseSensitive", "world_info_match_whole_words": "matchWholeWords", "world_info_use_group_scoring": "useGroupScoring",
}

// usualWorld are the values of a fresh installation, which need not be set.
var usualWorld = map[string]string{
	"depth": "2", "budget": "25", "budgetCap": "0", "minActivations": "0", "minActivationsDepth": "0", "maxRecursionSteps": "0",
	"recursive": "true", "includeNames": "true", "caseSensitive": "false", "matchWholeWords": "true", "useGroupScoring": "false",
}

// characterSettings are the settings that a character gets from those of the folder; nil = none differ from the usual
// ones. avatar is the file of its card.
func characterSettings(s *folder.UserSettings, avatar string) json.RawMessage {
	set := map[string]map[string]json.RawMessage{}
	var world map[string]json.RawMessage
	_ = json.Unmarshal(s.World, &world) // nil = there are none
	for name, ours := range worldMembers {
		if v, ok := world[name]; ok && isScalar(v) && string(v) != usualWorld[ours] {
			putSetting(set, "worldInfo", ours, v)
		}
	}
	strategies := map[string]string{"0": "evenly", "2": "global"}
	if strategy := strategies[string(world["world_info_character_strategy"])]; strategy != "" {
		putSetting(set, "worldInfo", "strategy", op.MustJSON(strategy))
	}
	if avatar != "" && slices.Contains(s.Allowed, avatar) {
		putSetting(set, "scripts", "card", json.RawMessage("true"))
	}
	if len(set) == 0 {
		return nil
	}
	return op.MustJSON(set)
}

func putSetting(set map[string]map[string]json.RawMessage, group, name string, v json.RawMessage) {
	if set[group] == nil {
		set[group] = map[string]json.RawMessage{}
	}
	set[group][name] = v
}

// isScalar says that a value is a number or a truth value.
func isScalar(v json.RawMessage) bool {
	return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9' || v[0] == 't' || v[0] == 'f')
}

// takeSettings gives the user what settings.json says: personas, scripts, variables and choices. What the user
// has set here stays.
func (r *run) takeSettings(ctx context.Context, it *item) (*File, error) {
	s, err := folder.ReadSettings(it.data)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidImport, "%v", err)
	}
	var secrets bool
	it.data, secrets = folder.WithoutSecrets(it.data)
	return r.object(ctx, it, "", func(c *op.Call) (*became, error) {
		var notes []Note
		if secrets {
			notes = append(notes, Note{"private_field", "", "the passwords and keys in it are not kept"})
		}
		for _, take := range []func(context.Context, *folder.UserSettings) ([]Note, error){r.takePersonas, r.takeScripts} {
			more, err := take(ctx, s)
			if err != nil {
				return nil, err
			}
			notes = append(notes, more...)
		}
		for _, set := range []func(context.Context, *op.Call, *folder.UserSettings) ([]Note, error){r.setVariables, r.setUser} {
			more, err := set(ctx, c, s)
			if err != nil {
				return nil, err
			}
			notes = append(notes, more...)
		}
		return &became{kind: ofSettings, notes: append(notes, restOf(s)...), keep: true}, nil
	})
}

// restOf are notes about what has no counterpart.
func restOf(s *folder.UserSettings) (notes []Note) {
	for _, name := range s.Rest {
		notes = append(notes, Note{"no_counterpart", name, "there is no setting like it here"})
	}
	if s.Note != nil {
		notes = append(notes, Note{"no_counterpart", "extension_settings.note.default", "a note for all new chats is not known here: give it to the characters"})
	}
	return notes
}

// takePersonas makes a persona of each one.
func (r *run) takePersonas(ctx context.Context, s *folder.UserSettings) (notes []Note, err error) {
	for i := range s.Personas {
		p := &s.Personas[i]
		at := "power_user.personas." + p.Avatar
		doc := op.MustJSON(personaOf(p))
		book, found, err := r.bookOfPersona(ctx, p)
		if err != nil {
			return nil, err
		}
		f, err := r.part(ctx, ofPersona, at, doc, p.Name+".json", func(c *op.Call) (*character.ImportedResource, error) {
			whole := personaOf(p)
			if found {
				whole["worldBookId"] = book
			}
			return r.opts.Characters.ImportResource(ctx, c, character.Persona, op.MustJSON(whole), p.Name+".json", "")
		})
		if err != nil {
			return nil, err
		}
		if f.Outcome == NotTaken {
			notes = append(notes, Note{"not_taken", at, f.Reason})
			continue
		}
		r.personas[lower(p.Avatar)] = f.ObjectID
		if p.Lorebook != "" && !found {
			notes = append(notes, Note{"missing_book", at, fmt.Sprintf("the world book %q of the persona is not in the folder", p.Lorebook)})
		}
		if p.Connections != nil {
			notes = append(notes, Note{"no_counterpart", at + ".connections", "personas are not bound to characters: choose one in the chat"})
		}
	}
	return notes, nil
}

// bookOfPersona finds the book that counts while a persona speaks.
func (r *run) bookOfPersona(ctx context.Context, p *folder.PersonaOf) (id string, found bool, err error) {
	if p.Lorebook == "" {
		return "", false, nil
	}
	return r.bookOf(ctx, p.Lorebook)
}

// personaOf is the document of a persona, but for the id of its book.
func personaOf(p *folder.PersonaOf) map[string]any {
	doc := map[string]any{"name": p.Name, "description": p.Description, "avatar": p.Avatar}
	for name, v := range map[string]*int{"position": p.Position, "depth": p.Depth, "role": p.Role} {
		if v != nil {
			doc[name] = *v
		}
	}
	for name, v := range map[string]string{"lorebook": p.Lorebook, "title": p.Title} {
		if v != "" {
			doc[name] = v
		}
	}
	return doc
}

// takeScripts makes a resource for all characters of each global script, and switches scripts on.
func (r *run) takeScripts(ctx context.Context, s *folder.UserSettings) (notes []Note, err error) {
	var scripts []json.RawMessage
	_ = json.Unmarshal(s.Scripts, &scripts) // nil = there are none
	for i, script := range scripts {
		at := fmt.Sprintf("extension_settings.regex[%d]", i)
		f, err := r.part(ctx, ofScript, at, script, "script.json", func(c *op.Call) (*character.ImportedResource, error) {
			got, err := r.opts.Characters.ImportResource(ctx, c, character.RegexScript, script, "script.json", "")
			if err != nil {
				return nil, err
			}
			got.Resource, err = r.bindAll(ctx, c, got.Resource)
			return got, err
		})
		if err != nil {
			return nil, err
		}
		if f.Outcome == NotTaken {
			notes = append(notes, Note{"not_taken", at, f.Reason})
		}
		for _, n := range f.Notes {
			notes = append(notes, Note{n.Code, at + n.Path, n.Detail})
		}
	}
	return notes, nil
}

// part makes a resource of a part of settings.json, as object does of a file.
func (r *run) part(ctx context.Context, kind, at string, doc []byte, filename string, do func(c *op.Call) (*character.ImportedResource, error)) (*File, error) {
	it := &item{&entry{path: "settings.json#" + at, kind: folder.Settings}, doc, digestOf(doc)}
	f, err := r.object(ctx, it, kind+" "+at, func(c *op.Call) (*became, error) {
		if r.imp.DryRun {
			return tried(kind, doc, filename)
		}
		got, err := do(c)
		if err != nil {
			return nil, err
		}
		return &became{kind: kind, id: got.Resource.ID, version: got.Resource.Version, notes: notesOf(got.Warnings)}, nil
	})
	if err == nil {
		return f, nil
	}
	if _, err := r.refuse(ctx, nil, err); err != nil {
		return nil, err
	}
	return &File{Path: it.path, Outcome: NotTaken, Reason: reason(err)}, nil
}

// setVariables adds the variables that macros share in all chats. A name that is taken stays as it is.
func (r *run) setVariables(ctx context.Context, c *op.Call, s *folder.UserSettings) ([]Note, error) {
	if s.Variables == nil {
		return nil, nil
	}
	stored, err := r.opts.Characters.Variables(ctx, r.userID)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	_ = json.Unmarshal(s.Variables, &all) // it is an object
	var own map[string]json.RawMessage
	_ = json.Unmarshal(stored, &own) // nil = there are none
	maps.Copy(all, own)
	if len(all) == len(own) {
		return nil, nil
	}
	if r.imp.DryRun {
		err = character.CheckVariables("variables", op.MustJSON(all))
	} else {
		_, err = r.opts.Characters.PutVariables(ctx, c.Part("variables"), op.MustJSON(all))
	}
	if fault.Is(err, fault.Invalid) {
		return []Note{{"not_taken", "extension_settings.variables.global", reason(err)}}, nil
	}
	return nil, err
}

// setUser makes the choices of the folder those of the user, where none was made here.
func (r *run) setUser(ctx context.Context, c *op.Call, s *folder.UserSettings) (notes []Note, err error) {
	set, err := r.opts.Characters.UserSettings(ctx, r.userID)
	if err != nil {
		return nil, err
	}
	changed := *set
	if changed.UserName == "" {
		changed.UserName = op.Truncate(character.OneLine(s.UserName), 100)
	}
	if changed.PersonaID == "" {
		changed.PersonaID = cmp.Or(r.personas[lower(s.Default)], r.personas[lower(s.Avatar)])
	}
	if s.Preset != "" && !changed.GlobalPreset.Enabled {
		id, ok, err := r.presetOf(ctx, s.Preset)
		if err != nil {
			return nil, err
		}
		if ok {
			changed.GlobalPreset = character.GlobalResource{Enabled: true, ID: id}
		} else {
			notes = append(notes, Note{"missing_preset", "oai_settings.preset_settings_openai", fmt.Sprintf("the preset %q is not in the folder", s.Preset)})
		}
	}
	if len(s.Scripts) > 0 {
		changed.GlobalRegexEnabled = true
	}
	if r.imp.DryRun || reflect.DeepEqual(&changed, set) {
		return notes, nil
	}
	_, err = r.opts.Characters.PutUserSettings(ctx, c.Part("user"), changed, 0)
	if err != nil && fault.Public(err).Retry() == "no" {
		return append(notes, Note{"not_taken", "username", reason(err)}), nil
	}
	return notes, err
}

// takePersona keeps the picture of a persona with it.
func (r *run) takePersona(ctx context.Context, it *item) (*File, error) {
	id, ok, err := r.personaOf(ctx, path.Base(it.path))
	if err != nil {
		return nil, err
	}
	return r.object(ctx, it, it.path, func(*op.Call) (*became, error) {
		b := &became{kind: ofFile, keep: true}
		if ok {
			b.kind, b.id = ofPersona, id
		} else {
			b.notes = []Note{{"no_persona", "settings.json", "no persona has this picture; it is kept as a file"}}
		}
		return b, nil
	})
}

// personaOf finds the persona of a picture.
func (r *run) personaOf(ctx context.Context, avatar string) (id string, ok bool, err error) {
	if id, ok := r.personas[lower(avatar)]; ok {
		return id, true, nil
	}
	if r.settings == nil || !slices.ContainsFunc(r.settings.Personas, func(p folder.PersonaOf) bool { return p.Avatar == avatar }) {
		return "", false, nil
	}
	return r.lookUp(ctx, folder.Settings, "settings.json#power_user.personas."+avatar, "")
}
