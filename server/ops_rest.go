package server

import (
	"cmp"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"nodest/account"
	"nodest/chat"
	"nodest/fault"
	"nodest/op"
)

const base = "/api/v1"

// lintBytes bounds a document that is sent to be looked at.
const lintBytes = 32 << 20

// operationRoutes serves the REST twins of the operations.
func (s *Server) operationRoutes(e *echo.Echo) {
	for _, table := range [][]operation{operations, documentOperations} {
		for i := range table {
			if o := &table[i]; o.method != "" {
				e.Add(o.method, base+o.path, s.signedIn(s.twin(o)))
			}
		}
	}
	e.GET(base+"/generations/:id", s.signedIn(s.generation))
	e.POST(base+"/lint", s.signedIn(only(s.lint)))
	e.PUT(base+"/devices/:id/ack", s.signedIn(only(s.deviceAck)))
}

// twin is the REST route of an operation.
func (s *Server) twin(o *operation) handler {
	return func(c echo.Context, who *account.Identity) error {
		data, err := s.twinData(c, o)
		if err != nil {
			return err
		}
		call := s.call(c, who)
		if o.starts {
			return s.twinStarts(c, who, o, call, data)
		}
		result, err := s.perform(detached(c.Request().Context()), o, call, data, false)
		if err != nil {
			return lostUpdate(c, err)
		}
		return answer(c, o.status, call, result)
	}
}

// twinStarts is the REST route of operations that may begin a generation. The
// generation is not bound to the request: a client that goes away finds the
// reply later.
func (s *Server) twinStarts(c echo.Context, who *account.Identity, o *operation, call *op.Call, data []byte) error {
	if wantsStream(c.Request()) {
		return s.streamReply(c, who, o, call, data)
	}
	result, err := s.perform(detached(c.Request().Context()), o, call, data, false)
	if err != nil {
		return lostUpdate(c, err)
	}
	got, _ := result.(*sent)
	if got == nil || got.GenerationID == "" {
		return answer(c, o.status, call, result)
	}
	if preferAsync(c.Request()) {
		c.Response().Header().Set("Preference-Applied", "respond-async")
		return answer(c, http.StatusAccepted, call, result)
	}
	if err := s.complete(c.Request().Context(), call.UserID, got); err != nil {
		return err
	}
	return answer(c, o.status, call, got)
}

// complete waits for the generation of an answer and fills in what came out.
// A failed generation is the failure of the request; its ids are in details.
func (s *Server) complete(ctx context.Context, userID string, got *sent) error {
	g, err := s.engine.Wait(ctx, userID, got.GenerationID)
	if err != nil {
		return err
	}
	if g.Status == chat.GenFailed {
		return failedReply(g)
	}
	got.Usage, got.PromptID = chat.WireUsage(g.Usage), g.PromptID
	if got.written == "" { // an impersonation stores no message
		got.Text = g.Text
		return nil
	}
	m, err := s.chats.Message(ctx, userID, got.written)
	switch {
	case fault.Is(err, fault.NotFound): // it was deleted: a reply beside another one that stayed empty
		*got.place = nil
	case err != nil:
		return err
	default:
		*got.place = chat.WireMessage(m)
	}
	return nil
}

func failedReply(g *chat.Generation) error {
	f := fault.New(fault.Internal, "the generation failed")
	if g.Error != nil {
		copied := *g.Error
		f = &copied
	}
	details := map[string]any{"generationId": g.ID}
	if g.MessageID != "" {
		details["messageId"] = g.MessageID
	}
	for k, v := range f.Details {
		details[k] = v
	}
	f.Details = details
	return f
}

// answer writes the result of an operation.
func answer(c echo.Context, status int, call *op.Call, result any) error {
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	if call.Replayed {
		h.Set("Idempotency-Replayed", "true")
	}
	if v, ok := result.(versioned); ok {
		h.Set("ETag", `"`+strconv.FormatInt(v.version, 10)+`"`)
	}
	switch status {
	case 0:
		status = http.StatusOK
	case http.StatusNoContent:
		return c.NoContent(status)
	}
	return c.JSON(status, result)
}

// lostUpdate turns the conflict of a write with If-Match into what HTTP calls it.
func lostUpdate(c echo.Context, err error) error {
	if c.Request().Header.Get("If-Match") == "" || !fault.Is(err, fault.Conflict) {
		return err
	}
	f := *fault.Public(err)
	f.Code = fault.PreconditionFailed
	return &f
}

