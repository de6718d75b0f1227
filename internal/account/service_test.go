package account_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/stretchr/testify/require"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/store/storetest"
)

// clock is a clock that tests set forward.
type clock struct {
	mu   sync.Mutex
	now  time.Time
	step time.Duration // that passes with every look at it
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(c.step)
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// cheapHash makes password hashing fast.
var cheapHash = &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}

type testService struct {
	*account.Service
	store account.Store
	clock *clock
	log   *bytes.Buffer
}

func newTestService(t *testing.T, change ...func(*account.Options)) *testService {
	t.Helper()
	o := &testService{store: storetest.Open(t), clock: &clock{now: time.Now()}, log: &bytes.Buffer{}}
	opts := account.Options{Password: cheapHash, Now: o.clock.Now, Log: slog.New(slog.NewTextHandler(o.log, nil))}
	for _, f := range change {
		f(&opts)
	}
	var err error
	o.Service, err = account.New(o.store, bytes.Repeat([]byte{7}, 32), opts)
	require.NoError(t, err)
	return o
}

func (o *testService) owner(t *testing.T) *account.User {
	t.Helper()
	u, err := o.Owner(t.Context())
	require.NoError(t, err)
	return u
}

func (o *testService) member(t *testing.T, name string) *account.User {
	t.Helper()
	u, err := o.CreateUser(t.Context(), o.owner(t), account.NewUser{Username: name, Password: "correct horse"})
	require.NoError(t, err)
	return u
}

// identityOf returns the identity of a user without a token.
func identityOf(u *account.User) *account.Identity { return &account.Identity{User: u} }

func requireCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, fault.Public(err).Code, "%v", err)
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	_, err := o.Bootstrap(ctx, false)
	requireCode(t, err, fault.NotConfigured) // a public server, and nobody could sign in

	link, err := o.Bootstrap(ctx, true)
	require.NoError(t, err)
	token, u, err := o.SignIn(ctx, link, "1.2.3.4")
	require.NoError(t, err)
	require.Equal(t, account.RoleOwner, u.Role)
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated) // a link works once

	who, err := o.Authenticate(ctx, token)
	require.NoError(t, err)
	require.Equal(t, u.ID, who.User.ID)
	require.True(t, who.Owner())

	unused, err := o.Bootstrap(ctx, true)
	require.NoError(t, err)
	link, err = o.Bootstrap(ctx, false)
	require.NoError(t, err)
	require.Empty(t, link, "no link on a public server")
	_, _, err = o.SignIn(ctx, unused, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated) // links end with the next start
}

func TestTheFirstUserIsCreatedOnce(t *testing.T) {
	t.Parallel()
	o := newTestService(t)
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			if u, err := o.Owner(context.WithoutCancel(t.Context())); err == nil {
				ids[i] = u.ID
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		require.NotEmpty(t, id)
		require.Equal(t, ids[0], id)
	}
}

