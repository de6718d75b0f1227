package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/internal/op"
)

func TestHealthOfTheServer(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) {
		o.Database = "sqlite"
		o.Figures = func(context.Context) (*Figures, error) { return &Figures{Users: 2, DiskFreeBytes: -1}, nil }
	})
	h.connect(nil)
	got := h.rest("GET", "/health", "").wants(t, 200)
	if got["version"] != "test" || got["database"] != "sqlite" || got["uptimeSeconds"].(float64) < 0 {
		t.Errorf("%v", got)
	}
	if provider := got["provider"].(map[string]any); provider["name"] != "offline" || provider["model"] != "voice" || provider["configured"] != true {
		t.Errorf("%v", provider)
	}
	if server := got["server"].(map[string]any); server["users"] != 2.0 || server["connections"] != 1.0 || server["diskFreeBytes"] != -1.0 {
		t.Errorf("%v", server)
	}
	// Others learn nothing about the server's users.
	got = h.rest("GET", "/health", "", "Authorization: Bearer "+h.newMember("mia")).wants(t, 200)
	if got["version"] != "test" || got["server"] != nil {
		t.Errorf("%v", got)
	}
	h.rest("GET", "/health", "", "Authorization: ").refuses(t, 401, "unauthenticated")
}

// Owners see how scheduled backups are going, on the page and in the metrics.
func TestScheduledBackupsAreShownToOwners(t *testing.T) {
	t.Parallel()
	at := op.Time(time.Unix(1_800_000_000, 0))
	h := newTestServer(t, func(o *Options) {
		o.Database = "sqlite"
		o.Figures = func(context.Context) (*Figures, error) { return &Figures{}, nil }
		o.Backups = func(context.Context) (*Backups, error) {
			return &Backups{
				Folder: "/backups", Interval: 86400, Keep: 7, NextAt: &at,
				Failure: &Failure{At: at, Reason: "the disk is full"}, Last: &Backup{At: at, File: "/backups/a.zip", Bytes: 7, Users: 1},
			}, nil
		}
	})
	got := h.rest("GET", "/health", "").wants(t, 200)["backups"].(map[string]any)
	if got["folder"] != "/backups" || got["failure"].(map[string]any)["reason"] != "the disk is full" || got["last"].(map[string]any)["bytes"] != 7.0 {
		t.Errorf("%v", got)
	}
	if got := h.rest("GET", "/health", "", "Authorization: Bearer "+h.newMember("mia")).wants(t, 200); got["backups"] != nil {
		t.Errorf("a member sees %v", got)
	}
	a := h.request("GET", "/metrics", "", "Authorization: Bearer "+h.token)
	for _, line := range []string{"nodest_backup_failed 1\n", "nodest_backup_last_success_timestamp_seconds 1.8e+09\n"} {
		if !strings.Contains(string(a.body), line) {
			t.Errorf("the metrics lack %q", line)
		}
	}
}

// backups is a server whose backups are written by a function of the test.
func backups(t *testing.T, write func(ctx context.Context, w io.Writer) error) *testServer {
	return newTestServer(t, func(o *Options) { o.Backup = write })
}

func TestBackupsAreForOwners(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	h := backups(t, func(_ context.Context, w io.Writer) error {
		asked.Add(1)
		_, err := w.Write([]byte("PK"))
		return err
	})
	h.rest("GET", "/backup", "", "Authorization: Bearer "+h.newMember("mia")).refuses(t, 403, "forbidden")
	h.rest("GET", "/backup", "", "Authorization: ").refuses(t, 401, "unauthenticated")
	if a := h.rest("HEAD", "/backup", ""); a.status != 404 {
		t.Errorf("HEAD: %d", a.status)
	}
	if asked.Load() != 0 {
		t.Fatal("a backup was made")
	}
	a := h.rest("GET", "/backup", "")
	a.wants(t, 200)
	disposition := a.header.Get("Content-Disposition")
	if string(a.body) != "PK" || a.header.Get("Content-Type") != "application/zip" || a.header.Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(disposition, `attachment; filename="nodest-2`) {
		t.Errorf("%q %v", a.body, a.header)
	}
	newTestServer(t, nil).rest("GET", "/backup", "").refuses(t, 404, "not_found")
}

// A backup is streamed: its beginning arrives while it is being made. There is one at a
// time, and it ends with its client.
func TestBackupsAreStreamedOneAtATime(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	h := backups(t, func(ctx context.Context, w io.Writer) error {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
			return err
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.http.URL+base+"/backup", nil)
	h.must(err)
	req.Header.Set("Authorization", "Bearer "+h.token)
	client := &http.Client{Transport: &http.Transport{}}
	res, err := client.Do(req)
	h.must(err)
	_, err = io.ReadFull(res.Body, make([]byte, 1000))
	h.must(err)
	if p := h.rest("GET", "/backup", "").refuses(t, 429, "rate_limited"); p.RetryAfterMs == nil {
		t.Errorf("%+v", p)
	}
	leave()
	_ = res.Body.Close()
	if err := await(t, ended, "the end of the backup"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended by %v", err)
	}
}

// A backup that fails is never taken for a whole one.
func TestBackupsThatFail(t *testing.T) {
	t.Parallel()
	var begun atomic.Bool
	h := backups(t, func(_ context.Context, w io.Writer) error {
		if begun.Load() {
			if _, err := w.Write([]byte("PK")); err != nil {
				return err
			}
		}
		return errors.New("disk on fire")
	})
	a := h.rest("GET", "/backup", "")
	a.refuses(t, 500, "internal")
	if a.header.Get("Content-Disposition") != "" || strings.Contains(string(a.body), "fire") {
		t.Errorf("%s %v", a.body, a.header)
	}
	begun.Store(true)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.http.URL+base+"/backup", nil)
	h.must(err)
	req.Header.Set("Authorization", "Bearer "+h.token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err == nil {
		_, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	if err == nil {
		t.Error("a broken backup looks whole")
	}
	begun.Store(false)
	h.rest("GET", "/backup", "").refuses(t, 500, "internal") // and the next one may be tried
	if !strings.Contains(h.log.String(), "disk on fire") {
		t.Error("the log does not say why")
	}
}
