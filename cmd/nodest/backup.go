package main

import (
	"context"
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

	"nodest/internal/backup"
	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/internal/setup"
	"nodest/store"
)

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

// backup makes a verified backup at path, and shows how far it is.
func (p *program) backup(ctx context.Context, cfg *setup.Config, path string) (*store.Manifest, error) {
	progress, done := p.progress("backing up")
	defer done()
	v, err := backup.New(cfg, version, setup.NewLog(p.err, cfg)).Make(ctx, path, progress, nil)
	if err != nil {
		return nil, err
	}
	p.warnOfKeys(v)
	return v.Manifest, nil
}

// verify reads a backup as a restore would.
func (p *program) verify(ctx context.Context, path string) (*store.Manifest, error) {
	v, err := backup.Verify(ctx, path)
	if err != nil {
		return nil, err
	}
	p.warnOfKeys(v)
	return v.Manifest, nil
}

// warnOfKeys says which provider keys the secret of a backup does not open.
func (p *program) warnOfKeys(v *backup.Verified) {
	if v.LostKeys > 0 {
		fmt.Fprintf(p.err, "warning: the secret key cannot decrypt %d of the stored provider keys; their users must enter them again\n", v.LostKeys)
	}
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
