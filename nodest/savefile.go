package nodest

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"nodest/card"
	"nodest/llm"
)

// A file of a save point is the app's ChatSave as one JSON object, so that the app
// reads it, with what the app does not know beside it: format and formatVersion
// name it, "nodest" in a message holds its swipes, and personaId, authorNote,
// settings and pins are the state of the conversation.
const (
	saveFormat        = "nodest.save"
	saveFormatVersion = 1
)

type saveFile struct {
	Format        string `json:"format"`
	FormatVersion int    `json:"formatVersion"`
	CharacterName string `json:"characterName"`
	wireChatSave
	keptState
	Pins *Pins `json:"pins,omitempty"`
}

// keptState is what an imported save point sets beside the messages.
type keptState struct {
	PersonaID  string          `json:"personaId,omitempty"`
	AuthorNote json.RawMessage `json:"authorNote,omitempty"`
	Settings   json.RawMessage `json:"settings,omitempty"`
}

// keptMessage is what the app's Message cannot say.
type keptMessage struct {
	Role       string          `json:"role"`
	Name       string          `json:"name,omitempty"`
	AuthorID   string          `json:"authorId,omitempty"`
	Greeting   bool            `json:"greeting,omitempty"`
	Hidden     bool            `json:"hidden,omitempty"`
	Status     string          `json:"status,omitempty"` // "" = complete
	SwipeIndex int             `json:"swipeIndex"`
	Swipes     []keptSwipe     `json:"swipes"`
	EditedAt   int64           `json:"editedAt,omitempty"` // ms
	Extra      json.RawMessage `json:"extra,omitempty"`    // the line of an imported log
}

type keptSwipe struct {
	Text      string     `json:"text"`
	Reasoning string     `json:"reasoning,omitempty"`
	Blocks    []Block    `json:"blocks,omitempty"`
	Model     string     `json:"model,omitempty"`
	Finish    string     `json:"finish,omitempty"`
	Usage     *wireUsage `json:"usage,omitempty"`
	Wish      string     `json:"wish,omitempty"`
	Deleted   bool       `json:"deleted,omitempty"`
	CreatedAt int64      `json:"createdAt,omitempty"` // ms
}

// importedExtra is Save.Extra: the state that came with an imported file, and its
// members that are not ours.
type importedExtra struct {
	State    keptState                             `json:"state"`
	Members  map[string]json.RawMessage            `json:"members,omitempty"`
	Messages map[string]map[string]json.RawMessage `json:"messages,omitempty"` // by id
}

func (s *Save) extra() (*importedExtra, error) {
	x := &importedExtra{}
	if len(s.Extra) == 0 {
		return x, nil
	}
	return x, json.Unmarshal(s.Extra, x)
}

// kept is the state that came with an imported save point.
func (s *Save) kept() (keptState, error) {
	x, err := s.extra()
	return x.State, err
}

// ExportSave writes a save point as one JSON file that ImportSave and the app
// read: its messages with all their swipes, the history, note, settings and the
// versions of the documents.
func (e *Engine) ExportSave(ctx context.Context, userID, saveID string) (data []byte, filename string, err error) {
	f := &saveFile{Format: saveFormat, FormatVersion: saveFormatVersion}
	view, err := e.readSave(ctx, userID, saveID, func(tx Tx, v *SaveView) error {
		var version int64 // of the character; 0 = the newest
		if p := v.Save.Pins; p != nil && p.CharacterID == "" {
			version = p.Character
		}
		ch, err := characterAt(tx, v.Save.CharacterID, version)
		if err != nil {
			return err
		}
		then, err := tx.StateAt(v.Save.ConversationID, v.Save.Version)
		if err != nil {
			return err
		}
		f.CharacterName, f.keptState = ch.Name, keptState{then.PersonaID, then.AuthorNote, then.Settings}
		return v.read(tx, "", 0)
	})
	if err != nil {
		return nil, "", err
	}
	extra, err := view.Save.extra()
	if err != nil {
		return nil, "", err
	}
	if view.Save.ImportedAt != nil {
		f.keptState = extra.State
	}
	f.wireChatSave, f.Pins = chatSaveOf(view), view.Save.Pins
	for i, m := range view.Messages {
		f.Messages[i].Nodest = keptOf(m)
	}
	data, err = f.with(extra)
	return data, card.FileName(cmp.Or(view.Save.Description, f.CharacterName), ".json"), err
}

