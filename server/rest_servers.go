package server

import (
	"time"

	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/server/api"
)

// wireServer is an OpenAI-compatible server that an owner has added. Its key is in no answer.
type wireServer struct {
	Name      string  `json:"name"`
	BaseURL   string  `json:"baseUrl"`
	Model     string  `json:"model"`
	HasKey    bool    `json:"hasKey"`
	UpdatedAt op.Time `json:"updatedAt"`
}

func wireServerOf(m *account.ModelServer) wireServer {
	return wireServer{m.Name, m.BaseURL, m.Model, len(m.Sealed) > 0, op.Time(m.UpdatedAt)}
}

func (s *Server) modelServers(c echo.Context, who *account.Identity) (any, error) {
	return api.List(wireServerOf)(s.Accounts.ModelServers(c.Request().Context(), who.User))
}

type serverData struct {
	BaseURL string  `json:"baseUrl"`
	Model   string  `json:"model,omitempty"`
	Key     *string `json:"key,omitempty"`
}

func (s *Server) putModelServer(c echo.Context, who *account.Identity, in serverData) (any, error) {
	put, err := s.Accounts.PutModelServer(c.Request().Context(), who.User, c.Param("name"), account.ServerInput(in))
	if err != nil {
		return nil, err
	}
	s.tellProvider(c, who, put.Name, false)
	return wireServerOf(put), nil
}

func (s *Server) deleteModelServer(c echo.Context, who *account.Identity) (any, error) {
	name := c.Param("name")
	if err := s.Accounts.DeleteModelServer(c.Request().Context(), who.User, name); err != nil {
		return nil, err
	}
	s.tellProvider(c, who, name, true)
	return nil, nil
}

type serverTestData struct {
	BaseURL string  `json:"baseUrl"`
	Key     *string `json:"key,omitempty"`
}

// ServerCheck is how an OpenAI-compatible server answered when it was asked for its models.
type ServerCheck struct {
	Models []string // those for chats
	Took   time.Duration
	Error  *fault.Error // why it gave no list; nil = it did
}

// wireServerCheck is a ServerCheck for clients.
type wireServerCheck struct {
	OK     bool        `json:"ok"`
	Ms     int64       `json:"ms"`
	Models []string    `json:"models"`
	Error  *op.Failure `json:"error,omitempty"`
}

// testModelServer asks a server for its models, also before it is stored. That it fails is a result, too.
func (s *Server) testModelServer(c echo.Context, who *account.Identity, in serverTestData) (any, error) {
	if err := s.Accounts.ManagesServers(who.User); err != nil {
		return nil, err
	}
	if s.draining.Load() {
		return nil, fault.New(fault.ShuttingDown, "the server is shutting down")
	}
	baseURL, err := account.CheckBaseURL(in.BaseURL)
	if err != nil {
		return nil, err
	}
	ctx := c.Request().Context()
	key, err := s.Accounts.KeyForServer(ctx, c.Param("name"), baseURL, in.Key)
	if err != nil {
		return nil, err
	}
	check, err := s.Providers.TestServer(ctx, baseURL, key)
	if err != nil {
		return nil, err
	}
	return wireServerCheck{check.Error == nil, check.Took.Milliseconds(), check.Models, op.FailureOf(check.Error)}, nil
}
