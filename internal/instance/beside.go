package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"nodest/circle"
	"nodest/internal/tavern"
)

// beside is what the folder of a SillyTavern user has no place for.
func (r *Instance) beside() []tavern.Beside {
	return []tavern.Beside{{Name: "knowledge.json", Write: r.writeBases}, {Name: "circle.md", Write: r.writeCircle}}
}

// writeMemories writes the memories of a character as the export of memories does; nothing where there are none.
func (r *Instance) writeMemories(ctx context.Context, userID, characterID string, out io.Writer) error {
	return r.memory.Export(ctx, userID, characterID, &withoutHead{out: out})
}

// withoutHead writes nothing of a file that has only its first line. Each line is written at once.
type withoutHead struct {
	out  io.Writer
	head []byte
}

// Write implements io.Writer.
func (w *withoutHead) Write(p []byte) (int, error) {
	if w.head == nil {
		w.head = slices.Clone(p)
		return len(p), nil
	}
	if len(w.head) > 0 {
		if _, err := w.out.Write(w.head); err != nil {
			return 0, err
		}
		w.head = w.head[:0]
	}
	return w.out.Write(p)
}

// writeBases writes the names of knowledge bases and of their files; nothing where there are none.
func (r *Instance) writeBases(ctx context.Context, userID string, out io.Writer) error {
	type base struct {
		Name        string   `json:"name"`
		Description string   `json:"description,omitempty"`
		Files       []string `json:"files"`
	}
	var all []base
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := r.knowledge.Bases(ctx, userID, cursor, 0)
		if err != nil {
			return err
		}
		for _, b := range page.Items {
			files, err := r.filesIn(ctx, userID, b.ID)
			if err != nil {
				return err
			}
			all = append(all, base{b.Name, b.Description, files})
		}
		cursor = page.NextCursor
	}
	if len(all) == 0 {
		return nil
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(all)
}

func (r *Instance) filesIn(ctx context.Context, userID, baseID string) ([]string, error) {
	names := []string{}
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := r.knowledge.BaseFiles(ctx, userID, baseID, cursor, 0)
		if err != nil {
			return nil, err
		}
		for _, f := range page.Items {
			names = append(names, f.Name)
		}
		cursor = page.NextCursor
	}
	return names, nil
}

// writeCircle writes the posts of the circle with their comments, the newest post first, as Markdown.
func (r *Instance) writeCircle(ctx context.Context, userID string, out io.Writer) error {
	for cursor, more := "", true; more; more = cursor != "" {
		var text strings.Builder
		err := r.db.Circle().View(ctx, userID, func(tx circle.Tx) error {
			posts, next, err := tx.Posts(circle.PostFilter{}, cursor, 50)
			if err != nil {
				return err
			}
			cursor = next
			for _, p := range posts {
				comments, err := tx.Comments(0, p.ID)
				if err != nil {
					return err
				}
				fmt.Fprintf(&text, "## %s, %s\n\n%s\n\n", p.AuthorName, p.CreatedAt.UTC().Format("2006-01-02 15:04"), p.Text)
				for _, c := range comments {
					if c.DeletedAt == nil {
						fmt.Fprintf(&text, "%s- **%s**: %s\n", strings.Repeat("  ", max(0, c.Depth-1)), c.AuthorName, strings.ReplaceAll(c.Text, "\n", " "))
					}
				}
				text.WriteString("\n")
			}
			return nil
		})
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, text.String()); err != nil {
			return err
		}
	}
	return nil
}
