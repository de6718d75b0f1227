package extract

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/memory"
	"nodest/memory/lang"
)

// Without a model, only plain first-person sentences are understood.
func TestRulesReadFirstPersonStatements(t *testing.T) {
	t.Parallel()
	tests := []struct {
		said string
		want []string
	}{
		{"你好，我叫张曼婷，很高兴认识你。", []string{"用户叫张曼婷"}},
		{"我叫“小明”。", []string{"用户叫小明"}},
		{"我今年二十五岁，住在上海。", []string{"用户今年二十五岁", "用户住在上海"}},
		{"我很喜欢绘画、弹钢琴和品茶，你觉得有什么好的书可以推荐给我吗？", []string{"用户很喜欢绘画、弹钢琴和品茶"}},
		{"我讨厌香菜！我对花生过敏。", []string{"用户讨厌香菜", "用户对花生过敏"}},
		{"其实我不喜欢下雨天", []string{"用户不喜欢下雨天"}},
		{"我在杭州一家医院工作", []string{"用户在杭州一家医院工作"}},
		{"我有一只猫，我的猫叫咪咪。", []string{"用户有一只猫", "用户的猫叫咪咪"}},
		{"我打算去日本留学", []string{"用户打算去日本留学"}},
		{"下周三我要交论文", []string{"用户下周三要交论文"}},
		{"明天我要去北京出差。", []string{"用户明天要去北京出差"}},
		{"我的生日是5月20日", []string{"用户的生日是5月20日"}},
		{"记住，我对青霉素过敏", []string{"用户对青霉素过敏"}},
		{"别忘了明天提醒我吃药", []string{"用户要求记住：明天提醒自己吃药"}},
		{"我喜欢你", []string{"用户喜欢小雪"}},
		{"My name is Emily. Nice to meet you!", []string{"User's name is Emily"}},
		{"I'm 29 years old and I live in Berlin.", []string{"User is 29 years old", "User lives in Berlin"}},
		{"I really enjoy painting, playing piano and tea tasting. Do you have any recommendations?", []string{"User enjoys painting, playing piano and tea tasting"}},
		{"I love sushi, do you know a good place?", []string{"User loves sushi"}},
		{"I'm allergic to peanuts.", []string{"User is allergic to peanuts"}},
		{"I don't like my boss", []string{"User doesn't like their boss"}},
		{"I work as a nurse at St. Mary's.", []string{"User works as a nurse at St. Mary's"}},
		{"I have a dog and my dog's name is Rex.", []string{"User has a dog", "User's dog is called Rex"}},
		{"I'm going to move to Oslo next month", []string{"User plans to move to Oslo next month"}},
		{"Remember that my birthday is May 4th", []string{"User's birthday is May 4th"}},
		{"Please don't forget to water the plants", []string{"User asked to remember: to water the plants"}},
		{"My favourite colour is green", []string{"User's favorite colour is green"}},

		{"我上个月搬到大连住了", []string{"用户搬到大连"}},
		{"我从报社离职了，现在在出版社当编辑", []string{"用户从报社离职了", "用户现在在出版社当编辑"}},
		{"我女朋友现在叫小诺", []string{"用户女朋友现在叫小诺"}},

		{"Hi! I'm Anna, nice to meet you.", []string{"User's name is Anna"}},
		{"I have type 2 diabetes.", []string{"User has type 2 diabetes"}},
		{"My sister Ana keeps bees in Lisbon, twelve hives.", []string{"User's sister is called Ana"}},
		{"my best friend Zoe is a pilot", []string{"User's best friend is called Zoe"}},
		{"My cat Miso, the grey one, sleeps on the keyboard", []string{"User's cat is called Miso"}},
		{"My mom Monday morning was furious", nil},
		{"My sister and Tom are friends", nil},
		{"My dog I love most", nil},
		{"My friend Paul says I'm 40", nil},
		{"I'm a baker now", []string{"User is a baker"}},
		{"I have a headache", nil},
		{"I live in fear of spiders.", nil},
		{"As your king, I live in the castle.", nil},
		{"叫我小王就好", []string{"用户叫小王"}},
		{"以后叫我起床吧", nil},
		{"叫我女王就好", nil},
		{"我姓王。", []string{"用户姓王"}},
		{"我有高血压", []string{"用户有高血压"}},
		{"我妈妈有高血压", nil},
		{"我已经离婚了", []string{"用户已经离婚"}},
		{"我昨天搬到了大连", []string{"用户昨天搬到了大连"}},

		{"我打算搬到大连住", []string{"用户打算搬到大连住"}},
		{"我喜欢什么？", nil},
		{"你猜我喜欢吃什么吗", nil},
		{"他说：“我喜欢喝酒。”", nil},
		{"他说我喜欢喝酒", nil},
		{"如果我住在北京就好了", nil},
		{"她喜欢猫", nil},
		{"我是说今天好热", nil},
		{"我有点累", nil},
		{"我有一个问题想问你", nil},
		{"*我喜欢地拔出剑*", nil},
		{"我们住在一起吧", nil},
		{"Do I like tea?", nil},
		{"He said \"I love beer\"", nil},
		{"If I live in Paris, what should I see?", nil},
		{"My sister loves cats", nil},
		{"I love it!", nil},
		{"I have a question", nil},
		{"I like how you say that", nil},
		{"I'm tired", nil},
		{"ok thanks", nil},
		{"> I love spam", nil},
	}
	for _, tt := range tests {
		t.Run(tt.said, func(t *testing.T) {
			m := userSays(1, tt.said)
			var got []string
			for _, f := range testNames.Statements(m.Line()) {
				got = append(got, f.Text)
				if why := lang.Unsupported(f.Text, []lang.Line{m.Line()}, testNames); why != "" {
					t.Logf("%q: the check against sources would say %q", f.Text, why)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q gives %q, want %q", tt.said, got, tt.want)
			}
		})
	}
}

func TestRulesReadWhatTheCharacterPromises(t *testing.T) {
	t.Parallel()
	tests := []struct {
		said string
		want []string
	}{
		{"我会一直陪着你。", []string{"小雪会一直陪着用户"}},
		{"我答应你，明天我会带你去看海！", []string{"小雪明天会带用户去看海"}},
		{"I promise I'll call you tomorrow.", []string{"小雪 promises: call the user tomorrow"}},
		{"I will never leave you", []string{"小雪 will never leave the user"}},
		{"我会的。", nil},
		{"我喜欢喝茶。", nil},
		{"你会陪我吗？", nil},
		{"如果下雨，我会打伞", nil},
		{"I'll be happy to help", nil},
	}
	for _, tt := range tests {
		t.Run(tt.said, func(t *testing.T) {
			var got []string
			for _, f := range testNames.Statements(charSays(2, tt.said).Line()) {
				got = append(got, f.Text)
				if f.Kind != lang.KindPromise || f.Subject != lang.AboutCharacter {
					t.Errorf("%q is %s about %s", f.Text, f.Kind, f.Subject)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q gives %q, want %q", tt.said, got, tt.want)
			}
		})
	}
}

func TestOneMessageGivesThreeStatementsAtMost(t *testing.T) {
	t.Parallel()
	all := testNames.Statements(userSays(1, "我喜欢茶。我喜欢咖啡。我喜欢可乐。我叫小明。我喜欢牛奶。").Line())
	if len(all) != lang.RulesPerMessage || !slices.ContainsFunc(all, func(f lang.Statement) bool { return f.Text == "用户叫小明" }) {
		t.Errorf("got %v, want three with the name among them", all)
	}
}

// FuzzRules: from any text, statements are few, short, valid and made of its words.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"我叫小明，住在上海", "I'm 29 and I live in Berlin", "记住，我对花生过敏", "I promise I'll call", "“我”…", "\xff我喜欢\x80", "I have a \"", "十百千万零二三"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range []memory.Message{userSays(1, memory.Clean(lang.RoleUser, text)), charSays(2, memory.Clean(lang.RoleCharacter, text))} {
			all := testNames.Statements(m.Line())
			if len(all) > lang.RulesPerMessage {
				t.Errorf("%d statements", len(all))
			}
			for _, s := range all {
				if utf8.RuneCountInString(s.Text) > lang.LongestByRule || strings.TrimSpace(s.Text) == "" {
					t.Errorf("%q is blank or too long", s.Text)
				}
				rest := strings.NewReplacer("用户", "", "角色", "", "小雪", "").Replace(s.Text)
				for _, r := range rest {
					if lang.IsCJK(r) && !strings.ContainsRune(m.Text, r) && !strings.ContainsRune("自己要求记住两人", r) {
						t.Errorf("%q in %q was not said in %q", r, s.Text, m.Text)
					}
				}
			}
			lang.EventTime(m.Text, sunday)
			lang.Unsupported(text, []lang.Line{m.Line()}, testNames)
		}
	})
}
