package account_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
		require.NoError(t, err)
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
		require.NoError(t, err)
		require.Equal(t, c.want.ID, whose.ID)
		_, in, err := o.SignIn(ctx, link, "1.2.3.4")
		require.NoError(t, err)
		require.Equal(t, c.want.ID, in.ID)
	}
	for _, name := range []string{"bob", "owner", "nobody"} { // a member does not learn who exists
		_, _, err := o.NewLink(ctx, identityOf(ann), name)
		requireCode(t, err, fault.Forbidden)
	}
	_, _, err := o.NewLink(ctx, identityOf(owner), "nobody")
	requireCode(t, err, fault.NotFound)

	link, _, err := o.NewLink(ctx, identityOf(owner), "bob")
	require.NoError(t, err)
	require.NoError(t, o.DeleteUser(ctx, owner, bob.ID))
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated)
}

func TestSigningInWithATokenCreatesASession(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t, func(opts *account.Options) { opts.AdminToken = "a long and random text" })
	ann := o.member(t, "ann")
	secret, tok, err := o.CreateToken(ctx, identityOf(ann), "phone", time.Hour)
	require.NoError(t, err)
	session, u, err := o.SignInWithToken(ctx, " "+secret+"\n", "1.2.3.4")
	require.NoError(t, err)
	require.Equal(t, ann.ID, u.ID)
	require.NotEqual(t, secret, session)
	who, err := o.Authenticate(ctx, session)
	require.NoError(t, err)
	require.Equal(t, *tok.ExpiresAt, *who.ExpiresAt, "the session expires with the token")
	require.NoError(t, o.RevokeToken(ctx, ann.ID, who.TokenID))
	_, err = o.Authenticate(ctx, secret)
	require.NoError(t, err, "signing out does not revoke the token")

	session, _, err = o.SignInWithToken(ctx, secret, "1.2.3.4")
	require.NoError(t, err)
	var revoked []string
	stop := o.OnRevoke(func(_, tokenID string) { revoked = append(revoked, tokenID) })
	who, err = o.Authenticate(ctx, session)
	require.NoError(t, err)
	require.NoError(t, o.RevokeToken(ctx, ann.ID, tok.ID))
	stop()
	_, err = o.Authenticate(ctx, session)
	requireCode(t, err, fault.Unauthenticated)
	require.Equal(t, []string{tok.ID, who.TokenID}, revoked, "the sockets of both are closed")

	_, u, err = o.SignInWithToken(ctx, "a long and random text", "1.2.3.4")
	require.NoError(t, err)
	require.Equal(t, o.owner(t).ID, u.ID)
}

func TestChangingOnesOwnPassword(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann, bob := o.member(t, "ann"), o.member(t, "bob")
	phone, _, err := o.CreateToken(ctx, identityOf(ann), "phone", 0)
	require.NoError(t, err)
	here, _, err := o.Login(ctx, "ann", "correct horse", "1.2.3.4")
	require.NoError(t, err)
	elsewhere, _, err := o.Login(ctx, "ann", "correct horse", "1.2.3.4")
	require.NoError(t, err)
	who, err := o.Authenticate(ctx, here)
	require.NoError(t, err)
	link, _, err := o.NewLink(ctx, identityOf(ann), "")
	require.NoError(t, err)
	others, _, err := o.NewLink(ctx, identityOf(bob), "")
	require.NoError(t, err)

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
	require.NoError(t, err)
	for _, stays := range []string{here, phone} {
		_, err = o.Authenticate(ctx, stays)
		require.NoError(t, err)
	}
	_, err = o.Authenticate(ctx, elsewhere)
	requireCode(t, err, fault.Unauthenticated) // other sessions end
	_, _, err = o.SignIn(ctx, link, "1.2.3.4")
	requireCode(t, err, fault.Unauthenticated) // and sign-in links no longer work
	_, _, err = o.SignIn(ctx, others, "1.2.3.4")
	require.NoError(t, err)
	_, _, err = o.Login(ctx, "ann", next, "1.2.3.4")
	require.NoError(t, err)
}

func TestGuessingTheCurrentPasswordIsLimited(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	ann := o.member(t, "ann")
	token, _, err := o.CreateToken(ctx, identityOf(ann), "phone", 0)
	require.NoError(t, err)
	who, err := o.Authenticate(ctx, token)
	require.NoError(t, err)
	old, wrong, next := "correct horse", "wrong horse", "battery staple"
	for range 5 {
		_, err = o.UpdateUser(ctx, who, ann.ID, account.UserPatch{Password: &next, CurrentPassword: &wrong})
		requireCode(t, err, fault.Invalid)
	}
	_, err = o.UpdateUser(ctx, who, ann.ID, account.UserPatch{Password: &next, CurrentPassword: &old})
	requireCode(t, err, fault.RateLimited)
	require.Equal(t, "too many wrong passwords; try again later", fault.Public(err).Message)
}

func TestTheOwnerCanSetAPassword(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t, func(opts *account.Options) { opts.AdminToken = "a long and random text" })
	token, _, err := o.CreateToken(ctx, identityOf(o.owner(t)), "command line", 0)
	require.NoError(t, err)
	who, err := o.Authenticate(ctx, token)
	require.NoError(t, err)
	first, second := "the first password", "the second password"
	_, err = o.UpdateUser(ctx, who, who.User.ID, account.UserPatch{Password: &first})
	require.NoError(t, err, "there was no password")
	_, _, err = o.Login(ctx, "owner", first, "1.2.3.4")
	require.NoError(t, err)
	_, err = o.UpdateUser(ctx, who, who.User.ID, account.UserPatch{Password: &second})
	requireCode(t, err, fault.Invalid)
	admin, err := o.Authenticate(ctx, "a long and random text")
	require.NoError(t, err)
	_, err = o.UpdateUser(ctx, admin, who.User.ID, account.UserPatch{Password: &second})
	require.NoError(t, err, "the admin token resets a forgotten password")
}
