package tavern

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"path"
	"slices"

	"nodest/card"
	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/spool"
	"nodest/internal/tavern/folder"
)

// characters writes each character with its chats, its memories and its save points.
func (o *outgoing) characters(ctx context.Context) error {
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := o.opts.Characters.List(ctx, o.userID, character.Filter{}, cursor, 0)
		if err != nil {
			return err
		}
		for _, ch := range page.Items {
			if err := o.character(ctx, ch); err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		cursor = page.NextCursor
	}
	return nil
}

func (o *outgoing) character(ctx context.Context, ch *character.Character) error {
	group, err := o.came(ctx, folder.Group, ch.ID)
	if err != nil {
		return err
	}
	k, err := o.came(ctx, folder.Character, ch.ID)
	if err != nil {
		return err
	}
	dir, name := "group chats", ch.Name
	switch {
	case group != nil && group.Parts > 0:
	case k != nil && path.Dir(k.Path) == dir: // it was made for a chat without its group
		group = nil
	default:
		group = nil
		file, err := o.card(ctx, ch, k)
		if err != nil {
			return err
		}
		name = folder.Base(file)
		dir = path.Join("chats", name)
	}
	chats, err := o.chats(ctx, ch, dir, name)
	if err == nil && group != nil {
		err = o.group(ctx, group, ch, chats)
	}
	if err != nil || o.opts.Memories == nil {
		return err
	}
	at := o.names.Take(path.Join(outside, "memories"), name, ".jsonl")
	return o.spooled(ctx, Written{Path: at, ObjectKind: ofCharacter, ObjectID: ch.ID}, func(w io.Writer) error { return o.opts.Memories(ctx, o.userID, ch.ID, w) })
}

// card writes the card of a character, and returns its path.
func (o *outgoing) card(ctx context.Context, ch *character.Character, k *Known) (_ string, err error) {
	f := Written{Path: o.pathOf(k), ObjectKind: ofCharacter, ObjectID: ch.ID}
	if k != nil && k.Parts > 0 && f.Path != "" {
		var came bytes.Buffer
		if err := o.kept(ctx, k, &came); err != nil {
			return "", err
		}
		if f.Original, err = o.sameCharacter(ctx, k, ch, came.Bytes()); err != nil {
			return "", err
		}
		if f.Original {
			return f.Path, o.addBytes(f, came.Bytes())
		}
	}
	data, original, err := o.opts.Characters.ExportCard(ctx, o.userID, ch.ID)
	if err != nil {
		return "", err
	}
	if f.Path == "" || path.Ext(f.Path) != ".png" {
		wanted := ch.Name
		if k != nil {
			wanted = folder.Base(k.Path)
		}
		f.Path = o.names.Take("characters", wanted, ".png")
	}
	f.Original = original
	return f.Path, o.addBytes(f, data)
}

// sameCharacter says that a character is still what its file made of it.
func (o *outgoing) sameCharacter(ctx context.Context, k *Known, ch *character.Character, file []byte) (same bool, err error) {
	if k.Version == ch.Version {
		return true, nil
	}
	var was, now *character.Character
	var picture []byte
	err = o.store.View(ctx, o.userID, func(tx Tx) error {
		var err error
		if was, err = tx.Characters.CharacterVersion(ch.ID, k.Version); err != nil {
			return err
		}
		if now, err = tx.Characters.Character(ch.ID); err != nil {
			return err
		}
		if now.HasAvatar {
			avatar, err := tx.Characters.Avatar(ch.ID)
			if err != nil {
				return err
			}
			picture = avatar.Data
		}
		return nil
	})
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return false, err
	}
	for _, doc := range [][2]json.RawMessage{
		{was.RoleCard, now.RoleCard}, {was.WorldBook, now.WorldBook}, {was.Preset, now.Preset}, {was.AuthorNote, now.AuthorNote}, {was.RegexScripts, now.RegexScripts},
	} {
		if !bytes.Equal(doc[0], doc[1]) {
			return false, nil
		}
	}
	came, err := card.Import(file, k.Path, card.Limits{})
	return err == nil && bytes.Equal(came.Avatar, picture), nil
}

// chats writes the chats of a character to a folder, and returns the names of the files.
func (o *outgoing) chats(ctx context.Context, ch *character.Character, dir, name string) (files []string, err error) {
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := o.opts.Chats.Conversations(ctx, o.userID, chat.ConversationFilter{CharacterID: ch.ID}, cursor, 0)
		if err != nil {
			return nil, err
		}
		for _, conv := range page.Items {
			names, err := o.chat(ctx, conv, dir)
			if err == nil {
				err = o.saves(ctx, conv, path.Join(name, append(names, conv.Title)[0]))
			}
			if err != nil && !fault.Is(err, fault.NotFound) {
				return nil, err
			}
			files = append(files, names...)
		}
		cursor = page.NextCursor
	}
	return files, nil
}

