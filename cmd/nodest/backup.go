package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nodest/internal/account"
	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/internal/setup"
	"nodest/store"
)

// secretFile is the file of the data folder that opens stored provider keys.
const secretFile = "secret.key"

func (p *program) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Back up everything to one file while the server runs", Args: cobra.ExactArgs(1),
		Long: "Back up everything to one file: all users with their chats, characters and memories, and the secret key that decrypts\n" +
			"stored provider keys. The server can keep running. The file is verified after writing. If FILE is a folder, the file\n" +
			"name is made from the date and time; if it is -, the backup goes to standard output. A backup of SQLite can be restored\n" +
			"into PostgreSQL and vice versa. Keep it as safe as the data folder; only its owner can read it. Settings from the\n" +
			"environment are not included.",
		Example: "  nodest backup /backups/\n  nodest backup before-the-move.zip\n  docker compose exec -T nodest nodest backup - > nodest.zip",
	}
	cmd.RunE = p.configured(func(ctx context.Context, cfg *setup.Config, args []string) error {
		if args[0] == "-" {
			return p.backupToOutput(ctx, cfg)
		}
		path, err := backupPath(args[0], time.Now())
		if err != nil {
			return err
		}
		m, err := p.backup(ctx, cfg, path)
		if err != nil {
			return err
		}
		if p.json {
			return p.printJSON(map[string]any{"file": path, "manifest": m})
		}
		return p.tellBackup(p.out, path, path, m)
	})
	return p.withJSON(cmd, "print the manifest as JSON")
}

// backupToOutput writes to standard output what was verified as a file.
func (p *program) backupToOutput(ctx context.Context, cfg *setup.Config) (err error) {
	dir, err := os.MkdirTemp("", "nodest-backup-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "backup.zip")
	m, err := p.backup(ctx, cfg, path)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only read
	if _, err := io.Copy(p.data, f); err != nil {
		return err
	}
	return p.tellBackup(p.err, path, "standard output", m)
}

// backupPath is where a backup goes: the file that arg names, or a new one in that folder.
// A file that exists is not overwritten.
func backupPath(arg string, now time.Time) (string, error) {
	path := filepath.Clean(arg)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		path = filepath.Join(path, "nodest-"+now.Format("20060102-150405")+".zip")
	case strings.HasSuffix(arg, string(filepath.Separator)):
		return "", fmt.Errorf("there is no folder %s; create it first", arg)
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s already exists; choose another name or a folder", path)
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return path, nil
}

// backup writes a file beside path, verifies it, and gives it its name.
func (p *program) backup(ctx context.Context, cfg *setup.Config, path string) (m *store.Manifest, err error) {
	partial := path + ".partial"
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(partial)
		}
	}()
	progress, done := p.progress("backing up")
	defer done()
	err = writeBackup(ctx, cfg, setup.NewLog(p.err, cfg), f, progress)
	if err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if m, err = p.verify(ctx, partial); err != nil {
		return nil, fmt.Errorf("the backup failed verification and was deleted: %w", err)
	}
	if err := os.Rename(partial, path); err != nil {
		return nil, err
	}
	return m, store.SyncFolder(filepath.Dir(path))
}

// writeBackup writes a backup of everything.
func writeBackup(ctx context.Context, cfg *setup.Config, log *slog.Logger, w io.Writer, progress func(table string, rows int64)) error {
	secret, err := secretFor(cfg)
	if err != nil {
		return err
	}
	_, err = store.Backup(ctx, storeOptions(cfg, log), w, store.BackupOptions{
		Program: version, Files: map[string][]byte{secretFile: secret}, Progress: progress,
	})
	return err
}

// secretFor is what a data folder would hold as secret.key.
func secretFor(cfg *setup.Config) ([]byte, error) {
	dir := cfg.Get("NODEST_DATA")
	if cfg.Get("NODEST_SECRET_KEY") == "" { // account.Secret would make one
		if _, err := os.Stat(filepath.Join(dir, secretFile)); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the data folder %s has no %s; give the server's data folder with --data", cfg.DataFolder(), secretFile)
		}
	}
	secret, err := account.Secret(dir, cfg.Get("NODEST_SECRET_KEY"))
	return []byte(hex.EncodeToString(secret) + "\n"), err
}

// verify reads a backup as a restore would, and says which provider keys its
// secret does not open.
func (p *program) verify(ctx context.Context, path string) (*store.Manifest, error) {
	b, err := store.OpenBackup(ctx, path)
	if err != nil {
		return nil, err
	}
	defer b.Close() //nolint:errcheck // it was only read
	if err := b.Verify(ctx); err != nil {
		return nil, err
	}
	secret, err := secretIn(b)
	if err != nil {
		return nil, err
	}
	lost := 0
	err = b.Each("provider_keys", func(row map[string]any) error {
		user, _ := row["user_id"].(string)
		provider, _ := row["provider"].(string)
		sealed, _ := row["sealed"].([]byte)
		if !account.Opens(secret, user, provider, sealed) {
			lost++
		}
		return nil
	})
	if lost > 0 {
		fmt.Fprintf(p.err, "warning: the secret key cannot decrypt %d of %d stored provider keys; their users must enter them again\n", lost, b.Manifest.Rows("provider_keys"))
	}
	return &b.Manifest, err
}

// secretIn returns the secret of a backup.
func secretIn(b *store.BackupFile) ([]byte, error) {
	text, err := b.File(secretFile)
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != 32 {
		return nil, errors.New("the backup has no valid secret.key")
	}
	return secret, nil
}

func storeOptions(cfg *setup.Config, log *slog.Logger) store.Options {
	return store.Options{URL: cfg.Get("NODEST_DATABASE_URL"), Dir: cfg.Get("NODEST_DATA"), Log: log}
}

func (p *program) tellBackup(out io.Writer, path, name string, m *store.Manifest) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "backup written and verified: %s (%s)\n", name, fault.Size(int(info.Size())))
	_, err = fmt.Fprintf(out, "  %s, schema version %d\n  It contains the secret key that decrypts stored provider keys; keep it as safe as the data folder.\n", contents(m), m.SchemaVersion)
	return err
}

// contents counts what people know of.
func contents(m *store.Manifest) string {
	return fmt.Sprintf("users: %s, characters: %s, chats: %s, messages: %s, memories: %s",
		grouped(m.Rows("users")), grouped(m.Rows("characters")), grouped(m.Rows("conversations")), grouped(m.Rows("messages")), grouped(m.Rows("memories")))
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	digits := []byte(strconv.FormatInt(n, 10))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = slices.Insert(digits, i, ',')
	}
	return string(digits)
}

// progress shows on a terminal how far something is; done clears the line.
func (p *program) progress(what string) (tell func(table string, rows int64), done func()) {
	if !cli.IsTerminal(p.screen) {
		return nil, func() {}
	}
	return func(table string, rows int64) {
			fmt.Fprintf(p.screen, "\r\x1b[K%s %s: %s", what, table, grouped(rows))
		}, func() {
			fmt.Fprint(p.screen, "\r\x1b[K")
		}
}
