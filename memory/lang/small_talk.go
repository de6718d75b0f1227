package lang

import (
	"slices"
	"strings"
	"unicode"

	"nodest/index"
)

// Small talk keeps a chat going. It is no evidence (gate.go).

var latinSmallTalk = patternOf(`\b(?:` + strings.Join([]string{
	`good (?:morning|afternoon|evening|night|day)`, `(?:how|what)(?:'s| is| are| about| have) (?:it going|you(?: doing| been| up to)?(?: today| tonight)?|up|new|everything|things|your (?:day|night|morning|evening|weekend)(?: going| so far)?)`,
	`how (?:was|is|'s) your (?:day|night|weekend|morning|evening)`, `what are you (?:doing|up to)`, `how do you feel`,
	`tell me (?:more|another|something(?: \w+)?|a (?:story|joke))`, `say (?:more|that again|something)`, `go (?:on|ahead)`, `keep (?:going|talking)`, `carry on`, `and then`,
	`what(?: do you mean| happened(?: next| then)?| else| next| then| now)`, `you know what`, `guess what`, `no (?:way|worries|problem|idea|clue)`, `of course`, `for sure`, `sounds? (?:good|great|fun|nice|like a plan)`,
	`i (?:see|know|guess|think so|agree|understand|get it|don't know|have no idea)`, `(?:that|it)(?:'s| is| was| sounds) (?:\w+ )?(?:nice|great|cool|funny|good|awesome|amazing|interesting|true|fine|sad|sweet|crazy|hilarious|fun|lovely|okay|ok|right|it)`,
	`see you(?: \w+)?`, `talk (?:to you )?(?:later|soon|tomorrow)`, `take care`, `sleep (?:well|tight)`, `sweet dreams`, `nice (?:to meet you|talking to you|one)`, `thank you(?: so much| very much)?`, `thanks(?: a lot| so much)?`,
	`are you (?:there|ok|okay|sure|serious|kidding|busy|alright)`, `i(?:'m| am) (?:so |very |really |a bit |pretty |just |still )?(?:back|here|fine|good|ok|okay|tired|bored|sleepy|busy|happy|sad|hungry|ready|sorry|done|great|alright|exhausted|home)`,
	`(?:just )?got (?:back|home|up)`, `woke up`, `(?:going|off|heading|time) (?:to|for) (?:bed|sleep)`, `(?:brb|gtg|ttyl|omg|lmao|rofl|idk|btw|tbh|imo|np|ty|thx|pls)`, `at the moment`, `right now`, `these days`, `by the way`, `never ?mind`, `oh (?:my(?: (?:god|gosh|goodness))?|dear|boy|man)`, `not (?:much|really|bad)`, `same here`, `me too`, `long time no see`,
}, "|") + `)\b`)

