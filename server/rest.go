package server

import (
	"cmp"
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

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/server/api"
)

const base = "/api/v1"

// lintBytes limits the size of a document to check.
const lintBytes = 32 << 20

// operationRoutes serves the REST routes of the operations.
func (s *Server) operationRoutes(e *echo.Echo) {
	for i := range api.Operations {
		if o := &api.Operations[i]; o.Route != "" {
			r := routeOf(o)
			path := base + r.path
			if strings.HasPrefix(r.path, "/api/") { // the path of another program
				path = r.path
			}
			e.Add(r.method, path, s.signedIn(s.operation(r)))
		}
	}
	e.POST(base+"/lint", s.signedIn(only(s.lint)))
	e.PUT(base+"/devices/:id/ack", s.signedIn(only(s.deviceAck)))
	e.POST(base+"/conversations/:id/summaries", s.signedIn(s.summarise))
	e.GET(base+"/research/:id/events", s.signedIn(only(s.researchEvents)))
}

// route is an operation in REST.
type route struct {
	*api.Operation
	method, path string
	params       []string                // members in the path, in order
	query        map[string]reflect.Type // parameters of the query; nil = the handler has read it
}

var pathParam = regexp.MustCompile(`:\w+`)

// routeOf reads the route of an operation. In its path, openapi.yaml and so echo call
// the first parameter id, and further ones by their first letter: mid for memoryId.
func routeOf(o *api.Operation) *route {
	r := &route{Operation: o, query: map[string]reflect.Type{}}
	r.method, r.path, _ = strings.Cut(o.Route, " ")
	r.path = pathParam.ReplaceAllStringFunc(r.path, func(param string) string {
		r.params = append(r.params, param[1:])
		if len(r.params) == 1 {
			return ":id"
		}
		return param[:2] + "id"
	})
	if r.method == http.MethodGet || r.method == http.MethodDelete {
		maps.Copy(r.query, o.Data.Members)
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
		data, err := s.routeData(c, who, r)
		if err != nil {
			return err
		}
		call := s.call(c, who)
		if (r.Starts || r.Attaches) && wantsStream(c.Request()) {
			return s.stream(c, who, r.Operation, call, data)
		}
		if err := holdOf(c).takeAnswer(c.Request().Context(), r.Operation); err != nil {
			return err
		}
		result, err := s.perform(detached(c.Request().Context()), c.Request().Context(), r.Operation, call, data)
		if err != nil {
			return err
		}
		status := r.Status
		if got, _ := result.(*api.Sent); got != nil && got.GenerationID != "" {
			if preferAsync(c.Request()) {
				c.Response().Header().Set("Preference-Applied", "respond-async")
				status = http.StatusAccepted
			} else {
				holdOf(c).release() // the body is read, and a reply may take minutes
				if err := s.Complete(c.Request().Context(), call.UserID, got); err != nil {
					return err
				}
			}
		}
		return answer(c, status, call, result)
	}
}

// answer writes the result of an operation.
func answer(c echo.Context, status int, call *op.Call, result any) error {
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	if call.Replayed {
		h.Set("Idempotency-Replayed", "true")
	}
	if v, ok := result.(api.Versioned); ok {
		h.Set("ETag", `"`+strconv.FormatInt(v.Version, 10)+`"`)
		result = v.Body // so that it is encoded once
	}
	if q, ok := result.(api.Queued); ok && q.Known {
		status = http.StatusOK
	}
	switch status {
	case 0:
		status = http.StatusOK
	case http.StatusNoContent:
		return c.NoContent(status)
	}
	return sendJSON(c, status, result)
}

// routeData makes the operation's data of the request's body, path and query: the
// same object that a WebSocket command would carry.
func (s *Server) routeData(c echo.Context, who *account.Identity, r *route) ([]byte, error) {
	members := map[string]json.RawMessage{}
	if r.method != http.MethodGet && r.method != http.MethodDelete {
		holdOf(c).document = r.Bytes > 0
		body, err := s.body(c, cmp.Or(r.Bytes, s.opts.BodyBytes))
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
	if err := s.ourMembers(c.Request().Context(), who, r, members); err != nil {
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

// setVersion turns the If-Match header into the member ifVersion. A write without that member
// refuses the header: a client must not believe in a protection that it does not have.
func (r *route) setVersion(members map[string]json.RawMessage, req *http.Request) error {
	tag := req.Header.Get("If-Match")
	switch {
	case tag == "" || tag == "*":
		return nil
	case !r.IfMatch && (r.method == http.MethodGet || r.method == http.MethodPost):
		return nil // there is no other change to overwrite
	case !r.IfMatch:
		return fault.New(fault.BadRequest, "this route does not support If-Match")
	}
	version, err := versionOf(req)
	if err == nil {
		members["ifVersion"], err = json.Marshal(version)
	}
	return err
}

// versionOf is the version that If-Match asks for; 0 = any.
func versionOf(req *http.Request) (int64, error) {
	tag := req.Header.Get("If-Match")
	if tag == "" || tag == "*" {
		return 0, nil
	}
	version, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(tag, "W/"), `"`), 10, 64)
	if err != nil || version < 0 {
		return 0, fault.New(fault.PreconditionFailed, "If-Match is not an ETag from this server")
	}
	if version == 0 {
		return neverStored, nil
	}
	return version, nil
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
	if err := api.CheckObject(body); err != nil {
		return nil, err
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
	holdOf(c).document = true
	var f api.File
	var err error
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		f, err = s.file(c, lintBytes)
	} else if f.Data, err = s.readAll(c, lintBytes); err == nil {
		f.Name = "document.json"
		err = api.CheckJSON(f.Data)
	}
	if err != nil {
		return err
	}
	call := s.call(c, who)
	result, err := api.Lint(call, f.Data, f.Name)
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
	result, err := s.perform(detached(c.Request().Context()), c.Request().Context(), s.ops["ack"], call, body)
	if err != nil {
		return err
	}
	return answer(c, 0, call, result)
}

// summarise is summary.create. With wait the answer is the summary; a WebSocket, which
// runs its commands one after the other, cannot wait for that.
func (s *Server) summarise(c echo.Context, who *account.Identity) error {
	wait, err := waits(c)
	if err != nil {
		return err
	}
	o := api.SummaryLater
	if wait {
		o = api.SummaryNow
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
