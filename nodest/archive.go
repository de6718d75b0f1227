package nodest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"nodest/card"
	"nodest/fault"
)

// An archive is a whole conversation as one JSON document: all branches, swipes,
// revisions and states of its messages, its own states, and its save points. The
// types below are the format; ids hold within the file. What was generated when and
// by which request is no part of it.
const (
	archiveFormat  = "nodest.conversation"
	archiveVersion = 1
)

type archive struct {
	Format        string               `json:"format"`
	FormatVersion int                  `json:"formatVersion"`
	ExportedAt    time.Time            `json:"exportedAt"`
	Character     archivedCharacter    `json:"character"`
	Conversation  archivedConversation `json:"conversation"`
	Messages      []*archivedMessage   `json:"messages"`            // by seq
	States        []*archivedState     `json:"states"`              // of the conversation, by version
	Rewinds       []archivedRewind     `json:"rewinds"`             // oldest first
	Saves         []*archivedSave      `json:"saves"`               // oldest first
	Summaries     []*archivedSummary   `json:"summaries,omitempty"` // by generation
}

type archivedCharacter struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type archivedConversation struct {
	ID        string          `json:"id"`
	Title     string          `json:"title"`
	Archived  bool            `json:"archived,omitempty"`
	Extra     json.RawMessage `json:"extra,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
	archivedState
}

// archivedState is what a conversation was at a version.
type archivedState struct {
	Version    int64           `json:"version"`
	HeadID     string          `json:"headId"`
	PersonaID  string          `json:"personaId,omitempty"`
	AuthorNote json.RawMessage `json:"authorNote,omitempty"`
	Settings   json.RawMessage `json:"settings,omitempty"`
	Pins       *Pins           `json:"pins,omitempty"`
	SummaryID  string          `json:"summaryId,omitempty"`
}

type archivedRewind struct {
	At int64 `json:"at"`
	To int64 `json:"to"`
}

type archivedMessage struct {
	ID          string          `json:"id"`
	ParentID    string          `json:"parentId,omitempty"`
	ClientMsgID string          `json:"clientMsgId,omitempty"`
	Seq         int64           `json:"seq"`
	Role        string          `json:"role"`
	Name        string          `json:"name"`
	AuthorID    string          `json:"authorId,omitempty"`
	Greeting    bool            `json:"greeting,omitempty"`
	Hidden      bool            `json:"hidden,omitempty"`
	SwipeIndex  int             `json:"swipeIndex"`
	Rev         int64           `json:"rev"`
	Status      string          `json:"status"`
	Error       *archivedError  `json:"error,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty"`
	CreatedAt   time.Time       `json:"createdAt"`
	EditedAt    *time.Time      `json:"editedAt,omitempty"`
	DeletedAt   *time.Time      `json:"deletedAt,omitempty"`
	Swipes      []archivedSwipe `json:"swipes"`
	Texts       []archivedText  `json:"texts"`  // every revision of the swipes, oldest first
	States      []DumpedState   `json:"states"` // oldest first
}

type archivedError struct {
	Code         fault.Code     `json:"code"`
	Detail       string         `json:"detail"`
	Errors       []fault.Field  `json:"errors,omitempty"`
	Details      map[string]any `json:"details,omitempty"`
	RetryAfterMs int64          `json:"retryAfterMs,omitempty"`
}

// archivedSwipe shows the text textId: after a restore that may be an older one.
type archivedSwipe struct {
	ID        string    `json:"id"`
	TextID    string    `json:"textId,omitempty"` // "" = the one with the highest rev
	Deleted   bool      `json:"deleted,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}

// archivedText is one revision.
type archivedText struct {
	ID        string     `json:"id"`
	SwipeID   string     `json:"swipeId"`
	Rev       int64      `json:"rev"`
	Text      string     `json:"text"`
	Reasoning string     `json:"reasoning,omitempty"`
	Blocks    []Block    `json:"blocks,omitempty"`
	Model     string     `json:"model,omitempty"`
	Finish    string     `json:"finish,omitempty"`
	Usage     *wireUsage `json:"usage,omitempty"`
	Wish      string     `json:"wish,omitempty"`
	StoredAt  time.Time  `json:"storedAt"`
}

type archivedSave struct {
	ID           string          `json:"id"`
	Version      int64           `json:"version"`
	HeadID       string          `json:"headId"`
	Description  string          `json:"description"`
	PreviewText  string          `json:"previewText"`
	MessageCount int             `json:"messageCount"`
	Automatic    bool            `json:"automatic,omitempty"`
	Thumbnail    string          `json:"thumbnail,omitempty"`
	Pins         *Pins           `json:"pins,omitempty"`
	Extra        json.RawMessage `json:"extra,omitempty"`
	ImportedAt   *time.Time      `json:"importedAt,omitempty"`
	CreatedAt    time.Time       `json:"createdAt"`
}

const (
	dumpPage   = 500 // messages that are read at once
	dumpTries  = 3   // to read a conversation that changes meanwhile
	savesAtOne = 200
)

// errMoved says that the conversation has changed while it was read in pieces.
var errMoved = errors.New("the conversation was changed by another request")

// ExportArchive writes all of a conversation, hidden branches and save points
// included, as a JSON document that ImportArchive reads. It is read in pages, as
// it stands at one moment. A message that is being written has in it what is
// stored of it, as one that was interrupted.
func (e *Engine) ExportArchive(ctx context.Context, userID, conversationID string) (data []byte, filename string, err error) {
	x := &exporter{id: conversationID, view: func(fn func(tx Tx) error) error { return e.store.View(ctx, userID, fn) }}
	err = errMoved
	for try := 0; try < dumpTries && errors.Is(err, errMoved); try++ {
		err = x.export()
	}
	if errors.Is(err, errMoved) { // it never rests: all of it at one moment
		err = e.store.View(ctx, userID, func(tx Tx) error {
			x.view = func(fn func(tx Tx) error) error { return fn(tx) }
			return x.export()
		})
	}
	if err != nil {
		return nil, "", err
	}
	return x.out.Bytes(), card.FileName(x.conv.Title, ".json"), nil
}

// exporter writes one archive.
type exporter struct {
	id   string
	view func(fn func(tx Tx) error) error

	conv      *Conversation
	name      string          // of the character
	at        time.Time       // of the export
	messages  map[string]bool // that there are; what was purged is named by old states still
	states    []*archivedState
	rewinds   []archivedRewind
	saves     []*archivedSave
	summaries []*archivedSummary
	out       bytes.Buffer
}

// export reads the conversation and writes it into out; errMoved if it must be
// read again.
func (x *exporter) export() error {
	x.out.Reset()
	x.messages = map[string]bool{}
	err := x.view(func(tx Tx) (err error) {
		if x.conv, err = tx.Conversation(x.id); err != nil {
			return err
		}
		ch, err := tx.Character(x.conv.CharacterID)
		if err != nil {
			return err
		}
		x.name, x.at = ch.Name, tx.Now()
		return nil
	})
	if err != nil {
		return err
	}
	err = errors.Join(
		x.member("{", "format", archiveFormat),
		x.member(",", "formatVersion", archiveVersion),
		x.member(",", "exportedAt", x.at),
		x.member(",", "character", archivedCharacter{x.conv.CharacterID, x.name}),
		x.member(",", "conversation", archivedConversation{
			ID: x.conv.ID, Title: x.conv.Title, Archived: x.conv.Archived, Extra: orNil(x.conv.Extra),
			CreatedAt: x.conv.CreatedAt, archivedState: *stateOf(x.conv),
		}),
	)
	if err != nil {
		return err
	}
	if err := x.writeMessages(); err != nil {
		return err
	}
	if err := x.view(x.readStates); err != nil {
		return err
	}
	err = errors.Join(x.member(",", "states", x.states), x.member(",", "rewinds", x.rewinds), x.member(",", "saves", x.saves))
	if err == nil && len(x.summaries) > 0 {
		err = x.member(",", "summaries", x.summaries)
	}
	x.out.WriteString("}\n")
	return err
}

func (x *exporter) member(before, name string, v any) error {
	x.out.WriteString(before + "\"" + name + "\":")
	return x.value(v)
}

// value writes v and ends the line. Documents of the user stay as they are, but
// for blanks.
func (x *exporter) value(v any) error {
	enc := json.NewEncoder(&x.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// writeMessages writes the messages, one on a line.
func (x *exporter) writeMessages() error {
	x.out.WriteString(",\"messages\":[\n")
	after, written := int64(0), 0
	for {
		var page []*DumpedMessage
		err := x.view(func(tx Tx) (err error) {
			page, err = tx.Dump(x.id, after, dumpPage)
			return err
		})
		if err != nil {
			return err
		}
		for _, m := range page {
			if written++; written > 1 {
				x.out.WriteByte(',')
			}
			if err := x.value(archivedOf(m)); err != nil {
				return err
			}
			x.messages[m.ID] = true
			after = m.Seq
		}
		if len(page) < dumpPage {
			x.out.WriteString("]\n")
			return nil
		}
	}
}

func archivedOf(m *DumpedMessage) *archivedMessage {
	out := &archivedMessage{
		ID: m.ID, ParentID: m.ParentID, ClientMsgID: m.ClientMsgID, Seq: m.Seq, Role: m.Role, Name: m.Name,
		AuthorID: m.AuthorID, Greeting: m.Greeting, Hidden: m.Hidden, SwipeIndex: m.SwipeIndex, Rev: m.Rev,
		Status: settled(m.Status), Error: archivedFault(m.Error), Extra: orNil(m.Extra),
		CreatedAt: m.CreatedAt, EditedAt: m.EditedAt, DeletedAt: m.DeletedAt,
		Swipes: make([]archivedSwipe, len(m.Swipes)), Texts: make([]archivedText, len(m.Texts)), States: m.States,
	}
	known := map[string]bool{}
	for i, s := range m.Texts {
		known[s.RevisionID] = true
		out.Texts[i] = archivedText{
			s.RevisionID, s.ID, s.Rev, s.Text, s.Reasoning, s.Blocks, s.Model, s.Finish, usageOf(s.Usage), s.Wish, s.StoredAt,
		}
	}
	for i, s := range m.Swipes {
		out.Swipes[i] = archivedSwipe{s.ID, s.RevisionID, s.Deleted, s.CreatedAt}
		if !known[s.RevisionID] {
			out.Swipes[i].TextID = ""
		}
	}
	for i := range m.States { // the texts of a message that was deleted long ago are gone
		if !known[m.States[i].RevisionID] {
			m.States[i].RevisionID = ""
		}
	}
	if n := len(m.States); n > 0 {
		m.States[n-1].Status = settled(m.States[n-1].Status)
	}
	return out
}

// settled is the status of a message that nobody writes any more.
func settled(status string) string {
	if status == StatusPending || status == StatusStreaming {
		return StatusInterrupted
	}
	return status
}

func archivedFault(e *fault.Error) *archivedError {
	if e == nil {
		return nil
	}
	return &archivedError{e.Code, e.Message, e.Fields, e.Details, e.RetryAfter.Milliseconds()}
}

// readStates reads the save points, the rewinds, and the states that they name.
func (x *exporter) readStates(tx Tx) error {
	now, err := tx.Conversation(x.id)
	if err != nil {
		return err
	}
	if now.Version != x.conv.Version {
		return errMoved
	}
	x.states, x.rewinds, x.saves = []*archivedState{}, []archivedRewind{}, []*archivedSave{}
	versions := map[int64]bool{}
	rewinds, err := tx.Rewinds(x.id)
	if err != nil {
		return err
	}
	for _, r := range rewinds {
		x.rewinds = append(x.rewinds, archivedRewind(r))
		versions[r.At-1], versions[r.At], versions[r.To] = true, true, true
	}
	for cursor, more := "", true; more; more = cursor != "" {
		var page []*Save
		if page, cursor, err = tx.Saves(x.id, true, cursor, savesAtOne); err != nil {
			return err
		}
		for _, s := range page {
			if s.HeadID != "" && !x.messages[s.HeadID] {
				continue // what it showed was deleted and is gone
			}
			x.saves = append(x.saves, archivedSaveOf(s))
			versions[s.Version] = true
		}
	}
	slices.Reverse(x.saves)
	delete(versions, now.Version) // that one is the conversation's own
	states, err := tx.DumpStates(x.id, slices.Sorted(maps.Keys(versions)))
	if err != nil {
		return err
	}
	for _, s := range states {
		state := stateOf(s)
		if !x.messages[state.HeadID] {
			state.HeadID = "" // it was deleted and is gone
		}
		x.states = append(x.states, state)
	}
	slices.SortFunc(x.states, func(a, b *archivedState) int { return cmp.Compare(a.Version, b.Version) })
	return x.readSummaries(tx)
}

func stateOf(c *Conversation) *archivedState {
	return &archivedState{c.Version, c.HeadID, c.PersonaID, orNil(c.AuthorNote), orNil(c.Settings), c.Pins, c.SummaryID}
}

func archivedSaveOf(s *Save) *archivedSave {
	return &archivedSave{
		s.ID, s.Version, s.HeadID, s.Description, s.PreviewText, s.MessageCount, s.Automatic, s.Thumbnail,
		s.Pins, orNil(s.Extra), s.ImportedAt, s.CreatedAt,
	}
}
