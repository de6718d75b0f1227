package cli

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/width"
)

// Rows are items (one at least) as a table shows them, with a heading.
func (c *Client) Rows(ctx context.Context, items []Item) ([][]string, error) {
	var names map[string]string
	if slices.ContainsFunc(items, func(i Item) bool { return i.Kind.belongs() }) {
		var err error
		if names, err = c.CharacterNames(ctx); err != nil {
			return nil, err
		}
	}
	mixed := slices.ContainsFunc(items, func(i Item) bool { return i.Kind != items[0].Kind })
	rows := [][]string{append([]string{"ID", "CHANGED", "NAME"}, items[0].Kind.columns...)}
	if items[0].UpdatedAt.IsZero() {
		rows[0][1] = "CREATED"
	}
	if mixed {
		rows[0] = slices.Insert(rows[0], 3, "KIND")
	}
	for _, i := range items {
		row := []string{i.ID, ShortTime(cmp.Or(i.UpdatedAt, i.CreatedAt)), Brief(i.called(), 40)}
		if mixed {
			row = append(row, i.Kind.Noun)
		}
		rows = append(rows, append(row, i.Kind.cells(i, names)...))
	}
	return rows, nil
}

// ShortTime is a time in the zone of this machine.
func ShortTime(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// CharacterNames are the names of the characters by id.
func (c *Client) CharacterNames(ctx context.Context) (map[string]string, error) {
	list, err := c.Items(ctx, Characters)
	names := make(map[string]string, len(list))
	for _, ch := range list {
		names[ch.ID] = ch.Name
	}
	return names, err
}

// BoundTo names the characters that a resource works for.
func (i Item) BoundTo(names map[string]string) string {
	if i.BindAll {
		return "all characters"
	}
	var bound []string
	for _, id := range i.CharacterIDs {
		bound = append(bound, names[id])
	}
	return Brief(strings.Join(bound, ", "), 60)
}

// Brief is the beginning of a text on one line.
func Brief(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if long := []rune(s); len(long) > n {
		return string(long[:n-1]) + "…"
	}
	return s
}

// Table prints rows in columns. A wide character, as of Chinese, takes two places.
func Table(out io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			cell = oneRow.Replace(Visible(cell))
			row[i] = cell
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], places(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-places(cell)+2)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// oneRow keeps a name with line breaks from looking like further rows.
var oneRow = strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`)

// places counts the columns that a text takes in a terminal.
func places(s string) int {
	n := 0
	for _, r := range s {
		n++
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}
