package server

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/server/api"
)

// operateRoutes serves what shows and saves the server as a whole.
func (s *Server) operateRoutes(e *echo.Echo) {
	e.GET(base+"/health", s.signedIn(only(accountHandler(s.health).handle)))
	e.GET(base+"/usage/users", s.signedIn(only(accountHandler(s.usageByUser).handle, "from", "to", "limit", "cursor")))
	e.GET(base+"/audit", s.signedIn(only(accountHandler(s.auditLog).handle, "userId", "action", "limit", "cursor")))
	e.GET(backupPath, s.signedIn(only(s.backup)))
}

// Figures describe the server as an owner sees it.
type Figures struct {
	Users         int64 `json:"users"`
	Generations   int64 `json:"generations"` // queued and running
	QueuedJobs    int64 `json:"queuedJobs"`
	FailedJobs    int64 `json:"failedJobs"`
	DatabaseBytes int64 `json:"databaseBytes"`
	DataBytes     int64 `json:"dataBytes"` // size of all files in the data folder
	DiskFreeBytes int64 `json:"diskFreeBytes"`
}

// Backups say how the scheduled backups are going.
type Backups struct {
	Folder   string   `json:"folder"`
	Interval int64    `json:"intervalSeconds"`
	Keep     int      `json:"keep"`
	Running  bool     `json:"running"`
	NextAt   *op.Time `json:"nextAt,omitempty"` // nil = now
	Failure  *Failure `json:"failure,omitempty"`
	Last     *Backup  `json:"last,omitempty"` // the last that is complete
}

// Failure is why the last scheduled backup failed.
type Failure struct {
	At     op.Time `json:"at"`
	Reason string  `json:"reason"`
}

// Backup is a scheduled backup whose restore was rehearsed.
type Backup struct {
	At            op.Time `json:"at"`
	File          string  `json:"file"`
	Bytes         int64   `json:"bytes"`
	Users         int64   `json:"users"`
	Characters    int64   `json:"characters"`
	Conversations int64   `json:"conversations"`
	Messages      int64   `json:"messages"`
	Memories      int64   `json:"memories"`
}

type wireHealth struct {
	Version  string       `json:"version"`
	Uptime   int64        `json:"uptimeSeconds"`
	Database string       `json:"database"`
	Provider wireProvider `json:"provider"`
	Server   *wireFigures `json:"server,omitempty"`
	Backups  *Backups     `json:"backups,omitempty"`
}

// wireProvider is what answers a user's chats.
type wireProvider struct {
	Name       string `json:"name"`
	Model      string `json:"model"`
	Configured bool   `json:"configured"`
}

type wireFigures struct {
	*Figures
	Connections int `json:"connections"` // WebSockets of this process
}

// health tells a user what the server is, and an owner how it is doing.
func (s *Server) health(c echo.Context, who *account.Identity) (any, error) {
	ctx := c.Request().Context()
	health := wireHealth{Version: s.opts.Version, Uptime: int64(time.Since(s.started).Seconds()), Database: s.opts.Database}
	var err error
	health.Provider.Name, health.Provider.Model, err = s.Engine.DefaultModel(ctx, who.User.ID)
	if err != nil {
		return nil, err
	}
	health.Provider.Configured = health.Provider.Model != ""
	if !who.Owner() || s.opts.Figures == nil {
		return health, nil
	}
	f, err := s.opts.Figures(ctx)
	if err != nil {
		return nil, err
	}
	health.Server = &wireFigures{f, s.sockets.count()}
	if s.opts.Backups != nil {
		health.Backups, err = s.opts.Backups(ctx)
	}
	return health, err
}

// usageByUser tells an owner how much each user used, but not what for.
func (s *Server) usageByUser(c echo.Context, who *account.Identity) (any, error) {
	if !who.Owner() {
		return nil, fault.New(fault.Forbidden, "only an owner can read the usage of other users")
	}
	return api.Pages(func(u nodest.UserUsage) nodest.UserUsage { return u })(
		s.Engine.UsageByUser(c.Request().Context(), c.QueryParam("from"), c.QueryParam("to"), c.QueryParam("cursor"), limitOf(c)))
}

const backupPath = base + "/backup"

// backup streams a backup of everything to an owner, one at a time. It ends when the
// client goes away or does not read.
func (s *Server) backup(c echo.Context, who *account.Identity) error {
	if !who.Owner() {
		return fault.New(fault.Forbidden, "only an owner can download a backup")
	}
	if s.opts.Backup == nil {
		return fault.New(fault.NotFound, "no such route")
	}
	if !s.backingUp.TryLock() {
		return fault.New(fault.RateLimited, "another backup is being downloaded").After(10 * time.Second)
	}
	defer s.backingUp.Unlock()
	s.Accounts.Note(c.Request().Context(), &audit.Entry{Action: audit.Exported, ActorID: who.User.ID, Detail: "backup"})
	return s.sendWhole(c, "nodest-", func(ctx context.Context, out *download) error { return s.opts.Backup(ctx, out) })
}

// download writes a zip file to a client. Its headers are sent with the first bytes, so an
// error before them is an ordinary answer.
type download struct {
	c        echo.Context
	filename string
}

func (d *download) Write(p []byte) (int, error) {
	res := d.c.Response()
	if !res.Committed {
		h := res.Header()
		h.Set("Content-Type", "application/zip")
		h.Set("Content-Disposition", `attachment; filename="`+d.filename+`"`)
		h.Set("Cache-Control", "no-store")
		res.WriteHeader(http.StatusOK)
	}
	return res.Write(p)
}
