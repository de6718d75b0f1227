package backup_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"nodest/internal/backup"
	"nodest/internal/jobs"
	"nodest/internal/setup"
	"nodest/store"
	"nodest/store/sqldb"
	"nodest/store/storetest"
)

func TestMain(m *testing.M) { storetest.Exit(m.Run()) }

// process is a server as far as backups need one.
type process struct {
	db       *store.DB
	schedule *backup.Schedule
	runner   *jobs.Runner
	ended    chan error // results of attempts
}

// start starts a process on a database, with backups in a folder.
func start(t *testing.T, url, dir, folder string) *process {
	t.Helper()
	cfg, err := setup.Load(func(env string) string {
		return map[string]string{
			"NODEST_DATA": dir, "NODEST_DATABASE_URL": url, "NODEST_SECRET_KEY": "a secret of the tests",
			"NODEST_BACKUP_FOLDER": folder, "NODEST_BACKUP_KEEP": "2",
		}[env]
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	p := &process{ended: make(chan error, 10)}
	o := store.Options{URL: url, Dir: dir, Log: log, Jobs: func(cancelled []string) { p.runner.Changed(cancelled) }}
	if p.db, err = store.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.db.Close(); err != nil {
			t.Error(err)
		}
	})
	p.runner = jobs.New(p.db, jobs.Options{Process: p.db.Process(), Poll: 20 * time.Millisecond, Log: log})
	p.schedule = backup.NewSchedule(backup.New(cfg, "test", log), backup.PlanOf(cfg), p.db, log)
	for _, k := range p.schedule.Kinds() {
		run := k.Run
		k.Run = func(ctx context.Context, j *jobs.Job) error {
			err := run(ctx, j)
			p.ended <- err
			return err
		}
		p.runner.Handle(k)
	}
	return p
}

// backUp has the schedule make what is due, and returns the state after it.
func (p *process) backUp(t *testing.T) *backup.State {
	t.Helper()
	p.runner.Start()
	ctx, end := context.WithCancel(t.Context())
	scheduled := make(chan struct{})
	go func() { defer close(scheduled); p.schedule.Run(ctx) }()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatal("no backup within a minute")
	}
	end()
	<-scheduled
	if err := p.runner.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p.state(t)
}

func (p *process) state(t *testing.T) *backup.State {
	t.Helper()
	st, err := p.schedule.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// each runs a test on SQLite and on PostgreSQL.
func each(t *testing.T, test func(t *testing.T, url string)) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := ""
			if kind == "postgres" {
				url = storetest.PostgresURL(t)
			} else {
				storetest.NeedSQLite(t)
			}
			test(t, url)
		})
	}
}

func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A scheduled backup can be restored and says what is in it. The newest are kept; files that the
// schedule did not make stay, and what a killed backup has left goes.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		folder := t.TempDir()
		for _, name := range []string{
			"nodest-scheduled-20200101T000000Z.zip", "nodest-scheduled-20200102T000000Z.zip", "nodest-scheduled-20200103T000000Z.zip",
			"nodest-scheduled-20200104T000000Z.zip.partial", "nodest-20200101-000000.zip", "mine.partial",
		} {
			write(t, filepath.Join(folder, name))
		}
		if err := os.Mkdir(filepath.Join(folder, ".rehearsal-1"), 0o700); err != nil {
			t.Fatal(err)
		}
		p := start(t, url, t.TempDir(), folder)
		storetest.User(t, p.db)
		st := p.backUp(t)
		if st.Failed != "" || st.Good == nil || st.Good.Users != 1 || st.Running || !st.Next.Equal(st.EndedAt.Add(24*time.Hour)) {
			t.Fatalf("state %+v with %+v", st, st.Good)
		}
		want := []string{"mine.partial", "nodest-20200101-000000.zip", "nodest-scheduled-20200103T000000Z.zip", filepath.Base(st.Good.File)}
		if got := namesIn(t, folder); !slices.Equal(got, want) {
			t.Errorf("the folder has %q, want %q", got, want)
		}
		v, err := backup.Verify(t.Context(), st.Good.File)
		if err != nil || v.Rows("users") != 1 {
			t.Errorf("%+v: %v", v, err)
		}
		if detail, fix := st.Report(); !strings.Contains(detail, "every 24h to "+folder) || !strings.Contains(detail, "was restored on trial") || fix != "" {
			t.Errorf("report %q, %q", detail, fix)
		}
	})
}

