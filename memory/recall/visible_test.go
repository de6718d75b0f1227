package recall_test

import (
	"testing"

	"nodest/memory/recall"
)

func TestVisibleItemsAreNotRecalledAgain(t *testing.T) {
	t.Parallel()
	v := recall.VisibleIn([]recall.Shown{
		{"said", "My sister Mia moved to Oslo last summer."}, {"reply", "Oslo is cold!"}, {"asked", "When did I move to Rome?"}, {"forgot", "我什么时候学的法语？我忘了。"},
	})
	there, other := []recall.Source{{"said"}}, []recall.Source{{"old"}}
	tests := []struct {
		name    string
		text    string
		sources []recall.Source
		want    bool
	}{
		{"its message is shown", "Mia lives in Oslo", there, true},
		{"its words are shown", "my sister Mia moved to Oslo", other, true},
		{"word for word", "Oslo is cold", nil, true},
		{"a question only asks for it", "I've moved to Rome", other, false},
		{"in Chinese too", "我学法语", other, false},
		{"something else", "User's brother lives in Rome", other, false},
		{"half of what it rests on", "Mia lives in Oslo", []recall.Source{{"said", "old"}}, false},
		{"one of two that it rests on", "Mia lives in Oslo", append(other, there...), true},
		{"one word is no proof", "Oslo", other, false},
	}
	for _, tt := range tests {
		if got := v.Has(tt.text, tt.sources); got != tt.want {
			t.Errorf("%s: visible = %v, want %v", tt.name, got, tt.want)
		}
	}
	if (recall.Visible{}).Has("anything at all", there) {
		t.Error("the zero value hides something")
	}
}
