package pack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"nodest/internal/cli"
	"nodest/internal/tavern/folder"
)

// Path is that of imports in REST.
const Path = "/api/v1/sillytavern/imports"

// Import is an import as the server tells of it.
type Import struct {
	ID       string                `json:"id"`
	DryRun   bool                  `json:"dryRun"`
	State    string                `json:"state"`
	Error    *Failure              `json:"error"`
	Found    int                   `json:"found"`
	Done     int                   `json:"done"`
	Taken    int                   `json:"taken"`
	Kept     int                   `json:"kept"`
	NotTaken int                   `json:"notTaken"`
	Counts   map[folder.Kind]Count `json:"counts"`
}

// Failure is why an import has failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Count says how many files of a kind have which outcome.
type Count struct {
	Taken    int `json:"taken"`
	Kept     int `json:"kept"`
	NotTaken int `json:"notTaken"`
}

// Ended reports whether nothing more happens.
func (i *Import) Ended() bool { return i.State != "queued" && i.State != "running" }

// File is a file of a report.
type File struct {
	Path    string `json:"path"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
	Notes   []Note `json:"notes"`
}

// Note is something of a file that has no effect.
type Note struct {
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

// words are the kinds of files, one and many.
var words = map[folder.Kind][2]string{
	folder.Character: {"character", "characters"}, folder.Chat: {"chat", "chats"}, folder.GroupChat: {"group chat", "group chats"},
	folder.Group: {"group", "groups"}, folder.World: {"world book", "world books"}, folder.Preset: {"preset", "presets"},
	folder.Settings: {"settings file", "settings files"}, folder.Persona: {"persona picture", "persona pictures"},
	folder.TextPreset: {"text-completion preset", "text-completion presets"}, folder.KoboldPreset: {"Kobold preset", "Kobold presets"},
	folder.NovelPreset: {"NovelAI preset", "NovelAI presets"}, folder.Context: {"context template", "context templates"},
	folder.Instruct: {"instruct template", "instruct templates"}, folder.SysPrompt: {"system prompt", "system prompts"},
	folder.Reasoning: {"reasoning template", "reasoning templates"}, folder.Sprite: {"sprite", "sprites"},
	folder.Background: {"background", "backgrounds"}, folder.Image: {"picture", "pictures"}, folder.File: {"attached file", "attached files"},
	folder.QuickReply: {"set of quick replies", "sets of quick replies"}, folder.Theme: {"theme", "themes"},
	folder.Thumbnail: {"thumbnail", "thumbnails"}, folder.Backup: {"backup", "backups"}, folder.Vectors: {"vector file", "vector files"},
	folder.Asset: {"asset", "assets"}, folder.Extension: {"file of extensions", "files of extensions"},
	folder.Secrets: {"file with secrets", "files with secrets"}, folder.Log: {"log", "logs"}, folder.Other: {"other file", "other files"},
	folder.Outside: {"file outside of the folder", "files outside of the folder"}, folder.Unsafe: {"unsafe name", "unsafe names"},
}

// Report prints what became of the files: counts, each file that was not taken with the reason, and what has no effect.
func Report(ctx context.Context, c *cli.Client, imp *Import, left []Left, out io.Writer) error {
	kinds := slices.Collect(maps.Keys(imp.Counts))
	slices.SortFunc(kinds, func(a, b folder.Kind) int {
		order := folder.Kinds()
		return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
	})
	for _, k := range kinds {
		fmt.Fprintln(out, "  "+line(k, imp.Counts[k], imp.DryRun))
	}
	total := fmt.Sprintf("%d files: %s", imp.Found+len(left), outcomes(Count{imp.Taken, imp.Kept, imp.NotTaken + len(left)}, imp.DryRun))
	if rest := imp.Found - imp.Done; rest > 0 {
		total += fmt.Sprintf(", %d not reached", rest)
	}
	fmt.Fprintln(out, total)
	files, err := cli.All[File](ctx, c, Path+"/"+url.PathEscape(imp.ID)+"/files?outcome=notTaken")
	if err != nil {
		return err
	}
	if len(files)+len(left) > 0 {
		fmt.Fprintln(out, "Not taken:")
	}
	for _, l := range left {
		files = append(files, File{Path: l.Path, Reason: l.Reason})
	}
	for _, f := range files {
		fmt.Fprintf(out, "  %s: %s\n", cli.Visible(f.Path), cli.Visible(f.Reason))
	}
	return notes(ctx, c, imp, out)
}

func line(k folder.Kind, n Count, dry bool) string {
	all := n.Taken + n.Kept + n.NotTaken
	word, ok := words[k]
	if !ok {
		word = [2]string{string(k), string(k)}
	}
	name := word[1]
	if all == 1 {
		name = word[0]
	}
	return fmt.Sprintf("%d %s: %s", all, name, outcomes(n, dry))
}

func outcomes(n Count, dry bool) string {
	taken := "taken"
	if dry {
		taken = "to be taken"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{n.Taken, taken}, {n.Kept, "there already"}, {n.NotTaken, "not taken"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

const maxNotes = 30 // that are printed; --json has all

// notes prints what of the files that were taken has no effect, the most frequent first.
func notes(ctx context.Context, c *cli.Client, imp *Import, out io.Writer) error {
	files, err := cli.All[File](ctx, c, Path+"/"+url.PathEscape(imp.ID)+"/files?outcome=taken")
	if err != nil {
		return err
	}
	times := map[string]int{}
	for _, f := range files {
		said := map[string]bool{}
		for _, n := range f.Notes {
			if !said[n.Detail] {
				said[n.Detail] = true
				times[n.Detail]++
			}
		}
	}
	details := slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), strings.Compare(a, b))
	})
	if len(details) > 0 {
		fmt.Fprintln(out, "To know about what was taken:")
	}
	for i, d := range details {
		if i == maxNotes {
			fmt.Fprintf(out, "  and %d more; --json prints all\n", len(details)-maxNotes)
			break
		}
		fmt.Fprintf(out, "  %s (%d)\n", cli.Visible(d), times[d])
	}
	return nil
}

// JSON prints an import with all its files.
func JSON(ctx context.Context, c *cli.Client, id string, left []Left, out io.Writer) error {
	var imp map[string]json.RawMessage
	if err := c.Call(ctx, "GET", Path+"/"+url.PathEscape(id), nil, &imp); err != nil {
		return err
	}
	files, err := cli.All[json.RawMessage](ctx, c, Path+"/"+url.PathEscape(id)+"/files")
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{"import": imp, "files": files, "left": append([]Left{}, left...)})
}
