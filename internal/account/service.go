package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/alexedwards/argon2id"

	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/password"
)

// Options tune a Service. The zero value is ready to use.
type Options struct {
	AdminToken string           // a bearer token with the owner's rights; "" = none
	Password   *argon2id.Params // default 19 MiB, 2 passes, 1 lane
	SessionTTL time.Duration    // life of tokens made by a sign-in; default 90 days
	Now        func() time.Time // default time.Now
	Log        *slog.Logger     // default slog.Default()

	BuiltIn []string // names of providers that no server of an owner may have

	Left func(userID string) // called when an account is being removed, to stop its work; nil = nobody is told
}

func (o Options) withDefaults() Options {
	if o.Password == nil {
		o.Password = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	}
	o.SessionTTL = cmp.Or(o.SessionTTL, 90*24*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Left == nil {
		o.Left = func(string) {}
	}
	return o
}

// Service is safe for concurrent use.
type Service struct {
	store Store
	seal  *sealer
	opts  Options
	tries *limiter
	hash  *hashing
	dummy string // hash that a sign-in of an unknown user is compared with

	mu       sync.Mutex
	watchers map[int]func(userID, tokenID string)
	nextID   int
}

// New returns the service. secret (32 bytes) seals provider keys; with another
// secret the stored ones cannot be read any more.
func New(store Store, secret []byte, opts Options) (*Service, error) {
	opts = opts.withDefaults()
	seal, err := newSealer(secret)
	if err != nil {
		return nil, err
	}
	return &Service{
		store: store, seal: seal, opts: opts, tries: newLimiter(opts.Now),
		hash: newHashing(), dummy: nobodys(opts.Password),
		watchers: map[int]func(userID, tokenID string){},
	}, nil
}

// nobodys is a hash in PHC form that matches no password and takes as long to compare as a
// real one. It is not computed, because that would delay the start of every command.
func nobodys(p *argon2id.Params) string {
	zeros := func(n uint32) string { return base64.RawStdEncoding.EncodeToString(make([]byte, n)) }
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", p.Memory, p.Iterations, p.Parallelism, zeros(p.SaltLength), zeros(p.KeyLength))
}

// Now is the time by which tokens and tickets expire.
func (s *Service) Now() time.Time { return s.now() }

func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// Identity is who a request acts for.
type Identity struct {
	User      *User
	TokenID   string // "" = the admin token
	ExpiresAt *time.Time
	hash      []byte
	maker     string // the id of an owner's token that made a link for this user; "" = none
}

// Owner says whether the identity may manage users.
func (i *Identity) Owner() bool { return i.User.Role == RoleOwner }

// Authenticate returns the identity behind a bearer token. It returns
// fault.Unauthenticated for an unknown or revoked one and fault.TokenExpired
// for one whose time is over.
func (s *Service) Authenticate(ctx context.Context, token string) (*Identity, error) {
	if token == "" {
		return nil, fault.New(fault.Unauthenticated, "no token given")
	}
	if s.isAdmin(token) {
		owner, err := s.Owner(ctx)
		if err != nil {
			return nil, err
		}
		return &Identity{User: owner}, nil
	}
	return s.byHash(ctx, digest(token))
}

// Check repeats the authentication of an identity that was found earlier: a
// token may have been revoked by another process since.
func (s *Service) Check(ctx context.Context, id *Identity) error {
	if id.TokenID == "" {
		return nil
	}
	_, err := s.byHash(ctx, id.hash)
	return err
}

func (s *Service) byHash(ctx context.Context, hash []byte) (*Identity, error) {
	t, u, err := s.store.TokenByHash(ctx, hash)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.Unauthenticated, "the token is invalid or was revoked")
	}
	if err != nil {
		return nil, err
	}
	now := s.now()
	if t.ExpiresAt != nil && !now.Before(*t.ExpiresAt) {
		return nil, fault.New(fault.TokenExpired, "the token has expired")
	}
	if t.LastUsedAt == nil || now.Sub(*t.LastUsedAt) >= time.Minute {
		if err := s.store.TouchToken(ctx, t.UserID, t.ID, now.Truncate(time.Minute)); err != nil {
			s.opts.Log.WarnContext(ctx, "last use of a token not stored", "err", err)
		}
	}
	return &Identity{User: u, TokenID: t.ID, ExpiresAt: t.ExpiresAt, hash: hash}, nil
}

