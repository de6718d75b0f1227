package lang

import (
	"regexp"
	"slices"
	"strings"

	"nodest/index"
)

// Properties of the user have one value at a time.
type Properties uint8

const (
	home Properties = 1 << iota
	work
	ownName
	age
)

// The beginnings of a statement about the user: the person, and what may come before the verb.
const (
	someAdverbs = `(?: (?:now|just|still|recently|finally|already|currently|actually|really|also|only|have|am|is|has|no longer|don't|do not|doesn't))*`
	selfEn      = `\b(?:i|we|user|the user)(?:'ve|'m|'re|'d)?` + someAdverbs + ` `
	selfZh      = `(?:我|我们|咱们?|用户)(?:们|自己|家)?[^，。！？,.!?我你他她]{0,8}?`
)

// The same in Japanese and Korean, which omit the user and name others.
const (
	selfJa  = `(?:^|[\s。、！!]|(?:私|僕|俺|わたし|ぼく)(?:は|も|が)?(?:今|いま|現在)?、?)`
	selfKo  = `(?:^|[.!?,]\s*)(?:(?:저는|나는|난|전|저|나|제가|내가|지금은?|현재|요즘|올해) )*`
	wordKo  = `(?:\S*[^은는이가도서\s] )?`
	askerJa = `(?:私|僕|俺|わたし|ぼく)(?:は|って|が|も)?(?:今|いま|現在)?、?`
	askerKo = `(?:^|\s)(?:나|난|나는|내가|전|저|저는|제가) ?(?:지금 )?`
)

// propertyForms are the ways to ask for properties and to state them.
var propertyForms = []struct {
	property    Properties
	asked, told *regexp.Regexp
	words       string // that such lines have
}{
	{home,
		regexp.MustCompile(`\b(?:where|which (?:city|town|country|place)|what (?:city|town|country|place)|still|do|am|is|'s).{0,30}\b(?:i|my|we|our|me)\b.{0,20}\b(?:live|living|lived|reside|home|hometown|house|address|based|move|moved|moving)\b|\bmy (?:current )?(?:address|home ?town|city)\b|我.{0,8}(?:住在?(?:哪|什么|何处)|家在哪|搬(?:到|去)了?(?:哪|什么)|住(?:址|处))|我.{0,6}住.{0,8}吗|` + askerJa + `(?:どこに|どの[^。]{1,4}に)住|` + askerKo + `어디(?:에|에서)? ?(?:살|사는)|(?:내|제|우리) 집(?:은|이)? ?어디`),
		regexp.MustCompile(selfEn + `(?:lives?|living|resides?|(?:moved|relocated)(?: (?:back|away|out|over|here|in))*(?: from [\w' ]{1,30}?)? ?(?:to|into|in)|based in|settled(?: down)? in)\b|\bmy (?:new )?(?:address|home) is\b|` + selfZh + `(?:住在|住到|不住|` + hanMoved + `|搬家到|定居|家就?在)|` + selfJa + `[^。、はが]{1,12}(?:に住ん|に引っ越し)|` + selfKo + wordKo + `\S{1,10}(?:에(?:서)? (?:살아|살고|산다|삽니)|로 이사)`),
		"live move home 住在 搬到 搬去 住 搬 引越 살아 살고 이사"},
	{work,
		regexp.MustCompile(`\b(?:what|where|which|who|still|do|is|'s).{0,30}\b(?:i|my|me)\b.{0,20}\b(?:work|working|job|profession|occupation|career|employer|company|for a living)\b|\bmy (?:current )?(?:job|profession|employer|occupation)\b|我.{0,6}(?:在哪.{0,4}(?:工作|上班)|做什么(?:工作|的)|(?:什么|啥)(?:工作|职业)|的?(?:工作|职业|公司)是)|我.{0,8}(?:工作|上班).{0,4}吗|(?:私|僕|俺)の(?:仕事|職業)|` + askerJa + `どこで働|(?:내|제) (?:직업|직장)|` + askerKo + `(?:어디서|무슨) ?일`),
		regexp.MustCompile(selfEn + `works? (?:as|at|for|in)\b|` + selfEn + `(?:working (?:as|at|for)|(?:got|started|found|took|accepted) (?:a|the|my) (?:new )?(?:job|position)|quit (?:my|the|that)(?: \w+)? job|resigned|retired)\b|` + selfEn + `quit(?:\W*$|[,.;!]| (?:and|so|because|at|today|yesterday|last)\b)|\b(?:i'm|i am|user is|became) (?:(?:now|actually|just|currently) )*an? (?:[\p{L}-]+ ){0,2}?` + trade + `\b|\b(?:my|user's) (?:new )?job is\b|` + selfZh + `在[^，。！？,.!?]{1,20}(?:工作|上班|任职|实习)|` + selfZh + `(?:换了?(?:份|个)?(?:新)?工作|跳槽|辞职|入职|退休)|(?:我|用户)` + hanNow + `[是当做](?:一[名个位])?[^，。！？,.!?的]{0,6}` + hanTrade + `(?:$|[，。！!,.了])|` + selfJa + `[^。、はが]{1,16}(?:で働い|に勤め|として働)|` + selfKo + wordKo + `\S{1,10}(?:에서 일(?:해|하고|합)|에 다(?:녀|니고|닙))`),
		"work job 工作 上班 跳槽 辞职 入职 働い 勤め 일해 일하 다녀"},
	{ownName,
		regexp.MustCompile(`\b(?:what(?:'s| is| was) my (?:\w+ )?name|(?:know|remember|recall|say|tell me) (?:me )?(?:my (?:real |full |first )?name|who i am|what (?:i am|i'm) called)|who am i|what am i called|what do you call me)\b|` +
			`我(?:到底|究竟|又)?是谁|我(?:的名字)?(?:叫|是)(?:什么|啥|谁)|我(?:到底|究竟)?叫(?:做|作)?(?:什么|啥)|我的(?:名字|姓名)|我姓(?:什么|啥)|怎么称呼我|该叫我什么|` +
			`(?:私|僕|俺)の名前|` + askerJa + `(?:誰|だれ)|(?:내|제) 이름|` + askerKo + `누구`),
		regexp.MustCompile(`\bmy name(?:'s| is)\b|\bcall me\b|\bi(?:'m| am) called\b|\buser(?:'s name is| is called)\b|(?:我|用户)(?:的名字)?(?:现在)?(?:叫[^他她它你您人]|改名)|(?:^|[，。！!,.]|你可以|以后|大家都?|请|就)叫我[^什啥]|^我姓|[，,]叫\p{Han}{2,3}$|(?:私|僕|俺)の名前は|` + selfJa + `[^。、はが]{1,10}(?:といいます|と言います|と申します|って呼んで|と呼んで)|(?:내|제) 이름은|이?라고 (?:해요|합니다|불러)`),
		"name call hi hello hey meet 我叫 我是 名字 叫我 户叫 改名 姓 你好 名前 申し 이름 불러 합니"},
	{age,
		regexp.MustCompile(`\bhow old am i\b|\bmy age\b|我(?:今年|现在)?(?:几岁|多大|多少岁)|我的年龄`),
		regexp.MustCompile(selfEn + `(?:\d{1,2}|turned \d{1,2}|(?:twenty|thirty|forty|fifty|sixty)[\w-]*)(?: years? old|\W*$|\W* and\b|,)|` + selfZh + `(?:[\d一二三四五六七八九十]{1,4})岁|我(?:是|叫|姓)[^，。,]{1,8}[，,](?:今年|现在)?[\d一二三四五六七八九十]{1,4}岁`),
		"age old turn 岁"},
}

