package learning

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"nodest/llm"
)

// ask is a model that works for a while and then does harm, in another way each night.
func (w *dreamWorld) ask(_ context.Context, p llm.Prompt) (string, error) {
	var read dreamPrompt
	for line := range strings.Lines(p.Text) {
		var o struct {
			Seq    int64
			Text   string
			Path   string
			Line   string
			Author string
			Note   int
		}
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &o) != nil {
			continue
		}
		switch {
		case o.Seq > 0:
			read.seqs, read.said = append(read.seqs, o.Seq), append(read.said, o.Text)
		case o.Note > 0:
			read.notes = append(read.notes, o.Text)
		case o.Line != "" && o.Path == "user.md":
			read.ids, read.lines = append(read.ids, o.Line), append(read.lines, o.Text)
		}
	}
	if len(read.seqs) > 0 {
		return read.reflection(w.night), nil
	}
	return read.updates(w.night), nil
}

// dreamPrompt is what the model is shown.
type dreamPrompt struct {
	seqs  []int64
	said  []string
	notes []string
	ids   []string // ids of lines of user.md
	lines []string
}

// reflection has a note for most messages, and two that nobody said.
func (d *dreamPrompt) reflection(night int) string {
	type note struct {
		Text string  `json:"text"`
		Seqs []int64 `json:"seqs"`
	}
	var notes []note
	for i, said := range d.said {
		if rest, ok := strings.CutPrefix(said, "I bought "); ok && i%3 != night%3 {
			notes = append(notes, note{"User bought " + rest, d.seqs[i : i+1]})
		}
	}
	notes = append(notes, note{"User was born on the moon.", d.seqs[:1]}, note{"User married a duke.", nil})
	doc, _ := json.Marshal(map[string]any{"notes": notes})
	return "<think>What did they say?</think>```json\n" + string(doc) + "\n```"
}

// updates adds the notes, and does harm besides.
func (d *dreamPrompt) updates(night int) string {
	var updates []map[string]any
	for i, n := range d.notes {
		updates = append(updates, map[string]any{"path": "user.md", "do": "add", "text": n, "notes": []int{i + 1}})
	}
	switch night % 5 {
	case 1: // it writes the whole document anew, and keeps a third of it
		content := "# User\n" + strings.Join(d.notes, "\n")
		for i, l := range d.lines {
			if i%3 == 0 {
				content += "\n- " + l
			}
		}
		updates = []map[string]any{{"path": "user.md", "new_content": content}}
	case 2: // it removes everything
		for _, id := range d.ids {
			updates = append(updates, map[string]any{"path": "user.md", "do": "remove", "line": id})
		}
	case 3: // it invents
		for i := range 10 {
			updates = append(updates, map[string]any{"path": "self.md", "do": "add", "text": fmt.Sprintf("User owns castle number %d in Spain.", i+1), "notes": []int{1, 99}})
		}
		for i, id := range d.ids {
			updates = append(updates, map[string]any{"path": "user.md", "do": "change", "line": id, "text": fmt.Sprintf("User told secret number %d.", i), "notes": []int{1}})
		}
	case 4: // it says everything twice
		for i, n := range d.notes {
			updates = append(updates, map[string]any{"path": "relationship.md", "do": "add", "text": strings.ToUpper(n), "notes": []int{i + 1}},
				map[string]any{"path": "user.md", "do": "add", "text": "- " + strings.TrimSuffix(n, "."), "notes": []int{i + 1}})
		}
		for _, l := range d.lines {
			updates = append(updates, map[string]any{"path": "user.md", "do": "add", "text": l, "notes": []int{1}})
		}
	}
	doc, _ := json.Marshal(map[string]any{"updates": updates})
	return string(doc)
}
