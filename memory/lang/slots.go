package lang

import (
	"regexp"
	"slices"
	"sync"
)

// property is something of which somebody has one value at a time.
type property struct {
	name        string
	flag        Properties
	asked, told *pattern         // in questions, and in lines and facts
	words       string           // that such lines have
	facts       []*regexp.Regexp // with the parts of the value as named groups; overGroup matches if the value has ended
}

// properties: of their forms in facts, the first that matches counts.
var properties = sync.OnceValue(func() []property {
	return slices.Concat([]property{
		{name: NameSlot, flag: ownName,
			asked: patternOf(`\b(?:what(?:'s| is| was) my (?:\w+ )?name|(?:know|remember|recall|say|tell me) (?:me )?(?:my (?:real |full |first )?name|who i am|what (?:i am|i'm) called)|who am i|what am i called|what do you call me)\b|` +
				`我(?:到底|究竟|又)?是谁|我(?:的名字)?(?:叫|是)(?:什么|啥|谁)|我(?:到底|究竟)?叫(?:做|作)?(?:什么|啥)|我的(?:名字|姓名)|我姓(?:什么|啥)|怎么称呼我|该叫我什么|` +
				`(?:私|僕|俺)の名前|` + askerJa + `(?:誰|だれ)|(?:내|제) 이름|` + askerKo + `누구`),
			told:  patternOf(`\bmy name(?:'s| is)\b|\bcall me\b|\bi(?:'m| am) called\b|\buser(?:'s name is| is called)\b|(?:我|用户)(?:的名字)?(?:现在)?(?:叫[^他她它你您人]|改名)|(?:^|[，。！!,.]|你可以|以后|大家都?|请|就)叫我[^什啥]|^我姓|[，,]叫\p{Han}{2,3}$|(?:私|僕|俺)の名前は|` + selfJa + `[^。、はが]{1,10}(?:といいます|と言います|と申します|って呼んで|と呼んで)|(?:내|제) 이름은|이?라고 (?:해요|합니다|불러)`),
			words: "name call hi hello hey meet 我叫 我是 名字 叫我 户叫 改名 姓 你好 名前 申し 이름 불러 합니",
			facts: forms(`(?:` + nameForms.String() + `)(?P<is>.*)$`)},
		{name: "home", flag: home,
			asked: patternOf(`\b(?:where|which (?:city|town|country|place)|what (?:city|town|country|place)|still|do|am|is|'s).{0,30}\b(?:i|my|we|our|me)\b.{0,20}\b(?:live|living|lived|reside|home|hometown|house|address|based|move|moved|moving)\b|\bmy (?:current )?(?:address|home ?town|city)\b|我.{0,8}(?:住在?(?:哪|什么|何处)|家在哪|搬(?:到|去)了?(?:哪|什么)|住(?:址|处))|我.{0,6}住.{0,8}吗|` + askerJa + `(?:どこに|どの[^。]{1,4}に)住|` + askerKo + `어디(?:에|에서)? ?(?:살|사는)|(?:내|제|우리) 집(?:은|이)? ?어디`),
			told:  patternOf(selfEn + `(?:lives?|living|resides?|(?:moved|relocated)(?: (?:back|away|out|over|here|in))*(?: from [\w' ]{1,30}?)? ?(?:to|into|in)|based in|settled(?: down)? in)\b|\bmy (?:new )?(?:address|home) is\b|` + selfZh + `(?:住在|住到|不住|` + hanMoved + `|搬家到|定居|家就?在)|` + selfJa + `[^。、はが]{1,12}(?:に住ん|に引っ越し)|` + selfKo + wordKo + `\S{1,10}(?:에(?:서)? (?:살아|살고|산다|삽니)|로 이사)`),
			words: "live move home 住在 搬到 搬去 住 搬 引越 살아 살고 이사",
			facts: forms(userNow+`(?:lives? in|resides? in|based in|settled in|(?:moved|relocated) (?:from .+ )?(?:away |back |out )?(?:in)?to)\b(?P<is>.*)$`,
				aUser+`(?:has )?(?P<over>moved|relocated) (?:out|away|from)\b(?: ?(?:of|from)?\b (?P<is>.*))?$`,
				aUser+`no longer (?P<over>lives) (?:here|there|(?:in|at|on) (?P<is>.*))$`,
				`^用户`+hanJust+`(?:从\S{1,12})?(?:(?P<over>搬走|搬家了?$|搬出)|不再?(?P<over>住)在?(?:[这那]\S*|(?P<is>\S{2,})))`,
				hanUser+`(?:住在?|家就?在|家住在?|`+hanMoved+`|定居在?)了?(?P<is>.*)$`)},
		{name: "origin", facts: forms(aUser+`is (?:originally )?from\b(?P<is>.*)$`, `^用户(?:来自|老家(?:在|是)?)(?P<is>.*)$`)},
		{name: "age", flag: age,
			asked: patternOf(`\bhow old am i\b|\bmy age\b|我(?:今年|现在)?(?:几岁|多大|多少岁)|我的年龄`),
			told:  patternOf(selfEn + `(?:\d{1,2}|turned \d{1,2}|(?:twenty|thirty|forty|fifty|sixty)[\w-]*)(?: years? old|\W*$|\W* and\b|,)|` + selfZh + `(?:[\d一二三四五六七八九十]{1,4})岁|我(?:是|叫|姓)[^，。,]{1,8}[，,](?:今年|现在)?[\d一二三四五六七八九十]{1,4}岁`),
			words: "age old turn 岁",
			facts: forms(aUser+`(?:is|turned) (?:now )?(?P<is>\d+)(?: years old)?`+enDayPut+`$`, `^用户(?:`+hanNow+`|快|刚满|满)*(?P<is>[\d一二三四五六七八九十百]+)岁`)},
		{name: "birthday", facts: forms(ofUser+`(?:'s birthday is| was born)\b(?P<is>.*)$`, `^用户的?生日(?P<is>.*)$`)},
		// "A keen baker" is no job.
		{name: "", facts: forms(aUser + `is an? (?:\w+ )?(?:amateur|hobby|keen|avid|good|great|passionate|aspiring|future|former|retired)\b`)},
		{name: workSlot, flag: work,
			asked: patternOf(`\b(?:what|where|which|who|still|do|is|'s).{0,30}\b(?:i|my|me)\b.{0,20}\b(?:work|working|job|profession|occupation|career|employer|company|for a living)\b|\bmy (?:current )?(?:job|profession|employer|occupation)\b|我.{0,6}(?:在哪.{0,4}(?:工作|上班)|做什么(?:工作|的)|(?:什么|啥)(?:工作|职业)|的?(?:工作|职业|公司)是)|我.{0,8}(?:工作|上班).{0,4}吗|(?:私|僕|俺)の(?:仕事|職業)|` + askerJa + `どこで働|(?:내|제) (?:직업|직장)|` + askerKo + `(?:어디서|무슨) ?일`),
			told:  patternOf(selfEn + `works? (?:as|at|for|in)\b|` + selfEn + `(?:working (?:as|at|for)|(?:got|started|found|took|accepted) (?:a|the|my) (?:new )?(?:job|position)|quit (?:my|the|that)(?: \w+)? job|resigned|retired)\b|` + selfEn + `quit(?:\W*$|[,.;!]| (?:and|so|because|at|today|yesterday|last)\b)|\b(?:i'm|i am|user is|became) (?:(?:now|actually|just|currently) )*an? (?:[\p{L}-]+ ){0,2}?` + trade + `\b|\b(?:my|user's) (?:new )?job is\b|` + selfZh + `在[^，。！？,.!?]{1,20}(?:工作|上班|任职|实习)|` + selfZh + `(?:换了?(?:份|个)?(?:新)?工作|跳槽|辞职|入职|退休)|(?:我|用户)` + hanNow + `[是当做](?:一[名个位])?[^，。！？,.!?的]{0,6}` + hanTrade + `(?:$|[，。！!,.了])|` + selfJa + `[^。、はが]{1,16}(?:で働い|に勤め|として働)|` + selfKo + wordKo + `\S{1,10}(?:에서 일(?:해|하고|합)|에 다(?:녀|니고|닙))`),
			words: "work job 工作 上班 跳槽 辞职 入职 働い 勤め 일해 일하 다녀",
			facts: forms(aUser+`(?:is )?(?:no longer|not) (?P<over>works?|employed|an?)\b(?: (?:here|there)| (?:at|for|in) (?P<at>.+)|(?: as)?(?: an?)? (?P<as>(?:[\p{L}-]+ )?`+trade+`.*))?$`,
				userNow+`(?:works?|working|worked|employed|got a job|started) (?:as|a job as) (?P<as>.+?)(?: (?:at|for|in) (?P<at>.+))?$`,
				userNow+`(?:works?|working|employed|got a job) (?:at|for|in an?|in the) (?P<at>.+?)(?: as (?P<as>.+))?$`,
				userNow+`(?:became |an? )+(?P<as>(?:[\p{L}-]+ ){0,3}?`+trade+`)(?: (?:at|for|in) (?P<at>.+))?$`,
				ofUser+`'s (?:current |new )?(?:job|profession|occupation) is (?:now )?(?:as )?(?P<as>.+)$`,
				aUser+`(?:has |is |now |just |recently )*(?P<over>(?:quit|left|lost)(?: (?:their|the|his|her)(?: old| former)? (?:job|position)|$)|resigned|retired|unemployed|fired|laid off)\b`,
				`^用户`+hanJust+`(?:从\S{1,12}|把工作)?(?P<over>辞|离职|退休|跳槽|失业|下岗|转行|换了?工作|被(?:裁|辞退|开除))`,
				`^用户`+hanJust+`不再?(?:(?P<over>在)(?P<at>.+)(?:工作|上班|干)|(?P<over>[当做])(?P<as>.+))$`,
				hanUser+`在(?P<at>.+?)(?:工作|上班|任职|实习|[当做](?:一[名个位])?(?P<as>.{1,10}))$`,
				hanUser+`[是当做](?:一[名个位])?(?:在?(?P<at>[^的，]{2,12})的)?(?P<as>[^的，]{0,8}`+hanTrade+`)$`,
				`^用户的(?:工作|职业)(?:现在)?是(?P<as>.*)$`)},
	}, people())
})

