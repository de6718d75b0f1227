// Package folder knows what the folder of a SillyTavern user holds: which file is of which kind,
// how its names are made, and what settings, groups and chats say about each other. It reads and
// writes no files: texts go in, and values come out.
package folder

import (
	"path"
	"slices"
	"strings"
)

// Kind says what a file of the folder is.
type Kind string

// The kinds. The first ones become objects, the next are kept as files, the last are never taken.
const (
	Character Kind = "character" // a card
	Chat      Kind = "chat"      // a chat with a character, or a branch of one
	GroupChat Kind = "groupChat"
	Group     Kind = "group"
	World     Kind = "world"
	Preset    Kind = "preset" // for chat completion
	Settings  Kind = "settings"
	Persona   Kind = "persona" // the picture of a persona; the rest is in the settings

	TextPreset   Kind = "textPreset" // samplers of text completion
	KoboldPreset Kind = "koboldPreset"
	NovelPreset  Kind = "novelPreset"
	Context      Kind = "context"
	Instruct     Kind = "instruct"
	SysPrompt    Kind = "sysprompt"
	Reasoning    Kind = "reasoning"

	Sprite     Kind = "sprite" // a picture of a character for a mood
	Background Kind = "background"
	Image      Kind = "image" // a picture of a chat
	File       Kind = "file"  // a file attached to a chat

	QuickReply Kind = "quickReply"
	Theme      Kind = "theme"
	Thumbnail  Kind = "thumbnail"
	Backup     Kind = "backup"
	Vectors    Kind = "vectors"
	Asset      Kind = "asset" // belongs to extensions
	Extension  Kind = "extension"
	Secrets    Kind = "secrets"
	Log        Kind = "log"     // statistics, and lists of what SillyTavern itself has put there
	Other      Kind = "other"   // in no place that SillyTavern has
	Outside    Kind = "outside" // not in the folder of the user
	Unsafe     Kind = "unsafe"  // a name that leads out of the folder, or is no name
)

// Rule is what holds for the files of a kind.
type Rule struct {
	Kind Kind
	Dirs []string // where its files are
	Exts []string // extensions of its files; nil = any
	Max  int64    // bytes that a file may have
	// Reason says why a file of the kind is never taken; "" = it is.
	Reason string
	// Closed is set where nobody may read the content, or has to: a packer leaves it empty.
	Closed bool
	Owned  bool // its files are in a folder that is named as a character or chat
}

var (
	documents = []string{".json"}
	presets   = []string{".json", ".settings"}
	pictures  = []string{".png", ".jpg", ".jpeg", ".webp", ".gif", ".apng", ".avif", ".bmp"}
	films     = append([]string{".mp4", ".webm", ".mov", ".mkv", ".avi", ".ogv"}, pictures...)
)

const mib = 1 << 20

const ofPage = "it is about SillyTavern's own page, and nothing here uses it"

// Rules are the rules of all kinds, in the order in which they are looked at.
var Rules = []Rule{
	{Kind: Sprite, Dirs: []string{"characters"}, Exts: films, Max: 32 * mib, Owned: true},
	{Kind: Character, Dirs: []string{"characters"}, Exts: []string{".png", ".json", ".charx", ".webp", ".apng", ".yaml", ".yml"}, Max: 32 * mib},
	{Kind: Chat, Dirs: []string{"chats"}, Exts: []string{".jsonl", ".json"}, Max: 64 * mib, Owned: true},
	{Kind: Chat, Dirs: []string{"chats"}, Exts: []string{".jsonl"}, Max: 64 * mib},
	{Kind: GroupChat, Dirs: []string{"group chats"}, Exts: []string{".jsonl"}, Max: 64 * mib},
	{Kind: Group, Dirs: []string{"groups"}, Exts: documents, Max: mib},
	{Kind: World, Dirs: []string{"worlds"}, Exts: documents, Max: 16 * mib},
	{Kind: Preset, Dirs: []string{"OpenAI Settings"}, Exts: presets, Max: 16 * mib},
	{Kind: TextPreset, Dirs: []string{"TextGen Settings"}, Exts: presets, Max: mib},
	{Kind: KoboldPreset, Dirs: []string{"KoboldAI Settings"}, Exts: presets, Max: mib},
	{Kind: NovelPreset, Dirs: []string{"NovelAI Settings"}, Exts: presets, Max: mib},
	{Kind: Context, Dirs: []string{"context"}, Exts: documents, Max: mib},
	{Kind: Instruct, Dirs: []string{"instruct"}, Exts: documents, Max: mib},
	{Kind: SysPrompt, Dirs: []string{"sysprompt"}, Exts: documents, Max: mib},
	{Kind: Reasoning, Dirs: []string{"reasoning"}, Exts: documents, Max: mib},
	{Kind: Persona, Dirs: []string{"User Avatars"}, Exts: pictures, Max: 32 * mib},
	{Kind: Background, Dirs: []string{"backgrounds"}, Exts: films, Max: 32 * mib},
	{Kind: Image, Dirs: []string{"user/images"}, Max: 32 * mib},
	{Kind: File, Dirs: []string{"user/files"}, Max: 32 * mib},
	{Kind: Settings, Exts: []string{"settings.json"}, Max: 32 * mib},

	{Kind: QuickReply, Dirs: []string{"QuickReplies"}, Reason: "quick replies are commands for SillyTavern's page, and nothing here runs them"},
	{Kind: Theme, Dirs: []string{"themes", "movingUI"}, Reason: ofPage},
	{Kind: Asset, Dirs: []string{"assets"}, Reason: "it is of an extension of SillyTavern, and nothing here uses it"},
	{Kind: Extension, Dirs: []string{"extensions", "scripts", "user/workflows"}, Closed: true, Reason: "it is an extension of SillyTavern, which cannot run here"},
	{Kind: Thumbnail, Dirs: []string{"thumbnails"}, Closed: true, Reason: "thumbnails are made anew from their pictures"},
	{Kind: Backup, Dirs: []string{"backups"}, Closed: true, Reason: "it is a backup of what is elsewhere in the folder"},
	{Kind: Vectors, Dirs: []string{"vectors"}, Closed: true, Reason: "vectors are made anew from the texts"},
	{Kind: Secrets, Exts: []string{"secrets.json", "cookie-secret.txt"}, Closed: true, Reason: "it has keys and passwords, which are never taken: enter the keys of your providers here"},
	{Kind: Log, Exts: []string{"stats.json", "content.log", "image-metadata.json"}, Closed: true, Reason: "it has statistics and lists of SillyTavern's own"},

	{Kind: Other, Reason: "it is in no place where SillyTavern keeps what is known here"},
	{Kind: Outside, Reason: "it is not in the folder of the user"},
	{Kind: Unsafe, Reason: "its name leads out of the folder, is too long, or has characters that no name may have"},
}

