package tavern

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/tavern/folder"
)

// documents writes world books and presets, and finds the scripts for all characters.
func (o *outgoing) documents(ctx context.Context) error {
	settings, err := o.opts.Characters.UserSettings(ctx, o.userID)
	if err != nil {
		return err
	}
	o.people.settings = settings
	err = o.eachResource(ctx, character.WorldBook, func(r *character.Resource) error {
		name, err := o.document(ctx, r, folder.World)
		o.books[r.ID] = folder.Base(name)
		if r.BindAll {
			o.people.global = append(o.people.global, folder.Base(name))
		}
		return err
	})
	if err == nil {
		err = o.eachResource(ctx, character.Preset, func(r *character.Resource) error {
			name, err := o.document(ctx, r, folder.Preset, folder.SysPrompt)
			if folder.Classify(name) == folder.Preset {
				o.presets[r.ID] = folder.Base(name)
			}
			return err
		})
	}
	if err == nil {
		err = o.eachResource(ctx, character.Template, func(r *character.Resource) error {
			_, err := o.document(ctx, r, templateKind(r.Document), templates...)
			return err
		})
	}
	if err != nil {
		return err
	}
	return o.eachResource(ctx, character.RegexScript, func(r *character.Resource) error { return o.script(ctx, r) })
}

// eachResource reads the resources of a kind, the newest first.
func (o *outgoing) eachResource(ctx context.Context, kind character.ResourceKind, do func(*character.Resource) error) error {
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := o.opts.Characters.Resources(ctx, o.userID, kind, cursor, 0)
		if err != nil {
			return err
		}
		for _, listed := range page.Items {
			r, err := o.opts.Characters.Resource(ctx, o.userID, kind, listed.ID)
			if fault.Is(err, fault.NotFound) {
				continue
			}
			if err == nil {
				err = do(r)
			}
			if err != nil {
				return err
			}
		}
		cursor = page.NextCursor
	}
	return nil
}

// templates are the kinds of files with templates for text completion.
var templates = []folder.Kind{folder.Context, folder.Instruct, folder.Reasoning, folder.TextPreset, folder.KoboldPreset, folder.NovelPreset}

// templateKind is the kind of file that a template for text completion would be.
func templateKind(doc json.RawMessage) folder.Kind {
	var has map[string]json.RawMessage
	_ = json.Unmarshal(doc, &has) // nil = it has nothing
	switch {
	case has["input_sequence"] != nil:
		return folder.Instruct
	case has["story_string"] != nil:
		return folder.Context
	case has["separator"] != nil:
		return folder.Reasoning
	}
	return folder.TextPreset
}

// document writes a resource as a file of its own, and returns the path. It may have come in as a file of another
// kind, which it stays unless it was changed.
func (o *outgoing) document(ctx context.Context, r *character.Resource, kind folder.Kind, others ...folder.Kind) (string, error) {
	f, k := Written{ObjectKind: string(r.Kind), ObjectID: r.ID}, (*Known)(nil)
	for _, from := range append([]folder.Kind{kind}, others...) {
		found, err := o.came(ctx, from, r.ID)
		if err != nil {
			return "", err
		}
		if k == nil {
			k = found
		}
	}
	same, err := o.unchanged(ctx, k, r)
	if err != nil {
		return "", err
	}
	if k != nil && (same || k.Kind != folder.SysPrompt) {
		f.Path = o.pathOf(k)
	}
	if f.Path == "" {
		same = false
		f.Path = o.names.Take(folder.RuleOf(kind).Dirs[0], r.Name, ".json")
	}
	if f.Original = same; same {
		return f.Path, o.addKept(ctx, f, k)
	}
	return f.Path, o.addBytes(f, indented(r.Document))
}

// unchanged says that a resource is what the file has that it came in.
func (o *outgoing) unchanged(ctx context.Context, k *Known, r *character.Resource) (same bool, err error) {
	if k == nil || k.Parts == 0 || k.Version == 0 {
		return false, nil
	}
	if k.Version == r.Version {
		return true, nil
	}
	err = o.store.View(ctx, o.userID, func(tx Tx) error {
		was, err := tx.Characters.ResourceVersion(r.Kind, r.ID, k.Version)
		same = err == nil && bytes.Equal(was.Document, r.Document)
		return err
	})
	if fault.Is(err, fault.NotFound) { // that version is gone
		err = nil
	}
	return same, err
}

// indented is a document as SillyTavern writes files.
func indented(doc json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, doc, "", "    ") != nil {
		return doc
	}
	return b.Bytes()
}

// script keeps a set of scripts for settings.json. Those of one character are in its card, and those for some go beside.
func (o *outgoing) script(ctx context.Context, r *character.Resource) error {
	scripts := scriptsIn(r.Document)
	switch {
	case r.BindAll:
		o.scripts = append(scripts, o.scripts...) // the oldest first
		return nil
	case character.IsOfCard(r):
		return nil
	}
	name := o.names.Take(path.Join(outside, "scripts"), r.Name, ".json")
	if err := o.addBytes(Written{Path: name, ObjectKind: ofScript, ObjectID: r.ID}, indented(r.Document)); err != nil {
		return err
	}
	return o.leave(LeftOut{Kind: ofScript, ID: r.ID, Name: r.Name, Reason: "SillyTavern has scripts for all characters and scripts in cards, and none for some characters: it is in " + name})
}

// scriptsIn are the scripts of a document: one, a list, or a group.
func scriptsIn(doc json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(doc, &list) == nil {
		return list
	}
	var group struct{ Scripts []json.RawMessage }
	if json.Unmarshal(doc, &group) == nil && group.Scripts != nil {
		return group.Scripts
	}
	return []json.RawMessage{doc}
}

// addKept writes a file with the content that came in.
func (o *outgoing) addKept(ctx context.Context, f Written, k *Known) error {
	return o.add(f, func(w io.Writer) error { return o.kept(ctx, k, w) })
}
