// Package backup writes backups of a whole server, verifies them, rehearses their restore, and
// does all of that by a schedule. It must not print anything: the commands do.
package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/setup"
	"nodest/store"
	"nodest/store/sqldb"
)

// SecretFile is the file of the data folder that decrypts stored provider keys.
const SecretFile = "secret.key"

// Maker makes backups of one server.
type Maker struct {
	store   store.Options
	secret  string // NODEST_SECRET_KEY; "" = it is in the data folder
	program string // version of the program
}

// New returns a Maker for the server of a configuration.
func New(cfg *setup.Config, program string, log *slog.Logger) *Maker {
	return &Maker{
		store:  store.Options{URL: cfg.Get("NODEST_DATABASE_URL"), Dir: cfg.Get("NODEST_DATA"), Log: log},
		secret: cfg.Get("NODEST_SECRET_KEY"), program: program,
	}
}

// Progress hears how many rows of a table are done.
type Progress = func(table string, rows int64)

// Write writes a backup of everything; nothing of it is verified.
func (m *Maker) Write(ctx context.Context, w io.Writer, progress Progress) error {
	secret, err := m.secretText()
	if err != nil {
		return err
	}
	_, err = store.Backup(ctx, m.store, w, store.BackupOptions{
		Program: m.program, Files: map[string][]byte{SecretFile: secret}, Progress: progress,
	})
	return err
}

// secretText is what a data folder holds as secret.key.
func (m *Maker) secretText() ([]byte, error) {
	if m.secret == "" { // account.Secret would make one
		if _, err := os.Stat(filepath.Join(m.store.Dir, SecretFile)); errors.Is(err, os.ErrNotExist) {
			dir, failed := filepath.Abs(m.store.Dir)
			return nil, errors.Join(failed, fmt.Errorf("the data folder %s has no %s; give the server's data folder with --data", dir, SecretFile))
		}
	}
	secret, err := account.Secret(m.store.Dir, m.secret)
	return []byte(hex.EncodeToString(secret) + "\n"), err
}

// Verified is what reading a backup has found.
type Verified struct {
	*store.Manifest
	LostKeys int // provider keys that the secret of the backup does not decrypt
}

// partialSuffix ends the name of a file that is not complete, or not verified yet.
const partialSuffix = ".partial"

// Make writes a backup beside path, verifies it, has it pass a further check, if there is one, and
// then gives it its name: a backup that fails or is killed leaves no file called path.
func (m *Maker) Make(ctx context.Context, path string, progress Progress, check func(ctx context.Context, path string) error) (_ *Verified, err error) {
	partial := path + partialSuffix
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(partial)
		}
	}()
	err = m.Write(ctx, f, progress)
	if err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	v, err := Verify(ctx, partial)
	if err == nil && check != nil {
		err = check(ctx, partial)
	}
	if err != nil {
		return nil, fmt.Errorf("the backup failed verification and was deleted: %w", err)
	}
	if err := os.Rename(partial, path); err != nil {
		return nil, err
	}
	return v, store.SyncFolder(filepath.Dir(path))
}

// Verify reads a backup as a restore does.
func Verify(ctx context.Context, path string) (*Verified, error) {
	b, err := store.OpenBackup(ctx, path)
	if err != nil {
		return nil, err
	}
	defer b.Close() //nolint:errcheck // it was only read
	if err := b.Verify(ctx); err != nil {
		return nil, err
	}
	secret, err := SecretIn(b)
	if err != nil {
		return nil, err
	}
	v := &Verified{Manifest: &b.Manifest}
	err = b.Each("provider_keys", func(row map[string]any) error {
		user, _ := row["user_id"].(string)
		provider, _ := row["provider"].(string)
		sealed, _ := row["sealed"].([]byte)
		if !account.Opens(secret, user, provider, sealed) {
			v.LostKeys++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = b.Each("model_servers", func(row map[string]any) error {
		name, _ := row["name"].(string)
		if sealed, _ := row["sealed"].([]byte); len(sealed) > 0 && !account.OpensServer(secret, name, sealed) {
			v.LostKeys++
		}
		return nil
	})
	return v, err
}

// SecretIn returns the secret of a backup.
func SecretIn(b *store.BackupFile) ([]byte, error) {
	text, err := b.File(SecretFile)
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != 32 {
		return nil, errors.New("the backup has no valid " + SecretFile)
	}
	return secret, nil
}

// Rehearse restores a backup into a folder of its own within dir, looks whether that copy is whole and
// has the rows of the backup, opens it as a server does, and removes it.
func Rehearse(ctx context.Context, path, dir string) (err error) {
	scratch, err := os.MkdirTemp(dir, rehearsalPrefix+"*") // made with mode 0700
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(sqldb.Translate(err), os.RemoveAll(scratch)) }()
	b, err := store.OpenBackup(ctx, path)
	if err != nil {
		return err
	}
	defer b.Close() //nolint:errcheck // it was only read
	copied := store.Options{Dir: scratch, Log: slog.New(slog.DiscardHandler)}
	if _, err := store.Restore(ctx, copied, b, store.RestoreOptions{}); err != nil {
		return fmt.Errorf("the backup cannot be restored: %w", err)
	}
	if err := store.CheckCopy(ctx, copied, &b.Manifest); err != nil {
		return fmt.Errorf("what is restored from the backup is not what was saved: %w", err)
	}
	db, err := store.Open(ctx, copied)
	if err != nil {
		return fmt.Errorf("what is restored from the backup cannot be opened: %w", err)
	}
	return errors.Join(db.Ping(ctx), db.Close())
}

// rehearsalPrefix begins the name of the folder of a rehearsal.
const rehearsalPrefix = ".rehearsal-"

// explained gives an error of a scheduled backup words for the owners, who read nothing else of it.
func explained(folder string, err error) error {
	var coded *fault.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, jobs.ErrLost):
		return err
	case fault.Is(err, fault.StorageFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.StorageFull, "the disk of the backup folder %s is full: a backup needs room for the file and, while it is checked, for two copies of the database. "+
			"Earlier backups are still there; free some space, lower NODEST_BACKUP_KEEP, or set NODEST_BACKUP_FOLDER to a larger disk", folder)
	case errors.Is(err, fs.ErrNotExist):
		if _, missing := os.Stat(folder); errors.Is(missing, fs.ErrNotExist) {
			return fault.Wrap(err, fault.StorageDown, "the backup folder %s does not exist: create it, or mount its disk", folder)
		}
	case errors.As(err, &coded):
		return err
	}
	return fault.Wrap(err, fault.StorageDown, "the backup failed: %v", err)
}
