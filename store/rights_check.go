package store

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"nodest/character"
	"nodest/chat"
	"nodest/circle"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/knowledge/chunk"
	"nodest/store/sqldb"
)

// Rows of a file are those of nobody who is trusted: each value is within bounds that everything which reads it can
// bear, and what has rules of its subject is checked by them.

const (
	maxNumber    = 1 << 40  // in a column that is no time
	maxShortText = 4000     // code points of a text that is no longText
	maxLongText  = 32 << 20 // bytes
)

// longTexts are the columns whose texts are as long as somebody or a model writes them.
var longTexts = []string{
	"text", "text_key", "reasoning", "base", "line", "instruction", "wish", "answer", "question", "context", "note", "thoughts",
	"description", "preview_text", "thumbnail", "heading", "query_key", "extraction_key",
}

var earliest, latest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMilli()

// isTime reports whether the numbers of a column are milliseconds since 1970.
func (c *ownedColumn) isTime() bool {
	return c.Kind == kindInt && (c.Name == "at" || strings.HasSuffix(c.Name, "_at") && c.Name != "start_at" && c.Name != "end_at" || strings.HasSuffix(c.Name, "_time"))
}

// within refuses a value that no operation stores.
func (c *ownedColumn) within(v any) error {
	switch v := v.(type) {
	case int64:
		return c.numberWithin(v)
	case float64:
		if !(v >= 0 && v <= 1) { // importance is the only one
			return badRow("must be from 0 to 1")
		}
	case string:
		if c.Kind != kindID && !c.isDocument {
			return c.textWithin(v)
		}
	}
	return nil
}

func (c *ownedColumn) numberWithin(v int64) error {
	switch {
	case c.isTime() && (v < earliest || v > latest):
		return badRow("must be a time from the year 1 to 9999")
	case !c.isTime() && (v < -1 || v > maxNumber) && !slices.Contains(negative, c.Name):
		return badRow("must be from -1 to %d", maxNumber)
	}
	return nil
}

func (c *ownedColumn) textWithin(v string) error {
	long := slices.Contains(longTexts, c.Name)
	switch {
	case strings.ContainsRune(v, 0):
		return badRow("must not contain NUL")
	case long && len(v) > maxLongText:
		return badRow("must have at most %s", fault.Size(maxLongText))
	case !long && utf8.RuneCountInString(v) > maxShortText:
		return badRow("must have at most %d characters", maxShortText)
	}
	return nil
}

// negative are the columns of numbers that may be below -1.
var negative = []string{"strength", "rating"}

// document is the JSON of a column; nil = none.
func (r *ownedRow) document(column string) json.RawMessage {
	switch v := r.value(column).(type) {
	case string:
		if v != "" {
			return json.RawMessage(v)
		}
	case sqldb.Zstd: // plain until it is stored
		if len(v) > 0 {
			return json.RawMessage(v)
		}
	}
	return nil
}

func (r *ownedRow) text(column string) string {
	v, _ := r.value(column).(string)
	return v
}

func (r *ownedRow) number(column string) int64 {
	v, _ := r.value(column).(int64)
	return v
}

// list is a column with a JSON array of texts.
func (r *ownedRow) list(column string) (texts []string, err error) {
	if doc := r.document(column); doc != nil && json.Unmarshal(doc, &texts) != nil {
		err = fault.InvalidField(column, "type", "must be a list of texts")
	}
	return texts, err
}

// bundleCheck goes over the rows of a bundle.
type bundleCheck struct {
	kind      string                // that of a resource
	head      string                // message that a conversation ends with
	messages  map[string]*inTree    // by id
	positions map[string]int64      // number of the last swipe of a message
	texts     map[int64]*textPieces // the text of a document, in parts, by edition
	chunks    map[int64]*textPieces // likewise
}

// textPieces are the parts of a document, or its chunks: how many, the last number, and the length of the parts or the end
// of the last chunk, in UTF-16 units.
type textPieces struct{ n, last, end int64 }

// piecesOf are those of an edition.
func piecesOf(all map[int64]*textPieces, edition int64) *textPieces {
	if all[edition] == nil {
		all[edition] = &textPieces{}
	}
	return all[edition]
}

// inTree is where a message stands.
type inTree struct {
	parent            string
	seq, depth, chain int64
	swipe             int64
}

