package nodest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"nodest/fault"
	"nodest/llm"
)

// What an archive may hold.
const (
	maxLoaded      = 200_000 // messages
	maxLoadedMarks = 10_000  // save points, and rewinds
	maxCounted     = 1 << 50 // the highest seq, rev and version
)

// parseArchive reads the document as far as its form goes.
func parseArchive(data []byte) (*archive, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	format, version := formatOf(data)
	switch {
	case format != archiveFormat:
		return nil, damaged("format", "the file is not an exported conversation")
	case version > archiveVersion:
		return nil, fault.New(fault.NewerVersion, "the file has format version %d; this server reads up to %d", version, archiveVersion)
	case version < 1:
		return nil, damaged("formatVersion", "must be %d", archiveVersion)
	}
	a := &archive{}
	if err := json.Unmarshal(data, a); err != nil {
		return nil, misread(err)
	}
	switch {
	case len(a.Messages) > maxLoaded:
		return nil, fault.New(fault.TooLarge, "%d messages, limit %d", len(a.Messages), maxLoaded).With("limit", maxLoaded)
	case len(a.Saves) > maxLoadedMarks, len(a.Rewinds) > maxLoadedMarks, len(a.States) > 4*maxLoadedMarks:
		return nil, fault.New(fault.TooLarge, "too many save points and restores, limit %d", maxLoadedMarks).With("limit", maxLoadedMarks)
	}
	return a, nil
}

// IsArchive says whether a file is an object that calls itself an archive of a
// conversation, whatever it holds.
func IsArchive(data []byte) bool {
	format, _ := formatOf(bytes.TrimPrefix(data, []byte("\ufeff")))
	return format == archiveFormat
}

// formatOf reads the two members that say what a file is, wherever they stand. Of
// the others it keeps nothing.
func formatOf(data []byte) (format string, version int64) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return "", 0
	}
	for dec.More() && (format == "" || version == 0) {
		name, err := dec.Token()
		if err != nil {
			break
		}
		if name != "format" && name != "formatVersion" {
			if !skipValue(dec) {
				break
			}
			continue
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
		if name == "format" { // of another type it stays empty
			_ = json.Unmarshal(value, &format)
		} else {
			_ = json.Unmarshal(value, &version)
		}
	}
	return format, version
}

// skipValue reads one value; false = it is damaged.
func skipValue(dec *json.Decoder) bool {
	for open := 0; ; {
		t, err := dec.Token()
		if err != nil {
			return false
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
		if open == 0 {
			return true
		}
	}
}

// misread is what went wrong with the JSON of an archive, in words of JSON.
func misread(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fault.Wrap(err, fault.InvalidImport, "%s: must be %s", wrong.Field, typeWord(wrong.Type.Kind().String())).With("path", wrong.Field)
	}
	var broken *json.SyntaxError
	if errors.As(err, &broken) {
		return fault.Wrap(err, fault.InvalidImport, "the file is damaged at byte %d", broken.Offset).With("offset", broken.Offset)
	}
	return fault.Wrap(err, fault.InvalidImport, "the file is damaged")
}

func damaged(path, format string, args ...any) error {
	return fault.New(fault.InvalidImport, "%s: %s", path, fmt.Sprintf(format, args...)).With("path", path)
}

// damagedBy is damaged for what a check of ours refused.
func damagedBy(path string, err error) error {
	return fault.Wrap(err, fault.InvalidImport, "%s: %s", path, fault.Public(err).Message).With("path", path)
}

// loadable is an archive that was checked, under ids of its own.
type loadable struct {
	conv      *Conversation
	messages  []*DumpedMessage
	states    []*Conversation
	rewinds   []Rewind
	saves     []*Save
	summaries []*DumpedSummary

	summaryIDs map[string]string   // new ids by those of the file
	ids        map[string]*Message // by the ids of the file
	texts      map[string]string   // new ids of revisions by those of the file
	named      map[string]bool     // clientMsgIds that are taken
}

