package memory

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// The parts of Chinese rules. A time before or behind 我 stays in the statement.
const (
	hanDegree = `(?:真的|真|很|非常|特别|最|超级?|一直|从小就?|也|都|还|比较|其实|挺|更|就|可|太|有点儿?|实在|完全|蛮)*`
	hanTime   = `(?:今晚|今天(?:晚上|下午)?|明天(?:早上|上午|中午|下午|晚上)?|明[早晚]|后天|大后天|这个?周末|周末|下下?个?(?:周|星期|礼拜)[一二三四五六日天末]?|这个?(?:周|星期)[一二三四五六日天]|(?:周|星期)[一二三四五六日天]|下个?月(?:初|底)?|月底|年底|明年|暑假|寒假|国庆|春节|过年|\d{1,2}月\d{1,2}[日号]|[一二三四五六七八九十两\d]+(?:天|周|个月|年)后)`
	hanNow    = `(?:现在|目前|如今|一直|还|就|暂时|今年|刚刚?|最近|已经)*`
)

var (
	hanLead   = regexp.MustCompile(`^(?:嗯+|啊|哦|噢|哎|唉|嘿|嗨|哈+|呃|那个|对了|话说|其实|说实话|老实说|告诉你|你知道|跟你说|而且|并且|还有|另外|因为|所以|但是?|不过|然后|可是|好的?|是的|没错|你好|以后|请你?|顺便说一下)*[\s,，、！!]*`)
	hanSelf   = regexp.MustCompile(`^(` + hanTime + `)?[,，]?(?:我自己|本人|我)(.*)$`)
	hanOther  = regexp.MustCompile(`^(?:你|他|她|它|咱|我们|大家|别人|有人|这|那)`)
	hanEnd    = regexp.MustCompile(`[\s。．.!！~～…、啊呀呢吧哦嘛啦哈噢喔诶耶的了]+$`)
	hanMemo   = regexp.MustCompile(`^(?:请|帮我|你要|你|一定要?|要|千万)*(?:记住|记得|别忘了?|不要忘记?|记一下)[\s,，：:]*(.{2,})$`)
	hanWe     = regexp.MustCompile(`^(?:我们|咱们)`)
	hanNoise  = regexp.MustCompile(`^(?:是(?:说|想|不是|因为|真的?|怕|觉得|在|来|会|要|有|很|被|从|谁|指|为|不|这|那|你|认真|开玩笑)|有(?:点|些|时|空|事|没|一点|一些|什么|可能|趣|意思|过|一次|一天|时候|种|一种|个问题|一个问题|这|那|道理|你)|(?:喜欢|爱)(?:的|吗|这样|那样|它|这个|那个|上了?)?$|要(?:是|不|说|问|的|你|睡|走)|会(?:的|吗|不会|不)|想(?:说|问|知道|你))`)
	hanLove   = regexp.MustCompile(`^` + hanDegree + `(?:喜欢|爱|想念|讨厌|恨)你$`)
	hanPledge = regexp.MustCompile(`^(?:一定|绝对|肯定|永远|保证|都|也|明天|以后)*(?:会|答应|保证|发誓|承诺)(.{2,})$`)
	hanEmpty  = regexp.MustCompile(`^(?:你)?[的了吧呢啊呀]*$`)
)

// hanRules read the clause behind 我.
var hanRules = []rule{
	{form: regexp.MustCompile(`^(?:的名字)?(?:叫做?|名叫|是叫|的名字(?:叫做?|是))(\S{1,16})$`), not: regexp.MustCompile(`^叫(?:你|他|她|了|过|不|外卖|车)|我叫你`), kind: Profile, importance: 0.9, text: "叫$1"},
	{form: regexp.MustCompile(`^` + hanNow + `(?:快|满|刚满)?\s*[\d一二三四五六七八九十百]+岁`), kind: Profile, importance: 0.8},
	{form: regexp.MustCompile(`^的?生日(?:是|在|就是|就在)?(?:.*)[\d一二三四五六七八九十明今后昨]`), kind: Profile, importance: 0.9},
	{form: regexp.MustCompile(`^` + hanNow + `(?:住在?|家(?:就)?在|家住在?|搬到了?|搬去了?|搬来了?|来自|老家(?:在|是)|定居在?)(\S{2,})`), not: regexp.MustCompile(`住(?:不|的|了吧|嘴|手)`), kind: Profile, importance: 0.8},
	{form: regexp.MustCompile(`^` + hanNow + `在.{1,20}(?:工作|上班|任职|实习|当[^然时]|做[^梦])`), kind: Profile, importance: 0.8},
	{form: regexp.MustCompile(`^的(?:工作|职业|专业)(?:是|就是)(\S{2,})`), kind: Profile, importance: 0.8},
	{form: regexp.MustCompile(`^` + hanNow + `在.{2,20}(?:读书|上学|念书|读大学|读研|读博|学习|留学|读[一二三四大高初])`), kind: Profile, importance: 0.8},
	{form: regexp.MustCompile(`^` + hanNow + `(?:对).{1,20}?(?:严重)?过敏`), kind: Profile, importance: 0.9},
	{form: regexp.MustCompile(`^` + hanDegree + `(?:讨厌|不(?:太|大|怎么|是很|很)?喜欢|不爱|受不了|厌恶|不吃|不喝)(\S+)`), kind: Preference, importance: 0.7},
	{form: regexp.MustCompile(`^` + hanDegree + `(?:喜欢|爱[吃喝看听玩]?|热爱|偏爱|迷上了?|钟爱)(\S+)`), kind: Preference, importance: 0.7},
	{form: regexp.MustCompile(`^的?最?(?:爱好|兴趣|喜欢的\S{1,8}|爱的\S{1,8})是(\S+)`), kind: Preference, importance: 0.7},
	{form: regexp.MustCompile(`^(?:的|家的?)?(\S{1,8}?)(?:名叫|的名字(?:叫|是)|叫做?)(\S{1,12})$`), not: regexp.MustCompile(`^(?:不|没|先|刚|想|就|在|被|会|要)|叫(?:我|你|了|他|她)`), kind: Relation, importance: 0.8},
	{form: regexp.MustCompile(`^(?:家里?)?` + hanNow + `(?:养了?|养着|有)(?:[一两二三四五六七八九十几\d]+)?(?:[只条个位匹头对名]|辆|套|间)(\S+)`), kind: Profile, importance: 0.7},
	{form: regexp.MustCompile(`^(?:家里?)?有(?:哥|姐|弟|妹|孩子|儿子|女儿|老婆|老公|男朋友|女朋友|猫|狗)`), kind: Relation, importance: 0.7},
	{form: regexp.MustCompile(`^` + hanNow + hanTime + `?(?:打算|计划|准备|决定)(?:在|去|要)?(\S{2,})`), kind: Intention, importance: 0.6},
	{form: regexp.MustCompile(`^(?:.{0,6})?` + hanTime + `.{0,4}?(?:要|会|得|去|有|参加|考|搬|出差|飞|开始|结婚|面试|交|回)(\S*)`), kind: Intention, importance: 0.6},
	{form: regexp.MustCompile(`^的.{1,20}(?:截止|到期|deadline)`), kind: Intention, importance: 0.8},
	{form: regexp.MustCompile(`^` + hanNow + `是(?:一[名个位])?([^的，]{2,20})$`), kind: Profile, importance: 0.7},
}

