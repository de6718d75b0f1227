package lang

import (
	"slices"
	"strings"
	"sync"

	"nodest/index"
)

// People ask in other words than they used: "What computer do I use?" after "my old ThinkPad
// died". An embedding model knows that the two belong together. Without one, this list of
// everyday words helps with questions about the user.

type relatedWords struct {
	asked *pattern // in a folded question
	terms []string // of lines that may answer it
}

// How much a related word counts, and its evidence.
const (
	relatedWeight   = 0.5
	relatedEvidence = 0.6
)

func synonyms(asked, told string) relatedWords {
	r := relatedWords{asked: patternOf(asked)}
	for _, t := range index.Terms(told) {
		if !slices.Contains(r.terms, t) {
			r.terms = append(r.terms, t)
		}
	}
	return r
}

// thesaurus is ordered by subject: people, work, things, body, free time.
var thesaurus = sync.OnceValue(func() []relatedWords {
	return []relatedWords{
		synonyms(`\b(?:mother|mum|mom|mama)\b`, "mother mum mom mama"),
		synonyms(`\b(?:father|dad|daddy|papa)\b`, "father dad daddy papa"),
		synonyms(`\b(?:grandmother|grandma|gran|granny|nan|nana)\b`, "grandmother grandma gran granny nan nana"),
		synonyms(`\b(?:grandfather|grandpa|granddad|grandad)\b`, "grandfather grandpa granddad grandad"),
		synonyms(`\b(?:child|children|kids?|sons?|boys?|daughters?|girls?)\b`, "child children kid son boy daughter girl baby"),
		synonyms(`\b(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|dating|seeing)\b`, "wife husband partner girlfriend boyfriend married engaged dating broke fiance"),
		synonyms(`\b(?:room-?mate|flatmate|housemate|live with)\b`, "roommate flatmate housemate"),
		synonyms(`\b(?:surname|last name|family name)\b`, "surname married maiden divorce ms mrs"),
		synonyms(`\bnicknames?\b|\bcall me\b`, "nickname call called"),

		synonyms(`\b(?:job|work|profession|occupation|career|for a living)\b`, "job work hired promoted resigned quit career trained receptionist florist barista nurse teacher doctor lawyer engineer developer programmer designer waiter waitress chef cook baker driver accountant manager mechanic electrician plumber librarian journalist photographer translator hairdresser cashier clerk assistant analyst pharmacist vet dentist carpenter gardener paramedic firefighter shop"),
		synonyms(`\b(?:boss|manager|supervisor)\b`, "boss manager supervisor"),
		synonyms(`\b(?:salary|earn|wages?|income|get paid|make a (?:month|year))\b`, "salary earn wage income paid raise payslip offer"),
		synonyms(`\b(?:uni|university|college|major|degree|studying|study)\b`, "uni university college major degree study course faculty dissertation"),
		synonyms(`\b(?:deadline|due|hand (?:it |that )?in)\b`, "deadline due submit hand extension thesis essay"),
		synonyms(`\bowe|\bpay (?:\w+ )?back\b|\b(?:debt|loan)\b`, "owe debt loan lend borrow paid"),

		synonyms(`\b(?:live|home|house|flat|apartment|city|town|address)\b`, "live home house flat apartment studio rent moved landlord keys"),
		synonyms(`\b(?:phone|mobile|cell)\b`, "phone mobile iphone android pixel samsung galaxy huawei xiaomi oneplus nokia motorola"),
		synonyms(`\b(?:computer|laptop|pc)\b`, "computer laptop pc mac macbook thinkpad desktop dell lenovo asus chromebook"),
		synonyms(`\b(?:car|drive|vehicle)\b`, "car drive driving toyota honda ford bmw audi volkswagen golf tesla skoda saab volvo fiat renault peugeot mazda nissan kia hyundai jeep van"),
		synonyms(`\b(?:internet|wi-?fi|router|broadband)\b`, "internet wifi router broadband"),
		synonyms(`\b(?:password|passcode|pin|code)\b`, "password passcode pin code"),
		synonyms(`\b(?:streaming|subscriptions?|subscribed)\b`, "netflix hulu disney spotify prime hbo subscription subscribed streaming"),
		synonyms(`\b(?:plane|flight|fly|airport)\b`, "plane flight fly airline airport rebooked"),
		synonyms(`\b(?:holiday|vacation|trip|travel)\b`, "holiday vacation trip travel booked"),
		synonyms(`\b(?:shoes?|boots?|trainers|sneakers)\b`, "shoe boot size feet wear"),

		synonyms(`\b(?:weigh|weight)\b`, "weigh weight kilo kg pound lbs stone scale"),
		synonyms(`\b(?:tall|height)\b`, "tall height cm inch feet foot metre"),
		synonyms(`\b(?:medicine|medication|treatment|meds|pills)\b`, "medicine medication treatment meds pill tablet dose injection infusion drops inhaler therapy doc doctor"),
		synonyms(`\b(?:ill|illness|wrong with|condition|injury|injured|health)\b`, "diagnosed injured injury tore torn broke sprained fracture surgery asthma diabetes migraine anaemia scan doctor"),
		synonyms(`\ballerg(?:y|ic)\b|\b(?:can't|not|dangerous).{0,20}\b(?:eat|food|for me)\b|\bfood.{0,20}dangerous\b`, "allergy allergic intolerant nut peanut walnut shellfish sesame dairy gluten lactose throat rash"),
		synonyms(`\b(?:smoke|smoking|cigarettes?)\b`, "smoke smoking cigarette vape nicotine"),
		synonyms(`\b(?:exercise|sports?|work ?out|workout|gym|training|fit)\b`, "exercise sport workout gym run running yoga pilates spin swim climbing bouldering cycling tennis football boxing weights"),
		synonyms(`\brac(?:e|ing)\b`, "race marathon triathlon half"),

		synonyms(`\b(?:pets?|dog|puppy|breed)\b`, "pet dog puppy beagle labrador poodle terrier greyhound collie spaniel husky corgi dachshund pug retriever"),
		synonyms(`\b(?:pets?|cat|kitten)\b`, "pet cat kitten tabby"),
		synonyms(`\b(?:films?|movies?)\b`, "film movie cinema watched rewatched"),
		synonyms(`\b(?:books?|novel|reading)\b`, "book novel read reading chapter"),
		synonyms(`\b(?:music|bands?|songs?|singer|album|listen(?:ing)?|on repeat)\b`, "music band song singer album listen playlist repeat concert"),
		synonyms(`\binstruments?\b`, "instrument piano guitar violin cello flute drums trumpet oboe clarinet saxophone ukulele harp lessons"),
		synonyms(`\blanguages?\b`, "language english spanish french german italian portuguese dutch swedish polish russian chinese mandarin japanese korean arabic turkish greek hindi duolingo"),
		synonyms(`\b(?:teams?|support|club)\b`, "team fan supporter season club match"),
		synonyms(`\b(?:sing|choir|voice)\b`, "sing choir alto soprano tenor baritone"),
		synonyms(`\b(?:hobby|hobbies|free time)\b`, "hobby knitting painting pottery sewing climbing gardening photography"),
		synonyms(`\bdrinks?\b|\b(?:order|make|pour) (?:\w+ )?(?:for )?me\b`, "drink tea coffee latte espresso beer wine gin vodka whisky whiskey rum cider juice soda cola lemonade cocktail matcha sugar milk"),
		synonyms(`\b(?:food|dish|meal|eat|lunch|dinner|breakfast)\b`, "food dish meal eat lunch dinner breakfast cook"),
		synonyms(`\b(?:flowers?|bouquet)\b`, "flower bouquet rose tulip peony peonies lily sunflower orchid daisy"),
		synonyms(`\bcolou?rs?\b`, "colour color red blue green yellow purple orange pink black white teal turquoise"),

		synonyms(`妈|母亲`, "妈妈 我妈 老妈 母亲"), synonyms(`爸|父亲`, "爸爸 我爸 老爸 父亲"), synonyms(`奶奶|外婆|姥姥`, "奶奶 外婆 姥姥"), synonyms(`爷爷|外公|姥爷`, "爷爷 外公 姥爷"),
		synonyms(`孩子|宝宝|儿子|女儿|娃`, "孩子 宝宝 儿子 女儿 小名"), synonyms(`老公|丈夫`, "老公 丈夫"), synonyms(`老婆|妻子|太太`, "老婆 妻子 太太"),
		synonyms(`女朋友|男朋友|对象|约会|女友|男友`, "女朋友 男朋友 女友 男友 对象 分手 在一起 相亲"), synonyms(`室友|舍友|合租`, "室友 舍友 合租 搬走 搬来"),
		synonyms(`称呼|叫我|喊我`, "称呼 叫我 喊我"), synonyms(`(?:哪里|哪儿|什么地方)的?人|老家`, "老家 家乡 来自 南人 北人 东人 西人 州人 江人 海人 京人"),
		synonyms(`工作|职业|上班|干什么的|做什么的`, "工作 职业 上班 辞职 辞了 跳槽 入职 转行 实习 老师 医生 护士 程序员 会计 厨师 店长 设计师 司机 律师 记者 警察 销售 客服 咖啡师 美容师 快递员 公务员 工程师 当了"),
		synonyms(`工资|月薪|收入|赚|挣|拿到?多少钱`, "工资 月薪 收入 到手 涨薪 年薪 税后"), synonyms(`房租|租房|租金`, "房租 租金 房东 续租 涨租"),
		synonyms(`积蓄|存款|理财|投资`, "基金 股票 存款 理财 黄金 割肉 全换"), synonyms(`专业|念的|读的|学的`, "专业 转专业 大一 大二 大三 考研"),
		synonyms(`住|家在|城市|搬`, "搬到 搬去 搬家 搬完 租了 租房 小区 新家"), synonyms(`手机`, "手机 华为 小米 红米 荣耀 苹果 三星 iphone vivo oppo"),
		synonyms(`电脑|笔记本`, "电脑 笔记本 联想 戴尔 华硕 惠普 苹果 mac thinkpad"), synonyms(`开什么车|什么车|[辆的]车`, "开车 买车 换车 本田 丰田 大众 比亚迪 特斯拉 宝马 奥迪 奔驰 日产 福特 别克 吉利"),
		synonyms(`车位|停`, "车位 停车 地库"), synonyms(`[靴鞋]`, "鞋子 鞋码 穿的 码的"), synonyms(`包裹|快递`, "包裹 快递 驿站 丰巢"),
		synonyms(`通勤|去(?:公司|上班)|上班.{0,4}怎么`, "上班 通勤 地铁 公交 开车 单车 骑车 顺风车 走路 打车"),
		synonyms(`体重|多重|几斤|多少斤`, "体重 公斤 胖了 瘦了 今早 秤"), synonyms(`身高|多高`, "身高 厘米 公分"), synonyms(`血型`, "血型 型血 献血"),
		synonyms(`身体|生病|得了?什么病|治`, "住院 出院 手术 医院 吃药 大夫 医生 中药"), synonyms(`过敏|不能吃|忌口`, "过敏 忌口 不能 起疹"), synonyms(`失眠|睡不着`, "失眠 睡不着 安眠"),
		synonyms(`减肥|瘦身`, "减肥 节食 断食 生酮 碳水 瘦了"), synonyms(`运动|锻炼|健身`, "运动 锻炼 健身 跑步 游泳 瑜伽 骑行 羽毛球 篮球 爬山 健身房"), synonyms(`戒`, "戒了 戒掉 戒烟 戒酒 不抽"),
		synonyms(`狗|宠物|品种`, "小狗 狗狗 柯基 金毛 泰迪 哈士奇 拉布拉多 边牧 柴犬 比熊 犬"), synonyms(`猫|宠物`, "小猫 猫咪 橘猫 布偶 英短 美短 狸花"), synonyms(`鸟`, "鹦鹉 八哥 文鸟 画眉"),
		synonyms(`书|读`, "看书 小说 看完 在看 在读 在啃 作者"), synonyms(`电影|片`, "电影 影片 看过 上映"), synonyms(`歌|听什么|爱听|音乐`, "歌 歌手 乐队 循环 耳机 专辑 单曲"),
		synonyms(`语言|外语|学.{0,3}语`, "英语 日语 韩语 法语 德语 西语 西班牙 俄语 粤语 单词"), synonyms(`乐器`, "钢琴 吉他 小提琴 大提琴 长笛 古筝 架子鼓 小号 二胡 琵琶"),
		synonyms(`喝`, "喝 茶 咖啡 奶茶 可乐 啤酒 白酒 红酒 果汁 豆浆 拿铁 美式"), synonyms(`饺子|包子|馅`, "馅 饺子 包子 韭菜 白菜"), synonyms(`花`, "鲜花 玫瑰 百合 向日葵 康乃馨 绣球 郁金香 牡丹"),
		synonyms(`春节|过年`, "过年 春节 除夕 年夜饭 回家 车票"), synonyms(`阳台|种什么|种啥|盆栽`, "阳台 种了 盆 多肉 绿植 浇水"), synonyms(`团建|公司.{0,4}组织`, "团建 公司 组织"), synonyms(`颜色`, "颜色 红色 蓝色 绿色 黄色 紫色 橙色 粉色 黑色 白色"),
	}
})

// Relate adds words related to those of a question about the user.
func (q *Question) Relate(folded string) {
	if !q.Asks || !aboutUs.MatchString(folded) {
		return
	}
	known := map[string]bool{}
	for _, t := range q.Terms {
		known[t.Text] = true
	}
	for _, r := range thesaurus() {
		if !r.asked.MatchString(folded) {
			continue
		}
		q.Topics = append(q.Topics, r.terms)
		for _, t := range r.terms {
			if !known[t] && !strings.Contains(functionCharacters, t) {
				known[t] = true
				q.Terms = append(q.Terms, index.Term{Text: t, Weight: relatedWeight, Evidence: relatedEvidence * ProofOf(t), Extra: true})
			}
		}
	}
}
