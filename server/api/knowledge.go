package api

import (
	"context"
	"net/http"
	"time"

	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/knowledge/search"
)

// knowledgeOperations are about files and knowledge bases. An operation without a command exists in REST only.
var knowledgeOperations = []Operation{
	{Route: "GET /files", Data: takes(func(ctx context.Context, c *Call, in filesListData) (any, error) {
		return pageOf(knowledge.WireFile)(c.Knowledge.Files(ctx, c.UserID, in.State, in.Cursor, int(in.Limit)))
	})},
	{Route: "POST /files/web", Status: http.StatusAccepted, Data: takes(fileFetch)},
	{Route: "GET /files/:id", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return Result(func(f *knowledge.File) Versioned { return Versioned{knowledge.WireFile(f), f.Version} })(c.Knowledge.File(ctx, c.UserID, in.ID))
	})},
	{Route: "DELETE /files/:id", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return nil, c.Knowledge.DeleteFile(ctx, c.Call, in.ID)
	})},
	{Route: "GET /files/:id/text", Data: takes(fileText)},
	{Route: "GET /files/:id/chunks", Data: takes(func(ctx context.Context, c *Call, in idPageData) (any, error) {
		return pageOf(wireFileChunkOf)(c.Knowledge.Chunks(ctx, c.UserID, in.ID, in.Cursor, int(in.Limit)))
	})},
	{Route: "POST /files/:id/retry", Status: http.StatusAccepted, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return queuedOf(c.Knowledge.Retry(ctx, c.Call, in.ID))
	})},

	{Route: "GET /knowledge-bases", Data: takes(func(ctx context.Context, c *Call, in pageData) (any, error) {
		return pageOf(knowledge.WireBase)(c.Knowledge.Bases(ctx, c.UserID, in.Cursor, int(in.Limit)))
	})},
	{Route: "POST /knowledge-bases", Status: http.StatusCreated, Data: takes(func(ctx context.Context, c *Call, in baseInput) (any, error) {
		return baseOf(c.Knowledge.CreateBase(ctx, c.Call, knowledge.NewBase(in)))
	})},
	{Command: "knowledge.search", Route: "POST /knowledge-bases/search", Data: takes(knowledgeSearch)},
	{Route: "GET /knowledge-bases/:id", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return baseOf(c.Knowledge.Base(ctx, c.UserID, in.ID))
	})},
	{Route: "PATCH /knowledge-bases/:id", IfMatch: true, Data: takes(func(ctx context.Context, c *Call, in baseUpdateData) (any, error) {
		return baseOf(c.Knowledge.UpdateBase(ctx, c.Call, in.ID, in.IfVersion, knowledge.NewBase(in.baseInput)))
	})},
	{Route: "DELETE /knowledge-bases/:id", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in baseDeleteData) (any, error) {
		return nil, c.Knowledge.DeleteBase(ctx, c.Call, in.ID, in.Files)
	})},
	{Route: "GET /knowledge-bases/:id/files", Data: takes(func(ctx context.Context, c *Call, in idPageData) (any, error) {
		return pageOf(knowledge.WireFile)(c.Knowledge.BaseFiles(ctx, c.UserID, in.ID, in.Cursor, int(in.Limit)))
	})},
	{Route: "PUT /knowledge-bases/:id/files/:fileId", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idFileData) (any, error) {
		return nil, c.Knowledge.AddFile(ctx, c.Call, in.ID, in.FileID)
	})},
	{Route: "DELETE /knowledge-bases/:id/files/:fileId", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in baseRemoveFileData) (any, error) {
		return nil, c.Knowledge.RemoveFile(ctx, c.Call, in.ID, in.FileID, in.Unused)
	})},
	{Route: "GET /knowledge-bases/:id/grants", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return List(func(g knowledge.Grant) any { return knowledge.WireGrant(&g) })(c.Knowledge.Grants(ctx, c.UserID, in.ID))
	})},
	{Route: "PUT /knowledge-bases/:id/grants/:userId", Data: takes(func(ctx context.Context, c *Call, in grantPutData) (any, error) {
		return Result(knowledge.WireGrant)(c.Knowledge.PutGrant(ctx, c.Call, in.ID, in.UserID, in.Role))
	})},
	{Route: "DELETE /knowledge-bases/:id/grants/:userId", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in granteeData) (any, error) {
		return nil, c.Knowledge.DeleteGrant(ctx, c.Call, in.ID, in.UserID)
	})},
	{Route: "GET /knowledge-bases/:id/reindex", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return c.Knowledge.Reindexing(ctx, c.UserID, in.ID)
	})},
	{Route: "POST /knowledge-bases/:id/reindex", Status: http.StatusAccepted, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return c.Knowledge.Reindex(ctx, c.Call, in.ID)
	})},
	{Route: "DELETE /knowledge-bases/:id/reindex", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return nil, c.Knowledge.CancelReindex(ctx, c.Call, in.ID)
	})},

	{Route: "GET /characters/:id/knowledge", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return Result(wireBoundOf)(c.Knowledge.Bound(ctx, c.UserID, in.ID))
	})},
	{Route: "PUT /characters/:id/knowledge/:knowledgeBaseId", Data: takes(func(ctx context.Context, c *Call, in baseBindData) (any, error) {
		return Result(knowledge.WireBoundBase)(c.Knowledge.BindBase(ctx, c.Call, in.ID, in.KnowledgeBaseID, in.Enabled))
	})},
	{Route: "DELETE /characters/:id/knowledge/:knowledgeBaseId", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idBaseData) (any, error) {
		return nil, c.Knowledge.UnbindBase(ctx, c.Call, in.ID, in.KnowledgeBaseID)
	})},
	{Route: "PUT /characters/:id/files/:fileId", Data: takes(fileBind)},
	{Route: "DELETE /characters/:id/files/:fileId", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idFileData) (any, error) {
		return nil, c.Knowledge.UnbindFile(ctx, c.Call, in.ID, in.FileID)
	})},

	{Route: "POST /knowledge/ask", Data: takes(knowledgeAsk)},
}

