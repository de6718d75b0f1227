package account_test

import (
	"reflect"
	"testing"
	"time"

	"nodest/internal/account"
	"nodest/internal/fault"
)

// The token may expire while it is exchanged: the session then does not outlive it.
func TestASessionEndsWithTheTokenItWasMadeFrom(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	owner := o.owner(t)
	for ttl := range 8 {
		o.clock.step = 0
		secret, _, err := o.CreateToken(ctx, identityOf(owner), "short", time.Duration(ttl+1)*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		o.clock.step = time.Second // with every look at the clock
		session, _, err := o.SignInWithToken(ctx, secret, "1.2.3.4")
		if err != nil {
			requireCode(t, err, fault.TokenExpired)
			continue
		}
		o.clock.step = 0
		o.clock.forward(10 * time.Second)
		_, err = o.Authenticate(ctx, session)
		requireCode(t, err, fault.TokenExpired)
	}
}

func TestOwnersCreateLinksForAllAndMembersForThemselves(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	owner, ann, bob := o.owner(t), o.member(t, "Ann"), o.member(t, "bob")
	for _, c := range []struct {
		by   *account.User
		name string
		want *account.User
	}{{owner, "", owner}, {owner, " ANN ", ann}, {ann, "", ann}, {ann, "ann", ann}} {
		link, whose, err := o.NewLink(ctx, identityOf(c.by), c.name)
		if err != nil {
			t.Fatal(err)
		}
		if whose.ID != c.want.ID {
			t.Fatalf("whose.ID is %q, want %q", whose.ID, c.want.ID)
		}
		_, in, err := o.SignIn(ctx, link, "1.2.3.4")
		if err != nil {
			t.Fatal(err)
		}
		if in.ID != c.want.ID {
			t.Fatalf("in.ID is %q, want %q", in.ID, c.want.ID)
		}
	}
	for _, name := range []string{"bob", "owner", "nobody"} { // a member does not learn who exists
		_, _, err := o.NewLink(ctx, identityOf(ann), name)
		requireCode(t, err, fault.Forbidden)
	}
	_, _, err := o.NewLink(ctx, identityOf(owner), "nobody")
	requireCode(t, err, fault.NotFound)

	link, _, err := o.NewLink(ctx, identityOf(owner), "bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.DeleteUser(ctx, owner, bob.ID); err != nil {
		t.Fatal(err)
	}
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated)
}

func TestSigningInWithATokenCreatesASession(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t, func(opts *account.Options) { opts.AdminToken = "a long and random text" })
	ann := o.member(t, "ann")
	secret, tok, err := o.CreateToken(ctx, identityOf(ann), "phone", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	session, u, err := o.SignInWithToken(ctx, " "+secret+"\n", "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	if u.ID != ann.ID {
		t.Fatalf("u.ID is %q, want %q", u.ID, ann.ID)
	}
	if session == secret {
		t.Fatalf("got %q, want another", session)
	}
	who, err := o.Authenticate(ctx, session)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*who.ExpiresAt, *tok.ExpiresAt) {
		t.Fatalf("the session expires with the token: *who.ExpiresAt is %+v, want %+v", *who.ExpiresAt, *tok.ExpiresAt)
	}
	if err := o.RevokeToken(ctx, ann.ID, who.TokenID); err != nil {
		t.Fatal(err)
	}
	_, err = o.Authenticate(ctx, secret)
	if err != nil {
		t.Fatalf("signing out does not revoke the token: %v", err)
	}

	session, _, err = o.SignInWithToken(ctx, secret, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	var revoked []string
	stop := o.OnRevoke(func(_, tokenID string) { revoked = append(revoked, tokenID) })
	who, err = o.Authenticate(ctx, session)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.RevokeToken(ctx, ann.ID, tok.ID); err != nil {
		t.Fatal(err)
	}
	stop()
	_, err = o.Authenticate(ctx, session)
	requireCode(t, err, fault.Unauthenticated)
	if want := ([]string{tok.ID, who.TokenID}); !reflect.DeepEqual(revoked, want) {
		t.Fatalf("the sockets of both are closed: revoked is %q, want %q", revoked, want)
	}

	_, u, err = o.SignInWithToken(ctx, "a long and random text", "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	if want := o.owner(t).ID; u.ID != want {
		t.Fatalf("u.ID is %q, want %q", u.ID, want)
	}
}

