package extract

import (
	"slices"
	"testing"

	"nodest/memory"
)

// textsByRule returns what rules extract from messages.
func textsByRule(messages ...memory.Message) []string {
	var out []string
	for _, c := range windowOf(messages...).byRules() {
		out = append(out, c.Text)
	}
	return out
}

// Statements that are not serious, not by the user or not about the user are not
// facts.
func TestRulesIgnoreWhatIsNotSerious(t *testing.T) {
	t.Parallel()
	for what, said := range map[string][]string{
		"a name behind something else": {
			"我看了一部电影，叫《活着》。", "我看了一部电影，叫活着", "我今天去吃了一道菜，叫回锅肉。", "我有个朋友，叫小王，喜欢吃辣，住在成都。", "我看的是一部名叫《海边的曼彻斯特》的电影",
			"我认识一个人，名字是李雷", "我叫了外卖", "我叫你别去", "我家叫了个师傅来",
			"I watched a movie called Amelie.", "I watched a movie, it's called Amelie.", "My friend named Tom came by.", "I met a guy whose name is Tom.",
			"My name is on the list.", "My name is not important.", "Call me later.", "Call me crazy.", "I'm called to order.",
		},
		"hearsay": {
			"听说我喜欢你做的菜", "据说我住的地方以前是湖", "我朋友觉得我喜欢香菜", "大家都说我是医生", "我妈说我对花生过敏", "有人说我住在火星",
			"They say I live in a bubble.", "My friend thinks I love jazz.", "My mom told me I'm allergic to nuts.", "I heard I have a brother in Rome.", "Apparently I love drama.", "People say I'm a good cook.",
		},
		"jokes and sarcasm": {
			"哈哈，我是外星人", "我住在月球上，开玩笑的", "我可真喜欢加班", "我真是太喜欢堵车了", "我今年一百岁，骗你的", "我叫奥特曼😂",
			"I live on the moon lol", "I'm 12 years old, just kidding!", "Haha, my name is Batman.", "Oh great, I love waiting in line.", "I just love Mondays.", "Yeah right, I love taxes.", "Sure, I love rain.", "I'm allergic to work.",
		},
		"play": {
			"*draws a sword* My name is Sir Galahad.", "（拔剑）我叫叶孤城。", "【旁白】我住在山里", "作为一名骑士，我住在城堡里", "我们来角色扮演吧，我是医生", "在游戏里我叫亚瑟",
			"As a knight I live in a castle.", "As a knight, I live in a castle.", "In this story I'm a doctor.", "Let's roleplay: I'm a nurse.", "(bows) My name is Arthur.", "I'm a knight.", "I'm from the future.",
			"我是火星人", "我是骑士",
		},
		"conditions": {
			"如果我住在北京就好了", "假如我是医生", "要是我有一只猫", "万一我对花生过敏呢", "我可能打算去日本留学", "我梦见我住在海边",
			"If I were a doctor, I'd help.", "If I live in Paris, what should I see?", "Suppose I have a dog.", "I wish I lived in Rome.", "I might move to Oslo next month.", "I dreamed I have a son.", "I would love a dog.",
		},
		"quotations and songs": {
			"他说：“我喜欢喝酒。”", "♪ 我住在隔壁的村庄 ♪", "歌词是：我喜欢下雨天", "「我叫小明」，他说", "> I love spam",
			"He said \"I love beer\"", "♪ I love rock and roll", "The lyrics: I'm a barbie girl", "The song goes I love rainy nights",
		},
		"what passes, or says nothing": {
			"我有点累", "我饿了", "我很喜欢电影中传递出的情感", "Samantha and I plan to move in together next month.", "今天我感到有些疲倦", "我今天去了电影院", "我准备睡觉了", "我喜欢这个", "我明天再来找你", "我是说今天好热", "我有一个问题想问你", "我三岁的时候", "我一直在努力工作", "我家在做饭",
			"I'm tired.", "I'm hungry right now.", "I love it!", "I love this song.", "I love your painting.", "I have a question.", "I like how you say that.", "I'm a bit sad.", "I'm going to bed.", "I'm going to keep trying.",
			"I have a small favor.", "I like the idea.", "My favorite part is the end.", "I'm learning a lot.",
		},
		"idle promises": {
			"I'll keep you posted.", "I'll be right back.", "I'll let you know tomorrow.", "I'll see you tomorrow.", "I'll talk to you next week.", "I'll try it this weekend.", "回头聊", "我会的", "我明天告诉你", "我会努力的",
		},
		"others": {
			"她喜欢猫", "我们住在一起吧", "你住在哪里", "我知道他喜欢旅游，也很喜欢有名的画家", "My sister loves cats.", "You live in Paris.", "Remember, it's important to believe in yourself.", "Don't forget to take care of yourself.",
		},
	} {
		for _, text := range said {
			if got := textsByRule(userSays(1, text)); len(got) > 0 {
				t.Errorf("%s: %q gives %q", what, text, got)
			}
		}
	}
	for _, text := range []string{
		"I'll keep you posted on my progress.", "I'll be right back.", "I'll never forget that day.", "I'll do that.", "I will try it tomorrow.", "I'll definitely take your advice.",
		"I'll see you tomorrow.", "I promise to keep you updated.", "I will go to the gym and exercise regularly.", "If it rains I will always carry you.",
		"我会的。", "我会努力的。", "我会尽力帮助你。", "我会一直支持你的", "我明天告诉你结果", "我会记住的", "我会考虑一下。",
	} {
		if got := textsByRule(charSays(2, text)); len(got) > 0 {
			t.Errorf("the character's %q gives %q", text, got)
		}
	}
}

