package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest/usage"
	"nodest/server/api"
)

// accountRoutes serves sign-in, tokens, tickets and users. They are no
// operations of the engine and exist in REST only.
func (s *Server) accountRoutes(e *echo.Echo) {
	e.POST(base+"/auth/login", s.strangers(s.login))
	e.POST(base+"/auth/signin", s.strangers(s.signInWithSecret))
	for route, h := range map[string]accountHandler{
		"POST /auth/links":            reads(s, s.createLink),
		"POST /auth/logout":           s.logout,
		"GET /tokens":                 s.tokens,
		"POST /tokens":                reads(s, s.createToken),
		"DELETE /tokens/:id":          s.revokeToken,
		"POST /ws/tickets":            s.ticket,
		"GET /users":                  s.users,
		"POST /users":                 reads(s, s.createUser),
		"PATCH /users/:id":            reads(s, s.updateUser),
		"DELETE /users/:id":           s.deleteUser,
		"GET /providers":              s.providers,
		"PUT /providers/:name/key":    reads(s, s.setProviderKey),
		"DELETE /providers/:name/key": s.deleteProviderKey,
		"POST /providers/:name/test":  reads(s, s.testProvider),
		"GET /servers":                s.modelServers,
		"PUT /servers/:name":          reads(s, s.putModelServer),
		"DELETE /servers/:name":       s.deleteModelServer,
		"POST /servers/:name/test":    reads(s, s.testModelServer),
	} {
		method, path, _ := strings.Cut(route, " ")
		var query []string
		if method == http.MethodGet { // a list
			query = []string{"limit", "cursor"}
		}
		e.Add(method, base+path, s.signedIn(only(h.handle, query...)))
	}
	e.GET(base+"/me", s.signedIn(only(accountHandler(s.me).handle)))
}

// accountHandler handles a request of a signed-in user. It answers 200 with its result,
// 201 with a created one, or 204 without one.
type accountHandler func(c echo.Context, who *account.Identity) (result any, err error)

// reads is an accountHandler that takes a JSON body.
func reads[In any](s *Server, h func(c echo.Context, who *account.Identity, in In) (any, error)) accountHandler {
	return func(c echo.Context, who *account.Identity) (any, error) {
		var in In
		if err := s.decodeBody(c, &in); err != nil {
			return nil, err
		}
		return h(c, who, in)
	}
}

// created is a result that was made by the request.
type created struct{ any }

func (h accountHandler) handle(c echo.Context, who *account.Identity) error {
	result, err := h(c, who)
	if err != nil {
		return err
	}
	switch result := result.(type) {
	case nil:
		return c.NoContent(http.StatusNoContent)
	case created:
		return answer(c, http.StatusCreated, &op.Call{}, result.any)
	}
	return answer(c, 0, &op.Call{}, result)
}

type wireUser struct {
	ID          string         `json:"id"`
	Username    string         `json:"username"`
	Role        string         `json:"role"`
	Limits      account.Limits `json:"limits"`
	HasPassword bool           `json:"hasPassword"`
	CreatedAt   op.Time        `json:"createdAt"`
}

func wireUserOf(u *account.User) wireUser {
	return wireUser{u.ID, u.Username, u.Role, u.Limits, u.PasswordHash != "", op.Time(u.CreatedAt)}
}

type wireToken struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Session    bool     `json:"session"`
	Current    bool     `json:"current,omitempty"` // this request used it
	CreatedAt  op.Time  `json:"createdAt"`
	LastUsedAt *op.Time `json:"lastUsedAt"`
	ExpiresAt  *op.Time `json:"expiresAt"`
	Token      string   `json:"token,omitempty"` // once, when it is made
}

func wireTokenOf(t *account.Token) wireToken {
	return wireToken{ID: t.ID, Name: t.Name, Session: t.Session, CreatedAt: op.Time(t.CreatedAt),
		LastUsedAt: (*op.Time)(t.LastUsedAt), ExpiresAt: (*op.Time)(t.ExpiresAt)}
}

