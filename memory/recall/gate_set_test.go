package recall_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"nodest/internal/index"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// gateCase is the chat of one user in one language: what was said, idle messages that
// should recall nothing, and questions with a part of their answer. "A > B" in said
// is a line and its reply.
type gateCase struct {
	language  string
	said      []string
	idle      []string
	questions [][2]string  // question, part of the answer
	changes   []factChange // said in this order, with everything else in between
	noise     [3][]string  // who, what, where: the lines between
	pattern   func(a, b, c string, n int) string
}

type factChange struct{ before, after, question, now, stale string }

var gateCases = []gateCase{{
	language: "en",
	said: []string{
		"My dog is called Biscuit, he is a beagle.", "I'm allergic to shellfish.", "My sister Nora studies medicine in Dublin. > How lovely, a doctor in the family!",
		"Our wedding is on September 14th.", "I play the cello in a small quartet.", "My boss is Mr. Hargreaves and he never listens.",
		"I hid the spare key under the blue flowerpot.", "My grandmother taught me to bake rye bread.", "We adopted two kittens, Salt and Pepper.",
		"I broke my left wrist when I was nine.", "My favourite novel is Middlemarch.", "I drive an old green Volvo.", "Dad's birthday is on the 3rd of March.",
		"I'm saving for a trip to Patagonia.", "My therapist is called Dr. Lindqvist.", "I can't stand the smell of cinnamon.", "Tom from accounting borrowed my drill.",
		"The wifi password at the cabin is swordfish77.", "My first concert was Radiohead in Oxford.", "I wear contact lenses because of my astigmatism.",
		"How many siblings do you have? > I have three brothers, all sailors.", "Could you tell me where you were born? > I was born in a lighthouse near Skagen.",
		"I usually go jogging at six before work.", "My daughter Ivy starts school in autumn.", "I quit smoking four years ago.",
	},
	idle: []string{
		"hmm", "ok", "lol", "good morning", "haha that's so funny", "thanks!", "tell me more", "go on", "really?", "😂😂", "...", "yeah I guess so", "wow, no way!", "good night, sleep well",
		"how are you today?", "what are you up to?", "I'm so tired today", "I'm bored", "that sounds great!", "what do you mean?", "and then?", "why?", "nice to see you again", "I missed you",
		"oh no, I'm sorry to hear that", "you're so sweet", "sure, let's do it", "it's a beautiful day outside", "just got home from work", "hey, are you there?", "can you say that again?", "brb, making some tea",
		"I don't know what to say", "tell me something interesting", "do you want to talk a bit?", "what should we do now?", "I'm going to bed now", "happy friday!", "let me think about it", "guess what happened",
	},
	questions: [][2]string{
		{"What's my dog's name?", "Biscuit"}, {"What am I allergic to?", "shellfish"}, {"What does my sister study?", "medicine"}, {"When is our wedding?", "September"}, {"Which instrument do I play?", "cello"},
		{"Who is my boss?", "Hargreaves"}, {"Where is the spare key?", "flowerpot"}, {"Who taught me to bake?", "grandmother"}, {"What are my kittens called?", "Salt"}, {"Which wrist did I break?", "left"},
		{"What's my favourite novel?", "Middlemarch"}, {"What car do I drive?", "Volvo"}, {"When is my dad's birthday?", "March"}, {"What trip am I saving for?", "Patagonia"}, {"do you remember my therapist's name", "Lindqvist"},
		{"What smell can't I stand?", "cinnamon"}, {"Who borrowed my drill?", "Tom"}, {"what was the wifi password again", "swordfish"}, {"What was my first concert?", "Radiohead"}, {"Why do I wear lenses?", "astigmatism"},
		{"How many brothers do you have?", "three"}, {"Where were you born?", "Skagen"}, {"When do I go jogging?", "six"}, {"How is Ivy doing? She was so nervous.", "school"}, {"Did I ever smoke?", "quit"},
	},
	changes: []factChange{
		{"I live in Paris.", "I've moved to Rome, finally!", "Where do I live?", "Rome", "Paris"},
		{"I work as a waiter in a bistro.", "I got a new job, I'm a bookbinder now.", "What do I do for work?", "bookbinder", "waiter"},
		{"My exam is on Monday.", "The exam was moved to Thursday.", "When is my exam?", "Thursday", "Monday"},
		{"I love coffee, three cups before noon.", "I've stopped drinking coffee, it made me nervous.", "Do I drink coffee?", "stopped", "three cups"},
		{"My favourite colour is green.", "My favourite colour is purple these days.", "What's my favourite colour?", "purple", "green"},
		{"My phone number ends in 4412.", "I changed my phone number, it ends in 9080 now.", "How does my phone number end?", "9080", "4412"},
		{"I'm dating a guy called Felix.", "Felix and I broke up last week.", "How are things with Felix?", "broke up", "dating"},
		{"My gym membership costs 30 euros.", "The gym membership is 45 euros now.", "How much is my gym membership?", "45", "30 euros"},
		{"I keep my savings at Barclays.", "Actually, I no longer keep my savings at Barclays, I took them to a credit union.", "Where do I keep my savings?", "credit", "at Barclays."},
		{"My name is Theodora.", "Please call me Teddy from now on.", "What's my name?", "Teddy", "Theodora"},
		{"I'm a vegetarian.", "I'm not a vegetarian anymore, I eat fish.", "Am I a vegetarian?", "anymore", "I'm a vegetarian."},
		{"I have lunch at Bruno's, the grill by the canal.", "I've given up on Bruno's, I have lunch at the noodle bar.", "Where do I have lunch?", "noodle", "the grill"},
		{"My landlord is Mr. Crane.", "My landlord is Mrs. Dole since spring.", "Who is my landlord?", "Dole", "Crane"},
		{"The meeting with the notary is at two.", "Correction: the notary meeting is at half past four.", "When is the meeting with the notary?", "half past", "at two"},
	},
	noise: [3][]string{
		strings.Split("the neighbour|a colleague|my cousin|the postman|an old friend|the teacher|a tourist|the librarian|somebody|the gardener", "|"),
		strings.Split("told a long story about|forgot all about|was happy with|complained about|painted|sold|repaired|looked for|dreamt of|laughed about", "|"),
		strings.Split("the old bridge|a broken lamp|the market|some apples|a cheap umbrella|the night bus|the museum|a wooden chair|the river|a small garden", "|"),
	},
	pattern: func(a, b, c string, n int) string {
		return []string{"Today %s %s %s.", "I think %s %s %s last week.", "You know, %s %s %s again.", "It was funny how %s %s %s."}[n%4]
	},
}, {
	language: "zh",
	said: []string{
		"我的狗叫豆豆，是一只柯基。", "我对海鲜过敏。", "我姐姐小雅在南京学医。 > 真好，家里要有医生了！", "我们的婚礼定在九月十四号。", "我在一个小乐队里弹贝斯。", "我的老板姓黄，从来不听人说话。",
		"备用钥匙藏在蓝色花盆下面。", "外婆教过我做桂花糕。", "我养了两只猫，一只叫盐盐，一只叫椒椒。", "九岁那年我摔断了左手腕。", "我最喜欢的小说是《围城》。", "我开一辆很旧的绿色沃尔沃。", "爸爸的生日是三月三号。",
		"我在攒钱去冰岛旅行。", "我的心理医生姓林。", "我受不了肉桂的味道。", "财务部的老王借走了我的电钻。", "小木屋的密码是金枪鱼七七。", "我第一次看演唱会是五月天。", "我散光，所以戴隐形眼镜。",
		"你有几个兄弟？ > 我有三个弟弟，都是水手。", "你是在哪里出生的？ > 我出生在鼓浪屿的灯塔里。", "我每天六点去跑步。", "我女儿小藤秋天要上小学了。", "我喝茶只喝龙井。",
	},
	idle: []string{
		"嗯", "好的", "哈哈", "早上好", "哈哈哈太好笑了", "谢谢", "继续", "然后呢", "真的吗？", "😂😂", "。。。", "是啊", "哇，厉害", "晚安，早点睡",
		"你今天怎么样？", "你在干嘛呢", "今天好累啊", "好无聊", "听起来不错", "什么意思？", "后来呢？", "为什么？", "又见面了", "想你了",
		"啊，抱歉", "你真好", "行，就这么办", "今天天气真好", "刚下班回到家", "在吗？", "再说一遍好吗", "我去倒杯水",
		"我也不知道该说什么", "给我讲个有趣的事", "想聊聊天吗", "现在做什么好呢", "我要去睡了", "周末愉快", "让我想想", "你猜怎么着",
	},
	questions: [][2]string{
		{"我的狗叫什么？", "豆豆"}, {"我对什么过敏？", "海鲜"}, {"我姐姐学什么？", "学医"}, {"我们什么时候办婚礼？", "九月"}, {"我弹什么乐器？贝斯吗", "贝斯"},
		{"我老板姓什么？", "黄"}, {"备用钥匙在哪里？", "花盆"}, {"谁教我做桂花糕的？", "外婆"}, {"我的猫叫什么名字", "盐盐"}, {"我摔断过哪只手腕？", "左手"},
		{"我最喜欢哪本小说？", "围城"}, {"我开什么车？", "沃尔沃"}, {"我爸爸生日是哪天？", "三月"}, {"我攒钱想去哪里旅行？", "冰岛"}, {"还记得我的心理医生姓什么吗", "林"},
		{"我受不了什么味道？", "肉桂"}, {"谁借走了我的电钻？", "老王"}, {"小木屋的密码是多少来着", "金枪鱼"}, {"我第一次看的演唱会是谁的？", "五月天"}, {"我为什么戴眼镜？", "散光"},
		{"你有几个弟弟？", "三个"}, {"你出生在哪儿？", "鼓浪屿"}, {"我几点跑步？", "六点"}, {"小藤最近怎么样？", "小学"}, {"我爱喝什么茶？", "龙井"},
	},
	changes: []factChange{
		{"我住在苏州。", "我搬到成都了！", "我住在哪里？", "成都", "苏州"},
		{"我在一家餐厅做服务员，在那里工作三年了。", "我换工作了，现在做装订师。", "我做什么工作？", "装订师", "服务员"},
		{"我的考试在星期一。", "考试改到星期四了。", "我什么时候考试？", "星期四", "星期一"},
		{"我特别爱喝咖啡，每天三杯。", "我把咖啡戒了，心慌。", "我喝咖啡吗？", "戒了", "三杯"},
		{"我最喜欢的颜色是绿色。", "我现在最喜欢的颜色是紫色。", "我最喜欢什么颜色？", "紫色", "绿色"},
		{"我的手机尾号是4412。", "我换了手机号，尾号是9080。", "我的手机尾号是多少？", "9080", "4412"},
		{"我在和阿飞谈恋爱。", "我和阿飞分手了。", "我和阿飞怎么样了？", "分手", "谈恋爱"},
		{"健身房年费是三千。", "健身房年费现在是四千五。", "健身房年费多少？", "四千五", "三千"},
		{"我的存款在工商银行。", "我的存款不再放工商银行了，转到招商银行了。", "我的存款在哪家银行？", "招商", "在工商银行"},
		{"我叫陈思远。", "以后叫我阿远吧。", "我叫什么名字？", "阿远", "陈思远"},
		{"我吃素。", "我不再吃素了，开始吃鱼。", "我吃素吗？", "不再", "我吃素。"},
		{"儿子读的是育才中学。", "儿子转学了，读的是明德中学。", "我儿子读哪所中学？", "明德", "育才"},
		{"我家水管工姓钱。", "我家水管工姓陆。", "我家水管工姓什么？", "陆", "钱"},
		{"和公证员见面是两点。", "说错了，和公证员见面是四点半。", "几点和公证员见面？", "四点半", "两点"},
	},
	noise: [3][]string{
		strings.Split("邻居|同事|表弟|邮递员|老朋友|老师|游客|图书管理员|有人|园丁", "|"),
		strings.Split("说起了|忘记了|很满意|抱怨了|画了|卖掉了|修好了|在找|梦见了|笑话了", "|"),
		strings.Split("那座旧桥|一盏坏灯|菜市场|一些苹果|便宜的雨伞|夜班公交|博物馆|一把木椅|那条河|小花园", "|"),
	},
	pattern: func(a, b, c string, n int) string {
		return []string{"今天%s%s%s。", "上周%s好像%s%s。", "你知道吗，%s又%s%s。", "真有意思，%s%s%s。"}[n%4]
	},
}}

