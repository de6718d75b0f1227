package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"nodest/internal/account"
	"nodest/internal/cli"
	"nodest/store/storetest"
)

// eachDatabasePair runs f for every pair of a database that is backed up and one that
// the backup is restored into.
func eachDatabasePair(t *testing.T, f func(t *testing.T, from, to string)) {
	for _, move := range [][2]string{{"sqlite", "sqlite"}, {"sqlite", "postgres"}, {"postgres", "sqlite"}, {"postgres", "postgres"}} {
		t.Run(move[0]+" to "+move[1], func(t *testing.T) {
			t.Parallel()
			var urls [2]string
			for i, kind := range move {
				if kind == "postgres" {
					urls[i] = storetest.PostgresURL(t)
				}
			}
			f(t, urls[0], urls[1])
		})
	}
}

// getBody returns the body of a response.
func getBody(t *testing.T, c *cli.Client, path string) string {
	t.Helper()
	res, err := c.Send(t.Context(), http.MethodGet, path, nil, "application/json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var exported = regexp.MustCompile(`"exportedAt":"[^"]*"`)

// userState returns all of a user's data that a restore must bring back.
func userState(t *testing.T, c *cli.Client, conversations []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range []string{"/me", "/characters", "/conversations", "/settings", "/personas"} {
		all[path] = getBody(t, c, "/api/v1"+path)
	}
	for _, id := range conversations {
		for _, path := range []string{"/messages?limit=200", "/saves", "/export?format=json"} {
			all[id+path] = exported.ReplaceAllString(getBody(t, c, "/api/v1/conversations/"+id+path), "")
		}
	}
	return all
}

func TestBackupAndRestoreKeepEverything(t *testing.T) {
	t.Parallel()
	eachDatabasePair(t, func(t *testing.T, from, to string) {
		source := newInstallation(t, from)
		p := source.start(t)
		here := source.withAddrOf(p)
		character := sampleCharacter(t, p.client)
		conversation := newConversation(t, p.client, character)
		for _, text := range []string{"Hello", "日本語 \u0001 \u2028 \"quoted\" \\", "My name is Ada and I live in Paris."} {
			if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": text}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/saves", map[string]any{"description": "here"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.client.Call(t.Context(), http.MethodPut, "/api/v1/providers/gemini/key", map[string]any{"key": "key-of-the-owner"}, nil); err != nil {
			t.Fatal(err)
		}
		_, _, err := here.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
		if err != nil {
			t.Fatal(err)
		}
		before := userState(t, p.client, []string{conversation})
		var epoch, later struct{ Epoch string }
		if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &epoch); err != nil {
			t.Fatal(err)
		}

		file := filepath.Join(t.TempDir(), "moved.zip")
		out := here.mustRun(t, "backup", file)
		if !strings.Contains(out, "written and verified") {
			t.Fatalf("out is %q, want it with %q", out, "written and verified")
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != os.FileMode(0o600) {
			t.Fatalf("info.Mode().Perm() is %d, want %d", got, os.FileMode(0o600))
		}
		if got := here.mustRun(t, "restore", "--check", file); !strings.Contains(got, "is complete") {
			t.Fatalf("got %q, want it with %q", got, "is complete")
		}
		p.stop(t)

		target := newInstallation(t, to)
		if got := target.mustRun(t, "restore", file); !strings.Contains(got, "restored into") {
			t.Fatalf("got %q, want it with %q", got, "restored into")
		}
		wantHealthy(t, target)
		if from == "" && to == "" {
			const page = 4096 // more at most: VACUUM packs the texts of the schema in another order than migrations wrote them
			if got := databaseSize(t, target); got > databaseSize(t, source)+page {
				t.Fatalf("databaseSize(t, target) is %d, want at most %d", got, databaseSize(t, source)+page)
			}
		}
		q := target.start(t)
		old := newTestClient(q.client.Base, p.client.Token)
		for path, now := range userState(t, old, []string{conversation}) {
			if now != before[path] {
				t.Fatalf("an old token signs in and finds everything: %s: now is %q, want %q", path, now, before[path])
			}
		}
		if err := newTestClient(q.client.Base, "").Call(t.Context(), http.MethodPost, "/api/v1/auth/login", map[string]any{"username": "alice", "password": "correct horse battery"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := old.Call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &later); err != nil {
			t.Fatal(err)
		}
		if later.Epoch == epoch.Epoch {
			t.Fatalf("devices must load everything again: got %q, want another", later.Epoch)
		}
		if err := old.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": "And on we go."}, nil); err != nil {
			t.Fatal(err)
		}
		q.stop(t)
		requireKey(t, target, "key-of-the-owner")
	})
}

// databaseSize is the size of the file of a stopped installation, in bytes.
func databaseSize(t *testing.T, inst *installation) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(inst.options().Dir, "nodest.db"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A backup that an owner downloads is the one that the command writes. A download that
// broke off is refused.
func TestADownloadedBackupIsRestored(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		source := newInstallation(t, url)
		p := source.start(t)
		conversation := newConversation(t, p.client, sampleCharacter(t, p.client))
		if err := p.client.Call(t.Context(), http.MethodPut, "/api/v1/providers/gemini/key", map[string]any{"key": "key-of-the-owner"}, nil); err != nil {
			t.Fatal(err)
		}
		before := userState(t, p.client, []string{conversation})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.client.Base+"/api/v1/backup", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+p.client.Token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusOK {
			t.Fatalf("res.StatusCode is %d, want %d", res.StatusCode, http.StatusOK)
		}
		p.stop(t)

		file := filepath.Join(t.TempDir(), "download.zip")
		target := newInstallation(t, "")
		if err := os.WriteFile(file, data[:len(data)-100], 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err = target.command(t, nil, "restore", file)
		if err == nil {
			t.Fatal("got no error, want one")
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := target.mustRun(t, "restore", "--check", file); !strings.Contains(got, "is complete") {
			t.Fatalf("got %q, want it with %q", got, "is complete")
		}
		target.mustRun(t, "restore", file)
		q := target.start(t)
		if got := userState(t, newTestClient(q.client.Base, p.client.Token), []string{conversation}); !reflect.DeepEqual(got, before) {
			t.Fatalf("got %+v, want %+v", got, before)
		}
		q.stop(t)
		requireKey(t, target, "key-of-the-owner")
	})
}

// An owner sees how the server is doing.
func TestHealthOfARunningServer(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		p := newInstallation(t, url).start(t)
		newConversation(t, p.client, sampleCharacter(t, p.client))
		var health struct {
			Database string
			Provider struct{ Name, Model string }
			Server   map[string]int64
		}
		if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/health", nil, &health); err != nil {
			t.Fatal(err)
		}
		if health.Provider.Name != "offline" {
			t.Fatalf("health.Provider.Name is %q, want %q", health.Provider.Name, "offline")
		}
		if got, want := health.Database == "postgres", url != ""; got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
		if health.Server["users"] != int64(1) {
			t.Fatalf("got %d, want %d", health.Server["users"], int64(1))
		}
		for _, figure := range []string{"databaseBytes", "dataBytes", "diskFreeBytes"} {
			if health.Server[figure] <= 0 {
				t.Fatalf("%s: health.Server[figure] is %d, want more than 0", figure, health.Server[figure])
			}
		}
		p.stop(t)
	})
}

// requireKey checks that the owner's API key for Gemini can still be decrypted.
func requireKey(t *testing.T, i *installation, want string) {
	t.Helper()
	db := storetest.OpenWith(t, i.options())
	secret, err := account.Secret(filepath.Join(i.dir, "data"), "")
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := account.New(db, secret, account.Options{})
	if err != nil {
		t.Fatal(err)
	}
	owner, err := accounts.Owner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := accounts.ProviderKeys(t.Context(), owner.ID)
	if err != nil {
		t.Fatal(err)
	}
	if expected := (map[string]string{"gemini": want}); !reflect.DeepEqual(keys, expected) {
		t.Fatalf("keys is %+v, want %+v", keys, expected)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestABackupOfABusyServer: a backup of a busy server contains every message that
// was acknowledged before it started, and of later ones those up to some point,
// without a gap.
func TestABackupOfABusyServer(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		source := newInstallation(t, url, "NODEST_GENERATIONS=8")
		p := source.start(t)
		here := source.withAddrOf(p)
		character := sampleCharacter(t, p.client)
		writers := make([]*writer, 4)
		for i := range writers {
			writers[i] = &writer{conversation: newConversation(t, p.client, character), acked: map[string]string{}, reply: i == 0}
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex
		acked := map[string][]string{} // conversation -> ids in order
		count := 0
		var wg sync.WaitGroup
		for i, w := range writers {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					id, err := w.post(ctx, p.client, fmt.Sprintf("%d/%d", i, n))
					if err != nil {
						return
					}
					mu.Lock()
					acked[w.conversation] = append(acked[w.conversation], id)
					count++
					mu.Unlock()
				}
			})
		}
		waitFor := func(n int) (now map[string][]string) {
			eventually(t, "messages", func() error {
				mu.Lock()
				defer mu.Unlock()
				if count < n {
					return errNotYet
				}
				now = map[string][]string{}
				for id, list := range acked {
					now[id] = append([]string(nil), list...)
				}
				return nil
			})
			return now
		}
		before := waitFor(100)
		file := filepath.Join(t.TempDir(), "busy.zip")
		here.mustRun(t, "backup", file)
		mu.Lock()
		after := count
		mu.Unlock()
		waitFor(after + 20) // the server goes on writing
		stop()
		wg.Wait()
		p.stop(t)

		target := newInstallation(t, emptyDatabaseLike(t, url))
		target.mustRun(t, "restore", file)
		q := target.start(t)
		old := newTestClient(q.client.Base, p.client.Token)
		for conversation, list := range acked {
			there := map[string]bool{}
			for _, m := range history(t, old, conversation) {
				there[m.ID] = true
			}
			for i, id := range list {
				if i < len(before[conversation]) {
					if !there[id] {
						t.Fatalf("message %d was acknowledged before the backup", i)
					}
				} else if i > 0 && there[id] {
					if !there[list[i-1]] {
						t.Fatalf("message %d is there and the one before is not", i)
					}
				}
			}
		}
		verifyLog(t, old)
		q.stop(t)
	})
}

// emptyDatabaseLike returns an empty database of the same kind.
func emptyDatabaseLike(t *testing.T, url string) string {
	if url == "" {
		return ""
	}
	return storetest.PostgresURL(t)
}

func TestARestoreRefusesToOverwrite(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		inst := newInstallation(t, url)
		p := inst.start(t)
		here := inst.withAddrOf(p)
		mira := importedID(t, here.mustRun(t, "import", tempFile(t, "mira.json", miraCard)))
		file := filepath.Join(t.TempDir(), "mira.zip")
		here.mustRun(t, "backup", file)
		late := importedID(t, here.mustRun(t, "import", "--sample"))

		for _, args := range [][]string{{"restore", file}, {"restore", "--force", file}} {
			_, _, err := here.command(t, nil, args...)
			if err == nil || !strings.Contains(err.Error(), "Stop it, then restore") {
				t.Fatalf("a server runs: got error %v, want one with %q", err, "Stop it, then restore")
			}
		}
		_, _, err := here.command(t, nil, "backup", file)
		if err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Fatalf("got error %v, want one with %q", err, "already exists")
		}
		folder := filepath.Join(t.TempDir(), "nightly") + "/"
		_, _, err = here.command(t, nil, "backup", folder)
		if err == nil || !strings.Contains(err.Error(), "there is no folder "+folder) {
			t.Fatalf("got error %v, want one with %q", err, "there is no folder "+folder)
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		here.mustRun(t, "backup", folder)
		_, _, err = here.command(t, nil, "backup", filepath.Join(file, "below.zip"))
		if err == nil || !strings.Contains(err.Error(), "not a directory") {
			t.Fatalf("got error %v, want one with %q", err, "not a directory")
		}
		if got := err.Error(); strings.Contains(got, "exists") {
			t.Fatalf("err.Error() is %q, want it without %q", got, "exists")
		}
		p.stop(t)
		_, _, err = inst.command(t, nil, "restore", file)
		if err == nil || !strings.Contains(err.Error(), "already contains data") {
			t.Fatalf("got error %v, want one with %q", err, "already contains data")
		}
		out := inst.mustRun(t, "restore", "--force", file)
		if !strings.Contains(out, "The previous data is in ") {
			t.Fatalf("out is %q, want it with %q", out, "The previous data is in ")
		}

		q := inst.start(t)
		list := getBody(t, q.client, "/api/v1/characters")
		if !strings.Contains(list, mira) {
			t.Fatalf("list is %q, want it with %q", list, mira)
		}
		if strings.Contains(list, late) {
			t.Fatalf("list is %q, want it without %q", list, late)
		}
		q.stop(t)
		if url != "" {
			return
		}
		// The replaced data folder can be put back by hand.
		aside, err := filepath.Glob(filepath.Join(inst.dir, "data", "replaced-*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(aside) != 1 {
			t.Fatalf("aside has %d, want %d: %q", len(aside), 1, aside)
		}
		again := newInstallation(t, "")
		if err := os.Rename(aside[0], filepath.Join(again.dir, "data")); err != nil {
			t.Fatal(err)
		}
		r := again.start(t)
		if got := getBody(t, r.client, "/api/v1/characters"); !strings.Contains(got, late) {
			t.Fatalf("got %q, want it with %q", got, late)
		}
		r.stop(t)
	})
}

func importedID(t *testing.T, printed string) string {
	t.Helper()
	id, _, ok := strings.Cut(printed, "  ")
	if !ok {
		t.Fatal(printed)
	}
	return id
}

// TestBadBackupsAreRefused: a truncated or corrupted backup is refused, and nothing is
// changed.
func TestBadBackupsAreRefused(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		source := newDatabase(t)
		source.mustRun(t, "import", "--sample")
		file := filepath.Join(t.TempDir(), "good.zip")
		source.mustRun(t, "backup", file)
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rng := newRand(t)
		target := newInstallation(t, url)
		for n := range scaled(t, 40, 2000) {
			bad := bytes.Clone(good)
			if n%2 == 0 {
				bad = bad[:rng.IntN(len(bad))]
			} else {
				at := rng.IntN(len(bad))
				bad[at] ^= byte(1 + rng.IntN(255))
			}
			name := filepath.Join(t.TempDir(), "bad.zip")
			if err := os.WriteFile(name, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := target.command(t, nil, "restore", name)
			if err == nil { // the changed byte has no meaning, such as the time of an entry
				if got := n % 2; got != 1 {
					t.Fatalf("got %d, want %d", got, 1)
				}
				target.mustRun(t, "restore", "--force", name)
				target = newInstallation(t, emptyDatabaseLike(t, url))
				continue
			}
			if got := oneLine(err); strings.Contains(got, "\n") {
				t.Fatalf("oneLine(err) is %q, want it without %q", got, "\n")
			}
			wantNone(t, filepath.Join(target.dir, "data"))
		}
		if got := target.mustRun(t, "restore", file); !strings.Contains(got, "restored into") {
			t.Fatalf("got %q, want it with %q", got, "restored into")
		}
	})
}

// TestAKilledBackupOrRestoreLeavesNoDamage kills both at random times:
// a killed backup leaves no file, a killed restore all of the data or none.
func TestAKilledBackupOrRestoreLeavesNoDamage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		source := newInstallation(t, url).fast(t)
		p := source.start(t)
		character := sampleCharacter(t, p.client)
		conversation := newConversation(t, p.client, character)
		for n := range 50 {
			body := map[string]any{"text": fmt.Sprintf("%d %s", n, strings.Repeat("long text ", 2000)), "reply": false}
			if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", body, nil); err != nil {
				t.Fatal(err)
			}
		}
		whole := getBody(t, p.client, "/api/v1/conversations/"+conversation+"/messages?limit=200")
		here := source.withAddrOf(p)
		file := filepath.Join(t.TempDir(), "good.zip")
		here.mustRun(t, "backup", file)
		rng := newRand(t)
		for range scaled(t, 3, 60) {
			killed := filepath.Join(t.TempDir(), "killed.zip")
			if err := here.runAndKill(t, rng.IntN(100), "backup", killed); err != nil {
				wantNone(t, killed)
			} else {
				here.mustRun(t, "restore", "--check", killed)
			}
		}
		p.stop(t)
		folder := t.TempDir()
		for range scaled(t, 3, 60) { // a server that makes scheduled backups
			_ = here.runAndKill(t, 300+rng.IntN(1200), "serve", "--addr", "127.0.0.1:0", "--backup-folder", folder, "--backup-keep", "99") // it always is killed
		}
		kept, err := filepath.Glob(filepath.Join(folder, "nodest-scheduled-*.zip"))
		if err != nil {
			t.Fatal(err)
		}
		for _, scheduled := range kept {
			here.mustRun(t, "restore", "--check", scheduled)
		}
		for range scaled(t, 3, 60) {
			target := newInstallation(t, emptyDatabaseLike(t, url)).fast(t)
			err := target.runAndKill(t, rng.IntN(100), "restore", file)
			q := target.start(t)
			old := newTestClient(q.client.Base, p.client.Token)
			there := old.Greet(t.Context()) == nil
			if err == nil {
				if !there {
					t.Fatal("there is false, want true")
				}
			}
			if there { // all of it, or nothing
				if got := getBody(t, old, "/api/v1/conversations/"+conversation+"/messages?limit=200"); got != whole {
					t.Fatalf("got %q, want %q", got, whole)
				}
			} else {
				if got := getBody(t, q.client, "/api/v1/characters"); strings.Contains(got, character) {
					t.Fatalf("got %q, want it without %q", got, character)
				}
			}
			q.stop(t)
			target.mustRun(t, "restore", "--force", file)
		}
	})
}

// runAndKill runs a command as a process and kills it after some milliseconds. It
// returns nil if the command ended before.
func (i *installation) runAndKill(t *testing.T, ms int, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), milliseconds(ms))
	defer cancel()
	cmd := exec.CommandContext(ctx, commandLine(t), args...) // it kills
	cmd.Env = i.env
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && ctx.Err() == nil {
		if !errors.As(err, &exit) || exit.ExitCode() >= 0 {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return err
}

func TestBackupErrorMessages(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	file := filepath.Join(t.TempDir(), "b.zip")
	_, _, err := inst.command(t, nil, "backup", file)
	if err == nil || !strings.Contains(err.Error(), "the data folder "+filepath.Join(inst.dir, "data")+" has no secret.key") {
		t.Fatalf("got error %v, want one with %q", err, "the data folder "+filepath.Join(inst.dir, "data")+" has no secret.key")
	}
	wantNone(t, filepath.Join(inst.dir, "data"))
	inst.mustRun(t, "migrate")
	folder := t.TempDir()
	var written struct{ File string }
	if err := json.Unmarshal([]byte(inst.mustRun(t, "backup", "--json", folder)), &written); err != nil {
		t.Fatal(err)
	}
	if got := filepath.Dir(written.File); got != folder {
		t.Fatalf("filepath.Dir(written.File) is %q, want %q", got, folder)
	}
	piped, said, err := inst.command(t, nil, "backup", "-")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "written and verified") {
		t.Fatalf("said is %q, want it with %q", said, "written and verified")
	}
	out, _, err := newInstallation(t, "").command(t, strings.NewReader(piped), "restore", "-")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "restored into") {
		t.Fatalf("out is %q, want it with %q", out, "restored into")
	}
	_, _, err = inst.command(t, nil, "restore", tempFile(t, "x.zip", "no zip"))
	if err == nil || !strings.Contains(err.Error(), "not a complete NodeST backup") {
		t.Fatalf("got error %v, want one with %q", err, "not a complete NodeST backup")
	}
	_, _, err = inst.command(t, nil, "restore", filepath.Join(folder, "none.zip"))
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Fatalf("got error %v, want one with %q", err, "no such file")
	}

	other := newInstallation(t, "", "NODEST_SECRET_KEY=another secret")
	_, _, err = other.command(t, nil, "restore", written.File)
	if err == nil || !strings.Contains(err.Error(), "NODEST_SECRET_KEY differs from the key in the backup") {
		t.Fatalf("got error %v, want one with %q", err, "NODEST_SECRET_KEY differs from the key in the backup")
	}
	wantNone(t, filepath.Join(other.dir, "data"))
}
