package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmePhoneClient runs the phone client of the README against a server: it
// sends a message and prints the reply.
func TestReadmePhoneClient(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: there is no node on this machine")
	}
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "<!-- phone client: a test runs it -->\n```js\n")
	require.True(t, ok, "the README has no phone client")
	program, _, ok := strings.Cut(rest, "```\n<!-- end of phone client -->")
	require.True(t, ok, "the phone client of the README has no end")

	p := newInstallation(t, "").start(t)
	var made struct{ Character struct{ ID string } }
	require.NoError(t, p.client.call(t.Context(), http.MethodPost, "/api/v1/characters/sample", nil, &made))
	chat := map[string]any{"characterId": made.Character.ID}
	require.NoError(t, p.client.call(t.Context(), http.MethodPost, "/api/v1/conversations", chat, nil))

	first, _, _ := strings.Cut(program, "\n")
	here := "const server = '" + p.client.base + "', token = '" + p.client.token + "'"
	file := filepath.Join(t.TempDir(), "phone.mjs")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(program, first, here, 1)), 0o600))
	cmd := exec.CommandContext(t.Context(), node, "--experimental-websocket", "--no-warnings", file)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill() // the client runs until it is stopped
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if reply, ok := strings.CutPrefix(lines.Text(), "Wren Halloway: "); ok {
			require.NotEmpty(t, strings.TrimSpace(reply))
			p.stop(t)
			return
		}
	}
	t.Fatalf("the client ended without a reply: %v", lines.Err())
}
