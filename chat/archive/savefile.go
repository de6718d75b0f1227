package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"nodest/card"
	"nodest/character"
	"nodest/chat"
)

// saveFile is the file of a save point: the app's ChatSave, which the app reads,
// and in the member nodest, which makes a restore exact, an archive of its path.
type saveFile struct {
	Format        string `json:"format"`
	FormatVersion int    `json:"formatVersion"`
	CharacterName string `json:"characterName"`
	wireChatSave
	Nodest *contents `json:"nodest"`
}

// importedExtra is Save.Extra: the state that came with an imported file, and its
// members that are not ours.
type importedExtra struct {
	State    chat.Conversation `json:"state"` // persona, author's note and settings
	Members  members           `json:"members,omitempty"`
	Messages map[int64]members `json:"messages,omitempty"` // by seq
	Log      *logExtra         `json:"log,omitempty"`      // for a branch that came as a file of its own
}

// members are those of a JSON object.
type members map[string]json.RawMessage

func importedWith(s *chat.Save) (*importedExtra, error) {
	x := &importedExtra{}
	if len(s.Extra) == 0 {
		return x, nil
	}
	return x, json.Unmarshal(s.Extra, x)
}

// ExportSave writes a save point to out as one JSON file that ImportSave and the app read.
// Only a part of its path is held in memory. After an error, out has a part of the file.
func (svc *Service) ExportSave(ctx context.Context, userID, saveID string, out io.Writer) (filename string, err error) {
	err = svc.store.View(ctx, userID, func(tx chat.Tx) error {
		save, err := tx.Save(saveID)
		if err == nil {
			filename, err = exportSave(tx, save, out)
		}
		return err
	})
	return filename, err
}

func exportSave(tx chat.Tx, save *chat.Save, out io.Writer) (filename string, err error) {
	var version int64 // version of the character; 0 = the newest
	if p := save.Pins; p != nil && p.CharacterID == "" {
		version = p.Character
	}
	ch, err := character.At(tx.Characters, save.CharacterID, version)
	if err != nil {
		return "", err
	}
	x, err := importedWith(save)
	if err != nil {
		return "", err
	}
	f := &saveFile{
		Format: saveFormat, FormatVersion: formatVersion, CharacterName: ch.Name,
		wireChatSave: wireChatSave{SaveObject: chat.SaveOf(save)},
	}
	whole, err := with(x.Members, f)
	if err != nil {
		return "", err
	}
	s := &savedPath{tx, save}
	doc := &object{writer: newWriter(out)}
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		doc.member(name)
		switch name {
		case "messageIds":
			err = s.writeIDs(doc.writer)
		case "messages":
			err = s.writeMessages(doc.writer, x)
		case "nodestChatHistory":
			err = s.writeChatHistory(doc.writer)
		case "nodest":
			err = s.writeArchive(doc.writer, ch)
		default:
			err = doc.value(whole[name])
		}
		if err != nil {
			return "", err
		}
	}
	doc.end()
	return card.FileName(cmp.Or(save.Description, ch.Name), ".json"), doc.Flush()
}

// savedPath is the path of a save point that is written to a file.
type savedPath struct {
	tx   chat.Tx
	save *chat.Save
}

// each writes a list with what of makes of each message.
func (s *savedPath) each(add func(any) error, of func(*chat.Message) (any, error)) error {
	for m, err := range s.save.Path(s.tx) {
		if err != nil {
			return err
		}
		v, err := of(m)
		if err != nil {
			return err
		}
		if err := add(v); err != nil {
			return err
		}
	}
	return nil
}

func (s *savedPath) writeIDs(w writer) error {
	return w.elements(func(add func(any) error) error {
		return s.each(add, func(m *chat.Message) (any, error) { return m.ID, nil })
	})
}

// writeMessages writes the app's messages, with the members of imported ones that are not
// ours.
func (s *savedPath) writeMessages(w writer, x *importedExtra) error {
	replies := new(replyCounter)
	return w.elements(func(add func(any) error) error {
		return s.each(add, func(shown *chat.Message) (any, error) {
			more, m := x.Messages[shown.Seq], savedMessageOf(shown, replies)
			if more["metadata"] != nil {
				m.Metadata = nil
			}
			return with(more, m)
		})
	})
}

// writeChatHistory writes what History returns.
func (s *savedPath) writeChatHistory(w writer) error {
	doc := &object{writer: w}
	doc.put("name", chatHistoryName)
	doc.put("role", chatHistoryRole)
	doc.put("identifier", chatHistoryIdentifier)
	err := doc.list("parts", func(add func(any) error) error {
		return eachEntry(s.save.Path(s.tx), func(e Entry) error { return add(e) })
	})
	doc.end()
	return err
}

// writeArchive writes an archive of the path as it was, and of nothing else.
func (s *savedPath) writeArchive(w writer, ch *character.Character) error {
	then, err := s.save.State(s.tx)
	if err != nil {
		return err
	}
	a := &contents{}
	a.Character.ID, a.Character.Name = ch.ID, ch.Name
	a.Conversation.Conversation = *stateOf(then)
	state := &a.Conversation.Conversation
	state.HeadID, state.Pins, state.SummaryID = s.save.HeadID, s.save.Pins, ""
	doc := &object{writer: w}
	doc.put("character", a.Character)
	doc.put("conversation", a.Conversation)
	parent, plays := "", []string{}
	err = doc.list("messages", func(add func(any) error) error {
		return s.each(add, func(m *chat.Message) (_ any, err error) {
			if m.Extra, err = lineOf(s.tx, m); err != nil {
				return nil, err
			}
			m.ParentID, m.ClientMsgID = parent, ""
			parent = m.ID
			for i := range m.Swipes {
				plays = append(plays, m.Swipes[i].PlayID)
			}
			return exported(dumped(m, state.Version)), nil
		})
	})
	if err == nil {
		err = s.writePlays(doc, append(plays, state.PlayID))
	}
	doc.end()
	return err
}

// writePlays writes those with some ids, each once.
func (s *savedPath) writePlays(doc *object, ids []string) error {
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
	return doc.listIf("plays", len(ids), func(add func(any) error) error {
		for _, id := range ids {
			p, err := chat.PlayOf(s.tx, id)
			if err != nil {
				return err
			}
			p.ID = id
			if err := add(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// with adds the members of v, over those of the same name.
func with(more members, v any) (members, error) {
	all := maps.Clone(more)
	return all, json.Unmarshal(encoded(v), &all)
}