// loadable checks that an archive agrees with itself, and gives it new ids.
func (a *archive) loadable() (*loadable, error) {
	l := &loadable{summaryIDs: map[string]string{}, ids: map[string]*Message{}, texts: map[string]string{}, named: map[string]bool{}}
	in := &a.Conversation
	if err := checkLine("title", in.Title, maxTitle); err != nil {
		return nil, damagedBy("conversation.title", err)
	}
	if in.Version < 1 || in.Version > maxCounted {
		return nil, damaged("conversation.version", "must be at least 1")
	}
	l.conv = &Conversation{ID: newID()}
	last := int64(0)
	for i, m := range a.Messages {
		path := fmt.Sprintf("messages[%d]", i)
		if m == nil || m.Seq <= last || m.Seq > maxCounted {
			return nil, damaged(path, "seq must be greater than that of the message before")
		}
		last = m.Seq
		if err := l.addMessage(path, m, in.Version); err != nil {
			return nil, err
		}
	}
	if err := l.addSummaries(a.Summaries, in.Version); err != nil {
		return nil, err
	}
	conv, err := l.state("conversation", &in.archivedState)
	if err != nil {
		return nil, err
	}
	conv.Title, conv.Archived, conv.Extra, conv.CreatedAt = in.Title, in.Archived, orNil(in.Extra), in.CreatedAt
	if m := l.ids[in.HeadID]; m != nil {
		conv.LastMessage = m.Preview()
	}
	l.conv = conv
	return l, l.addHistory(a)
}

// addHistory takes in the states, rewinds and save points.
func (l *loadable) addHistory(a *archive) error {
	versions := map[int64]bool{l.conv.Version: true}
	for i, s := range a.States {
		path := fmt.Sprintf("states[%d]", i)
		if s == nil || s.Version < 1 || s.Version >= l.conv.Version || versions[s.Version] {
			return damaged(path, "version must be unique and lower than the conversation's")
		}
		versions[s.Version] = true
		state, err := l.state(path, s)
		if err != nil {
			return err
		}
		l.states = append(l.states, state)
	}
	last := int64(1)
	for i, r := range a.Rewinds {
		if r.At <= last || r.At > l.conv.Version || r.To < 1 || r.To >= r.At {
			return damaged(fmt.Sprintf("rewinds[%d]", i), "must lead from a version to an earlier one, in ascending order")
		}
		last = r.At
		l.rewinds = append(l.rewinds, Rewind(r))
	}
	for i, s := range a.Saves {
		path := fmt.Sprintf("saves[%d]", i)
		if s == nil || !versions[s.Version] {
			return damaged(path, "the file has no state for its version")
		}
		if err := l.addSave(path, s); err != nil {
			return err
		}
	}
	return nil
}

// state reads what the conversation was at a version.
func (l *loadable) state(path string, in *archivedState) (*Conversation, error) {
	head, err := l.head(path, in.HeadID)
	if err != nil {
		return nil, err
	}
	settings, err := checkState(path, in.AuthorNote, in.Settings)
	if err != nil {
		return nil, err
	}
	return &Conversation{
		ID: l.conv.ID, HeadID: head, PersonaID: in.PersonaID, AuthorNote: orNil(in.AuthorNote),
		Settings: jsonOf(settings), Pins: in.Pins, SummaryID: l.summaryIDs[in.SummaryID], Version: in.Version,
	}, nil
}

// checkState refuses a note or settings that are none, and returns the settings.
func checkState(path string, note, raw json.RawMessage) (settings TurnOptions, err error) {
	if err := checkNote(path+".authorNote", note); err != nil {
		return settings, damagedBy(path, err)
	}
	if !isNull(raw) {
		if err := decodeKnown(path+".settings", raw, &settings); err != nil {
			return settings, damagedBy(path, err)
		}
	}
	if err := settings.Validate(path + ".settings"); err != nil {
		return settings, damagedBy(path, err)
	}
	return settings, nil
}

// head is the new id of a message that is named as a head.
func (l *loadable) head(path, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	m := l.ids[id]
	if m == nil {
		return "", damaged(path+".headId", "no message %q in the file", shortened(id, 64))
	}
	return m.ID, nil
}

