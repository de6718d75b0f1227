package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"nodest/chat"
	"nodest/fault"
	"nodest/jobs"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/op"
)

// memoryOperations are about what a character remembers, and about the summaries
// of conversations. What has no command exists in REST only; files are in
// rest_memory.go.
var memoryOperations = []operation{
	{command: "memory.search", route: "GET /characters/:characterId/memories", data: takes(memorySearch)},
	{command: "memory.create", route: "POST /characters/:characterId/memories", status: http.StatusCreated, key: true, data: takes(memoryCreate)},
	{command: "memory.edit", route: "PATCH /characters/:characterId/memories/:memoryId", key: true, data: takes(memoryEdit)},
	{command: "memory.pin", key: true, data: input{prepare: preparePin}}, // in REST it is an edit of pinned
	{command: "memory.delete", route: "DELETE /characters/:characterId/memories/:memoryId", status: http.StatusNoContent, key: true, data: takes(memoryDelete)},
	{command: "memory.restore", route: "POST /characters/:characterId/memories/:memoryId/restore", key: true, data: takes(memoryRestore)},
	{command: "memory.forget", route: "POST /characters/:characterId/memories/forget", key: true, data: takes(memoryForget)},
	{route: "POST /characters/:characterId/memories/bulk", data: takes(memoryBulk)},
	{route: "GET /characters/:characterId/memories/:memoryId/history", data: takes(memoryHistory)},
	{route: "GET /characters/:characterId/memories/suggestions", data: takes(memorySuggestions)},
	{route: "POST /characters/:characterId/memories/suggestions/:suggestionId", data: takes(memoryDecide)},
	{route: "GET /characters/:characterId/memory/jobs", data: takes(memoryJobs)},
	{route: "GET /messages/:messageId/memories", data: takes(memoryRecalled)},
	{route: "POST /conversations/:conversationId/memory/extract", status: http.StatusAccepted, data: takes(memoryExtract)},
	{command: "summary.list", route: "GET /conversations/:conversationId/summaries", data: takes(summaryList)},
	{command: "summary.create", key: true, data: takes(summaryCreate)}, // its route, which can wait, is in rest_memory.go
	{route: "PATCH /conversations/:conversationId/summaries/:summaryId", data: takes(summaryEdit)},
	{command: "summary.delete", route: "DELETE /conversations/:conversationId/summaries/:summaryId", status: http.StatusNoContent, key: true, data: takes(summaryDelete)},
}

// mostFound bounds a search; it has no pages.
const mostFound = 100

type memorySearchData struct {
	CharacterID  string        `json:"characterId"`
	Query        string        `json:"q,omitempty"`
	Mode         string        `json:"mode,omitempty"`
	Layer        string        `json:"layer,omitempty"`
	Kind         lang.Kind     `json:"kind,omitempty"`
	Subject      lang.Subject  `json:"subject,omitempty"`
	Status       memory.Status `json:"status,omitempty"`
	Conversation string        `json:"conversation,omitempty"`
	Pinned       *bool         `json:"pinned,omitempty"`
	cursorData
}

// memorySearch ranks what fits a text, or lists memories where there is none.
func memorySearch(ctx context.Context, s *Server, c *op.Call, in memorySearchData) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.Query != "" {
		return in.find(ctx, s, c)
	}
	return listPage(in.Limit, wireListedOf, func(limit int) (*op.Page[memory.Listed], error) {
		return s.Memory.List(ctx, c.UserID, in.CharacterID, memory.Filter{
			Status: in.Status, Kind: in.Kind, Subject: in.Subject, ConversationID: in.Conversation, Pinned: in.Pinned,
		}, in.Cursor, limit)
	})
}

// check refuses words that nobody knows and members that do not go together. The
// engine takes the rest.
func (in *memorySearchData) check() error {
	for _, err := range []error{
		oneOf("kind", in.Kind, lang.KindProfile, lang.KindPreference, lang.KindEvent, lang.KindPlan, lang.KindPromise, lang.KindRelation, lang.KindOther),
		oneOf("subject", in.Subject, lang.AboutUser, lang.AboutCharacter, lang.AboutRelationship, lang.AboutWorld),
		oneOf("status", in.Status, memory.Active, memory.Superseded, memory.Retired, memory.AnyStatus),
		oneOf("mode", in.Mode, "recall"),
	} {
		if err != nil {
			return err
		}
	}
	_, err := in.layers()
	switch {
	case err != nil:
		return err
	case in.Query == "" && in.Mode != "":
		return fault.InvalidField("mode", "value", "only applies to a search; add q")
	case in.Query == "" && in.Layer != "" && in.Layer != string(memory.Fact):
		return fault.InvalidField("layer", "value", "only a search (with q) finds chat messages; a list has facts only")
	case in.Query != "" && in.Cursor != "":
		return fault.InvalidField("cursor", "value", "a search has no further pages; raise limit instead")
	case in.Query != "" && in.Status != "" && in.Status != memory.Active:
		return fault.InvalidField("status", "value", "a search finds active memories only; omit q to list others")
	}
	return nil
}

