package card_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodest/card"
	"nodest/internal/fault"
	"nodest/internal/sharedtest"
)

func splitLines(file []byte) [][]byte { return bytes.Split(bytes.TrimSpace(file), []byte("\n")) }

// eachFile runs a test for every file under a folder of shared/data.
func eachFile(t *testing.T, folder string, run func(t *testing.T, name string, data []byte)) {
	root := sharedtest.Require(t, "data/"+folder)
	count := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		count++
		t.Run(filepath.Base(path), func(t *testing.T) { run(t, path, read(t, path)) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files in %s", count, folder)
}

// refused reports whether an import was refused with a code and a message.
func refused(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return false
	}
	var f *fault.Error
	if !errors.As(err, &f) || f.Code == fault.Internal || len(f.Message) < 10 {
		t.Fatalf("refused without a code and a reason: %v", err)
	}
	t.Logf("refused: %s", f.Message)
	return true
}

// sameCharacter compares everything but the warnings.
func sameCharacter(t *testing.T, way string, want, got *card.Character) {
	t.Helper()
	a, b := *want, *got
	a.Warnings, b.Warnings, a.Original, b.Original = nil, nil, nil, nil
	if diff := cmp.Diff(a, b, rawAsText); diff != "" {
		t.Errorf("%s changed the character (-before +after):\n%s", way, clip(diff))
	}
}

func clip(s string) string { return s[:min(len(s), 4000)] }

// roundTrips exports a character in every form and imports it again.
func roundTrips(t *testing.T, ch *card.Character) {
	t.Helper()
	for _, way := range []struct {
		format card.Format
		spec   card.Spec
	}{
		{card.JSON, card.SpecV2}, {card.JSON, card.SpecV3}, {card.JSON, card.SpecNodeST}, {card.JSON, ""},
		{card.PNG, ""}, {card.CHARX, card.SpecV3}, {card.CHARX, card.SpecV2},
	} {
		name := string(way.format) + " " + string(way.spec)
		ch := *ch
		if way.format == card.CHARX && way.spec == card.SpecV2 {
			ch.Avatar, ch.AvatarType, ch.Assets = nil, "", nil // packed as with V3; compressing them again is slow
		}
		file, err := card.Export(&ch, way.format, way.spec)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := card.Import(file.Data, file.Name, card.Limits{})
		if err != nil {
			t.Fatalf("%s: the export is refused: %v", name, err)
		}
		want := ch
		switch way.format {
		case card.JSON:
			want.Avatar, want.AvatarType, want.Assets = nil, "", nil
		case card.PNG:
			want.Assets = nil
			if ch.AvatarType != "image/png" {
				want.Avatar, want.AvatarType = again.Avatar, again.AvatarType
			}
		}
		sameCharacter(t, name, &want, again)
	}
}

func TestEverySharedCardSurvivesExport(t *testing.T) {
	eachFile(t, "cards", func(t *testing.T, name string, data []byte) {
		ch, err := card.Import(data, name, card.Limits{})
		if invalid := strings.Contains(name, "_invalid_"); refused(t, err) {
			if !invalid {
				t.Errorf("a valid card was refused")
			}
			return
		} else if invalid {
			t.Errorf("an invalid card became a character")
		}
		if ch.Name == "" || len(ch.Greetings) == 0 || ch.RoleCard == nil {
			t.Errorf("character without name, greeting or card: %q, %d", ch.Name, len(ch.Greetings))
		}
		t.Logf("%s, %s, %d greetings, book %d bytes, avatar %d bytes, %d assets, warnings %v",
			ch.Name, ch.Dialect, len(ch.Greetings), len(ch.WorldBook), len(ch.Avatar), len(ch.Assets), ch.Warnings)
		if strings.Contains(name, "nativetavern") && ch.Greetings[0] == "Hello!" {
			t.Error("the greeting of a NativeTavern card was lost")
		}
		roundTrips(t, ch)
	})
}

// resourceRoundTrip imports a document, exports it and imports it again.
func resourceRoundTrip(t *testing.T, name string, data []byte, load func([]byte, string, card.Limits) (*card.Resource, error)) *card.Resource {
	t.Helper()
	first, err := load(data, name, card.Limits{})
	if refused(t, err) {
		return nil
	}
	file, err := card.ExportDocument(first.Doc, first.Name)
	if err != nil {
		t.Fatal(err)
	}
	again, err := load(file.Data, name, card.Limits{})
	if err != nil {
		t.Fatalf("the export is refused: %v", err)
	}
	if diff := cmp.Diff(first.Doc, again.Doc, rawAsText); diff != "" {
		t.Errorf("export changed the document (-before +after):\n%s", clip(diff))
	}
	t.Logf("%s: %s, %s, %d bytes, warnings %v", first.Name, first.Format, first.Dialect, len(first.Doc), first.Warnings)
	return first
}

func TestEverySharedWorldBookSurvivesExport(t *testing.T) {
	eachFile(t, "worldbooks", func(t *testing.T, name string, data []byte) {
		book := resourceRoundTrip(t, name, data, card.ImportWorldBook)
		if book == nil {
			t.Fatal("a valid book was refused")
		}
		view, err := card.ParseWorldBook(book.Doc, book.Dialect)
		if err != nil || len(view.Entries) == 0 || len(view.Entries[0].Key) == 0 || view.Entries[0].Content == "" {
			t.Errorf("entries %d, err %v", len(view.Entries), err)
		}
	})
}

func TestEverySharedPresetSurvivesExportOrIsKept(t *testing.T) {
	eachFile(t, "presets", func(t *testing.T, name string, data []byte) {
		if strings.HasSuffix(name, "regex_scripts.json") {
			if resourceRoundTrip(t, name, data, card.ImportRegexScripts) == nil {
				t.Error("the regex scripts were refused")
			}
			return
		}
		got := resourceRoundTrip(t, name, data, card.ImportPreset)
		folder := filepath.Base(filepath.Dir(name))
		if usable := folder == "presets" || folder == "sysprompt"; usable != (got != nil) {
			t.Errorf("imported = %v, want %v", got != nil, usable)
		} else if usable {
			return
		}
		kept, err := card.ImportTemplate(data, name, card.Limits{})
		if err != nil || !bytes.Equal(kept.Doc, data) || len(kept.Warnings) != 1 || !strings.Contains(kept.Warnings[0].Detail, "without effect") {
			t.Errorf("the template is not kept as it came, with a word about it: %+v, %v", kept, err)
		}
	})
}

func TestEverySharedChatSurvivesExport(t *testing.T) {
	eachFile(t, "chats", func(t *testing.T, name string, data []byte) {
		chat, err := card.ImportChat(data, card.ChatNames{}, card.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		file := exportChat(chat)
		again, err := card.ImportChat(file, card.ChatNames{}, card.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(chat, again, rawAsText); diff != "" {
			t.Errorf("export changed the chat (-before +after):\n%s", clip(diff))
		}
		if strings.HasSuffix(name, ".jsonl") && !bytes.Equal(bytes.TrimSpace(data), bytes.TrimSpace(file)) {
			t.Errorf("an untouched log is not exported byte for byte")
		}
		t.Logf("%s: %d messages", filepath.Base(name), len(chat.Messages))
	})
}

func TestSampleFilesAreDetected(t *testing.T) {
	for folder, want := range map[string][]card.Kind{
		"cards": {card.KindCharacter}, "worldbooks": {card.KindWorldBook}, "presets": {card.KindPreset, card.KindRegex, card.KindTemplate}, "chats": {card.KindChat},
	} {
		eachFile(t, folder, func(t *testing.T, name string, data []byte) {
			if got := card.Detect(data); !slices.Contains(want, got) && !strings.Contains(name, "invalid") {
				t.Errorf("detected as %q", got)
			}
		})
	}
}
