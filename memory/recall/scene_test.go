package recall_test

import (
	"slices"
	"testing"

	"nodest/memory/recall"
)

// A scene told in several turns, or in several sentences, brings back what it touches; small talk behind it does not.
func TestASceneRecalls(t *testing.T) {
	t.Parallel()
	units := append(sessionUnits(1, "2023-04-02",
		"Ann: My grandpa built a telescope with me.", "Ann: A dog bit me behind the bakery when I was six.", "Ann: The tent was flooded in the Ardennes.", "Ann: I get migraines from red wine.",
		"Ann: 小时候爷爷陪我做过一架望远镜。", "Ann: 我一喝红酒就偏头痛。"), everyday(40)...)
	for i := range units[6:] {
		units[6+i].ID, units[6+i].Conversation = "n"+units[6+i].ID, "noise"
	}
	x := indexOf(t, units...)
	for _, c := range []struct {
		name   string
		text   string
		before []string // the user's texts, the newest first
		want   string   // "" = nothing
	}{
		{"several sentences", "The sky is so clear tonight. We drove out of the city. I brought the old telescope and a blanket.", nil, "telescope"},
		{"a sentence that tells little", "I brought a blanket.", nil, ""},
		{"in Chinese", "今晚天特别清。我们开车到城外了。我带了那架旧望远镜和一条毯子。", nil, "望远镜"},
		{"several turns", "It growls at everybody who passes the bakery.", []string{"They keep it on a chain in the yard.", "The neighbours bought a huge dog."}, "bit me"},
		{"a turn alone", "It growls at everybody.", nil, ""},
		{"the turns before alone", "Fine, let us fetch the boat.", []string{"The neighbours bought a huge dog.", "I saw it behind the bakery."}, ""},
		{"small talk behind a scene", "haha, stop it", []string{"The neighbours bought a huge dog.", "I saw it behind the bakery."}, ""},
		{"a narration", "*She lifts the tent flap.* The forest is dark. Wolves howl behind the hills. Nobody moves.", nil, ""},
	} {
		q := recall.Query{Text: c.text, Now: noon, Here: "here"}
		for _, text := range c.before {
			q.Before = append(q.Before, text, "I see.")
		}
		hits := find(t, x, q)
		if c.want == "" && len(hits) > 0 || c.want != "" && position(hits, c.want) != 0 {
			t.Errorf("%s: %q, want %q first", c.name, hitTexts(hits), c.want)
		}
	}
}

// A question that says what it asks for is not changed by the turns before.
func TestAPlainQuestionMeansItselfAlone(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sampleUnits...)
	alone := recall.Query{Text: "How many cats does my sister have?", Now: noon}
	behind := alone
	behind.Before = []string{"I painted a sunrise at the lake, with the sails in it.", "Wonderful."}
	if a, b := foundIDs(find(t, x, alone)), foundIDs(find(t, x, behind)); !slices.Equal(a, b) || len(a) == 0 {
		t.Errorf("%v, behind other turns %v", a, b)
	}
}
