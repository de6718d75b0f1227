package character

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// stamps parses "a1! b2": resource a at version 1, bound, and resource b at version 2,
// named by id.
func stamps(s string) []ResourceStamp {
	var list []ResourceStamp
	for word := range strings.FieldsSeq(s) {
		var r ResourceStamp
		r.ID, word = word[:1], word[1:]
		word, r.Bound = strings.CutSuffix(word, "!")
		if _, err := fmt.Sscan(word, &r.Version); err != nil {
			panic(err)
		}
		list = append(list, r)
	}
	return list
}

func TestWhichResourcesAreInForce(t *testing.T) {
	for name, tt := range map[string]struct {
		pinned, over, now string // resources
		named             string // ids
		want              string
	}{
		"nothing":                                  {},
		"nothing has changed":                      {pinned: "a1! b2!", over: "a1! b2! a1 b2", now: "a1! b2! a1 b2", want: "a1! b2!"},
		"updated before the restore":               {pinned: "a1!", over: "a3! a3", now: "a3! a3", want: "a1!"},
		"updated after the restore":                {pinned: "a1!", over: "a3! a3", now: "a4! a4", want: "a4!"},
		"deleted before the restore":               {pinned: "a1!", want: "a1!"},
		"deleted after the restore":                {pinned: "a1!", over: "a1! a1"},
		"unbound before the restore":               {pinned: "a1!", over: "a2", now: "a2", want: "a1!"},
		"unbound before, changed after":            {pinned: "a1!", over: "a2", now: "a3"},
		"unbound after the restore":                {pinned: "a1!", over: "a1! a1", now: "a2"},
		"bound between save and restore":           {over: "a2!", now: "a2!"},
		"bound between, changed after":             {over: "a2!", now: "a3!", want: "a3!"},
		"made after the restore":                   {pinned: "a1!", over: "a1! a1", now: "a1! b1! a1", want: "a1! b1!"},
		"deleted one keeps its place":              {pinned: "a1! b1! c1!", over: "a1! c1! a1 c1", now: "a1! c1! a1 c1", want: "a1! b1! c1!"},
		"deleted one before a new one":             {pinned: "a1! b1!", over: "a1! a1", now: "a1! c1! a1", want: "a1! b1! c1!"},
		"changed one keeps its place":              {pinned: "a1! b1!", over: "a1! b1! a1 b1", now: "a2! b1! a2 b1", want: "a2! b1!"},
		"named":                                    {pinned: "p1", over: "p3", now: "p3", named: "p", want: "p1"},
		"named and deleted":                        {pinned: "p1", named: "p", want: "p1"},
		"named and changed after":                  {pinned: "p1", over: "p3", now: "p4", named: "p", want: "p4"},
		"not named any more":                       {pinned: "p1", over: "p3", now: "p3"},
		"another is named since":                   {pinned: "p1", over: "p1", now: "p1 q7", named: "q", want: "q7"},
		"one that was bound since is named since":  {over: "q7!", now: "q7! q7", named: "q", want: "q7"},
		"one that was bound then is named since":   {pinned: "a1!", over: "a2! a2", now: "a2! a2", named: "a", want: "a1! a1"},
		"bound and named":                          {pinned: "a1! a1", over: "a2! a2", now: "a2! a2", named: "a", want: "a1! a1"},
		"named and nowhere":                        {named: "x"},
		"a new one, bound between two pinned ones": {pinned: "a1! c1!", over: "a1! b1! c1!", now: "a1! b2! c1!", want: "a1! b2! c1!"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Pins{Character: 1, Resources: stamps(tt.pinned), Over: &Over{Character: 2, Resources: stamps(tt.over)}}
			got := p.StampsInForce(&Stamps{Character: 2, Resources: stamps(tt.now)}, strings.Fields(tt.named))
			if !slices.Equal(got.Resources, stamps(tt.want)) {
				t.Errorf("in force: %v, want %v", got.Resources, stamps(tt.want))
			}
			if got.Character != 1 {
				t.Errorf("character at version %d, want the pinned 1", got.Character)
			}
			if got = p.StampsInForce(&Stamps{Character: 3}, nil); got.Character != 3 {
				t.Errorf("changed character at version %d, want 3", got.Character)
			}
		})
	}
}

func TestWhichSettingsAreInForce(t *testing.T) {
	then, now := &UserSettings{Version: 1}, &UserSettings{Version: 5}
	for name, tt := range map[string]struct {
		pins *Pins
		want *UserSettings
	}{
		"no pins":               {nil, now},
		"of a save point":       {&Pins{Settings: then}, now},
		"nothing has changed":   {&Pins{Settings: then, Over: &Over{Settings: 5}}, then},
		"changed since":         {&Pins{Settings: then, Over: &Over{Settings: 4}}, now},
		"none with those saved": {&Pins{Over: &Over{Settings: 5}}, now},
	} {
		if got := tt.pins.SettingsInForce(now); got != tt.want {
			t.Errorf("%s: version %d, want %d", name, got.Version, tt.want.Version)
		}
	}
}
