package api

import (
	"context"
	"net/http"
	"time"

	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/knowledge/search"
)

// knowledgeOperations are about files and knowledge bases. What has no command exists in
// REST only.
var knowledgeOperations = []Operation{
	{Route: "GET /files", Data: takes(filesList)},
	{Route: "POST /files/web", Status: http.StatusAccepted, Data: takes(fileFetch)},
	{Route: "GET /files/:id", Data: takes(fileGet)},
	{Route: "DELETE /files/:id", Status: http.StatusNoContent, Data: takes(fileDelete)},
	{Route: "GET /files/:id/text", Data: takes(fileText)},
	{Route: "GET /files/:id/chunks", Data: takes(fileChunks)},
	{Route: "POST /files/:id/retry", Status: http.StatusAccepted, Data: takes(fileRetry)},

	{Route: "GET /knowledge-bases", Data: takes(baseList)},
	{Route: "POST /knowledge-bases", Status: http.StatusCreated, Data: takes(baseCreate)},
	{Command: "knowledge.search", Route: "POST /knowledge-bases/search", Data: takes(knowledgeSearch)},
	{Route: "GET /knowledge-bases/:id", Data: takes(baseGet)},
	{Route: "PATCH /knowledge-bases/:id", IfMatch: true, Data: takes(baseUpdate)},
	{Route: "DELETE /knowledge-bases/:id", Status: http.StatusNoContent, Data: takes(baseDelete)},
	{Route: "GET /knowledge-bases/:id/files", Data: takes(baseFiles)},
	{Route: "PUT /knowledge-bases/:id/files/:fileId", Status: http.StatusNoContent, Data: takes(baseAddFile)},
	{Route: "DELETE /knowledge-bases/:id/files/:fileId", Status: http.StatusNoContent, Data: takes(baseRemoveFile)},
	{Route: "GET /knowledge-bases/:id/grants", Data: takes(grantList)},
	{Route: "PUT /knowledge-bases/:id/grants/:userId", Data: takes(grantPut)},
	{Route: "DELETE /knowledge-bases/:id/grants/:userId", Status: http.StatusNoContent, Data: takes(grantDelete)},
	{Route: "GET /knowledge-bases/:id/reindex", Data: takes(reindexGet)},
	{Route: "POST /knowledge-bases/:id/reindex", Status: http.StatusAccepted, Data: takes(reindexStart)},
	{Route: "DELETE /knowledge-bases/:id/reindex", Status: http.StatusNoContent, Data: takes(reindexCancel)},

	{Route: "GET /characters/:id/knowledge", Data: takes(boundGet)},
	{Route: "PUT /characters/:id/knowledge/:knowledgeBaseId", Data: takes(baseBind)},
	{Route: "DELETE /characters/:id/knowledge/:knowledgeBaseId", Status: http.StatusNoContent, Data: takes(baseUnbind)},
	{Route: "PUT /characters/:id/files/:fileId", Data: takes(fileBind)},
	{Route: "DELETE /characters/:id/files/:fileId", Status: http.StatusNoContent, Data: takes(fileUnbind)},

	{Route: "POST /knowledge/ask", Data: takes(knowledgeAsk)},
}

type filesListData struct {
	State string `json:"state,omitempty"`
	pageData
}

func filesList(ctx context.Context, s *Services, c *op.Call, in filesListData) (any, error) {
	return pageOf(knowledge.WireFile)(s.Knowledge.Files(ctx, c.UserID, in.State, in.Cursor, int(in.Limit)))
}

type fileFetchData struct {
	URL             string `json:"url"`
	KnowledgeBaseID string `json:"knowledgeBaseId,omitempty"`
}

func fileFetch(ctx context.Context, s *Services, c *op.Call, in fileFetchData) (any, error) {
	if err := op.CheckText("url", in.URL, 2000); err != nil {
		return nil, err
	}
	return queuedOf(s.Knowledge.Fetch(ctx, c, in.URL, in.KnowledgeBaseID))
}

func fileGet(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return Result(func(f *knowledge.File) Versioned { return Versioned{knowledge.WireFile(f), f.Version} })(s.Knowledge.File(ctx, c.UserID, in.ID))
}

func fileDelete(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return nil, s.Knowledge.DeleteFile(ctx, c, in.ID)
}

type fileTextData struct {
	ID     string `json:"id"`
	Offset int    `json:"offset,omitempty"`
	Limit  *int   `json:"limit,omitempty"`
}

func fileText(ctx context.Context, s *Services, c *op.Call, in fileTextData) (any, error) {
	check := &op.Checks{}
	op.Between(check, "limit", in.Limit, 1, knowledge.MostText)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return Result(wireTextOf)(s.Knowledge.Text(ctx, c.UserID, in.ID, in.Offset, valueOf(in.Limit)))
}

type idPageData struct {
	ID string `json:"id"`
	pageData
}

func fileChunks(ctx context.Context, s *Services, c *op.Call, in idPageData) (any, error) {
	return pageOf(wireFileChunkOf)(s.Knowledge.Chunks(ctx, c.UserID, in.ID, in.Cursor, int(in.Limit)))
}

func fileRetry(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return queuedOf(s.Knowledge.Retry(ctx, c, in.ID))
}

