package character

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nodest/card"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
)

// Create stores a character from its documents, as they are given (see
// documents.go for the defaults of absent ones).
//
// Errors: Invalid with the field, UnsupportedCard for a role card without a
// name, InvalidWorldBook.
func (svc *Service) Create(ctx context.Context, c *op.Call, in Input) (*Character, error) {
	docs, err := in.Prepare(true)
	if err != nil {
		return nil, err
	}
	return op.LastWins(ctx, svc.store, c, 0, func(tx Tx) (*Character, error) {
		ch := &Character{}
		docs.Apply(ch)
		return ch, Insert(tx, c, ch)
	})
}

// Import makes a character from a card file: PNG, JSON, CHARX or the
// JSON of the NodeST app. A picture in the file becomes the avatar.
//
// Errors: TooLarge, UnsupportedCard, InvalidWorldBook; those of c.Room.
func (svc *Service) Import(ctx context.Context, c *op.Call, data []byte, filename string) (*Imported, error) {
	got, avatar, err := readFile(c, data, filename)
	if err != nil {
		return nil, err
	}
	return op.LastWins(ctx, svc.store, c, 0, func(tx Tx) (*Imported, error) {
		if err := Insert(tx, c, got.Character); err != nil {
			return nil, err
		}
		if avatar != nil {
			if err := tx.PutAvatar(got.Character.ID, avatar); err != nil {
				return nil, err
			}
		}
		return got, nil
	})
}

// TryImport returns what Import would make of a file, without an id, and stores nothing.
//
// Errors: as Import.
func TryImport(c *op.Call, data []byte, filename string) (*Imported, error) {
	got, _, err := readFile(c, data, filename)
	return got, err
}

// readFile makes a character of a card file, which is not stored yet.
func readFile(c *op.Call, data []byte, filename string) (got *Imported, picture *Avatar, err error) {
	doc, err := card.Import(data, filename, card.Limits{Room: c.Room})
	if err != nil {
		return nil, nil, err
	}
	warnings := append([]card.Warning{}, doc.Warnings...)
	avatar, err := newAvatar(doc.Avatar)
	if err != nil && len(doc.Avatar) > 0 {
		warnings = append(warnings, card.Warning{Path: "avatar", Code: "unusable_picture", Detail: fault.Public(err).Message})
	}
	source, dropped := sourceOf(doc)
	tags := cardTags(doc.RoleCard)
	if dropped > 0 {
		warnings = append(warnings, card.Warning{Path: "assets", Code: "assets_dropped",
			Detail: fmt.Sprintf("%d files of the archive were left out: together they exceed the limit of %s", dropped, fault.Size(maxAssets))})
	}
	ch := &Character{
		Name: op.Truncate(OneLine(doc.Name), maxCharacterName), Dialect: string(doc.Dialect),
		RoleCard: doc.RoleCard, WorldBook: doc.WorldBook, Preset: doc.Preset,
		AuthorNote: doc.AuthorNote, RegexScripts: doc.RegexScripts, Source: source,
		HasAvatar: avatar != nil, Tags: tags,
	}
	return &Imported{Character: ch, Warnings: warnings}, avatar, nil
}

// cardTags are the tags of a card, as far as they can be a user's.
func cardTags(roleCard json.RawMessage) []string {
	view, err := card.ParseRoleCard(op.JSONOrNil(roleCard))
	if err != nil { // it has none then
		return nil
	}
	return op.UsableTags(view.Tags)
}

// maxCharacterName bounds the name under which a character is known, in code
// points: every list, message and event has it. The card keeps its own name.
const maxCharacterName = 200

// maxAssets bounds what is kept of the files in a CHARX archive, in bytes. It is
// as much as an archive may weigh, so that only packed texts can be dropped.
const maxAssets = 32 << 20

