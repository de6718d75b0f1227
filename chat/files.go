package chat

import (
	"encoding/json"
	"mime"
	"path"
	"strings"

	"nodest/internal/tavern/folder"
)

// addFiles sets Message.Files where the line that a message came from names files that an import keeps. It reports whether
// any does.
func addFiles(tx Tx, messages []*Message) (has bool, err error) {
	imported, ids := map[string]*Message{}, []string{}
	for _, m := range messages {
		if m.Imported {
			imported[m.ID] = m
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return false, nil
	}
	named, paths := map[string][]folder.Media{}, []string{}
	err = tx.FileLines(ids, func(messageID string, line json.RawMessage) error {
		for _, file := range folder.MediaOf(line, imported[messageID].SwipeIndex) {
			named[messageID] = append(named[messageID], file)
			paths = append(paths, file.Path)
		}
		return nil
	})
	if err != nil || len(paths) == 0 {
		return len(named) > 0, err
	}
	kept, err := tx.FilesAt(paths)
	byPath := map[string]*File{}
	for _, f := range kept {
		byPath[f.Path] = f
	}
	for id, all := range named {
		for _, file := range all {
			if f := byPath[file.Path]; f != nil {
				imported[id].Files = append(imported[id].Files, &File{f.ID, f.Path, file.Name, f.Size})
			}
		}
	}
	return true, err
}

type wireFile struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"`
}

// wireFiles are files as clients see them. The type is that of the name in the folder: the content may be another one.
func wireFiles(files []*File) []wireFile {
	var all []wireFile
	for _, f := range files {
		kind, _, _ := strings.Cut(mime.TypeByExtension(strings.ToLower(path.Ext(f.Path))), ";")
		if kind == "" {
			kind = "application/octet-stream"
		}
		all = append(all, wireFile{f.ID, f.Name, kind, f.Size})
	}
	return all
}
