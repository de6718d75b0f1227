package api

import (
	"context"
	"net/http"

	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/dream"
)

// dreamOperations are about the documents of memories.
var dreamOperations = []Operation{
	{Route: "POST /characters/:characterId/dream", Status: http.StatusAccepted, Data: takes(func(ctx context.Context, c *Call, in dreamData) (any, error) {
		return dreamRunOf(c.Dreams.Start(ctx, c.Call, in.CharacterID, in.Order))
	})},
	{Route: "GET /characters/:characterId/dream/runs", Data: takes(func(ctx context.Context, c *Call, in dreamRunsData) (any, error) {
		return Pages(wireDreamRunOf)(c.Dreams.Runs(ctx, c.UserID, in.CharacterID, in.Cursor, int(in.Limit)))
	})},
	{Route: "GET /characters/:characterId/memory-documents", Data: takes(func(ctx context.Context, c *Call, in characterOnly) (any, error) {
		return List(wireDocumentHeadOf)(c.Dreams.Documents(ctx, c.UserID, in.CharacterID))
	})},
	{Route: "GET /characters/:characterId/memory-documents/:path", Data: takes(func(ctx context.Context, c *Call, in documentVersionData) (any, error) {
		return memoryDocumentOf(c.Dreams.Document(ctx, c.UserID, in.CharacterID, in.Path, in.Version))
	})},
	{Route: "PUT /characters/:characterId/memory-documents/:path", IfMatch: true, Data: takes(func(ctx context.Context, c *Call, in documentPutData) (any, error) {
		return memoryDocumentOf(c.Dreams.Put(ctx, c.Call, in.CharacterID, in.Path, in.Edit))
	})},
	{Route: "DELETE /characters/:characterId/memory-documents/:path", IfMatch: true, Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in documentDeleteData) (any, error) {
		return struct{}{}, c.Dreams.Delete(ctx, c.Call, in.CharacterID, in.Path, in.IfVersion)
	})},
	{Route: "GET /characters/:characterId/memory-documents/:path/versions", Data: takes(func(ctx context.Context, c *Call, in documentVersionsData) (any, error) {
		return Pages(wireDocumentVersionOf)(c.Dreams.Versions(ctx, c.UserID, in.CharacterID, in.Path, in.Cursor, int(in.Limit)))
	})},
	{Route: "POST /characters/:characterId/memory-documents/:path/rollback", Data: takes(func(ctx context.Context, c *Call, in documentRollbackData) (any, error) {
		return memoryDocumentOf(c.Dreams.Rollback(ctx, c.Call, in.CharacterID, in.Path, in.Version, in.IfVersion))
	})},
}

type characterOnly struct {
	CharacterID string `json:"characterId"`
}

type dreamData struct {
	CharacterID string `json:"characterId"`
	dream.Order
}

type dreamRunsData struct {
	CharacterID string `json:"characterId"`
	pageData
}

// wireDreamRun is a run with its report.
type wireDreamRun struct {
	ID          string         `json:"id"`
	CharacterID string         `json:"characterId"`
	Cause       string         `json:"cause"`
	Force       bool           `json:"force"`
	DryRun      bool           `json:"dryRun"`
	State       string         `json:"state"`
	Step        string         `json:"step"`
	Reflections int            `json:"reflections"`
	Consumed    int            `json:"consumed"`
	Calls       int            `json:"calls"`
	Tokens      int            `json:"tokens"`
	Changes     []dream.Change `json:"changes"`
	Failure     string         `json:"failure"`
	CreatedAt   op.Time        `json:"createdAt"`
	FinishedAt  *op.Time       `json:"finishedAt"`
}

var dreamRunOf = Result(wireDreamRunOf)

func wireDreamRunOf(r *dream.Run) wireDreamRun {
	return wireDreamRun{
		r.ID, r.CharacterID, r.Cause, r.Forced, r.DryRun, r.State, r.Step, r.Reflections, r.Consumed, r.Calls, r.Tokens, OrEmpty(r.Changes), r.Failure,
		op.Time(r.CreatedAt), op.OptionalTime(r.FinishedAt),
	}
}

type documentData struct {
	CharacterID string `json:"characterId"`
	Path        string `json:"path"`
}

type documentVersionData struct {
	documentData
	Version int64 `json:"version,omitempty"`
}

type documentPutData struct {
	documentData
	dream.Edit
}

type documentDeleteData struct {
	documentData
	IfVersion int64 `json:"ifVersion,omitempty"`
}

type documentVersionsData struct {
	documentData
	pageData
}

type documentRollbackData struct {
	documentData
	Version   int64 `json:"version"`
	IfVersion int64 `json:"ifVersion,omitempty"`
}

// wireDocumentHead is a document without its lines.
type wireDocumentHead struct {
	Path      string       `json:"path"`
	Version   int64        `json:"version"`
	Newest    int64        `json:"newest"`
	Locked    bool         `json:"locked"`
	Author    dream.Author `json:"author"`
	RunID     *string      `json:"runId"` // nil = the user wrote this version
	Size      int          `json:"size"`
	UpdatedAt op.Time      `json:"updatedAt"`
}

func wireDocumentHeadOf(d *dream.Document) wireDocumentHead {
	return wireDocumentHead{d.Path, d.Version, d.Newest, d.Locked, d.Author, optional(d.RunID), d.Size(), op.Time(d.UpdatedAt)}
}

func optional(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

type wireDocument struct {
	wireDocumentHead
	Text  string     `json:"text"`
	Lines []wireLine `json:"lines"`
}

type wireLine struct {
	ID        string            `json:"id"`
	Text      string            `json:"text"`
	Author    dream.Author      `json:"author"`
	Evidence  []memory.Evidence `json:"evidence"`
	WrittenAt op.Time           `json:"writtenAt"`
	Shown     bool              `json:"shown"`
	From      string            `json:"from,omitempty"`
}

var memoryDocumentOf = Result(func(d *dream.Shown) Versioned {
	w := wireDocument{wireDocumentHeadOf(d.Document), d.Text(), make([]wireLine, len(d.Lines))}
	for i, l := range d.Lines {
		w.Lines[i] = wireLine{l.ID, l.Text, l.Author, OrEmpty(l.Evidence), op.Time(l.At), d.Counts[i], l.From}
	}
	return Versioned{w, d.Newest}
})

type wireDocumentVersion struct {
	Version   int64        `json:"version"`
	Author    dream.Author `json:"author"`
	RunID     *string      `json:"runId"`
	Size      int          `json:"size"`
	CreatedAt op.Time      `json:"createdAt"`
}

func wireDocumentVersionOf(v dream.Version) wireDocumentVersion {
	return wireDocumentVersion{v.Version, v.Author, optional(v.RunID), v.Size, op.Time(v.At)}
}
