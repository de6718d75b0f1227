package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"nodest/internal/setup"
)

// dockerfile returns the instructions of the Dockerfile, one per line.
func dockerfile(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
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
		if !strings.Contains(command, "-trimpath ") {
			t.Fatalf("command is %q, want it with %q", command, "-trimpath ")
		}
		if !strings.Contains(command, "-o /out/nodest") {
			t.Fatalf("command is %q, want it with %q", command, "-o /out/nodest")
		}
		build := exec.CommandContext(t.Context(), "sh", "-c", "CGO_ENABLED=1 go build "+strings.NewReplacer("-trimpath ", "", "/out/", out+"/").Replace(command))
		build.Dir = "../.."
		build.Env = append(os.Environ(), "VERSION=of-the-test")
		text, err := build.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		built = true
	}
	if !built {
		t.Fatal("the Dockerfile has no build command that this test knows")
	}
	version, err := exec.CommandContext(t.Context(), filepath.Join(out, "nodest"), "version").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", version, err)
	}
	if string(version) != "nodest of-the-test\n" {
		t.Fatalf("string(version) is %q, want %q", string(version), "nodest of-the-test\n")
	}
}

// TestDockerfileCopiesWhatExists checks that every path that the Dockerfile copies
// exists, and that .dockerignore excludes none of them.
func TestDockerfileCopiesWhatExists(t *testing.T) {
	t.Parallel()
	ignored, err := os.ReadFile("../../.dockerignore")
	if err == nil {
		for line := range strings.Lines(string(ignored)) {
			if got := ([]string{"web", "web/dist", "migrations", "cmd", "go.mod", "go.sum"}); slices.Contains(got, strings.Trim(strings.TrimSpace(line), "/")) {
				t.Fatalf("the build needs it: got %q, want it without %q", got, strings.Trim(strings.TrimSpace(line), "/"))
			}
		}
	}
	copied := 0
	for _, line := range dockerfile(t) {
		fields := strings.Fields(line)
		if fields[0] != "COPY" {
			continue
		}
		if strings.HasPrefix(fields[1], "--from=build") {
			if fields[2] != "/out/nodest" {
				t.Fatalf("what the build makes: fields[2] is %q, want %q", fields[2], "/out/nodest")
			}
			continue
		}
		for _, path := range fields[1 : len(fields)-1] {
			_, err := os.Stat(filepath.Join("../..", path))
			if err != nil {
				t.Fatal(err)
			}
			copied++
		}
	}
	if copied <= 0 {
		t.Fatalf("copied is %d, want more than 0", copied)
	}
	entries, err := os.ReadDir("../../web/dist")
	if err != nil {
		t.Fatalf("the image is built without Node: %v", err)
	}
	if len(entries) == 0 {
		t.Fatalf("entries is %+v, want more", entries)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]composeService
		Volumes  map[string]any
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
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
			if _, ok := passed[s.Env]; ok {
				t.Fatalf("an empty value would replace that of the image: passed is %+v, want it without %q", passed, s.Env)
			}
			continue
		}
		if !strings.HasPrefix(passed[s.Env], "${"+s.Env+":-") || !strings.HasSuffix(passed[s.Env], "}") {
			t.Fatalf("%s: %q", s.Env, passed[s.Env])
		}
	}
	for name := range passed {
		if !slices.ContainsFunc(setup.Settings, func(s setup.Setting) bool { return s.Env == name }) {
			t.Fatalf("%s is no setting", name)
		}
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
	if !ok {
		t.Fatal("ok is false, want true")
	}
	if public != "http://127.0.0.1:8080" {
		t.Fatalf("public is %q, want %q", public, "http://127.0.0.1:8080")
	}
	if want := ([]string{"127.0.0.1:8080:8080"}); !reflect.DeepEqual(server.Ports, want) {
		t.Fatalf("the link leads to the published port, and only from this machine: server.Ports is %q, want %q", server.Ports, want)
	}

	inst := newInstallation(t, "", "NODEST_ADDR=0.0.0.0:0", "NODEST_PUBLIC_URL="+public)
	p := inst.start(t)
	if p.linkBase != public {
		t.Fatalf("p.linkBase is %q, want %q", p.linkBase, public)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(p.client.Base, "http://"), ":")
	inst.env = append(inst.env, "NODEST_ADDR=0.0.0.0:"+port)
	link := strings.TrimSpace(inst.mustRun(t, "signin"))
	if !strings.HasPrefix(link, public+"/signin#") {
		t.Fatal(link)
	}
	if strings.Contains(link, p.link) {
		t.Fatalf("link is %q, want it without %q", link, p.link)
	}
	p.stop(t)
}

// TestComposeWaitsForPostgres checks that the server waits for a healthy PostgreSQL,
// and that all volumes are declared.
func TestComposeWaitsForPostgres(t *testing.T) {
	t.Parallel()
	services, volumes := composeFile(t)
	wait := services["nodest"].DependsOn["postgres"]
	if wait.Condition != "service_healthy" {
		t.Fatalf("wait.Condition is %q, want %q", wait.Condition, "service_healthy")
	}
	if wait.Required == nil {
		t.Fatal("wait.Required is nil, want a value")
	}
	if *wait.Required {
		t.Fatal("the server runs without the profile too")
	}
	if got := strings.Join(services["postgres"].Healthcheck.Test, " "); !strings.Contains(got, "pg_isready") {
		t.Fatalf("got %q, want it with %q", got, "pg_isready")
	}
	for service, s := range services {
		if s.Image == "" && s.Build == "" {
			t.Fatal(service)
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := volumes[volume]; !ok {
				t.Fatalf("%s: volumes is %+v, want it with %q", service, volumes, volume)
			}
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
	if len(names) == 0 {
		t.Fatalf("names is %q, want more", names)
	}
	return names
}
