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

	"github.com/stretchr/testify/require"
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
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "<!-- phone client: a test runs it -->\n```js\n")
	require.True(t, ok, "the page has no phone client")
	program, _, ok := strings.Cut(rest, "```\n<!-- end of phone client -->")
	require.True(t, ok, "the phone client of the page has no end")

	inst := newInstallation(t, "")
	p := inst.start(t)
	var made struct{ Character struct{ ID string } }
	require.NoError(t, p.client.Call(t.Context(), http.MethodPost, "/api/v1/characters/sample", nil, &made))
	var chat struct{ ID string }
	require.NoError(t, p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations", map[string]any{"characterId": made.Character.ID}, &chat))

	first, _, _ := strings.Cut(program, "\n")
	here := "const server = '" + p.client.Base + "', token = '" + p.client.Token + "'"
	file := filepath.Join(t.TempDir(), "phone.mjs")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(program, first, here, 1)), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 3*testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "--experimental-websocket", "--no-warnings", file)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill() // the client runs until it is stopped
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	reply := func() {
		for lines.Scan() {
			if reply, ok := strings.CutPrefix(lines.Text(), "Wren Halloway: "); ok {
				require.NotEmpty(t, strings.TrimSpace(reply))
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
	require.NoError(t, p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+chat.ID+"/messages", said, nil))
	reply()
	p.stop(t)
}

// refuseOne accepts one connection on an address and closes it.
func refuseOne(t *testing.T, addr string) {
	t.Helper()
	where, err := net.ResolveTCPAddr("tcp", addr)
	require.NoError(t, err)
	listener, err := net.ListenTCP("tcp", where)
	require.NoError(t, err)
	require.NoError(t, listener.SetDeadline(time.Now().Add(testTimeout)))
	conn, err := listener.Accept()
	require.NoError(t, err, "the client does not connect again")
	require.NoError(t, conn.Close())
	require.NoError(t, listener.Close())
}
