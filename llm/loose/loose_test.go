package loose

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

func TestNumbersAreReadInEverySpelling(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`12`: "12 12", `12.0`: "12 12", `"12"`: "12 12", `1.2e1`: "12 12", `" 12 "`: "12 12", `-3`: "-3 -3", `0`: "0 0",
		`"0.0001"`: "0.0001 ?", `12.5`: "12.5 ?", `99999999999999999999`: "1e+20 ?", `1e999`: "? ?",
		`null`: "? ?", `true`: "? ?", `""`: "? ?", `"twelve"`: "? ?", `"0x1f"`: "? ?", `"Inf"`: "? ?", `"NaN"`: "? ?", `"1_0"`: "? ?", `[12]`: "? ?", `{"n":12}`: "? ?",
	} {
		var n Number
		if err := Unmarshal([]byte(doc), &n); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
		float, whole := "?", "?"
		if f := n.Float(); f != nil {
			float = fmt.Sprint(*f)
		}
		if i, ok := n.Int(); ok {
			whole = fmt.Sprint(i)
		}
		if got := float + " " + whole; got != want {
			t.Errorf("%s is %s, want %s", doc, got, want)
		}
	}
	seen := struct{ N Number }{Number{3, true}}
	if err := Unmarshal([]byte(`{"n":"many"}`), &seen); err != nil || seen.N.IntOr(0) != 3 {
		t.Errorf("an unreadable number leaves %+v, %v", seen, err)
	}
	if n := (Number{}); n.IntOr(7) != 7 {
		t.Error("an unknown number is not the other one")
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]Text{`"a\n茶"`: "a\n茶", `1984`: "1984", `-1.50`: "-1.50", `null`: "", `false`: "", `["a"]`: "", `{}`: ""} {
		var got Text
		if err := Unmarshal([]byte(doc), &got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", doc, got, err, want)
		}
	}
}

type entry struct {
	Name Text
	Size Number
	Of   struct{ Kind string }
	Tags List[Text]
}

func TestWhatDoesNotFitIsLeftOut(t *testing.T) {
	t.Parallel()
	good := entry{Name: "b", Size: Number{2, true}}
	good.Of.Kind = "k"
	for doc, want := range map[string][]entry{
		`{"list":[{"name":"b","size":2,"of":{"kind":"k"}}]}`:                                                      {good},
		`{"list":[{"name":[],"size":{},"of":[],"tags":5},{"name":"b","size":"2","of":{"kind":"k"},"tags":null}]}`: {{}, good},
		`{"list":[null,5,"x",[],{"name":"b","size":2.0,"of":{"kind":"k"}}],"other":7}`:                            {good},
		`{"list":{"name":"b","size":2,"of":{"kind":"k"}}}`:                                                        {good},
		`{"list":[{"of":{"kind":5},"tags":["a",null,{},6]}]}`:                                                     {{Tags: List[Text]{"a", "6"}}},
		`{"list":"none"}`: nil, `{"list":null}`: nil, `{}`: nil, "\ufeff{\"list\":[]}": nil,
	} {
		var got struct {
			Other string
			List  List[entry]
		}
		if err := Unmarshal([]byte(doc), &got); err != nil || !reflect.DeepEqual([]entry(got.List), want) {
			t.Errorf("%s is %+v, %v; want %+v", doc, got.List, err, want)
		}
	}
}

func TestADocumentOfAnotherKindIsAnError(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{``, `{`, `[]`, `"x"`, `5`, `{"list":[}`, `<html>`} {
		if Unmarshal([]byte(doc), &struct{ List List[entry] }{}) == nil {
			t.Errorf("%s is read", doc)
		}
	}
	if Unmarshal([]byte(`{}`), &[]int{}) == nil {
		t.Error("an object is read as a list")
	}
	numbers := []int{}
	if err := Unmarshal([]byte(`[1,"x",3]`), &numbers); err != nil || len(numbers) != 3 {
		t.Errorf("%v, %v", numbers, err)
	}
}

func TestValuesThatSayNothing(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]bool{
		``: true, `null`: true, `false`: true, `0`: true, `0.0`: true, `""`: true, `" "`: true, `[]`: true, `{}`: true,
		`{"message":"","code":null,"metadata":{"reasons":[]}}`: true, `[null,{}]`: true,
		`true`: false, `1`: false, `"x"`: false, `{"message":"x"}`: false, `{"code":500}`: false, `[[["x"]]]`: false, `{`: false,
	} {
		if Empty([]byte(doc)) != want {
			t.Errorf("%s: want %v", doc, want)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`{"list":[{"name":5}]}`, `{"list":{}}`, `[1]`, `{"list":[[`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var v struct{ List List[entry] }
		err := Unmarshal(doc, &v)
		var object map[string]json.RawMessage
		if isObject := json.Unmarshal(doc, &object) == nil; isObject && err != nil {
			t.Errorf("%q is an object and not read: %v", doc, err)
		}
		Empty(doc)
	})
}
