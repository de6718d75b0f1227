package folder

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// Media is a picture or another file that a message of a chat names.
type Media struct {
	Path string // from the folder of the user on
	Name string // as people know it
}

// mostMedia bounds the files of a message.
const mostMedia = 100

// NamesMedia says without reading a line that it may name files. Most lines name none.
func NamesMedia(line []byte) bool {
	return bytes.Contains(line, []byte("images")) || bytes.Contains(line, []byte("files"))
}

// MediaOf are the files that a line of a chat names with one of its swipes, from 0; below 0 = with the one that is shown.
// Pictures of other sites, and those that are in the line itself, are no files.
func MediaOf(line []byte, swipe int) []Media {
	var m struct {
		Extra  json.RawMessage   `json:"extra"`
		Swipes []json.RawMessage `json:"swipes"`
		Info   []json.RawMessage `json:"swipe_info"`
		Shown  any               `json:"swipe_id"`
	}
	if !NamesMedia(line) || json.Unmarshal(line, &m) != nil {
		return nil
	}
	last := max(len(m.Swipes)-1, 0)
	shown, _ := m.Shown.(float64)
	if shown < 0 || shown > float64(last) {
		shown = float64(last)
	}
	switch {
	case swipe < 0 || swipe == int(shown):
		return mediaIn(m.Extra)
	case swipe < len(m.Info) && swipe <= last:
		return mediaIn(object(m.Info[swipe])["extra"])
	}
	return nil
}

// mediaIn reads the member extra of a message.
func mediaIn(extra json.RawMessage) []Media {
	in := object(extra)
	var all []Media
	for _, p := range append([]string{text(in["image"]), text(in["video"])}, texts(in["image_swipes"])...) {
		all = append(all, Media{Path: p})
	}
	list := []map[string]json.RawMessage{object(in["file"])}
	for _, member := range []string{"media", "files"} {
		var more []map[string]json.RawMessage
		if json.Unmarshal(in[member], &more) == nil {
			list = append(list, more...)
		}
	}
	for _, one := range list {
		all = append(all, Media{text(one["url"]), text(one["name"])})
	}
	var found []Media
	for _, m := range all {
		m.Path = strings.TrimPrefix(Slashes(m.Path), "/")
		known := slices.ContainsFunc(found, func(f Media) bool { return f.Path == m.Path })
		if known || !slices.Contains([]Kind{Image, File}, Classify(m.Path)) || len(found) == mostMedia {
			continue
		}
		if m.Name == "" {
			m.Name = path.Base(m.Path)
		}
		found = append(found, m)
	}
	return found
}
