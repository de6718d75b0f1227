package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// memoryOperations are about what a character remembers, and about the summaries of conversations.
// An operation without a command exists in REST only; those on files are in memory_files.go.
var memoryOperations = []Operation{
	{Command: "memory.search", Route: "GET /characters/:characterId/memories", Data: takes(memorySearch)},
	{Command: "memory.create", Route: "POST /characters/:characterId/memories", Status: http.StatusCreated, Key: true, Data: takes(func(ctx context.Context, c *Call, in memoryCreateData) (any, error) {
		return memoryOf(c.Memory.Create(ctx, c.Call, in.CharacterID, in.Draft))
	})},
	{Command: "memory.edit", Route: "PATCH /characters/:characterId/memories/:memoryId", Key: true, IfMatch: true, Data: takes(memoryEdit)},
	{Command: "memory.pin", As: "memory.edit", Key: true, Data: takes(memoryPin)}, // in REST it is an edit of pinned
	{Command: "memory.delete", Route: "DELETE /characters/:characterId/memories/:memoryId", Status: http.StatusNoContent, Key: true, Data: takes(func(ctx context.Context, c *Call, in memoryDeleteData) (any, error) {
		return struct{}{}, c.Memory.Delete(ctx, c.Call, in.CharacterID, in.MemoryID, in.Purge)
	})},
	{Command: "memory.restore", Route: "POST /characters/:characterId/memories/:memoryId/restore", Key: true, Data: takes(func(ctx context.Context, c *Call, in memoryData) (any, error) {
		return memoryOf(c.Memory.Restore(ctx, c.Call, in.CharacterID, in.MemoryID))
	})},
	{Command: "memory.forget", Route: "POST /characters/:characterId/memories/forget", Key: true, Alone: true, Data: takes(memoryForget)},
	{Route: "POST /characters/:characterId/memories/bulk", Alone: true, Data: takes(func(ctx context.Context, c *Call, in memoryBulkData) (any, error) {
		return c.Memory.Bulk(ctx, c.Call, in.CharacterID, in.Bulk)
	})},
	{Route: "GET /characters/:characterId/memories/:memoryId/history", Data: takes(func(ctx context.Context, c *Call, in memoryData) (any, error) {
		return List(wireMemoryOf)(c.Memory.History(ctx, c.UserID, in.CharacterID, in.MemoryID))
	})},
	{Route: "GET /characters/:characterId/memories/suggestions", Data: takes(memorySuggestions)},
	{Route: "POST /characters/:characterId/memories/suggestions/:suggestionId", Data: takes(memoryDecide)},
	{Route: "GET /characters/:characterId/memory/jobs", Data: takes(func(ctx context.Context, c *Call, in memoryJobsData) (any, error) {
		return Pages(wireJobOf)(c.Memory.Jobs(ctx, c.UserID, in.CharacterID, in.Cursor, int(in.Limit)))
	})},
	{Route: "GET /messages/:messageId/memories", Data: takes(func(ctx context.Context, c *Call, in messageData) (any, error) {
		return List(wireFoundOf)(c.Engine.RecalledFor(ctx, c.UserID, in.MessageID))
	})},
	{Route: "POST /conversations/:conversationId/memory/extract", Status: http.StatusAccepted, Data: takes(func(ctx context.Context, c *Call, in conversationData) (any, error) {
		return queued{true}, c.Memory.ExtractNow(ctx, c.Call, in.ConversationID)
	})},
	{Command: "summary.list", Route: "GET /conversations/:conversationId/summaries", Data: takes(func(ctx context.Context, c *Call, in conversationData) (any, error) {
		return List(wireSummaryOf)(c.Chats.Summaries(ctx, c.UserID, in.ConversationID))
	})},
	{Command: SummaryLater.Command, Key: true, Data: SummaryLater.Data}, // its route can wait
	{Route: "PATCH /conversations/:conversationId/summaries/:summaryId", Data: takes(func(ctx context.Context, c *Call, in summaryEditData) (any, error) {
		return summaryOf(c.Chats.EditSummary(ctx, c.Call, in.ConversationID, in.SummaryID, in.Summary))
	})},
	{Command: "summary.delete", Route: "DELETE /conversations/:conversationId/summaries/:summaryId", Status: http.StatusNoContent, Key: true, Data: takes(func(ctx context.Context, c *Call, in summaryData) (any, error) {
		return struct{}{}, c.Chats.DeleteSummary(ctx, c.Call, in.ConversationID, in.SummaryID)
	})},
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
	pageData
}

