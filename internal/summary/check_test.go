package summary

import (
	"strings"
	"testing"
	"time"
)

// chatOf has one message per text, alternating between two speakers.
func chatOf(texts ...string) []ChatLine {
	lines := make([]ChatLine, len(texts))
	for i, text := range texts {
		lines[i] = ChatLine{Text: text, Name: []string{"Anna", "Mira"}[i%2], At: time.Date(2025, 3, 14, 9, i, 0, 0, time.UTC)}
	}
	return lines
}

// Names and numbers that do not occur in the chat are removed from a summary; counts,
// dates of the messages, and other forms of a name are allowed.
func TestInventedNamesAndNumbersAreFound(t *testing.T) {
	english := chatOf("My sister Lucy moved to Bergen, she's twenty-five.", "Oh! Will you visit her in Norway by train? It's 3,000 miles.", "Yes, at half past eight tomorrow, with forty apples and my dog Rex.", "I promise I will bring the blue umbrella.")
	chinese := chatOf("我叫王小明，妹妹小雨在青石镇。", "好的，我答应陪你去渡口接她，带上《寒江录》。", "我们欠掌门三百两银子，我用Python记了账。", "那就月底之前还。")
	for _, tt := range []struct {
		name, text string
		lines      []ChatLine
		madeUp     string // the word that is removed
	}{
		{"what was said", "Anna's sister Lucy lives in Bergen. Mira promised to bring the blue umbrella; Anna takes 40 apples and Rex.", english, ""},
		{"counts", "They named 2 people and 4 things. Three plans are open.", english, ""},
		{"dates of the messages", "On 14 March 2025 they made a plan for 15 March (Saturday) at 8:30.", english, ""},
		{"numbers in another form", "Lucy is 25 and lives 3000 miles away.", english, ""},
		{"other forms of a name", "The Norwegian trip to Lucy's place is open.", english, ""},
		{"an array", "Promises:\n- Mira brings the umbrella\n- Visit Lucy\n**Open:** the train", english, ""},
		{"words that begin a sentence", "Trust grew. Afterwards everything was calm. Plans were made. Nobody left early.", english, ""},
		{"a name", "Lucy lives in Bergen with Marcus.", english, "Marcus"},
		{"a name that begins", "Marcus told Anna the truth.", english, "Marcus"},
		{"a place", "Lucy moved to Oslo.", english, "Oslo"},
		{"a number", "They need 450 dollars.", english, "450"},
		{"a year", "They met in 1998.", english, "1998"},
		{"in Chinese what was said", "王小明的妹妹小雨在青石镇，两人约好月底前去渡口，带上《寒江录》，300两银子还没还。小雨答应等候，他用Python记账。", chinese, ""},
		{"in Chinese common words", "高兴之余，小时候的事也说了起来。许多话说不完，谢谢说了3遍，小心地收好了书。", chinese, ""},
		{"in Chinese a name", "王小明和李大伟说好了。李大伟答应来。", chinese, "李大伟"},
		{"in Chinese another", "小雨与小红约好，小红说会来。", chinese, "小红"},
		{"in Chinese one that is called so", "掌门名叫叶孤城。", chinese, "叶孤城"},
		{"in Chinese a place", "两人打算去北京。", chinese, "北京"},
		{"in Chinese a book", "她带来了《红楼梦》。", chinese, "红楼梦"},
		{"in Chinese a number", "掌门要5000两。", chinese, "5000"},
		{"in Chinese a Latin name", "他改用Java记账。", chinese, "Java"},
	} {
		kept, madeUp := materialOf(tt.lines, "").withoutMadeUp(tt.text)
		if tt.madeUp == "" && len(madeUp) > 0 || tt.madeUp != "" && !strings.Contains(strings.Join(madeUp, " "), tt.madeUp) {
			t.Errorf("%s: made up are %q, want %q", tt.name, madeUp, tt.madeUp)
		}
		if tt.madeUp == "" && kept != tt.text || tt.madeUp != "" && strings.Contains(kept, tt.madeUp) {
			t.Errorf("%s: kept is %q", tt.name, kept)
		}
	}
	if _, madeUp := materialOf(english, "Before, Marcus paid 450 dollars.").withoutMadeUp("Marcus told them of the 450 dollars."); len(madeUp) > 0 {
		t.Errorf("names of the summary before are made up: %q", madeUp)
	}
	german := chatOf("Gestern war ich mit meinem Hund im Wald und habe Pilze gesucht.", "Das klingt nach einem schönen Tag! Hast du auch Beeren gefunden?", "Ja, einen ganzen Korb, und der Hund hat einen Igel erschreckt.")
	if _, madeUp := materialOf(german, "").withoutMadeUp("Nach der Suche im Wald gab es Freude über den vollen Korb."); len(madeUp) > 0 {
		t.Errorf("nouns of a language that writes them with a capital are made up: %q", madeUp)
	}
}

func TestTheLanguageOfASummary(t *testing.T) {
	english, chinese := "They met at the mill and talked about the ferry.", "他们在磨坊见面，谈到了渡船。"
	japanese, korean, russian := "二人は水車小屋で会って、船の話をしました。", "두 사람은 방앗간에서 만나 배 이야기를 했다.", "Они встретились у мельницы и говорили о пароме."
	all := []string{english, chinese, japanese, korean, russian}
	for i, said := range all {
		m := materialOf(chatOf(said, said, said), "")
		for j, text := range all {
			if got := m.foreign(text); got != (i != j) {
				t.Errorf("%q for a chat in %q: foreign = %v", text, said, got)
			}
		}
	}
	if materialOf(chatOf("我在Google上班，用Kubernetes写后台服务，你呢？"), "").foreign("她在Google写Kubernetes的后台服务。") {
		t.Error("Latin names make a Chinese summary a foreign one")
	}
}

// The minimum length of a summary grows with the length of what it covers.
func TestMinimumLengthOfASummary(t *testing.T) {
	text := "They talked about the mill and the ferry, and went home then." // 61
	for n, want := range map[int]Verdict{12: Accepted, 40: TooShort} {
		lines := chatOf(strings.Split(strings.Repeat("the mill, the ferry|", n-1)+"home", "|")...)
		if _, got := Accept(text, lines, 1000); len(lines) != n || got != want {
			t.Errorf("of %d messages: %q, want %q", len(lines), got, want)
		}
	}
	long := chatOf(strings.Repeat("We talked about the mill. ", 800)) // 20,800
	if _, got := Accept(text, long, 1000); got != TooShort {
		t.Errorf("of a long message: %q", got)
	}
	if n := least(900, 90_000, 500); n != 125 {
		t.Errorf("of 500 characters at most %d are wanted at least", n)
	}
}
