package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"

	"nodest/card"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
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
	formatVersion = 1 // version of both formats
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
	States    []*chat.Conversation  `json:"states,omitempty"`    // states of the conversation, by version
	Rewinds   []chat.Rewind         `json:"rewinds,omitempty"`   // oldest first
	Saves     []*chat.Save          `json:"saves,omitempty"`     // oldest first
	Summaries []*chat.DumpedSummary `json:"summaries,omitempty"` // by generation
	Plays     []*chat.Play          `json:"plays,omitempty"`     // that texts and states name
}

// ExportArchive writes all of a conversation, hidden branches and save points included, to
// out, as a JSON document that ImportArchive reads. A message that is being written is
// exported as an interrupted one with the text stored so far. Only the summaries, and the ids of
// save points, are held in memory as a whole. After an error, out has a part of the document.
func (svc *Service) ExportArchive(ctx context.Context, userID, conversationID string, out io.Writer) (filename string, err error) {
	return svc.export(ctx, userID, conversationID, ".json", func(tx chat.Tx, conv *chat.Conversation) error { return exportArchive(tx, conv, out) })
}

func (svc *Service) export(ctx context.Context, userID, conversationID, extension string, write func(chat.Tx, *chat.Conversation) error) (filename string, err error) {
	err = svc.store.View(ctx, userID, func(tx chat.Tx) error {
		conv, err := tx.Conversation(conversationID)
		if err != nil {
			return err
		}
		filename = card.FileName(conv.Title, extension)
		return write(tx, conv)
	})
	return filename, err
}

func exportArchive(tx chat.Tx, conv *chat.Conversation, out io.Writer) error {
	ch, err := tx.Characters.Character(conv.CharacterID)
	if err != nil {
		return err
	}
	a := &contents{}
	a.Character.ID, a.Character.Name = ch.ID, ch.Name
	a.Conversation.Conversation, a.Conversation.Extra = *stateOf(conv), op.JSONOrNil(conv.Extra)
	to := &a.Conversation.Conversation
	to.ID, to.Title, to.Archived, to.Tags, to.CreatedAt = conv.ID, conv.Title, conv.Archived, conv.Tags, conv.CreatedAt
	doc := &object{writer: newWriter(out)}
	doc.put("format", archiveFormat)
	doc.put("formatVersion", formatVersion)
	doc.put("exportedAt", tx.Now())
	doc.put("character", a.Character)
	doc.put("conversation", a.Conversation)
	err = doc.list("messages", func(add func(any) error) error {
		return eachDumped(tx, conv.ID, func(m *chat.DumpedMessage) error { return add(exported(m)) })
	})
	if err != nil {
		return err
	}
	if err := writeHistory(tx, doc, conv); err != nil {
		return err
	}
	if err := writeSummaries(tx, doc, conv.ID); err != nil {
		return err
	}
	if err := writePlays(tx, doc, conv.ID); err != nil {
		return err
	}
	doc.end()
	return doc.Flush()
}

// How much an export reads at a time.
const (
	dumpedAtOnce = 100
	savesAtOnce  = 20 // with thumbnails
)

func eachDumped(tx chat.Tx, conversationID string, f func(*chat.DumpedMessage) error) error {
	for after := int64(0); ; {
		page, err := tx.Dump(conversationID, after, dumpedAtOnce)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, m := range page {
			after = m.Seq
			if m.Message.Extra, err = lineOf(tx, m.Message); err != nil {
				return err
			}
			if err := f(m); err != nil {
				return err
			}
		}
	}
}