func TestChangingOnesOwnPassword(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann, bob := o.member(t, "ann"), o.member(t, "bob")
	phone, _, err := o.CreateToken(ctx, identityOf(ann), "phone", 0)
	if err != nil {
		t.Fatal(err)
	}
	here, _, err := o.Login(ctx, "ann", "correct horse", "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, _, err := o.Login(ctx, "ann", "correct horse", "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	who, err := o.Authenticate(ctx, here)
	if err != nil {
		t.Fatal(err)
	}
	link, _, err := o.NewLink(ctx, identityOf(ann), "")
	if err != nil {
		t.Fatal(err)
	}
	others, _, err := o.NewLink(ctx, identityOf(bob), "")
	if err != nil {
		t.Fatal(err)
	}

	old, wrong, next := "correct horse", "wrong horse", "battery staple"
	_, err = o.UpdateUser(ctx, who, ann.ID, account.UserPatch{Password: &next})
	requireCode(t, err, fault.Invalid)
	_, err = o.UpdateUser(ctx, who, ann.ID, account.UserPatch{Password: &next, CurrentPassword: &wrong})
	requireCode(t, err, fault.Invalid)
	_, err = o.UpdateUser(ctx, who, bob.ID, account.UserPatch{Password: &next, CurrentPassword: &old})
	requireCode(t, err, fault.Forbidden)
	owner := account.RoleOwner
	_, err = o.UpdateUser(ctx, who, ann.ID, account.UserPatch{Role: &owner})
	requireCode(t, err, fault.Forbidden)
	_, err = o.UpdateUser(ctx, who, ann.ID, account.UserPatch{Password: &next, CurrentPassword: &old, Limits: &account.LimitsPatch{}})
	requireCode(t, err, fault.Forbidden)

	_, err = o.UpdateUser(ctx, who, ann.ID, account.UserPatch{Password: &next, CurrentPassword: &old})
	if err != nil {
		t.Fatal(err)
	}
	for _, stays := range []string{here, phone} {
		_, err = o.Authenticate(ctx, stays)
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = o.Authenticate(ctx, elsewhere)
	requireCode(t, err, fault.Unauthenticated) // other sessions end
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated) // and sign-in links no longer work
	_, _, err = o.SignIn(ctx, others, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = o.Login(ctx, "ann", next, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
}

func TestGuessingTheCurrentPasswordIsLimited(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann := o.member(t, "ann")
	token, _, err := o.CreateToken(ctx, identityOf(ann), "phone", 0)
	if err != nil {
		t.Fatal(err)
	}
	who, err := o.Authenticate(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	old, wrong, next := "correct horse", "wrong horse", "battery staple"
	for range 5 {
		_, err = o.UpdateUser(ctx, who, ann.ID, account.UserPatch{Password: &next, CurrentPassword: &wrong})
		requireCode(t, err, fault.Invalid)
	}
	_, err = o.UpdateUser(ctx, who, ann.ID, account.UserPatch{Password: &next, CurrentPassword: &old})
	requireCode(t, err, fault.RateLimited)
	if got := fault.Public(err).Message; got != "too many wrong passwords; try again later" {
		t.Fatalf("fault.Public(err).Message is %q, want %q", got, "too many wrong passwords; try again later")
	}
}

func TestTheOwnerCanSetAPassword(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t, func(opts *account.Options) { opts.AdminToken = "a long and random text" })
	token, _, err := o.CreateToken(ctx, identityOf(o.owner(t)), "command line", 0)
	if err != nil {
		t.Fatal(err)
	}
	who, err := o.Authenticate(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	first, second := "the first password", "the second password"
	_, err = o.UpdateUser(ctx, who, who.User.ID, account.UserPatch{Password: &first})
	if err != nil {
		t.Fatalf("there was no password: %v", err)
	}
	_, _, err = o.Login(ctx, "owner", first, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.UpdateUser(ctx, who, who.User.ID, account.UserPatch{Password: &second})
	requireCode(t, err, fault.Invalid)
	admin, err := o.Authenticate(ctx, "a long and random text")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.UpdateUser(ctx, admin, who.User.ID, account.UserPatch{Password: &second})
	if err != nil {
		t.Fatalf("the admin token resets a forgotten password: %v", err)
	}
}
