package tavern

import (
	"context"
	"path"
	"slices"
	"strings"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

// resourceKinds are the kinds of resources by those of objects.
var resourceKinds = map[string]character.ResourceKind{
	ofBook: character.WorldBook, ofPreset: character.Preset, ofScript: character.RegexScript, ofPersona: character.Persona,
	ofTemplate: character.Template,
}

// seen is what the files of an import have become so far. What an earlier attempt has taken is looked up.
type seen struct {
	settings   *folder.UserSettings // nil = the archive has none that can be read
	there      map[string]*entry    // files that others name, by their paths in small letters
	characters map[string]string    // ids by the name of the card's file without its extension, in small letters
	books      map[string]string    // likewise
	presets    map[string]string    // likewise
	personas   map[string]string    // ids by the name of the picture
	groups     map[string]string    // ids of characters by the name of a group's chat

	// The rest is for a dry run.
	dry  map[string]Known // objects by the keys of files that it would take
	made []newName        // characters that it would make
}

// lookedFor are the kinds of files that others name.
var lookedFor = []folder.Kind{folder.Settings, folder.Character, folder.World, folder.Preset, folder.Image, folder.File}

// look reads what other files need to know before they are taken.
func (r *run) look(ctx context.Context, segments []segment) error {
	r.seen = seen{
		there: map[string]*entry{}, characters: map[string]string{}, books: map[string]string{}, presets: map[string]string{},
		personas: map[string]string{}, groups: map[string]string{}, dry: map[string]Known{},
	}
	for _, seg := range segments {
		for _, f := range seg.files {
			if f.reason == "" && slices.Contains(lookedFor, f.kind) {
				r.there[lower(f.path)] = f
			}
		}
	}
	f := r.there["settings.json"]
	if f == nil {
		return nil
	}
	data, err := f.Read(f.limit())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		r.settings, _ = folder.ReadSettings(data) // its turn says what is wrong with it
	}
	return nil
}

// noteSeen notes what a file became.
func (r *run) noteSeen(it *item, kind, id string) {
	name := lower(folder.Base(it.path))
	switch {
	case it.kind == folder.Character:
		r.characters[name] = id
	case kind == ofBook:
		r.books[name] = id
	case kind == ofPreset:
		r.presets[name] = id
	}
}

// newName is the name of a character that a dry run has not made.
type newName struct{ name, id string }

// dryBegin begins the ids that stand for objects which a dry run has not made. No report has them.
const dryBegin = "dry "

func dryID(of string) string { return dryBegin + of }

func isDry(id string) bool { return strings.HasPrefix(id, dryBegin) }

// cardFiles are the endings of cards.
var cardFiles = []string{".png", ".json", ".charx", ".webp", ".apng"}

// characterOf finds the character of a card's file by its name without the extension; ok is false if there is none.
func (r *run) characterOf(ctx context.Context, name string) (id string, ok bool, err error) {
	if id, ok = r.characters[lower(name)]; ok {
		return id, true, nil
	}
	id, ok, err = r.lookUp(ctx, folder.Character, path.Join("characters", name), cardFiles...)
	if ok {
		r.characters[lower(name)] = id
	}
	return id, ok, err
}

// bookOf finds the world book of a file by its name without the extension.
func (r *run) bookOf(ctx context.Context, name string) (id string, ok bool, err error) {
	if id, ok = r.books[lower(name)]; ok {
		return id, true, nil
	}
	if id, ok, err = r.lookUp(ctx, folder.World, path.Join("worlds", name), ".json"); ok {
		r.books[lower(name)] = id
	}
	return id, ok, err
}

// presetOf finds the preset of a file by its name without the extension.
func (r *run) presetOf(ctx context.Context, name string) (id string, ok bool, err error) {
	if id, ok = r.presets[lower(name)]; ok {
		return id, true, nil
	}
	return r.lookUp(ctx, folder.Preset, path.Join("OpenAI Settings", name), ".json", ".settings")
}

// lookUp finds what a file became that an earlier attempt or import has taken. A dry run finds it in the archive, too.
func (r *run) lookUp(ctx context.Context, kind folder.Kind, stem string, exts ...string) (id string, ok bool, err error) {
	for _, ext := range exts {
		err := r.store.View(ctx, r.userID, func(tx Tx) error {
			k, err := tx.KnownAt(kind, stem+ext)
			if err != nil || k == nil {
				return err
			}
			if ok, err = k.alive(tx); ok {
				id = k.ObjectID
			}
			return err
		})
		if ok || err != nil {
			return id, ok, err
		}
		if e := r.there[lower(stem+ext)]; e != nil && e.kind == kind && r.imp.DryRun {
			if usable(e) {
				return dryID(string(kind) + e.path), true, nil
			}
			delete(r.there, lower(stem+ext))
		}
	}
	return "", false, nil
}

// usable says that an import would take a card, book or preset.
func usable(e *entry) bool {
	it, err := e.read()
	if err != nil {
		return false
	}
	switch e.kind {
	case folder.Character:
		_, err = character.TryImport(&op.Call{}, it.data, it.path)
	case folder.World:
		_, err = character.TryResource(character.WorldBook, it.data, it.path)
	default:
		_, err = character.TryResource(character.Preset, it.data, it.path)
	}
	return err == nil
}

// named finds the only character with a name.
func (r *run) named(ctx context.Context, name string) (id string, ok bool, err error) {
	found, err := r.opts.Characters.Named(ctx, r.userID, name)
	if fault.Is(err, fault.Invalid) {
		return "", false, nil // it is no name
	}
	if err != nil {
		return "", false, err
	}
	all := slices.Clone(r.made)
	for _, ch := range found {
		all = append(all, newName{ch.Name, ch.ID})
	}
	same := slices.DeleteFunc(slices.Clone(all), func(n newName) bool { return n.name != name })
	if len(same) == 0 {
		same = slices.DeleteFunc(all, func(n newName) bool { return !strings.EqualFold(strings.TrimSpace(n.name), strings.TrimSpace(name)) })
	}
	if len(same) != 1 {
		return "", false, nil
	}
	return same[0].id, true, nil
}