func newBundleCheck() *bundleCheck {
	return &bundleCheck{messages: map[string]*inTree{}, positions: map[string]int64{}, texts: map[int64]*textPieces{}, chunks: map[int64]*textPieces{}}
}

// rowChecks are the rules of subjects for the rows of their tables.
var rowChecks = map[string]func(*bundleCheck, *ownedRow) error{
	"settings": func(_ *bundleCheck, r *ownedRow) error { return checkSettingsRow(r) },
	"user_variables": func(_ *bundleCheck, r *ownedRow) error {
		return character.CheckVariables("document", r.document("document"))
	},
	"character_versions":  func(_ *bundleCheck, r *ownedRow) error { return checkCharacterRow(r) },
	"resources":           func(b *bundleCheck, r *ownedRow) error { b.kind = r.text("kind"); return nil },
	"resource_versions":   (*bundleCheck).resource,
	"conversations":       (*bundleCheck).conversation,
	"conversation_states": func(_ *bundleCheck, r *ownedRow) error { return checkConversationRow(r) },
	"messages":            (*bundleCheck).message,
	"revisions":           (*bundleCheck).revision,
	"circle_states":       func(_ *bundleCheck, r *ownedRow) error { return checkCircleRow(r) },
	"knowledge_bases":     func(_ *bundleCheck, r *ownedRow) error { return checkBaseRow(r) },
	"knowledge_texts":     (*bundleCheck).documentText,
	"knowledge_chunks":    (*bundleCheck).chunk,
}

// row checks a row by the rules of its subject.
func (b *bundleCheck) row(r *ownedRow) error {
	var err error
	if check := rowChecks[r.of.name]; check != nil {
		err = check(b, r)
	}
	if err == nil {
		err = r.checkForms()
	}
	return refusedRow(r, err)
}

func (b *bundleCheck) conversation(r *ownedRow) error {
	if b.head = r.text("head_id"); r.number("version") < 1 {
		return fault.InvalidField("version", "range", "must be at least 1")
	}
	return checkConversationRow(r)
}

func (b *bundleCheck) revision(r *ownedRow) error {
	id := r.text("message_id")
	b.positions[id] = max(b.positions[id], r.number("position"))
	return nil
}

func (b *bundleCheck) documentText(r *ownedRow) error {
	if r.number("part") < 0 {
		return fault.InvalidField("part", "range", "must not be below 0")
	}
	all := piecesOf(b.texts, r.number("edition"))
	all.n, all.last, all.end = all.n+1, max(all.last, r.number("part")), all.end+int64(len(utf16.Encode([]rune(r.text("text")))))
	return nil
}

// refusedRow says which row an error of a subject is about.
func refusedRow(r *ownedRow, err error) error {
	if err == nil || fault.Is(err, fault.InvalidImport) {
		return err
	}
	public := fault.Public(err)
	text := public.Message
	if len(public.Fields) > 0 {
		text = public.Fields[0].Field + ": " + public.Fields[0].Detail
	}
	return fault.Wrap(err, fault.InvalidImport, "the file of an account: %s: %s", r.of.name, text)
}

func checkSettingsRow(r *ownedRow) error {
	var s character.UserSettings
	if err := json.Unmarshal(r.document("document"), &s); err != nil {
		return fault.InvalidField("document", "type", "must be the settings of a user")
	}
	s.CustomSetting = r.document("custom_setting")
	return s.CheckStored()
}

func checkCharacterRow(r *ownedRow) error {
	tags, err := r.list("tags")
	if err != nil {
		return err
	}
	ch := &character.Character{
		Name: r.text("name"), Dialect: r.text("dialect"), RoleCard: r.document("role_card"), WorldBook: r.document("world_book"),
		Preset: r.document("preset"), AuthorNote: r.document("author_note"), RegexScripts: r.document("regex_scripts"),
		Source: r.document("source"), Settings: r.document("settings"), Tags: tags,
	}
	return ch.CheckStored()
}

func (b *bundleCheck) resource(r *ownedRow) error {
	ids, err := r.list("character_ids")
	if err != nil {
		return err
	}
	v := &character.Resource{
		Kind: character.ResourceKind(b.kind), Name: r.text("name"), Dialect: r.text("dialect"), Document: r.document("document"), Characters: ids,
	}
	return v.CheckStored()
}

