package op_test

import (
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/op"
)

func TestTags(t *testing.T) {
	long := strings.Repeat("界", op.MaxTag)
	many := strings.Split(strings.Repeat("x ", op.MaxTags), " ")[:op.MaxTags]
	for i := range many {
		many[i] += string(rune('a' + i))
	}
	for _, c := range []struct{ given, want []string }{
		{nil, []string{}},
		{[]string{" Fantasy ", "fantasy", "FANTASY", "slow burn"}, []string{"Fantasy", "slow burn"}},
		{[]string{"Straße", "STRASSE", "ﬀ", "ff"}, []string{"Straße", "ﬀ"}},
		{[]string{long}, []string{long}},
		{append(slices.Clone(many), "XA"), many},
	} {
		got, err := op.CheckTags("tags", c.given)
		if err != nil || !slices.Equal(got, c.want) || got == nil {
			t.Errorf("%q: %q, %v; want %q", c.given, got, err, c.want)
		}
		if got := op.UsableTags(c.given); !slices.Equal(got, c.want) {
			t.Errorf("%q of a file: %q, want %q", c.given, got, c.want)
		}
	}
	for _, c := range []struct {
		given  []string
		field  string
		usable []string
	}{
		{[]string{"a", " "}, "tags[1]", []string{"a"}},
		{[]string{long + "x", "b"}, "tags[0]", []string{"b"}},
		{[]string{"two\nlines"}, "tags[0]", nil},
		{[]string{"\xff"}, "tags[0]", nil},
		{append(slices.Clone(many), "one more"), "tags", many},
	} {
		_, err := op.CheckTags("tags", c.given)
		if e := fault.Public(err); e.Code != fault.Invalid || e.Fields[0].Field != c.field {
			t.Errorf("%q: %v, want an error at %s", c.given, err, c.field)
		}
		if got := op.UsableTags(c.given); !slices.Equal(got, c.usable) {
			t.Errorf("%q of a file: %q, want %q", c.given, got, c.usable)
		}
	}
}