func (s *Service) isAdmin(token string) bool {
	return s.opts.AdminToken != "" &&
		subtle.ConstantTimeCompare(digest(token), digest(s.opts.AdminToken)) == 1
}

// Owner returns the first owner, making one if there is no user at all.
func (s *Service) Owner(ctx context.Context) (*User, error) {
	users, err := s.store.Users(ctx)
	if err != nil {
		return nil, err
	}
	var first *User
	for _, u := range users {
		if u.Role == RoleOwner && (first == nil || u.CreatedAt.Before(first.CreatedAt)) {
			first = u
		}
	}
	if first != nil {
		return first, nil
	}
	u := &User{ID: op.NewID(), Username: "owner", Role: RoleOwner, CreatedAt: s.now()}
	made, err := s.store.InsertFirstUser(ctx, u, &audit.Entry{Action: audit.UserCreated, SubjectID: u.ID, Detail: u.Role})
	if err != nil {
		return nil, err
	}
	if !made { // another process was faster
		return s.store.UserByName(ctx, "owner")
	}
	return u, nil
}

// Bootstrap prepares a start. Unused sign-in links of earlier starts end. On
// a loopback address it makes the owner if there is no user, and returns the secret of a
// one-time sign-in link for the owner. On any other address it returns "" and
// fault.NotConfigured if nobody could sign in: no user and no admin token.
func (s *Service) Bootstrap(ctx context.Context, loopback bool) (link string, err error) {
	users, err := s.store.Users(ctx)
	if err != nil {
		return "", err
	}
	for _, u := range users {
		if err := s.store.DeleteTickets(ctx, u.ID, PurposeSignIn); err != nil {
			return "", err
		}
	}
	if !loopback {
		if len(users) == 0 && s.opts.AdminToken == "" {
			return "", NobodyCanSignIn()
		}
		return "", nil
	}
	owner, err := s.Owner(ctx)
	if err != nil {
		return "", err
	}
	return s.NewTicket(ctx, owner.ID, PurposeSignIn)
}

// NobodyCanSignIn refuses to serve others a database without users.
func NobodyCanSignIn() error {
	return fault.New(fault.NotConfigured,
		"no user can sign in; set NODEST_ADMIN_TOKEN, or set the owner's password with `nodest user password --local`, before listening on a public address")
}

// Login checks a password and returns a new session token. from is the address
// of the client: after too many failures for a name from an address, or from an address, Login
// returns fault.RateLimited for a while without checking the password.
func (s *Service) Login(ctx context.Context, username, password, from string) (secret string, u *User, err error) {
	name := strings.ToLower(strings.TrimSpace(username))
	done, err := s.tries.try(name, from)
	if err != nil {
		return "", nil, err
	}
	u, err = s.knows(ctx, name, password)
	done(outcomeOf(err))
	if err != nil {
		failed := &audit.Entry{Action: audit.SignInFailed, Detail: byPassword}
		if u != nil {
			failed.SubjectID = u.ID
		}
		return "", nil, s.noteFailed(ctx, err, failed)
	}
	secret, err = s.signIn(ctx, &Identity{User: u}, "sign-in", byPassword)
	return secret, u, err
}

// How somebody signs in, in the audit log.
const (
	byPassword = "password"
	byLink     = "link"
	byToken    = "token"
)

// signIn makes a session for whoever has shown who they are.
func (s *Service) signIn(ctx context.Context, who *Identity, name, how string) (secret string, err error) {
	return s.derive(ctx, who, &Token{UserID: who.User.ID, Name: name, Session: true}, s.opts.SessionTTL,
		&audit.Entry{Action: audit.SignedIn, ActorID: who.User.ID, SubjectID: who.User.ID, Detail: how})
}

