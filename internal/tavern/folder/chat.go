package folder

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Head is what the first line of a chat says of its file.
type Head struct {
	Main string // name of the chat of which it is a branch; "" = of none
}

// ReadHead reads the first line of a chat, as far as it is one.
func ReadHead(line []byte) Head {
	var h struct {
		Metadata struct {
			Main json.RawMessage `json:"main_chat"`
		} `json:"chat_metadata"`
	}
	_ = json.Unmarshal(bytes.TrimPrefix(line, []byte("\ufeff")), &h) // the import says what is wrong with it
	return Head{text(h.Metadata.Main)}
}

// Family are files that make one conversation: a chat and its branches.
type Family struct{ Files []string } // paths, the chat first

// Families groups the chats of one folder by the chat that their branches name. A branch of a chat
// that is not there begins a family of its own. The order is that of names.
func Families(files []string, heads map[string]Head) []Family {
	byName := map[string]string{}
	for _, f := range files {
		byName[strings.ToLower(Base(f))] = f
	}
	// root is the chat that a branch comes from in the end; of chats that name each other in a ring
	// the first by name.
	root := func(f string) string {
		seen := []string{f}
		for {
			up := byName[strings.ToLower(heads[f].Main)]
			if up == "" {
				return f
			}
			if i := slices.Index(seen, up); i >= 0 {
				return slices.Min(seen[i:])
			}
			f, seen = up, append(seen, up)
		}
	}
	at := map[string]int{}
	var families []Family
	sorted := slices.Sorted(slices.Values(files))
	for _, f := range sorted {
		if root(f) == f {
			at[f] = len(families)
			families = append(families, Family{[]string{f}})
		}
	}
	for _, f := range sorted {
		if r := root(f); r != f {
			families[at[r]].Files = append(families[at[r]].Files, f)
		}
	}
	return families
}