// phrasesOfSmallTalk are blanked in folded text before a message is read. Those that
// latinSmallTalk lacks have a character that countDense counts.
var phrasesOfSmallTalk = patternOf(latinSmallTalk.String() + `|` + strings.Join([]string{
	`早上好`, `晚上好`, `下午好`, `中午好`, `早安`, `午安`, `晚安`, `早啊`, `你好[呀啊吗]?`, `您好`, `大家好`, `哈+`, `呵+`, `嘿+`, `嘻+`, `嗯+`, `哦+`, `噢+`, `哇+`, `唉+`, `呜+`,
	`好[的吧呀啊哒嘞滴]+`, `继续(?:说|讲|吧)?`, `接着(?:说|讲)?`, `然后呢?`, `后来呢?`, `还有呢`, `说下去`, `讲下去`, `多(?:说|讲)(?:一?[点些])`, `再(?:说|讲)(?:一?[点些遍次])?`, `(?:给我)?讲个?(?:故事|笑话)`,
	`(?:非常)?(?:谢谢|多谢|感谢)`, `不客气`, `没(?:关系|事|问题|什么)`, `不好意思`, `对不起`, `抱歉`, `再见`, `拜拜`, `(?:明[天早晚]|后天|今晚|晚上|晚点|下次|下周|改天|回头|(?:待会|一会|等会)儿?|(?:周|星期|礼拜)[一二三四五六日天末])再?(?:见|聊)`, `等(?:一下|会儿?|等)`, `稍等`,
	`真的(?:吗|假的|呀|啊)?`, `是[吗吧啊呀的]`, `对[啊呀的吧]`, `原来(?:如此|是这样)`, `(?:我)?(?:明白|知道|懂|了解)了?`, `收到`, `可以的?`, `行[吧啊]?`, `随便`, `当然`, `确实`, `没错`, `不错`, `太(?:好|棒|强|有趣|可爱)了`, `真(?:好|棒|不错|厉害|有趣|可爱)`, `厉害`, `有(?:意思|趣)`, `加油`, `辛苦了?`,
	`(?:有点儿?|好|很|太|真|挺|非常|特别)(?:无聊|累|困|开心|高兴|难过|饿|忙|烦|舒服|热|冷)[了啊呀]?`, `(?:无聊|累|困|饿)了`, `吃(?:饭|过)?了?[吗没]`, `(?:你?现在在?|你?在)(?:吗|不在|干嘛|干什么|干啥|做什么|忙什么|忙吗)`, `干(?:嘛|什么|啥)呢?`, `(?:最近|今天|昨天)?(?:过得)?怎么样`, `怎么(?:了|说|办|回事)`, `为什么[呢呀]?`, `什么意思`, `你(?:觉得|说|呢|看)呢?`, `(?:今天|外面)?的?天气`, `(?:要|去|想|先|准备)?睡(?:觉)?了`, `(?:我)?(?:回来|来|走|到家|下班|起床|到)了`, `想你了?`, `刚?(?:回到?|到)家了?`, `爱你`, `抱抱`, `聊聊天?`, `聊天`, `(?:听|看)起来`, `(?:我的?|老)?天[哪啊呐呀]`, `妈呀`, `哎[呀哟]`, `糟糕`, `(?:做个)?好梦`, `你?猜猜?(?:看|怎么着)?`,
	`おはよう(?:ございます)?`, `こんにちは`, `こんばんは`, `おやすみ(?:なさい)?`, `ありがとう(?:ございます)?`, `なるほど`, `そうですね?`, `そうなん?だ?`, `うん+`, `はい`, `いいえ`, `すごい`, `面白い`, `もっと(?:話して|教えて)`, `続けて`, `元気(?:ですか)?`, `お疲れ(?:様|さま)(?:です|でした)?`, `(?:ちょっと|とても|すごく|今日は?)?(?:疲れ(?:た|ました)|眠い|眠く|暇|寒い|暑い|楽しい|嬉しい|悲しい|寂しい|忙しい)(?:です)?[ねよな]?`, `お?腹(?:が)?(?:すいた|空いた|減った)`, `ただいま`, `おかえり`, `大?好きだ?よ`, `愛してる`, `会いた(?:い|かった)`, `何(?:を)?して(?:る|いる|いますか|るの)`, `また(?:明日|ね|後で)`, `ごめん(?:ね|なさい)?`, `笑+`,
	`안녕(?:하세요|히)?`, `좋은 아침`, `잘 ?자(?:요)?`, `고마워(?:요)?`, `감사(?:합니다|해요)`, `네+`, `응+`, `그래(?:요|서)?`, `알았어(?:요)?`, `알겠(?:어|습니다)`, `정말(?:요)?`, `진짜(?:요)?`, `ㅋ+`, `ㅎ+`, `ㅠ+`, `계속(?:해)?`, `더 (?:말해|얘기해) ?줘`, `미안(?:해|해요)?`, `대박`, `(?:좋아|싫어|사랑해|배고파|배불러|피곤해|졸려|심심해|슬퍼|기뻐|행복해|외로워|바빠|추워|더워|재밌어|힘들어)(?:요)?(?:[\s.!?~,]|$)`, `보고 ?싶(?:어|었어)(?:요)?`, `다녀왔어(?:요)?`, `내일 (?:봐|보자|만나)`, `나중에 (?:봐|보자|얘기해)`, `뭐 ?해(?:요)?`, `잘 ?지냈어(?:요)?`,
}, "|"))

// aboutNothing blanks the small talk in a folded text. All phrases take ten times as long as
// those in Latin letters.
func aboutNothing(folded string) string {
	phrases := phrasesOfSmallTalk
	if countDense(folded) == 0 {
		phrases = latinSmallTalk
	}
	return phrases.ReplaceAllString(strings.ReplaceAll(folded, "’", "'"), " ")
}

// The evidence of common words, by their stems. Others are 1.
const (
	ProvesNothing = 0    // greetings, noises, words of assent
	provesHardly  = 0.2  // words about time, mood and doing
	ProvesLittle  = 0.55 // everyday things that are seldom what a chat is about
)

