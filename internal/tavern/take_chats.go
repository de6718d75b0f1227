package tavern

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"nodest/card"
	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

// chatLimits are those of each file of several.
var chatLimits = card.Limits{FileBytes: 64 << 20, Messages: 100_000}

// takeChats makes a conversation of a chat and its branches. Files that earlier imports have taken stay as they are.
func (r *run) takeChats(ctx context.Context, unit []*entry) ([]*File, error) {
	owner, notes, err := r.ownerOfChat(ctx, unit[0])
	if err != nil {
		return r.refuse(ctx, unit, err)
	}
	var files []*File
	var fresh []*chatFile
	for _, e := range unit {
		one, err := r.chatFile(ctx, e, owner, len(unit) > 1)
		if err != nil {
			refused, err := r.refuse(ctx, []*entry{e}, err)
			if err != nil {
				return nil, err
			}
			files = append(files, refused...)
			continue
		}
		files = append(files, one.report)
		if one.report.Outcome != Kept {
			fresh = append(fresh, one)
		}
	}
	if len(fresh) == 0 {
		return files, nil
	}
	if err := r.converse(ctx, owner, fresh, notes); err != nil {
		return files, err
	}
	for _, f := range fresh {
		if f.report.Outcome == Taken {
			f.report.Notes = append(f.report.Notes, f.missing...)
		}
	}
	return files, nil
}

// mostMissing bounds the names in a note about missing files.
const mostMissing = 5

// missingFiles is a note about the files that messages of a chat name, and that neither the folder nor an earlier import has.
func (r *run) missingFiles(ctx context.Context, data []byte) ([]Note, error) {
	var named []string
	seen := map[string]bool{}
	for line := range bytes.Lines(data) {
		for _, m := range folder.MediaOf(line, -1) {
			if e := r.there[lower(m.Path)]; !seen[m.Path] && (e == nil || e.path != m.Path) {
				named = append(named, m.Path)
			}
			seen[m.Path] = true
		}
	}
	if len(named) == 0 {
		return nil, nil
	}
	var missing []string
	err := r.store.View(ctx, r.userID, func(tx Tx) error {
		for _, name := range named {
			there, err := tx.Chats.FilesAt([]string{name})
			if err != nil {
				return err
			}
			if len(there) == 0 {
				missing = append(missing, name)
			}
		}
		return nil
	})
	if len(missing) == 0 || err != nil {
		return nil, err
	}
	names := strings.Join(missing[:min(len(missing), mostMissing)], ", ")
	return []Note{{"missing_files", "extra", fmt.Sprintf("files that its messages name are not in the folder (%d): %s", len(missing), op.Truncate(names, 500))}}, nil
}

// chatFile is a file of a chat that was read, and its line of the report.
type chatFile struct {
	*item
	known   *Known
	report  *File
	missing []Note
}

// content is the file. One of several is read again, so that there is one of them in memory at a time.
func (f *chatFile) content() ([]byte, error) {
	if f.data != nil {
		return f.data, nil
	}
	return f.Read(f.limit())
}

func (r *run) chatFile(ctx context.Context, e *entry, owner string, several bool) (*chatFile, error) {
	it, err := e.read()
	if err != nil {
		return nil, err
	}
	k, alive, err := r.knownAs(ctx, it, owner)
	if err != nil {
		return nil, err
	}
	one := &chatFile{item: it, known: k, report: &File{Path: it.path, Kind: it.kind, Size: int64(len(it.data)), Outcome: Taken, ObjectKind: ofConversation}}
	if alive {
		one.report.Outcome, one.report.ObjectID = Kept, k.ObjectID
		return one, nil
	}
	if one.missing, err = r.missingFiles(ctx, it.data); err != nil {
		return nil, err
	}
	if several { // the other files of the chat are taken without it
		if _, err := card.ReadChat(it.data, card.ChatNames{}, chatLimits, func(*card.ChatMessage) error { return nil }); err != nil {
			return nil, err
		}
		it.data = nil
	}
	return one, nil
}

// converse makes a conversation of files that belong together. Those that cannot be one are taken each by itself.
func (r *run) converse(ctx context.Context, owner string, files []*chatFile, notes []Note) error {
	logs := make([]archive.LogFile, len(files))
	for i, f := range files {
		logs[i] = archive.LogFile{Name: path.Base(f.path), Read: f.content}
	}
	got, err := r.importLogs(ctx, r.familyCall(files), owner, logs)
	if err != nil {
		return r.apart(ctx, owner, files, notes, err)
	}
	for i, f := range files {
		f.report.ObjectID = got.Conversation.ID
		if i == 0 {
			f.report.Notes = slices.Concat(f.known.stays(), notes, notesOf(got.Warnings))
		}
		if r.imp.DryRun {
			r.dry[f.known.Key] = Known{Key: f.known.Key, ObjectKind: ofConversation, ObjectID: got.Conversation.ID}
		} else {
			r.become(f.known, &became{kind: ofConversation, id: got.Conversation.ID, version: got.Conversation.Version})
		}
	}
	return nil
}

// importLogs makes a conversation. A dry run only reads it.
func (r *run) importLogs(ctx context.Context, c *op.Call, owner string, logs []archive.LogFile) (*archive.ImportedChat, error) {
	if !r.imp.DryRun {
		return r.opts.Archives.ImportLogs(ctx, c, owner, logs...)
	}
	warnings, err := archive.TryLogs("Character", logs...)
	return &archive.ImportedChat{Conversation: &chat.Conversation{ID: dryID(c.Key)}, Warnings: warnings}, err
}