// The same words said seriously are facts, with what a following clause adds.
func TestRulesReadSeriousStatements(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"我叫小明，今年二十岁，住在上海，喜欢爬山。":                   {"用户叫小明", "用户今年二十岁", "用户住在上海"},
		"你好，我是张伟。":                                {"用户叫张伟"},
		"我改名叫李雷了。":                                {"用户叫李雷"},
		"我的名字叫韩梅梅":                                {"用户叫韩梅梅"},
		"我叫Tom。":                                  {"用户叫Tom"},
		"我是一名护士，在北京协和医院工作。":                       {"用户是一名护士", "用户在北京协和医院工作"},
		"我女儿叫小雨，今年三岁。":                            {"用户女儿叫小雨"},
		"我最近打算去攀登华山。":                             {"用户最近打算去攀登华山"},
		"我是左撇子":                                   {"用户是左撇子"},
		"My name is Anna and I live in Lyon.":     {"User's name is Anna", "User lives in Lyon"},
		"my name is tom":                          {"User's name is tom"},
		"Actually, my real name is Anna Maria.":   {"User's name is Anna Maria"},
		"Hi, I'm Emily.":                          {"User's name is Emily"},
		"I'm a nurse at a small clinic.":          {"User is a nurse at a small clinic"},
		"I have two kids and a cat named Luna.":   {"User has two kids and a cat named Luna"},
		"I'm vegetarian.":                         {"User is vegetarian"},
		"I'm planning to visit Japan next spring": {"User plans to visit Japan next spring"},
		"I have an exam on Friday.":               {"User has an exam on Friday"},
		"My favorite colors are blue and green.":  {"User's favorite colors are blue and green"},
		"I'm learning German now - tough but fun": {"User is learning German"},
	} {
		if got := textsByRule(userSays(1, text)); !slices.Equal(got, want) {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

// A message that the user marks as a joke gives no facts.
func TestRulesIgnoreMessagesMarkedAsJokes(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"Just kidding!", "haha, no, I'm joking", "开玩笑的", "骗你的啦"} {
		if got := textsByRule(userSays(1, "I live in Monaco."), charSays(2, "Wow!"), userSays(3, after)); len(got) > 0 {
			t.Errorf("before %q: %q", after, got)
		}
	}
	if got := textsByRule(userSays(1, "I live in Monaco."), charSays(2, "Just kidding!"), userSays(3, "Really.")); len(got) != 1 {
		t.Errorf("a joke of the character takes back %q", got)
	}
}

// A statement corrects a known fact only if the user says so.
func TestRulesRecogniseCorrections(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"My name is Tom.": false, "My name is actually Tom.": true, "I'm 30 years old.": false, "I'm 30 now.": true, "I just turned 30.": true, "I changed my name to Tom.": true, "You can call me Tom.": true,
		"我叫小红": false, "我改名叫小红了": true, "其实我叫小红": true, "我的真名叫小红": true, "我今年三十岁": false,
	} {
		c := windowOf(userSays(1, text)).byRules()
		if len(c) != 1 || c[0].Corrects != want {
			t.Errorf("%q gives %+v, corrects = %v wanted", text, c, want)
		}
	}
}