func baseList(ctx context.Context, s *Services, c *op.Call, in pageData) (any, error) {
	return pageOf(knowledge.WireBase)(s.Knowledge.Bases(ctx, c.UserID, in.Cursor, int(in.Limit)))
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

func baseCreate(ctx context.Context, s *Services, c *op.Call, in baseInput) (any, error) {
	return baseOf(s.Knowledge.CreateBase(ctx, c, knowledge.NewBase(in)))
}

func baseGet(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return baseOf(s.Knowledge.Base(ctx, c.UserID, in.ID))
}

type baseUpdateData struct {
	baseInput
	ID        string `json:"id"`
	IfVersion int64  `json:"ifVersion,omitempty"`
}

func baseUpdate(ctx context.Context, s *Services, c *op.Call, in baseUpdateData) (any, error) {
	return baseOf(s.Knowledge.UpdateBase(ctx, c, in.ID, in.IfVersion, knowledge.NewBase(in.baseInput)))
}

type baseDeleteData struct {
	ID    string `json:"id"`
	Files bool   `json:"files,omitempty"`
}

func baseDelete(ctx context.Context, s *Services, c *op.Call, in baseDeleteData) (any, error) {
	return nil, s.Knowledge.DeleteBase(ctx, c, in.ID, in.Files)
}

func baseFiles(ctx context.Context, s *Services, c *op.Call, in idPageData) (any, error) {
	return pageOf(knowledge.WireFile)(s.Knowledge.BaseFiles(ctx, c.UserID, in.ID, in.Cursor, int(in.Limit)))
}

// idFileData names a file of what the id names.
type idFileData struct {
	ID     string `json:"id"`
	FileID string `json:"fileId"`
}

func baseAddFile(ctx context.Context, s *Services, c *op.Call, in idFileData) (any, error) {
	return nil, s.Knowledge.AddFile(ctx, c, in.ID, in.FileID)
}

type baseRemoveFileData struct {
	idFileData
	Unused bool `json:"unused,omitempty"`
}

func baseRemoveFile(ctx context.Context, s *Services, c *op.Call, in baseRemoveFileData) (any, error) {
	return nil, s.Knowledge.RemoveFile(ctx, c, in.ID, in.FileID, in.Unused)
}

func grantList(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return List(func(g knowledge.Grant) any { return knowledge.WireGrant(&g) })(s.Knowledge.Grants(ctx, c.UserID, in.ID))
}

type granteeData struct {
	ID     string `json:"id"`
	UserID string `json:"userId"`
}

type grantPutData struct {
	granteeData
	Role string `json:"role"`
}

func grantPut(ctx context.Context, s *Services, c *op.Call, in grantPutData) (any, error) {
	return Result(knowledge.WireGrant)(s.Knowledge.PutGrant(ctx, c, in.ID, in.UserID, in.Role))
}

func grantDelete(ctx context.Context, s *Services, c *op.Call, in granteeData) (any, error) {
	return nil, s.Knowledge.DeleteGrant(ctx, c, in.ID, in.UserID)
}

func reindexGet(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return s.Knowledge.Reindexing(ctx, c.UserID, in.ID)
}

func reindexStart(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return s.Knowledge.Reindex(ctx, c, in.ID)
}

func reindexCancel(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return nil, s.Knowledge.CancelReindex(ctx, c, in.ID)
}

func boundGet(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return Result(wireBoundOf)(s.Knowledge.Bound(ctx, c.UserID, in.ID))
}

type idBaseData struct {
	ID              string `json:"id"`
	KnowledgeBaseID string `json:"knowledgeBaseId"`
}

type baseBindData struct {
	idBaseData
	Enabled *bool `json:"enabled,omitempty"`
}

func baseBind(ctx context.Context, s *Services, c *op.Call, in baseBindData) (any, error) {
	return Result(knowledge.WireBoundBase)(s.Knowledge.BindBase(ctx, c, in.ID, in.KnowledgeBaseID, in.Enabled))
}

func baseUnbind(ctx context.Context, s *Services, c *op.Call, in idBaseData) (any, error) {
	return nil, s.Knowledge.UnbindBase(ctx, c, in.ID, in.KnowledgeBaseID)
}

type fileBindData struct {
	idFileData
	Enabled  *bool `json:"enabled,omitempty"`
	Position *int  `json:"position,omitempty"`
}

func fileBind(ctx context.Context, s *Services, c *op.Call, in fileBindData) (any, error) {
	check := &op.Checks{}
	op.Between(check, "position", in.Position, 0, 100_000)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return Result(knowledge.WireBoundFile)(s.Knowledge.BindFile(ctx, c, in.ID, in.FileID, in.Enabled, in.Position))
}

func fileUnbind(ctx context.Context, s *Services, c *op.Call, in idFileData) (any, error) {
	return nil, s.Knowledge.UnbindFile(ctx, c, in.ID, in.FileID)
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

func knowledgeSearch(ctx context.Context, s *Services, c *op.Call, in knowledgeSearchData) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	request := knowledge.SearchRequest{
		Query: in.Query, BaseIDs: in.KnowledgeBaseIDs, TopK: valueOf(in.TopK), Mode: in.Mode,
		FileIDs: in.FileIDs, Types: in.Types, Folder: in.Folder, After: valueOf(in.UpdatedAfter),
	}
	return Result(wireSearchedOf)(s.Knowledge.Search(ctx, c.UserID, request))
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

func knowledgeAsk(ctx context.Context, s *Services, c *op.Call, in knowledgeAskData) (any, error) {
	if err := op.CheckText("question", in.Question, 8000); err != nil {
		return nil, err
	}
	check := &op.Checks{}
	op.Between(check, "topK", in.TopK, 1, 50)
	check.That(len(in.KnowledgeBaseIDs) <= searchBases, "knowledgeBaseIds", "range", "must have at most %d ids", searchBases)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return Result(wireAnswerOf)(s.Knowledge.Ask(ctx, c, knowledge.AskRequest{
		Question: in.Question, BaseIDs: in.KnowledgeBaseIDs, ConversationID: in.ConversationID, TopK: valueOf(in.TopK),
	}))
}