type filesListData struct {
	State string `json:"state,omitempty"`
	pageData
}

type fileFetchData struct {
	URL             string `json:"url"`
	KnowledgeBaseID string `json:"knowledgeBaseId,omitempty"`
}

func fileFetch(ctx context.Context, c *Call, in fileFetchData) (any, error) {
	if err := op.CheckText("url", in.URL, 2000); err != nil {
		return nil, err
	}
	return queuedOf(c.Knowledge.Fetch(ctx, c.Call, in.URL, in.KnowledgeBaseID))
}

type fileTextData struct {
	ID     string `json:"id"`
	Offset int    `json:"offset,omitempty"`
	Limit  *int   `json:"limit,omitempty"`
}

func fileText(ctx context.Context, c *Call, in fileTextData) (any, error) {
	check := &op.Checks{}
	op.Between(check, "limit", in.Limit, 1, knowledge.MostText)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return Result(wireTextOf)(c.Knowledge.Text(ctx, c.UserID, in.ID, in.Offset, valueOf(in.Limit)))
}

type idPageData struct {
	ID string `json:"id"`
	pageData
}

// baseInput is what a knowledge base is made of.
type baseInput struct {
	Name         *string `json:"name,omitempty"`
	Description  *string `json:"description,omitempty"`
	ChunkSize    *int    `json:"chunkSize,omitempty"`
	ChunkOverlap *int    `json:"chunkOverlap,omitempty"`
	ContextLines *bool   `json:"contextLines,omitempty"`
}

var baseOf = Result(func(b *knowledge.Base) Versioned { return Versioned{knowledge.WireBase(b), b.Version} })

type baseUpdateData struct {
	baseInput
	ID        string `json:"id"`
	IfVersion int64  `json:"ifVersion,omitempty"`
}

type baseDeleteData struct {
	ID    string `json:"id"`
	Files bool   `json:"files,omitempty"`
}

// idFileData names a file of what the id names.
type idFileData struct {
	ID     string `json:"id"`
	FileID string `json:"fileId"`
}

type baseRemoveFileData struct {
	idFileData
	Unused bool `json:"unused,omitempty"`
}

