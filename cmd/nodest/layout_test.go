package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers lists our packages from the ground up. A package may import packages of
// lower layers, never one of its own layer or above (docs/architecture.md).
var layers = []string{
	"internal/tavern/folder internal/accent internal/civil internal/codec internal/fair internal/fault internal/feedback internal/lexicon internal/lru internal/markup internal/mathml internal/metrics migrations internal/sharedtest web internal/bench/figure internal/cite/script internal/index/dict llm/sse llm/loose internal/op/id framework/jsregex framework/keyscan framework/macro card/date card/foreign",
	"card/picture card/pngfile internal/spool internal/password chat/attached chat/lineage chat/words internal/jsonlimit internal/lexicon/lexicontest internal/cli",
	"llm card internal/audit internal/cli/review internal/cli/watch internal/cli/pack internal/stream internal/jobs store/sqldb internal/outbound knowledge/parse knowledge/unzip",
	"internal/op internal/mcpclient llm/gemini llm/openai llm/offline llm/llmtest framework framework/worldinfo internal/index internal/stream/outbox internal/stream/relay knowledge/chunk",
	"framework/tavern framework/worldinfo/worldinfotest internal/cite/claim",
	"internal/account internal/rights character internal/attachment memory/lang circle/rules internal/cite websearch/weburl websearch/intent websearch/reader websearch/miniweb websearch/provider websearch/provider/providertest knowledge/filename knowledge/contextline knowledge/intent knowledge/search knowledge/rerank",
	"internal/summary memory/recall websearch/research/markdown",
	"memory cognition",
	"memory/dream",
	"memory/extract chat circle websearch websearch/research/agent knowledge store/first",
	"websearch/research chat/archive cognition/side knowledge/shelf nodest/usage nodest/admission nodest/tools nodest/recent nodest/record nodest/carried nodest/transcript",
	"nodest internal/tavern",
	"nodest/app internal/mcptool internal/kbtool internal/webtool internal/logtool internal/loretool internal/researchtool",
	"server/api",
	"store server",
	"store/storetest internal/bench/circle internal/bench/kb internal/bench/learning internal/setup",
	"internal/bench internal/backup",
	"internal/tavern/taverntest nodest/nodesttest knowledge/knowledgetest internal/instance",
	"cmd/nodest cmd/nodest-bench",
}

// allowedImporters lists the only packages that may import a third-party module, or the benchmarks,
// which the program that users get does without.
var allowedImporters = map[string]string{
	"nodest/internal/bench":                  "cmd/nodest-bench internal/bench internal/bench/circle internal/bench/kb internal/bench/learning",
	"github.com/mattn/go-sqlite3":            "store/sqldb",
	"github.com/jackc/pgx/v5":                "store store/sqldb store/storetest",
	"github.com/pressly/goose/v3":            "store",
	"github.com/labstack/echo/v4":            "server",
	"github.com/prometheus":                  "internal/metrics server",
	"github.com/nats-io":                     "internal/stream/relay cmd/nodest",
	"github.com/gorilla/websocket":           "server internal/bench cmd/nodest",
	"github.com/google/generative-ai-go":     "llm/gemini",
	"google.golang.org/genai":                "llm/gemini",
	"github.com/alexedwards/argon2id":        "internal/account",
	"github.com/tiktoken-go/tokenizer":       "framework",
	"github.com/philippgille/chromem-go":     "internal/index",
	"github.com/spf13/cobra":                 "cmd/nodest cmd/nodest-bench",
	"golang.org/x/image":                     "card/picture",
	"github.com/dlclark/regexp2":             "framework/jsregex internal/cite",
	"github.com/modelcontextprotocol/go-sdk": "internal/mcpclient internal/mcptool websearch/provider",
	"github.com/markusmobius":                "websearch/reader",
	"github.com/andybalholm/brotli":          "websearch/reader",
	"github.com/wlynxg/chardet":              "websearch/reader knowledge/parse",
	"github.com/klippa-app/go-pdfium":        "knowledge/parse",
	"github.com/tetratelabs/wazero":          "knowledge/parse",
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	const module = "nodest/"
	layer := make(map[string]int)
	for i, names := range layers {
		for name := range strings.FieldsSeq(names) {
			layer[name] = i
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		pkgs := strings.Fields(line)
		from := strings.TrimPrefix(pkgs[0], module)
		at, ok := layer[from]
		if !ok {
			t.Errorf("package %s has no layer yet: place it here and in docs/architecture.md", from)
			continue
		}
		for _, path := range pkgs[1:] {
			if to, ours := strings.CutPrefix(path, module); ours && layer[to] >= at {
				t.Errorf("%s (layer %d) must not import %s (layer %d)", from, at, to, layer[to])
			}
			checkOwner(t, from, path)
		}
	}
}

func checkOwner(t *testing.T, from, path string) {
	t.Helper()
	for module, owners := range allowedImporters {
		if (path == module || strings.HasPrefix(path, module+"/")) && !strings.Contains(" "+owners+" ", " "+from+" ") {
			t.Errorf("%s must not import %s: that is for %s", from, path, owners)
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}	{{.Doc}}`, "nodest/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, doc, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if doc == "" {
			t.Errorf("%s has no package comment", path)
		}
	}
}

// The docs list the files that a message passes on its way to the model. A person can read them in one go.
func TestTheWayOfAMessageIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "**From `Send` to the model**")
	list, _, _ = strings.Cut(list, "\n\nA **phase**")
	files := regexp.MustCompile("(?m)^(\\d+)\\. `([^`]+)`").FindAllStringSubmatch(list, -1)
	if !found || len(files) == 0 || len(files) > 12 || files[0][2] != "nodest/send.go" {
		t.Errorf("the list is %q", files)
	}
	seen := map[string]bool{}
	for i, f := range files {
		if f[1] != strconv.Itoa(i+1) || seen[f[2]] {
			t.Errorf("%s is at place %s, the %d. in the list", f[2], f[1], i+1)
		}
		seen[f[2]] = true
		if _, err := os.Stat(filepath.Join("../..", f[2])); err != nil {
			t.Error(err)
		}
	}
}

// The race detector watches the tests of every package that starts a goroutine.
func TestPackagesThatStartGoroutinesAreWatched(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "../../scripts/concurrent").Output()
	if err != nil {
		t.Fatal(err)
	}
	watched := strings.Fields(string(out))
	for name, files := range ownPackages(t) {
		if strings.HasPrefix(name, "internal/bench") || slices.Contains(watched, "./"+name) {
			continue
		}
		for _, path := range files {
			if startsGoroutine(t, path) {
				t.Errorf("%s starts a goroutine that scripts/concurrent does not see", path)
			}
		}
	}
}

func startsGoroutine(t *testing.T, path string) (starts bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr:
			starts = starts || n.Sel.Name == "Go" // the method of a group
		}
		return true
	})
	return starts
}