// apart takes files each by itself that cannot be one conversation, or refuses the only one.
func (r *run) apart(ctx context.Context, owner string, files []*chatFile, notes []Note, why error) error {
	for _, f := range files {
		if len(files) > 1 {
			alone := append([]Note{{"taken_apart", "chat_metadata.main_chat", reason(why)}}, notes...)
			if err := r.converse(ctx, owner, []*chatFile{f}, alone); err != nil {
				return err
			}
			continue
		}
		refused, err := r.refuse(ctx, []*entry{f.entry}, why)
		if err != nil {
			return err
		}
		*f.report = *refused[0]
	}
	return nil
}

// familyCall is the call that makes a conversation of files.
func (r *run) familyCall(files []*chatFile) *op.Call {
	if len(files) == 1 {
		return r.call(files[0].known)
	}
	all, times := "", 0
	for _, f := range files {
		all, times = all+f.known.Key+"\n", times+f.known.Times
	}
	return r.call(&Known{Key: all, Times: times})
}

// ownerOfChat finds the character of a chat, or makes it.
func (r *run) ownerOfChat(ctx context.Context, e *entry) (id string, notes []Note, err error) {
	if e.reason != "" {
		return "", nil, fault.New(fault.InvalidImport, "%s", e.reason)
	}
	if e.kind == folder.GroupChat {
		return r.groupOfChat(ctx, e)
	}
	name := folder.Owner(e.path)
	if name == "" { // it is in no folder of a character
		head, err := e.Head(headBytes)
		if err != nil {
			return "", nil, err
		}
		name = archive.CharacterName(head[:bytes.LastIndexByte(head, '\n')+1])
	}
	if name == "" {
		return "", nil, fault.New(fault.InvalidImport, "it is in no folder of a character, and says of none")
	}
	if id, ok, err := r.characterOf(ctx, name); ok || err != nil {
		return id, nil, err
	}
	begun, err := r.madeBefore(ctx, name)
	if err != nil {
		return "", nil, err
	}
	if id, ok, err := r.named(ctx, name); !begun && ok || err != nil {
		r.characters[lower(name)] = id
		return id, nil, err
	}
	id, err = r.makeCharacter(ctx, name)
	return id, []Note{{"character_made", "characters", fmt.Sprintf("a character was made with the name %q: its card is not in the folder", name)}}, err
}

// makeCharacter makes a character that has only a name, for chats whose card is not there.
func (r *run) makeCharacter(ctx context.Context, name string) (string, error) {
	if !r.imp.MakeCharacters {
		return "", fault.New(fault.InvalidImport, "its character %q is not there", name)
	}
	return r.madeOnce(ctx, "chats/"+name, name, &card2{Name: name})
}

// madeBefore says that an attempt which died has made the character of a chat, and maybe not given it its settings.
func (r *run) madeBefore(ctx context.Context, name string) (bool, error) {
	k, alive, err := r.knownAs(ctx, madeItem("chats/"+name), "made")
	if err != nil || alive {
		return false, err
	}
	return r.opts.Archives.Answered(ctx, r.call(k))
}

func madeItem(at string) *item {
	return &item{entry: &entry{path: at, kind: folder.Character}, digest: digestOf([]byte(at))}
}

// card2 is a card of the second version that an import makes.
type card2 struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Personality string `json:"personality"`
	Scenario    string `json:"scenario"`
	FirstMes    string `json:"first_mes"`
	MesExample  string `json:"mes_example"`
}

// madeOnce makes a character that no file of the folder is, unless an earlier import has made it.
func (r *run) madeOnce(ctx context.Context, at, name string, c *card2) (string, error) {
	data, err := json.Marshal(map[string]any{"spec": "chara_card_v2", "spec_version": "2.0", "data": c})
	if err != nil {
		return "", err
	}
	k, alive, err := r.knownAs(ctx, madeItem(at), "made")
	if err != nil || alive {
		r.characters[lower(name)] = k.ObjectID
		return k.ObjectID, err
	}
	if r.imp.DryRun {
		id := dryID(at)
		r.characters[lower(name)] = id
		r.made = append(r.made, newName{name, id})
		return id, nil
	}
	got, err := r.opts.Characters.Import(ctx, r.call(k), data, name+".json")
	if err != nil {
		return "", err
	}
	ch, err := r.withSettings(ctx, r.call(k), got.Character)
	if err != nil {
		return "", err
	}
	r.characters[lower(name)] = ch.ID
	r.become(k, &became{kind: ofCharacter, id: ch.ID, version: ch.Version})
	return ch.ID, nil
}

// withSettings gives a character that an import has made the settings that all characters of the folder get.
func (r *run) withSettings(ctx context.Context, c *op.Call, ch *character.Character) (*character.Character, error) {
	if r.settings == nil {
		return ch, nil
	}
	settings := characterSettings(r.settings, "")
	if settings == nil {
		return ch, nil
	}
	version, err := r.putSettings(ctx, c.Part("settings"), ch, settings)
	if err != nil {
		if fault.Public(err).Retry() == "no" {
			return ch, nil // odd values
		}
		return nil, err
	}
	done := *ch
	done.Version = version
	return &done, nil
}

// groupOfChat finds the character of a group's chat, or makes one for a chat without its group.
func (r *run) groupOfChat(ctx context.Context, e *entry) (id string, notes []Note, err error) {
	name := folder.Base(e.path)
	id, ok := r.groups[lower(name)]
	if ok {
		return id, nil, nil
	}
	if !r.imp.MakeCharacters {
		return "", nil, fault.New(fault.InvalidImport, "its group is not in the folder")
	}
	id, err = r.madeOnce(ctx, "group chats/"+name, op.Truncate(character.OneLine("Group "+name), 200), &card2{Name: "Group " + name})
	return id, []Note{{"character_made", "groups", "a character was made for it: its group is not in the folder"}}, err
}
