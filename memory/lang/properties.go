package lang

import (
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

	allProperties = home | work | ownName | age
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

// propertiesAsked returns which of some properties a text asks for.
func propertiesAsked(folded string, of Properties) (asked Properties) {
	for _, f := range properties() {
		if f.flag&of != 0 && f.asked.MatchString(folded) {
			asked |= f.flag
		}
	}
	return asked
}

// PropertyTerms are words that find lines about properties.
func PropertyTerms(wanted Properties) (terms []index.Term) {
	for _, f := range properties() {
		if wanted&f.flag != 0 {
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
	if said && !mayTell(text) && !mayIntroduce.MatchString(text) {
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
	if said && told&ownName == 0 && mayIntroduce.MatchString(text) && introduces(text) {
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
	for _, f := range properties() {
		if f.told != nil && f.told.MatchString(text) && !notNow.MatchString(text) {
			told |= f.flag
		}
	}
	return told
}

// tellingWords are in every English text that states a property, but for one of a trade.
var tellingWords = strings.Fields("name call live living reside moved relocated based settled address home" +
	" 0 1 2 3 4 5 6 7 8 9 twenty thirty forty fifty sixty work job position quit resigned retired")

// ofTrade is how a trade is stated.
var ofTrade = patternOf(`(?:i'm|i am|user is|became) (?:(?:now|actually|just|currently) )*an? `)

// mayTell reports, fast, whether a text may state a property. The words of dense scripts are not
// looked at.
func mayTell(text string) bool {
	if HasCJK(text) {
		return true
	}
	folded := Contracted(strings.ToLower(text))
	return slices.ContainsFunc(tellingWords, func(w string) bool { return strings.Contains(folded, w) }) || ofTrade.MatchString(folded)
}

// ofOthers are Chinese clauses about somebody close to the user.
var ofOthers = patternOf(`我(?:的|家的?)?(?:` + hanClose + `|老板|邻居|老师|表[哥姐弟妹]|堂[哥姐弟妹]|叔叔|阿姨|舅舅|姑姑)[^，。！？,.!?]*`)

// impersonal texts may be about the user without a word for "I".
var impersonal = patternOf(`叫我|[\p{Hiragana}\p{Hangul}]`)

// mayIntroduce is what every text has that introduces: looking for it is fast.
var mayIntroduce = patternOf(`[Nn][Aa][Mm][Ee]|[Cc][Aa][Ll][Ll]|I(?:['’]m| am) \p{Lu}|[叫名姓称]|我是`)

// introduces reports whether rules read the user's name in a text ("Hi, I'm Anna").
func introduces(text string) bool {
	return slices.ContainsFunc(Names{}.Statements(Line{Role: RoleUser, Text: text}), func(f Statement) bool { return GivesName(f.Text) })
}

// notNow is about the past or the future.
var notNow = patternOf(`\b(?:used to (?:live|work|be)|when i (?:was|lived|worked)|i lived|i worked|if i|i wish|i want to|i'd like to|i plan)\b|(?:以前|曾经|小时候|如果|要是|想|打算|计划)[^，。]{0,8}(?:住|搬|工作|上班|辞|跳槽|转行|退休)`)

// changed is how people say that something has changed.
var changed = patternOf(`\b(?:no longer|not? .{1,40}\b(?:anymore|any more)|(?:changed|switched) (?:my|the|our)\b|(?:changed|switched|moved|postponed|rescheduled|pushed|brought forward|renamed)(?: (?:it|that|this|my [\w ]{1,20}|the [\w ]{1,20}))? (?:to|until|from|into)|instead(?: of)?|actually|correction|i meant(?: to say|[,:]| it| the| my| an?)|(?:i was|i got (?:it|that)|that was|my) (?:wrong|mistake|mistaken)|i(?:'ve)? (?:mixed|confused|misremembered|misspoke)|turns out|(?:is|are|was) (?:off|over|history)|no more|(?:have|has|had|'ve|'d|did) (?:given up|switched|changed|moved|left)|switched|swapped|stopped|quit|gave (?:up|away)|(?:gone|went) off|replaced|used to|passed away|died|sold|broke up|split up|these days|nowadays|now|from now on|got rid of|cancell?ed|called off|ditched|dumped|dropped|traded|scratch that|moved (?:him|her|them|it|us|out|back)|in the end|back to|promoted|finally)\b|anymore\b` +
	`|不再|已经(?:不|没)|改成|改到|改为|改名|换成|换到|换了|搬到|其实|[说记搞弄写]错|记混|搞混|更正|不是.{1,12}(?:而是|，是|是)|推迟|提前|取消|戒了|戒掉|不(?:去|吃|喝|做|学|练|干|用|看|养|玩|住)了|放弃|弃了|撤回|作废|黄了|算了|辞了|后来|终于|最后|总算|没去成|泡汤|搬[进来]|转(?:学|行|专业|岗|队)|退(?:休|学|出|掉|订)|改(?:喝|吃|用|去|学|做|练|看|坐|骑|开|养|叫|在|搬)|离(?:婚|职)|分手|去世|卖了|送人了|换(?:了|个|成|回)|换(?:工作|手机|号)|现在(?:是|改|做|不|更|最|喜欢|在|住|每|固定|都|就|只|换|叫|用|吃|喝)|转到|转去|변경|바꿨|더 이상|変更|変わ|もう.{1,10}ない`)

var aboutUs = patternOf(`\b(?:i|my|me|we|our|us)\b|[我咱私僕俺]|나|내|우리`)

// nameForms are the beginnings of facts with the user's name.
var nameForms = patternOf(`(?i)^(?:the )?user(?:'s name is| is called| is named)\b|^(?:my name is|i am called|i'm called|call me)\b|` +
	`^用户(?:的名字)?(?:叫|名叫|是叫|的名字叫|的名字是)|^我(?:叫|的名字(?:叫|是))`)

func GivesName(text string) bool { return nameForms.MatchString(text) }

// AsksWho reports whether a text asks for the user's own name. Its words are so common that
// they find nothing.
func AsksWho(text string) bool {
	return propertiesAsked(Contracted(strings.ToLower(text)), ownName) != 0
}
