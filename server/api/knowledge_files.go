package api

import (
	"cmp"
	"context"
	"io"
	"net/http"

	"nodest/internal/op"
	"nodest/knowledge"
)

// documentBytes bounds an uploaded document or archive.
const documentBytes = 100 << 20

// Documents as files. They are not held in memory.
var (
	knowledgeUploads = []Upload{
		{Route: "POST /files", Name: "file.upload", Limit: documentBytes, Spooled: true, Room: roomForFile, Status: http.StatusAccepted, Run: uploadFile},
		{Route: "PUT /files/:id/content", Name: "file.replace", Limit: documentBytes, Spooled: true, Room: roomForFile, IfMatch: true, Status: http.StatusAccepted, Run: replaceFile},
		{Route: "POST /knowledge-bases/:id/import", Name: "knowledge.import", Limit: documentBytes, Spooled: true, Room: roomForZip, Status: http.StatusAccepted, Run: importZip},
	}
	knowledgeStreams = []Stream{
		{Route: "GET /files/:id/content", Open: openFile},
	}
)

// newFile is an uploaded file as the service takes it.
func newFile(f File) knowledge.NewFile {
	return knowledge.NewFile{Name: cmp.Or(f.Rename, f.Name), Type: f.Type, Body: f.Body, Size: f.Size, BaseID: f.KnowledgeBaseID, Source: f.Source}
}

// roomForFile is the room for a new file, or for the new content of the one with an id.
func roomForFile(ctx context.Context, s *Services, c *op.Call, id string) (int64, error) {
	return s.Knowledge.Room(ctx, c, id)
}

// roomForZip is that for an archive, of which more may be there already than there is room for.
func roomForZip(ctx context.Context, s *Services, c *op.Call, _ string) (int64, error) {
	_, err := s.Knowledge.Room(ctx, c, "")
	return documentBytes, err
}

func uploadFile(ctx context.Context, s *Services, c *op.Call, f File) (any, error) {
	if f.Source != "" {
		check := &op.Checks{}
		if op.OneOf(check, "source", f.Source, []string{knowledge.SourceUpload, knowledge.SourceSync}); check.Err() != nil {
			return nil, check.Err()
		}
	}
	return queuedOf(s.Knowledge.Upload(ctx, c, newFile(f)))
}

func replaceFile(ctx context.Context, s *Services, c *op.Call, f File) (any, error) {
	in := newFile(f)
	in.Name = f.Rename // without one it keeps its name
	return queuedOf(s.Knowledge.Replace(ctx, c, f.ID, f.IfVersion, in))
}

func importZip(ctx context.Context, s *Services, c *op.Call, f File) (any, error) {
	in := newFile(f)
	in.BaseID = f.ID
	files, failed, err := s.Knowledge.Unzip(ctx, c, in)
	if err != nil {
		return nil, err
	}
	return unpackedOf(files, failed), nil
}

// Stream is a route that answers a file which is not held in memory, or a range of it.
type Stream struct {
	Route string // as in Operation
	Open  func(ctx context.Context, s *Services, userID, id string) (*Content, error)
}

// Content is a file to send; whoever gets it closes it.
type Content struct {
	io.ReadSeekCloser
	Name    string
	Hash    string // hash of the content, in hexadecimal
	Picture string // its type, if a page may show it as a picture; "" = it is only saved
}

func openFile(ctx context.Context, s *Services, userID, id string) (*Content, error) {
	f, body, err := s.Knowledge.Content(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	return &Content{ReadSeekCloser: body, Name: f.Name, Hash: f.SHA256}, nil
}