// decodeBody reads the JSON body of a request strictly into v.
func (s *Server) decodeBody(c echo.Context, v any) error {
	limit := s.opts.BodyBytes
	if holdOf(c).who.user == "" {
		limit = signInBytes
	}
	body, err := s.body(c, limit)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	return api.Decode(body, v)
}

// signInBytes limits the size of a body of a client that has not signed in.
const signInBytes = 16 << 10

// strangers lets h see requests of clients that have not signed in.
func (s *Server) strangers(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		return s.holding(c, holder{network: s.clientNetwork(c.Request())}, func() error { return h(c) })
	}
}

func (s *Server) login(c echo.Context) error {
	var in struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if err := s.decodeBody(c, &in); err != nil {
		return err
	}
	for _, member := range []struct{ name, value string }{{"username", in.Username}, {"password", in.Password}} {
		if member.value == "" {
			return fault.InvalidField(member.name, "required", "required")
		}
	}
	token, u, err := s.Accounts.Login(c.Request().Context(), in.Username, in.Password, s.clientAddress(c.Request()))
	if err != nil {
		return err
	}
	return s.signedInAs(c, token, u)
}

// signInWithSecret makes a session from a one-time link or a bearer token.
func (s *Server) signInWithSecret(c echo.Context) error {
	var in struct {
		Link  string `json:"link"`
		Token string `json:"token"`
	}
	if err := s.decodeBody(c, &in); err != nil {
		return err
	}
	if in.Link == "" && in.Token == "" { // no attempt, so it does not count as a failed one
		return fault.InvalidField("link", "required", "required: the secret of a sign-in link, or give a bearer token as token")
	}
	signIn, secret := s.Accounts.SignIn, in.Link
	if _, behind, whole := strings.Cut(in.Link, "#"); whole { // as it was printed
		secret = behind
	}
	if in.Token != "" {
		signIn, secret = s.Accounts.SignInWithToken, in.Token
	}
	token, u, err := signIn(c.Request().Context(), secret, s.clientAddress(c.Request()))
	if err != nil {
		return err
	}
	return s.signedInAs(c, token, u)
}

type linkData struct {
	Username        string  `json:"username"`
	CurrentPassword *string `json:"currentPassword,omitempty"`
}

// createLink makes the secret of a one-time sign-in link.
func (s *Server) createLink(c echo.Context, who *account.Identity, in linkData) (any, error) {
	who, err := s.Accounts.Alone(c.Request().Context(), who, in.CurrentPassword)
	if err != nil {
		return nil, err
	}
	secret, u, err := s.Accounts.NewLink(c.Request().Context(), who, in.Username)
	if err != nil {
		return nil, err
	}
	lives := s.Accounts.TicketLife(who, account.PurposeSignIn)
	return created{map[string]any{
		"link": secret, "username": u.Username, "expiresIn": int(lives.Seconds()),
	}}, nil
}

// signedInAs answers a sign-in. A browser (it names its origin) gets the token as a cookie as well.
func (s *Server) signedInAs(c echo.Context, token string, u *account.User) error {
	r := c.Request()
	if r.Header.Get("Origin") != "" {
		if !s.originAllowed(r) {
			return foreignOrigin()
		}
		c.SetCookie(s.cookie(r, token, int((90 * 24 * time.Hour).Seconds())))
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, map[string]any{"token": token, "user": wireUserOf(u)})
}

func (s *Server) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: s.overTLS(r),
	}
}

func (s *Server) logout(c echo.Context, who *account.Identity) (any, error) {
	c.SetCookie(s.cookie(c.Request(), "", -1))
	if who.TokenID == "" {
		return nil, nil
	}
	return nil, s.Accounts.RevokeToken(c.Request().Context(), who.User.ID, who.TokenID)
}

