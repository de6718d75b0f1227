package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// otherClients lists the files that may make connections without the guard of package
// outbound, because nobody but the operator chooses where they go.
var otherClients = map[string]string{
	"internal/outbound/outbound.go": "the guard itself",
	"llm/http.go":                   "the providers that the operator has configured",
	"internal/cli/client.go":        "the server that the command line talks to",
	"internal/bench/chat_floor.go":  "a fake provider on loopback",
	"internal/bench/chat_home.go":   "the server that is measured",
	"internal/bench/chat_talk.go":   "the server that is measured",

	"store/storetest/proxy.go":     "a socket of PostgreSQL, in tests",
	"websearch/miniweb/miniweb.go": "behind the guard: its connections, led to a server of a test",
}

// TestWhatOthersChooseIsReachedThroughTheGuard looks for HTTP clients and dialers in the
// code of the program.
func TestWhatOthersChooseIsReachedThroughTheGuard(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && slices.Contains([]string{"node_modules", "testdata", ".git", "bin"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		for _, use := range connections(t, path) {
			found[name] = true
			if otherClients[name] == "" {
				t.Errorf("%s uses %s: take a client of package outbound, or list the file here with a reason", name, use)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range otherClients {
		if !found[name] {
			t.Errorf("%s makes no connections any more: remove it from the list", name)
		}
	}
}

// connections returns what a file uses to open connections.
func connections(t *testing.T, path string) (uses []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{
		"http":      {"Client", "Transport", "Get", "Head", "Post", "PostForm", "DefaultClient", "DefaultTransport"},
		"net":       {"Dial", "DialTimeout", "DialTCP", "Dialer"},
		"tls":       {"Dial", "DialWithDialer", "Dialer"},
		"websocket": {"Dialer", "DefaultDialer"},
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr: // *http.Client is a type, and a client of the guard has it
			_, isType := n.X.(*ast.SelectorExpr)
			return !isType
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && slices.Contains(names[pkg.Name], n.Sel.Name) {
				uses = append(uses, pkg.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return uses
}
