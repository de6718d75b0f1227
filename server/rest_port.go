package server

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"nodest/circle"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest/app"
	"nodest/server/api"
)

// The NodeST interface: the calls of the app, for porting it. A failure is
// answered with 200 and success false. Only a request that is not authenticated, exceeds
// a limit or is not JSON gets a problem answer. Unknown members are ignored.

// portRoutes serves the NodeST interface.
func (s *Server) portRoutes(e *echo.Echo) {
	e.POST(base+"/nodest/chat", s.signedIn(only(s.portChat)))
	e.POST(base+"/nodest/history", s.signedIn(only(s.portHistory)))
	e.POST(base+"/nodest/circle", s.signedIn(only(s.portCircle)))
}

// portData is what the app sends to chat. The provider's key is used for this request
// alone and never stored.
type portData struct {
	app.Request
	APIKey string `json:"apiKey,omitempty"`
}

type portHistoryData struct {
	app.HistoryRequest
	APIKey string `json:"apiKey,omitempty"`
}

// portFailure is the answer to a call that failed.
type portFailure struct {
	Success bool       `json:"success"` // false
	OK      *bool      `json:"ok,omitempty"`
	Error   string     `json:"error"`
	Code    fault.Code `json:"code"`
}

const portChat = "nodest.chat"

func (s *Server) portChat(c echo.Context, who *account.Identity) error {
	var in portData
	return s.ported(c, who, portChat, &in, &in.Request, nil, func(ctx context.Context, call *op.Call) (any, error) {
		in.Request.APIKey = in.APIKey
		got, err := s.App.Chat(ctx, call, in.Request)
		return struct {
			Success bool `json:"success"`
			*app.Answer
		}{true, got}, err
	})
}

func (s *Server) portHistory(c echo.Context, who *account.Identity) error {
	var in portHistoryData
	return s.ported(c, who, "nodest.history", &in, &in.HistoryRequest, new(bool), func(ctx context.Context, call *op.Call) (any, error) {
		in.HistoryRequest.APIKey = in.APIKey
		got, err := s.App.History(ctx, call, in.HistoryRequest)
		return struct {
			Success bool `json:"success"`
			*app.HistoryAnswer
		}{true, got}, err
	})
}

// portCircleData is what the app sends to the circle. Its content has more members than are read.
type portCircleData struct {
	Type        string          `json:"type"`
	Content     json.RawMessage `json:"content"`
	ResponderID string          `json:"responderId"`
}

// portCircle asks a character for its reaction and stores nothing.
func (s *Server) portCircle(c echo.Context, who *account.Identity) error {
	var in portCircleData
	return s.ported(c, who, "nodest.circle", &in, &in, nil, func(ctx context.Context, call *op.Call) (any, error) {
		asked := circle.Interaction{Type: in.Type, ResponderID: in.ResponderID}
		if err := op.DecodeLenient("content", in.Content, &asked.Content); err != nil {
			return nil, err
		}
		if err := s.App.NameInCircle(ctx, call.UserID, &asked); err != nil {
			return nil, err
		}
		return s.Circle.Interact(ctx, call.UserID, asked)
	})
}

// ported answers one call of the interface. in is what its body is read into. The
// idempotency key is bound to content, which must not contain the provider's key. ok is a
// member of the answer to some calls that failed.
func (s *Server) ported(c echo.Context, who *account.Identity, name string, in, content any, ok *bool, run func(context.Context, *op.Call) (any, error)) error {
	wrong, err := s.portBody(c, in)
	if err != nil {
		return err
	}
	call := s.call(c, who)
	result, err := any(nil), wrong
	if wrong == nil {
		result, err = s.runPorted(c.Request().Context(), call, name, content, run)
	}
	if err != nil {
		return s.portFails(c, err, ok)
	}
	return answer(c, 0, call, result)
}

