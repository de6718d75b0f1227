package character

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// notSettings are members of the user's settings that describe the stored row, or that the page alone reads.
var notSettings = map[string]bool{"version": true, "updatedAt": true, "nameDeclined": true}

// handling are the files that check, merge, store and show settings: what only they read has
// no effect.
func handling(file string) bool {
	dir, base := filepath.Split(file)
	switch filepath.Base(dir) {
	case "store", "server", "api":
		return true
	case "character":
		return base == "settings.go" || base == "user.go" || base == "options.go" || base == "types.go"
	}
	return false
}

// Every setting of characters, users and conversations is read by the code that it is there
// for: a setting appears with its feature, not before.
func TestEverySettingHasAnEffect(t *testing.T) {
	t.Parallel()
	var set Settings
	fields := map[string]bool{} // by path in the JSON of Settings
	members(reflect.TypeOf(set), "", func(path string) { fields[path] = true })
	for _, g := range characterSettings {
		for _, r := range g.rules {
			if path := g.name + "." + r.name; !r.readOnly && !fields[path] {
				t.Errorf("no code can read the setting %s: Settings has no field for it", path)
			}
		}
	}

	code := loadCode(t)
	for _, name := range []string{"Settings", "UserSettings", "TurnOptions", "GlobalResource"} {
		structs(code.character.Scope().Lookup(name).Type(), "", func(path string, field *types.Var) {
			if !notSettings[path] && !code.read[code.place(field)] {
				t.Errorf("nothing reads %s of %s", path, name)
			}
		})
	}
	if len(code.read) < 20 {
		t.Errorf("%d fields are read; the test looks in the wrong place", len(code.read))
	}
}

// members calls f with the path of each member that a JSON object of a type has.
func members(t reflect.Type, prefix string, f func(path string)) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type.Kind() == reflect.Struct {
			members(field.Type, prefix+name+".", f)
		} else {
			f(prefix + name)
		}
	}
}

// structs calls visit with the fields of a struct and of the structs in it that have no name.
func structs(t types.Type, prefix string, visit func(path string, field *types.Var)) {
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i := range s.NumFields() {
		field := s.Field(i)
		name, _, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get("json"), ",")
		switch field.Type().(type) {
		case *types.Struct:
			structs(field.Type(), prefix+name+".", visit)
		default:
			if !field.Embedded() {
				visit(prefix+name, field)
			}
		}
	}
}

// code is the product's code with types, as far as it knows this package.
type code struct {
	files     *token.FileSet
	character *types.Package
	read      map[string]bool // fields of this package, by where they are declared
}

// place names a field by the line that declares it: types that were read from source and
// from compiled packages are not the same values.
func (c *code) place(field *types.Var) string {
	at := c.files.Position(field.Pos())
	return fmt.Sprintf("%s:%d %s", filepath.Base(at.Filename), at.Line, field.Name())
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles, Deps []string
}

const this = "nodest/character"

// loadCode compiles what the product needs, and reads the packages that are built on this one.
func loadCode(t *testing.T) *code {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,Deps", "nodest/cmd/nodest")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]string{}
	var packages []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		compiled[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, "nodest/") && (p.ImportPath == this || slices.Contains(p.Deps, this)) {
			packages = append(packages, p)
		}
	}
	c := &code{files: token.NewFileSet(), read: map[string]bool{}}
	from := importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
	for _, p := range packages {
		c.load(t, p, from)
	}
	return c
}

// load checks the types of a package and notes the fields that it reads.
func (c *code) load(t *testing.T, p listed, from types.Importer) {
	t.Helper()
	var files []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		file, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: from, FakeImportC: true}
	checked, err := config.Check(p.ImportPath, c.files, files, info)
	if err != nil {
		t.Fatal(err)
	}
	if p.ImportPath == this {
		c.character = checked
	}
	written := map[ast.Expr]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok {
				for _, left := range a.Lhs {
					written[left] = true
				}
			}
			return true
		})
	}
	for at, s := range info.Selections {
		field, ok := s.Obj().(*types.Var)
		if ok && !written[at] && field.Pkg() != nil && field.Pkg().Path() == this && !handling(c.files.Position(at.Pos()).Filename) {
			c.read[c.place(field)] = true
		}
	}
}