// units makes units of a case with n lines of noise at the end; the changes come
// before and after the noise.
func (s *gateCase) units(noise int) []recall.Unit {
	var units []recall.Unit
	at, session := noon.AddDate(-1, 0, 0), 0
	say := func(role lang.Role, text string) {
		at = at.Add(time.Minute)
		units = append(units, recall.Unit{
			ID: fmt.Sprint(len(units)), Layer: recall.Exchange, Conversation: "c", Session: session, Order: int64(len(units) + 2), Speaker: role,
			Text: text, Hash: lang.ContentHash(text), At: at, Importance: 0.5,
		})
	}
	exchange := func(line string) {
		said, reply, answered := strings.Cut(line, " > ")
		say(lang.RoleUser, said)
		if answered {
			say(lang.RoleCharacter, reply)
		}
		if len(units)%20 < 2 {
			session++
			at = at.Add(6 * time.Hour)
		}
	}
	for _, c := range s.changes {
		exchange(c.before)
	}
	for _, line := range s.said {
		exchange(line)
	}
	for _, line := range s.idle[:min(len(s.idle), noise)] {
		exchange(line)
	}
	r := rand.New(rand.NewPCG(7, 8))
	for i := range noise {
		a, b, c := s.noise[0][r.IntN(10)], s.noise[1][r.IntN(10)], s.noise[2][r.IntN(10)]
		exchange(fmt.Sprintf(s.pattern(a, b, c, i), a, b, c))
		if i == noise/2 {
			for _, c := range s.changes {
				exchange(c.after)
			}
		}
	}
	if noise == 0 {
		for _, c := range s.changes {
			exchange(c.after)
		}
	}
	return units
}