func forms(patterns ...string) (all []*regexp.Regexp) {
	for _, p := range patterns {
		all = append(all, regexp.MustCompile(p))
	}
	return all
}

// people are properties too: who the user's boss is.
func people() (all []property) {
	for _, person := range []struct{ en, zh string }{
		{"boyfriend", "男(?:朋)?友"}, {"girlfriend", "女(?:朋)?友"}, {"fianc[eé]e?", "未婚[夫妻]"}, {"husband", "老公|丈夫|先生"}, {"wife", "老婆|妻子|太太"},
		{"boss", "老板|上司"}, {"mother|mom|mum", "妈妈?|母亲"}, {"father|dad", "爸爸?|父亲"},
	} {
		all = append(all, property{name: person.en, facts: forms(ofUser+`'s (?:new )?(?:`+person.en+`) (?:is (?:now )?(?:called|named)|is)\b(?P<is>.*)$`,
			`^用户的?(?:`+person.zh+`)(?:的名字)?(?:现在)?(?:叫做?|名叫|是叫|是)(?P<is>.*)$`)})
	}
	return all
}

const (
	NameSlot  = "name" // the user's
	workSlot  = "work"
	overGroup = "over"
)

// The beginnings of facts.
const (
	ofUser   = `(?i)^(?:the )?user`
	aUser    = ofUser + ` `
	userNow  = aUser + `(?:(?:has )?(?:quit|left|lost|resigned|retired)\b.{0,60}? (?:and|but) )?(?:has |is |now |currently |just |finally )*`
	hanUser  = `^用户(?:` + hanNow + `|` + hanPast + `)*`
	enDayPut = `(?: (?:on|in|last|this|today|yesterday)\b.*)?`
)