// memorySearch ranks what fits a text, or lists memories where there is none.
func memorySearch(ctx context.Context, c *Call, in memorySearchData) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.Query != "" {
		return in.find(ctx, c)
	}
	return Pages(wireListedOf)(c.Memory.List(ctx, c.UserID, in.CharacterID, memory.Filter{
		Status: in.Status, Kind: in.Kind, Subject: in.Subject, ConversationID: in.Conversation, Pinned: in.Pinned,
	}, in.Cursor, int(in.Limit)))
}

// check refuses unknown words and members that cannot be combined.
func (in *memorySearchData) check() error {
	var c op.Checks
	oneOf(&c, "kind", in.Kind, lang.Kinds...)
	oneOf(&c, "subject", in.Subject, lang.Subjects...)
	oneOf(&c, "status", in.Status, memory.Active, memory.Superseded, memory.Retired, memory.AnyStatus)
	oneOf(&c, "mode", in.Mode, "recall")
	if in.Query == "" {
		c.That(in.Mode == "", "mode", "value", "only applies to a search; add q")
		c.That(in.Layer == "" || in.Layer == string(recall.Fact), "layer", "value", "only a search (with q) finds chat messages; a list has facts only")
	} else {
		c.That(in.Cursor == "", "cursor", "value", "a search has no further pages; raise limit instead")
		c.That(in.Status == "" || in.Status == memory.Active, "status", "value", "a search finds active memories only; omit q to list others")
	}
	return c.Err()
}

// layers are those of a search: of facts alone where their members are asked for.
func (in *memorySearchData) layers() (layers []recall.Layer, err error) {
	var c op.Checks
	for _, word := range strings.FieldsFunc(in.Layer, func(r rune) bool { return r == ',' }) {
		layer := recall.Layer(word)
		oneOf(&c, "layer", layer, recall.Fact, recall.Exchange)
		if err := c.Err(); err != nil {
			return nil, err // the first one's error: a request can name many
		}
		layers = append(layers, layer)
	}
	if in.ofFacts() {
		c.That(len(layers) == 0 || slices.Contains(layers, recall.Fact), "layer", "value", "cannot be combined with kind, subject or pinned, which only facts have")
		layers = []recall.Layer{recall.Fact}
	}
	return layers, c.Err()
}

func (in *memorySearchData) ofFacts() bool {
	return in.Kind != "" || in.Subject != "" || in.Pinned != nil
}