func TestAdminToken(t *testing.T) {
	t.Parallel()
	o := newTestService(t, func(opts *account.Options) { opts.AdminToken = "a long and random text" })
	_, err := o.Bootstrap(t.Context(), false)
	require.NoError(t, err, "with an admin token somebody can sign in")
	who, err := o.Authenticate(t.Context(), "a long and random text")
	require.NoError(t, err)
	require.True(t, who.Owner())
	require.NoError(t, o.Check(t.Context(), who))
	for _, wrong := range []string{"", "a long and random tex", "a long and random text "} {
		_, err := o.Authenticate(t.Context(), wrong)
		requireCode(t, err, fault.Unauthenticated)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	u, other := o.member(t, "ann"), o.member(t, "bob")
	secret, tok, err := o.CreateToken(ctx, identityOf(u), "phone", time.Hour)
	require.NoError(t, err)
	require.NotContains(t, string(tok.Hash), secret, "the secret itself is not stored")
	who, err := o.Authenticate(ctx, secret)
	require.NoError(t, err)

	requireCode(t, o.RevokeToken(ctx, other.ID, tok.ID), fault.NotFound)
	var revoked []string
	stop := o.OnRevoke(func(userID, tokenID string) { revoked = append(revoked, userID+"/"+tokenID) })
	require.NoError(t, o.RevokeToken(ctx, u.ID, tok.ID))
	require.Equal(t, []string{u.ID + "/" + tok.ID}, revoked)
	_, err = o.Authenticate(ctx, secret)
	requireCode(t, err, fault.Unauthenticated)
	requireCode(t, o.Check(ctx, who), fault.Unauthenticated)
	stop()

	secret, _, err = o.CreateToken(ctx, identityOf(u), "", time.Hour)
	require.NoError(t, err)
	o.clock.forward(time.Hour)
	_, err = o.Authenticate(ctx, secret)
	requireCode(t, err, fault.TokenExpired)
	_, _, err = o.CreateToken(ctx, identityOf(u), strings.Repeat("x", 101), 0)
	requireCode(t, err, fault.Invalid)
}

func TestTicketsWorkOnceAndExpire(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	u := o.member(t, "ann")
	ticket, err := o.NewTicket(ctx, u.ID, account.PurposeWS)
	require.NoError(t, err)
	_, err = o.TakeTicket(ctx, account.PurposeSignIn, ticket)
	requireCode(t, err, fault.Unauthenticated) // it has another purpose
	who, err := o.TakeTicket(ctx, account.PurposeWS, ticket)
	require.NoError(t, err)
	require.Equal(t, u.ID, who.User.ID)
	require.Empty(t, who.TokenID)
	_, err = o.TakeTicket(ctx, account.PurposeWS, ticket)
	requireCode(t, err, fault.Unauthenticated)

	ticket, err = o.NewTicket(ctx, u.ID, account.PurposeWS)
	require.NoError(t, err)
	o.clock.forward(31 * time.Second)
	_, err = o.TakeTicket(ctx, account.PurposeWS, ticket)
	requireCode(t, err, fault.Unauthenticated)
}

func TestASocketTicketActsAsItsToken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	u := o.member(t, "ann")
	secret, tok, err := o.CreateToken(ctx, identityOf(u), "phone", time.Hour)
	require.NoError(t, err)
	who, err := o.Authenticate(ctx, secret)
	require.NoError(t, err)
	ticket, err := o.NewSocketTicket(ctx, who)
	require.NoError(t, err)
	got, err := o.TakeTicket(ctx, account.PurposeWS, ticket)
	require.NoError(t, err)
	require.Equal(t, u.ID, got.User.ID)
	require.Equal(t, tok.ID, got.TokenID)
	require.Equal(t, who.ExpiresAt, got.ExpiresAt)
	_, err = o.TakeTicket(ctx, account.PurposeWS, ticket)
	requireCode(t, err, fault.Unauthenticated)

	ticket, err = o.NewSocketTicket(ctx, who)
	require.NoError(t, err)
	require.NoError(t, o.RevokeToken(ctx, u.ID, tok.ID))
	_, err = o.TakeTicket(ctx, account.PurposeWS, ticket)
	requireCode(t, err, fault.Unauthenticated)

	admin, err := o.NewSocketTicket(ctx, &account.Identity{User: u}) // as with the admin token
	require.NoError(t, err)
	got, err = o.TakeTicket(ctx, account.PurposeWS, admin)
	require.NoError(t, err)
	require.Empty(t, got.TokenID)
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	u := o.member(t, "Ann")
	_, got, err := o.Login(ctx, " ann ", "correct horse", "1.2.3.4")
	require.NoError(t, err)
	require.Equal(t, u.ID, got.ID)
	for name, password := range map[string]string{"ann": "wrong", "nobody": "correct horse", "owner": ""} {
		_, _, err := o.Login(ctx, name, password, "1.2.3.4")
		requireCode(t, err, fault.Unauthenticated)
	}
	_, err = o.CreateUser(ctx, o.owner(t), account.NewUser{Username: "ANN", Password: "correct horse"})
	requireCode(t, err, fault.Conflict)
}

