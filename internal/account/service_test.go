package account_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
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
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *testService) owner(t *testing.T) *account.User {
	t.Helper()
	u, err := o.Owner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (o *testService) member(t *testing.T, name string) *account.User {
	t.Helper()
	u, err := o.CreateUser(t.Context(), o.owner(t), account.NewUser{Username: name, Password: "correct horse"})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// identityOf returns the identity of a user without a token.
func identityOf(u *account.User) *account.Identity { return &account.Identity{User: u} }

func requireCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error, want one")
	}
	if got := fault.Public(err).Code; got != code {
		t.Fatalf("%v: fault.Public(err).Code is %q, want %q", err, got, code)
	}
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	_, err := o.Bootstrap(ctx, false)
	requireCode(t, err, fault.NotConfigured) // a public server, and nobody could sign in

	link, err := o.Bootstrap(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	token, u, err := o.SignIn(ctx, link, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	if u.Role != account.RoleOwner {
		t.Fatalf("u.Role is %q, want %q", u.Role, account.RoleOwner)
	}
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated) // a link works once

	who, err := o.Authenticate(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	if who.User.ID != u.ID {
		t.Fatalf("who.User.ID is %q, want %q", who.User.ID, u.ID)
	}
	if !who.Owner() {
		t.Fatal("who.Owner() is false, want true")
	}

	unused, err := o.Bootstrap(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	link, err = o.Bootstrap(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	if link != "" {
		t.Fatalf("no link on a public server: link is %q, want none", link)
	}
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
		if id == "" {
			t.Fatalf("id is %q, want more", id)
		}
		if id != ids[0] {
			t.Fatalf("id is %q, want %q", id, ids[0])
		}
	}
}

func TestAdminToken(t *testing.T) {
	t.Parallel()
	o := newTestService(t, func(opts *account.Options) { opts.AdminToken = "a long and random text" })
	_, err := o.Bootstrap(t.Context(), false)
	if err != nil {
		t.Fatalf("with an admin token somebody can sign in: %v", err)
	}
	who, err := o.Authenticate(t.Context(), "a long and random text")
	if err != nil {
		t.Fatal(err)
	}
	if !who.Owner() {
		t.Fatal("who.Owner() is false, want true")
	}
	if err := o.Check(t.Context(), who); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(tok.Hash), secret) {
		t.Fatalf("the secret itself is not stored: string(tok.Hash) is %q, want it without %q", string(tok.Hash), secret)
	}
	who, err := o.Authenticate(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}

	requireCode(t, o.RevokeToken(ctx, other.ID, tok.ID), fault.NotFound)
	var revoked []string
	stop := o.OnRevoke(func(userID, tokenID string) { revoked = append(revoked, userID+"/"+tokenID) })
	if err := o.RevokeToken(ctx, u.ID, tok.ID); err != nil {
		t.Fatal(err)
	}
	if want := ([]string{u.ID + "/" + tok.ID}); !reflect.DeepEqual(revoked, want) {
		t.Fatalf("revoked is %q, want %q", revoked, want)
	}
	_, err = o.Authenticate(ctx, secret)
	requireCode(t, err, fault.Unauthenticated)
	requireCode(t, o.Check(ctx, who), fault.Unauthenticated)
	stop()

	secret, _, err = o.CreateToken(ctx, identityOf(u), "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.TakeTicket(ctx, account.PurposeSignIn, ticket)
	requireCode(t, err, fault.Unauthenticated) // it has another purpose
	who, err := o.TakeTicket(ctx, account.PurposeWS, ticket)
	if err != nil {
		t.Fatal(err)
	}
	if who.User.ID != u.ID {
		t.Fatalf("who.User.ID is %q, want %q", who.User.ID, u.ID)
	}
	if who.TokenID != "" {
		t.Fatalf("who.TokenID is %q, want none", who.TokenID)
	}
	_, err = o.TakeTicket(ctx, account.PurposeWS, ticket)
	requireCode(t, err, fault.Unauthenticated)

	ticket, err = o.NewTicket(ctx, u.ID, account.PurposeWS)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	who, err := o.Authenticate(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := o.NewSocketTicket(ctx, who)
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.TakeTicket(ctx, account.PurposeWS, ticket)
	if err != nil {
		t.Fatal(err)
	}
	if got.User.ID != u.ID {
		t.Fatalf("got.User.ID is %q, want %q", got.User.ID, u.ID)
	}
	if got.TokenID != tok.ID {
		t.Fatalf("got.TokenID is %q, want %q", got.TokenID, tok.ID)
	}
	if !reflect.DeepEqual(got.ExpiresAt, who.ExpiresAt) {
		t.Fatalf("got.ExpiresAt is %+v, want %+v", got.ExpiresAt, who.ExpiresAt)
	}
	_, err = o.TakeTicket(ctx, account.PurposeWS, ticket)
	requireCode(t, err, fault.Unauthenticated)

	ticket, err = o.NewSocketTicket(ctx, who)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.RevokeToken(ctx, u.ID, tok.ID); err != nil {
		t.Fatal(err)
	}
	_, err = o.TakeTicket(ctx, account.PurposeWS, ticket)
	requireCode(t, err, fault.Unauthenticated)

	admin, err := o.NewSocketTicket(ctx, &account.Identity{User: u}) // as with the admin token
	if err != nil {
		t.Fatal(err)
	}
	got, err = o.TakeTicket(ctx, account.PurposeWS, admin)
	if err != nil {
		t.Fatal(err)
	}
	if got.TokenID != "" {
		t.Fatalf("got.TokenID is %q, want none", got.TokenID)
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	u := o.member(t, "Ann")
	_, got, err := o.Login(ctx, " ann ", "correct horse", "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != u.ID {
		t.Fatalf("got.ID is %q, want %q", got.ID, u.ID)
	}
	for name, password := range map[string]string{"ann": "wrong", "nobody": "correct horse", "owner": ""} {
		_, _, err := o.Login(ctx, name, password, "1.2.3.4")
		requireCode(t, err, fault.Unauthenticated)
	}
	_, err = o.CreateUser(ctx, o.owner(t), account.NewUser{Username: "ANN", Password: "correct horse"})
	requireCode(t, err, fault.Conflict)
}

func TestAPasswordIsTheSameOnEveryKeyboard(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	composed, decomposed := "caf\u00e9 au lait", "cafe\u0301 au lait"
	if _, err := o.CreateUser(ctx, o.owner(t), account.NewUser{Username: "new", Password: decomposed}); err != nil {
		t.Fatal(err)
	}
	old, err := argon2id.CreateHash(decomposed, cheapHash) // as earlier versions stored it
	if err != nil {
		t.Fatal(err)
	}
	if err := o.store.InsertUser(ctx, &account.User{ID: op.NewID(), Username: "old", Role: account.RoleMember, PasswordHash: old}); err != nil {
		t.Fatal(err)
	}
	for name, texts := range map[string][]string{"new": {composed, decomposed}, "old": {decomposed}} {
		for _, text := range texts {
			if _, _, err := o.Login(ctx, name, text, "1.2.3.4"); err != nil {
				t.Errorf("%s with %+q: %v", name, text, err)
			}
		}
	}
}

func TestCommonPasswordsAreRefusedWhereverOneIsSet(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann, weak := o.member(t, "marianne"), "Marianne1987"
	_, created := o.CreateUser(ctx, o.owner(t), account.NewUser{Username: "Marianne", Password: weak})
	_, changed := o.UpdateUser(ctx, identityOf(ann), ann.ID, account.UserPatch{Password: &weak, CurrentPassword: new("correct horse")})
	_, reset := o.UpdateUser(ctx, identityOf(o.owner(t)), ann.ID, account.UserPatch{Password: &weak})
	for how, err := range map[string]error{"created": created, "changed": changed, "reset": reset} {
		if e := fault.Public(err); len(e.Fields) != 1 || e.Fields[0].Field != "password" || e.Fields[0].Code != "common" {
			t.Errorf("%s: %v", how, err)
		}
	}
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
	if err != nil {
		t.Fatal(err)
	}
	same := account.RoleOwner
	_, err = o.UpdateUser(ctx, identityOf(owner), owner.ID, account.UserPatch{Role: &same})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Authenticate(ctx, secret)
	if err != nil {
		t.Fatalf("the role that somebody has already ends no token: %v", err)
	}
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
		if err == nil {
			t.Fatalf("%s: got no error, want one", name)
		}
		requireCode(t, err, fault.Invalid)
	}
}

func TestANewPasswordRevokesOldTokens(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann := o.member(t, "ann")
	secret, _, err := o.CreateToken(ctx, identityOf(ann), "phone", 0)
	if err != nil {
		t.Fatal(err)
	}
	link, _, err := o.NewLink(ctx, identityOf(ann), "")
	if err != nil {
		t.Fatal(err)
	}
	other := "another password"
	_, err = o.UpdateUser(ctx, identityOf(o.owner(t)), ann.ID, account.UserPatch{Password: &other})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Authenticate(ctx, secret)
	requireCode(t, err, fault.Unauthenticated)
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated)
	_, _, err = o.Login(ctx, "ann", other, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.DeleteUser(ctx, o.owner(t), ann.ID); err != nil {
		t.Fatal(err)
	}
	_, _, err = o.Login(ctx, "ann", other, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated)
}

func TestProviderKeysAreEncrypted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann, bob := o.member(t, "ann"), o.member(t, "bob")
	if err := o.SetProviderKey(ctx, ann.ID, "gemini", "AIza-secret"); err != nil {
		t.Fatal(err)
	}
	rows, err := o.store.ProviderKeys(ctx, ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(rows[0].Sealed), "secret") {
		t.Fatalf("string(rows[0].Sealed) is %q, want it without %q", string(rows[0].Sealed), "secret")
	}

	keys, err := o.ProviderKeys(ctx, ann.ID)
	if err != nil {
		t.Fatal(err)
	}
	if want := (map[string]string{"gemini": "AIza-secret"}); !reflect.DeepEqual(keys, want) {
		t.Fatalf("keys is %+v, want %+v", keys, want)
	}

	if err := o.store.PutProviderKey(ctx, bob.ID, rows[0]); err != nil {
		t.Fatal(err)
	} // moved to another user's row
	keys, err = o.ProviderKeys(ctx, bob.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 0 {
		t.Fatalf("keys is %+v, want none", keys)
	}
	if got := o.log.String(); strings.Contains(got, "secret-") {
		t.Fatalf("o.log.String() is %q, want it without %q", got, "secret-")
	}

	if err := o.DeleteProviderKey(ctx, ann.ID, "gemini"); err != nil {
		t.Fatal(err)
	}
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
		if len(s) != 32 {
			t.Fatalf("s has %d, want %d: %q", len(s), 32, s)
		}
		if !bytes.Equal(s, secrets[0]) {
			t.Fatalf("s is %q, want %q", s, secrets[0])
		}
	}
	info, err := os.Stat(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != os.FileMode(0o600) {
		t.Fatalf("info.Mode().Perm() is %d, want %d", got, os.FileMode(0o600))
	}

	configured, err := account.Secret(dir, "from the environment")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(configured, secrets[0]) {
		t.Fatalf("configured is %+v, want another", configured)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = account.Secret(dir, "")
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("got error %v, want one with %q", err, "damaged")
	}
}
