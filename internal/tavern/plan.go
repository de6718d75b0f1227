package tavern

import (
	"cmp"
	"slices"
	"strings"

	"nodest/character"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
	"nodest/knowledge/unzip"
)

// entry is a file of an archive with its place in the folder.
type entry struct {
	*unzip.Entry
	path   string // from the folder of the user on; of one that is not in it, or unsafe, as the archive has it
	kind   folder.Kind
	reason string // why it is not taken, known from its name alone; "" = nothing speaks against it
}

// segment are files that are read one after the other.
type segment struct {
	kind  folder.Kind
	owner string // folder of chats; they are grouped into families
	files []*entry
}

// phases are the kinds in the order in which they are read: each kind behind those that it refers
// to. Kinds that are never taken come last.
var phases = []folder.Kind{
	folder.World, folder.Preset, folder.TextPreset, folder.KoboldPreset, folder.NovelPreset, folder.Context, folder.Instruct, folder.SysPrompt,
	folder.Reasoning, folder.Settings, folder.Persona, folder.Character, folder.Group, folder.Chat, folder.GroupChat, folder.Sprite, folder.Background,
	folder.Image, folder.File,
}

// plan puts the files of an archive in order. The same archive has the same plan.
func plan(entries []*unzip.Entry) []segment {
	all := classify(entries)
	phase := func(e *entry) int {
		if i := slices.Index(phases, e.kind); i >= 0 {
			return i
		}
		return len(phases)
	}
	slices.SortStableFunc(all, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(phase(a), phase(b)), strings.Compare(ownerOf(a), ownerOf(b)), strings.Compare(a.path, b.path))
	})
	var segments []segment
	for _, e := range all {
		last := len(segments) - 1
		if last < 0 || segments[last].kind != e.kind || segments[last].owner != ownerOf(e) {
			segments = append(segments, segment{kind: e.kind, owner: ownerOf(e)})
			last++
		}
		segments[last].files = append(segments[last].files, e)
	}
	return segments
}

// ownerOf is the folder of a chat.
func ownerOf(e *entry) string {
	if e.kind == folder.Chat {
		return folder.Owner(e.path)
	}
	return ""
}

// classify says what the entries of an archive are.
func classify(entries []*unzip.Entry) []*entry {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = folder.Slashes(e.Name)
	}
	root, _ := folder.Root(names)
	there := make(map[string]bool, len(entries))
	all := make([]*entry, len(entries))
	for i, e := range entries {
		all[i] = classifyOne(e, root, names[i], there)
	}
	return all
}

func classifyOne(e *unzip.Entry, root, name string, there map[string]bool) *entry {
	inside, ok := folder.Inside(root, name)
	found := &entry{Entry: e, path: inside}
	switch {
	case !folder.Safe(name):
		found.kind = folder.Unsafe
	case !ok:
		found.kind = folder.Outside
	default:
		found.kind = folder.Classify(inside)
	}
	found.reason = folder.RuleOf(found.kind).Reason
	switch {
	case found.kind == folder.Unsafe || found.kind == folder.Outside:
		found.path = op.Truncate(character.OneLine(name), 300)
	case !e.Regular():
		found.reason = "it is a link or a device, and no file"
	case there[inside]:
		found.reason = "another file of the archive has the same name"
	}
	there[inside] = true
	return found
}

// limit is how many bytes a file of a kind may have.
func (e *entry) limit() int64 { return folder.RuleOf(e.kind).Max }