// noteFailed notes an attempt that ended with err if that says that it was a wrong guess, and returns err.
func (s *Service) noteFailed(ctx context.Context, err error, e *audit.Entry) error {
	if outcomeOf(err) == failed {
		s.Note(ctx, e)
	}
	return err
}

// Note stores an entry of the audit log for what stores nothing else. If that fails, the log of the server says so.
func (s *Service) Note(ctx context.Context, e *audit.Entry) {
	if err := s.store.Audit(context.WithoutCancel(ctx), e); err != nil {
		s.opts.Log.ErrorContext(ctx, "entry of the audit log not stored", "action", e.Action, "err", err)
	}
}

// outcomeOf is the outcome of a sign-in that ended with err.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return succeeded
	case fault.Is(err, fault.Unauthenticated):
		return failed
	}
	return undecided
}

// knows returns the user with this name, and fault.Unauthenticated if the password is another one. It takes
// as long for a name that does not exist.
func (s *Service) knows(ctx context.Context, name, password string) (*User, error) {
	u, err := s.store.UserByName(ctx, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	known := s.dummy
	if u != nil && u.PasswordHash != "" {
		known = u.PasswordHash
	}
	ok, err := s.compare(ctx, password, known)
	if err != nil {
		return nil, err
	}
	if !ok || u == nil || u.PasswordHash == "" {
		return u, fault.New(fault.Unauthenticated, "wrong username or password")
	}
	return u, nil
}

// compare reports whether a hash was made of a password. Old hashes are of the text as it was typed.
func (s *Service) compare(ctx context.Context, text, hash string) (ok bool, err error) {
	normal := password.Normal(text)
	err = s.hash.do(ctx, func() (err error) {
		ok, err = argon2id.ComparePasswordAndHash(normal, hash)
		if err == nil && !ok && normal != text {
			ok, err = argon2id.ComparePasswordAndHash(text, hash)
		}
		return err
	})
	return ok, err
}

// SignIn redeems the secret of a sign-in link for a session token. The session ends with
// the token that the link was made with. from is as in Login: guesses of
// links and tokens are limited too.
func (s *Service) SignIn(ctx context.Context, link, from string) (secret string, u *User, err error) {
	who, err := s.redeem(ctx, from, byLink, func() (*Identity, error) { return s.TakeTicket(ctx, PurposeSignIn, link) })
	if fault.Is(err, fault.Unauthenticated) {
		err = fault.New(fault.Unauthenticated, "the sign-in link is invalid, already used, or expired")
	}
	if err != nil {
		return "", nil, err
	}
	secret, err = s.signIn(ctx, who, "sign-in link", byLink)
	return secret, who.User, err
}

// SignInWithToken makes a session for whoever has a bearer token, as a browser
// needs one: signing out ends the session and not the token. The session ends
// when the token expires or is revoked.
func (s *Service) SignInWithToken(ctx context.Context, token, from string) (secret string, u *User, err error) {
	who, err := s.redeem(ctx, from, byToken, func() (*Identity, error) { return s.Authenticate(ctx, strings.TrimSpace(token)) })
	if err != nil {
		return "", nil, err
	}
	secret, err = s.signIn(ctx, who, "sign-in with a token", byToken)
	return secret, who.User, err
}

// redeem counts an attempt with a link or token, unless check accepts it or cannot decide.
func (s *Service) redeem(ctx context.Context, from, how string, check func() (*Identity, error)) (*Identity, error) {
	done, err := s.tries.try("", from)
	if err != nil {
		return nil, err
	}
	who, err := check()
	done(outcomeOf(err))
	if err != nil {
		return nil, s.noteFailed(ctx, err, &audit.Entry{Action: audit.SignInFailed, Detail: how})
	}
	return who, nil
}

// NewLink makes the secret of a one-time sign-in link: for oneself, or, as an
// owner, for the user of that name. It stops working when the token that by used ends.
func (s *Service) NewLink(ctx context.Context, by *Identity, username string) (secret string, u *User, err error) {
	u = by.User
	if username != "" && !strings.EqualFold(strings.TrimSpace(username), u.Username) {
		if err := onlyOwner(u); err != nil {
			return "", nil, err
		}
		if u, err = s.store.UserByName(ctx, strings.ToLower(strings.TrimSpace(username))); err != nil {
			return "", nil, err
		}
	}
	secret, err = s.insertTicket(ctx, by, u.ID, PurposeSignIn)
	if err == nil {
		s.Note(ctx, &audit.Entry{Action: audit.LinkCreated, ActorID: by.User.ID, SubjectID: u.ID})
	}
	return secret, u, err
}

// CreateToken makes a token; ttl 0 = it does not expire by itself. It ends with the token
// that by used, at the latest. The secret is returned here and never again.
//
// Errors: Invalid for the name and ttl; QuotaExceeded with MaxTokens tokens; Unauthenticated and
// TokenExpired if the token of by has ended.
func (s *Service) CreateToken(ctx context.Context, by *Identity, name string, ttl time.Duration) (secret string, t *Token, err error) {
	if n := len([]rune(name)); n > 100 {
		return "", nil, fault.InvalidField("name", "range", "must be at most 100 characters, not %d", n)
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return "", nil, fault.InvalidField("name", "encoding", "must not contain control characters")
	}
	if ttl < 0 {
		return "", nil, fault.InvalidField("expiresIn", "range", "must not be negative")
	}
	t = &Token{ID: op.NewID(), UserID: by.User.ID, Name: name}
	secret, err = s.derive(ctx, by, t, ttl, &audit.Entry{Action: audit.TokenCreated, ActorID: by.User.ID, SubjectID: by.User.ID, Object: t.ID})
	return secret, t, err
}

// derive completes and stores a token that by makes; ttl 0 = it does not expire by
// itself. It expires when the token of by does, at the latest, and is revoked with it.
func (s *Service) derive(ctx context.Context, by *Identity, t *Token, ttl time.Duration, note *audit.Entry) (secret string, err error) {
	secret = "nst_" + random()
	now := s.now()
	t.ID, t.Hash, t.CreatedAt, t.ParentID = cmp.Or(t.ID, op.NewID()), digest(secret), now, cmp.Or(by.TokenID, by.maker)
	if ttl > 0 {
		at := now.Add(ttl)
		t.ExpiresAt = &at
	}
	if by.ExpiresAt != nil && (t.ExpiresAt == nil || by.ExpiresAt.Before(*t.ExpiresAt)) {
		t.ExpiresAt = by.ExpiresAt
	}
	if t.ExpiresAt != nil && !now.Before(*t.ExpiresAt) { // since it was checked
		return "", fault.New(fault.TokenExpired, "the token has expired")
	}
	ended, err := s.store.InsertToken(ctx, t, note)
	s.tellEnded(ended)
	if t.ParentID != "" && fault.Is(err, fault.NotFound) { // it was revoked just now
		err = fault.Wrap(err, fault.Unauthenticated, "the token is invalid or was revoked")
	}
	return secret, err
}

// Tokens lists the user's tokens, newest first; limit is 1 to 200, 0 = 50.
func (s *Service) Tokens(ctx context.Context, userID, cursor string, limit int) (*op.Page[*Token], error) {
	limit, err := op.CheckLimit(limit)
	if err != nil {
		return nil, err
	}
	items, next, err := s.store.TokenPage(ctx, userID, cursor, limit)
	return &op.Page[*Token]{Items: items, NextCursor: next}, err
}

// RevokeToken ends a token at once, with every token that was made with it, also for other
// users, and tells the watchers.
func (s *Service) RevokeToken(ctx context.Context, userID, id string) error {
	return s.endToken(ctx, userID, id, &audit.Entry{Action: audit.TokenEnded, ActorID: userID, SubjectID: userID, Object: id})
}

func (s *Service) endToken(ctx context.Context, userID, id string, notes ...*audit.Entry) error {
	deleted, err := s.store.DeleteToken(ctx, userID, id, notes...)
	s.tellEnded(deleted)
	return err
}

func (s *Service) tellEnded(tokens []*Token) {
	for _, t := range tokens {
		s.tell(t.UserID, t.ID)
	}
}

// OnRevoke calls f after each revocation in this process: of one token, or of
// all of a user (tokenID ""). f must not block. stop ends that.
func (s *Service) OnRevoke(f func(userID, tokenID string)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID
	s.nextID++
	s.watchers[id] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, id)
	}
}