func (in *memorySearchData) find(ctx context.Context, c *Call) (any, error) {
	limit := cmp.Or(int(in.Limit), recall.DefaultLimit)
	if limit < 1 || limit > mostFound {
		return nil, fault.InvalidField("limit", "range", "must be from 1 to %d", mostFound)
	}
	layers, err := in.layers()
	if err != nil {
		return nil, err
	}
	search := memory.SearchQuery{
		Text: in.Query, ConversationID: in.Conversation, Layers: layers, Recall: in.Mode == "recall", Limit: limit,
	}
	if in.ofFacts() {
		search.Limit = mostFound // the ones that fit are taken from these
	}
	found, err := c.Memory.Search(ctx, c.UserID, in.CharacterID, search)
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

// oneOf is op.OneOf for a word that may be absent.
func oneOf[T ~string](c *op.Checks, field string, word T, known ...T) {
	if word != "" {
		op.OneOf(c, field, word, known)
	}
}

type memoryCreateData struct {
	CharacterID string `json:"characterId"`
	memory.Draft
}

var memoryOf = Result(func(m *memory.Memory) wireMemory { return wireMemoryOf(*m) })

type memoryEditData struct {
	memoryData
	memory.Patch
}

func memoryEdit(ctx context.Context, c *Call, in memoryEditData) (any, error) {
	return Result(func(m *memory.Memory) Versioned { return Versioned{wireMemoryOf(*m), int64(m.Version)} })(
		c.Memory.Edit(ctx, c.Call, in.CharacterID, in.MemoryID, in.Patch))
}

type memoryPinData struct {
	memoryData
	Pinned *bool `json:"pinned,omitempty"`
}

func memoryPin(ctx context.Context, c *Call, in memoryPinData) (any, error) {
	if in.Pinned == nil {
		return nil, fault.InvalidField("pinned", "required", "must be true or false")
	}
	return memoryOf(c.Memory.Edit(ctx, c.Call, in.CharacterID, in.MemoryID, memory.Patch{Pinned: in.Pinned}))
}

type memoryData struct {
	CharacterID string `json:"characterId"`
	MemoryID    string `json:"memoryId"`
}

type memoryDeleteData struct {
	memoryData
	Purge bool `json:"purge,omitempty"`
}

type memoryForgetData struct {
	CharacterID string `json:"characterId"`
	memory.ForgetInput
}

func memoryForget(ctx context.Context, c *Call, in memoryForgetData) (any, error) {
	got, err := c.Memory.Forget(ctx, c.Call, in.CharacterID, in.ForgetInput)
	if err != nil {
		return nil, err
	}
	got.Memories, got.Echoes = OrEmpty(got.Memories), OrEmpty(got.Echoes)
	return got, nil
}

type memoryBulkData struct {
	CharacterID string `json:"characterId"`
	memory.Bulk
}

type memorySuggestionsData struct {
	CharacterID string `json:"characterId"`
	State       string `json:"state,omitempty"`
	pageData
}

func memorySuggestions(ctx context.Context, c *Call, in memorySuggestionsData) (any, error) {
	var checks op.Checks
	oneOf(&checks, "state", in.State, memory.SuggestionOpen, memory.SuggestionAccepted, memory.SuggestionRejected)
	if err := checks.Err(); err != nil {
		return nil, err
	}
	return Pages(wireSuggestionOf)(c.Memory.Suggestions(ctx, c.UserID, in.CharacterID, in.State, in.Cursor, int(in.Limit)))
}

type memoryDecideData struct {
	CharacterID  string `json:"characterId"`
	SuggestionID string `json:"suggestionId"`
	Decision     string `json:"decision"`
}

func memoryDecide(ctx context.Context, c *Call, in memoryDecideData) (any, error) {
	return Result(func(got *memory.Suggested) wireSuggestion { return wireSuggestionOf(*got) })(
		c.Memory.Decide(ctx, c.Call, in.CharacterID, in.SuggestionID, in.Decision))
}

type memoryJobsData struct {
	CharacterID string `json:"characterId"`
	pageData
}

// queued is the answer where work goes on in the background.
type queued struct {
	Queued bool `json:"queued"`
}

type summaryCreateData struct {
	ConversationID string `json:"conversationId"`
	From           string `json:"from,omitempty"`
	To             string `json:"to,omitempty"`
}

// SummaryLater and SummaryNow have one route, which says by a parameter whether it waits.
// A WebSocket, which runs its commands one after the other, cannot wait for a summary.
var (
	SummaryLater = Operation{Command: "summary.create", Route: summaryRoute, Status: http.StatusAccepted, Data: takes(func(ctx context.Context, c *Call, in summaryCreateData) (any, error) {
		return queued{true}, c.Chats.SummariseLater(ctx, c.Call, in.ConversationID, chat.SummaryRange{From: in.From, To: in.To})
	})}
	SummaryNow = Operation{Command: "summary.now", Route: summaryRoute, Status: http.StatusCreated, Data: takes(summaryNow)}
)

const summaryRoute = "POST /conversations/:conversationId/summaries"

// summaryNow is summaryCreate that waits for the summary.
func summaryNow(ctx context.Context, c *Call, in summaryCreateData) (any, error) {
	return summaryOf(c.Chats.Summarise(ctx, c.Call, in.ConversationID, chat.SummaryRange{From: in.From, To: in.To}))
}

var summaryOf = Result(wireSummaryOf)

type summaryEditData struct {
	summaryData
	Summary string `json:"summary"`
}

type summaryData struct {
	ConversationID string `json:"conversationId"`
	SummaryID      string `json:"summaryId"`
}