// Source is what is kept of an imported file besides the documents, for export.
type Source struct {
	Extra    json.RawMessage `json:"extra,omitempty"`
	Assets   []card.Asset    `json:"assets,omitempty"`
	Original *card.Original  `json:"original,omitempty"`
}

// sourceOf returns what to keep of an imported file, nil for nothing, and how
// many assets were too large to keep.
func sourceOf(doc *card.Character) (kept json.RawMessage, dropped int) {
	s := Source{Extra: op.JSONOrNil(doc.Extra), Original: doc.Original}
	size := 0
	for _, a := range doc.Assets {
		if size += len(a.Data); size > maxAssets {
			size -= len(a.Data)
			dropped++
			continue
		}
		s.Assets = append(s.Assets, a)
	}
	if s.Extra == nil && len(s.Assets) == 0 && s.Original == nil {
		return nil, dropped
	}
	return op.MustJSON(s), dropped
}

// Insert stores a new character with its regex group and emits its event.
func Insert(tx Tx, c *op.Call, ch *Character) error {
	ch.ID, ch.Version = op.NewID(), 1
	ch.CreatedAt, ch.UpdatedAt = tx.Now(), tx.Now()
	if err := tx.InsertCharacter(ch); err != nil {
		return err
	}
	return announce(tx, c, ch)
}

// Show makes a new character visible that was stored hidden, with its regex group, and emits its
// event.
func Show(tx Tx, c *op.Call, ch *Character) error {
	if err := tx.HideCharacter(ch.ID, false); err != nil {
		return err
	}
	return announce(tx, c, ch)
}

func announce(tx Tx, c *op.Call, ch *Character) error {
	if err := tx.Emit(characterEvent(c, "character.created", ch)); err != nil {
		return err
	}
	if op.IsNull(ch.RegexScripts) {
		return nil
	}
	return putAutoGroup(tx, c, ch)
}

// Get returns a character of the user with its documents.
func (svc *Service) Get(ctx context.Context, userID, id string) (*Character, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Character, error) { return tx.Character(id) })
}

// List lists the user's characters without their documents, newest first unless the
// filter says otherwise; limit is 1 to 200, 0 = 50.
func (svc *Service) List(ctx context.Context, userID string, f Filter, cursor string, limit int) (*op.Page[*Character], error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return op.List(ctx, svc.store, userID, limit, func(tx Tx, limit int) ([]*Character, string, error) {
		return tx.Characters(f, cursor, limit)
	})
}

// Named returns the user's characters with a name: exactly so, else in any case.
func (svc *Service) Named(ctx context.Context, userID, name string) ([]*Character, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) ([]*Character, error) {
		var exact, folded []*Character
		for cursor := ""; ; {
			page, next, err := tx.Characters(Filter{}, cursor, 200)
			if err != nil {
				return nil, err
			}
			for _, ch := range page {
				switch {
				case ch.Name == name:
					exact = append(exact, ch)
				case strings.EqualFold(strings.TrimSpace(ch.Name), strings.TrimSpace(name)):
					folded = append(folded, ch)
				}
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		if len(exact) > 0 {
			return exact, nil
		}
		return folded, nil
	})
}

// Update replaces the documents (replace), or those that are given; a
// document that is null is removed. Conversations keep their history and use the
// new documents from the next turn on.
//
// Errors: those of CreateCharacter; PreconditionFailed when ifVersion is not 0
// and not the character's version.
func (svc *Service) Update(ctx context.Context, c *op.Call, id string, in Input, replace bool, ifVersion int64) (*Character, error) {
	docs, err := in.Prepare(replace)
	if err != nil {
		return nil, err
	}
	return op.LastWins(ctx, svc.store, c, ifVersion, func(tx Tx) (*Character, error) {
		ch, err := tx.Character(id)
		if err != nil {
			return nil, err
		}
		if err := op.CheckVersion(ifVersion, ch.Version); err != nil {
			return nil, err
		}
		return ch, PutDocuments(tx, c, ch, docs)
	})
}

