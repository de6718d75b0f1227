package rules

import "testing"

// Cards of games, tools and several characters are told from people.
func TestCardsThatAreNobodyAreUnfit(t *testing.T) {
	for _, c := range []struct {
		name string
		tags []string
		text string
		want Unfit
	}{
		{"Kingdom Simulator", nil, "You rule a small kingdom.", UnfitGame},
		{"Duskmoor", []string{"Text Adventure"}, "A drowned city.", UnfitGame},
		{"The Narrator", nil, "You are the narrator of a mystery.", UnfitGame},
		{"灵脉求生模拟器", nil, "一个原创修真世界观的生存模拟游戏。", UnfitGame},
		{"エルディア冒険クエスト", []string{"RPG"}, "テキストアドベンチャーゲーム。", UnfitGame},
		{"Guardian", nil, "A strategic crisis management game set in an original universe.", UnfitGame},
		{"Coding Assistant", []string{"code"}, "A professional programming assistant.", UnfitTool},
		{"小红书文案编辑", []string{"助手"}, "专业的小红书内容创作助手。", UnfitTool},
		{"AI画像生成アシスタント", nil, "プロンプト作成アシスタントです。", UnfitTool},
		{"Flat 12", []string{"Multiple Characters"}, "Three friends.", UnfitSeveral},
		{"Seraphina", nil, "A caring guardian of the forest who heals travellers.", ""},
		{"Aurora", []string{"oracle", "fantasy"}, "A wise oracle who lives in a crystal tower.", ""},
		{"Bob", nil, "A mysterious traveller who plays dice in taverns.", ""},
		{"Mei", []string{"游戏"}, "小镇上的面包师，喜欢玩游戏。", ""},
		{"Dana", nil, "She is an assistant professor of history and tells stories.", ""},
	} {
		if got := UnfitCard(c.name, c.tags, c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
