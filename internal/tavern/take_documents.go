package tavern

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"nodest/card"
	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

func (r *run) takeWorld(ctx context.Context, c *op.Call, it *item) (*became, error) {
	if r.imp.DryRun {
		return tried(ofBook, it.data, it.path)
	}
	got, err := r.opts.Characters.ImportResource(ctx, c, character.WorldBook, it.data, it.path, "")
	if err != nil {
		return nil, err
	}
	res := got.Resource
	if r.settings != nil && slices.ContainsFunc(r.settings.Global, func(name string) bool { return lower(name) == lower(folder.Base(it.path)) }) {
		if res, err = r.bindAll(ctx, c, res); err != nil {
			return nil, err
		}
	}
	return &became{kind: ofBook, id: res.ID, version: res.Version, notes: notesOf(got.Warnings), keep: true}, nil
}

// bindAll gives a resource to all characters.
func (r *run) bindAll(ctx context.Context, c *op.Call, res *character.Resource) (*character.Resource, error) {
	all := true
	return r.opts.Characters.UpdateResource(ctx, c.Part("all"), res.Kind, res.ID, character.ResourceInput{BindAll: &all}, false, 0)
}

func (r *run) takePreset(ctx context.Context, c *op.Call, it *item) (*became, error) {
	if r.imp.DryRun {
		return tried(ofPreset, it.data, it.path)
	}
	got, err := r.opts.Characters.ImportResource(ctx, c, character.Preset, it.data, it.path, "")
	if err != nil {
		return nil, err
	}
	return &became{kind: ofPreset, id: got.Resource.ID, version: got.Resource.Version, notes: notesOf(got.Warnings), keep: !private(got.Warnings)}, nil
}

func (r *run) takeCharacter(ctx context.Context, it *item) (*File, error) {
	return r.object(ctx, it, "", func(c *op.Call) (*became, error) {
		got, err := r.importCard(ctx, c, it)
		if err != nil {
			return nil, err
		}
		notes := notesOf(got.Warnings)
		ch, more, err := r.complete(ctx, c, got.Character, it)
		if err != nil {
			return nil, err
		}
		return &became{kind: ofCharacter, id: ch.ID, name: ch.Name, version: ch.Version, notes: append(notes, more...), keep: true}, nil
	})
}

// importCard makes a character of a card. A dry run only reads it.
func (r *run) importCard(ctx context.Context, c *op.Call, it *item) (*character.Imported, error) {
	if r.imp.DryRun {
		return character.TryImport(c, it.data, it.path)
	}
	return r.opts.Characters.Import(ctx, c, it.data, it.path)
}

// tried is what a resource would become.
func tried(kind string, data []byte, filename string) (*became, error) {
	doc, err := character.TryResource(resourceKinds[kind], data, filename)
	if err != nil {
		return nil, err
	}
	return &became{kind: kind, notes: notesOf(doc.Warnings)}, nil
}

// complete gives a character what the folder says of it outside of its card: tags, a note, books and settings.
func (r *run) complete(ctx context.Context, c *op.Call, ch *character.Character, it *item) (*character.Character, []Note, error) {
	name := folder.Base(it.path)
	linked, notes, err := r.bindBooks(ctx, c, ch, name)
	if err != nil {
		return nil, nil, err
	}
	in := character.Input{}
	if linked { // the card has an older copy of it
		in.WorldBook = json.RawMessage("null")
	}
	settings := r.saidOf(ch, name, &in)
	if in.WorldBook != nil || in.Tags != nil || in.AuthorNote != nil {
		changed, err := r.update(ctx, c.Part("more"), ch, in)
		switch {
		case err == nil:
			ch = changed
		case fault.Public(err).Retry() != "no":
			return nil, nil, err
		default: // the character is there, and odd values do not undo it
			notes = append(notes, Note{"settings_refused", "settings.json", reason(err)})
		}
	}
	if settings == nil {
		return ch, notes, nil
	}
	version, err := r.putSettings(ctx, c.Part("settings"), ch, settings)
	if err != nil && fault.Public(err).Retry() == "no" {
		return ch, append(notes, Note{"settings_refused", "settings.json", reason(err)}), nil
	}
	if err != nil {
		return nil, nil, err
	}
	done := *ch
	done.Version = version
	return &done, notes, nil
}

// saidOf adds the tags and the note that the settings of the folder have for a character to in, and returns its settings.
func (r *run) saidOf(ch *character.Character, name string, in *character.Input) json.RawMessage {
	s := r.settings
	if s == nil {
		return nil
	}
	if tags := op.UsableTags(slices.Concat(ch.Tags, s.Tags[name+".png"])); len(tags) > len(ch.Tags) {
		in.Tags = tags
	}
	if n := s.Notes[name]; n != nil && op.IsNull(ch.AuthorNote) {
		in.AuthorNote = noteDocument(n)
	}
	return characterSettings(s, name+".png")
}

// update changes a character. A dry run only checks the change.
func (r *run) update(ctx context.Context, c *op.Call, ch *character.Character, in character.Input) (*character.Character, error) {
	if r.imp.DryRun {
		_, err := in.Prepare(false)
		return ch, err
	}
	return r.opts.Characters.Update(ctx, c, ch.ID, in, false, 0)
}

