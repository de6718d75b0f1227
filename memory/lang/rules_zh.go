package lang

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// The parts of Chinese rules. A time before or after 我 stays in the statement.
const (
	hanDegree = `(?:真的|真|很|非常|特别|最|超级?|一直|从小就?|也|都|还|比较|其实|挺|更|就|可|太|有点儿?|实在|完全|蛮)*`
	hanTime   = `(?:今晚|明天(?:早上|上午|中午|下午|晚上)?|明[早晚]|后天|大后天|这个?周末|周末|下下?个?(?:周|星期|礼拜)[一二三四五六日天末]?|这个?(?:周|星期)[一二三四五六日天]|(?:周|星期)[一二三四五六日天]|下个?月(?:初|底)?|月底|年底|明年|暑假|寒假|国庆|春节|过年|\d{1,2}月\d{1,2}[日号]|[一二三四五六七八九十两\d]+(?:天|周|个月|年)后)`
	hanNow    = `(?:现在|目前|如今|一直|还|就|暂时|今年|刚刚?|最近|已经)*`
	hanPast   = `(?:昨天|前天|上个?(?:周|星期|礼拜|月)|前几天|去年|今年|年初|年底|月初|\d{1,2}月份?)`
	hanJust   = `(?:已经|刚刚?|现在|最近|终于|今天|昨天|前天|前几天|上个?(?:周|星期|礼拜|月)|去年|年初)*`
	hanClose  = `(?:猫|狗|宠物|兔子?|仓鼠|鹦鹉|乌龟|女儿|儿子|孩子|宝宝|双胞胎|老婆|老公|妻子|丈夫|太太|男朋友|女朋友|男友|女友|未婚夫|未婚妻|哥哥?|弟弟?|姐姐?|妹妹?|妈妈?|爸爸?|母亲|父亲|爷爷|奶奶|外婆|外公|姥姥|姥爷|同事|同学|室友|舍友|闺蜜|朋友|金毛|柯基|泰迪|布偶|橘猫)`
	hanMoved  = `搬[到去来回进]`
	hanOwned  = `(?:车|房子?|公寓|店|公司|餐厅|咖啡馆|钢琴|吉他)`
	hanTrade  = `(?:师|医生|护士|程序员|公务员|店员|职员|飞行员|运动员|服务员|消防员|销售员?|记者|警察|军人|司机|会计|编辑|翻译|导演|导游|教练|教授|主管|经理|总监|老板|店长|农民|工人|快递员|保安|保姆)` // one at a time
	hanJob    = `(?:学生|研究生|大学生|高中生|初中生|大[一二三四]生?|博士|硕士|演员|作家|画家|作曲家|音乐家|科学家|企业家|作者|学者|研究者|志愿者|自由职业者?|创业者|素食者|歌手|模特|主播|博主|独生子女?|单亲妈妈|全职妈妈|宝妈|女生|男生|女的|男的|左撇子|(?:\p{Han}{2}|中国|外国)人|` + hanTrade + `)`
	hanIll    = `(?:糖尿病|[高低]血压|[高低]血糖|哮喘|癫痫|抑郁症?|焦虑症?|心脏病|胃病|胃炎|鼻炎|偏头痛|失眠症|关节炎|甲亢|甲减|贫血|乙肝|肾病|癌症?|多动症|自闭症|强迫症|色盲|散光|湿疹)`
	// Surnames are Chinese ones that are seldom words; wordSurnames are words as well.
	Surnames     = `王李张刘陈杨赵吴徐孙朱郭林郑梁谢唐韩冯邓曹彭曾萧蔡潘袁董苏吕魏蒋杜沈姜傅卢戴崔陆廖姚邹欧`
	wordSurnames = `黄周胡何罗宋许余叶田丁范钟汪任熊`

	hanNamed = `([\p{Han}·]{1,6}|[A-Za-z][A-Za-z .'-]{0,30})`
)