func (l *loadable) addSave(path string, in *archivedSave) error {
	head, err := l.head(path, in.HeadID)
	if err != nil {
		return err
	}
	if in.MessageCount < 0 {
		return damaged(path+".messageCount", "must not be negative")
	}
	s := &Save{
		ID: newID(), ConversationID: l.conv.ID, Version: in.Version, HeadID: head,
		Description: clean(in.Description), PreviewText: clean(in.PreviewText), MessageCount: in.MessageCount,
		Automatic: in.Automatic, Thumbnail: clean(in.Thumbnail), Pins: in.Pins, Extra: orNil(in.Extra),
		ImportedAt: in.ImportedAt, CreatedAt: in.CreatedAt,
	}
	limits := SaveInput{Description: s.Description, PreviewText: s.PreviewText, Thumbnail: s.Thumbnail}
	if err := limits.check(); err != nil {
		return damagedBy(path, err)
	}
	l.saves = append(l.saves, s)
	return l.addExtra(path+".extra", s)
}

// addExtra names by their new ids the messages that an imported save point keeps
// something for.
func (l *loadable) addExtra(path string, s *Save) error {
	if len(s.Extra) == 0 {
		return nil
	}
	x, err := s.extra()
	if err != nil {
		return damaged(path, "not valid data of an imported save point")
	}
	if _, err := checkState(path, x.State.AuthorNote, x.State.Settings); err != nil {
		return err
	}
	messages := map[string]map[string]json.RawMessage{}
	for id, more := range x.Messages {
		if m := l.ids[id]; m != nil {
			messages[m.ID] = more
		}
	}
	x.Messages = messages
	s.Extra = jsonOf(x)
	return nil
}

var (
	messageRoles    = []string{RoleUser, RoleAssistant, RoleSystem, RoleNarrator}
	messageStatuses = []string{StatusComplete, StatusPending, StatusStreaming, StatusInterrupted, StatusCancelled, StatusError}
)

func (l *loadable) addMessage(path string, in *archivedMessage, newest int64) error {
	switch {
	case in.ID == "" || l.ids[in.ID] != nil:
		return damaged(path+".id", "must be present and unique")
	case in.ParentID != "" && l.ids[in.ParentID] == nil:
		return damaged(path+".parentId", "must be the id of an earlier message")
	case !slices.Contains(messageRoles, in.Role):
		return damaged(path+".role", "must be one of %v", messageRoles)
	case !slices.Contains(messageStatuses, in.Status):
		return damaged(path+".status", "must be one of %v", messageStatuses)
	case in.Rev < 1 || in.Rev > maxCounted:
		return damaged(path+".rev", "must be at least 1")
	case in.SwipeIndex < -1 || in.SwipeIndex > max(0, len(in.Swipes)-1): // -1: it shows none of them
		return damaged(path+".swipeIndex", "must be the index of a swipe")
	case checkClientID("", in.ClientMsgID) != nil || in.ClientMsgID != "" && l.named[in.ClientMsgID]:
		return damaged(path+".clientMsgId", "must be a valid and unique clientMsgId")
	}
	m := &Message{
		ID: idLike(in.ID), ConversationID: l.conv.ID, ClientMsgID: in.ClientMsgID, Seq: in.Seq, Role: in.Role,
		Name: clean(in.Name), AuthorID: clean(in.AuthorID), Greeting: in.Greeting, Hidden: in.Hidden, SwipeIndex: in.SwipeIndex,
		Rev: in.Rev, Status: settled(in.Status), Error: loadedFault(in.Error), CreatedAt: in.CreatedAt,
		EditedAt: in.EditedAt, DeletedAt: in.DeletedAt, Extra: orNil(in.Extra),
	}
	if parent := l.ids[in.ParentID]; parent != nil {
		m.ParentID = parent.ID
	}
	l.ids[in.ID] = m
	l.named[in.ClientMsgID] = true
	out := &DumpedMessage{Message: m}
	if err := l.addTexts(path, in, out); err != nil {
		return err
	}
	l.messages = append(l.messages, out)
	return l.addStates(path, in, out, newest)
}

