package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"nodest/internal/cli"
	"nodest/internal/tavern/taverntest"
)

// folderImport is what the server says of the import of a folder.
type folderImport struct {
	ID, State                          string
	Found, Done, Taken, Kept, NotTaken int
}

// importedChats are the chats of a user with their characters and lengths, sorted.
func importedChats(t *testing.T, c *cli.Client) []string {
	t.Helper()
	var all []string
	for cursor := ""; ; {
		var page struct {
			Items []struct {
				Title        string
				CharacterID  string
				MessageCount int
				LastMessage  json.RawMessage
			}
			NextCursor string
		}
		if err := c.Call(t.Context(), "GET", "/api/v1/conversations?limit=200&cursor="+cursor, nil, &page); err != nil {
			t.Fatal(err)
		}
		for _, chat := range page.Items {
			all = append(all, fmt.Sprint(chat.Title, chat.MessageCount))
		}
		if cursor = page.NextCursor; cursor == "" {
			slices.Sort(all)
			return all
		}
	}
}

// importNow is an import as it is now.
func importNow(t *testing.T, c *cli.Client, id string) (now folderImport) {
	t.Helper()
	if err := c.Call(t.Context(), "GET", "/api/v1/sillytavern/imports/"+id, nil, &now); err != nil {
		t.Fatal(err)
	}
	return now
}

// importDone waits until an import is done.
func importDone(t *testing.T, c *cli.Client, id string) {
	t.Helper()
	eventually(t, "the end of the import", func() error {
		if now := importNow(t, c, id); now.State != "done" {
			return errors.New(now.State)
		}
		return nil
	})
}

// TestAFolderIsImportedOnceWhateverIsKilled kills the server again and again while it imports a folder. The import goes
// on by itself, and in the end each file has become one object; importing the folder again adds nothing.
func TestAFolderIsImportedOnceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		size := taverntest.Size{Cards: 5, Books: 3, Chats: scaled(t, 60, 600), Messages: 60}
		kills, moment := scaled(t, 3, 10), 900
		if url != "" { // another process takes over after the lease
			moment = 4_000
		}
		var archive bytes.Buffer
		if err := taverntest.Write(&archive, size); err != nil {
			t.Fatal(err)
		}
		rng := newRand(t)
		inst := newInstallation(t, url).fast(t)
		p := inst.start(t)
		var imp folderImport
		if err := p.client.Upload(t.Context(), "/api/v1/sillytavern/imports", "folder.zip", archive.Bytes(), nil, &imp); err != nil {
			t.Fatal(err)
		}
		read := func(c *cli.Client) folderImport { return importNow(t, c, imp.ID) }
		open := 0
		for range kills {
			p.killDuring(t, milliseconds(rng.IntN(moment)), func(ctx context.Context, _ *cli.Client) { <-ctx.Done() })
			p = inst.start(t)
			if now := read(p.client); now.State == "queued" || now.State == "running" {
				open++
			}
		}
		importDone(t, p.client, imp.ID)
		want := folderImport{ID: imp.ID, State: "done", Found: imp.Found, Done: imp.Found, Taken: imp.Found}
		if got := read(p.client); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		chats := importedChats(t, p.client)
		if len(chats) != size.Chats || len(slices.Compact(slices.Clone(chats))) != size.Chats {
			t.Errorf("%d chats, want %d different ones", len(chats), size.Chats)
		}
		t.Logf("%d of %d kills met the import", open, kills)
		if err := p.client.Upload(t.Context(), "/api/v1/sillytavern/imports", "folder.zip", archive.Bytes(), nil, &imp); err != nil {
			t.Fatal(err)
		}
		importDone(t, p.client, imp.ID)
		if got := read(p.client); got.Taken != 0 || got.Kept != got.Found {
			t.Errorf("the second import: %+v", got)
		}
		if again := importedChats(t, p.client); !slices.Equal(again, chats) {
			t.Errorf("the second import has changed the chats: %d, before %d", len(again), len(chats))
		}
		verifyLog(t, p.client)
		p.stop(t)
	})
}