// layers are those of a search: of facts alone where their members are asked for.
func (in *memorySearchData) layers() ([]memory.Layer, error) {
	var layers []memory.Layer
	for _, word := range strings.FieldsFunc(in.Layer, func(r rune) bool { return r == ',' }) {
		layer := memory.Layer(word)
		if err := oneOf("layer", layer, memory.Fact, memory.Exchange); err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	if in.ofFacts() {
		if len(layers) > 0 && !slices.Contains(layers, memory.Fact) {
			return nil, fault.InvalidField("layer", "value", "cannot be combined with kind, subject or pinned, which only facts have")
		}
		layers = []memory.Layer{memory.Fact}
	}
	return layers, nil
}

func (in *memorySearchData) ofFacts() bool {
	return in.Kind != "" || in.Subject != "" || in.Pinned != nil
}

func (in *memorySearchData) find(ctx context.Context, s *Server, c *op.Call) (any, error) {
	limit, err := limitOf(in.Limit, memory.DefaultLimit, mostFound)
	if err != nil {
		return nil, err
	}
	layers, err := in.layers()
	if err != nil {
		return nil, err
	}
	search := memory.SearchQuery{
		Text: in.Query, ConversationID: in.Conversation, Layers: layers, Recall: in.Mode == "recall", Limit: limit,
	}
	if in.ofFacts() {
		search.Limit = mostFound // of which those are taken that fit
	}
	found, err := s.Memory.Search(ctx, c.UserID, in.CharacterID, search)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(f memory.Found) bool { return in.ofFacts() && !in.fits(f.Memory) })
	return whole(found[:min(len(found), limit)], wireFoundOf), nil
}

func (in *memorySearchData) fits(m *memory.Memory) bool {
	return m != nil && (in.Kind == "" || m.Kind == in.Kind) && (in.Subject == "" || m.Subject == in.Subject) &&
		(in.Pinned == nil || m.Pinned == *in.Pinned)
}

// oneOf refuses a word that is none of those known; "" is an absent one.
func oneOf[T ~string](field string, word T, known ...T) error {
	if word == "" || slices.Contains(known, word) {
		return nil
	}
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	return fault.InvalidField(field, "value", "must be one of: %s", strings.Join(words, ", "))
}

type memoryCreateData struct {
	CharacterID string `json:"characterId"`
	memory.Draft
}

func memoryCreate(ctx context.Context, s *Server, c *op.Call, in memoryCreateData) (any, error) {
	return memoryOf(s.Memory.Create(ctx, c, in.CharacterID, in.Draft))
}

var memoryOf = result(func(m *memory.Memory) any { return wireMemoryOf(*m) })

type memoryEditData struct {
	memoryData
	memory.Patch
}

func memoryEdit(ctx context.Context, s *Server, c *op.Call, in memoryEditData) (any, error) {
	return memoryOf(s.Memory.Edit(ctx, c, in.CharacterID, in.MemoryID, in.Patch))
}

type memoryPinData struct {
	memoryData
	Pinned *bool `json:"pinned"`
}

// preparePin reads a memory.pin as the edit that it is, so that both are the same
// under one key.
func preparePin(_ string, data []byte) (runner, string, error) {
	var in memoryPinData
	if err := decodeStrict(orObject(data), &in); err != nil {
		return nil, "", err
	}
	if in.Pinned == nil {
		return nil, "", fault.InvalidField("pinned", "required", "must be true or false")
	}
	edit, err := json.Marshal(memoryEditData{in.memoryData, memory.Patch{Pinned: in.Pinned}})
	if err != nil {
		return nil, "", err
	}
	return takes(memoryEdit).prepare("memory.edit", edit)
}

type memoryData struct {
	CharacterID string `json:"characterId"`
	MemoryID    string `json:"memoryId"`
}

type memoryDeleteData struct {
	memoryData
	Purge bool `json:"purge,omitempty"`
}

func memoryDelete(ctx context.Context, s *Server, c *op.Call, in memoryDeleteData) (any, error) {
	return struct{}{}, s.Memory.Delete(ctx, c, in.CharacterID, in.MemoryID, in.Purge)
}

func memoryRestore(ctx context.Context, s *Server, c *op.Call, in memoryData) (any, error) {
	return memoryOf(s.Memory.Restore(ctx, c, in.CharacterID, in.MemoryID))
}