// putSettings gives a character its settings. A dry run only checks them.
func (r *run) putSettings(ctx context.Context, c *op.Call, ch *character.Character, settings json.RawMessage) (version int64, err error) {
	if r.imp.DryRun {
		return 0, character.CheckSettings(settings)
	}
	_, version, err = r.opts.Characters.PutSettings(ctx, c, ch.ID, settings, 0)
	return version, err
}

// bindBooks binds the books that a card names, and those that the settings name for it. linked says that one of them
// takes the place of the book in the card.
func (r *run) bindBooks(ctx context.Context, c *op.Call, ch *character.Character, name string) (linked bool, notes []Note, err error) {
	own := linkOf(ch.RoleCard)
	for i, book := range r.booksNamed(own, name) {
		id, ok, err := r.bookOf(ctx, book)
		if err != nil {
			return false, nil, err
		}
		if !ok {
			if book != own || op.IsNull(ch.WorldBook) {
				notes = append(notes, Note{"missing_book", "worlds", fmt.Sprintf("the world book %q of the character is not in the folder", book)})
			}
			continue
		}
		same, err := r.inCard(ctx, ch, id, book, book == own)
		if err != nil {
			return false, nil, err
		}
		if same {
			continue
		}
		err = r.bind(ctx, c.Part(fmt.Sprint("book ", i)), character.WorldBook, id, ch.ID)
		if err != nil && fault.Public(err).Retry() == "no" {
			notes = append(notes, Note{"book_not_bound", "worlds", fmt.Sprintf("the world book %q is not bound to the character: %s", book, reason(err))})
			continue
		}
		if err != nil {
			return false, nil, err
		}
		if book == own && !op.IsNull(ch.WorldBook) {
			linked = true
			notes = append(notes, Note{"book_replaced", "data.character_book", fmt.Sprintf("the card's copy of the world book differs from the file %q, which is used", book)})
		}
	}
	return linked, notes, nil
}

// booksNamed are the books that a card names (own), and those that the settings name for it.
func (r *run) booksNamed(own, name string) (names []string) {
	if own != "" {
		names = append(names, own)
	}
	if r.settings != nil {
		names = append(names, r.settings.Extra[name]...)
	}
	return names
}

// inCard says that the book which a card names is in the card itself, as SillyTavern stores it: it need not be bound, too.
func (r *run) inCard(ctx context.Context, ch *character.Character, id, book string, own bool) (bool, error) {
	if !own || op.IsNull(ch.WorldBook) {
		return false, nil
	}
	if isDry(id) {
		doc, err := r.bookInArchive(book)
		return err == nil && sameBook(ch.WorldBook, doc), err
	}
	res, err := r.opts.Characters.Resource(ctx, r.userID, character.WorldBook, id)
	if err != nil {
		return false, err
	}
	return sameBook(ch.WorldBook, res.Document), nil
}

// bookInArchive is the document of a book that a dry run has not stored.
func (r *run) bookInArchive(name string) (json.RawMessage, error) {
	e := r.there[lower(path.Join("worlds", name)+".json")]
	if e == nil {
		return nil, fault.New(fault.NotFound, "the world book %q is not in the archive", name)
	}
	it, err := e.read()
	if err != nil {
		return nil, err
	}
	doc, err := character.TryResource(character.WorldBook, it.data, it.path)
	if err != nil {
		return nil, err
	}
	return doc.Doc, nil
}

// sameBook says that two books have the same entries.
func sameBook(a, b json.RawMessage) bool {
	one, errOne := entriesOf(a)
	other, errOther := entriesOf(b)
	return errOne == nil && errOther == nil && slices.Equal(one, other)
}

// entriesOf are the entries of a book, as texts, sorted.
func entriesOf(doc json.RawMessage) ([]string, error) {
	book, err := card.ParseWorldBook(doc, card.SillyTavern)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(book.Entries))
	for i, e := range book.Entries {
		e.ID = ""
		all[i] = string(op.MustJSON(e))
	}
	slices.Sort(all)
	return all, nil
}

// bind adds a character to those that a resource is bound to.
func (r *run) bind(ctx context.Context, c *op.Call, kind character.ResourceKind, id, characterID string) error {
	if r.imp.DryRun {
		return nil
	}
	res, err := r.opts.Characters.Resource(ctx, r.userID, kind, id)
	if err != nil || res.BindAll || slices.Contains(res.Characters, characterID) {
		return err
	}
	_, err = r.opts.Characters.UpdateResource(ctx, c, kind, id, character.ResourceInput{Characters: append(res.Characters, characterID)}, false, 0)
	return err
}

// linkOf is the world book that a card names; "" = none.
func linkOf(roleCard json.RawMessage) string {
	type extensions struct {
		World any `json:"world"`
	}
	var in struct {
		Extensions extensions `json:"extensions"`
		Data       struct {
			Extensions extensions `json:"extensions"`
		} `json:"data"`
	}
	_ = json.Unmarshal(roleCard, &in) // a member of another type counts as absent
	world, _ := in.Data.Extensions.World.(string)
	top, _ := in.Extensions.World.(string)
	return cmp.Or(world, top)
}