func propertiesAsked(folded string) (asked Properties) {
	for _, f := range propertyForms {
		if f.asked.MatchString(folded) {
			asked |= f.property
		}
	}
	return asked
}

// PropertyTerms are words that find lines about properties.
func PropertyTerms(wanted Properties) (terms []index.Term) {
	for _, f := range propertyForms {
		if wanted&f.property != 0 {
			for w := range strings.FieldsSeq(f.words) {
				terms = append(terms, index.Term{Text: index.Stem(w), Weight: weakTerm, Extra: true})
			}
		}
	}
	return terms
}

// longestProperty is the maximum length of a line that is read for properties, in bytes: longer
// ones tell stories.
const longestProperty = 600

// PropertiesTold returns the properties of the user of this name that a text states: a fact, or
// what the user said. self is whether the text is in the first person.
func PropertiesTold(text, name string, said, self bool) Properties {
	if said && !self && !impersonal.MatchString(text) || len(text) > longestProperty {
		return 0
	}
	all := Statements(text)
	if said {
		if !earnest(Line{Role: RoleUser, Text: Narration.ReplaceAllString(text, " ")}) {
			return 0
		}
		all = slices.DeleteFunc(all, supposed.MatchString)
	}
	read := ofOthers.ReplaceAllString(strings.Join(all, " "), "")
	if name != "" {
		read = strings.ReplaceAll(strings.ToLower(read), name, "user")
	}
	told := toldIn(read)
	if said && told&ownName == 0 && introduces(text) {
		told |= ownName
	}
	return told
}

// MentionsProperty reports whether a short text has the form of a statement of one of these
// properties, even in play, in jest or by hearsay.
func MentionsProperty(text string, asked Properties) bool {
	return len(text) <= longestProperty && toldIn(text)&asked != 0
}

