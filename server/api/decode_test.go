package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/op"
)

func TestEveryWrongFieldIsNamed(t *testing.T) {
	type inner struct {
		Number *float64 `json:"number,omitempty"`
	}
	type shape struct {
		Text  string            `json:"text"`
		Count int               `json:"count"`
		Flag  *bool             `json:"flag"`
		List  []string          `json:"list"`
		Map   map[string]string `json:"map"`
		Inner inner             `json:"inner"`
		Any   json.RawMessage   `json:"any"`
		kept  string
	}
	for name, c := range map[string]struct{ in, want string }{
		"everything right":       {`{"text":"a","count":3,"flag":true,"list":["x"],"map":{"a":"b"},"inner":{"number":1.5},"any":[1,{"x":null}]}`, ""},
		"nothing at all":         {`{}`, ""},
		"null is absent":         {`{"text":null,"count":null,"list":null,"inner":null}`, ""},
		"unknown":                {`{"txt":"a"}`, "txt unknown"},
		"another case":           {`{"Text":"a"}`, "Text unknown"},
		"not exported":           {`{"kept":"a"}`, "kept unknown"},
		"unknown inside":         {`{"inner":{"a":{"b":1}}}`, "inner.a unknown"},
		"several":                {`{"text":1,"count":"2","flag":0}`, "count type, flag type, text type"},
		"half a number":          {`{"count":1.5}`, "count type"},
		"a number beyond int64":  {`{"count":9223372036854775808}`, "count type"},
		"a number beyond floats": {`{"inner":{"number":1e999}}`, "inner.number type"},
		"in a list":              {`{"list":["a",1,null]}`, "list[1] type, list[2] type"},
		"in a map":               {`{"map":{"a":1}}`, "map.a type"},
		"no list":                {`{"list":"a"}`, "list type"},
		"no object":              {`{"inner":[]}`, "inner type"},
	} {
		t.Run(name, func(t *testing.T) {
			var v shape
			err := Decode([]byte(c.in), &v)
			if got := fieldsOf(err); got != c.want {
				t.Errorf("got %q (%v), want %q", got, err, c.want)
			}
			_ = v.kept
		})
	}
}

func TestAnErrorListsALimitedNumberOfFields(t *testing.T) {
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, `"u%05d":1,`, i)
	}
	var v struct {
		Text string `json:"text"`
	}
	err := Decode([]byte("{"+many.String()+`"text":"a"}`), &v)
	var e *fault.Error
	if !errors.As(err, &e) || len(e.Fields) != mostTold || e.Fields[0].Field != "u00000" {
		t.Errorf("got %.200v", err)
	}
}

func fieldsOf(err error) string {
	var e *fault.Error
	if !errors.As(err, &e) {
		return ""
	}
	var list []string
	for _, f := range e.Fields {
		list = append(list, f.Field+" "+f.Code)
	}
	return strings.Join(list, ", ")
}

func TestABodyThatIsNotAnObjectIsABadRequest(t *testing.T) {
	for _, in := range []string{"", "[]", "1", "null", `{"text":"a"} x`, `{"text":"a"}{}`, `{"text":`, "{\"text\":\"\xff\"}", strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33)} {
		var v struct {
			Text string `json:"text"`
		}
		if err := Decode([]byte(in), &v); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// FuzzDecode: any input is either decoded or refused with a client error, and
// accepted input is no deeper than the limit.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"1","cmd":"chat.send","key":"k","data":{"text":"hi","options":{"stop":["a"]}}}`,
		`{"id":null}`, `[{"id":"1"}]`, `{"id":1}`, "{\"id\":\"\xc3\"}", `{"id":"1"}}`, strings.Repeat("[", 40), `{"a":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var cmd struct {
			ID   string          `json:"id,omitempty"`
			Cmd  string          `json:"cmd"`
			Key  string          `json:"key,omitempty"`
			Data json.RawMessage `json:"data,omitempty"`
		}
		err := Decode(data, &cmd)
		if err != nil {
			if c := fault.Public(err).Code; c != fault.BadRequest && c != fault.Invalid && c != fault.TooLarge {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		if !json.Valid(data) || op.CheckLimits(data) != nil {
			t.Fatalf("%q was accepted", data)
		}
		if o := ByCommand()["chat.send"]; cmd.Data != nil {
			if _, _, err := o.Data.Prepare("chat.send", cmd.Data); err != nil && fault.Public(err).Code == fault.Internal {
				t.Fatalf("%q: %v", cmd.Data, err)
			}
		}
	})
}
