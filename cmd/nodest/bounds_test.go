package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Limits that keep packages and interfaces easy to read. The linter limits functions
// (gocyclo in .golangci.yml).
const (
	packageLines     = 6000 // without tests
	interfaceMethods = 40   // including those of embedded interfaces
)

// largePackages may have more lines, for the reason given.
var largePackages = map[string]string{
	"store": "lock order, group commit, event numbers and effects with their events and jobs are said once for all tables",
}

// ownPackages returns the files of our packages, by path within the module.
func ownPackages(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .GoFiles \" \"}}", "nodest/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		for name := range strings.FieldsSeq(f[2]) {
			pkg := strings.TrimPrefix(f[0], "nodest/")
			files[pkg] = append(files[pkg], filepath.Join(f[1], name))
		}
	}
	return files
}

func TestPackagesStaySmall(t *testing.T) {
	t.Parallel()
	for pkg, files := range ownPackages(t) {
		lines := 0
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(text, []byte("\n"))
		}
		if _, large := largePackages[pkg]; large != (lines > packageLines) {
			t.Errorf("%s has %d lines; the bound is %d, and largePackages names the exceptions", pkg, lines, packageLines)
		}
	}
}

func TestInterfacesStaySmall(t *testing.T) {
	t.Parallel()
	known := interfaces{}
	for pkg, files := range ownPackages(t) {
		for _, name := range files {
			known.read(t, pkg, name)
		}
	}
	if len(known) < 20 {
		t.Fatalf("only %d interfaces were found", len(known))
	}
	for name := range known {
		if n := known.methods(name); n > interfaceMethods {
			t.Errorf("interface %s has %d methods, the bound is %d", name, n, interfaceMethods)
		}
	}
}

// interfaces holds, by package and name, how many methods an interface declares and
// which of our interfaces it embeds.
type interfaces map[string]parts

type parts struct {
	methods  int
	embedded []string
}

func (k interfaces) read(t *testing.T, pkg, name string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if own, ok := strings.CutPrefix(path, "nodest/"); ok {
			imports[filepath.Base(own)] = own
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		face, ok := spec.Type.(*ast.InterfaceType)
		if !ok {
			return true
		}
		var found parts
		for _, f := range face.Methods.List {
			switch e := f.Type.(type) {
			case *ast.FuncType:
				found.methods += len(f.Names)
			case *ast.Ident:
				found.embedded = append(found.embedded, pkg+"."+e.Name)
			case *ast.SelectorExpr:
				found.embedded = append(found.embedded, imports[e.X.(*ast.Ident).Name]+"."+e.Sel.Name)
			}
		}
		k[pkg+"."+spec.Name.Name] = found
		return true
	})
}

// methods counts the methods of an interface, including those of our interfaces that
// it embeds.
func (k interfaces) methods(name string) int {
	found := k[name]
	n := found.methods
	for _, e := range found.embedded {
		n += k.methods(e)
	}
	return n
}