// writeHistory writes the rewinds, the save points, and the states that they name.
func writeHistory(tx chat.Tx, doc *object, conv *chat.Conversation) error {
	rewinds, err := tx.Rewinds(conv.ID)
	if err != nil {
		return err
	}
	versions := map[int64]bool{}
	for _, r := range rewinds {
		versions[r.At-1], versions[r.At], versions[r.To] = true, true, true
	}
	var saves []string
	for cursor, more := "", true; more; more = cursor != "" {
		var page []*chat.Save
		if page, cursor, err = tx.Saves(conv.ID, true, cursor, savesAtOnce); err != nil {
			return err
		}
		for _, s := range page {
			there, err := isThere(tx, s.HeadID)
			if err != nil {
				return err
			}
			if there {
				saves = append(saves, s.ID)
				versions[s.Version] = true
			}
		}
	}
	delete(versions, conv.Version) // that one is the conversation's own
	err = doc.listIf("states", len(versions), func(add func(any) error) error {
		for _, version := range slices.Sorted(maps.Keys(versions)) {
			state, err := tx.StateAt(conv.ID, version)
			if err != nil {
				return err
			}
			there, err := isThere(tx, state.HeadID)
			if err != nil {
				return err
			}
			if !there {
				state.HeadID = ""
			}
			if err := add(stateOf(state)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(rewinds) > 0 {
		doc.put("rewinds", rewinds)
	}
	return writeSaves(tx, doc, saves)
}

// writeSaves writes save points, given by their ids, the newest first, as a list with the
// oldest first.
func writeSaves(tx chat.Tx, doc *object, ids []string) error {
	return doc.listIf("saves", len(ids), func(add func(any) error) error {
		for _, id := range slices.Backward(ids) {
			s, err := tx.Save(id)
			if err != nil {
				return err
			}
			if err := add(s); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeSummaries(tx chat.Tx, doc *object, conversationID string) error {
	summaries, err := tx.DumpSummaries(conversationID)
	if err != nil {
		return err
	}
	there := make([]*chat.DumpedSummary, 0, len(summaries))
	for _, s := range summaries {
		covers := s.Newest().Range
		begins, err := isThere(tx, covers.StartID)
		if err != nil {
			return err
		}
		ends, err := isThere(tx, covers.EndID)
		if err != nil {
			return err
		}
		if begins && ends {
			there = append(there, s)
		}
	}
	if len(there) > 0 {
		doc.put("summaries", there)
	}
	return nil
}

// playsAtOnce is how many an export reads at a time: each may have 256 KiB.
const playsAtOnce = 20

func writePlays(tx chat.Tx, doc *object, conversationID string) error {
	page, err := tx.Plays(conversationID, "", playsAtOnce)
	if err != nil {
		return err
	}
	return doc.listIf("plays", len(page), func(add func(any) error) error {
		for len(page) > 0 {
			for _, p := range page {
				if err := add(p); err != nil {
					return err
				}
			}
			if page, err = tx.Plays(conversationID, page[len(page)-1].ID, playsAtOnce); err != nil {
				return err
			}
		}
		return nil
	})
}

// isThere reports whether a message that the history names is there: maintenance has removed some
// of those that were deleted. "" is.
func isThere(tx chat.Tx, messageID string) (bool, error) {
	if messageID == "" {
		return true, nil
	}
	_, err := tx.Message(messageID)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// stateOf is what is versioned of a conversation.
func stateOf(c *chat.Conversation) *chat.Conversation {
	return &chat.Conversation{
		Version: c.Version, HeadID: c.HeadID, PersonaID: c.PersonaID, AuthorNote: op.JSONOrNil(c.AuthorNote),
		Settings: op.JSONOrNil(c.Settings), Pins: c.Pins, SummaryID: c.SummaryID, PlayID: c.PlayID,
	}
}

func exported(m *chat.DumpedMessage) *chat.DumpedMessage {
	m.ConversationID, m.GenerationID, m.Status, m.Extra = "", "", finalStatus(m.Status), op.JSONOrNil(m.Message.Extra)
	for i, s := range m.Swipes {
		m.Swipes[i] = chat.Swipe{ID: s.ID, RevisionID: s.RevisionID, Deleted: s.Deleted, CreatedAt: s.CreatedAt}
	}
	for i := range m.Texts {
		t := &m.Texts[i]
		t.GenerationID, t.Recalled, t.Deleted, t.CreatedAt = "", chat.Recalled{}, false, time.Time{}
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