// chinese reads one sentence.
func (n Names) chinese(sentence string, m Message) []found {
	if m.Role == RoleCharacter {
		return n.chinesePledges(sentence)
	}
	sentence = hanLead.ReplaceAllString(sentence, "")
	if memo := hanMemo.FindStringSubmatch(sentence); memo != nil {
		if inner := n.chineseClauses(memo[1]); len(inner) > 0 {
			return inner
		}
		what := hanEnd.ReplaceAllString(memo[1], "")
		if utf8.RuneCountInString(what) < 2 || questionWords.MatchString(what) || !strings.ContainsAny(what, "我明今后下周月日号年") {
			return nil
		}
		return []found{{"用户要求记住：" + n.hanThird("用户", what), AboutUser, OtherSort, 0.9}}
	}
	return n.chineseClauses(sentence)
}

// chineseClauses reads the clauses of a sentence; behind one about 我 the others may
// leave it out.
func (n Names) chineseClauses(sentence string) []found {
	var out []found
	self := false
	for _, clause := range hanCommas.Split(sentence, -1) {
		clause = hanLead.ReplaceAllString(strings.TrimSpace(clause), "")
		rest, time := clause, ""
		if at := hanSelf.FindStringSubmatch(clause); at != nil && !hanWe.MatchString(clause[len(at[1]):]) {
			time, rest, self = at[1], at[2], true
		} else if self = self && !hanOther.MatchString(clause); !self {
			continue
		}
		rest = hanEnd.ReplaceAllString(rest, "")
		if rest == "" || hanNoise.MatchString(rest) || questionWords.MatchString(rest) {
			continue
		}
		if hanLove.MatchString(rest) {
			out = append(out, found{"用户" + n.hanThird("用户", rest), AboutRelationship, Relation, 0.8})
			continue
		}
		if text, r, ok := firstRule(hanRules, time+rest); ok {
			out = append(out, found{"用户" + n.hanThird("用户", text), AboutUser, r.kind, r.importance})
		}
	}
	return out
}

var hanCommas = regexp.MustCompile(`[,，;；]\s*`)

// chinesePledges reads what a character says it will do.
func (n Names) chinesePledges(sentence string) []found {
	var out []found
	for _, clause := range hanCommas.Split(sentence, -1) {
		at := hanSelf.FindStringSubmatch(hanLead.ReplaceAllString(strings.TrimSpace(clause), ""))
		if at == nil {
			continue
		}
		rest := hanEnd.ReplaceAllString(at[2], "")
		pledge := hanPledge.FindStringSubmatch(rest)
		if pledge == nil || hanEmpty.MatchString(pledge[1]) || questionWords.MatchString(rest) {
			continue
		}
		who := n.character("角色")
		out = append(out, found{who + n.hanThird(who, at[1]+rest), AboutCharacter, Promise, 0.6})
	}
	return out
}

func (n Names) character(missing string) string {
	if n.Character != "" {
		return n.Character
	}
	return missing
}

// hanThird turns a predicate of speaker from the first person into the third.
func (n Names) hanThird(speaker, predicate string) string {
	other := n.character("角色")
	if speaker != "用户" {
		other = "用户"
	}
	predicate = strings.ReplaceAll(strings.TrimPrefix(predicate, "自己"), "我们", "\x01")
	predicate = strings.NewReplacer("我自己", "自己", "我", "自己", "你们", "你们", "您", other, "你", other).Replace(predicate)
	predicate = strings.ReplaceAll(predicate, "\x01", "两人")
	return strings.TrimSpace(predicate)
}
