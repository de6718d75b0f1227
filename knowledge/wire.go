package knowledge

import (
	"nodest/internal/op"
	"nodest/internal/stream"
)

// wireFile is the wire format of a file.
type wireFile struct {
	ID          string     `json:"id"`
	OwnerID     string     `json:"ownerId"`
	Access      string     `json:"access"`
	Name        string     `json:"name"`
	ContentType string     `json:"contentType"`
	Size        int64      `json:"size"`
	SHA256      string     `json:"sha256"`
	Source      string     `json:"source"`
	SourceURL   string     `json:"sourceUrl,omitempty"`
	State       string     `json:"state"`
	Error       *FileError `json:"error,omitempty"`
	Warnings    []string   `json:"warnings"`
	Progress    *Progress  `json:"progress,omitempty"`
	Language    string     `json:"language,omitempty"`
	Chars       int        `json:"chars"`
	Chunks      int        `json:"chunks"`
	Version     int64      `json:"version"`
	Duplicate   bool       `json:"duplicate,omitempty"`
	CreatedAt   op.Time    `json:"createdAt"`
	UpdatedAt   op.Time    `json:"updatedAt"`
}

// WireFile returns f in its wire format.
func WireFile(f *File) any { return newWireFile(f) }

func newWireFile(f *File) wireFile {
	w := wireFile{
		ID: f.ID, OwnerID: f.OwnerID, Access: f.Access, Name: f.Name, ContentType: f.ContentType, Size: f.Size,
		SHA256: f.SHA256, Source: f.Source, SourceURL: f.SourceURL, State: f.State, Error: f.Error, Warnings: f.Warnings,
		Progress: f.Progress, Language: f.Language, Chars: f.Chars, Chunks: f.Chunks, Version: f.Version,
		Duplicate: f.Duplicate, CreatedAt: op.Time(f.CreatedAt), UpdatedAt: op.Time(f.UpdatedAt),
	}
	if w.Warnings == nil {
		w.Warnings = []string{}
	}
	return w
}

// wireBase is the wire format of a knowledge base.
type wireBase struct {
	ID           string   `json:"id"`
	OwnerID      string   `json:"ownerId"`
	Access       string   `json:"access"`
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	ChunkSize    int      `json:"chunkSize,omitempty"`
	ChunkOverlap *int     `json:"chunkOverlap,omitempty"`
	ContextLines bool     `json:"contextLines"`
	Files        int      `json:"files"`
	Languages    []string `json:"languages"`
	Version      int64    `json:"version"`
	CreatedAt    op.Time  `json:"createdAt"`
	UpdatedAt    op.Time  `json:"updatedAt"`
}

// WireBase returns b in its wire format.
func WireBase(b *Base) any { return newWireBase(b) }

func newWireBase(b *Base) wireBase {
	w := wireBase{
		ID: b.ID, OwnerID: b.OwnerID, Access: b.Access, Name: b.Name, Description: b.Description,
		ContextLines: b.ContextLines, Files: b.Files, Languages: b.Languages, Version: b.Version, CreatedAt: op.Time(b.CreatedAt), UpdatedAt: op.Time(b.UpdatedAt),
	}
	if b.Rules != nil {
		w.ChunkSize, w.ChunkOverlap = b.Rules.Size, &b.Rules.Overlap
	}
	if w.Languages == nil {
		w.Languages = []string{}
	}
	return w
}

// WireGrant returns g in its wire format.
func WireGrant(g *Grant) any {
	return struct {
		UserID    string  `json:"userId"`
		Username  string  `json:"username"`
		Role      string  `json:"role"`
		GrantedBy string  `json:"grantedBy"`
		CreatedAt op.Time `json:"createdAt"`
	}{g.UserID, g.Username, g.Role, g.GrantedBy, op.Time(g.CreatedAt)}
}

// WireBoundFile and WireBoundBase return what a character has in their wire formats.
func WireBoundFile(f *BoundFile) any {
	return struct {
		wireFile
		Enabled  bool `json:"enabled"`
		Position int  `json:"position"`
	}{newWireFile(&f.File), f.Enabled, f.Position}
}

// WireBoundBase is WireBoundFile of a knowledge base.
func WireBoundBase(b *BoundBase) any {
	return struct {
		wireBase
		Enabled bool `json:"enabled"`
	}{newWireBase(&b.Base), b.Enabled}
}

// The events go to the log of the acting user alone: others learn of a change of what is
// shared when they ask.

func fileUpdated(c *op.Call, f *File) *stream.Event {
	return op.Event(c.UserID, "file.updated", c.By(), map[string]any{"file": WireFile(f)})
}

func fileDeleted(c *op.Call, id string) *stream.Event {
	return op.Event(c.UserID, "file.deleted", c.By(), map[string]any{"fileId": id})
}

func baseUpdated(c *op.Call, b *Base) *stream.Event {
	return op.Event(c.UserID, "knowledge.updated", c.By(), map[string]any{"knowledgeBaseId": b.ID, "version": b.Version})
}

func baseDeleted(c *op.Call, id string) *stream.Event {
	return op.Event(c.UserID, "knowledge.deleted", c.By(), map[string]any{"knowledgeBaseId": id})
}
