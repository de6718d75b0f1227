package archive

import (
	"fmt"
	"slices"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/op"
	"nodest/summary"
)

// maxCounted is the highest seq, rev and version.
const maxCounted = 1 << 50

// checker checks an archive. It keeps what things are called from now on, by their
// ids in the file.
type checker struct {
	at             string // where the archive stands in its file
	conversationID string
	newest         int64 // version of the conversation
	messages       map[string]*chat.Message
	texts          map[string]string // ids of revisions
	summaries      map[string]string
	clientIDs      map[string]bool // that are taken
}

// check refuses an archive that does not agree with itself, and makes it one that
// can be stored: everything in it gets a new id, and what a database cannot hold is
// taken out. at is where it stands in its file. It returns the messages by their
// ids in the file.
func (a *contents) check(path string) (map[string]*chat.Message, error) {
	c := &checker{
		at: path, conversationID: op.NewID(), newest: a.Conversation.Version, messages: map[string]*chat.Message{},
		texts: map[string]string{}, summaries: map[string]string{}, clientIDs: map[string]bool{},
	}
	conv := &a.Conversation.Conversation
	if err := op.CheckLine("title", conv.Title, chat.MaxTitle); err != nil {
		return nil, damagedBy(at(path, "conversation"), err)
	}
	if c.newest < 1 || c.newest > maxCounted {
		return nil, c.damaged("conversation.version", "must be at least 1")
	}
	if len(a.Saves) > maxLoadedMarks || len(a.Rewinds) > maxLoadedMarks || len(a.States) > 4*maxLoadedMarks {
		return nil, fault.New(fault.TooLarge, "too many save points and restores, limit %d", maxLoadedMarks).With("limit", maxLoadedMarks)
	}
	last := int64(0)
	for i, m := range a.Messages {
		path := fmt.Sprintf("messages[%d]", i)
		if m == nil || m.Message == nil || m.Seq <= last || m.Seq > maxCounted {
			return nil, c.damaged(path, "seq must be greater than that of the message before")
		}
		last = m.Seq
		if err := c.message(path, m); err != nil {
			return nil, err
		}
	}
	if err := c.summaryList(a.Summaries); err != nil {
		return nil, err
	}
	shown := c.messages[conv.HeadID]
	if err := c.state("conversation", conv); err != nil {
		return nil, err
	}
	conv.LastMessage, conv.Extra = nil, op.JSONOrNil(a.Conversation.Extra)
	if shown != nil {
		conv.LastMessage = shown.Preview()
	}
	return c.messages, c.history(a)
}

func (c *checker) damaged(path, format string, args ...any) error {
	return damaged(at(c.at, path), format, args...)
}

// history checks the states, rewinds and save points.
func (c *checker) history(a *contents) error {
	versions := map[int64]bool{c.newest: true}
	for i, s := range a.States {
		path := fmt.Sprintf("states[%d]", i)
		if s == nil || s.Version < 1 || s.Version >= c.newest || versions[s.Version] {
			return c.damaged(path, "version must be unique and lower than the conversation's")
		}
		versions[s.Version] = true
		if err := c.state(path, s); err != nil {
			return err
		}
	}
	last := int64(1)
	for i, r := range a.Rewinds {
		if r.At <= last || r.At > c.newest || r.To < 1 || r.To >= r.At {
			return c.damaged(fmt.Sprintf("rewinds[%d]", i), "must lead from a version to an earlier one, in ascending order")
		}
		last = r.At
	}
	for i, s := range a.Saves {
		path := fmt.Sprintf("saves[%d]", i)
		if s == nil || !versions[s.Version] {
			return c.damaged(path, "the file has no state for its version")
		}
		if err := c.save(path, s); err != nil {
			return err
		}
	}
	return nil
}

// state checks what the conversation was at a version.
func (c *checker) state(path string, s *chat.Conversation) error {
	err := character.CheckNote("authorNote", s.AuthorNote)
	var settings character.TurnOptions
	if err == nil && !op.IsNull(s.Settings) {
		err = op.DecodeLenient("settings", s.Settings, &settings)
	}
	if err == nil {
		err = settings.Validate("settings")
	}
	if err != nil {
		return damagedBy(at(c.at, path), err)
	}
	s.ID, s.AuthorNote, s.Settings, s.SummaryID = c.conversationID, op.JSONOrNil(s.AuthorNote), op.MustJSON(settings), c.summaries[s.SummaryID]
	if s.HeadID, err = c.head(path, s.HeadID); err != nil {
		return err
	}
	return c.pins(path, s.Pins)
}

func (c *checker) pins(path string, p *character.Pins) error {
	if p == nil || p.Settings == nil {
		return nil
	}
	if err := p.Settings.Check(); err != nil {
		return damagedBy(at(c.at, path)+".pins.settings", err)
	}
	return nil
}

// head is the new id of a message that is named as a head.
func (c *checker) head(path, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	m := c.messages[id]
	if m == nil {
		return "", c.damaged(path+".headId", "no message %q in the file", op.Truncate(id, 64))
	}
	return m.ID, nil
}