// PutDocuments stores ch with other documents, and its regex group if that has
// changed.
func PutDocuments(tx Tx, c *op.Call, ch *Character, docs *Checked) error {
	before := ch.RegexScripts
	docs.Apply(ch)
	store := tx.UpdateCharacter
	if docs.onlyLabels() {
		store = tx.UpdateLabels
	}
	if err := put(tx, c, ch, store); err != nil {
		return err
	}
	if string(before) == string(ch.RegexScripts) {
		return nil
	}
	return putAutoGroup(tx, c, ch)
}

// Put stores ch as its next version and emits its event.
func Put(tx Tx, c *op.Call, ch *Character) error { return put(tx, c, ch, tx.UpdateCharacter) }

func put(tx Tx, c *op.Call, ch *Character, store func(*Character) error) error {
	ch.Version++
	ch.UpdatedAt = tx.Now()
	if err := store(ch); err != nil {
		return err
	}
	return tx.Emit(characterEvent(c, "character.updated", ch))
}

// Delete deletes a character with its conversations. Documents that were
// bound to it stay, without it; the regex group made from its card goes with it.
func Delete(tx Tx, c *op.Call, id string) error {
	ch, err := tx.Character(id)
	if err != nil {
		return err
	}
	if err := unbind(tx, c, id); err != nil {
		return err
	}
	if err := tx.DeleteCharacter(id); err != nil {
		return err
	}
	return tx.Emit(characterEvent(c, "character.deleted", ch))
}

// unbind takes a character out of every resource that is bound to it.
func unbind(tx Tx, c *op.Call, characterID string) error {
	for _, kind := range []ResourceKind{WorldBook, Preset, RegexScript, Persona} {
		bound, err := tx.BoundResources(kind, characterID)
		if err != nil {
			return err
		}
		for _, r := range bound {
			at := slices.Index(r.Characters, characterID)
			switch {
			case at < 0: // bound to all
			case IsOfCard(r):
				err = deleteResource(tx, c, r)
			default:
				r.Characters = slices.Delete(r.Characters, at, at+1)
				err = updateResource(tx, c, r)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Export writes a character as a file: format png, json (default) or
// charx; spec v2, v3 (default) or, for json, nodest. Other names are Invalid.
func (svc *Service) Export(ctx context.Context, userID, id, format, spec string) (data []byte, contentType, filename string, err error) {
	doc, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*card.Character, error) { return cardOf(tx, id) })
	if err != nil {
		return nil, "", "", err
	}
	if format == "" {
		format = string(card.JSON)
	}
	file, err := card.Export(doc, card.Format(format), card.Spec(spec))
	if err != nil {
		return nil, "", "", err
	}
	return file.Data, file.ContentType, file.Name, nil
}

// ExportCard writes a character as a PNG file. original says that it is, byte for byte, the one that was imported:
// nothing of it was changed since.
func (svc *Service) ExportCard(ctx context.Context, userID, id string) (data []byte, original bool, err error) {
	doc, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*card.Character, error) { return cardOf(tx, id) })
	if err != nil {
		return nil, false, err
	}
	if data = doc.OriginalFile(); data != nil {
		return data, true, nil
	}
	file, err := card.Export(doc, card.PNG, "")
	if err != nil {
		return nil, false, err
	}
	return file.Data, false, nil
}

