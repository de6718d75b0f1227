package audit

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nodest/internal/fault"
)

// Clients choose from Actions: one that is missing there can be noted, but not asked for.
func TestActionsListsEveryAction(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "audit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); !ok || of.Name != "Action" {
			return true
		}
		n++
		word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil || !slices.Contains(Actions, Action(word)) {
			t.Errorf("%s is not in Actions", spec.Names[0].Name)
		}
		return true
	})
	if n != len(Actions) || n == 0 {
		t.Errorf("%d actions, and Actions has %d", n, len(Actions))
	}
}

func TestAFilterKnowsTheActions(t *testing.T) {
	t.Parallel()
	for _, a := range append([]Action{""}, Actions...) {
		if err := (Filter{Action: a}).Check(); err != nil {
			t.Errorf("%q: %v", a, err)
		}
	}
	if err := (Filter{Action: "signin "}).Check(); !fault.Is(err, fault.Invalid) {
		t.Errorf("an unknown one: %v", err)
	}
}

// A client says what it likes about itself.
func TestAnOriginIsShortAndPlain(t *testing.T) {
	t.Parallel()
	if got := From(t.Context()); got != (Origin{}) {
		t.Errorf("without one: %+v", got)
	}
	asked := 0
	ctx := With(t.Context(), func() Origin {
		asked++
		return Origin{Address: strings.Repeat("1", 100), Agent: "a\x1b[31m\u202eb\r\nc\xff" + strings.Repeat("é", 200)}
	})
	if asked != 0 {
		t.Error("it was asked for before there was an entry")
	}
	got := From(context.WithoutCancel(ctx))
	if len(got.Address) != 64 || len(got.Agent) > 200 || !strings.HasPrefix(got.Agent, "a[31mbcéé") || !strings.HasSuffix(got.Agent, "é") {
		t.Errorf("%+v", got)
	}
}
