package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"nodest/internal/setup"
)

// dockerfile returns the instructions of the Dockerfile, one per line.
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

// TestDockerfileBuilds runs the build command of the Dockerfile, without a container,
// and asks the program for its version. It leaves out -trimpath, with which everything
// would have to be compiled again.
func TestDockerfileBuilds(t *testing.T) {
	t.Parallel()
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

// TestDockerfileCopiesWhatExists checks that every path that the Dockerfile copies
// exists, and that .dockerignore excludes none of them.
func TestDockerfileCopiesWhatExists(t *testing.T) {
	t.Parallel()
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

type composeService struct {
	Image, Build string
	Environment  map[string]string
	Ports        []string
	Volumes      []string
	Profiles     []string
	Healthcheck  struct{ Test []string }
	DependsOn    map[string]struct {
		Condition string
		Required  *bool
	} `yaml:"depends_on"`
}

func composeFile(t *testing.T) (services map[string]composeService, volumes map[string]any) {
	t.Helper()
	text, err := os.ReadFile("../../compose.yaml")
	require.NoError(t, err)
	var compose struct {
		Services map[string]composeService
		Volumes  map[string]any
	}
	require.NoError(t, yaml.Unmarshal(text, &compose))
	return compose.Services, compose.Volumes
}

// TestComposePassesEverySetting: every setting of the environment or of .env reaches
// the container, except those that the image fixes.
func TestComposePassesEverySetting(t *testing.T) {
	t.Parallel()
	services, _ := composeFile(t)
	passed := services["nodest"].Environment
	fixed := environmentOfImage(t)
	for _, s := range setup.Settings {
		if slices.Contains(fixed, s.Env) {
			require.NotContains(t, passed, s.Env, "an empty value would replace that of the image")
			continue
		}
		require.True(t, strings.HasPrefix(passed[s.Env], "${"+s.Env+":-") && strings.HasSuffix(passed[s.Env], "}"), "%s: %q", s.Env, passed[s.Env])
	}
	for name := range passed {
		require.True(t, slices.ContainsFunc(setup.Settings, func(s setup.Setting) bool { return s.Env == name }), "%s is no setting", name)
	}
}

// TestComposePrintsASignInLink: with the defaults of compose.yaml and the image, the
// server starts without any account, prints a sign-in link to the published port, and
// another one on request.
func TestComposePrintsASignInLink(t *testing.T) {
	t.Parallel()
	services, _ := composeFile(t)
	server := services["nodest"]
	_, public, ok := strings.Cut(strings.TrimSuffix(server.Environment["NODEST_PUBLIC_URL"], "}"), ":-")
	require.True(t, ok)
	require.Equal(t, "http://127.0.0.1:8080", public)
	require.Equal(t, []string{"127.0.0.1:8080:8080"}, server.Ports, "the link leads to the published port, and only from this machine")

	inst := newInstallation(t, "", "NODEST_ADDR=0.0.0.0:0", "NODEST_PUBLIC_URL="+public)
	p := inst.start(t)
	require.Equal(t, public, p.linkBase)
	_, port, _ := strings.Cut(strings.TrimPrefix(p.client.Base, "http://"), ":")
	inst.env = append(inst.env, "NODEST_ADDR=0.0.0.0:"+port)
	link := strings.TrimSpace(inst.mustRun(t, "signin"))
	require.True(t, strings.HasPrefix(link, public+"/signin#"), link)
	require.NotContains(t, link, p.link)
	p.stop(t)
}

// TestComposeWaitsForPostgres checks that the server waits for a healthy PostgreSQL,
// and that all volumes are declared.
func TestComposeWaitsForPostgres(t *testing.T) {
	t.Parallel()
	services, volumes := composeFile(t)
	wait := services["nodest"].DependsOn["postgres"]
	require.Equal(t, "service_healthy", wait.Condition)
	require.NotNil(t, wait.Required)
	require.False(t, *wait.Required, "the server runs without the profile too")
	require.Contains(t, strings.Join(services["postgres"].Healthcheck.Test, " "), "pg_isready")
	for service, s := range services {
		require.True(t, s.Image != "" || s.Build != "", service)
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			require.Contains(t, volumes, volume, service)
		}
	}
}

// environmentOfImage returns the names of the settings that the Dockerfile sets.
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