func (s *Service) tell(userID, tokenID string) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.watchers))
	s.mu.Unlock()
	for _, f := range all {
		f(userID, tokenID)
	}
}

// Purposes of tickets.
const (
	PurposeWS     = "ws"     // opens one WebSocket, lives 30 s
	PurposeSignIn = "signin" // signs in once, lives 24 h
)

// TicketLife is how long a ticket that by makes lives: 24 hours or 30 seconds, by its purpose,
// but no longer than the token of by.
func (s *Service) TicketLife(by *Identity, purpose string) time.Duration {
	life := 30 * time.Second
	if purpose == PurposeSignIn {
		life = 24 * time.Hour
	}
	if by.ExpiresAt != nil {
		life = max(0, min(life, by.ExpiresAt.Sub(s.now())))
	}
	return life
}

// NewTicket makes a single-use secret that stands for a user and no token.
func (s *Service) NewTicket(ctx context.Context, userID, purpose string) (secret string, err error) {
	return s.insertTicket(ctx, &Identity{}, userID, purpose)
}

// NewSocketTicket makes a ticket for a WebSocket. It stands for the token that
// asked for it: a connection that it opens ends with that token.
func (s *Service) NewSocketTicket(ctx context.Context, who *Identity) (secret string, err error) {
	return s.insertTicket(ctx, who, who.User.ID, PurposeWS)
}

