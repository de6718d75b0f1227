package server

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The words for why a part is in a prompt or not are constants of the packages that build prompts. The contract
// lists exactly those, and describes each.
func TestTheContractNamesEveryReason(t *testing.T) {
	t.Parallel()
	said := func(pattern string, dirs ...string) (values []string) {
		for _, dir := range dirs {
			values = append(values, constantsOf(t, "../framework"+dir, regexp.MustCompile(pattern))...)
		}
		slices.Sort(values)
		return slices.Compact(values)
	}
	for _, list := range []struct {
		schema, member string
		want           []string
	}{
		{"PromptEntry", "why", said("^Why", "", "/worldinfo")},
		{"DroppedEntry", "reason", slices.Compact(slices.Sorted(slices.Values(append(said("^[Dd]rop", "", "/tavern"), said("^Reason", "/worldinfo")...))))},
		{"WorldInfoVerdict", "why", said("^Why", "/worldinfo")},
		{"WorldInfoVerdict", "reason", said("^Reason", "/worldinfo")},
		{"WorldInfoVerdict", "in", said("^In[A-Z]", "/worldinfo")},
	} {
		name := list.schema + "." + list.member
		value, _ := at(theContract().openapi, "components", "schemas", list.schema, "properties", list.member)
		member, ok := value.(map[string]any)
		if !ok || len(list.want) < 5 {
			t.Errorf("%s: %v; the constants are %q", name, value, list.want)
			continue
		}
		var described []string
		for _, v := range member["enum"].([]any) {
			described = append(described, v.(string))
		}
		slices.Sort(described)
		if !slices.Equal(described, list.want) {
			t.Errorf("%s lists\n%q\nthe constants are\n%q", name, described, list.want)
		}
		if list.member == "in" {
			continue // most names explain themselves
		}
		text := fmt.Sprint(member["description"])
		if strings.Contains(text, "as in worldInfo") {
			value, _ := at(theContract().openapi, "components", "schemas", "WorldInfoVerdict", "properties", list.member, "description")
			text += fmt.Sprint(value)
		}
		for _, word := range list.want {
			if !regexp.MustCompile(`\b` + word + `( and \w+)? = `).MatchString(text) {
				t.Errorf("%s does not describe %s", name, word)
			}
		}
	}
}

// constantsOf are the texts of the constants of a package whose names match.
func constantsOf(t *testing.T, dir string, name *regexp.Regexp) (values []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), dir+"/"+f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, id := range spec.Names {
				if !name.MatchString(id.Name) || i >= len(spec.Values) {
					continue
				}
				if text, ok := spec.Values[i].(*ast.BasicLit); ok && text.Kind == token.STRING {
					value, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, value)
				}
			}
			return true
		})
	}
	return values
}