var (
	hanLead   = regexp.MustCompile(`^(?:嗯+|啊|哦|噢|哎|唉|嘿|嗨|呃|那个|对了|话说|其实|说实话|老实说|告诉你|你知道|跟你说|而且|并且|还有|另外|因为|所以|但是?|不过|然后|可是|好的?|是的|没错|你好|以后|请你?|顺便说一下)*[\s,，、！!]*`)
	hanSelf   = regexp.MustCompile(`^(` + hanTime + `)?[,，]?(?:我自己|本人|我)(.*)$`)
	hanOther  = regexp.MustCompile(`^(?:你|他|她|它|咱|我们|大家|别人|有人|这|那)`)
	hanEnd    = regexp.MustCompile(`[\s。．.!！~～…、啊呀呢吧哦嘛啦哈噢喔诶耶的了]+$`)
	hanMemo   = regexp.MustCompile(`^(?:请|帮我|你要|你|一定要?|要|千万)*(?:记住|记得|别忘了?|不要忘记?|记一下)[\s,，：:]*(.{2,})$`)
	hanWe     = regexp.MustCompile(`^(?:我们|咱们)`)
	hanNoise  = regexp.MustCompile(`^(?:是(?:说|想|不是|因为|真的?|怕|觉得|在|来|会|要|有|很|被|从|谁|指|为|不|这|那|你|认真|开玩笑)|有(?:点|些|时|空|事|没|一点|一些|什么|可能|趣|意思|过|一次|一天|时候|种|一种|个问题|一个问题|这|那|道理|你)|(?:喜欢|爱)(?:的|吗|这样|那样|它|这个|那个|上了?)?$|要(?:是|不|说|问|的|你|睡|走)|会(?:的|吗|不会|不)|想(?:说|问|知道|你))`)
	hanLove   = regexp.MustCompile(`^` + hanDegree + `(?:喜欢|爱|想念|讨厌|恨)你$`)
	hanPledge = regexp.MustCompile(`^(?:一定|绝对|肯定|永远|保证|都|也|明天|以后)*(?:会|答应|保证|发誓|承诺)(.{2,})$`)
	hanEmpty  = regexp.MustCompile(`^(?:你)?[的了吧呢啊呀]*$`)
	// hanVow is a promise that is called one, that has a time, or that is for ever.
	hanVow  = regexp.MustCompile(`答应|保证|发誓|承诺|永远|一直|一辈子|再也不|每天|` + hanTime)
	hanIdle = regexp.MustCompile(`尽力|尽量|努力|试|考虑|想想|看看|再联系|联系你|通知你|告诉你|转告|回来|马上|记住|记得|支持|倾听|帮助|提供|学习|改进|为你服务|在这里|关注|保密|注意|继续|聊`)
	// hanGone is past, or passes.
	hanGone = regexp.MustCompile(`[了过]|感到|觉得|睡|休息|洗澡|出门|回家|吃(?:饭|早|午|晚)`)
)