type granteeData struct {
	ID     string `json:"id"`
	UserID string `json:"userId"`
}

type grantPutData struct {
	granteeData
	Role string `json:"role"`
}

type idBaseData struct {
	ID              string `json:"id"`
	KnowledgeBaseID string `json:"knowledgeBaseId"`
}

type baseBindData struct {
	idBaseData
	Enabled *bool `json:"enabled,omitempty"`
}

type fileBindData struct {
	idFileData
	Enabled  *bool `json:"enabled,omitempty"`
	Position *int  `json:"position,omitempty"`
}

func fileBind(ctx context.Context, c *Call, in fileBindData) (any, error) {
	check := &op.Checks{}
	op.Between(check, "position", in.Position, 0, 100_000)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return Result(knowledge.WireBoundFile)(c.Knowledge.BindFile(ctx, c.Call, in.ID, in.FileID, in.Enabled, in.Position))
}

// Limits of a search.
const (
	queryChars  = 100_000
	searchBases = 100
	searchFiles = 1000
	searchTypes = 20
	folderChars = 200
)

type knowledgeSearchData struct {
	Query            string     `json:"query"`
	KnowledgeBaseIDs []string   `json:"knowledgeBaseIds,omitempty"`
	TopK             *int       `json:"topK,omitempty"`
	Mode             string     `json:"mode,omitempty"`
	FileIDs          []string   `json:"fileIds,omitempty"`
	Types            []string   `json:"types,omitempty"`
	Folder           string     `json:"folder,omitempty"`
	UpdatedAfter     *time.Time `json:"updatedAfter,omitempty"`
}

func (in *knowledgeSearchData) check() error {
	if err := op.CheckText("query", in.Query, queryChars); err != nil {
		return err
	}
	if err := op.CheckLength("folder", in.Folder, folderChars); err != nil {
		return err
	}
	c := &op.Checks{}
	if in.Mode != "" {
		op.OneOf(c, "mode", in.Mode, []string{search.Hybrid, search.Lexical, search.Vector})
	}
	op.Between(c, "topK", in.TopK, 1, 100)
	c.That(len(in.KnowledgeBaseIDs) <= searchBases, "knowledgeBaseIds", "range", "must have at most %d ids", searchBases)
	c.That(len(in.FileIDs) <= searchFiles, "fileIds", "range", "must have at most %d ids", searchFiles)
	c.That(len(in.Types) <= searchTypes, "types", "range", "must have at most %d types", searchTypes)
	return c.Err()
}

func knowledgeSearch(ctx context.Context, c *Call, in knowledgeSearchData) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	request := knowledge.SearchRequest{
		Query: in.Query, BaseIDs: in.KnowledgeBaseIDs, TopK: valueOf(in.TopK), Mode: in.Mode,
		FileIDs: in.FileIDs, Types: in.Types, Folder: in.Folder, After: valueOf(in.UpdatedAfter),
	}
	return Result(wireSearchedOf)(c.Knowledge.Search(ctx, c.UserID, request))
}

// valueOf is what p points at; the zero value if it is nil.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

type knowledgeAskData struct {
	Question         string   `json:"question"`
	KnowledgeBaseIDs []string `json:"knowledgeBaseIds,omitempty"`
	ConversationID   string   `json:"conversationId,omitempty"`
	TopK             *int     `json:"topK,omitempty"`
}

func knowledgeAsk(ctx context.Context, c *Call, in knowledgeAskData) (any, error) {
	if err := op.CheckText("question", in.Question, 8000); err != nil {
		return nil, err
	}
	check := &op.Checks{}
	op.Between(check, "topK", in.TopK, 1, 50)
	check.That(len(in.KnowledgeBaseIDs) <= searchBases, "knowledgeBaseIds", "range", "must have at most %d ids", searchBases)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return Result(wireAnswerOf)(c.Knowledge.Ask(ctx, c.Call, knowledge.AskRequest{
		Question: in.Question, BaseIDs: in.KnowledgeBaseIDs, ConversationID: in.ConversationID, TopK: valueOf(in.TopK),
	}))
}