// twinData makes the operation's data of the request's body, path and query: the
// same object that a WebSocket command would carry.
func (s *Server) twinData(c echo.Context, o *operation) ([]byte, error) {
	members := map[string]json.RawMessage{}
	if o.method != http.MethodGet && o.method != http.MethodDelete {
		body, err := s.body(c, cmp.Or(o.bytes, s.opts.BodyBytes))
		if err != nil {
			return nil, err
		}
		if members, err = objectOf(body); err != nil {
			return nil, err
		}
	}
	for name, member := range o.params {
		if _, twice := members[member]; twice {
			return nil, fault.InvalidField(member, "unknown", "already given in the URL path")
		}
		members[member], _ = json.Marshal(c.Param(name))
	}
	if err := queryInto(members, c, o); err != nil {
		return nil, err
	}
	if err := ifMatch(members, c.Request(), o); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// neverStored is the version that If-Match asks for with the ETag of a document
// that was never stored: "0".
const neverStored = -1

// ifMatch turns the If-Match header into the member of the data that says the
// same. Where there is none the header is refused: a client that asks for
// protection must not believe that it has it.
func ifMatch(members map[string]json.RawMessage, r *http.Request, o *operation) error {
	tag := r.Header.Get("If-Match")
	switch {
	case tag == "" || tag == "*":
		return nil
	case o.ifMatch == "" && (o.method == http.MethodGet || o.method == http.MethodPost):
		return nil // there is nothing that could be lost
	case o.ifMatch == "":
		return fault.New(fault.BadRequest, "this route does not support If-Match")
	}
	version, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(tag, "W/"), `"`), 10, 64)
	if err != nil || version < 0 {
		return fault.New(fault.PreconditionFailed, "If-Match is not an ETag from this server")
	}
	if version == 0 {
		version = neverStored
	}
	members[o.ifMatch], err = json.Marshal(version)
	return err
}

// handled is the type of a parameter that is no member of the data: the handler has
// read it.
const handled = "handled"

// queryInto adds the parameters of the query, each with its type. One that is not
// known is refused, as a member is.
func queryInto(members map[string]json.RawMessage, c echo.Context, o *operation) error {
	for name, values := range c.QueryParams() {
		kind, known := o.query[name]
		if !known {
			return unknownParameter(name)
		}
		if kind == handled {
			continue
		}
		if len(values) != 1 {
			return fault.InvalidField(name, "type", "must be given once")
		}
		value := values[0]
		switch kind {
		case "int":
			if _, err := strconv.ParseInt(value, 10, 64); err != nil {
				return fault.InvalidField(name, "type", "must be a whole number")
			}
		case "bool":
			if value != "true" && value != "false" {
				return fault.InvalidField(name, "type", "must be true or false")
			}
		default:
			if !utf8.ValidString(value) {
				return fault.InvalidField(name, "encoding", "must be valid UTF-8")
			}
			quoted, _ := json.Marshal(value)
			value = string(quoted)
		}
		members[name] = json.RawMessage(value)
	}
	return nil
}

// body reads a JSON body of at most limit bytes; an absent one is "".
func (s *Server) body(c echo.Context, limit int64) ([]byte, error) {
	r := c.Request()
	body, err := s.readAll(c, limit)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, fault.New(fault.UnsupportedMedia, "the body must be application/json")
	}
	return body, nil
}

// objectOf splits a JSON object into its members.
func objectOf(body []byte) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(body) == 0 {
		return members, nil
	}
	tree, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	if _, ok := tree.(map[string]any); !ok {
		return nil, fault.New(fault.BadRequest, "expected a JSON object")
	}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, fault.Wrap(err, fault.BadRequest, "the body is not a JSON object")
	}
	return members, nil
}

// wantsStream says whether the caller asked for server-sent events.
func wantsStream(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept"), ",") {
		if kind, _, err := mime.ParseMediaType(part); err == nil && kind == "text/event-stream" {
			return true
		}
	}
	return false
}

func preferAsync(r *http.Request) bool {
	for _, value := range r.Header.Values("Prefer") {
		for _, part := range strings.Split(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), "respond-async") {
				return true
			}
		}
	}
	return false
}

// lint looks at a document: the body itself, or the file of a form.
func (s *Server) lint(c echo.Context, who *account.Identity) error {
	r := c.Request()
	filename := "document.json"
	var data []byte
	var err error
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		data, filename, err = s.upload(c, lintBytes)
	} else if data, err = s.readAll(c, lintBytes); err == nil {
		_, err = parseJSON(data)
	}
	if err != nil {
		return fromEcho(err)
	}
	call := s.call(c, who)
	result, err := lint(data, filename)(r.Context(), s, call)
	if err != nil {
		return err
	}
	return answer(c, 0, call, result)
}

// deviceAck is the twin of ack; the device is the one of the path.
func (s *Server) deviceAck(c echo.Context, who *account.Identity) error {
	if !plainID.MatchString(c.Param("id")) {
		return fault.InvalidField("id", "range", "must be 1 to 64 characters from A-Z, a-z, 0-9, _ and -")
	}
	body, err := s.body(c, s.opts.BodyBytes)
	if err != nil {
		return err
	}
	call := s.call(c, who)
	call.Device = c.Param("id")
	result, err := s.perform(detached(c.Request().Context()), s.ops["ack"], call, body, false)
	if err != nil {
		return err
	}
	return answer(c, 0, call, result)
}

// generation is the twin of gen.attach: the text from an offset, or the rest as
// it comes.
func (s *Server) generation(c echo.Context, who *account.Identity) error {
	o := operation{
		method: http.MethodGet, params: map[string]string{"id": "generationId"}, query: map[string]string{"off": "int"},
		prepare: s.ops["gen.attach"].prepare,
	}
	data, err := s.twinData(c, &o)
	if err != nil {
		return err
	}
	call := s.call(c, who)
	if wantsStream(c.Request()) {
		return s.streamGeneration(c, who, call, data)
	}
	result, err := s.perform(c.Request().Context(), &o, call, data, false)
	if err != nil {
		return err
	}
	return answer(c, 0, call, result)
}