func (c *checker) save(path string, s *chat.Save) (err error) {
	if s.MessageCount < 0 {
		return c.damaged(path+".messageCount", "must not be negative")
	}
	if s.HeadID, err = c.head(path, s.HeadID); err != nil {
		return err
	}
	s.ID, s.ConversationID, s.Extra = op.NewID(), c.conversationID, op.JSONOrNil(s.Extra)
	s.Description, s.PreviewText, s.Thumbnail = chat.CleanText(s.Description), chat.CleanText(s.PreviewText), chat.CleanText(s.Thumbnail)
	limits := chat.SaveInput{Description: s.Description, PreviewText: s.PreviewText, Thumbnail: s.Thumbnail}
	if err := limits.Check(); err != nil {
		return damagedBy(at(c.at, path), err)
	}
	if err := c.pins(path, s.Pins); err != nil || s.Extra == nil {
		return err
	}
	x, err := importedWith(s)
	if err != nil {
		return c.damaged(path+".extra", "not valid data of an imported save point")
	}
	if err := c.state(path+".extra.state", &x.State); err != nil {
		return err
	}
	x.State.ID = ""
	s.Extra = encoded(x)
	return nil
}

var (
	messageRoles    = []string{chat.RoleUser, chat.RoleAssistant, chat.RoleSystem, chat.RoleNarrator}
	messageStatuses = []string{chat.StatusComplete, chat.StatusPending, chat.StatusStreaming, chat.StatusInterrupted, chat.StatusCancelled, chat.StatusError}
)

func (c *checker) message(path string, m *chat.DumpedMessage) error {
	parent := c.messages[m.ParentID]
	switch {
	case m.ID == "" || c.messages[m.ID] != nil:
		return c.damaged(path+".id", "must be present and unique")
	case m.ParentID != "" && parent == nil:
		return c.damaged(path+".parentId", "must be the id of an earlier message")
	case !slices.Contains(messageRoles, m.Role):
		return c.damaged(path+".role", "must be one of %v", messageRoles)
	case !slices.Contains(messageStatuses, m.Status):
		return c.damaged(path+".status", "must be one of %v", messageStatuses)
	case m.Rev < 1 || m.Rev > maxCounted:
		return c.damaged(path+".rev", "must be at least 1")
	case m.SwipeIndex < -1 || m.SwipeIndex > max(0, len(m.Swipes)-1): // -1: it shows none of them
		return c.damaged(path+".swipeIndex", "must be the index of a swipe")
	case op.CheckClientID("", m.ClientMsgID) != nil || m.ClientMsgID != "" && c.clientIDs[m.ClientMsgID]:
		return c.damaged(path+".clientMsgId", "must be a valid and unique clientMsgId")
	}
	c.messages[m.ID], c.clientIDs[m.ClientMsgID] = m.Message, true
	m.ID, m.ConversationID, m.GenerationID = idLike(m.ID), c.conversationID, ""
	if parent != nil {
		m.ParentID = parent.ID
	}
	m.Name, m.AuthorID, m.Status = chat.CleanText(m.Name), chat.CleanText(m.AuthorID), settled(m.Status)
	m.Message.Extra = op.JSONOrNil(m.Extra)
	if m.Error != nil {
		m.Error.Message = chat.CleanText(m.Error.Message)
	}
	if err := c.swipes(path, m); err != nil {
		return err
	}
	return c.messageStates(path, m)
}

// swipes checks the texts that the swipes of a message have had, and gives the
// swipes those that they show.
func (c *checker) swipes(path string, m *chat.DumpedMessage) error {
	places := map[string]int{}
	named := make([]string, len(m.Swipes)) // the texts that are shown
	for i, s := range m.Swipes {
		if _, taken := places[s.ID]; taken || s.ID == "" {
			return c.damaged(fmt.Sprintf("%s.swipes[%d].id", path, i), "must be present and unique")
		}
		places[s.ID], named[i] = i, s.RevisionID
		m.Swipes[i] = chat.Swipe{ID: op.NewID(), Deleted: s.Deleted, CreatedAt: s.CreatedAt}
	}
	type place struct {
		swipe int
		rev   int64
	}
	revs := map[place]bool{}
	for i := range m.Texts {
		t := &m.Texts[i].Swipe
		path := fmt.Sprintf("%s.texts[%d]", path, i)
		n, ok := places[t.ID]
		switch {
		case t.RevisionID == "" || c.texts[t.RevisionID] != "":
			return c.damaged(path+".revisionId", "must be present and unique")
		case !ok:
			return c.damaged(path+".id", "must be the id of a swipe of this message")
		case t.Rev < 1 || t.Rev > maxCounted || revs[place{n, t.Rev}]:
			return c.damaged(path+".rev", "must be unique within the swipe")
		}
		revs[place{n, t.Rev}] = true
		swipe := &m.Swipes[n]
		shown := named[n] == t.RevisionID || named[n] == "" && t.Rev > swipe.Rev // without a name the newest
		c.texts[t.RevisionID] = op.NewID()
		t.RevisionID = c.texts[t.RevisionID]
		if err := c.text(path, t, swipe); err != nil {
			return err
		}
		if shown {
			*swipe = *t
		}
	}
	for i := range m.Swipes {
		if m.Swipes[i].RevisionID == "" {
			return c.damaged(fmt.Sprintf("%s.swipes[%d]", path, i), "must have a text")
		}
	}
	return nil
}