// In chats of three sizes and two languages, at most 10% of the idle messages recall
// anything, and at least 90% of the questions and of the changed facts find their
// answer.
func TestRecallAtThreeSizesInTwoLanguages(t *testing.T) {
	t.Parallel()
	for _, s := range gateCases {
		for _, noise := range []int{0, 200, 10_000} {
			if noise > 200 && testing.Short() {
				continue
			}
			t.Run(fmt.Sprint(s.language, noise), func(t *testing.T) {
				x := indexOf(t, s.units(noise)...)
				blocks := 0
				for _, line := range s.idle {
					if hits := recallText(t, x, line); len(hits) > 0 {
						blocks++
						t.Logf("%q recalls %q", line, hits[0].Text)
					}
				}
				found := 0
				for _, p := range s.questions {
					hits := recallText(t, x, p[0])
					if position(hits, p[1]) >= 0 {
						found++
					} else {
						t.Logf("%q finds %q", p[0], hitTexts(hits))
					}
				}
				right := 0
				for _, c := range s.changes {
					hits := recallText(t, x, c.question)
					now, stale := position(hits, c.now), position(hits, c.stale)
					if now >= 0 && (stale < 0 || stale > now) {
						right++
					} else {
						t.Logf("%q finds %q", c.question, hitTexts(hits))
					}
				}
				t.Logf("%d of %d idle messages recall something; %d of %d probes; %d of %d changes", blocks, len(s.idle), found, len(s.questions), right, len(s.changes))
				if blocks > len(s.idle)/10 || found*10 < 9*len(s.questions) || right*10 < 9*len(s.changes) {
					t.Error("recall is outside its limits")
				}
			})
		}
	}
}

func recallText(t *testing.T, x *index.Index, text string) []recall.Hit {
	t.Helper()
	return find(t, x, recall.Query{Text: text, Here: "here", Now: noon})
}

func hitTexts(hits []recall.Hit) (all []string) {
	for _, h := range hits {
		all = append(all, h.Text)
	}
	return all
}

func position(hits []recall.Hit, part string) int {
	for i, h := range hits {
		if strings.Contains(h.Text, part) {
			return i
		}
	}
	return -1
}