func checkConversationRow(r *ownedRow) error {
	tags, err := r.list("tags")
	if err != nil {
		return err
	}
	if _, err := op.CheckTags("tags", tags); err != nil {
		return err
	}
	if err := op.CheckLine("title", r.text("title"), chat.MaxTitle); err != nil {
		return err
	}
	if err := character.CheckNote("authorNote", r.document("author_note")); err != nil {
		return err
	}
	settings := r.document("settings")
	if op.IsNull(settings) {
		return nil
	}
	var s chat.Settings
	if err := op.DecodeLenient("settings", settings, &s); err != nil {
		return err
	}
	return s.Validate("settings")
}

var messageRoles = []string{chat.RoleUser, chat.RoleAssistant, chat.RoleSystem, chat.RoleNarrator}

// messageStatuses are those of messages that no process writes: an open one is interrupted by now.
var messageStatuses = []string{chat.StatusComplete, chat.StatusInterrupted, chat.StatusCancelled, chat.StatusError}

func (b *bundleCheck) message(r *ownedRow) error {
	b.messages[r.text("id")] = &inTree{
		parent: r.text("parent_id"), seq: r.number("seq"), depth: r.number("depth"), chain: r.number("chain"), swipe: r.number("swipe_index"),
	}
	var c op.Checks
	op.OneOf(&c, "role", r.text("role"), messageRoles)
	op.OneOf(&c, "status", r.text("status"), messageStatuses)
	return c.Err()
}

func checkCircleRow(r *ownedRow) error {
	var s circle.Settings
	if json.Unmarshal(r.document("settings"), &s) != nil {
		return fault.InvalidField("settings", "type", "must be the settings of a circle")
	}
	return s.Check()
}

func checkBaseRow(r *ownedRow) error {
	b := &knowledge.Base{Name: r.text("name"), Description: r.text("description")}
	if r.number("chunk_size") != 0 {
		b.Rules = &chunk.Rules{Size: int(r.number("chunk_size")), Overlap: int(r.number("chunk_overlap"))}
	}
	return b.CheckStored()
}

func (b *bundleCheck) chunk(r *ownedRow) error {
	start, end, edition := r.number("start_at"), r.number("end_at"), r.number("edition")
	if start < 0 || end <= start || r.number("idx") < 0 {
		return fault.InvalidField("end_at", "range", "must be behind start_at")
	}
	all := piecesOf(b.chunks, edition)
	all.n, all.last, all.end = all.n+1, max(all.last, r.number("idx")), max(all.end, end)
	return nil
}

// end checks what rows are together.
func (b *bundleCheck) end() error {
	for edition, all := range b.chunks {
		text := piecesOf(b.texts, edition)
		if all.end > text.end || all.last != all.n-1 || text.last != text.n-1 {
			return badRow("knowledge_chunks: the text and its chunks must be numbered from 0, and the chunks be within the text")
		}
	}
	type place struct{ chain, depth int64 }
	taken := map[place]bool{}
	if b.head != "" && b.messages[b.head] == nil {
		return badRow("conversations.head_id: the chat has no message %s", b.head)
	}
	for id, m := range b.messages {
		if m.swipe > b.positions[id] {
			return badRow("messages.swipe_index: message %s has no such text", id)
		}
		at := place{m.chain, m.depth}
		if taken[at] {
			return badRow("messages.chain: two messages of a chain stand at the depth %d", m.depth)
		}
		taken[at] = true
		if err := b.inTree(id, m); err != nil {
			return err
		}
	}
	return nil
}

// inTree refuses a message that does not stand behind its parent, so that each path comes to an end.
func (b *bundleCheck) inTree(id string, m *inTree) error {
	up := b.messages[m.parent]
	begins := m.chain == m.seq || m.chain == 0 && up == nil
	switch {
	case m.seq < 1 || m.depth < 1:
		return badRow("messages.seq: message %s has no place in its chat", id)
	case up == nil && !begins, up != nil && (up.seq >= m.seq || up.depth+1 != m.depth), up != nil && !begins && m.chain != up.chain:
		return badRow("messages.parent_id: message %s does not stand behind the one that it follows", id)
	}
	return nil
}
