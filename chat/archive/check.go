package archive

import (
	"fmt"
	"net/url"
	"slices"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/summary"
	"nodest/llm"
)

// maxCounted is the highest seq, rev and version: PostgreSQL stores them in four bytes.
const maxCounted = 1 << 30

// Limits of the sources of a text.
const (
	mostReferences  = 100
	maxReferenceURL = 4096 // bytes, as of the pages that are read
	mostTraced      = 100  // searches, and files that were read
)

// checker checks an archive. It maps the ids in the file to the new ones.
type checker struct {
	at             string // path of the archive in its file
	conversationID string
	newest         int64 // version of the conversation
	messages       map[string]*chat.Message
	texts          map[string]string // ids of revisions
	summaries      map[string]string
	plays          map[string]string
	clientIDs      map[string]bool // those in use
}

// check refuses an archive that contradicts itself, and prepares one that can be
// stored: everything in it gets a new id, and what a database cannot hold is removed.
// path is its place in the file. It returns the messages by their ids in the file.
func (a *contents) check(path string) (_ map[string]*chat.Message, err error) {
	c := &checker{
		at: path, conversationID: op.NewID(), newest: a.Conversation.Version, messages: map[string]*chat.Message{},
		texts: map[string]string{}, summaries: map[string]string{}, plays: map[string]string{}, clientIDs: map[string]bool{},
	}
	defer func() {
		if p := recover(); p != nil {
			refused, ok := p.(refusal)
			if !ok {
				panic(p)
			}
			err = refused.error
		}
	}()
	c.accept("conversation", op.CheckLine("title", a.Conversation.Title, chat.MaxTitle))
	tags, tagsErr := op.CheckTags("tags", a.Conversation.Tags)
	c.accept("conversation", tagsErr)
	a.Conversation.Tags = tags
	c.require("conversation", rule{within(c.newest, 1, maxCounted), "version", "must be at least 1"})
	if len(a.Saves) > maxLoadedMarks || len(a.Rewinds) > maxLoadedMarks || len(a.States) > 4*maxLoadedMarks {
		return nil, fault.New(fault.TooLarge, "too many save points and restores, limit %d", maxLoadedMarks).With("limit", maxLoadedMarks)
	}
	c.playList(a)
	c.messageList(a)
	c.summaryList(a)
	c.conversation(a)
	c.history(a)
	return c.messages, nil
}

// refusal is the panic by which the methods of checker return an error from check.
type refusal struct{ error }

// rule is a condition that a member must meet; member "" is the value itself.
type rule struct {
	ok             bool
	member, detail string
}

// require refuses the value at path with the first rule that it breaks.
func (c *checker) require(path string, rules ...rule) {
	for _, r := range rules {
		if !r.ok {
			panic(refusal{damaged(at(at(c.at, path), r.member), "%s", r.detail)})
		}
	}
}

// accept refuses the value at path where a check of its fields has returned an error.
func (c *checker) accept(path string, err error) {
	if err != nil {
		panic(refusal{damagedBy(at(c.at, path), err)})
	}
}

func within(n, low, high int64) bool { return low <= n && n <= high }

// follows reports whether n is greater than *last and at most high. *last becomes n.
func follows(n int64, last *int64, high int64) bool {
	ok := *last < n && n <= high
	*last = n
	return ok
}

// unused reports whether id is present and not a key of seen.
func unused[V any](id string, seen map[string]V) bool {
	_, ok := seen[id]
	return id != "" && !ok
}

func oneOf[T comparable](field string, value T, allowed []T) rule {
	return rule{slices.Contains(allowed, value), field, fmt.Sprintf("must be one of %v", allowed)}
}

const (
	mustBeUnique  = "must be present and unique"
	mustBeVersion = "must be ascending and at most the conversation's version"
)

func (c *checker) messageList(a *contents) {
	last := int64(0)
	for i, m := range a.Messages {
		path := fmt.Sprintf("messages[%d]", i)
		ok := m != nil && m.Message != nil && follows(m.Seq, &last, maxCounted)
		c.require(path, rule{ok, "", "seq must be greater than that of the message before"})
		c.message(path, m)
	}
}