func TestManagingUsersIsForOwners(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	owner, ann := o.owner(t), o.member(t, "ann")
	_, err := o.CreateUser(ctx, ann, account.NewUser{Username: "eve", Password: "correct horse"})
	requireCode(t, err, fault.Forbidden)
	_, err = o.Users(ctx, ann, "", 0)
	requireCode(t, err, fault.Forbidden)
	_, err = o.UpdateUser(ctx, identityOf(ann), owner.ID, account.UserPatch{})
	requireCode(t, err, fault.Forbidden)
	requireCode(t, o.DeleteUser(ctx, ann, owner.ID), fault.Forbidden)

	requireCode(t, o.DeleteUser(ctx, owner, owner.ID), fault.Conflict) // the last owner stays
	secret, _, err := o.CreateToken(ctx, identityOf(owner), "phone", 0)
	require.NoError(t, err)
	same := account.RoleOwner
	_, err = o.UpdateUser(ctx, identityOf(owner), owner.ID, account.UserPatch{Role: &same})
	require.NoError(t, err)
	_, err = o.Authenticate(ctx, secret)
	require.NoError(t, err, "the role that somebody has already ends no token")
	member := account.RoleMember
	_, err = o.UpdateUser(ctx, identityOf(owner), owner.ID, account.UserPatch{Role: &member})
	requireCode(t, err, fault.Conflict)

	for name, in := range map[string]account.NewUser{
		"control character": {Username: "ann\x00", Password: "correct horse"},
		"no name":           {Password: "correct horse"}, "long name": {Username: strings.Repeat("x", 65), Password: "correct horse"},
		"short password": {Username: "eve", Password: "short"}, "unknown role": {Username: "eve", Password: "correct horse", Role: "king"},
		"negative limit": {Username: "eve", Password: "correct horse", Limits: account.Limits{Generations: -1}},
	} {
		_, err := o.CreateUser(ctx, owner, in)
		require.Error(t, err, name)
		requireCode(t, err, fault.Invalid)
	}
}

func TestANewPasswordRevokesOldTokens(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann := o.member(t, "ann")
	secret, _, err := o.CreateToken(ctx, identityOf(ann), "phone", 0)
	require.NoError(t, err)
	link, _, err := o.NewLink(ctx, identityOf(ann), "")
	require.NoError(t, err)
	other := "another password"
	_, err = o.UpdateUser(ctx, identityOf(o.owner(t)), ann.ID, account.UserPatch{Password: &other})
	require.NoError(t, err)
	_, err = o.Authenticate(ctx, secret)
	requireCode(t, err, fault.Unauthenticated)
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated)
	_, _, err = o.Login(ctx, "ann", other, "1.2.3.4")
	require.NoError(t, err)
	require.NoError(t, o.DeleteUser(ctx, o.owner(t), ann.ID))
	_, _, err = o.Login(ctx, "ann", other, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated)
}

func TestProviderKeysAreEncrypted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann, bob := o.member(t, "ann"), o.member(t, "bob")
	require.NoError(t, o.SetProviderKey(ctx, ann.ID, "gemini", "AIza-secret"))
	rows, err := o.store.ProviderKeys(ctx, ann.ID)
	require.NoError(t, err)
	require.NotContains(t, string(rows[0].Sealed), "secret")

	keys, err := o.ProviderKeys(ctx, ann.ID)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"gemini": "AIza-secret"}, keys)

	require.NoError(t, o.store.PutProviderKey(ctx, bob.ID, rows[0])) // moved to another user's row
	keys, err = o.ProviderKeys(ctx, bob.ID)
	require.NoError(t, err)
	require.Empty(t, keys)
	require.NotContains(t, o.log.String(), "secret-")

	require.NoError(t, o.DeleteProviderKey(ctx, ann.ID, "gemini"))
	requireCode(t, o.DeleteProviderKey(ctx, ann.ID, "gemini"), fault.NotFound)
	requireCode(t, o.SetProviderKey(ctx, ann.ID, "gemini", "  "), fault.Invalid)
	requireCode(t, o.SetProviderKey(ctx, ann.ID, "gemini", "AIza\r\nX-Header: 1"), fault.Invalid)
}

func TestTheSecretIsCreatedOnceAndPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secrets := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() { secrets[i], _ = account.Secret(dir, "") })
	}
	wg.Wait()
	for _, s := range secrets {
		require.Len(t, s, 32)
		require.Equal(t, secrets[0], s)
	}
	info, err := os.Stat(filepath.Join(dir, "secret.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	configured, err := account.Secret(dir, "from the environment")
	require.NoError(t, err)
	require.NotEqual(t, secrets[0], configured)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret.key"), []byte("half"), 0o600))
	_, err = account.Secret(dir, "")
	require.ErrorContains(t, err, "damaged")
}
