package worldinfo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework/worldinfo"
	"nodest/internal/sharedtest"
)

// The published books are scanned and examined. The engine and the model agree about a chat that names
// some of their keys.
func TestPublishedBooks(t *testing.T) {
	books, entries, findings := 0, 0, map[string]int{}
	for _, file := range sharedtest.Files(t, "data/worldbooks/*.json") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b, err := card.ParseWorldBook(data, card.SillyTavern)
		if err != nil {
			t.Fatal(file, err)
		}
		books++
		entries += len(b.Entries)
		for _, w := range worldinfo.Lint(b.Entries, worldinfo.DefaultSettings(), 16_000) {
			findings[w.Code]++
		}
		var chat []worldinfo.Message
		for i := range b.Entries {
			if e := &b.Entries[i]; i%7 == 0 && len(e.Key) > 0 {
				chat = append(chat, worldinfo.Message{Name: "Bob", Text: "What of " + strings.Trim(e.Key[0], "/i") + "?", User: true})
			}
		}
		sources := []worldinfo.Source{{Name: filepath.Base(file), Origin: worldinfo.OfCharacter, Entries: b.Entries}}
		in := &worldinfo.Input{Messages: chat, Settings: worldinfo.DefaultSettings(), Context: 16_000}
		in.Settings.Depth = 4
		in.Rand = func() float64 { return 0.5 }
		in.Expand = strings.NewReplacer("{{user}}", "Bob", "{{char}}", "Alice").Replace
		in.Count = func(s string) int { return (len(s)*100 + 334) / 335 }
		got, err := worldinfo.Compile(sources...).Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if diffs := unequal(got, modelScan(in, sources, false)); len(diffs) > 0 {
			t.Errorf("%s:\n%s", file, strings.Join(diffs, "\n"))
		}
	}
	t.Logf("%d books, %d entries, findings %v", books, entries, findings)
}