// hanRules read the clause after 我.
var hanRules = sync.OnceValue(func() []rule {
	return []rule{
		{form: regexp.MustCompile(`^(?:(?:已经|现在|真正|其实|以后)?(?:的真?名字?|的本名|的大名)?(?:现在)?(?:改名(?:叫做?|为|成)|改叫|叫做?|名叫|是叫|的名字(?:叫做?|是)))` + hanNamed + `$`), not: regexp.MustCompile(`叫(?:你|他|她|它|了|过|不|外卖|车|醒|停|好|苦|什么|人|大家|妈|爸|我|一|几|个|来|去|着|得|滴|快递|出租)|我叫你`), explicit: true, kind: KindProfile, importance: 0.9, text: "叫$1"},
		{form: regexp.MustCompile(`^的(?:真实|真正的?)?(?:名字|真名|本名|大名)(?:其实|现在)?(?:叫做?|是)` + hanNamed + `$`), explicit: true, kind: KindProfile, importance: 0.9, text: "叫$1"},
		{form: regexp.MustCompile(`^` + hanNow + `(?:快|满|刚满)?\s*[\d一二三四五六七八九十百]+岁半?$`), kind: KindProfile, importance: 0.8},
		{form: regexp.MustCompile(`^的?生日(?:就)?(?:是|在)[^，]*?(?:[\d一二三四五六七八九十]+[月日号]|初|明天|后天|昨天|今天)`), kind: KindProfile, importance: 0.9},
		{form: regexp.MustCompile(`^(?:` + hanNow + `|` + hanPast + `)*` + hanMoved + `了?(\S{2,}?)(?:去|来)?(?:住|生活|定居|工作)$`), not: regexp.MustCompile(`[这那]|隔壁|楼[上下]|哪|想|打算`), kind: KindProfile, importance: 0.8, text: "搬到$1"},
		{form: regexp.MustCompile(`^` + hanJust + `((?:从\S{2,12})?(?:辞职|离职|退休|跳槽|失业|下岗|转行|换工作|换了?[份个]新?工作|辞掉?了?工作|把工作辞|被(?:裁员?|辞退|开除))(?:不干)?|从\S{2,12}毕业)掉?$`), kind: KindProfile, importance: 0.7, text: "${1}了"},
		{form: regexp.MustCompile(`^` + hanJust + `不再?(?:在\S{1,12}(?:工作|上班|干)|[当做]\S{0,8}` + hanTrade + `|住在?\S{2,})$`), kind: KindProfile, importance: 0.7},
		{form: regexp.MustCompile(`^` + hanJust + `((?:从\S{2,12})?(?:搬家|搬走|搬出[来去]|搬出\S{2,}))$`), not: hanVague, kind: KindProfile, importance: 0.7, text: "${1}了"},
		{form: regexp.MustCompile(`^(?:` + hanNow + `|` + hanPast + `)*(?:住在|家(?:就)?在|家住在?|搬[到去来]了?|来自|老家(?:在|是)|定居在?)(\S{2,})`), not: regexp.MustCompile(`住(?:不|的|了吧|嘴|手)|[这那]|隔壁|楼[上下]|哪|家(?:就)?在(?:做|吃|装|搬|下|等|睡|聊)`), kind: KindProfile, importance: 0.8},
		{form: regexp.MustCompile(`^` + hanNow + `在.{1,20}(?:工作|上班|任职|实习|教书)$`), not: regexp.MustCompile(`努力|认真|拼命|忙|找|考虑|是否|想|讨厌|当前|[这那]`), kind: KindProfile, importance: 0.8},
		{form: regexp.MustCompile(`^` + hanNow + `在.{1,20}(?:当|做)(.{0,8}` + hanJob + `)$`), kind: KindProfile, importance: 0.8},
		{form: regexp.MustCompile(`^的(?:工作|职业|专业)(?:是|就是)([^，]{2,20})$`), not: hanVague, kind: KindProfile, importance: 0.8},
		{form: regexp.MustCompile(`^` + hanNow + `在.{2,20}(?:读书|上学|念书|读大学|读研|读博|留学|读[大高初][一二三四])$`), not: regexp.MustCompile(`努力|认真|拼命|考虑|[这那]`), kind: KindProfile, importance: 0.8},
		{form: regexp.MustCompile(`^` + hanNow + `(?:对).{1,20}?(?:严重)?过敏$`), not: regexp.MustCompile(`上班|工作|学习|恋爱|爱情|社交|你|他|她|人`), kind: KindProfile, importance: 0.9},
		{form: regexp.MustCompile(`^` + hanNow + `(?:有|患有|得了)(?:点儿?|轻度|重度|严重的?|先天性?)?(?:\p{Han}{0,4})` + hanIll + `$`), not: regexp.MustCompile(`没有|[这那]|人|家`), kind: KindProfile, importance: 0.8},
		{form: regexp.MustCompile(`^(?:已经|刚刚?|` + hanPast + `)*(?:已婚|未婚|单身|怀孕|结婚|订婚|离婚)$`), kind: KindProfile, importance: 0.7},
		{form: regexp.MustCompile(`^姓(\p{Han}{1,2})$`), not: regexp.MustCompile(`姓(?:什么|啥|名)`), explicit: true, kind: KindProfile, importance: 0.8},
		{form: regexp.MustCompile(`^` + hanDegree + `(?:讨厌|不(?:太|大|怎么|是很|很)?喜欢|不爱|受不了|厌恶|不吃|不喝)(\S+)`), not: hanVague, kind: KindPreference, importance: 0.7},
		{form: regexp.MustCompile(`^` + hanDegree + `(?:喜欢|爱[吃喝看听玩]|热爱|偏爱|迷上了?|钟爱)(\S{2,}|[\p{Han}A-Za-z])$`), not: hanVague, kind: KindPreference, importance: 0.7},
		{form: regexp.MustCompile(`^` + hanDegree + `爱(\p{Han}{2,})$`), not: regexp.MustCompile(`[这那你您他她它]|^爱(?:的|了|着|上|情|人|心|好)`), kind: KindPreference, importance: 0.7},
		{form: regexp.MustCompile(`^的?最?(?:爱好|兴趣|喜欢的\S{1,8}|爱的\S{1,8})(?:是|有)(\S+)`), not: hanVague, kind: KindPreference, importance: 0.7},
		{form: regexp.MustCompile(`^(?:的|家的?)?(` + hanClose + `)(?:的名字)?(?:现在)?(?:名叫|叫做?|是叫|叫|是)` + hanNamed + `$`), not: regexp.MustCompile(`叫(?:我|你|了|他|她|一|过|不|来|去|着|得)|是(?:` + hanJob + `|[一个很不在])`), explicit: true, kind: KindRelation, importance: 0.8},
		{form: regexp.MustCompile(`^(?:家里?)?` + hanNow + `(?:养了?|养着|有)(?:[一两二三四五六七八九十几\d]+)?(?:[只条个位匹头对名辆套间架家])?(\S{0,6}` + hanClose + `|\S{0,4}` + hanOwned + `)$`), not: regexp.MustCompile(`[这那]|问题|想法|没有|[^男女]朋友$|同事$|同学$`), kind: KindProfile, importance: 0.7},
		{form: regexp.MustCompile(`^` + hanNow + hanTime + `?(?:打算|计划|准备|决定)(?:在|去|要)?(\S{3,})`), not: regexp.MustCompile(hanGone.String() + `|` + hanVague.String() + `|问|说|聊|告诉|开始|放弃|怎么|好好|认真|努力`), kind: KindPlan, importance: 0.6},
		{form: regexp.MustCompile(`^(?:.{0,6})?` + hanTime + `.{0,4}?(?:要|会|得|去|有|参加|考|搬|出差|飞|开始|结婚|面试|交|回)(\S+)`), not: regexp.MustCompile(hanGone.String() + `|[你您他她它]|再说|再聊|有空|有时间`), kind: KindPlan, importance: 0.6},
		{form: regexp.MustCompile(`^的.{1,20}(?:截止|到期|deadline)`), kind: KindPlan, importance: 0.8},
		{form: regexp.MustCompile(`^` + hanNow + `[是当做](?:一[名个位])?([^的，]{0,12}` + hanJob + `)$`), not: regexp.MustCompile(`[这那]|是(?:个|一个)?(?:好|坏|怪|老实|普通|平凡|有趣|无聊)|[一个多某]人$|男人的|别人|主人|客人|病人|情人|仙人|机器人|外星人|火星人|稻草人|敌人|骑士`), kind: KindProfile, importance: 0.7},
	}
})

