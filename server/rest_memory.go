package server

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"nodest/account"
	"nodest/card"
	"nodest/fault"
	"nodest/memory"
)

// memoryBytes bounds a file of memories.
const memoryBytes = 32 << 20

// memoryRoutes serves memories as files, and what waits for a summary.
func (s *Server) memoryRoutes(e *echo.Echo) {
	e.GET(base+"/characters/:id/memories/export", s.signedIn(only(s.exportMemories)))
	e.POST(base+"/characters/:id/memories/import", s.signedIn(only(s.importMemories)))
	e.POST(base+"/conversations/:id/summaries", s.signedIn(s.summarise))
}

// exportMemories answers JSON Lines. They are gathered before the first is sent, so
// that a slow client does not hold the database and what fails is told.
func (s *Server) exportMemories(c echo.Context, who *account.Identity) error {
	var lines bytes.Buffer
	if err := s.Memory.Export(c.Request().Context(), who.User.ID, c.Param("id"), &lines); err != nil {
		return err
	}
	return attachment(c, lines.Bytes(), "application/x-ndjson", "memories.jsonl")
}

// lineTypes are the names that JSON Lines go by.
var lineTypes = []string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json", "text/plain"}

// importMemories reads JSON Lines: the body itself, or the file of a form. Invalid
// lines are reported, and the rest is imported.
func (s *Server) importMemories(c echo.Context, who *account.Identity) error {
	data, err := s.fileOrBody(c, memoryBytes, lineTypes...)
	if err != nil {
		return err
	}
	id := c.Param("id")
	call, err := s.fileCall(c, who, "memory.import/"+id, data)
	if err != nil {
		return err
	}
	got, err := s.Memory.Import(detached(c.Request().Context()), call, id, bytes.NewReader(data))
	if err != nil {
		return err
	}
	return answer(c, 0, call, importedMemories(id, got))
}

// importedMemories has the shape of all imports; the object is the result.
func importedMemories(characterID string, got *memory.Imported) imported {
	result := map[string]any{"created": got.Created, "skipped": got.Skipped, "failed": orEmpty(got.Failed)}
	var warnings []card.Warning
	for _, l := range got.LeftOut {
		warnings = append(warnings, card.Warning{Path: fmt.Sprintf("line %d", l.Line), Code: l.Code, Detail: l.Detail})
	}
	return imported{"memories", characterID, result, warnings}
}

// summarise is summary.create. With wait the answer is the summary; a socket, which
// does one thing after the other, is not held up for that.
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
