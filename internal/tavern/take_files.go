package tavern

import (
	"context"

	"nodest/character"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

// takeFile keeps a picture or another file byte for byte, with the character that it belongs to.
func (r *run) takeFile(ctx context.Context, it *item) (*File, error) {
	owner := folder.Owner(it.path)
	id, ok := "", false
	if owner != "" {
		var err error
		if id, ok, err = r.characterOf(ctx, owner); err != nil {
			return nil, err
		}
	}
	return r.object(ctx, it, it.path, func(*op.Call) (*became, error) {
		b := &became{kind: ofFile, keep: true, notes: []Note{{"kept_as_file", "", fileNotes[it.kind]}}}
		if ok {
			b.kind, b.id = ofCharacter, id
		}
		return b, nil
	})
}

// fileNotes say what is done with files that are kept.
var fileNotes = map[folder.Kind]string{
	folder.Sprite:     "pictures for moods are kept with the character; the page does not show them",
	folder.Background: "backgrounds are kept; the page does not show them",
	folder.Image:      "it is kept, and shown with the messages that name it",
	folder.File:       "it is kept, and offered with the messages that name it",
}

// takeTemplate keeps what text completion uses: nothing here has use for it.
func (r *run) takeTemplate(ctx context.Context, it *item) (*File, error) {
	return r.object(ctx, it, "", func(c *op.Call) (*became, error) {
		if r.imp.DryRun {
			return tried(ofTemplate, it.data, it.path)
		}
		got, err := r.opts.Characters.ImportResource(ctx, c, character.Template, it.data, it.path, "")
		if err != nil {
			return nil, err
		}
		return &became{kind: ofTemplate, id: got.Resource.ID, version: got.Resource.Version, notes: notesOf(got.Warnings), keep: true}, nil
	})
}
