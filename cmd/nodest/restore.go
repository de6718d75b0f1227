package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"nodest/internal/account"
	"nodest/internal/backup"
	"nodest/internal/setup"
	"nodest/store"
	"nodest/store/sqldb"
)

func (p *program) restoreCommand() *cobra.Command {
	var force, check bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup into an empty data folder or database", Args: cobra.ExactArgs(1),
		Long: "Restore a backup into the data folder or the PostgreSQL database at NODEST_DATABASE_URL. The server must be stopped.\n" +
			"A restore that fails or is interrupted changes nothing. Existing data is replaced only with --force, and is then\n" +
			"moved aside, not deleted: to a folder replaced-… in the data folder, or to a schema nodest_replaced_… in PostgreSQL.\n" +
			"Backups of older versions are upgraded. If FILE is -, the backup is read from standard input.",
		Example: "  nodest restore nodest-20261122-040000.zip\n  nodest restore --check nodest-20261122-040000.zip\n" +
			"  NODEST_DATABASE_URL=postgres://… nodest restore backup-of-sqlite.zip\n" +
			"  docker compose run --rm -T nodest restore - < nodest.zip",
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace existing data, which is moved aside")
	cmd.Flags().BoolVar(&check, "check", false, "only verify the backup")
	cmd.RunE = p.configured(func(ctx context.Context, cfg *setup.Config, args []string) error {
		path, remove, err := p.backupFile(args[0])
		if err != nil {
			return err
		}
		defer remove()
		if check {
			m, err := p.verify(ctx, path)
			if err != nil {
				return fmt.Errorf("%s: %s", args[0], reason(err))
			}
			if p.json {
				return p.printJSON(map[string]any{"manifest": m})
			}
			_, err = fmt.Fprintf(p.out, "%s is complete: created %s by nodest %s from %s\n  %s, schema version %d\n",
				args[0], m.CreatedAt.Local().Format("2006-01-02 15:04"), m.Program, m.Database, contents(m), m.SchemaVersion)
			return err
		}
		m, done, err := p.restore(ctx, cfg, path, force)
		if err != nil {
			return err
		}
		if p.json {
			return p.printJSON(map[string]any{"manifest": m, "movedTo": done.MovedTo, "filesMovedTo": done.Files})
		}
		return p.tellRestore(cfg, m, done)
	})
	return p.withJSON(cmd, "print the manifest and the location of the replaced data as JSON")
}

// backupFile is the file to read: for - a temporary one with the standard input.
func (p *program) backupFile(arg string) (path string, remove func(), err error) {
	if arg != "-" {
		return arg, func() {}, nil
	}
	f, err := os.CreateTemp("", "nodest-restore-*") // made with mode 0600
	if err != nil {
		return "", nil, err
	}
	_, err = io.Copy(f, p.in)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", nil, errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), func() { _ = os.Remove(f.Name()) }, nil
}

func (p *program) restore(ctx context.Context, cfg *setup.Config, path string, force bool) (*store.Manifest, *store.Restored, error) {
	b, err := store.OpenBackup(ctx, path)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s", path, reason(err))
	}
	defer b.Close() //nolint:errcheck // it was only read
	files, err := filesFor(cfg, b)
	if err != nil {
		return nil, nil, err
	}
	if err := b.Verify(ctx); err != nil { // nothing has been touched yet
		return nil, nil, fmt.Errorf("%s: %s", path, oneLine(err))
	}
	progress, clear := p.progress("restoring")
	defer clear()
	done, err := store.Restore(ctx, storeOptions(cfg, setup.NewLog(p.err, cfg)), b, store.RestoreOptions{Force: force, Files: files, Progress: progress})
	if errors.Is(err, sqldb.ErrInUse) {
		err = fmt.Errorf("the server is running (%s). Stop it, then restore", cmp.Or(sqldb.FolderServer(cfg.DataFolder()), "on "+cfg.DataFolder()))
	}
	return &b.Manifest, done, err
}

// filesFor is what the data folder gets: the secret, unless the setting gives it.
func filesFor(cfg *setup.Config, b *store.BackupFile) (map[string][]byte, error) {
	secret, err := backup.SecretIn(b)
	if err != nil {
		return nil, err
	}
	if cfg.Get("NODEST_SECRET_KEY") == "" {
		text, err := b.File(backup.SecretFile)
		return map[string][]byte{backup.SecretFile: text}, err
	}
	configured, err := account.Secret("", cfg.Get("NODEST_SECRET_KEY"))
	if err == nil && !bytes.Equal(secret, configured) {
		err = errors.New("NODEST_SECRET_KEY differs from the key in the backup, so stored provider keys could not be decrypted; unset it or set the old value")
	}
	return nil, err
}

func (p *program) tellRestore(cfg *setup.Config, m *store.Manifest, done *store.Restored) error {
	where, before := "the data folder "+cfg.Get("NODEST_DATA"), "the folder"
	if cfg.Get("NODEST_DATABASE_URL") != "" {
		where, before = "PostgreSQL", "the schema"
	}
	fmt.Fprintf(p.out, "restored into %s: state of %s\n  %s\n", where, m.CreatedAt.Local().Format("2006-01-02 15:04"), contents(m))
	if done.MovedTo != "" {
		fmt.Fprintf(p.out, "  The previous data is in %s %s.\n", before, done.MovedTo)
	}
	if done.Files != "" {
		fmt.Fprintf(p.out, "  The previous %s is in the folder %s.\n", backup.SecretFile, done.Files)
	}
	_, err := fmt.Fprintln(p.out, "  Start the server; the tokens and passwords in the backup work. Run nodest signin for a new sign-in link.")
	return err
}