// chat writes the files of a conversation. They are read first, in one transaction.
func (o *outgoing) chat(ctx context.Context, conv *chat.Conversation, dir string) ([]string, error) {
	c := &chatSink{o: o, dir: dir, all: &spool.Spool{Dir: o.opts.TempDir}}
	defer c.all.Drop()
	err := o.store.View(ctx, o.userID, func(tx Tx) error {
		for cursor, more := "", true; more; more = cursor != "" {
			var page []*Known
			var err error
			if page, cursor, err = tx.KnownFiles("", conv.ID, false, cursor, 100); err != nil {
				return err
			}
			c.came = append(c.came, page...)
		}
		return nil
	})
	c.known = c.came
	if err == nil {
		err = o.opts.Archives.WriteLogs(ctx, o.userID, conv.ID, c)
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(c.files))
	for i, f := range c.files {
		end := c.all.Size
		if i+1 < len(c.files) {
			end = c.files[i+1].at
		}
		names[i] = f.name
		original, err := c.original(f.name, f.at, end)
		if err != nil {
			return nil, err
		}
		w := Written{Path: path.Join(dir, f.name+".jsonl"), ObjectKind: ofConversation, ObjectID: conv.ID, Original: original}
		err = o.add(w, func(w io.Writer) error { _, err := io.Copy(w, c.all.Part(f.at, end-f.at)); return err })
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// chatSink takes the files of a conversation.
type chatSink struct {
	o     *outgoing
	dir   string
	came  []*Known // whose names are not given yet
	known []*Known
	named int
	all   *spool.Spool // the files, one behind the other
	files []chatOut
}

type chatOut struct {
	name string
	at   int64
}

// Name gives a file the name that it came with.
func (c *chatSink) Name(wanted string) string {
	if c.named++; c.named == 1 && len(c.known) == 1 { // a conversation of one file has only its title
		wanted = folder.Base(c.known[0].Path)
	}
	for i, k := range c.came {
		if folder.Base(k.Path) == wanted && path.Dir(c.o.pathOf(k)) == c.dir {
			c.came = slices.Delete(slices.Clone(c.came), i, i+1)
			return folder.Base(c.o.pathOf(k))
		}
	}
	return folder.Base(c.o.names.Take(c.dir, wanted, ".jsonl"))
}

// File begins a file.
func (c *chatSink) File(name string) (io.Writer, error) {
	c.files = append(c.files, chatOut{name, c.all.Size})
	return c.all, nil
}

// original says that a file is the one that came in.
func (c *chatSink) original(name string, at, end int64) (bool, error) {
	for _, k := range c.known {
		if folder.Base(c.o.pathOf(k)) != name || k.Size != end-at {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, c.all.Part(at, end-at)); err != nil {
			return false, err
		}
		return hex.EncodeToString(sum.Sum(nil)) == k.Digest, nil
	}
	return false, nil
}

// group writes a group, with the chats that it has now.
func (o *outgoing) group(ctx context.Context, k *Known, ch *character.Character, chats []string) error {
	var came bytes.Buffer
	if err := o.kept(ctx, k, &came); err != nil {
		return err
	}
	f := Written{Path: o.pathOf(k), Original: true, ObjectKind: ofCharacter, ObjectID: ch.ID}
	g, err := folder.ReadGroup(came.Bytes())
	if f.Path == "" || err != nil {
		return o.leave(LeftOut{Kind: string(folder.Group), ID: ch.ID, Name: ch.Name, Reason: "its file cannot be read any more"})
	}
	more := slices.DeleteFunc(slices.Clone(chats), func(name string) bool { return slices.Contains(g.Chats, name) })
	if len(more) == 0 {
		return o.addBytes(f, came.Bytes())
	}
	f.Original = false
	return o.addBytes(f, indented(card.WithMember(came.Bytes(), "chats", append(slices.Clone(g.Chats), more...))))
}

// saves writes the save points of a conversation that are no files of a chat.
func (o *outgoing) saves(ctx context.Context, conv *chat.Conversation, name string) error {
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := o.opts.Chats.Saves(ctx, o.userID, conv.ID, false, cursor, 0)
		if err != nil {
			return err
		}
		for _, s := range page.Items {
			if o.opts.Archives.IsBranchFile(s) {
				continue
			}
			title := s.Description
			if title == "" {
				title = s.CreatedAt.UTC().Format("2006-01-02 15h04m05s")
			}
			at := o.names.Take(path.Join(outside, "save points", name), op.Truncate(title, 80), ".json")
			err := o.spooled(ctx, Written{Path: at, ObjectKind: "save", ObjectID: s.ID}, func(w io.Writer) error {
				_, err := o.opts.Archives.ExportSave(ctx, o.userID, s.ID, w)
				return err
			})
			if err != nil {
				return err
			}
		}
		cursor = page.NextCursor
	}
	return nil
}
