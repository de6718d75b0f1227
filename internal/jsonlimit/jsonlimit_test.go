package jsonlimit_test

import (
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/jsonlimit"
)

func TestDocumentsWithinTheirLimitsPass(t *testing.T) {
	limits := jsonlimit.Limits{Depth: 3, Deep: fault.BadRequest, Values: 9, Lists: map[string]int{"texts": 3, "": 4}}
	for name, tt := range map[string]struct {
		data string
		code fault.Code // "" = it passes
	}{
		"as much as it may":             {`{"texts":[1,2,3],"b":[[],"x"]}`, ""},
		"too many of a list":            {`{"texts":[1,2,3,4]}`, fault.TooLarge},
		"of two lists together":         {`[{"texts":[1,2]},{"texts":[1,2]}]`, fault.TooLarge},
		"of a list in a list":           {`{"texts":[[1,2,3]]}`, fault.TooLarge},
		"by another spelling":           {`{"T\u0065xtſ":[1,2],"TEXTS":[1,2]}`, fault.TooLarge},
		"of the other lists":            {`{"a":[1,2,3],"b":[1,2]}`, fault.TooLarge},
		"too many values":               {`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`, fault.TooLarge},
		"empty lists":                   {`{"texts":[],"a":[ ],"b":{}}`, ""},
		"commas that are text":          {`["a,b,c,d,","\",,,,[[[[[[","\\"]`, ""},
		"a name that is text elsewhere": {`["texts",[1,2]]`, ""},
		"too deep":                      {`[[[[`, fault.BadRequest},
		"as deep as it may be":          {`[[[]],[[]]]`, ""},
		"no JSON":                       {`]},"[`, ""},
		"a text without an end":         {`{"texts\`, ""},
	} {
		if err := jsonlimit.Check([]byte(tt.data), limits); tt.code == "" && err != nil || tt.code != "" && !fault.Is(err, tt.code) {
			t.Errorf("%s: error = %v, want code %q", name, err, tt.code)
		}
	}
}

// A refused document is not read to its end, and nothing is built from it.
func TestACheckBuildsNothing(t *testing.T) {
	data := []byte(`{"texts":[` + strings.Repeat("{},", 1_000_000) + `{}]}`)
	limits := jsonlimit.Limits{Depth: 8, Values: 2_000_000, Lists: map[string]int{"texts": 900_000}}
	if n := testing.AllocsPerRun(1, func() { _ = jsonlimit.Check(data, limits) }); n > 50 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCheck: any input is read without a panic.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"texts":[{"a":[1]}]}`, `[[`, `"\`, `{"te\ud800xts":[1]}`, `]]`, `,,`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		_ = jsonlimit.Check(data, jsonlimit.Limits{Depth: 8, Values: 100, Lists: map[string]int{"texts": 3, "": 10}})
	})
}
