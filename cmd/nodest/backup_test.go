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
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
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
			require.NoError(t, p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": text}, nil))
		}
		require.NoError(t, p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/saves", map[string]any{"description": "here"}, nil))
		require.NoError(t, p.client.Call(t.Context(), http.MethodPut, "/api/v1/providers/gemini/key", map[string]any{"key": "key-of-the-owner"}, nil))
		_, _, err := here.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
		require.NoError(t, err)
		before := userState(t, p.client, []string{conversation})
		var epoch, later struct{ Epoch string }
		require.NoError(t, p.client.Call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &epoch))

		file := filepath.Join(t.TempDir(), "moved.zip")
		out := here.mustRun(t, "backup", file)
		require.Contains(t, out, "written and verified")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.Contains(t, here.mustRun(t, "restore", "--check", file), "is complete")
		p.stop(t)

		target := newInstallation(t, to)
		require.Contains(t, target.mustRun(t, "restore", file), "restored into")
		wantHealthy(t, target)
		if from == "" && to == "" {
			require.LessOrEqual(t, databaseSize(t, target), databaseSize(t, source))
		}
		q := target.start(t)
		old := newTestClient(q.client.Base, p.client.Token)
		for path, now := range userState(t, old, []string{conversation}) {
			require.Equal(t, before[path], now, "an old token signs in and finds everything: %s", path)
		}
		require.NoError(t, newTestClient(q.client.Base, "").Call(t.Context(), http.MethodPost, "/api/v1/auth/login", map[string]any{"username": "alice", "password": "correct horse battery"}, nil))
		require.NoError(t, old.Call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &later))
		require.NotEqual(t, epoch.Epoch, later.Epoch, "devices must load everything again")
		require.NoError(t, old.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": "And on we go."}, nil))
		q.stop(t)
		requireKey(t, target, "key-of-the-owner")
	})
}

// databaseSize is the size of the file of a stopped installation, in bytes.
func databaseSize(t *testing.T, inst *installation) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(inst.options().Dir, "nodest.db"))
	require.NoError(t, err)
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
		require.NoError(t, p.client.Call(t.Context(), http.MethodPut, "/api/v1/providers/gemini/key", map[string]any{"key": "key-of-the-owner"}, nil))
		before := userState(t, p.client, []string{conversation})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.client.Base+"/api/v1/backup", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+p.client.Token)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		data, err := io.ReadAll(res.Body)
		require.NoError(t, errors.Join(err, res.Body.Close()))
		require.Equal(t, http.StatusOK, res.StatusCode)
		p.stop(t)

		file := filepath.Join(t.TempDir(), "download.zip")
		target := newInstallation(t, "")
		require.NoError(t, os.WriteFile(file, data[:len(data)-100], 0o600))
		_, _, err = target.command(t, nil, "restore", file)
		require.Error(t, err)
		require.NoError(t, os.WriteFile(file, data, 0o600))
		require.Contains(t, target.mustRun(t, "restore", "--check", file), "is complete")
		target.mustRun(t, "restore", file)
		q := target.start(t)
		require.Equal(t, before, userState(t, newTestClient(q.client.Base, p.client.Token), []string{conversation}))
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
		require.NoError(t, p.client.Call(t.Context(), http.MethodGet, "/api/v1/health", nil, &health))
		require.Equal(t, "offline", health.Provider.Name)
		require.Equal(t, url != "", health.Database == "postgres")
		require.Equal(t, int64(1), health.Server["users"])
		for _, figure := range []string{"databaseBytes", "dataBytes", "diskFreeBytes"} {
			require.Positive(t, health.Server[figure], figure)
		}
		p.stop(t)
	})
}

// requireKey checks that the owner's API key for Gemini can still be decrypted.
func requireKey(t *testing.T, i *installation, want string) {
	t.Helper()
	db := storetest.OpenWith(t, i.options())
	secret, err := account.Secret(filepath.Join(i.dir, "data"), "")
	require.NoError(t, err)
	accounts, err := account.New(db, secret, account.Options{})
	require.NoError(t, err)
	owner, err := accounts.Owner(t.Context())
	require.NoError(t, err)
	keys, err := accounts.ProviderKeys(t.Context(), owner.ID)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"gemini": want}, keys)
	require.NoError(t, db.Close())
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
					require.True(t, there[id], "message %d was acknowledged before the backup", i)
				} else if i > 0 && there[id] {
					require.True(t, there[list[i-1]], "message %d is there and the one before is not", i)
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
			require.ErrorContains(t, err, "in use", "a server runs")
		}
		_, _, err := here.command(t, nil, "backup", file)
		require.ErrorContains(t, err, "already exists")
		folder := filepath.Join(t.TempDir(), "nightly") + "/"
		_, _, err = here.command(t, nil, "backup", folder)
		require.ErrorContains(t, err, "there is no folder "+folder)
		require.NoError(t, os.Mkdir(folder, 0o700))
		here.mustRun(t, "backup", folder)
		_, _, err = here.command(t, nil, "backup", filepath.Join(file, "below.zip"))
		require.ErrorContains(t, err, "not a directory")
		require.NotContains(t, err.Error(), "exists")
		p.stop(t)
		_, _, err = inst.command(t, nil, "restore", file)
		require.ErrorContains(t, err, "already contains data")
		out := inst.mustRun(t, "restore", "--force", file)
		require.Contains(t, out, "The previous data is in ")

		q := inst.start(t)
		list := getBody(t, q.client, "/api/v1/characters")
		require.Contains(t, list, mira)
		require.NotContains(t, list, late)
		q.stop(t)
		if url != "" {
			return
		}
		// The replaced data folder can be put back by hand.
		aside, err := filepath.Glob(filepath.Join(inst.dir, "data", "replaced-*"))
		require.NoError(t, err)
		require.Len(t, aside, 1)
		again := newInstallation(t, "")
		require.NoError(t, os.Rename(aside[0], filepath.Join(again.dir, "data")))
		r := again.start(t)
		require.Contains(t, getBody(t, r.client, "/api/v1/characters"), late)
		r.stop(t)
	})
}

