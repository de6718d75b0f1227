package card_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodest/card"
	"nodest/fault"
)

// sharedDir returns a folder beside the project; the test is skipped if it is missing.
// NODEST_GOLDEN names another golden folder, with its data beside it.
func sharedDir(t *testing.T, name string) string {
	t.Helper()
	golden := os.Getenv("NODEST_GOLDEN")
	if golden == "" {
		golden = filepath.Join("..", "..", "shared", "golden")
	} else if !filepath.IsAbs(golden) {
		golden = filepath.Join("..", golden)
	}
	dir := filepath.Join(golden, "sillytavern")
	if name != "golden" {
		dir = filepath.Join(golden, "..", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no %s beside the project (%s): skipped", name, dir)
	}
	return dir
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type vector struct {
	Name  string
	Input struct {
		File          string
		UserName      string `json:"user_name"`
		CharacterName string `json:"character_name"`
	}
	Output json.RawMessage
	Spec   json.RawMessage `json:"spec_output"`
}

func (v vector) want() json.RawMessage {
	if v.Spec != nil {
		return v.Spec
	}
	return v.Output
}

// replay runs every vector of a file and logs the counts.
func replay(t *testing.T, file string, run func(t *testing.T, v vector, data []byte)) {
	path := filepath.Join(sharedDir(t, "golden"), file)
	folder := sharedDir(t, "data")
	var vectors []vector
	if err := json.Unmarshal(read(t, path), &vectors); err != nil {
		t.Fatal(err)
	}
	passed, failed, skipped := 0, 0, 0
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Cleanup(func() {
				switch {
				case t.Failed():
					failed++
				case t.Skipped():
					skipped++
				default:
					passed++
				}
			})
			data, err := os.ReadFile(filepath.Join(folder, v.Input.File))
			if err != nil {
				t.Skipf("its file is absent: %v", err)
			}
			run(t, v, data)
		})
	}
	t.Logf("%s: %d passed, %d failed, %d skipped", file, passed, failed, skipped)
}

// volatile are the members that the recording leaves out.
var volatile = []string{"avatar", "chat", "create_date", "fav", "json_data", "chat_size", "data_size", "date_added", "date_last_chat"}

func withoutVolatile(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatal(err)
	}
	for _, key := range volatile {
		delete(m, key)
	}
	return m
}

func TestGoldenCardImport(t *testing.T) {
	replay(t, "card_import.json", func(t *testing.T, v vector, data []byte) {
		var want struct {
			Character, ExportJSON json.RawMessage
			Export                json.RawMessage `json:"export_json"`
			Error                 bool
		}
		if err := json.Unmarshal(v.want(), &want); err != nil {
			t.Fatal(err)
		}
		ch, err := card.Import(data, v.Input.File, card.Limits{})
		if want.Error {
			if !fault.Is(err, fault.UnsupportedCard) {
				t.Fatalf("err = %v, want unsupported_card", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutVolatile(t, want.Character), withoutVolatile(t, ch.RoleCard)); diff != "" {
			t.Errorf("stored card (-want +got):\n%s", diff)
		}
		file, err := card.Export(ch, card.JSON, card.SpecV3)
		if err != nil {
			t.Fatal(err)
		}
		// The file also has the members that the specifications require and SillyTavern leaves
		// out (TestEveryExportIsValid); an import takes them off again.
		again, err := card.Import(file.Data, file.Name, card.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutVolatile(t, want.Export), withoutVolatile(t, again.RoleCard)); diff != "" {
			t.Errorf("exported card (-want +got):\n%s", diff)
		}
	})
}

func TestGoldenChatImport(t *testing.T) {
	replay(t, "chat_import.json", func(t *testing.T, v vector, data []byte) {
		var want struct{ Lines []map[string]any }
		if err := json.Unmarshal(v.want(), &want); err != nil {
			t.Fatal(err)
		}
		chat, err := card.ImportChat(data, card.ChatNames{User: v.Input.UserName, Character: v.Input.CharacterName}, card.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		file := exportChat(chat)
		if diff := cmp.Diff(want.Lines, lines(t, file)); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

// lines decodes JSONL, without the dates of messages.
func lines(t *testing.T, file []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, line := range splitLines(file) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "send_date")
		all = append(all, m)
	}
	return all
}
