package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// TestTypeScriptClient runs clients/typescript against the program: it streams replies over
// cut connections and compares them with what is stored.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: there is no node on this machine")
	}
	const dir = "../../clients/typescript"
	for _, built := range []string{"/dist/index.js", "/node_modules/ws"} {
		if _, err := os.Stat(dir + built); err != nil {
			t.Skip("skipped: clients/typescript is not built; run make client")
		}
	}
	p := newInstallation(t, "", "NODEST_OFFLINE_DELAY=20ms").start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "test/live.mjs", p.client.Base, p.client.Token)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	t.Logf("%s", out)
	p.stop(t)
}