// playList runs before what names them is checked.
func (c *checker) playList(a *contents) {
	for i, p := range a.Plays {
		path := fmt.Sprintf("plays[%d]", i)
		c.require(path, rule{p != nil && unused(p.ID, c.plays), "id", mustBeUnique})
		c.accept(path, character.CheckVariables("variables", p.Variables))
		if chat.CheckTimed("timedWorldInfo", p.Timed) != nil { // as older versions stored it
			p.Timed = nil
		}
		c.require(path, rule{p.Fits(), "", "is too large"})
		c.plays[p.ID] = op.NewID()
		p.ID, p.Variables, p.Timed = c.plays[p.ID], op.JSONOrNil(p.Variables), op.JSONOrNil(p.Timed)
	}
}

func (c *checker) conversation(a *contents) {
	conv := &a.Conversation.Conversation
	conv.LastMessage, conv.Extra = c.messages[conv.HeadID].Preview(), op.JSONOrNil(a.Conversation.Extra)
	c.state("conversation", conv)
}

func (c *checker) history(a *contents) {
	versions := map[int64]bool{c.newest: true}
	for i, s := range a.States {
		path := fmt.Sprintf("states[%d]", i)
		ok := s != nil && within(s.Version, 1, c.newest-1) && !versions[s.Version]
		c.require(path, rule{ok, "", "version must be unique and lower than the conversation's"})
		versions[s.Version] = true
		c.state(path, s)
	}
	last := int64(1)
	for i, r := range a.Rewinds {
		ok := follows(r.At, &last, c.newest) && within(r.To, 1, r.At-1)
		c.require(fmt.Sprintf("rewinds[%d]", i), rule{ok, "", "must lead from a version to an earlier one, in ascending order"})
	}
	for i, s := range a.Saves {
		path := fmt.Sprintf("saves[%d]", i)
		c.require(path, rule{s != nil && versions[s.Version], "", "the file has no state for its version"})
		c.save(path, s)
	}
}

func (c *checker) state(path string, s *chat.Conversation) {
	c.accept(path, character.CheckNote("authorNote", s.AuthorNote))
	var settings chat.Settings
	if !op.IsNull(s.Settings) {
		c.accept(path, op.DecodeLenient("settings", s.Settings, &settings))
	}
	c.accept(path, settings.Validate("settings"))
	s.ID, s.AuthorNote, s.Settings, s.SummaryID = c.conversationID, op.JSONOrNil(s.AuthorNote), op.MustJSON(&settings), c.summaries[s.SummaryID]
	s.HeadID, s.PlayID, s.Play = c.head(path, s.HeadID), c.plays[s.PlayID], nil
	c.pins(path, s.Pins)
}

func (c *checker) pins(path string, p *character.Pins) {
	if p != nil && p.Settings != nil {
		c.accept(path+".pins.settings", p.Settings.Check())
	}
}

// head is the new id of the message with that id in the file.
func (c *checker) head(path, id string) string {
	if id == "" {
		return ""
	}
	m := c.messages[id]
	c.require(path, rule{m != nil, "headId", fmt.Sprintf("no message %q in the file", op.Truncate(id, 64))})
	return m.ID
}

func (c *checker) save(path string, s *chat.Save) {
	c.require(path, rule{s.MessageCount >= 0, "messageCount", "must not be negative"})
	s.HeadID = c.head(path, s.HeadID)
	s.ID, s.ConversationID, s.Extra = op.NewID(), c.conversationID, op.JSONOrNil(s.Extra)
	s.Description, s.PreviewText, s.Thumbnail = chat.CleanText(s.Description), chat.CleanText(s.PreviewText), chat.CleanText(s.Thumbnail)
	c.accept(path, chat.SaveInput{Description: s.Description, PreviewText: s.PreviewText, Thumbnail: s.Thumbnail}.Check())
	c.pins(path, s.Pins)
	if s.Extra == nil {
		return
	}
	x, err := importedWith(s)
	c.require(path, rule{err == nil, "extra", "not valid data of an imported save point"})
	c.state(path+".extra.state", &x.State)
	x.State.ID = ""
	s.Extra = encoded(x)
}

