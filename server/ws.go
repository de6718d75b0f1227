package server

import (
	"github.com/labstack/echo/v4"

	"nodest/nodest"
)

const closeRestart = 1012

type sockets struct{ s *Server }

func (k *sockets) init(s *Server)                   { k.s = s }
func (k *sockets) beat()                            { <-k.s.ctx.Done() }
func (k *sockets) revoked(userID, tokenID string)   {}
func (k *sockets) goingAway()                       {}
func (k *sockets) closeAll(code int, reason string) {}
func (k *sockets) cut()                             {}

func (s *Server) streamRoutes(e *echo.Echo) {}

func (s *Server) streamReply(c echo.Context, o *operation, call *nodest.Call, data []byte) error {
	return nil
}

func (s *Server) streamGeneration(c echo.Context, call *nodest.Call, data []byte) error { return nil }
