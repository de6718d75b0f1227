package account_test

import (
	"reflect"
	"testing"
	"time"

	"nodest/internal/account"
	"nodest/internal/fault"
)

// offspring makes, from a token of ann, one of everything that can be made with it: a
// token, a session, one from a link, and a token made with the token.
func (o *testService) offspring(t *testing.T, secret string) (made []string) {
	t.Helper()
	ctx := t.Context()
	who, err := o.Authenticate(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := o.CreateToken(ctx, who, "child", 0)
	if err != nil {
		t.Fatal(err)
	}
	session, _, err := o.SignInWithToken(ctx, secret, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	link, _, err := o.NewLink(ctx, who, "")
	if err != nil {
		t.Fatal(err)
	}
	phone, _, err := o.SignIn(ctx, link, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	again, err := o.Authenticate(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	grandchild, _, err := o.CreateToken(ctx, again, "grandchild", 365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return []string{token, session, phone, grandchild}
}

func TestATokenExpiresWithTheOneThatMadeIt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	secret, _, err := o.CreateToken(ctx, identityOf(o.member(t, "ann")), "an hour", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	made := o.offspring(t, secret)
	o.clock.forward(time.Hour)
	for _, secret := range made {
		_, err := o.Authenticate(ctx, secret)
		requireCode(t, err, fault.TokenExpired)
	}
}

func TestATokenIsRevokedWithTheOneThatMadeIt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann := o.member(t, "ann")
	for _, secret := range []string{first(o.CreateToken(ctx, identityOf(ann), "phone", 0)), first(o.Login(ctx, "ann", "correct horse", "1.2.3.4"))} {
		who, err := o.Authenticate(ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		made := o.offspring(t, secret)
		link, _, err := o.NewLink(ctx, who, "")
		if err != nil {
			t.Fatal(err)
		}
		ticket, err := o.NewSocketTicket(ctx, who)
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		stop := o.OnRevoke(func(string, string) { told++ })
		if err := o.RevokeToken(ctx, ann.ID, who.TokenID); err != nil {
			t.Fatal(err)
		}
		stop()
		if want := 1 + len(made); told != want {
			t.Fatalf("the sockets of all are closed: told is %d, want %d", told, want)
		}
		for _, secret := range made {
			_, err := o.Authenticate(ctx, secret)
			requireCode(t, err, fault.Unauthenticated)
		}
		_, _, err = o.SignIn(ctx, link, "1.2.3.4")
		requireCode(t, err, fault.Unauthenticated)
		_, err = o.TakeTicket(ctx, account.PurposeWS, ticket)
		requireCode(t, err, fault.Unauthenticated)
	}
}

// A link that an owner makes for somebody else makes a session of that user, which is not
// among the owner's; it ends with the owner's token all the same, and so does what it made.
func TestALinkForSomebodyElseEndsWithTheOwnersToken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann := o.member(t, "ann")
	secret, tok, err := o.CreateToken(ctx, identityOf(o.owner(t)), "an hour", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	who, err := o.Authenticate(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	link, _, err := o.NewLink(ctx, who, "ann")
	if err != nil {
		t.Fatal(err)
	}
	session, u, err := o.SignIn(ctx, link, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	if u.ID != ann.ID {
		t.Fatalf("u.ID is %q, want %q", u.ID, ann.ID)
	}
	in, err := o.Authenticate(ctx, session)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in.ExpiresAt, tok.ExpiresAt) {
		t.Fatalf("in.ExpiresAt is %+v, want %+v", in.ExpiresAt, tok.ExpiresAt)
	}
	app, _, err := o.CreateToken(ctx, in, "app", 0)
	if err != nil {
		t.Fatal(err)
	}

	link, _, err = o.NewLink(ctx, who, "ann")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	defer o.OnRevoke(func(userID, _ string) { told[userID]++ })()
	if err := o.RevokeToken(ctx, who.User.ID, who.TokenID); err != nil {
		t.Fatal(err)
	}
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated)
	for _, secret := range []string{session, app} {
		_, err = o.Authenticate(ctx, secret)
		requireCode(t, err, fault.Unauthenticated)
	}
	if want := (map[string]int{who.User.ID: 1, ann.ID: 2}); !reflect.DeepEqual(told, want) {
		t.Fatalf("the sockets of all are closed: told is %+v, want %+v", told, want)
	}
}

// Sessions that a removed owner made for others end too, unless the password was given.
func TestLinksOfARemovedOwner(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	owner := o.owner(t)
	o.member(t, "ann")
	boss, err := o.CreateUser(ctx, owner, account.NewUser{Username: "boss", Password: "correct horse", Role: account.RoleOwner})
	if err != nil {
		t.Fatal(err)
	}
	who, err := o.Authenticate(ctx, first(o.Login(ctx, "boss", "correct horse", "1.2.3.4")))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := o.Alone(ctx, who, ptr("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	session := func(by *account.Identity) string {
		link, _, err := o.NewLink(ctx, by, "ann")
		if err != nil {
			t.Fatal(err)
		}
		return first(o.SignIn(ctx, link, "1.2.3.4"))
	}
	ends, stays := session(who), session(alone)
	if err := o.DeleteUser(ctx, owner, boss.ID); err != nil {
		t.Fatal(err)
	}
	_, err = o.Authenticate(ctx, ends)
	requireCode(t, err, fault.Unauthenticated)
	_, err = o.Authenticate(ctx, stays)
	if err != nil {
		t.Fatal(err)
	}
}

func first[T any](secret string, _ T, _ error) string { return secret }

func TestAPasswordMakesTokensAndLinksThatStandForThemselves(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann := o.member(t, "ann")
	who, err := o.Authenticate(ctx, first(o.Login(ctx, "ann", "correct horse", "1.2.3.4")))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := o.Alone(ctx, who, ptr("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	lasting, token, err := o.CreateToken(ctx, alone, "app", 365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if want := o.Now().Add(365 * 24 * time.Hour); !reflect.DeepEqual(*token.ExpiresAt, want) {
		t.Fatalf("*token.ExpiresAt is %+v, want %+v", *token.ExpiresAt, want)
	}
	link, _, err := o.NewLink(ctx, alone, "")
	if err != nil {
		t.Fatal(err)
	}
	same, err := o.Alone(ctx, who, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(same, who) {
		t.Fatalf("same is %+v, want %+v", same, who)
	}
	if err := o.RevokeToken(ctx, ann.ID, who.TokenID); err != nil {
		t.Fatal(err)
	}
	_, err = o.Authenticate(ctx, lasting)
	if err != nil {
		t.Fatal(err)
	}
	phone, _, err := o.SignIn(ctx, link, "1.2.3.4")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Authenticate(ctx, phone)
	if err != nil {
		t.Fatal(err)
	}
}

func TestAStolenTokenCannotGuessThePasswordForALastingOne(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	o.member(t, "ann")
	who, err := o.Authenticate(ctx, first(o.Login(ctx, "ann", "correct horse", "1.2.3.4")))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, err = o.Alone(ctx, who, ptr("a guess"))
		requireCode(t, err, fault.Invalid)
	}
	_, err = o.Alone(ctx, who, ptr("correct horse"))
	requireCode(t, err, fault.RateLimited)
}

func TestWhoHasNoPasswordCannotConfirmIt(t *testing.T) {
	t.Parallel()
	o := newTestService(t)
	_, err := o.Alone(t.Context(), identityOf(o.owner(t)), ptr(""))
	requireCode(t, err, fault.Invalid)
}

func ptr(s string) *string { return &s }