func memoryHistory(ctx context.Context, s *Server, c *op.Call, in memoryData) (any, error) {
	return list(wireMemoryOf)(s.Memory.History(ctx, c.UserID, in.CharacterID, in.MemoryID))
}

type memoryForgetData struct {
	CharacterID string `json:"characterId"`
	memory.ForgetInput
}

func memoryForget(ctx context.Context, s *Server, c *op.Call, in memoryForgetData) (any, error) {
	got, err := s.Memory.Forget(ctx, c, in.CharacterID, in.ForgetInput)
	if err != nil {
		return nil, err
	}
	got.Memories = orEmpty(got.Memories)
	return got, nil
}

type memoryBulkData struct {
	CharacterID string `json:"characterId"`
	memory.Bulk
}

func memoryBulk(ctx context.Context, s *Server, c *op.Call, in memoryBulkData) (any, error) {
	return s.Memory.Bulk(ctx, c, in.CharacterID, in.Bulk)
}

type memorySuggestionsData struct {
	CharacterID string `json:"characterId"`
	State       string `json:"state,omitempty"`
	cursorData
}

func memorySuggestions(ctx context.Context, s *Server, c *op.Call, in memorySuggestionsData) (any, error) {
	if err := oneOf("state", in.State, memory.SuggestionOpen, memory.SuggestionAccepted, memory.SuggestionRejected); err != nil {
		return nil, err
	}
	return listPage(in.Limit, wireSuggestionOf, func(limit int) (*op.Page[memory.Suggested], error) {
		return s.Memory.Suggestions(ctx, c.UserID, in.CharacterID, in.State, in.Cursor, limit)
	})
}

type memoryDecideData struct {
	CharacterID  string `json:"characterId"`
	SuggestionID string `json:"suggestionId"`
	Decision     string `json:"decision"`
}

func memoryDecide(ctx context.Context, s *Server, c *op.Call, in memoryDecideData) (any, error) {
	got, err := s.Memory.Decide(ctx, c, in.CharacterID, in.SuggestionID, in.Decision)
	if err != nil {
		return nil, err
	}
	return wireSuggestionOf(*got), nil
}

type memoryJobsData struct {
	CharacterID string `json:"characterId"`
	cursorData
}

func memoryJobs(ctx context.Context, s *Server, c *op.Call, in memoryJobsData) (any, error) {
	return listPage(in.Limit, wireJobOf, func(limit int) (*op.Page[*jobs.Job], error) {
		return s.Memory.Jobs(ctx, c.UserID, in.CharacterID, in.Cursor, limit)
	})
}

type memoryRecalledData struct {
	MessageID string `json:"messageId"`
}

func memoryRecalled(ctx context.Context, s *Server, c *op.Call, in memoryRecalledData) (any, error) {
	return list(wireFoundOf)(s.Engine.RecalledFor(ctx, c.UserID, in.MessageID))
}

// queued is the answer where work goes on in the background.
type queued struct {
	Queued bool `json:"queued"`
}

func memoryExtract(ctx context.Context, s *Server, c *op.Call, in conversationData) (any, error) {
	return queued{true}, s.Memory.ExtractNow(ctx, c, in.ConversationID)
}

func summaryList(ctx context.Context, s *Server, c *op.Call, in conversationData) (any, error) {
	return list(wireSummaryOf)(s.Chats.Summaries(ctx, c.UserID, in.ConversationID))
}

type summaryCreateData struct {
	ConversationID string `json:"conversationId"`
	From           string `json:"from,omitempty"`
	To             string `json:"to,omitempty"`
}

func summaryCreate(ctx context.Context, s *Server, c *op.Call, in summaryCreateData) (any, error) {
	return queued{true}, s.Chats.SummariseLater(ctx, c, in.ConversationID, chat.SummaryRange{From: in.From, To: in.To})
}

// summaryNow is summaryCreate that waits for the summary.
func summaryNow(ctx context.Context, s *Server, c *op.Call, in summaryCreateData) (any, error) {
	return summaryOf(s.Chats.Summarise(ctx, c, in.ConversationID, chat.SummaryRange{From: in.From, To: in.To}))
}

var summaryOf = result(wireSummaryOf)

type summaryEditData struct {
	summaryData
	Summary string `json:"summary"`
}

func summaryEdit(ctx context.Context, s *Server, c *op.Call, in summaryEditData) (any, error) {
	return summaryOf(s.Chats.EditSummary(ctx, c, in.ConversationID, in.SummaryID, in.Summary))
}

type summaryData struct {
	ConversationID string `json:"conversationId"`
	SummaryID      string `json:"summaryId"`
}

func summaryDelete(ctx context.Context, s *Server, c *op.Call, in summaryData) (any, error) {
	return struct{}{}, s.Chats.DeleteSummary(ctx, c, in.ConversationID, in.SummaryID)
}