// Slot is what a fact says of a property; the zero value is nothing.
type Slot struct {
	Property string
	parts    map[string]string // of the value, by group
}

func SlotOf(text string) Slot {
	for _, p := range properties() {
		for _, form := range p.facts {
			at := form.FindStringSubmatch(text)
			if at == nil {
				continue
			}
			g := Slot{p.name, map[string]string{}}
			for i, group := range form.SubexpNames() {
				if group != "" && at[i] != "" {
					g.parts[group] = at[i]
				}
			}
			return g
		}
	}
	return Slot{}
}

func (g Slot) of(other Slot) bool { return g.Property != "" && g.Property == other.Property }

// Over reports whether the value of the property has ended.
func (g Slot) Over() bool { return g.parts[overGroup] != "" }

// Contradicts reports whether g, which is newer, has another value of the same property. A
// value that is only more or less specific (Paris, the city of Paris) is not another one, and
// neither are different parts (a place of work, a profession).
func (g Slot) Contradicts(older Slot) bool {
	if !g.of(older) || older.Over() {
		return g.of(older) && !g.Over()
	}
	compared, differs := false, false
	for part, x := range g.parts {
		if y, both := older.parts[part]; both {
			compared, differs = true, differs || !HoldsWords(x, y) && !HoldsWords(y, x)
		}
	}
	if g.Over() { // of a value that it names, only of that
		return len(g.parts) == 1 || compared && !differs
	}
	return differs
}

// Repeats reports whether both have the same part of one property.
func (g Slot) Repeats(other Slot) bool {
	return g.of(other) && g.Over() == other.Over() && slices.ContainsFunc([]string{"is", "as", "at", overGroup}, func(part string) bool {
		return g.parts[part] != "" && other.parts[part] != ""
	})
}

// SameSlot reports whether a text has another value of the same property than an older one.
func SameSlot(text, older string) bool { return SlotOf(text).Contradicts(SlotOf(older)) }
