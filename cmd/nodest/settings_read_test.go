package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"nodest/internal/setup"
)

// TestEverySettingOfTheServerIsRead: beside the table that declares it, each name stands
// somewhere in this program or in a package that reads it, written out or made around the name of a provider.
func TestEverySettingOfTheServerIsRead(t *testing.T) {
	t.Parallel()
	var paths []string
	for _, folder := range []string{".", "../../internal/setup", "../../internal/instance", "../../internal/backup"} {
		some, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, some...)
	}
	named := map[string]bool{}
	type around struct{ prefix, suffix string }
	var made []around
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				key, ok := n.Key.(*ast.Ident)
				return !ok || key.Name != "Env" // its declaration
			case *ast.BasicLit:
				for _, text := range literals(n) {
					named[text] = true
				}
			case *ast.BinaryExpr:
				if texts := literals(n); len(texts) == 2 {
					made = append(made, around{texts[0], texts[1]})
				}
			}
			return true
		})
	}
	for _, s := range setup.Settings {
		read := named[s.Env]
		for _, m := range made {
			read = read || strings.HasPrefix(s.Env, "NODEST_") && m.prefix == "NODEST_" && strings.HasSuffix(s.Env, m.suffix)
		}
		if !read {
			t.Fatalf("nothing reads %s", s.Env)
		}
	}
}

// literals returns the texts that an expression joins with others.
func literals(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return []string{text}
		}
	case *ast.BinaryExpr:
		return append(literals(e.X), literals(e.Y)...)
	}
	return nil
}