var proofs = func() map[string]float32 {
	m := map[string]float32{}
	for w := range weakWords {
		m[w] = provesHardly
	}
	for list, proof := range map[string]float32{
		`hello hiya hmm hmmm hm uh um umm huh haha hahaha hehe lol lmao wow whoa yay aww oops ugh yeah yep yup nope nah bye goodbye welcome thanks thank please sorry congrats
			cool nice great awesome amazing lovely sweet fine okay alright right sure really true exactly totally absolutely definitely indeed maybe perhaps actually anyway well honestly literally basically
			good bad haha funny interesting interested boring bored tired sleepy sad happy glad excited angry annoyed lazy hungry thirsty exhausted stressed busy ready done
			continue agree guess wait yes no way wish hope dear darling babe honey buddy dude bro man guy`: ProvesNothing,
		`go come get make take want need feel look see try let put keep start stop use seem happen show turn call help mean bring leave find hear sit stand
			day today tomorrow yesterday tonight morning afternoon evening night noon week weekend month year hour minute moment time ago last next soon later early late always never ever often sometimes usually again already yet mood feeling
			thing stuff lot bit way kind sort part topic subject conversation place world life reason idea question answer word story joke
			big small little long short new old high low different same whole full half best worst much many more most less least only even quite rather enough almost
			first second one two 1 2 3 people person someone everybody everyone anybody nobody weather day sleep rest chat talk
			like love enjoy favorite favourite care miss hate worry believe remember forget know think wonder`: provesHardly,
		`work home house live friend family eat drink food cook play watch read listen walk run buy movie film song music game book school job money dinner lunch breakfast coffee tea water rain sun
			open close pay send write learn study change move meet visit plan today outside room car phone bed date`: ProvesLittle,
	} {
		for w := range stems(list) {
			m[w] = proof
		}
	}
	return m
}()

// ProofOf is the evidence of a word that is no pair of characters.
func ProofOf(term string) float32 {
	if proof, ok := proofs[term]; ok {
		return proof
	}
	if c := term[0]; '0' <= c && c <= '9' {
		return ProvesLittle
	}
	return 1
}

var (
	QuestionBegins = patternOf(`(?i)^[^\p{L}\p{N}]*(?:(?:and|but|so|hey|well)[^\p{L}\p{N}]+)?(?:(?:what|where|who|when|why|how|which)(?:'s|’s| is| are| do| does| did| was| were| can| could| should| would| old| many| much| long| about)\b|(?:do|does|did|is|are|am|can|could|would|will|should|have|has)\s+(?:i|you|he|she|it|we|they|my|your|the|there|this|that)\b)`)
	questionEnds   = patternOf(`(?:什么|哪里|哪儿|谁|几岁|多少|[吗呢]|なに|何|どこ|ですか|ますか|뭐야|어디야|니)[^\p{L}\p{N}]*$`)
	knowsNothing   = patternOf(`(?i)^[^\p{L}\p{N}]*(?:(?:hmm|well|sorry|oh)[^\p{L}\p{N}]+)*i(?:'m| am)? (?:don't|do not|can't|not)(?: really)? (?:know|remember|recall|sure)|^[^\p{L}\p{N}]*(?:对不起|抱歉)?[^\p{L}\p{N}]*我?(?:也|还)?(?:不知道|不记得|不清楚|不太清楚|想不起)`)
)

// TellsSomething reports whether a term of a row has content.
func TellsSomething(t string) bool {
	if t[0] >= 0x80 {
		return denseWeight(t) == 1
	}
	return ProofOf(t) >= provesHardly && !weakWords[t]
}

// longestIdle is the maximum length in bytes of a sentence that may be small talk, or a
// question without a mark.
const longestIdle = 60

// OnlyAsks reports whether a text has nothing but questions, small talk, and not knowing.
func OnlyAsks(text string) bool {
	for _, s := range SentencesOf(text) {
		switch {
		case IsQuestion(s) && len(Statements(s)) == 0:
		case len(s) > longestIdle:
			return false
		case !QuestionBegins.MatchString(s) && !questionEnds.MatchString(s) && !knowsNothing.MatchString(s) &&
			saysSomething(aboutNothing(strings.ToLower(s))):
			return false
		}
	}
	return true
}

// saysSomething reports whether a folded text has a word with content.
func saysSomething(folded string) bool {
	return strings.ContainsFunc(folded, func(r rune) bool { return r >= 0x2e80 && unicode.IsLetter(r) && !meansLittle(r, 0) }) ||
		slices.ContainsFunc(index.Terms(folded), func(t string) bool { return t[0] < 0x80 && TellsSomething(t) })
}