func importedID(t *testing.T, printed string) string {
	t.Helper()
	id, _, ok := strings.Cut(printed, "  ")
	require.True(t, ok, printed)
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
		require.NoError(t, err)
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
			require.NoError(t, os.WriteFile(name, bad, 0o600))
			_, _, err := target.command(t, nil, "restore", name)
			if err == nil { // the changed byte has no meaning, such as the time of an entry
				require.Equal(t, 1, n%2)
				target.mustRun(t, "restore", "--force", name)
				target = newInstallation(t, emptyDatabaseLike(t, url))
				continue
			}
			require.NotContains(t, oneLine(err), "\n")
			require.NoDirExists(t, filepath.Join(target.dir, "data"), "after %v", err)
		}
		require.Contains(t, target.mustRun(t, "restore", file), "restored into")
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
			require.NoError(t, p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", body, nil))
		}
		whole := getBody(t, p.client, "/api/v1/conversations/"+conversation+"/messages?limit=200")
		here := source.withAddrOf(p)
		file := filepath.Join(t.TempDir(), "good.zip")
		here.mustRun(t, "backup", file)
		rng := newRand(t)
		for range scaled(t, 3, 60) {
			killed := filepath.Join(t.TempDir(), "killed.zip")
			if err := here.runAndKill(t, rng.IntN(100), "backup", killed); err != nil {
				require.NoFileExists(t, killed)
			} else {
				here.mustRun(t, "restore", "--check", killed)
			}
		}
		p.stop(t)
		for range scaled(t, 3, 60) {
			target := newInstallation(t, emptyDatabaseLike(t, url)).fast(t)
			err := target.runAndKill(t, rng.IntN(100), "restore", file)
			q := target.start(t)
			old := newTestClient(q.client.Base, p.client.Token)
			there := old.Greet(t.Context()) == nil
			if err == nil {
				require.True(t, there)
			}
			if there { // all of it, or nothing
				require.Equal(t, whole, getBody(t, old, "/api/v1/conversations/"+conversation+"/messages?limit=200"))
			} else {
				require.NotContains(t, getBody(t, q.client, "/api/v1/characters"), character)
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
		require.True(t, errors.As(err, &exit) && exit.ExitCode() < 0, "%v: %s", err, text)
	}
	return err
}

func TestBackupErrorMessages(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	file := filepath.Join(t.TempDir(), "b.zip")
	_, _, err := inst.command(t, nil, "backup", file)
	require.ErrorContains(t, err, "the data folder "+filepath.Join(inst.dir, "data")+" has no secret.key")
	require.NoDirExists(t, filepath.Join(inst.dir, "data"), "it made nothing")
	inst.mustRun(t, "migrate")
	folder := t.TempDir()
	var written struct{ File string }
	require.NoError(t, json.Unmarshal([]byte(inst.mustRun(t, "backup", "--json", folder)), &written))
	require.Equal(t, folder, filepath.Dir(written.File))
	piped, said, err := inst.command(t, nil, "backup", "-")
	require.NoError(t, err)
	require.Contains(t, said, "written and verified")
	out, _, err := newInstallation(t, "").command(t, strings.NewReader(piped), "restore", "-")
	require.NoError(t, err)
	require.Contains(t, out, "restored into")
	_, _, err = inst.command(t, nil, "restore", tempFile(t, "x.zip", "no zip"))
	require.ErrorContains(t, err, "not a complete NodeST backup")
	_, _, err = inst.command(t, nil, "restore", filepath.Join(folder, "none.zip"))
	require.ErrorContains(t, err, "no such file")

	other := newInstallation(t, "", "NODEST_SECRET_KEY=another secret")
	_, _, err = other.command(t, nil, "restore", written.File)
	require.ErrorContains(t, err, "NODEST_SECRET_KEY differs from the key in the backup")
	require.NoDirExists(t, filepath.Join(other.dir, "data"))
}
