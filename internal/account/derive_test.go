package account_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nodest/internal/account"
	"nodest/internal/fault"
)

// offspring makes, from a token of ann, one of everything that can be made with it: a
// token, a session, one from a link, and a token made with the token.
func (o *testService) offspring(t *testing.T, secret string) (made []string) {
	t.Helper()
	ctx := t.Context()
	who, err := o.Authenticate(ctx, secret)
	require.NoError(t, err)
	token, _, err := o.CreateToken(ctx, who, "child", 0)
	require.NoError(t, err)
	session, _, err := o.SignInWithToken(ctx, secret, "1.2.3.4")
	require.NoError(t, err)
	link, _, err := o.NewLink(ctx, who, "")
	require.NoError(t, err)
	phone, _, err := o.SignIn(ctx, link, "1.2.3.4")
	require.NoError(t, err)
	again, err := o.Authenticate(ctx, token)
	require.NoError(t, err)
	grandchild, _, err := o.CreateToken(ctx, again, "grandchild", 365*24*time.Hour)
	require.NoError(t, err)
	return []string{token, session, phone, grandchild}
}

func TestATokenExpiresWithTheOneThatMadeIt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	secret, _, err := o.CreateToken(ctx, identityOf(o.member(t, "ann")), "an hour", time.Hour)
	require.NoError(t, err)
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
		require.NoError(t, err)
		made := o.offspring(t, secret)
		link, _, err := o.NewLink(ctx, who, "")
		require.NoError(t, err)
		ticket, err := o.NewSocketTicket(ctx, who)
		require.NoError(t, err)
		told := 0
		stop := o.OnRevoke(func(string, string) { told++ })
		require.NoError(t, o.RevokeToken(ctx, ann.ID, who.TokenID))
		stop()
		require.Equal(t, 1+len(made), told, "the sockets of all are closed")
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
	require.NoError(t, err)
	who, err := o.Authenticate(ctx, secret)
	require.NoError(t, err)
	link, _, err := o.NewLink(ctx, who, "ann")
	require.NoError(t, err)
	session, u, err := o.SignIn(ctx, link, "1.2.3.4")
	require.NoError(t, err)
	require.Equal(t, ann.ID, u.ID)
	in, err := o.Authenticate(ctx, session)
	require.NoError(t, err)
	require.Equal(t, tok.ExpiresAt, in.ExpiresAt)
	app, _, err := o.CreateToken(ctx, in, "app", 0)
	require.NoError(t, err)

	link, _, err = o.NewLink(ctx, who, "ann")
	require.NoError(t, err)
	told := map[string]int{}
	defer o.OnRevoke(func(userID, _ string) { told[userID]++ })()
	require.NoError(t, o.RevokeToken(ctx, who.User.ID, who.TokenID))
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated)
	for _, secret := range []string{session, app} {
		_, err = o.Authenticate(ctx, secret)
		requireCode(t, err, fault.Unauthenticated)
	}
	require.Equal(t, map[string]int{who.User.ID: 1, ann.ID: 2}, told, "the sockets of all are closed")
}

// Sessions that a removed owner made for others end too, unless the password was given.
func TestLinksOfARemovedOwner(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	owner := o.owner(t)
	o.member(t, "ann")
	boss, err := o.CreateUser(ctx, owner, account.NewUser{Username: "boss", Password: "correct horse", Role: account.RoleOwner})
	require.NoError(t, err)
	who, err := o.Authenticate(ctx, first(o.Login(ctx, "boss", "correct horse", "1.2.3.4")))
	require.NoError(t, err)
	alone, err := o.Alone(ctx, who, ptr("correct horse"))
	require.NoError(t, err)
	session := func(by *account.Identity) string {
		link, _, err := o.NewLink(ctx, by, "ann")
		require.NoError(t, err)
		return first(o.SignIn(ctx, link, "1.2.3.4"))
	}
	ends, stays := session(who), session(alone)
	require.NoError(t, o.DeleteUser(ctx, owner, boss.ID))
	_, err = o.Authenticate(ctx, ends)
	requireCode(t, err, fault.Unauthenticated)
	_, err = o.Authenticate(ctx, stays)
	require.NoError(t, err)
}

func first[T any](secret string, _ T, _ error) string { return secret }

func TestAPasswordMakesTokensAndLinksThatStandForThemselves(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann := o.member(t, "ann")
	who, err := o.Authenticate(ctx, first(o.Login(ctx, "ann", "correct horse", "1.2.3.4")))
	require.NoError(t, err)
	alone, err := o.Alone(ctx, who, ptr("correct horse"))
	require.NoError(t, err)
	lasting, token, err := o.CreateToken(ctx, alone, "app", 365*24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, o.Now().Add(365*24*time.Hour), *token.ExpiresAt)
	link, _, err := o.NewLink(ctx, alone, "")
	require.NoError(t, err)
	same, err := o.Alone(ctx, who, nil)
	require.NoError(t, err)
	require.Equal(t, who, same)
	require.NoError(t, o.RevokeToken(ctx, ann.ID, who.TokenID))
	_, err = o.Authenticate(ctx, lasting)
	require.NoError(t, err)
	phone, _, err := o.SignIn(ctx, link, "1.2.3.4")
	require.NoError(t, err)
	_, err = o.Authenticate(ctx, phone)
	require.NoError(t, err)
}

func TestAStolenTokenCannotGuessThePasswordForALastingOne(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	o.member(t, "ann")
	who, err := o.Authenticate(ctx, first(o.Login(ctx, "ann", "correct horse", "1.2.3.4")))
	require.NoError(t, err)
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