// addTexts gives a message its swipes, and all texts that they ever had.
func (l *loadable) addTexts(path string, in *archivedMessage, out *DumpedMessage) error {
	places := map[string]int{}
	out.Swipes = make([]Swipe, len(in.Swipes))
	for i, s := range in.Swipes {
		if _, taken := places[s.ID]; taken || s.ID == "" {
			return damaged(fmt.Sprintf("%s.swipes[%d].id", path, i), "must be present and unique")
		}
		places[s.ID] = i
		out.Swipes[i] = Swipe{ID: newID(), Deleted: s.Deleted, CreatedAt: s.CreatedAt}
	}
	type place struct {
		swipe string
		rev   int64
	}
	revs := map[place]bool{}
	for i := range in.Texts {
		t := &in.Texts[i]
		at := fmt.Sprintf("%s.texts[%d]", path, i)
		n, ok := places[t.SwipeID]
		switch {
		case t.ID == "" || l.texts[t.ID] != "":
			return damaged(at+".id", "must be present and unique")
		case !ok:
			return damaged(at+".swipeId", "must be the id of a swipe of this message")
		case t.Rev < 1 || t.Rev > maxCounted || revs[place{t.SwipeID, t.Rev}]:
			return damaged(at+".rev", "must be unique within the swipe")
		}
		revs[place{t.SwipeID, t.Rev}] = true
		l.texts[t.ID] = newID()
		text, err := t.swipe(at, l.texts[t.ID], out.Swipes[n])
		if err != nil {
			return err
		}
		out.Texts = append(out.Texts, DumpedText{Swipe: text, StoredAt: t.StoredAt})
		// Rev stays the highest, so that the next edit gets one of its own.
		highest := max(text.Rev, out.Swipes[n].Rev)
		if shown := in.Swipes[n].TextID; shown == t.ID || shown == "" && text.Rev == highest {
			out.Swipes[n] = text
		}
		out.Swipes[n].Rev = highest
	}
	for i := range out.Swipes {
		if out.Swipes[i].RevisionID == "" {
			return damaged(fmt.Sprintf("%s.swipes[%d]", path, i), "must have a text")
		}
	}
	return nil
}

// swipe is a text in its place.
func (t *archivedText) swipe(path, revisionID string, place Swipe) (Swipe, error) {
	s := Swipe{
		ID: place.ID, RevisionID: revisionID, Rev: t.Rev, Text: clean(t.Text), Reasoning: clean(t.Reasoning),
		Blocks: t.Blocks, Model: clean(t.Model), Finish: clean(t.Finish), Wish: clean(t.Wish),
		Deleted: place.Deleted, CreatedAt: place.CreatedAt,
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if b.At < 0 {
			return s, damaged(fmt.Sprintf("%s.blocks[%d].at", path, i), "must not be negative")
		}
		b.Part, b.Text = clean(b.Part), clean(b.Text)
	}
	if u := t.Usage; u != nil {
		s.Usage = &llm.Usage{
			PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, CachedTokens: u.CachedTokens, CostUSD: u.CostUSD,
		}
	}
	return s, nil
}

// addStates takes in what the message was from which version on. newest is the
// conversation's version.
func (l *loadable) addStates(path string, in *archivedMessage, out *DumpedMessage, newest int64) error {
	own := map[string]bool{}
	for _, t := range out.Texts {
		own[t.RevisionID] = true
	}
	last := int64(0)
	for i, s := range in.States {
		at := fmt.Sprintf("%s.states[%d]", path, i)
		switch {
		case s.Version <= last || s.Version > newest:
			return damaged(at+".version", "must be ascending and at most the conversation's version")
		case s.Rev < 1 || s.Rev > in.Rev:
			return damaged(at+".rev", "must be from 1 to the message's rev")
		case !slices.Contains(messageStatuses, s.Status):
			return damaged(at+".status", "must be one of %v", messageStatuses)
		case s.RevisionID != "" && !own[l.texts[s.RevisionID]]:
			return damaged(at+".revisionId", "must be the id of a text of this message")
		}
		last = s.Version
		s.RevisionID = l.texts[s.RevisionID]
		out.States = append(out.States, s)
	}
	if len(out.States) == 0 {
		return damaged(path+".states", "must not be empty")
	}
	newState := &out.States[len(out.States)-1]
	newState.Status = settled(newState.Status)
	return nil
}

func loadedFault(e *archivedError) *fault.Error {
	if e == nil {
		return nil
	}
	return &fault.Error{
		Code: e.Code, Message: clean(e.Detail), Fields: e.Errors, Details: e.Details,
		RetryAfter: time.Duration(e.RetryAfterMs) * time.Millisecond,
	}
}