func (s *Server) runPorted(caller context.Context, call *op.Call, name string, content any, run func(context.Context, *op.Call) (any, error)) (any, error) {
	if call.Key != "" && !plainKey.MatchString(call.Key) {
		return nil, badKey()
	}
	if s.draining.Load() {
		return nil, fault.New(fault.ShuttingDown, "the server is shutting down")
	}
	canonical, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	call.Hash = api.Hash(name, canonical)
	ctx := detached(caller)
	if call.Key == "" && name == portChat {
		// The app sends no keys. A second tap, or a retry while the first call still waits for its
		// reply, has the answer of the first.
		result, err, _ := s.appCalls.Do(call.UserID+"/"+call.Hash, func() (any, error) { return run(ctx, call) })
		return result, err
	}
	return s.once(ctx, caller, call, func() (any, error) { return run(ctx, call) })
}

// characterMembers are the members of the circle's operations that name characters.
var characterMembers = []string{"authorId", "characterId", "targetId"}

// ourMembers puts our ids in the place of the app's keys of characters in the data of an operation
// of the circle.
func (s *Server) ourMembers(ctx context.Context, who *account.Identity, r *route, members map[string]json.RawMessage) error {
	if !strings.HasPrefix(r.path, "/circle/") {
		return nil
	}
	for _, name := range characterMembers {
		var key string
		if raw := members[name]; op.IsNull(raw) || json.Unmarshal(raw, &key) != nil {
			continue // the operation says what is wrong
		}
		id, err := s.ourCharacter(ctx, who.User.ID, key)
		if err != nil {
			return err
		}
		members[name] = op.MustJSON(id)
	}
	return nil
}

// ourPath puts our id in the place of the app's key of the character that a path is about.
func (s *Server) ourPath(c echo.Context, who *account.Identity) error {
	ofCharacter := func(of string) bool {
		rest, ok := strings.CutPrefix(c.Path(), base+of+"/:id")
		return ok && (rest == "" || rest[0] == '/')
	}
	if !ofCharacter("/characters") && !ofCharacter("/circle/characters") {
		return nil
	}
	values := c.ParamValues()
	key := values[0]
	if c.Request().URL.RawPath != "" { // the router has not decoded it
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
	}
	id, err := s.ourCharacter(c.Request().Context(), who.User.ID, key)
	values[0] = id
	return err
}

// ourCharacter is our id of a character that the app calls by key, and any other text as it is.
func (s *Server) ourCharacter(ctx context.Context, userID, key string) (string, error) {
	if key == "" || op.HasIDForm(key) || !utf8.ValidString(key) {
		return key, nil
	}
	id, err := s.App.CharacterID(ctx, userID, key)
	if fault.Is(err, fault.NotFound) {
		return key, nil
	}
	return id, err
}

// portBody reads the members of a body that in, a pointer to a struct, knows. A
// member of another type is wrong, which is answered like any failure; err is for a body
// that is too large or not JSON.
func (s *Server) portBody(c echo.Context, in any) (wrong, err error) {
	body, err := s.readAll(c, api.DocumentBytes)
	if err != nil {
		return nil, err
	}
	if err := api.CheckJSON(body); err != nil {
		return nil, err
	}
	if bytes.TrimSpace(body)[0] != '{' {
		return fault.New(fault.BadRequest, "expected a JSON object"), nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	known := api.MembersOf(reflect.TypeOf(in).Elem())
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return known[name] == nil })
	if body, err = json.Marshal(members); err != nil {
		return nil, err
	}
	return api.Decode(body, in), nil
}

// portFails answers a failed call. The server's own limits are problems here too.
func (s *Server) portFails(c echo.Context, err error, ok *bool) error {
	f := fault.Public(err)
	if fault.Status(f.Code) == http.StatusTooManyRequests {
		return err
	}
	p := s.problemOf(idOf(c), c.Request().Method+" "+c.Path(), err)
	return answer(c, 0, &op.Call{}, portFailure{OK: ok, Error: p.Detail, Code: p.Code})
}
