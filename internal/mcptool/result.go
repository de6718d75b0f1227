package mcptool

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/internal/markup"
	"nodest/internal/op"
)

// longestResult bounds a result, in code points.
const longestResult = 20_000

// textOf is the text of a result. What is no text is only named.
func textOf(result *mcp.CallToolResult) string {
	var parts []string
	for _, c := range result.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			parts = append(parts, c.Text)
		case *mcp.ImageContent:
			parts = append(parts, "[image]")
		case *mcp.AudioContent:
			parts = append(parts, "[audio]")
		default:
			parts = append(parts, "[file]")
		}
	}
	if len(parts) == 0 && result.StructuredContent != nil {
		parts = append(parts, string(op.MustJSON(result.StructuredContent)))
	}
	return op.Truncate(markup.Plain(strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD")), longestResult)
}

// write writes a result for the model, in at most room code points. Its text is escaped, so
// that it cannot end its element.
func write(server, tool, text, note string, room int) string {
	begin := `<tool_result server="` + server + `" tool="` + markup.Escape(strings.Join(strings.Fields(tool), " ")) + "\">\n"
	end := "\n</tool_result>\n<note>" + note + "</note>"
	room -= utf8.RuneCountInString(begin) + utf8.RuneCountInString(end)
	if room < 1 {
		return ""
	}
	var b strings.Builder
	for _, r := range text {
		piece := markup.Escape(string(r))
		if room -= utf8.RuneCountInString(piece); room < 1 {
			b.WriteString("…")
			break
		}
		b.WriteString(piece)
	}
	return begin + b.String() + end
}

// textsIn are the texts in a JSON document.
func textsIn(doc []byte) (texts []string) {
	var value any
	if json.Unmarshal(doc, &value) != nil {
		return nil
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(value)
	return texts
}
