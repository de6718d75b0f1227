package server

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/audit"
	"nodest/internal/fault"
)

// rightsRoutes serves what users may do with all of their data, but for the import, which is an upload.
func (s *Server) rightsRoutes(e *echo.Echo) {
	e.GET(base+"/me/export", s.signedIn(only(s.exportAccount)))
	e.GET(base+"/sillytavern/export", s.signedIn(only(s.exportFolder)))
	e.DELETE(base+"/me", s.signedIn(only(reads(s, s.deleteMe).handle)))
}

// exportAccount streams everything of a user.
func (s *Server) exportAccount(c echo.Context, who *account.Identity) error {
	return s.exportOne(c, who, "account-", "everything", func(ctx context.Context, out *download) error {
		return s.Rights.Export(ctx, who.User.ID, who.User.Username, out)
	})
}

// exportFolder streams the folder of a user as SillyTavern has it.
func (s *Server) exportFolder(c echo.Context, who *account.Identity) error {
	return s.exportOne(c, who, "sillytavern-", "for SillyTavern", func(ctx context.Context, out *download) error {
		return s.Tavern.Export(ctx, who.User.ID, out)
	})
}

// exportOne streams one file at a time for each user.
func (s *Server) exportOne(c echo.Context, who *account.Identity, name, detail string, write func(context.Context, *download) error) error {
	if _, busy := s.exporting.LoadOrStore(who.User.ID, true); busy {
		return fault.New(fault.RateLimited, "another export of yours is being downloaded").After(10 * time.Second)
	}
	defer s.exporting.Delete(who.User.ID)
	s.Accounts.Note(c.Request().Context(), &audit.Entry{Action: audit.Exported, ActorID: who.User.ID, Detail: detail})
	return s.sendWhole(c, name, write)
}

// sendWhole sends a zip file while it is made. It ends when the client goes away or does not read.
func (s *Server) sendWhole(c echo.Context, name string, write func(ctx context.Context, out *download) error) error {
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := write(ctx, &download{c, name + time.Now().Format("20060102-150405") + ".zip"})
	if err == nil {
		err = http.NewResponseController(c.Response()).Flush()
	}
	if err == nil || !c.Response().Committed {
		return err
	}
	s.opts.Log.Warn("download not completed", "requestId", idOf(c), "err", err)
	panic(http.ErrAbortHandler) // so that the client does not take it for a whole one
}

type deleteMeData struct {
	CurrentPassword *string `json:"currentPassword,omitempty"`
	Username        string  `json:"username,omitempty"`
}

// deleteMe removes the account of whoever asks.
func (s *Server) deleteMe(c echo.Context, who *account.Identity, in deleteMeData) (any, error) {
	if err := s.Accounts.DeleteMe(detached(c.Request().Context()), who, in.CurrentPassword, in.Username); err != nil {
		return nil, err
	}
	c.SetCookie(s.cookie(c.Request(), "", -1))
	return nil, nil
}
