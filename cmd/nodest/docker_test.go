package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// dockerfile returns the instructions of the Dockerfile, one a line.
func dockerfile(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestDockerfileBuilds runs the build command of the Dockerfile outside a
// container, since none runs here, and asks the program for its version. Only
// -trimpath is left out: it changes the paths in the program, and everything
// would be compiled once more for it.
func TestDockerfileBuilds(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the run without the race detector builds it: here nothing of it would be compiled yet")
	}
	out := t.TempDir()
	built := false
	for _, line := range dockerfile(t) {
		command, ok := strings.CutPrefix(line, "RUN CGO_ENABLED=1 go build ")
		if !ok {
			continue
		}
		require.Contains(t, command, "-trimpath ")
		require.Contains(t, command, "-o /out/nodest")
		build := exec.CommandContext(t.Context(), "sh", "-c", "CGO_ENABLED=1 go build "+strings.NewReplacer("-trimpath ", "", "/out/", out+"/").Replace(command))
		build.Dir = "../.."
		build.Env = append(os.Environ(), "VERSION=of-the-test")
		text, err := build.CombinedOutput()
		require.NoError(t, err, "%s", text)
		built = true
	}
	require.True(t, built, "the Dockerfile has no build command that this test knows")
	version, err := exec.CommandContext(t.Context(), filepath.Join(out, "nodest"), "version").CombinedOutput()
	require.NoError(t, err, "%s", version)
	require.Equal(t, "nodest of-the-test\n", string(version))
}

// TestDockerfileCopiesWhatExists looks for every path that is copied from the
// project, and for those that the build copies on.
func TestDockerfileCopiesWhatExists(t *testing.T) {
	ignored, err := os.ReadFile("../../.dockerignore")
	if err == nil {
		for line := range strings.Lines(string(ignored)) {
			require.NotContains(t, []string{"web", "web/dist", "migrations", "cmd", "go.mod", "go.sum"}, strings.Trim(strings.TrimSpace(line), "/"), "the build needs it")
		}
	}
	copied := 0
	for _, line := range dockerfile(t) {
		fields := strings.Fields(line)
		if fields[0] != "COPY" {
			continue
		}
		if strings.HasPrefix(fields[1], "--from=build") {
			require.Equal(t, "/out/nodest", fields[2], "what the build makes")
			continue
		}
		for _, path := range fields[1 : len(fields)-1] {
			_, err := os.Stat(filepath.Join("../..", path))
			require.NoError(t, err)
			copied++
		}
	}
	require.Positive(t, copied)
	entries, err := os.ReadDir("../../web/dist")
	require.NoError(t, err, "the image is built without Node")
	require.NotEmpty(t, entries)
}

// TestComposeNamesSettings reads compose.yaml: every variable of the server is a
// setting, and volumes that are used are there.
func TestComposeNamesSettings(t *testing.T) {
	text, err := os.ReadFile("../../compose.yaml")
	require.NoError(t, err)
	var compose struct {
		Services map[string]struct {
			Image, Build string
			Environment  map[string]string
			Volumes      []string
			Profiles     []string
		}
		Volumes map[string]any
	}
	require.NoError(t, yaml.Unmarshal(text, &compose))
	server, ok := compose.Services["nodest"]
	require.True(t, ok)
	require.NotEmpty(t, server.Environment)
	names := append([]string(nil), environmentOfImage(t)...)
	for name := range server.Environment {
		names = append(names, name)
	}
	for _, name := range names {
		require.True(t, slices.ContainsFunc(settings, func(s setting) bool { return s.env == name }), "%s is no setting", name)
	}
	for service, s := range compose.Services {
		require.True(t, s.Image != "" || s.Build != "", service)
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			require.Contains(t, compose.Volumes, volume, service)
		}
	}
}

// environmentOfImage is what the Dockerfile sets for the server.
func environmentOfImage(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, line := range dockerfile(t) {
		if pairs, ok := strings.CutPrefix(line, "ENV "); ok {
			for pair := range strings.FieldsSeq(pairs) {
				name, _, _ := strings.Cut(pair, "=")
				names = append(names, name)
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}