var (
	evidences       = []string{"page", "snippet"}
	toolPaths       = []string{"tools", "inject"}
	referenceKinds  = []string{"web", "file", "knowledge"}
	blockParts      = []string{string(framework.PartMem), string(framework.PartWeb)}
	finishes        = []string{"", string(llm.FinishStop), string(llm.FinishLength), string(llm.FinishBlocked), string(llm.FinishError), string(llm.FinishCancelled), string(llm.FinishInterrupted)}
	messageRoles    = []string{chat.RoleUser, chat.RoleAssistant, chat.RoleSystem, chat.RoleNarrator}
	messageStatuses = []string{chat.StatusComplete, chat.StatusPending, chat.StatusStreaming, chat.StatusInterrupted, chat.StatusCancelled, chat.StatusError}
)

func (c *checker) message(path string, m *chat.DumpedMessage) {
	parent := c.messages[m.ParentID]
	clientID := m.ClientMsgID == "" || op.CheckClientID("", m.ClientMsgID) == nil && !c.clientIDs[m.ClientMsgID]
	c.require(path,
		rule{unused(m.ID, c.messages), "id", mustBeUnique},
		rule{m.ParentID == "" || parent != nil, "parentId", "must be the id of an earlier message"},
		oneOf("role", m.Role, messageRoles),
		oneOf("status", m.Status, messageStatuses),
		rule{within(m.Rev, 1, maxCounted), "rev", "must be at least 1"},
		rule{m.SwipeIndex >= -1 && m.SwipeIndex <= max(0, len(m.Swipes)-1), "swipeIndex", "must be the index of a swipe"}, // -1: none is shown
		rule{clientID, "clientMsgId", "must be a valid and unique clientMsgId"},
		rule{op.CheckClientID("", m.AuthorID) == nil, "authorId", "must be a valid id"},
		rule{m.Error == nil || fault.Meaning(m.Error.Code) != "", "error.code", "must be a known code"},
	)
	c.messages[m.ID], c.clientIDs[m.ClientMsgID] = m.Message, true
	m.ID, m.ConversationID, m.GenerationID = idLike(m.ID), c.conversationID, ""
	if parent != nil {
		m.ParentID = parent.ID
	}
	m.Name, m.Status = chat.CleanText(m.Name), finalStatus(m.Status)
	m.Message.Extra = op.JSONOrNil(m.Extra)
	if m.Error != nil {
		m.Error.Message = chat.CleanText(m.Error.Message)
	}
	c.swipes(path, m)
	c.messageStates(path, m)
}

// swipes checks the texts of a message, and gives each swipe the one that it shows.
func (c *checker) swipes(path string, m *chat.DumpedMessage) {
	indexes := map[string]int{}
	named := make([]string, len(m.Swipes)) // the texts that are shown
	for i, s := range m.Swipes {
		c.require(fmt.Sprintf("%s.swipes[%d]", path, i), rule{unused(s.ID, indexes), "id", mustBeUnique})
		indexes[s.ID], named[i] = i, s.RevisionID
		m.Swipes[i] = chat.Swipe{ID: op.NewID(), Deleted: s.Deleted, CreatedAt: s.CreatedAt}
	}
	type revision struct {
		swipe int
		rev   int64
	}
	revs := map[revision]bool{}
	for i := range m.Texts {
		t := &m.Texts[i].Swipe
		path := fmt.Sprintf("%s.texts[%d]", path, i)
		n, ok := indexes[t.ID]
		c.require(path,
			rule{unused(t.RevisionID, c.texts), "revisionId", mustBeUnique},
			rule{ok, "id", "must be the id of a swipe of this message"},
			rule{within(t.Rev, 1, maxCounted) && !revs[revision{n, t.Rev}], "rev", "must be unique within the swipe"},
			oneOf("finish", t.Finish, finishes),
		)
		revs[revision{n, t.Rev}] = true
		swipe := &m.Swipes[n]
		shown := named[n] == t.RevisionID || named[n] == "" && t.Rev > swipe.Rev // without a name the newest
		c.texts[t.RevisionID] = op.NewID()
		t.RevisionID = c.texts[t.RevisionID]
		c.text(path, t, swipe)
		if shown {
			*swipe = *t
		}
	}
	for i, s := range m.Swipes {
		c.require(fmt.Sprintf("%s.swipes[%d]", path, i), rule{s.RevisionID != "", "", "must have a text"})
	}
}

