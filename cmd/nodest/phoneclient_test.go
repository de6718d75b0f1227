package main

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPhoneClient runs the phone client of docs/clients.md: it sends a message and
// prints the reply. After a kill, a refused connection and a restart of the server it
// prints the next reply.
func TestPhoneClient(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: there is no node on this machine")
	}
	text, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "<!-- phone client: a test runs it -->\n```js\n")
	if !ok {
		t.Fatal("the page has no phone client")
	}
	program, _, ok := strings.Cut(rest, "```\n<!-- end of phone client -->")
	if !ok {
		t.Fatal("the phone client of the page has no end")
	}

	inst := newInstallation(t, "")
	p := inst.start(t)
	var made struct{ Character struct{ ID string } }
	if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/characters/sample", nil, &made); err != nil {
		t.Fatal(err)
	}
	var chat struct{ ID string }
	if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations", map[string]any{"characterId": made.Character.ID}, &chat); err != nil {
		t.Fatal(err)
	}

	first, _, _ := strings.Cut(program, "\n")
	here := "const server = '" + p.client.Base + "', token = '" + p.client.Token + "'"
	file := filepath.Join(t.TempDir(), "phone.mjs")
	if err := os.WriteFile(file, []byte(strings.Replace(program, first, here, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "--experimental-websocket", "--no-warnings", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // the client runs until it is stopped
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	reply := func() {
		for lines.Scan() {
			if reply, ok := strings.CutPrefix(lines.Text(), "Wren Halloway: "); ok {
				if got := strings.TrimSpace(reply); got == "" {
					t.Fatalf("strings.TrimSpace(reply) is %q, want more", got)
				}
				return
			}
		}
		t.Fatalf("the client ended without a reply: %v", lines.Err())
	}
	reply()

	p.kill(t)
	addr := strings.TrimPrefix(p.client.Base, "http://")
	refuseOne(t, addr)
	inst.env = append(inst.env, "NODEST_ADDR="+addr)
	p = inst.start(t)
	said := map[string]any{"text": "Are you still there?"}
	if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+chat.ID+"/messages", said, nil); err != nil {
		t.Fatal(err)
	}
	reply()
	p.stop(t)
}

// refuseOne accepts one connection on an address and closes it.
func refuseOne(t *testing.T, addr string) {
	t.Helper()
	where, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenTCP("tcp", where)
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatalf("the client does not connect again: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}