// SaysChanged reports whether a text says that something has changed.
func SaysChanged(text string) bool { return changed.MatchString(Contracted(strings.ToLower(text))) }

// AboutSpeaker reports whether a text is about the one who says it.
func AboutSpeaker(text string) bool { return aboutUs.MatchString(Contracted(strings.ToLower(text))) }

func toldIn(text string) (told Properties) {
	text = Contracted(strings.ToLower(text))
	for _, f := range propertyForms {
		if f.told.MatchString(text) && !notNow.MatchString(text) {
			told |= f.property
		}
	}
	return told
}

// ofOthers are Chinese clauses about somebody close to the user.
var ofOthers = regexp.MustCompile(`我(?:的|家的?)?(?:` + hanClose + `|老板|邻居|老师|表[哥姐弟妹]|堂[哥姐弟妹]|叔叔|阿姨|舅舅|姑姑)[^，。！？,.!?]*`)

// impersonal texts may be about the user without a word for "I".
var impersonal = regexp.MustCompile(`叫我|[\p{Hiragana}\p{Hangul}]`)

// introduces reports whether rules read the user's name in a text ("Hi, I'm Anna").
func introduces(text string) bool {
	return slices.ContainsFunc(Names{}.Statements(Line{Role: RoleUser, Text: text}), func(f Statement) bool { return GivesName(f.Text) })
}

// notNow is about the past or the future.
var notNow = regexp.MustCompile(`\b(?:used to (?:live|work|be)|when i (?:was|lived|worked)|i lived|i worked|if i|i wish|i want to|i'd like to|i plan)\b|(?:以前|曾经|小时候|如果|要是|想|打算|计划)[^，。]{0,8}(?:住|搬|工作|上班|辞|跳槽|转行|退休)`)

// changed is how people say that something has changed.
var changed = regexp.MustCompile(`\b(?:no longer|not? .{1,40}\b(?:anymore|any more)|(?:changed|switched) (?:my|the|our)\b|(?:changed|switched|moved|postponed|rescheduled|pushed|brought forward|renamed)(?: (?:it|that|this|my [\w ]{1,20}|the [\w ]{1,20}))? (?:to|until|from|into)|instead(?: of)?|actually|correction|i meant(?: to say|[,:]| it| the| my| an?)|(?:i was|i got (?:it|that)|that was|my) (?:wrong|mistake|mistaken)|i(?:'ve)? (?:mixed|confused|misremembered|misspoke)|turns out|(?:is|are|was) (?:off|over|history)|no more|(?:have|has|had|'ve|'d|did) (?:given up|switched|changed|moved|left)|switched|swapped|stopped|quit|gave (?:up|away)|(?:gone|went) off|replaced|used to|passed away|died|sold|broke up|split up|these days|nowadays|now|from now on|got rid of|cancell?ed|called off|ditched|dumped|dropped|traded|scratch that|moved (?:him|her|them|it|us|out|back)|in the end|back to|promoted|finally)\b|anymore\b` +
	`|不再|已经(?:不|没)|改成|改到|改为|改名|换成|换到|换了|搬到|其实|[说记搞弄写]错|记混|搞混|更正|不是.{1,12}(?:而是|，是|是)|推迟|提前|取消|戒了|戒掉|不(?:去|吃|喝|做|学|练|干|用|看|养|玩|住)了|放弃|弃了|撤回|作废|黄了|算了|辞了|后来|终于|最后|总算|没去成|泡汤|搬[进来]|转(?:学|行|专业|岗|队)|退(?:休|学|出|掉|订)|改(?:喝|吃|用|去|学|做|练|看|坐|骑|开|养|叫|在|搬)|离(?:婚|职)|分手|去世|卖了|送人了|换(?:了|个|成|回)|换(?:工作|手机|号)|现在(?:是|改|做|不|更|最|喜欢|在|住|每|固定|都|就|只|换|叫|用|吃|喝)|转到|转去|변경|바꿨|더 이상|変更|変わ|もう.{1,10}ない`)

var aboutUs = regexp.MustCompile(`\b(?:i|my|me|we|our|us)\b|[我咱私僕俺]|나|내|우리`)

// nameForms are the beginnings of facts with the user's name.
var nameForms = regexp.MustCompile(`(?i)^(?:the )?user(?:'s name is| is called| is named)\b|^(?:my name is|i am called|i'm called|call me)\b|` +
	`^用户(?:的名字)?(?:叫|名叫|是叫|的名字叫|的名字是)|^我(?:叫|的名字(?:叫|是))`)

func GivesName(text string) bool { return nameForms.MatchString(text) }

// AsksWho reports whether a text asks for the user's own name. Its words are so common that
// they find nothing.
func AsksWho(text string) bool {
	return propertiesAsked(Contracted(strings.ToLower(text)))&ownName != 0
}
