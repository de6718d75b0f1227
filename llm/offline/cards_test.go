package offline_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nodest/internal/sharedtest"
	"nodest/llm"
	"nodest/llm/offline"
)

// TestRealCardsHearThemselves asks for several replies with each real card that
// has example dialogue: one of them at least must quote it.
func TestRealCardsHearThemselves(t *testing.T) {
	files := sharedtest.Files(t, "data/cards/*.json")
	tried := 0
	for _, file := range files {
		name, description, examples := cardFields(t, file)
		if name == "" || examples == "" {
			continue
		}
		tried++
		t.Run(filepath.Base(file), func(t *testing.T) {
			fill := strings.NewReplacer("{{char}}", name, "{{user}}", "Sam")
			quoted := 0
			for variant := range 4 {
				text, _ := ask(t, offline.Options{}, llm.Request{
					CharName: name, UserName: "Sam", Variant: variant,
					Messages: []llm.Message{system(fill.Replace(description)), system(fill.Replace(examples)), user("What now?")},
				})
				if !strings.Contains(text, name) {
					t.Errorf("the name is not in %s", text)
				}
				if longestShared(text, fill.Replace(examples)) >= 12 {
					quoted++
				}
			}
			if quoted == 0 {
				t.Error("no reply quotes the example dialogue")
			}
		})
	}
	t.Logf("%d cards with example dialogue", tried)
}

func cardFields(t *testing.T, file string) (name, description, examples string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type fields struct {
		Name, Description string
		Examples          string `json:"mes_example"`
	}
	var card struct {
		fields
		Data     fields
		RoleCard fields
	}
	_ = json.Unmarshal(raw, &card) // some of the files are broken on purpose
	for _, f := range []fields{card.Data, card.RoleCard, card.fields} {
		if f.Examples != "" {
			return f.Name, f.Description, f.Examples
		}
	}
	return "", "", ""
}

// longestShared returns the length in code points of the longest line or part of
// a line of text that is in source.
func longestShared(text, source string) int {
	longest := 0
	runes := []rune(text)
	for i := range runes {
		for n := longest + 1; i+n <= len(runes) && strings.Contains(source, string(runes[i:i+n])); n++ {
			longest = n
		}
	}
	return longest
}
