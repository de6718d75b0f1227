package server

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"regexp"
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

// lintBytes limits the size of a document to check.
const lintBytes = 32 << 20

// operationRoutes serves the REST routes of the operations.
func (s *Server) operationRoutes(e *echo.Echo) {
	for _, table := range [][]operation{operations, documentOperations} {
		for i := range table {
			if table[i].route != "" {
				r := routeOf(&table[i])
				e.Add(r.method, base+r.path, s.signedIn(s.operation(r)))
			}
		}
	}
	e.POST(base+"/lint", s.signedIn(only(s.lint)))
	e.PUT(base+"/devices/:id/ack", s.signedIn(only(s.deviceAck)))
}

// route is an operation in REST.
type route struct {
	*operation
	method, path string
	params       []string                // members in the path, in order
	query        map[string]reflect.Type // parameters of the query; nil = the handler has read it
}

var pathParam = regexp.MustCompile(`:\w+`)

// routeOf reads the route of an operation. In its path, openapi.yaml and so echo call
// the first parameter id, and further ones by their first letter: mid for memoryId.
func routeOf(o *operation) *route {
	r := &route{operation: o, query: map[string]reflect.Type{}}
	r.method, r.path, _ = strings.Cut(o.route, " ")
	r.path = pathParam.ReplaceAllStringFunc(r.path, func(param string) string {
		r.params = append(r.params, param[1:])
		if len(r.params) == 1 {
			return ":id"
		}
		return param[:2] + "id"
	})
	if r.method == http.MethodGet || r.method == http.MethodDelete {
		maps.Copy(r.query, o.data.members)
		for _, member := range r.params {
			delete(r.query, member)
		}
	}
	return r
}

// operation is the handler of a route. A generation that it begins is not bound to the
// request: a client that goes away finds the reply later.
func (s *Server) operation(r *route) handler {
	return func(c echo.Context, who *account.Identity) error {
		data, err := s.routeData(c, r)
		if err != nil {
			return err
		}
		call := s.call(c, who)
		if (r.starts || r.attaches) && wantsStream(c.Request()) {
			return s.stream(c, who, r.operation, call, data)
		}
		result, err := s.perform(detached(c.Request().Context()), r.operation, call, data, false)
		if err != nil {
			return lostUpdate(c, err)
		}
		status := r.status
		if got, _ := result.(*sent); got != nil && got.GenerationID != "" {
			if preferAsync(c.Request()) {
				c.Response().Header().Set("Preference-Applied", "respond-async")
				status = http.StatusAccepted
			} else if err := s.complete(c.Request().Context(), call.UserID, got); err != nil {
				return err
			}
		}
		return answer(c, status, call, result)
	}
}

// complete waits for the generation of an answer and fills in what came out.
// A failed generation is the failure of the request; its ids are in details.
func (s *Server) complete(ctx context.Context, userID string, got *sent) error {
	g, err := s.Engine.Wait(ctx, userID, got.GenerationID)
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
	m, err := s.Chats.Message(ctx, userID, got.written)
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
	maps.Copy(details, f.Details)
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
	return sendJSON(c, status, result)
}

// lostUpdate turns the conflict of a write with If-Match into what HTTP calls it; other
// conflicts stay what they are.
func lostUpdate(c echo.Context, err error) error {
	if c.Request().Header.Get("If-Match") == "" || !fault.Is(err, fault.Conflict) {
		return err
	}
	f := *fault.Public(err)
	if f.Details["current"] == nil {
		return err
	}
	f.Code = fault.PreconditionFailed
	return &f
}

// routeData makes the operation's data of the request's body, path and query: the
// same object that a WebSocket command would carry.
func (s *Server) routeData(c echo.Context, r *route) ([]byte, error) {
	members := map[string]json.RawMessage{}
	if r.method != http.MethodGet && r.method != http.MethodDelete {
		body, err := s.body(c, cmp.Or(r.bytes, s.opts.BodyBytes))
		if err != nil {
			return nil, err
		}
		if members, err = objectOf(body); err != nil {
			return nil, err
		}
	}
	for i, member := range r.params {
		if _, twice := members[member]; twice {
			return nil, fault.InvalidField(member, "unknown", "already given in the URL path")
		}
		members[member], _ = json.Marshal(c.ParamValues()[i])
	}
	if err := queryInto(members, c, r.query); err != nil {
		return nil, err
	}
	if err := r.setVersion(members, c.Request()); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// neverStored is the version that If-Match asks for with the ETag of a document
// that was never stored: "0".
const neverStored = -1

// setVersion turns the If-Match header into the member ifVersion. A write without that
// member refuses the header: a client must not believe in a protection that it does not
// have.
func (r *route) setVersion(members map[string]json.RawMessage, req *http.Request) error {
	tag := req.Header.Get("If-Match")
	switch {
	case tag == "" || tag == "*":
		return nil
	case !r.ifMatch && (r.method == http.MethodGet || r.method == http.MethodPost):
		return nil // there is no other change to overwrite
	case !r.ifMatch:
		return fault.New(fault.BadRequest, "this route does not support If-Match")
	}
	version, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(tag, "W/"), `"`), 10, 64)
	if err != nil || version < 0 {
		return fault.New(fault.PreconditionFailed, "If-Match is not an ETag from this server")
	}
	if version == 0 {
		version = neverStored
	}
	members["ifVersion"], err = json.Marshal(version)
	return err
}

// queryInto adds the parameters of the query, each with its type. One that is not
// known is refused, as a member is.
func queryInto(members map[string]json.RawMessage, c echo.Context, query map[string]reflect.Type) error {
	for name, values := range c.QueryParams() {
		as, known := query[name]
		if !known {
			return unknownParameter(name)
		}
		if as == nil {
			continue
		}
		if len(values) != 1 {
			return fault.InvalidField(name, "type", "must be given once")
		}
		if as.Kind() == reflect.Pointer {
			as = as.Elem()
		}
		value := values[0]
		switch as.Kind() {
		case reflect.Int, reflect.Int64:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return fault.InvalidField(name, "type", "must be a whole number")
			}
			value = strconv.FormatInt(n, 10) // JSON knows neither +5 nor 05
		case reflect.Bool:
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

// lint checks a document: the body itself, or the file of a form.
func (s *Server) lint(c echo.Context, who *account.Identity) error {
	r := c.Request()
	var f file
	var err error
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		f, err = s.file(c, lintBytes)
	} else if f.data, err = s.readAll(c, lintBytes); err == nil {
		f.name = "document.json"
		_, err = parseJSON(f.data)
	}
	if err != nil {
		return err
	}
	call := s.call(c, who)
	result, err := lint(f.data, f.name)(r.Context(), s, call)
	if err != nil {
		return err
	}
	return answer(c, 0, call, result)
}

// deviceAck is ack; the device is the one of the path.
func (s *Server) deviceAck(c echo.Context, who *account.Identity) error {
	if !op.IsClientID(c.Param("id")) {
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