// cardOf is a character with everything that a file of it has.
func cardOf(tx Tx, id string) (*card.Character, error) {
	newest, err := tx.Character(id)
	if err != nil {
		return nil, err
	}
	ch, err := tx.CharacterVersion(id, newest.Version) // with the file that it came from
	if err != nil {
		return nil, err
	}
	doc := &card.Character{
		Name: ch.Name, Dialect: card.Dialect(ch.Dialect),
		RoleCard: ch.RoleCard, WorldBook: ch.WorldBook, Preset: ch.Preset,
		AuthorNote: ch.AuthorNote, RegexScripts: ch.RegexScripts,
	}
	var kept Source
	if len(ch.Source) > 0 {
		if err := json.Unmarshal(ch.Source, &kept); err != nil {
			return nil, fmt.Errorf("source of character %s: %w", id, err)
		}
	}
	doc.Extra, doc.Assets, doc.Original = kept.Extra, kept.Assets, kept.Original
	if !ch.HasAvatar {
		return doc, nil
	}
	avatar, err := tx.Avatar(id)
	if err == nil {
		doc.Avatar, doc.AvatarType = avatar.Data, avatar.ContentType
	}
	return doc, err
}

func characterEvent(c *op.Call, kind string, ch *Character) *stream.Event {
	return op.Event(c.UserID, kind, c.By(), struct {
		CharacterID string `json:"characterId"`
		Name        string `json:"name"`
		Version     int64  `json:"version"`
	}{ch.ID, ch.Name, ch.Version})
}

// Checked are valid documents, with those embedded in the card.
type Checked struct {
	Input
	all  bool // absent documents are removed, not left
	name string
	tags []string // tags for a character that has none yet

	insideBook, insideScripts json.RawMessage
}

// Prepare checks the documents. It reads all of them, which can take a while: it
// is done before a transaction begins.
func (in Input) Prepare(all bool) (*Checked, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	view, err := card.ParseRoleCard(op.JSONOrNil(in.RoleCard))
	if err != nil {
		return nil, op.InField("roleCard", err)
	}
	p := &Checked{Input: in, all: all, name: op.Truncate(OneLine(view.Name), maxCharacterName), tags: op.UsableTags(view.Tags)}
	if in.Tags != nil {
		if p.Tags, err = op.CheckTags("tags", in.Tags); err != nil {
			return nil, err
		}
	}
	if all {
		p.insideBook, p.insideScripts, err = EmbeddedIn(in.RoleCard)
	}
	return p, err
}

// onlyLabels reports whether nothing that a prompt depends on is given.
func (in *Checked) onlyLabels() bool {
	given := len(in.RoleCard) + len(in.WorldBook) + len(in.Preset) + len(in.AuthorNote) + len(in.RegexScripts) + len(in.Dialect)
	return !in.all && given == 0 && in.IsCradle == nil
}

// Apply puts the documents into ch.
func (in *Checked) Apply(ch *Character) {
	for _, d := range []struct{ given, into *json.RawMessage }{
		{&in.RoleCard, &ch.RoleCard}, {&in.WorldBook, &ch.WorldBook}, {&in.Preset, &ch.Preset},
		{&in.AuthorNote, &ch.AuthorNote}, {&in.RegexScripts, &ch.RegexScripts},
	} {
		if in.all || len(*d.given) > 0 {
			*d.into = op.JSONOrNil(*d.given)
		}
	}
	if in.all && len(in.WorldBook) == 0 {
		ch.WorldBook = in.insideBook
	}
	if in.all && len(in.RegexScripts) == 0 {
		ch.RegexScripts = in.insideScripts
	}
	if in.all || len(in.RoleCard) > 0 {
		ch.Name = in.name
	}
	if in.Dialect != "" || ch.Dialect == "" {
		ch.Dialect = cmp.Or(in.Dialect, string(card.NodeST))
	}
	in.applyTags(ch)
	if in.Archived != nil {
		ch.Archived = *in.Archived
	}
	switch {
	case in.IsCradle != nil:
		ch.IsCradle = *in.IsCradle
	case in.all:
		ch.IsCradle = false
	}
}

// applyTags puts the tags that are given into ch; a new character begins with those of
// its card.
func (in *Checked) applyTags(ch *Character) {
	switch {
	case in.Tags != nil:
		ch.Tags = in.Tags
	case ch.ID == "":
		ch.Tags = in.tags
	}
}