func keptOf(m *Message) *keptMessage {
	k := &keptMessage{
		Role: m.Role, Name: m.Name, AuthorID: m.AuthorID, Greeting: m.Greeting, Hidden: m.Hidden,
		SwipeIndex: m.SwipeIndex, Swipes: make([]keptSwipe, len(m.Swipes)), Extra: m.Extra,
	}
	if m.Status != StatusComplete {
		k.Status = m.Status
	}
	if m.EditedAt != nil {
		k.EditedAt = m.EditedAt.UnixMilli()
	}
	for i, s := range m.Swipes {
		k.Swipes[i] = keptSwipe{
			Text: s.Text, Reasoning: s.Reasoning, Blocks: s.Blocks, Model: s.Model, Finish: s.Finish,
			Usage: usageOf(s.Usage), Wish: s.Wish, Deleted: s.Deleted, CreatedAt: s.CreatedAt.UnixMilli(),
		}
	}
	return k
}

// with is the file with the members of an imported one that are not ours.
func (f *saveFile) with(x *importedExtra) ([]byte, error) {
	members := func(v any, more map[string]json.RawMessage) (map[string]json.RawMessage, error) {
		own := map[string]json.RawMessage{}
		err := json.Unmarshal(jsonOf(v), &own)
		for name, value := range more {
			if own[name] == nil {
				own[name] = value
			}
		}
		return own, err
	}
	if len(x.Members) == 0 && len(x.Messages) == 0 {
		return json.Marshal(f)
	}
	messages := make([]map[string]json.RawMessage, len(f.Messages))
	for i, m := range f.Messages {
		more := x.Messages[m.ID]
		if metadata := more["metadata"]; metadata != nil && m.Metadata != nil {
			both := map[string]any{}
			if err := json.Unmarshal(metadata, &both); err != nil {
				return nil, err
			}
			for name, value := range m.Metadata {
				both[name] = value
			}
			m.Metadata = both
		}
		var err error
		if messages[i], err = members(m, more); err != nil {
			return nil, err
		}
	}
	whole, err := members(f, x.Members)
	if err != nil {
		return nil, err
	}
	whole["messages"] = jsonOf(messages)
	return json.Marshal(whole)
}

// message is k as a new message.
func (k *keptMessage) message(text string, at, now time.Time) *Message {
	m := &Message{
		ID: newID(), Role: k.Role, Name: oneLine(k.Name), AuthorID: oneLine(k.AuthorID), Greeting: k.Greeting, Hidden: k.Hidden,
		SwipeIndex: k.SwipeIndex, Rev: 1, Status: StatusComplete, CreatedAt: at, Extra: orNil(k.Extra),
	}
	switch k.Status {
	case StatusCancelled, StatusInterrupted, StatusError:
		m.Status = k.Status
	case StatusPending, StatusStreaming: // nobody writes them any more
		m.Status = StatusInterrupted
	}
	if edited := millisIn(k.EditedAt, now); !edited.IsZero() {
		m.EditedAt = &edited
	}
	for i, s := range k.Swipes {
		if i == k.SwipeIndex {
			s.Text, s.Deleted = text, false // the app's member counts: somebody may have changed it
		}
		swipe := newSwipe(s.Text, cmp.Or(millisIn(s.CreatedAt, now), at))
		swipe.Reasoning, swipe.Blocks, swipe.Model = clean(s.Reasoning), s.Blocks, oneLine(s.Model)
		swipe.Finish, swipe.Wish, swipe.Deleted = oneLine(s.Finish), clean(s.Wish), s.Deleted
		if u := s.Usage; u != nil {
			swipe.Usage = &llm.Usage{
				PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, CachedTokens: u.CachedTokens, CostUSD: u.CostUSD,
			}
		}
		m.Swipes = append(m.Swipes, swipe)
	}
	return m
}

// millisIn is a time of a file; zero for none and for one that is still to come.
func millisIn(ms int64, now time.Time) time.Time {
	at := time.UnixMilli(ms).UTC()
	if ms <= 0 || at.After(now) {
		return time.Time{}
	}
	return at
}
