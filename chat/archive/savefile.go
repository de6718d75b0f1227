package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"

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
}

// members are those of a JSON object.
type members map[string]json.RawMessage

// importedWith reads the Extra of a save point.
func importedWith(s *chat.Save) (*importedExtra, error) {
	x := &importedExtra{}
	if len(s.Extra) == 0 {
		return x, nil
	}
	return x, json.Unmarshal(s.Extra, x)
}

// ExportSave writes a save point as one JSON file that ImportSave and the app
// read.
func (svc *Service) ExportSave(ctx context.Context, userID, saveID string) (data []byte, filename string, err error) {
	err = svc.store.View(ctx, userID, func(tx chat.Tx) error {
		save, err := tx.Save(saveID)
		if err == nil {
			data, filename, err = exportSave(tx, &chat.SaveView{Save: save})
		}
		return err
	})
	return data, filename, err
}

func exportSave(tx chat.Tx, v *chat.SaveView) (data []byte, filename string, err error) {
	var version int64 // of the character; 0 = the newest
	if p := v.Save.Pins; p != nil && p.CharacterID == "" {
		version = p.Character
	}
	ch, err := character.At(tx.Characters, v.Save.CharacterID, version)
	if err != nil {
		return nil, "", err
	}
	state, err := v.Save.State(tx)
	if err != nil {
		return nil, "", err
	}
	x, err := importedWith(v.Save)
	if err != nil {
		return nil, "", err
	}
	if err := v.Read(tx, "", 0); err != nil {
		return nil, "", err
	}
	f := &saveFile{
		Format: saveFormat, FormatVersion: formatVersion, CharacterName: ch.Name, wireChatSave: chatSaveOf(v),
		Nodest: archiveOf(v, ch, state),
	}
	data, err = f.with(x)
	return data, card.FileName(cmp.Or(v.Save.Description, ch.Name), ".json"), err
}

// archiveOf is the archive of a save point: its path as it was, and nothing else.
func archiveOf(v *chat.SaveView, ch *character.Character, then *chat.Conversation) *contents {
	a := &contents{Messages: make([]*chat.DumpedMessage, len(v.Messages))}
	a.Character.ID, a.Character.Name = ch.ID, ch.Name
	a.Conversation.Conversation = *stateOf(then)
	state := &a.Conversation.Conversation
	state.HeadID, state.Pins, state.SummaryID = v.Save.HeadID, v.Save.Pins, ""
	parent := ""
	for i, shown := range v.Messages {
		m := *shown
		m.ParentID, m.ClientMsgID, m.Swipes = parent, "", append([]chat.Swipe{}, shown.Swipes...)
		parent = m.ID
		d := &chat.DumpedMessage{Message: &m, Texts: make([]chat.DumpedText, len(m.Swipes))}
		for i, s := range m.Swipes {
			d.Texts[i] = chat.DumpedText{Swipe: s, StoredAt: s.CreatedAt}
		}
		d.States = []chat.DumpedState{{Version: state.Version, Rev: m.Rev, Status: m.Status}}
		if s := m.Chosen(); s != nil {
			d.States[0].RevisionID = s.RevisionID
		}
		a.Messages[i] = exported(d)
	}
	return a
}

// with is the file with the members of an imported one that are not ours.
func (f *saveFile) with(x *importedExtra) ([]byte, error) {
	messages := make([]members, len(f.Messages))
	for i, m := range f.Messages {
		more := x.Messages[f.Nodest.Messages[i].Seq]
		if more["metadata"] != nil {
			m.Metadata = nil
		}
		var err error
		if messages[i], err = with(more, m); err != nil {
			return nil, err
		}
	}
	whole, err := with(x.Members, f)
	if err != nil {
		return nil, err
	}
	whole["messages"] = encoded(messages)
	return encoded(whole), nil
}

// with adds the members of v, over those of the same name.
func with(more members, v any) (members, error) {
	all := maps.Clone(more)
	return all, json.Unmarshal(encoded(v), &all)
}
