package claim

import "testing"

func TestNumbersFollowFromOthers(t *testing.T) {
	for _, tt := range []struct {
		claim, source string
		lacks         int // numbers that do not follow
	}{
		{"Together they have 5,500 people.", "Arven has 1,200 people and Belmor has 4,300 people.", 0},
		{"Sales fell by 3.7 million tonnes.", "Sales fell from 9.8 million tonnes to 6.1 million tonnes.", 0},
		{"She was 76.", "She was born in 1931 and died in 2008.", 0},
		{"He found it in 1955.", "It was seen in 1952, and he found it three years later.", 0},
		{"The state pays 0.8 million crowns.", "It costs 2.4 million crowns, a third of which the state pays.", 0},
		{"About 3 percent of them die.", "Without it, about 3 in 100 of them die.", 0},
		{"箱子共650毫升。", "水箱0.4升，尘盒0.25升。", 0},
		{"约440吨销往省外。", "年产量1100吨，四成销往省外。", 0},
		{"工程用了五年。", "1958年动工，1963年建成。", 0},
		{"Together they have 5,600 people.", "Arven has 1,200 people and Belmor has 4,300 people.", 1},
		{"Twelve farmers founded it.", "Eleven farmers founded it. It makes two cheeses and one butter.", 1},
		{"It is 30 metres long.", "It is 20 metres long and weighs 10 tonnes.", 1},
		{"He found it in 1956.", "It was seen in 1952, and he found it three years later.", 1},
	} {
		if got := FactsOf(tt.claim).Missing(NewEvidence(tt.source)).Numbers(); len(got) != tt.lacks {
			t.Errorf("%q lacks %q in %q, want %d", tt.claim, got, tt.source, tt.lacks)
		}
	}
}