func (s *Server) me(c echo.Context, who *account.Identity) (any, error) {
	ctx := c.Request().Context()
	quotas, err := s.Accounts.Quotas(ctx, who.User.ID)
	if err != nil {
		return nil, err
	}
	tokens, limit, err := s.Engine.TokensToday(ctx, who.User.ID)
	if limit > 0 {
		quotas["tokensPerDay"] = account.Quota{Used: tokens, Limit: limit}
	}
	if err != nil {
		return nil, err
	}
	spending, err := s.Engine.Spending(ctx, who.User.ID)
	return struct {
		wireUser
		Quotas   map[string]account.Quota `json:"quotas"`
		Spending *usage.Spending          `json:"spending,omitempty"`
	}{wireUserOf(who.User), quotas, spending}, err
}

func (s *Server) tokens(c echo.Context, who *account.Identity) (any, error) {
	return api.Pages(func(t *account.Token) wireToken {
		w := wireTokenOf(t)
		w.Current = t.ID == who.TokenID
		return w
	})(s.Accounts.Tokens(c.Request().Context(), who.User.ID, c.QueryParam("cursor"), limitOf(c)))
}

// limitOf is the parameter limit of a list: 0 = none is given, -1 = one that services refuse.
func limitOf(c echo.Context) int {
	text := c.QueryParam("limit")
	if text == "" {
		return 0
	}
	if limit, err := strconv.Atoi(text); err == nil && limit > 0 {
		return limit
	}
	return -1
}

type tokenData struct {
	Name            string  `json:"name"`
	ExpiresIn       string  `json:"expiresIn,omitempty"`
	CurrentPassword *string `json:"currentPassword,omitempty"`
}

func (s *Server) createToken(c echo.Context, who *account.Identity, in tokenData) (any, error) {
	var ttl time.Duration
	if in.ExpiresIn != "" {
		var err error
		if ttl, err = time.ParseDuration(in.ExpiresIn); err != nil || ttl <= 0 {
			return nil, fault.InvalidField("expiresIn", "format", "must be a duration such as 720h")
		}
	}
	who, err := s.Accounts.Alone(c.Request().Context(), who, in.CurrentPassword)
	if err != nil {
		return nil, err
	}
	secret, t, err := s.Accounts.CreateToken(c.Request().Context(), who, in.Name, ttl)
	if err != nil {
		return nil, err
	}
	w := wireTokenOf(t)
	w.Token = secret
	return created{w}, nil
}

func (s *Server) revokeToken(c echo.Context, who *account.Identity) (any, error) {
	return nil, s.Accounts.RevokeToken(c.Request().Context(), who.User.ID, c.Param("id"))
}

func (s *Server) ticket(c echo.Context, who *account.Identity) (any, error) {
	secret, err := s.Accounts.NewSocketTicket(c.Request().Context(), who)
	lives := s.Accounts.TicketLife(who, account.PurposeWS)
	return created{map[string]any{"ticket": secret, "expiresIn": int(lives.Seconds())}}, err
}

func (s *Server) users(c echo.Context, who *account.Identity) (any, error) {
	return api.Pages(wireUserOf)(s.Accounts.Users(c.Request().Context(), who.User, c.QueryParam("cursor"), limitOf(c)))
}

func (s *Server) createUser(c echo.Context, who *account.Identity, in account.NewUser) (any, error) {
	u, err := api.Result(wireUserOf)(s.Accounts.CreateUser(c.Request().Context(), who.User, in))
	return created{u}, err
}

func (s *Server) updateUser(c echo.Context, who *account.Identity, in account.UserPatch) (any, error) {
	return api.Result(wireUserOf)(s.Accounts.UpdateUser(c.Request().Context(), who, c.Param("id"), in))
}

func (s *Server) deleteUser(c echo.Context, who *account.Identity) (any, error) {
	return nil, s.Accounts.DeleteUser(c.Request().Context(), who.User, c.Param("id"))
}
