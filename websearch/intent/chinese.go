package intent

import (
	"regexp"
	"strings"
	"unicode"
)

type chinese struct{}

var (
	zhOrder = regexp.MustCompile(`(?:^|[^检调巡审盘抽])查(?:一?下|查|一查|询|找)|搜(?:索|一?下|搜|一搜|一搜索)|检索|(?:上网|网上|联网|在线)(?:去|再)?(?:帮我)?(?:查|搜|找|看看|看一下|怎么说)|(?:百度|谷歌|必应|google)(?:一下|搜|查|上)|帮(?:我|忙)(?:再|去)?(?:查|搜|找)(?:一?下|找|到|些|点|几)?`)
	// zhInScene is what one searches in a story.
	zhInScene = regexp.MustCompile(`搜(?:他|她|它|身|查)|(?:查|搜|找).*(?:房间|屋子|口袋|身上|尸体|箱子|抽屉|山洞|柜子|地下室|密室|现场|伤口|身体|行李|四周|钥匙|凶手|机关|线索|敌人|密道|脉)|(?:四处|到处|不断|开始)(?:搜|寻|查)|(?:别|不要|不用|不必)(?:再)?(?:查|搜|找)|(?:我|他|她)们?(?:一直)?在(?:查|搜|找)|我(?:会|打算|准备|先|自己)+(?:再)?(?:去)?(?:查|搜|找)|以后.*(?:查|搜|找)`)

	zhWrapper = regexp.MustCompile(`请问|你(?:们)?(?:知道|晓得)(?:吗)?|你?(?:能|可以|可不可以|能不能|能否)?(?:告诉|教教?)(?:一下)?我|(?:你)?(?:能|可以)?(?:给|跟|和|为)我(?:们)?(?:介绍|讲解|解释|说说|讲讲|科普|说一下|讲一下)(?:一下)?|我(?:很|有点儿?)?(?:想|要)(?:知道|了解|问|请教)(?:一下)?|我(?:很|有点儿?)?好奇|帮我|麻烦你?|有人知道|吉他|其他|这(?:个)?(?:周末?|月|几天|星期|年|个?字|个?词|个?成语|句话)`)
	zhRequest = regexp.MustCompile(`告诉我|介绍|解释|讲解|科普|(?:想|要)(?:知道|了解)|说说|讲讲|好奇`)
	zhAsks    = regexp.MustCompile(`[?]|什么|啥|谁|哪|几[个只岁点号次天位年月座颗种条片章集层]|多少|多[高大远长久深重快宽厚]|怎么|怎样|如何|为何|为什么|[吗呢][^\pL]*$|是不是|有没有|会不会|能不能|何时`)
	zhNoAsk   = regexp.MustCompile(`^[\pP\pS\s]*(?:不要|别|不用|不必|猜|要不要|好不好|行不行|没什么|写|扮演|假装|想象|翻译|如果|假如)|现在几点|几点了|讲个(?:故事|笑话)|什么都|怎么[都也]|谁[都也]|哪里?[都也]`)

	zhSpeakers = regexp.MustCompile(`[你您我咱俺朕]|弟子|师[父尊傅]|徒儿|大王|陛下|娘娘|主人|老板|掌柜|公子|姑娘|前辈|哥哥|姐姐|宝贝|亲爱的|老公|老婆|本座|在下`)
	zhScene    = regexp.MustCompile(`[这那她他它]|此[处地刻]|里面|外面|门外|窗外|屋里|前面|后面|身后|背后|接下来|然后呢|刚才|声音|敌人|援军`)

	zhFresh = regexp.MustCompile(`天气|气温|温度|下雨|下雪|台风|空气质量|新闻|头条|热搜|最新|最近有|现任|目前|今年|明年|比赛|比分|赢了|股价|股票|大盘|汇率|油价|金价|房价|价格|多少钱|票价|上映|发布|发售|开售|更新|什么时候出|营业|开门|关门|限行|放假|航班|高铁|列车|末班车|赛程|排行|票房|疫情|地震|选举|大选|比特币`)

	zhSmallTalk = regexp.MustCompile(`怎么办|怎么了|怎么回事|为什么|为何|(?:过得|感觉|睡得)怎么样|(?:干|做|说|吃|穿|玩|喝|聊|想|要|学)(?:点|些)?(?:什么|啥)(?:药)?|干嘛|没什么|什么意思|真的|好吗|对吗|行吗|可以吗|是吗|怎么样|去哪里?(?:玩|儿)?|随便|聊聊|开心|难过|喜欢|想念|讨厌|吃饭|睡觉|喝茶|回家|出门|好玩|意义|幸福|人生|爱情|有人|在吗|在不在|好不好|是不是|有没有|会不会|能不能`)
	zhFunction  = regexp.MustCompile(`今天|今晚|明天|昨天|昨晚|后天|现在|早上|中午|下午|晚上|周末|最近|以后|什么时候|什么|多少|哪里|哪儿|哪个|哪些|怎么|怎样|如何|分别|到底|究竟|一下|还是|[的了吗呢啊呀吧嘛是有在和与就都也还又再很太真好会能要去来到谁哪几多个么啥不没被把让给请问]`)
	zhSentence  = regexp.MustCompile(`[吧啊呀了吗呢着过很太真好别让想要会能]|是`)
)

func (chinese) orders(folded string) bool {
	return zhOrder.MatchString(folded) && !zhInScene.MatchString(folded)
}

// question judges the message as a whole, and, if it is about the speakers or the story, each
// sentence: one of them may be about the world.
func (chinese) question(_, folded string) Reason {
	reason := zhQuestion(folded)
	if reason != Speakers && reason != Story {
		return reason
	}
	for _, sentence := range sentences(folded) {
		if r := zhQuestion(sentence); strings.ContainsAny(sentence, "?？") && (r == Fresh || r == Fact && zhContent(sentence) >= zhNamed) {
			return r
		}
	}
	return reason
}

// zhNamed is the content of a sentence that names what it asks about.
const zhNamed = 6

func zhQuestion(folded string) Reason {
	rest := zhWrapper.ReplaceAllString(folded, " ")
	fresh := zhFresh.MatchString(folded)
	content := zhContent(rest)
	keywords := fresh && content <= 8 && !zhSentence.MatchString(rest)
	switch {
	case zhNoAsk.MatchString(folded), !zhAsks.MatchString(rest) && !zhRequest.MatchString(folded) && !keywords:
		return Chat
	case zhSpeakers.MatchString(rest):
		return Speakers
	case zhScene.MatchString(rest) && !strings.Contains(rest, "《"):
		return Story
	case fresh:
		return Fresh
	case content < 2:
		return Chat
	}
	return Fact
}

// zhContent counts the characters and Latin words that say what a question is about.
func zhContent(rest string) (n int) {
	rest = zhSmallTalk.ReplaceAllString(rest, " ")
	latin := false
	for _, r := range zhFunction.ReplaceAllString(rest, " ") {
		switch {
		case unicode.Is(unicode.Han, r):
			n, latin = n+1, false
		case unicode.IsLetter(r), unicode.IsDigit(r):
			if !latin {
				n += 2
			}
			latin = true
		default:
			latin = false
		}
	}
	return n
}
