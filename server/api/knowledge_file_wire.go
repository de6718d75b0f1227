package api

import (
	"nodest/knowledge"
	"nodest/op"
)

type wireFile struct {
	ID          string               `json:"id"`
	OwnerID     string               `json:"ownerId"`
	Access      string               `json:"access"`
	Name        string               `json:"name"`
	ContentType string               `json:"contentType"`
	Size        int64                `json:"size"`
	SHA256      string               `json:"sha256"`
	Source      string               `json:"source"`
	SourceURL   string               `json:"sourceUrl,omitempty"`
	State       string               `json:"state"`
	Error       *knowledge.FileError `json:"error,omitempty"`
	Warnings    []string             `json:"warnings"`
	Progress    *knowledge.Progress  `json:"progress,omitempty"`
	Language    string               `json:"language,omitempty"`
	Chars       int                  `json:"chars"`
	Chunks      int                  `json:"chunks"`
	Version     int64                `json:"version"`
	Duplicate   bool                 `json:"duplicate,omitempty"`
	CreatedAt   op.Time              `json:"createdAt"`
	UpdatedAt   op.Time              `json:"updatedAt"`
}

func wireFileOf(f *knowledge.File) wireFile {
	return wireFile{
		ID: f.ID, OwnerID: f.OwnerID, Access: f.Access, Name: f.Name, ContentType: f.ContentType, Size: f.Size, SHA256: f.SHA256,
		Source: f.Source, SourceURL: f.SourceURL, State: f.State, Error: f.Error, Warnings: OrEmpty(f.Warnings), Progress: f.Progress,
		Language: f.Language, Chars: f.Chars, Chunks: f.Chunks, Version: f.Version, Duplicate: f.Duplicate,
		CreatedAt: op.Time(f.CreatedAt), UpdatedAt: op.Time(f.UpdatedAt),
	}
}