// hanCallMe reads 叫我小王就好; hanSummons is a call, or a role.
var (
	hanCallMe  = regexp.MustCompile(`^(?:你们?|大家)?(?:可以|以后|平时|就|直接|都)*叫我([\p{Han}·]{2,4}?|[A-Za-z]{2,20})(?:就好|就行|就可以|即可|吧)了?$`)
	hanSummons = regexp.MustCompile(`叫我(?:别|不|去|来|起|醒|怎么|什么|一|吃|走|回|早|干|做|女王|大王|陛下|大人|主人|老[公婆师板]|\p{Han}?(?:爸|妈|哥|姐|爷|奶))`)
)

// hanTurn is a change in the speaker's own life: the next clause is about them too. hanEnding
// is said without 我 as well.
var (
	hanTurn   = regexp.MustCompile(`^` + hanJust + `(?:大学|研究生)?(?:毕业|回国|升职|转正|转学|退伍|出院|创业|分手|离婚|搬完家)$`)
	hanEnding = regexp.MustCompile(`^` + hanJust + `(?:辞职|离职|退休|跳槽|失业|下岗|转行|换工作|搬家|搬走)(?:不干)?了[\s。．.!！~～啊呀啦]*$`)
	hanPeople = regexp.MustCompile(hanClose + `|[你您他她它]|老板|老师|邻居`)
)

// hanIntroduction reads 我是张伟 in a message that greets.
var (
	hanIntroduction = rule{form: regexp.MustCompile(`^是([小阿老]\p{Han}|[` + Surnames + wordSurnames + `]\p{Han}{1,2}|[A-Z][a-z]+)$`), not: regexp.MustCompile(`老[师人板家]|小[孩偷]`), explicit: true, kind: KindProfile, importance: 0.9, text: "叫$1"}
	hanGreeting     = regexp.MustCompile(`你好|您好|大家好|认识你|嗨`)
)