// text makes t a text of that swipe.
func (c *checker) text(path string, t, of *chat.Swipe) {
	citations, tools := t.Citations, t.Tools
	*t = chat.Swipe{
		ID: of.ID, RevisionID: t.RevisionID, Rev: t.Rev, Text: chat.CleanText(t.Text), Reasoning: chat.CleanText(t.Reasoning), Blocks: t.Blocks,
		Model: chat.CleanText(t.Model), Finish: t.Finish, Usage: t.Usage, Wish: chat.CleanText(t.Wish), Deleted: of.Deleted, CreatedAt: of.CreatedAt,
		PlayID: c.plays[t.PlayID],
	}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		c.require(fmt.Sprintf("%s.blocks[%d]", path, i),
			rule{b.At >= 0, "at", "must not be negative"},
			oneOf("part", b.Part, blockParts),
		)
		b.Text = chat.CleanText(b.Text)
	}
	t.Citations = c.citations(path, citations)
	t.Tools = c.tools(path, tools)
}

func (c *checker) tools(path string, from *chat.ToolTrace) *chat.ToolTrace {
	if from == nil {
		return nil
	}
	c.require(path+".tools",
		rule{within(int64(from.Rounds), 0, maxCounted), "rounds", "must be a count"},
		rule{len(from.Searches) <= mostTraced, "searches", "must have at most 100 items"},
		rule{len(from.Reads) <= mostTraced, "reads", "must have at most 100 items"},
		rule{len(from.Calls) <= mostTraced, "calls", "must have at most 100 items"},
		oneOf("path", from.Path, toolPaths),
	)
	out := chat.ToolTrace{Rounds: from.Rounds, Searches: []chat.ToolSearch{}, Reads: []string{}, Path: from.Path}
	for i, s := range from.Searches {
		c.require(fmt.Sprintf("%s.tools.searches[%d]", path, i), rule{within(int64(s.Hits), 0, maxCounted), "hits", "must be a count"})
		s.Query = chat.CleanText(s.Query)
		out.Searches = append(out.Searches, s)
	}
	for _, id := range from.Reads {
		out.Reads = append(out.Reads, chat.CleanText(id))
	}
	for i, u := range from.Calls {
		c.require(fmt.Sprintf("%s.tools.calls[%d]", path, i),
			rule{within(int64(u.Chars), 0, maxCounted), "chars", "must be a count"}, rule{within(u.Ms, 0, maxCounted), "ms", "must be a count"})
		u.Tool = chat.CleanText(u.Tool)
		out.Calls = append(out.Calls, u)
	}
	return &out
}

// citations checks the sources of a text. How well they support it is not taken over from
// a file.
func (c *checker) citations(path string, from *cite.Citations) *cite.Citations {
	if from == nil || len(from.References) == 0 {
		return nil
	}
	c.require(path+".citations", rule{len(from.References) <= mostReferences, "references", "must have at most 100 items"})
	last := 0
	for i := range from.References {
		r := &from.References[i]
		c.require(fmt.Sprintf("%s.citations.references[%d]", path, i),
			rule{r.Marker > last, "marker", "must be greater than the one before"},
			rule{r.Evidence == "" && r.Kind != "web" || slices.Contains(evidences, r.Evidence), "evidence", "must be page or snippet"},
			oneOf("kind", r.Kind, referenceKinds),
			rule{len(r.URL) <= maxReferenceURL, "url", "is too long"},
			rule{r.Kind != "web" || isPage(r.URL), "url", "must be an http or https address"},
		)
		last = r.Marker
		*r = cite.Reference{
			Marker: r.Marker, Kind: r.Kind, URL: chat.CleanText(r.URL), Title: chat.CleanText(r.Title), ExactQuote: chat.CleanText(r.ExactQuote),
			Evidence: r.Evidence, DateTime: chat.CleanText(r.DateTime), RelevanceScore: r.RelevanceScore, Auto: r.Auto,
		}
	}
	return &cite.Citations{References: from.References, Hidden: from.Hidden}
}

