package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Limits that keep packages and interfaces easy to read. The linter limits functions
// (gocyclo in .golangci.yml).
const (
	packageLines     = 6000 // without tests
	interfaceMethods = 40   // including those of embedded interfaces
	structFields     = 20   // including those of unnamed structs in it; a part with a name of its own is one
)

// largePackages may have more lines, for the reason given.
var largePackages = map[string]string{
	"store": "lock order, group commit, event numbers and effects with their events and jobs are said once for all tables",
}

// wideStructs may have more fields, for the reason given.
var wideStructs = map[string]string{
	"chat.wireMessage":                    "the members of a message as clients read them",
	"character.Settings":                  "the settings of a character as they are stored, in their groups",
	"framework.words":                     "a file of words, with those of the clock in a group",
	"internal/bench/circle.circleFigures": "one figure a line, as the report of the benchmark prints them",
	"store.subjects":                      "one field for each subject whose rows a transaction has",
	"websearch/miniweb.Route":             "a line of the file that describes the web of the tests",
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

// A person can hold each struct in the head. (Of a turn the parts count too: TestNoPartOfATurnIsWide.)
func TestStructsStaySmall(t *testing.T) {
	t.Parallel()
	found := 0
	for pkg, files := range ownPackages(t) {
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				of, ok := spec.Type.(*ast.StructType)
				if !ok {
					return true
				}
				found++
				name := pkg + "." + spec.Name.Name
				if _, wide := wideStructs[name]; wide != (fieldsOf(of) > structFields) {
					t.Errorf("struct %s has %d fields; the bound is %d, and wideStructs names the exceptions", name, fieldsOf(of), structFields)
				}
				return true
			})
		}
	}
	if found < 1000 {
		t.Errorf("only %d structs were found", found)
	}
}

// Comments begin with their subject: those that begin with these words are half sentences that need a second reading.
func TestCommentsBeginWithTheirSubject(t *testing.T) {
	t.Parallel()
	for _, files := range ownPackages(t) {
		names, err := filepath.Glob(filepath.Join(filepath.Dir(files[0]), "*.go")) // with its tests
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range file.Comments {
				words := strings.Fields(c.Text())
				if len(words) < 2 {
					continue
				}
				first := strings.ToLower(words[0])
				if first == "of" && (words[1] == "is" || words[1] == "returns") { // it is about a function of this name
					continue
				}
				if slices.Contains([]string{"what", "of", "whether"}, first) {
					t.Errorf("%s: the comment begins with %q: %.80q", name, words[0], c.Text())
				}
			}
		}
	}
}

// fieldsOf counts the fields of a struct, and those of unnamed structs in it in their place.
func fieldsOf(of *ast.StructType) (n int) {
	for _, f := range of.Fields.List {
		fields := max(len(f.Names), 1) // an embedded one has no name
		kind := f.Type
		if p, ok := kind.(*ast.StarExpr); ok {
			kind = p.X
		}
		if part, ok := kind.(*ast.StructType); ok {
			fields *= fieldsOf(part)
		}
		n += fields
	}
	return n
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
