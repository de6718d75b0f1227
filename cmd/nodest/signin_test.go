package main

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		if !ok {
			t.Fatal(link)
		}
		if base != p.client.Base {
			t.Fatalf("base is %q, want %q", base, p.client.Base)
		}
		var in struct {
			Token string
			User  struct{ Username string }
		}
		if err := newTestClient(base, "").Call(t.Context(), http.MethodPost, "/api/v1/auth/signin", map[string]any{"link": secret}, &in); err != nil {
			t.Fatal(err)
		}
		if err := newTestClient(base, in.Token).Call(t.Context(), http.MethodGet, "/api/v1/me", nil, nil); err != nil {
			t.Fatal(err)
		}
		return in.User.Username
	}
	if got := redeem(here.mustRun(t, "signin")); got != "owner" {
		t.Fatalf("got %q, want %q", got, "owner")
	}
	_, _, err := here.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
	if err != nil {
		t.Fatal(err)
	}
	if got := redeem(here.mustRun(t, "signin", "--user", "Alice")); got != "alice" {
		t.Fatalf("got %q, want %q", got, "alice")
	}
	_, _, err = here.command(t, nil, "signin", "--user", "bob")
	if err == nil || !strings.Contains(err.Error(), `no user "bob"`) {
		t.Fatalf("got error %v, want one with %q", err, `no user "bob"`)
	}

	stranger := newInstallation(t, "", "NODEST_TOKEN=nst_unknown").withAddrOf(p)
	_, _, err = stranger.command(t, nil, "signin")
	if err == nil || !strings.Contains(err.Error(), "rejected the token from NODEST_TOKEN") {
		t.Fatalf("got error %v, want one with %q", err, "rejected the token from NODEST_TOKEN")
	}
	_, _, err = newInstallation(t, "").withAddrOf(p).command(t, nil, "signin")
	if err == nil || !strings.Contains(err.Error(), "but there is no ") {
		t.Fatalf("got error %v, want one with %q", err, "but there is no ")
	}
	p.stop(t)
}

func TestSigninWithoutAServer(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	inst := newInstallation(t, "", "NODEST_ADDR="+addr)
	_, _, err := inst.command(t, nil, "signin")
	if err == nil || !strings.Contains(err.Error(), "no NodeST server at "+addr) {
		t.Fatalf("got error %v, want one with %q", err, "no NodeST server at "+addr)
	}
	inst.env = append(inst.env, "NODEST_TOKEN=nst_whatever")
	_, _, err = inst.command(t, nil, "signin")
	if err == nil || !strings.Contains(err.Error(), "no NodeST server at "+addr) {
		t.Fatalf("got error %v, want one with %q", err, "no NodeST server at "+addr)
	}
	_, err = os.Stat(filepath.Join(inst.dir, "data"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("it created nothing: got error %v, want %v", err, os.ErrNotExist)
	}
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
	if err := set(here, "the first password\n"); err != nil {
		t.Fatalf("the owner of the first start has none: %v", err)
	}
	if err := login("owner", "the first password"); err != nil {
		t.Fatal(err)
	}
	if err := set(here, "the second password\n"); err == nil || !strings.Contains(err.Error(), "standard input ended") {
		t.Fatalf("got error %v, want one with %q", err, "standard input ended")
	}
	if err := set(here, "wrong\nthe second password\n"); err == nil || !strings.Contains(err.Error(), "current password is wrong") {
		t.Fatalf("got error %v, want one with %q", err, "current password is wrong")
	}
	if err := set(here, "the first password\nthe second password\n", "owner"); err != nil {
		t.Fatal(err)
	}
	if err := login("owner", "the second password"); err != nil {
		t.Fatal(err)
	}
	here.mustRun(t, "token", "list") // the token of the command line still works

	_, _, err := here.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
	if err != nil {
		t.Fatal(err)
	}
	if err := set(here, "another password\n", "alice"); err != nil {
		t.Fatal(err)
	}
	if err := login("alice", "another password"); err != nil {
		t.Fatal(err)
	}
	if err := set(here, "another password\n", "bob"); err == nil || !strings.Contains(err.Error(), `no user "bob"`) {
		t.Fatalf("got error %v, want one with %q", err, `no user "bob"`)
	}

	admin := &installation{dir: here.dir, env: append(here.env, "NODEST_TOKEN=a long and random text")}
	if err := set(admin, "the third password\n"); err != nil {
		t.Fatalf("the admin token resets a forgotten password: %v", err)
	}
	if err := login("owner", "the third password"); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
}
