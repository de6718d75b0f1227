package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withAddrOf returns the installation with the address of its running server.
func (i *installation) withAddrOf(p *process) *installation {
	at, _ := url.Parse(p.client.Base)
	return &installation{dir: i.dir, env: append(append([]string(nil), i.env...), "NODEST_ADDR="+at.Host)}
}

func TestSigninPrintsALinkOfTheRunningServer(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	p := inst.start(t)
	here := inst.withAddrOf(p)
	redeem := func(link string) (user string) {
		base, secret, ok := strings.Cut(strings.TrimSpace(link), "/signin#")
		require.True(t, ok, link)
		require.Equal(t, p.client.Base, base)
		var in struct {
			Token string
			User  struct{ Username string }
		}
		require.NoError(t, newTestClient(base, "").Call(t.Context(), http.MethodPost, "/api/v1/auth/signin", map[string]any{"link": secret}, &in))
		require.NoError(t, newTestClient(base, in.Token).Call(t.Context(), http.MethodGet, "/api/v1/me", nil, nil))
		return in.User.Username
	}
	require.Equal(t, "owner", redeem(here.mustRun(t, "signin")))
	_, _, err := here.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
	require.NoError(t, err)
	require.Equal(t, "alice", redeem(here.mustRun(t, "signin", "--user", "Alice")))
	_, _, err = here.command(t, nil, "signin", "--user", "bob")
	require.ErrorContains(t, err, `no user "bob"`)

	stranger := newInstallation(t, "", "NODEST_TOKEN=nst_unknown").withAddrOf(p)
	_, _, err = stranger.command(t, nil, "signin")
	require.ErrorContains(t, err, "rejected the token from NODEST_TOKEN")
	_, _, err = newInstallation(t, "").withAddrOf(p).command(t, nil, "signin")
	require.ErrorContains(t, err, "but there is no ")
	p.stop(t)
}

func TestSigninWithoutAServer(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	inst := newInstallation(t, "", "NODEST_ADDR="+addr)
	_, _, err := inst.command(t, nil, "signin")
	require.ErrorContains(t, err, "no NodeST server at "+addr)
	inst.env = append(inst.env, "NODEST_TOKEN=nst_whatever")
	_, _, err = inst.command(t, nil, "signin")
	require.ErrorContains(t, err, "no NodeST server at "+addr)
	_, err = os.Stat(filepath.Join(inst.dir, "data"))
	require.ErrorIs(t, err, os.ErrNotExist, "it created nothing")
}

func TestPasswordsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "", "NODEST_ADMIN_TOKEN=a long and random text")
	p := inst.start(t)
	here := inst.withAddrOf(p)
	set := func(i *installation, in string, args ...string) error {
		_, _, err := i.command(t, strings.NewReader(in), append([]string{"user", "password"}, args...)...)
		return err
	}
	login := func(name, password string) error {
		return newTestClient(p.client.Base, "").Call(t.Context(), http.MethodPost, "/api/v1/auth/login", map[string]any{"username": name, "password": password}, nil)
	}
	require.NoError(t, set(here, "the first password\n"), "the owner of the first start has none")
	require.NoError(t, login("owner", "the first password"))
	require.ErrorContains(t, set(here, "the second password\n"), "standard input ended")
	require.ErrorContains(t, set(here, "wrong\nthe second password\n"), "current password is wrong")
	require.NoError(t, set(here, "the first password\nthe second password\n", "owner"))
	require.NoError(t, login("owner", "the second password"))
	here.mustRun(t, "token", "list") // the token of the command line still works

	_, _, err := here.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
	require.NoError(t, err)
	require.NoError(t, set(here, "another password\n", "alice"))
	require.NoError(t, login("alice", "another password"))
	require.ErrorContains(t, set(here, "another password\n", "bob"), `no user "bob"`)

	admin := &installation{dir: here.dir, env: append(here.env, "NODEST_TOKEN=a long and random text")}
	require.NoError(t, set(admin, "the third password\n"), "the admin token resets a forgotten password")
	require.NoError(t, login("owner", "the third password"))
	p.stop(t)
}
