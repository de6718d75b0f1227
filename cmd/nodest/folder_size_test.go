package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/internal/tavern/taverntest"
)

// TestAFolderOfAnySize imports a made-up folder with the real program, and prints how long that takes, how much memory the
// program has at most, and how long the writes of another user take meanwhile; then it exports everything, and prints the same. NODEST_FOLDER_CHATS=10000 makes the folder
// of ten thousand chats of 200 messages, 200 cards and 50 books.
func TestAFolderOfAnySize(t *testing.T) {
	chats, err := strconv.Atoi(os.Getenv("NODEST_FOLDER_CHATS"))
	if err != nil {
		chats = 20
	}
	var archive bytes.Buffer
	if err := taverntest.Write(&archive, taverntest.Size{Cards: max(1, chats/50), Books: max(1, chats/200), Chats: chats, Messages: 200}); err != nil {
		t.Fatal(err)
	}
	inst := newInstallation(t, "").fast(t)
	p := inst.start(t)
	other := p.member(t, "other")
	var imp folderImport
	began := time.Now()
	if err := p.client.UploadContent(t.Context(), "/api/v1/sillytavern/imports", "folder.zip", bytes.NewReader(archive.Bytes()), int64(archive.Len()), nil, &imp); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	writes := make(chan []time.Duration)
	go func() { writes <- writeUntil(ctx, other) }()
	for imp.State != "done" {
		if imp.State == "failed" {
			t.Fatalf("%+v", imp)
		}
		<-time.After(100 * time.Millisecond)
		if err := p.client.Call(t.Context(), "GET", "/api/v1/sillytavern/imports/"+imp.ID, nil, &imp); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	stop()
	took95 := <-writes
	slices.Sort(took95)
	if imp.Taken != imp.Found || len(took95) == 0 {
		t.Errorf("%+v, with %d writes of another user", imp, len(took95))
	}
	_, most := p.rss(t)
	t.Logf("%d files in %v (%.1f chats/s), peak RSS %d MiB, %d writes of another user: p50 %v, p95 %v", imp.Found, took.Round(time.Millisecond),
		float64(chats)/took.Seconds(), most, len(took95), took95[len(took95)/2], took95[len(took95)*95/100])
	p.stop(t)
	exportOfAnySize(t, inst, chats)
}

// exportOfAnySize exports what was imported from a process of its own, whose memory is that of the export alone, and prints
// how long that takes and how much memory it has at most.
func exportOfAnySize(t *testing.T, inst *installation, chats int) {
	t.Helper()
	p := inst.start(t)
	began := time.Now()
	res, err := p.client.Send(t.Context(), "GET", "/api/v1/sillytavern/export", nil, "*/*")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "out.zip")
	out, err := os.Create(file) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	size, err := io.Copy(out, res.Body)
	if err := errors.Join(err, res.Body.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	_, most := p.rss(t)
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range z.File {
		if strings.HasPrefix(f.Name, "chats/") {
			found++
		}
	}
	if found != chats || z.Close() != nil {
		t.Errorf("%d chats were exported of %d", found, chats)
	}
	t.Logf("export: %d files, %d MiB in %v (%.1f chats/s), peak RSS %d MiB", len(z.File), size>>20, took.Round(time.Millisecond), float64(chats)/took.Seconds(), most)
	p.stop(t)
}

// mostOfChat is the memory that the program may have while it imports a chat of nearly the size that a chat may have, in MiB.
const mostOfChat = 300

// TestALargeChatTakesLittleMemory imports a folder with one chat with the real program; of 62 MiB in a long run.
func TestALargeChatTakesLittleMemory(t *testing.T) {
	inst := newInstallation(t, "").fast(t)
	megabytes := scaled(t, 6, 62)
	chat := taverntest.Chat(rand.New(rand.NewPCG(3, 4)), "Bo", megabytes*1450, 1) //nolint:gosec // made up
	for len(chat) < megabytes<<20 {
		chat = append(chat, taverntest.Line("Bo", strings.Repeat("The river is high tonight. ", 900))...)
	}
	archive := taverntest.Files{"characters/Bo.png": taverntest.Card("Bo", "Bo sings.", ""), "chats/Bo/large.jsonl": chat}.Zip("default-user/")
	p := inst.start(t)
	var imp folderImport
	began := time.Now()
	if err := p.client.UploadContent(t.Context(), "/api/v1/sillytavern/imports", "folder.zip", bytes.NewReader(archive), int64(len(archive)), nil, &imp); err != nil {
		t.Fatal(err)
	}
	importDone(t, p.client, imp.ID)
	now := importNow(t, p.client, imp.ID)
	if now.Taken != 2 {
		t.Errorf("%+v", now)
	}
	_, most := p.rss(t)
	t.Logf("a chat of %d MiB in %v, peak RSS %d MiB", len(chat)>>20, time.Since(began).Round(time.Millisecond), most)
	if most > mostOfChat {
		t.Errorf("peak RSS %d MiB, want at most %d", most, mostOfChat)
	}
	p.stop(t)
}

// writeUntil stores a tag again and again, and returns how long each time took.
func writeUntil(ctx context.Context, c *cli.Client) (took []time.Duration) {
	var ch cli.Item
	if err := c.Call(ctx, "POST", "/api/v1/characters", map[string]any{"roleCard": map[string]any{"name": "X"}}, &ch); err != nil {
		return nil
	}
	for n := 0; ; n++ {
		began := time.Now()
		if err := c.Call(ctx, "PATCH", "/api/v1/characters/"+ch.ID, map[string]any{"tags": []string{fmt.Sprint("t", n)}}, nil); err != nil {
			return took
		}
		took = append(took, time.Since(began))
		select {
		case <-ctx.Done():
			return took
		case <-time.After(50 * time.Millisecond):
		}
	}
}