// text makes t a text of that swipe.
func (c *checker) text(path string, t, of *chat.Swipe) error {
	*t = chat.Swipe{
		ID: of.ID, RevisionID: t.RevisionID, Rev: t.Rev, Text: chat.CleanText(t.Text), Reasoning: chat.CleanText(t.Reasoning), Blocks: t.Blocks,
		Model: chat.CleanText(t.Model), Finish: chat.CleanText(t.Finish), Usage: t.Usage, Wish: chat.CleanText(t.Wish), Deleted: of.Deleted, CreatedAt: of.CreatedAt,
	}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if b.At < 0 {
			return c.damaged(fmt.Sprintf("%s.blocks[%d].at", path, i), "must not be negative")
		}
		b.Part, b.Text = chat.CleanText(b.Part), chat.CleanText(b.Text)
	}
	return nil
}

// messageStates checks what the message was from which version on.
func (c *checker) messageStates(path string, m *chat.DumpedMessage) error {
	own := map[string]bool{"": true} // a text that was purged has no name
	for _, t := range m.Texts {
		own[t.RevisionID] = true
	}
	last := int64(0)
	for i := range m.States {
		s := &m.States[i]
		path := fmt.Sprintf("%s.states[%d]", path, i)
		text := c.texts[s.RevisionID]
		switch {
		case s.Version <= last || s.Version > c.newest:
			return c.damaged(path+".version", "must be ascending and at most the conversation's version")
		case s.Rev < 1 || s.Rev > m.Rev:
			return c.damaged(path+".rev", "must be from 1 to the message's rev")
		case !slices.Contains(messageStatuses, s.Status):
			return c.damaged(path+".status", "must be one of %v", messageStatuses)
		case s.RevisionID != "" && text == "" || !own[text]:
			return c.damaged(path+".revisionId", "must be the revisionId of a text of this message")
		}
		last, s.RevisionID = s.Version, text
	}
	if last == 0 {
		return c.damaged(path+".states", "must not be empty")
	}
	newState := &m.States[len(m.States)-1]
	newState.Status = settled(newState.Status)
	return nil
}

// summaryList checks the summaries. It comes before the states, which name them.
func (c *checker) summaryList(all []*chat.DumpedSummary) error {
	generation := 0
	for i, s := range all {
		path := fmt.Sprintf("summaries[%d]", i)
		switch {
		case s == nil || len(s.Texts) == 0:
			return c.damaged(path+".texts", "must not be empty")
		case s.MadeVersion < 0 || s.MadeVersion > c.newest:
			return c.damaged(path+".madeVersion", "must be from 0 to the conversation's version")
		}
		id, last := "", int64(0)
		for j, said := range s.Texts {
			path := fmt.Sprintf("%s.texts[%d]", path, j)
			doc := said.Summary
			switch {
			case said.Version <= last || said.Version > c.newest:
				return c.damaged(path+".version", "must be ascending and at most the conversation's version")
			case doc == nil || doc.ID == "" || id == "" && c.summaries[doc.ID] != "" || id != "" && doc.ID != id:
				return c.damaged(path+".document.id", "must be that of this summary alone")
			}
			if id == "" {
				id = doc.ID
				c.summaries[id] = op.NewID()
			}
			last = said.Version
			if err := c.summary(path+".document", doc); err != nil {
				return err
			}
		}
		if n := s.Newest().Generation; n <= generation {
			return c.damaged(path, "generation must be greater than that of the summary before")
		}
		generation = s.Newest().Generation
	}
	return nil
}

var summaryMethods = []summary.Method{summary.MethodModel, summary.MethodExtractive, summary.MethodUser}

// summary checks what a summary says, and names everything in it by its new id.
func (c *checker) summary(path string, s *summary.Summary) error {
	first, last := c.messages[s.Range.StartID], c.messages[s.Range.EndID]
	switch {
	case !slices.Contains(summaryMethods, s.Method):
		return c.damaged(path+".method", "must be one of %v", summaryMethods)
	case first == nil || last == nil || first.Seq > last.Seq:
		return c.damaged(path+".messageIds", "must be ids of messages in the file, in order")
	case s.Generation < 1 || s.Generation > maxCounted || s.Count < 1:
		return c.damaged(path, "generation and count must be at least 1")
	}
	s.ID, s.BaseID, s.Text = c.summaries[s.ID], c.summaries[s.BaseID], chat.CleanText(s.Text)
	s.Range.StartID, s.Range.StartSeq = first.ID, first.Seq
	s.Range.EndID, s.Range.EndSeq = last.ID, last.Seq
	if err := s.Validate(summary.Settings{Length: maxCounted / 2}); err != nil {
		return damagedBy(at(c.at, path), err)
	}
	return nil
}