// isPage reports whether an address may be shown as a link.
func isPage(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// messageStates checks what the message was from which version on.
func (c *checker) messageStates(path string, m *chat.DumpedMessage) {
	own := map[string]bool{"": true} // a text that was purged has no name
	for _, t := range m.Texts {
		own[t.RevisionID] = true
	}
	last := int64(0)
	for i := range m.States {
		s := &m.States[i]
		path := fmt.Sprintf("%s.states[%d]", path, i)
		text := c.texts[s.RevisionID]
		c.require(path,
			rule{follows(s.Version, &last, c.newest), "version", mustBeVersion},
			rule{within(s.Rev, 1, m.Rev), "rev", "must be from 1 to the message's rev"},
			oneOf("status", s.Status, messageStatuses),
			rule{own[text] && (s.RevisionID == "" || text != ""), "revisionId", "must be the revisionId of a text of this message"},
		)
		s.RevisionID = text
	}
	c.require(path, rule{len(m.States) > 0, "states", "must not be empty"})
	newest := &m.States[len(m.States)-1]
	newest.Status, newest.Hidden = finalStatus(newest.Status), m.Hidden
}

// summaryList checks the summaries. It runs before the states are checked, which name
// them.
func (c *checker) summaryList(a *contents) {
	generation := int64(0)
	for i, s := range a.Summaries {
		path := fmt.Sprintf("summaries[%d]", i)
		c.require(path, rule{s != nil && len(s.Texts) > 0, "texts", "must not be empty"})
		c.require(path, rule{within(s.MadeVersion, 0, c.newest), "madeVersion", "must be from 0 to the conversation's version"})
		c.summaryTexts(path, s.Texts)
		ok := follows(int64(s.Newest().Generation), &generation, maxCounted)
		c.require(path, rule{ok, "", "generation must be greater than that of the summary before"})
	}
}

func (c *checker) summaryTexts(path string, texts []chat.SummaryText) {
	id, last := "", int64(0)
	for i, t := range texts {
		path, doc := fmt.Sprintf("%s.texts[%d]", path, i), t.Summary
		own := doc != nil && (i == 0 && unused(doc.ID, c.summaries) || i > 0 && doc.ID == id)
		c.require(path,
			rule{follows(t.Version, &last, c.newest), "version", mustBeVersion},
			rule{own, "document.id", "must be that of this summary alone"},
		)
		if i == 0 {
			id = doc.ID
			c.summaries[id] = op.NewID()
		}
		c.summary(path+".document", doc)
	}
}

var summaryMethods = []summary.Method{summary.MethodModel, summary.MethodExtractive, summary.MethodUser}

// summary checks what a summary says, and names everything in it by its new id.
func (c *checker) summary(path string, s *summary.Summary) {
	first, last := c.messages[s.Range.StartID], c.messages[s.Range.EndID]
	c.require(path,
		oneOf("method", s.Method, summaryMethods),
		rule{first != nil && last != nil && first.Seq <= last.Seq, "messageIds", "must be ids of messages in the file, in order"},
		rule{within(int64(s.Generation), 1, maxCounted) && s.Count >= 1, "", "generation and count must be at least 1"},
	)
	s.ID, s.BaseID, s.Text = c.summaries[s.ID], c.summaries[s.BaseID], chat.CleanText(s.Text)
	s.Range.StartID, s.Range.StartSeq = first.ID, first.Seq
	s.Range.EndID, s.Range.EndSeq = last.ID, last.Seq
	c.accept(path, s.Validate(summary.Settings{Length: maxCounted / 2}))
}