// RuleOf is the rule of a kind: its first one.
func RuleOf(k Kind) *Rule {
	i := slices.IndexFunc(Rules, func(r Rule) bool { return r.Kind == k })
	if i < 0 {
		return RuleOf(Other)
	}
	return &Rules[i]
}

// Kinds are all kinds, in the order of Rules.
func Kinds() []Kind {
	var kinds []Kind
	for _, r := range Rules {
		if !slices.Contains(kinds, r.Kind) {
			kinds = append(kinds, r.Kind)
		}
	}
	return kinds
}

// Bounds of names.
const (
	maxName  = 1000 // bytes of a path
	maxDepth = 16   // folders
)

// Classify says of what kind the file at a path is, from the folder of the user on, with
// slashes.
func Classify(name string) Kind {
	if !Safe(name) {
		return Unsafe
	}
	dir, base := path.Split(name)
	ext := strings.ToLower(path.Ext(base))
	for i := range Rules {
		r := &Rules[i]
		if len(r.Dirs) == 0 {
			if dir == "" && slices.Contains(r.Exts, strings.ToLower(base)) {
				return r.Kind
			}
			continue
		}
		if r.holds(dir) && (r.Exts == nil || slices.Contains(r.Exts, ext)) {
			return r.Kind
		}
	}
	return Other
}

// holds says that a folder is one of the kind. Where it makes no difference, subfolders are.
func (r *Rule) holds(dir string) bool {
	for _, d := range r.Dirs {
		rest, under := cutFolder(dir, d)
		switch {
		case !under:
		case r.Owned:
			if rest != "" {
				return true
			}
		case rest == "", r.Reason != "", r.Exts == nil, r.Kind == Background:
			return true
		}
	}
	return false
}

// cutFolder returns the part of a folder behind another one, in any case of letters.
func cutFolder(dir, parent string) (rest string, under bool) {
	n := len(parent) + 1
	if len(dir) < n || dir[n-1] != '/' || !strings.EqualFold(dir[:n-1], parent) {
		return "", false
	}
	return dir[n:], true
}

// Owner is the name of the character or chat in whose folder a file is; "" = none.
func Owner(name string) string {
	parts := strings.Split(name, "/")
	switch k := Classify(name); {
	case (k == Sprite || k == Chat) && len(parts) > 2:
		return parts[1]
	case k == Image && len(parts) > 3:
		return parts[2]
	}
	return ""
}

// Base is the name of a file without its folders and its extension.
func Base(name string) string {
	base := path.Base(name)
	return strings.TrimSuffix(base, path.Ext(base))
}

// Safe says that a path, with slashes, can be one in a folder.
func Safe(name string) bool {
	if name == "" || len(name) > maxName || strings.Count(name, "/") > maxDepth || strings.HasPrefix(name, "/") {
		return false
	}
	if len(name) > 1 && name[1] == ':' { // a drive
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > 255 {
			return false
		}
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}
