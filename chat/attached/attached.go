// Package attached finds the pictures and other files that imported messages name.
package attached

import (
	"encoding/json"
	"mime"
	"path"
	"strings"

	"nodest/internal/tavern/folder"
)

// File is a picture or another file that came with an imported message.
type File struct {
	ID   string // an import keeps it under this one
	Path string // in the folder that it came with
	Name string // as people know it
	Size int64  // bytes
}

// Source reads the lines that messages came from, and the files that are kept.
type Source interface {
	// FileLines calls fn with the line of each of these messages that may name files.
	FileLines(messageIDs []string, fn func(messageID string, line json.RawMessage) error) error
	// FilesAt returns the files that imports keep at paths of a folder, the newest one of each; Name is not set.
	FilesAt(paths []string) ([]*File, error)
}

// Find returns the files that are kept of messages, by their ids, and reports whether they name any. swipes are the
// positions of their shown swipes.
func Find(from Source, swipes map[string]int) (files map[string][]*File, named bool, err error) {
	ids := make([]string, 0, len(swipes))
	for id := range swipes {
		ids = append(ids, id)
	}
	paths, wanted := []string{}, map[string][]folder.Media{}
	err = from.FileLines(ids, func(id string, line json.RawMessage) error {
		for _, file := range folder.MediaOf(line, swipes[id]) {
			wanted[id] = append(wanted[id], file)
			paths = append(paths, file.Path)
		}
		return nil
	})
	if err != nil || len(paths) == 0 {
		return nil, false, err
	}
	kept, err := from.FilesAt(paths)
	byPath := map[string]*File{}
	for _, f := range kept {
		byPath[f.Path] = f
	}
	files = map[string][]*File{}
	for id, all := range wanted {
		for _, file := range all {
			if f := byPath[file.Path]; f != nil {
				files[id] = append(files[id], &File{f.ID, f.Path, file.Name, f.Size})
			}
		}
	}
	return files, true, err
}

// Wired is a file as clients see it.
type Wired struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"`
}

// Wire returns files as clients see them. The type is that of the name in the folder: the content may be another one.
func Wire(files []*File) []Wired {
	var all []Wired
	for _, f := range files {
		kind, _, _ := strings.Cut(mime.TypeByExtension(strings.ToLower(path.Ext(f.Path))), ";")
		if kind == "" {
			kind = "application/octet-stream"
		}
		all = append(all, Wired{f.ID, f.Name, kind, f.Size})
	}
	return all
}
