package server

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/server/api"
)

// wireRecord is an entry of the audit log, or several that were alike.
type wireRecord struct {
	ID      string       `json:"id"`
	At      op.Time      `json:"at"`
	Since   op.Time      `json:"since"`
	Count   int64        `json:"count"`
	Action  audit.Action `json:"action"`
	Actor   *wireName    `json:"actor"`
	Subject *wireName    `json:"subject"`
	Object  string       `json:"object,omitempty"`
	Detail  string       `json:"detail,omitempty"`
	Address string       `json:"address,omitempty"`
	Agent   string       `json:"agent,omitempty"`
}

// wireName is a user, with the name that the user had at the time.
type wireName struct {
	ID       string `json:"id"`
	Username string `json:"username"`
}

func wireNameOf(id, username string) *wireName {
	if id == "" {
		return nil
	}
	return &wireName{id, username}
}

func wireRecordOf(r *audit.Record) wireRecord {
	return wireRecord{
		ID: r.ID, At: op.Time(r.At), Since: op.Time(r.Since), Count: r.Count, Action: r.Action,
		Actor: wireNameOf(r.ActorID, r.ActorName), Subject: wireNameOf(r.SubjectID, r.SubjectName),
		Object: r.Object, Detail: r.Detail, Address: r.Address, Agent: r.Agent,
	}
}

// auditLog lists the audit log for an owner.
func (s *Server) auditLog(c echo.Context, who *account.Identity) (any, error) {
	f := audit.Filter{UserID: c.QueryParam("userId"), Action: audit.Action(c.QueryParam("action"))}
	if f.UserID != "" && !op.HasIDForm(f.UserID) {
		return nil, fault.InvalidField("userId", "format", "must be the id of a user")
	}
	return api.Pages(wireRecordOf)(s.Accounts.AuditLog(c.Request().Context(), who.User, f, c.QueryParam("cursor"), limitOf(c)))
}

// traced tells the audit log where a request comes from. It changes the request in its place: net/http looks
// at the body of this one when it decides how to end a connection that still sends.
func (s *Server) traced(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		*r = *r.WithContext(audit.With(r.Context(), s.originOf(r)))
		return next(c)
	}
}

// originOf says where a request comes from.
func (s *Server) originOf(r *http.Request) func() audit.Origin {
	return func() audit.Origin { return audit.Origin{Address: s.clientAddress(r), Agent: r.UserAgent()} }
}