func (n Names) chinese(sentence string, m Line) []Statement {
	if m.Role == RoleCharacter {
		return n.chinesePledges(sentence)
	}
	sentence = hanLead.ReplaceAllString(sentence, "")
	if memo := hanMemo.FindStringSubmatch(sentence); memo != nil {
		if inner := n.chineseClauses(memo[1], m); len(inner) > 0 {
			return inner
		}
		what := hanEnd.ReplaceAllString(memo[1], "")
		if utf8.RuneCountInString(what) < 2 || questionWords.MatchString(what) || strings.Contains(what, "你自己") || !strings.ContainsAny(what, "我明后下周月日号") {
			return nil
		}
		return []Statement{{"用户要求记住：" + n.hanThird("用户", what), AboutUser, KindOther, 0.9}}
	}
	return n.chineseClauses(sentence, m)
}

// chineseClauses reads the clauses of a sentence. After one about 我 with a statement, or about
// a change in the user's life, the next may omit 我; after any other its subject may be
// something else (我看了一部电影，叫《活着》).
func (n Names) chineseClauses(sentence string, m Line) []Statement {
	var out []Statement
	self := false
	for _, clause := range hanCommas.Split(sentence, -1) {
		clause = hanLead.ReplaceAllString(strings.TrimSpace(clause), "")
		if name := hanCallMe.FindStringSubmatch(clause); name != nil && !hanSummons.MatchString(clause) {
			out = append(out, Statement{"用户叫" + name[1], AboutUser, KindProfile, 0.9})
			continue
		}
		rest, time, named := clause, "", false
		if at := hanSelf.FindStringSubmatch(clause); at != nil && !hanWe.MatchString(clause[len(at[1]):]) {
			time, rest, named = at[1], at[2], true
		}
		rest = hanEnd.ReplaceAllString(rest, "")
		if !named && !leavesSelfOut(clause, m.Text, self) || rest == "" || hanNoise.MatchString(rest) || questionWords.MatchString(rest) {
			self = false
			continue
		}
		f, ok := n.chineseClause(time+rest, named, hanGreeting.MatchString(m.Text))
		if self = (ok && f.Kind != KindRelation || hanTurn.MatchString(rest)) && !strings.ContainsAny(rest, "有养"); ok {
			out = append(out, f)
		}
	}
	return out
}

// leavesSelfOut reports whether a clause without 我 is about the user: self is whether the one
// before it was.
func leavesSelfOut(clause, message string, self bool) bool {
	ends := hanEnding.MatchString(clause) && !hanPeople.MatchString(message)
	return (self || ends) && !hanOther.MatchString(clause)
}

// chineseClause reads a clause after 我; named is whether 我 is there.
func (n Names) chineseClause(clause string, named, greets bool) (Statement, bool) {
	if named && hanLove.MatchString(clause) {
		return Statement{"用户" + n.hanThird("用户", clause), AboutRelationship, KindRelation, 0.8}, true
	}
	text, r, ok := firstRule(hanRules(), clause)
	if !ok && greets {
		r = hanIntroduction
		text, ok = r.read(clause)
	}
	if !ok || r.explicit && !named {
		return Statement{}, false
	}
	return Statement{"用户" + n.hanThird("用户", text), AboutUser, r.kind, r.importance}, true
}

var hanCommas = regexp.MustCompile(`[,，;；]\s*`)

func (n Names) chinesePledges(sentence string) []Statement {
	var out []Statement
	for _, clause := range hanCommas.Split(sentence, -1) {
		at := hanSelf.FindStringSubmatch(hanLead.ReplaceAllString(strings.TrimSpace(clause), ""))
		if at == nil {
			continue
		}
		rest := hanEnd.ReplaceAllString(at[2], "")
		pledge := hanPledge.FindStringSubmatch(rest)
		if pledge == nil || hanEmpty.MatchString(pledge[1]) || questionWords.MatchString(rest) || !hanVow.MatchString(at[1]+rest) || hanIdle.MatchString(rest) {
			continue
		}
		who := n.character("角色")
		out = append(out, Statement{who + n.hanThird(who, at[1]+rest), AboutCharacter, KindPromise, 0.6})
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
