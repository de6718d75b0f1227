package tavern

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"nodest/card"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

// Kinds of objects that files become.
const (
	ofCharacter    = "character"
	ofConversation = "conversation"
	ofBook         = "worldbook"
	ofPreset       = "preset"
	ofScript       = "regexscript"
	ofPersona      = "persona"
	ofTemplate     = "template"
	ofSettings     = "settings"
	ofFile         = "file"
)

// item is a file whose content was read.
type item struct {
	*entry
	data   []byte
	digest string // SHA-256 in hexadecimal
}

func (e *entry) read() (*item, error) {
	if e.reason != "" {
		return nil, fault.New(fault.InvalidImport, "%s", e.reason)
	}
	data, err := e.Read(e.limit())
	if err != nil {
		return nil, err
	}
	return &item{e, data, digestOf(data)}, nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func firstLine(data []byte) []byte {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return line
}

// became is what files have become.
type became struct {
	kind, id string
	version  int64
	notes    []Note
	name     string // a character has one
	keep     bool   // their contents are kept byte for byte
}

// report is the line of a file that was not taken.
func (e *entry) refused(err error) *File {
	return &File{Path: e.path, Kind: e.kind, Size: e.Size(), Outcome: NotTaken, Reason: reason(err)}
}

// take makes an object of the files of a unit. It returns an error only if the import cannot go on.
func (r *run) take(ctx context.Context, unit []*entry) ([]*File, error) {
	if r.stuck {
		r.stuck = false
		return refuse(unit, fault.New(fault.Internal, "the server stopped in the middle of it, several times"))
	}
	switch unit[0].kind {
	case folder.Chat, folder.GroupChat:
		return r.takeChats(ctx, unit)
	}
	it, err := unit[0].read()
	if err == nil {
		var f *File
		if f, err = r.takeOne(ctx, it); err == nil {
			return []*File{f}, nil
		}
	}
	return r.refuse(ctx, unit, err)
}

// refuse reports that the files of a unit are not taken, if that is their own fault.
func (r *run) refuse(ctx context.Context, unit []*entry, err error) ([]*File, error) {
	public := fault.Public(err)
	if ctx.Err() != nil || public.Code == fault.Internal || public.Code == fault.QuotaExceeded || public.Code == fault.StorageFull ||
		public.Retry() != "no" {
		return nil, err
	}
	return refuse(unit, err)
}

func refuse(unit []*entry, err error) ([]*File, error) {
	files := make([]*File, len(unit))
	for i, e := range unit {
		files[i] = e.refused(err)
	}
	return files, nil
}

// takeOne makes an object of one file.
func (r *run) takeOne(ctx context.Context, it *item) (*File, error) {
	switch it.kind {
	case folder.World:
		return r.object(ctx, it, "", func(c *op.Call) (*became, error) { return r.takeWorld(ctx, c, it) })
	case folder.Preset, folder.SysPrompt:
		return r.object(ctx, it, "", func(c *op.Call) (*became, error) { return r.takePreset(ctx, c, it) })
	case folder.Character:
		return r.takeCharacter(ctx, it)
	case folder.Settings:
		return r.takeSettings(ctx, it)
	case folder.Persona:
		return r.takePersona(ctx, it)
	case folder.Group:
		return r.takeGroup(ctx, it)
	case folder.Sprite, folder.Background, folder.Image, folder.File:
		return r.takeFile(ctx, it)
	}
	return r.takeTemplate(ctx, it)
}

// object makes an object of a file, unless an earlier import has done so and the object is there. apart tells files
// of the same kind and content from each other.
func (r *run) object(ctx context.Context, it *item, apart string, do func(c *op.Call) (*became, error)) (*File, error) {
	f := &File{Path: it.path, Kind: it.kind, Size: int64(len(it.data)), Outcome: Taken}
	k, alive, err := r.knownAs(ctx, it, apart)
	if err != nil {
		return nil, err
	}
	if alive {
		f.Outcome, f.ObjectKind, f.ObjectID = Kept, k.ObjectKind, k.ObjectID
		r.noteSeen(it, k.ObjectKind, k.ObjectID)
		return f, nil
	}
	got, err := do(r.call(k))
	if err != nil {
		return nil, err
	}
	if r.imp.DryRun {
		got.id = cmp.Or(got.id, dryID(string(it.kind)+it.path))
		r.dry[k.Key] = Known{Key: k.Key, ObjectKind: got.kind, ObjectID: got.id}
	}
	f.ObjectKind, f.ObjectID, f.Notes = got.kind, got.id, slices.Concat(k.stays(), got.notes)
	if r.noteSeen(it, got.kind, got.id); r.imp.DryRun {
		if got.name != "" {
			r.made = append(r.made, newName{got.name, got.id})
		}
		return f, nil
	}
	if got.keep {
		if err := r.keep(ctx, k, it.data); err != nil {
			return nil, err
		}
	}
	r.become(k, got)
	return f, nil
}

// become notes what a file has become. It is stored with the report.
func (r *run) become(k *Known, got *became) {
	k.Times, k.ObjectKind, k.ObjectID, k.Version = k.Times+1, got.kind, got.id, got.version
	r.known = append(r.known, k)
}

// knownAs returns what is known of a file, and whether what it became is there.
func (r *run) knownAs(ctx context.Context, it *item, apart string) (k *Known, alive bool, err error) {
	key := string(it.kind) + " " + it.digest
	if apart != "" {
		key += " " + apart
	}
	older := false
	err = r.store.View(ctx, r.userID, func(tx Tx) (err error) {
		if k, err = tx.KnownFile(key); err == nil && k != nil {
			alive, err = k.alive(tx)
		}
		if err != nil || alive {
			return err
		}
		before, err := tx.KnownAt(it.kind, it.path)
		if err == nil && before != nil && before.Digest != it.digest {
			older, err = before.alive(tx)
		}
		return err
	})
	for _, made := range r.known { // not stored yet
		if made.Key == key {
			return made, true, err
		}
	}
	if tried, ok := r.dry[key]; ok {
		return &tried, true, err
	}
	if k == nil {
		k = &Known{ID: op.NewID(), Key: key, Kind: it.kind, Path: it.path, Digest: it.digest, Size: int64(len(it.data))}
	}
	k.Path, k.older = it.path, older
	return k, alive, err
}

// stays is a note about a file of which an earlier import has taken another state.
func (k *Known) stays() []Note {
	if !k.older {
		return nil
	}
	return []Note{{"earlier_state", "", "an earlier import has taken another state of this file, which stays beside it"}}
}

// alive says whether what a file became is there.
func (k *Known) alive(tx Tx) (bool, error) {
	var err error
	switch {
	case k.Times == 0:
		return false, nil
	case k.ObjectID == "":
		return true, nil
	case k.ObjectKind == ofCharacter:
		_, err = tx.Characters.CharacterCard(k.ObjectID)
	case k.ObjectKind == ofConversation:
		_, err = tx.Chats.Conversation(k.ObjectID)
	default:
		_, err = tx.Characters.Resource(resourceKinds[k.ObjectKind], k.ObjectID)
	}
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// call is the call that makes an object of a file. After a crash the same one finds the object that it has made.
func (r *run) call(k *Known) *op.Call {
	key := digestOf([]byte(k.Key))
	return &op.Call{UserID: r.userID, Key: fmt.Sprintf("tavern %s %d", key, k.Times), Hash: key[:18]}
}

// keep stores the content of a file, a part in each transaction. That it became something is stored later: until then, an
// import that goes on after a crash does not know it.
func (r *run) keep(ctx context.Context, k *Known, data []byte) error {
	k.Parts = (len(data) + partSize - 1) / partSize
	for n := range k.Parts {
		err := r.store.Update(ctx, r.userID, func(tx Tx) error {
			if n == 0 {
				if err := tx.PutKnown(k); err != nil {
					return err
				}
			}
			return tx.PutKnownPart(k.ID, n, data[n*partSize:min((n+1)*partSize, len(data))])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// notesOf are the warnings about a file as notes.
func notesOf(warnings []card.Warning) []Note {
	var notes []Note
	for _, w := range warnings {
		notes = append(notes, Note{w.Code, w.Path, w.Detail})
	}
	return notes
}

// private says that a part of a file must not be kept.
func private(warnings []card.Warning) bool {
	for _, w := range warnings {
		if w.Code == "private_field" {
			return true
		}
	}
	return false
}

func lower(s string) string { return strings.ToLower(s) }
