package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"nodest/card"
	"nodest/chat"
	"nodest/op"
)

// An archive is a conversation as JSON: messages with their swipes, revisions and
// states, the states of the conversation itself, and its save points. Ids hold
// within the file. The generations and recalled memories of texts are left out.
//
// There are two kinds of files. An archive by itself (format nodest.conversation)
// has everything of its conversation. The file of a save point (nodest.save, see
// saveFile) is a ChatSave of the NodeST app with an archive of one path in its
// member nodest. readArchive and check serve both.
const (
	archiveFormat = card.FormatArchive
	saveFormat    = card.FormatSave
	formatVersion = 1 // of both
)

type contents struct {
	Format        string    `json:"format,omitempty"` // in a save point's file, format and version are those of the file
	FormatVersion int       `json:"formatVersion,omitempty"`
	ExportedAt    time.Time `json:"exportedAt,omitzero"`
	Character     struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"character"`
	Conversation struct {
		chat.Conversation
		Extra json.RawMessage `json:"extra,omitempty"` // Conversation.Extra
	} `json:"conversation"`
	Messages  []*chat.DumpedMessage `json:"messages"`            // by seq
	States    []*chat.Conversation  `json:"states,omitempty"`    // of the conversation, by version
	Rewinds   []chat.Rewind         `json:"rewinds,omitempty"`   // oldest first
	Saves     []*chat.Save          `json:"saves,omitempty"`     // oldest first
	Summaries []*chat.DumpedSummary `json:"summaries,omitempty"` // by generation
}

// ExportArchive writes all of a conversation, hidden branches and save points
// included, as a JSON document that ImportArchive reads. A message that is being
// written is exported as an interrupted one with the text stored so far.
func (svc *Service) ExportArchive(ctx context.Context, userID, conversationID string) (data []byte, filename string, err error) {
	err = svc.store.View(ctx, userID, func(tx chat.Tx) error {
		a, err := exportArchive(tx, conversationID)
		if err == nil {
			data, filename = encoded(a), card.FileName(a.Conversation.Title, ".json")
		}
		return err
	})
	return data, filename, err
}

func exportArchive(tx chat.Tx, conversationID string) (*contents, error) {
	conv, err := tx.Conversation(conversationID)
	if err != nil {
		return nil, err
	}
	ch, err := tx.Characters.Character(conv.CharacterID)
	if err != nil {
		return nil, err
	}
	a := &contents{Format: archiveFormat, FormatVersion: formatVersion, ExportedAt: tx.Now()}
	a.Character.ID, a.Character.Name = ch.ID, ch.Name
	a.Conversation.Conversation, a.Conversation.Extra = *stateOf(conv), op.JSONOrNil(conv.Extra)
	to := &a.Conversation.Conversation
	to.ID, to.Title, to.Archived, to.Tags, to.CreatedAt = conv.ID, conv.Title, conv.Archived, conv.Tags, conv.CreatedAt
	if a.Messages, err = tx.Dump(conv.ID); err != nil {
		return nil, err
	}
	there := map[string]bool{"": true} // old states name purged messages too
	for _, m := range a.Messages {
		there[exported(m).ID] = true
	}
	summaries, err := tx.DumpSummaries(conv.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range summaries {
		if r := s.Newest().Range; there[r.StartID] && there[r.EndID] {
			a.Summaries = append(a.Summaries, s)
		}
	}
	return a, a.readHistory(tx, there)
}

const savesAtOnce = 200

// readHistory reads the rewinds, the save points, and the states that they name.
func (a *contents) readHistory(tx chat.Tx, there map[string]bool) (err error) {
	conv := &a.Conversation.Conversation
	if a.Rewinds, err = tx.Rewinds(conv.ID); err != nil {
		return err
	}
	versions := map[int64]bool{}
	for _, r := range a.Rewinds {
		versions[r.At-1], versions[r.At], versions[r.To] = true, true, true
	}
	for cursor, more := "", true; more; more = cursor != "" {
		var page []*chat.Save
		if page, cursor, err = tx.Saves(conv.ID, true, cursor, savesAtOnce); err != nil {
			return err
		}
		for _, s := range page {
			if there[s.HeadID] {
				a.Saves = append(a.Saves, s)
				versions[s.Version] = true
			}
		}
	}
	slices.Reverse(a.Saves)
	delete(versions, conv.Version) // that one is the conversation's own
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		state, err := tx.StateAt(conv.ID, version)
		if err != nil {
			return err
		}
		if !there[state.HeadID] {
			state.HeadID = ""
		}
		a.States = append(a.States, stateOf(state))
	}
	return nil
}

// stateOf is what is versioned of a conversation.
func stateOf(c *chat.Conversation) *chat.Conversation {
	return &chat.Conversation{
		Version: c.Version, HeadID: c.HeadID, PersonaID: c.PersonaID, AuthorNote: op.JSONOrNil(c.AuthorNote),
		Settings: op.JSONOrNil(c.Settings), Pins: c.Pins, SummaryID: c.SummaryID,
	}
}

// exported reduces m to its form in a file.
func exported(m *chat.DumpedMessage) *chat.DumpedMessage {
	m.ConversationID, m.GenerationID, m.Status, m.Extra = "", "", finalStatus(m.Status), op.JSONOrNil(m.Message.Extra)
	for i, s := range m.Swipes {
		m.Swipes[i] = chat.Swipe{ID: s.ID, RevisionID: s.RevisionID, Deleted: s.Deleted, CreatedAt: s.CreatedAt}
	}
	for i := range m.Texts {
		t := &m.Texts[i]
		t.GenerationID, t.MemoryIDs, t.Deleted, t.CreatedAt = "", nil, false, time.Time{}
	}
	if n := len(m.States); n > 0 {
		m.States[n-1].Status = finalStatus(m.States[n-1].Status)
	}
	return m
}

// finalStatus is status without a running generation.
func finalStatus(status string) string {
	if status == chat.StatusPending || status == chat.StatusStreaming {
		return chat.StatusInterrupted
	}
	return status
}

// encoded is v as JSON. Documents of the user change in white space only.
func encoded(v any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("nodest: our own values cannot be encoded as JSON: " + err.Error()) // a bug
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
