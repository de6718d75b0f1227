package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"nodest/account"
	"nodest/card"
	"nodest/fault"
	"nodest/op"
)

// memoryBytes bounds a file of memories.
const memoryBytes = 32 << 20

// memoryRoutes serves memories as files, and the creation of summaries.
func (s *Server) memoryRoutes(e *echo.Echo) {
	e.GET(base+"/characters/:id/memories/export", s.exported(s.exportMemories))
	e.POST(base+"/characters/:id/memories/import", s.uploaded(upload{
		name: "memory.import", types: lineTypes, limit: memoryBytes, run: s.importMemories,
	}))
	e.POST(base+"/conversations/:id/summaries", s.signedIn(s.summarise))
}

// exportMemories answers JSON Lines. They are collected before the first is sent, so
// that a slow client does not block the database and a failure can be reported.
func (s *Server) exportMemories(c echo.Context, userID string) (data []byte, contentType, filename string, err error) {
	var lines bytes.Buffer
	err = s.Memory.Export(c.Request().Context(), userID, c.Param("id"), &lines)
	return lines.Bytes(), "application/x-ndjson", "memories.jsonl", err
}

// lineTypes are the content types in use for JSON Lines.
var lineTypes = []string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json", "text/plain"}

// importMemories reads JSON Lines. Invalid lines are reported, and the rest is
// imported.
func (s *Server) importMemories(ctx context.Context, call *op.Call, f file) (any, error) {
	got, err := s.Memory.Import(ctx, call, f.id, bytes.NewReader(f.data))
	if err != nil {
		return nil, err
	}
	result := map[string]any{"created": got.Created, "skipped": got.Skipped, "failed": orEmpty(got.Failed)}
	var warnings []card.Warning
	for _, l := range got.LeftOut {
		warnings = append(warnings, card.Warning{Path: fmt.Sprintf("line %d", l.Line), Code: l.Code, Detail: l.Detail})
	}
	return imported{"memories", f.id, result, warnings}, nil
}

// summarise is summary.create. With wait the answer is the summary; a WebSocket, which
// runs its commands one after the other, cannot wait for that.
func (s *Server) summarise(c echo.Context, who *account.Identity) error {
	wait, err := waits(c)
	if err != nil {
		return err
	}
	o := *s.ops["summary.create"]
	o.route, o.status = "POST /conversations/:conversationId/summaries", http.StatusAccepted
	if wait {
		o.command, o.status, o.data = "summary.now", http.StatusCreated, takes(summaryNow)
	}
	r := routeOf(&o)
	r.query["wait"] = nil
	return s.operation(r)(c, who)
}

// waits reads the parameter wait.
func waits(c echo.Context) (bool, error) {
	values := c.QueryParams()["wait"]
	if len(values) == 0 {
		return false, nil
	}
	wait, known := map[string]bool{"1": true, "true": true, "0": false, "false": false}[values[0]]
	if !known || len(values) > 1 {
		return false, fault.InvalidField("wait", "type", "must be given once, as 1 or 0")
	}
	return wait, nil
}