func (s *Service) insertTicket(ctx context.Context, by *Identity, userID, purpose string) (secret string, err error) {
	secret = random()
	return secret, s.store.InsertTicket(ctx, &Ticket{
		Hash: digest(secret), Purpose: purpose, UserID: userID, TokenHash: by.hash, ExpiresAt: s.now().Add(s.TicketLife(by, purpose)),
	})
}

// TakeTicket redeems a ticket and returns its user, with the token that asked for it if that
// belongs to the same user. It returns fault.Unauthenticated if the ticket is unknown, used or
// expired, or if that token has ended.
func (s *Service) TakeTicket(ctx context.Context, purpose, secret string) (*Identity, error) {
	t, err := s.store.TakeTicket(ctx, purpose, digest(secret), s.now())
	return s.ticketHolder(ctx, t, err)
}

// PeekTicket is TakeTicket that does not use up the ticket.
func (s *Service) PeekTicket(ctx context.Context, purpose, secret string) (*Identity, error) {
	t, err := s.store.Ticket(ctx, purpose, digest(secret), s.now())
	return s.ticketHolder(ctx, t, err)
}

func (s *Service) ticketHolder(ctx context.Context, t *Ticket, err error) (*Identity, error) {
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.Unauthenticated, "the ticket is invalid, already used, or expired")
	}
	if err != nil {
		return nil, err
	}
	who := &Identity{}
	if len(t.TokenHash) > 0 {
		by, err := s.byHash(ctx, t.TokenHash)
		if fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.TokenExpired) {
			return nil, fault.New(fault.Unauthenticated, "the token that created this ticket has ended")
		}
		if err != nil {
			return nil, err
		}
		if by.User.ID == t.UserID {
			return by, nil
		}
		who.ExpiresAt, who.maker = by.ExpiresAt, by.TokenID // an owner made the ticket for another user
	}
	who.User, err = s.store.User(ctx, t.UserID)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.Unauthenticated, "this user no longer exists")
	}
	return who, err
}

func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
