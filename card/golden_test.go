package card_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodest/card"
	"nodest/internal/fault"
	"nodest/internal/sharedtest"
)

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type vectorInput struct {
	File          string
	UserName      string `json:"user_name"`
	CharacterName string `json:"character_name"`
}

// replay runs every vector of a file whose input is there.
func replay[Out any](t *testing.T, file string, run func(t *testing.T, in vectorInput, want Out, data []byte)) {
	sharedtest.Replay(t, "sillytavern/"+file, func(t *testing.T, v sharedtest.Vector[vectorInput, Out]) {
		run(t, v.Input, v.Output, sharedtest.Read(t, "data/"+v.Input.File))
	})
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
	type output struct {
		Character json.RawMessage
		Export    json.RawMessage `json:"export_json"`
		Error     bool
	}
	replay(t, "card_import.json", func(t *testing.T, in vectorInput, want output, data []byte) {
		ch, err := card.Import(data, in.File, card.Limits{})
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
	type output struct{ Lines []map[string]any }
	replay(t, "chat_import.json", func(t *testing.T, in vectorInput, want output, data []byte) {
		chat, err := card.ImportChat(data, card.ChatNames{User: in.UserName, Character: in.CharacterName}, card.Limits{})
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