// One of two processes on one database makes the backup, and both know of it.
func TestOneProcessMakesTheBackup(t *testing.T) {
	t.Parallel()
	url, folder := storetest.PostgresURL(t), t.TempDir()
	a, b := start(t, url, t.TempDir(), folder), start(t, url, t.TempDir(), folder)
	b.runner.Start()
	go b.schedule.Run(t.Context())
	a.runner.Start()
	go a.schedule.Run(t.Context())
	select {
	case <-a.ended:
	case <-b.ended:
	}
	for _, p := range []*process{a, b} {
		if err := p.runner.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*process{a, b} {
		if st := p.state(t); st.Good == nil || st.Running {
			t.Errorf("state %+v", st)
		}
	}
	if names := namesIn(t, folder); len(names) != 1 {
		t.Errorf("the folder has %q", names)
	}
}

// A backup that fails says why, leaves what was there, and is tried again within an hour.
func TestBackupsThatFail(t *testing.T) {
	t.Parallel()
	storetest.NeedSQLite(t)
	folder, dir := filepath.Join(t.TempDir(), "disk"), t.TempDir()
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, "", dir, folder)
	first := p.backUp(t)
	p.db.Close()

	if err := os.Rename(folder, folder+"-gone"); err != nil {
		t.Fatal(err)
	}
	p = start(t, "", dir, folder)
	if err := p.db.Enqueue(t.Context(), jobs.Spec{Kind: backup.JobKind, Subject: "all"}); err != nil {
		t.Fatal(err)
	}
	p.runner.Start()
	for range 3 {
		if err := <-p.ended; err == nil {
			t.Fatal("the backup was made")
		}
	}
	if err := p.runner.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := p.state(t)
	if want := "the backup folder " + folder + " does not exist"; !strings.HasPrefix(st.Failed, want) {
		t.Errorf("the reason is %q, want %q", st.Failed, want)
	}
	if st.Good == nil || !st.GoodAt.Equal(first.GoodAt) || !st.Next.Equal(st.EndedAt.Add(time.Hour)) {
		t.Errorf("state %+v", st)
	}
	if _, fix := st.Report(); !strings.Contains(fix, st.Failed) {
		t.Errorf("the doctor says %q", fix)
	}
}

// A full disk is one clear error, and no file has the name of a backup.
func TestABackupToAFullDisk(t *testing.T) {
	t.Parallel()
	storetest.NeedSQLite(t)
	folder := t.TempDir()
	if err := syscall.Mount("nodest-test", folder, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("a small disk cannot be mounted:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	p := start(t, "", t.TempDir(), folder)
	st := p.backUp(t)
	if !strings.HasPrefix(st.Failed, "the disk of the backup folder "+folder+" is full") {
		t.Errorf("the reason is %q", st.Failed)
	}
	if names := namesIn(t, folder); len(names) != 0 {
		t.Errorf("the folder has %q", names)
	}
}

// A copy that lacks a row, or is damaged, is not what was saved.
func TestACopyIsCompared(t *testing.T) {
	t.Parallel()
	storetest.NeedSQLite(t)
	p := start(t, "", t.TempDir(), t.TempDir())
	storetest.User(t, p.db)
	path := p.backUp(t).Good.File
	b, err := store.OpenBackup(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	o := store.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if _, err := store.Restore(t.Context(), o, b, store.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := store.CheckCopy(t.Context(), o, &b.Manifest); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", filepath.Join(o.Dir, sqldb.File))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "DELETE FROM users")
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if err := store.CheckCopy(t.Context(), o, &b.Manifest); err == nil || !strings.Contains(err.Error(), "0 rows instead of 1") {
		t.Errorf("error %v", err)
	}
}
