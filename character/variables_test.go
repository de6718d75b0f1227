package character

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nodest/framework/macro"
	"nodest/internal/fault"
)

// Variables that macros have made as large as they can are stored, and stored ones are read whole.
func TestVariablesHaveOneLimit(t *testing.T) {
	t.Parallel()
	full := macro.NewVars(nil)
	for i := range 40 {
		full.Set(fmt.Sprint("<n>", i), strings.Repeat("茶<", 1000))
	}
	doc, err := json.Marshal(full)
	if err != nil || len(doc) < MaxVariables*3/4 {
		t.Fatalf("%d bytes, %v", len(doc), err)
	}
	if err := CheckVariables("variables", doc); err != nil {
		t.Errorf("what macros made is refused: %v", err)
	}
	long := `"` + strings.Repeat("x", macro.MaxVarValue) + `"`
	for name, c := range map[string]struct {
		doc string
		ok  bool
	}{
		"null":                        {"null", true},
		"the longest text":            {`{"a":` + long + `}`, true},
		"a longer text":               {`{"a":"x` + long[1:] + `}`, false},
		"a list that is a long text":  {`{"a":[` + strings.Repeat(`"",`, macro.MaxVarValue/3) + `""]}`, false},
		"lists that are longer texts": {`{"a":[` + strings.Repeat(`"",`, 16_000) + `""],"b":[` + strings.Repeat(`"",`, 16_000) + `""],"c":[` + strings.Repeat(`"",`, 16_000) + `""]}`, true},
		"and more of them":            {`{` + strings.TrimSuffix(strings.Repeat(`"%d":[`+strings.Repeat(`"",`, 12_000)+`""],`, 6), ",") + `}`, false},
		"no object":                   {`[1]`, false},
	} {
		if strings.Contains(c.doc, "%d") {
			c.doc = fmt.Sprintf(c.doc, 1, 2, 3, 4, 5, 6)
		}
		if err := CheckVariables("variables", json.RawMessage(c.doc)); c.ok != (err == nil) || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckState("timedWorldInfo", json.RawMessage(`{"sticky":{"a":`+long+`}}`)); err != nil {
		t.Errorf("a state that is no variable: %v", err)
	}
}
