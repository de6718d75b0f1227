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

	"nodest/account"
	"nodest/store/storetest"
)

// eachMove runs f on every pair of databases: where a backup is made, and where
// it is restored.
func eachMove(t *testing.T, f func(t *testing.T, from, to string)) {
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

// raw is the body of an answer.
func raw(t *testing.T, c *client, path string) string {
	t.Helper()
	res, err := c.send(t.Context(), http.MethodGet, path, nil, "application/json")
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(text)
}

var exported = regexp.MustCompile(`"exportedAt":"[^"]*"`)

// state is everything of a user that a restore must bring back.
func state(t *testing.T, c *client, conversations []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range []string{"/me", "/characters", "/conversations", "/settings", "/personas"} {
		all[path] = raw(t, c, "/api/v1"+path)
	}
	for _, id := range conversations {
		for _, path := range []string{"/messages?limit=200", "/saves", "/export?format=json"} {
			all[id+path] = exported.ReplaceAllString(raw(t, c, "/api/v1/conversations/"+id+path), "")
		}
	}
	return all
}

func TestABackupMovesEverything(t *testing.T) {
	eachMove(t, func(t *testing.T, from, to string) {
		source := newInstallation(t, from)
		p := source.start(t)
		here := source.onItsPort(p)
		character := sampleCharacter(t, p.client)
		conversation := newConversation(t, p.client, character)
		for _, text := range []string{"Hello", "日本語 \u0001 \u2028 \"quoted\" \\", "My name is Ada and I live in Paris."} {
			require.NoError(t, p.client.call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": text}, nil))
		}
		require.NoError(t, p.client.call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/saves", map[string]any{"description": "here"}, nil))
		require.NoError(t, p.client.call(t.Context(), http.MethodPut, "/api/v1/providers/gemini/key", map[string]any{"key": "key-of-the-owner"}, nil))
		_, _, err := here.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
		require.NoError(t, err)
		before := state(t, p.client, []string{conversation})
		var epoch, later struct{ Epoch string }
		require.NoError(t, p.client.call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &epoch))

		file := filepath.Join(t.TempDir(), "moved.zip")
		out := here.ok(t, "backup", file)
		require.Contains(t, out, "written and verified")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.Contains(t, here.ok(t, "restore", "--check", file), "is complete")
		p.stop(t)

		target := newInstallation(t, to)
		require.Contains(t, target.ok(t, "restore", file), "restored into")
		q := target.start(t)
		old := newTestClient(q.client.base, p.client.token)
		for path, now := range state(t, old, []string{conversation}) {
			require.Equal(t, before[path], now, "a token of before signs in and finds everything: %s", path)
		}
		require.NoError(t, newTestClient(q.client.base, "").call(t.Context(), http.MethodPost, "/api/v1/auth/login", map[string]any{"username": "alice", "password": "correct horse battery"}, nil))
		require.NoError(t, old.call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &later))
		require.NotEqual(t, epoch.Epoch, later.Epoch, "devices load anew")
		require.NoError(t, old.call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": "And on we go."}, nil))
		q.stop(t)
		requireKey(t, target, "key-of-the-owner")
	})
}

// requireKey opens the owner's key of gemini as a server does.
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

// TestABackupOfABusyServer: everything that was acknowledged before a backup
// began is in it, and what came later is in it without a gap.
func TestABackupOfABusyServer(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		source := newInstallation(t, url, "NODEST_GENERATIONS=8")
		p := source.start(t)
		here := source.onItsPort(p)
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
		here.ok(t, "backup", file)
		mu.Lock()
		after := count
		mu.Unlock()
		waitFor(after + 20) // it goes on
		stop()
		wg.Wait()
		p.stop(t)

		target := newInstallation(t, emptyLike(t, url))
		target.ok(t, "restore", file)
		q := target.start(t)
		old := newTestClient(q.client.base, p.client.token)
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

// emptyLike is another database of the same kind.
func emptyLike(t *testing.T, url string) string {
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
		here := inst.onItsPort(p)
		mira := importedID(t, here.ok(t, "import", inFile(t, "mira.json", miraCard)))
		file := filepath.Join(t.TempDir(), "mira.zip")
		here.ok(t, "backup", file)
		late := importedID(t, here.ok(t, "import", "--sample"))

		for _, args := range [][]string{{"restore", file}, {"restore", "--force", file}} {
			_, _, err := here.command(t, nil, args...)
			require.ErrorContains(t, err, "in use", "a server runs")
		}
		_, _, err := here.command(t, nil, "backup", file)
		require.ErrorContains(t, err, "already exists")
		p.stop(t)
		_, _, err = inst.command(t, nil, "restore", file)
		require.ErrorContains(t, err, "already contains data")
		out := inst.ok(t, "restore", "--force", file)
		require.Contains(t, out, "The previous data is in ")

		q := inst.start(t)
		list := raw(t, q.client, "/api/v1/characters")
		require.Contains(t, list, mira)
		require.NotContains(t, list, late)
		q.stop(t)
		if url != "" {
			return
		}
		// The old database can be put back by hand.
		aside, err := filepath.Glob(filepath.Join(inst.dir, "data", "replaced-*"))
		require.NoError(t, err)
		require.Len(t, aside, 1)
		again := newInstallation(t, "")
		require.NoError(t, os.Rename(aside[0], filepath.Join(again.dir, "data")))
		r := again.start(t)
		require.Contains(t, raw(t, r.client, "/api/v1/characters"), late)
		r.stop(t)
	})
}

func importedID(t *testing.T, printed string) string {
	t.Helper()
	id, _, ok := strings.Cut(printed, "  ")
	require.True(t, ok, printed)
	return id
}

// TestBadBackupsAreRefused: whatever is wrong with a file, nothing is changed.
func TestBadBackupsAreRefused(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		source := newDatabase(t)
		source.ok(t, "import", "--sample")
		file := filepath.Join(t.TempDir(), "good.zip")
		source.ok(t, "backup", file)
		good, err := os.ReadFile(file)
		require.NoError(t, err)
		rng := seeded(t)
		target := newInstallation(t, url)
		for n := range long(t, 40, 2000) {
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
			if err == nil { // the change was in what nobody reads, such as the time of an entry
				require.Equal(t, 1, n%2)
				target.ok(t, "restore", "--force", name)
				target = newInstallation(t, emptyLike(t, url))
				continue
			}
			require.NotContains(t, oneLine(err), "\n")
			require.NoDirExists(t, filepath.Join(target.dir, "data"), "after %v", err)
		}
		require.Contains(t, target.ok(t, "restore", file), "restored into")
	})
}

// TestAKilledBackupOrRestoreLeavesNoDamage kills both after random times.
func TestAKilledBackupOrRestoreLeavesNoDamage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		source := newInstallation(t, url)
		p := source.start(t)
		character := sampleCharacter(t, p.client)
		conversation := newConversation(t, p.client, character)
		for n := range 50 {
			body := map[string]any{"text": fmt.Sprintf("%d %s", n, strings.Repeat("long text ", 2000)), "reply": false}
			require.NoError(t, p.client.call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", body, nil))
		}
		whole := raw(t, p.client, "/api/v1/conversations/"+conversation+"/messages?limit=200")
		here := source.onItsPort(p)
		file := filepath.Join(t.TempDir(), "good.zip")
		here.ok(t, "backup", file)
		rng := seeded(t)
		for range long(t, 3, 60) {
			killed := filepath.Join(t.TempDir(), "killed.zip")
			if err := here.killed(t, rng.IntN(100), "backup", killed); err != nil {
				require.NoFileExists(t, killed)
			} else {
				here.ok(t, "restore", "--check", killed)
			}
		}
		p.stop(t)
		for range long(t, 3, 60) {
			target := newInstallation(t, emptyLike(t, url))
			err := target.killed(t, rng.IntN(100), "restore", file)
			q := target.start(t)
			old := newTestClient(q.client.base, p.client.token)
			there := old.greet(t.Context()) == nil
			if err == nil {
				require.True(t, there)
			}
			if there { // whole, or not at all
				require.Equal(t, whole, raw(t, old, "/api/v1/conversations/"+conversation+"/messages?limit=200"))
			} else {
				require.NotContains(t, raw(t, q.client, "/api/v1/characters"), character)
			}
			q.stop(t)
			target.ok(t, "restore", "--force", file)
		}
	})
}

// killed runs a command as a process and kills it after some milliseconds; nil
// says that it was faster.
func (i *installation) killed(t *testing.T, ms int, args ...string) error {
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

func TestBackupSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	file := filepath.Join(t.TempDir(), "b.zip")
	_, _, err := inst.command(t, nil, "backup", file)
	require.ErrorContains(t, err, "the data folder "+filepath.Join(inst.dir, "data")+" has no secret.key")
	require.NoDirExists(t, filepath.Join(inst.dir, "data"), "it made nothing")
	inst.ok(t, "migrate")
	folder := t.TempDir()
	var told struct{ File string }
	require.NoError(t, json.Unmarshal([]byte(inst.ok(t, "backup", "--json", folder)), &told))
	require.Equal(t, folder, filepath.Dir(told.File))
	piped, said, err := inst.command(t, nil, "backup", "-")
	require.NoError(t, err)
	require.Contains(t, said, "written and verified")
	out, _, err := newInstallation(t, "").command(t, strings.NewReader(piped), "restore", "-")
	require.NoError(t, err)
	require.Contains(t, out, "restored into")
	_, _, err = inst.command(t, nil, "restore", inFile(t, "x.zip", "no zip"))
	require.ErrorContains(t, err, "not a complete NodeST backup")
	_, _, err = inst.command(t, nil, "restore", filepath.Join(folder, "none.zip"))
	require.ErrorContains(t, err, "no such file")

	other := newInstallation(t, "", "NODEST_SECRET_KEY=another secret")
	_, _, err = other.command(t, nil, "restore", told.File)
	require.ErrorContains(t, err, "NODEST_SECRET_KEY differs from the key in the backup")
	require.NoDirExists(t, filepath.Join(other.dir, "data"))
}
