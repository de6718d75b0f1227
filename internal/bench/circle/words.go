package circle

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/circle/rules"
)

// script is what the scripted model can say in a language: frames, and the words that fill
// them.
type script struct {
	openings map[rules.Kind]string // openings of posts
	comments string                // openings of comments
	middles  string
	ends     string
	words    map[string]string
	join     string // between two sentences
}

var blank = regexp.MustCompile(`\{(\w+)\}`)

// compose makes a text of one opening, some middles and, now and then, an end. Each
// character has frames and words that it prefers.
func (s *script) compose(rnd *rand.Rand, character string, kind rules.Kind) string {
	taste := rules.Seed(character)
	pick := func(list string) string {
		all := strings.Split(list, "|")
		n := rnd.IntN(len(all))
		if rnd.IntN(3) > 0 { // one of its favourites, which are half of the list
			n = int(taste%uint64(len(all))) + n/2
		}
		return all[n%len(all)]
	}
	frames, middles := []string{pick(s.comments)}, rnd.IntN(2)
	if opening := s.openings[kind]; opening != "" {
		frames, middles = []string{pick(opening)}, 1+rnd.IntN(3)
	}
	for range middles {
		frames = append(frames, pick(s.middles))
	}
	if middles == 0 || rnd.IntN(2) == 0 {
		frames = append(frames, pick(s.ends))
	}
	for i, f := range frames {
		f = blank.ReplaceAllStringFunc(f, func(b string) string { return pick(s.words[b[1:len(b)-1]]) })
		first, size := utf8.DecodeRuneInString(f)
		frames[i] = string(unicode.ToUpper(first)) + f[size:]
	}
	return strings.Join(frames, s.join)
}

// twist changes two words of a text, as models do that say the same once more.
func twist(rnd *rand.Rand, text string) string {
	unit, instead := " ", "again"
	if chinese(text) {
		unit, instead = "", "又"
	}
	words := strings.Split(text, unit)
	for range 2 {
		words[rnd.IntN(len(words))] = instead
	}
	return strings.Join(words, unit)
}

// chinese tells whether a text begins with a Chinese word.
func chinese(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return unicode.Is(unicode.Han, first)
}

var scriptEN = &script{
	join: " ",
	openings: map[rules.Kind]string{
		"moment": "{time} {someone} {did} right beside me at {place}.|I dropped {thing} at {place}, and {someone} {did}.|Just now, {place}: {thing} on the ground and nobody near it.|" +
			"The door of {place} stood open {time}, so I went in.|Five minutes ago I found {thing} in my coat.",
		"opinion": "Say what you like, {thing} belongs in {place}.|{place} is overrated, and I will not take it back.|People who hurry past {place} miss the best of the day.|" +
			"I no longer believe that {thing} can be repaired.|Better {thing} of one's own than the finest one on loan.",
		"question": "Does anybody know where one can find {thing} around here?|What would you do if {someone} {did}?|Who was at {place} {time} and can tell me what happened?|" +
			"How do you keep {thing} from falling apart?|Is it only me, or has {place} become {mood} lately?",
		"recollection": "As a child I once hid {thing} in {place}.|The smell of {place} took me back twenty years {time}.|Years ago {someone} {did}, and I have never told it.|" +
			"I remembered {time} how my grandmother guarded {thing}.|There was a winter when {place} was closed for weeks.",
		"intention": "Next week I want to take {thing} to {place}.|I have decided to learn how {thing} is made.|Before the month ends I will walk to {place} and back.|" +
			"If the weather holds, I open {place} to visitors.|My plan for tomorrow: up early, then {place}.",
		"discovery": "Behind {place} there is a path that no map shows.|I read that {thing} lasts a hundred years if it is kept dry.|{time} I found out who {did}.|" +
			"Under the paint of {place} there is an older colour.|It turns out that {thing} can be played like a drum.",
		"grumble": "Whoever took {thing} from {place}: I am not angry, only {mood}.|They dig up the road by {place} for the third time.|Why must {thing} always break {time}?|" +
			"{someone} {did} again, and again it was me who cleaned up.|I waited an hour at {place} for nothing.",
		"gratitude": "Thank you to {someone}, who {did}.|I am glad of small things {time}: {thing}, for one.|{place} was empty and all mine {time}.|" +
			"Somebody left {thing} on my doorstep.|For once everything at {place} went as it should.",
		"work": "Half of {thing} is done, and the other half resists.|Third attempt with {thing}; the glue does not hold.|All day at {place}, and my hands show it.|" +
			"I took {thing} apart and have one screw too many.|Sorting what {someone} left at {place}: slow, but it moves.",
		"place": "From here I see {place} and a strip of grey water.|It smells of tar and oranges at {place} {time}.|I am sitting in {place}; somebody whistles next door.|" +
			"Nothing but rain on the roof of {place}.|{place} has a light of its own {time}.",
		"tip": "If you feel {mood}, try {place} {time}.|Take {thing}, a little salt, and patience: better than it sounds.|There is a book about {thing} in {place}; read the second chapter.|" +
			"Ask {someone} for the story of {thing}.|Walk to {place} without a watch once.",
		"thought": "Perhaps {thing} outlives us only to tease us.|I wonder who will remember {place} when we do not.|One can be {mood} and still sing.|" +
			"What if {someone} was right all along?|A day with {thing} in it cannot be wasted.",
		rules.Digest: "While you were away, {someone} {did} and the rest of us went to {place}.|A quiet week: {thing}, {place}, and a lot of rain.",
	},
	comments: "That reminds me of {thing} I once saw at {place}.|{place} does that to people.|I would have gone to {place} instead.|Did you look behind {thing}?|You make me {mood}, in a good way.|" +
		"Not everybody would have noticed, I think.|I had the same with {thing} {time}.|Careful: {someone} {did} after just such a day.|Come by {place} and tell me the rest.|" +
		"And {thing}, what became of it?|I read this twice, once {time}.|My money is on {thing}.|I know {someone} who would disagree.|It sounds like {place} before they painted it.|" +
		"You should write that down before {someone} does.|Could it be that {thing} was in the wrong hands?|I will bring {thing} and you bring the tea.|Half of it I believe, the half with {place}.|" +
		"Oh, {place}! I have not been there for months.|Now I am {mood}, thank you very much.|Then {thing} was not for nothing.|Why not leave {thing} where it is?",
	middles: "It made me {mood} for the rest of the day.|{someone} only laughed about it.|Then {someone} {did}, as if that explained it.|I carried {thing} home all the same.|" +
		"{time} it looks different.|One corner of it is missing, the corner with the name.|Nobody at {place} knew more.|I drew it on the back of a bill.|The trick is to start with {thing}.|" +
		"My sister swears by {thing}, I do not.|There was {thing}, and under it another one.|By evening I was {mood} and hungry.|The bus to {place} never came.|I owe {someone} an answer.|" +
		"It cost less than {thing} and will last longer.|Two streets on, everything was quiet.|I even asked at {place}.|Somewhere a radio gave the tides.|It was warm for once, and the windows at {place} were open.|" +
		"I counted to sixty before I moved.|The colour was something between rust and honey.|For {someone} it is only {thing}, for me it is more.|I kept thinking of {place}.|We shared the last of the soup.",
	ends: "Who else has noticed?|I may tell more tomorrow.|So it goes.|That is enough for one day.|Nobody asked, I know.|Ask me again {time}.|I laughed out loud.|The rest can wait.|" +
		"{place} can keep it.|Make of that what you will.|I am not even {mood} about it.|Tea first, then {thing}.|Bring a lamp.|No regrets so far.|I shall blame {someone}.|Well, almost.",
	words: map[string]string{
		"place": "the old customs house|the harbour steps|the fish market|the chapel yard|the reading room|the bakery on the corner|the signal tower|the upper bridge|the tram depot|the allotments|" +
			"the boatyard|the cemetery wall|the swimming hall|the school attic|the ferry landing|the hardware shop|the lock gates|the bandstand|the cold store|the orchard behind the mill|" +
			"the lamp room|the post office|the quarry pond|the laundry|the museum cellar|the weather mast|the dentist's stairs|the night kiosk",
		"thing": "a brass compass|the green ledger|a jar of nails|my second-best umbrella|a box of slides|the cracked bell|a sack of chestnuts|the ship in the bottle|an unpaid ticket|a coil of tarred rope|" +
			"the wooden duck|a pocket almanac|the blue enamel pot|a bundle of letters|three piano keys|the spare oar|a tin of varnish|the lost glove|a loaf with a hole in it|the tuning fork|" +
			"an owl feather|the broken barometer|a pickled lemon|the neighbour's ladder|a bag of moss|the clock without hands|a chess knight|the paper lantern|a rusty key|the tomato seedlings",
		"someone": "the postman|my aunt from the north|a sailor with a parrot|the new doctor|the woman from the bakery|an old pupil|the twins next door|the night watchman|a man in a yellow coat|the organist|" +
			"my landlady|the boy with the kite|a retired judge|the ferryman's daughter|the chimney sweep|somebody I had forgotten|the librarian|a tourist from far away|the butcher|the mayor's driver",
		"did": "missed the last ferry|painted a door at night|sang the wrong anthem|swam to the buoy and back|gave away a bicycle|slept through the storm|wrote to the newspaper|repaired the fountain|lost a bet about the tide|" +
			"baked for the whole street|fell into the canal|bought a donkey|whistled at the bishop|left without a word|caught an eel by hand|returned a book after nine years|danced on the quay|asked for the bill twice",
		"time": "this morning|last night|before sunrise|after the rain|on my way home|during lunch|when the bells rang|at low tide|on Sunday|between two trams|in the first frost|towards evening|at noon|while the kettle boiled",
		"mood": "restless|oddly cheerful|homesick|stubborn|wide awake|a little ashamed|lighter than before|suspicious|tender|tired in a good way|curious|grumpy|brave for an hour|speechless|hopeful|quietly proud",
	},
}

var scriptZH = &script{
	openings: map[rules.Kind]string{
		"moment":       "{time}在{place}，{someone}忽然{did}。|刚才我把{thing}落在了{place}。|走到{place}门口，正好碰见{someone}。|{time}捡到{thing}，等了半天没人来认。",
		"opinion":      "我一直觉得，{thing}就该放在{place}。|谁说{place}没意思，我头一个不答应。|{thing}越旧越好，新的反而不耐看。|与其买{thing}，不如去{place}坐一坐。",
		"question":     "有人知道哪里还能找到{thing}吗？|要是{someone}{did}，你们会怎么办？|{place}{time}到底开不开门？|怎样才能让{thing}不受潮？",
		"recollection": "小时候，外婆总把{thing}藏在{place}。|{time}忽然想起那年{someone}{did}的事。|{place}的味道，让我一下子回到了十岁。|很多年前，我用{thing}换过一张船票。",
		"intention":    "下个月我想带着{thing}去{place}。|打算{time}学做{thing}，先说出来免得反悔。|天气好的话，明天一早去{place}。|等忙完这阵，要把{place}彻底收拾一遍。",
		"discovery":    "原来{place}后面还有一条小路。|今天才晓得，{thing}放上十年会变颜色。|翻书翻到一句话，说的正是{thing}。|{time}发现{place}的墙里砌着{thing}。",
		"grumble":      "{place}的路又挖开了，这个月第三回。|谁把我的{thing}拿走了，请悄悄还回来。|{someone}又{did}，收拾的还是我。|为什么{thing}总在{time}坏掉？",
		"gratitude":    "谢谢{someone}，{time}替我看了半天摊子。|门口多了{thing}，不知道是谁留下的。|{time}的{place}没有别人，真好。|今天样样顺手，连{thing}都听话。",
		"work":         "{thing}修到一半，另一半不肯配合。|在{place}忙了一整天，手都是酸的。|拆开{thing}，装回去多出一颗钉子。|第三遍试{thing}，火候还是差一点。",
		"place":        "此刻我坐在{place}，听见隔壁有人调琴。|{place}的雨声和别处不一样。|从{place}望出去，江面灰得像旧绸子。|{time}的{place}，到处是桂花味。",
		"tip":          "心里{mood}的时候，不妨去{place}走走。|推荐大家试试{thing}，怕苦的别来。|想听故事就去问{someone}，记得带上{thing}。|{time}去{place}，人最少。",
		"thought":      "也许{thing}活得比我们都久。|一个人{mood}，也可以好好吃饭。|如果没有{place}，这座城还剩什么？|今天一直在想，{someone}当初为什么{did}。",
		rules.Digest:   "你不在的这几天，{someone}{did}，我们都去了{place}。|这几天很安静，只有{thing}和下不完的雨。",
	},
	comments: "这让我想起{place}的{thing}。|换了我，大概会直接去{place}。|你看过{thing}的背面没有？|看得我{mood}。|{someone}听了肯定不服气。|我{time}也遇到过一样的事。|改天来{place}，慢慢讲给我听。|" +
		"那{thing}后来怎么样了？|不是谁都能注意到这些。|我带{thing}，你备茶。|小心，{someone}就是这样{did}的。|{place}就是有这种本事。|一半信，一半不信，信的是{place}那一半。|这话该记下来。|" +
		"好久没去{place}了。|说到{thing}，我可不困了。|你这么一说，我也{mood}起来。|何不把{thing}留在原处？",
	middles: "{someone}只是笑，不说话。|我还是把{thing}抱回了家。|缺了一个角，正好是写名字的那个角。|问遍了{place}，没人知道。|到傍晚，人有些{mood}。|窗外有人在收衣服。|价钱不贵，比{thing}还便宜。|" +
		"我在账本背面画了下来。|走过两条街，忽然就安静了。|我妹妹偏爱{thing}，我不爱。|那颜色介于铁锈和蜂蜜之间。|等到{time}再看，又是另一个样子。|汤还剩最后一碗，大家分了。|往{place}的车一直没来。|" +
		"诀窍是先从{thing}下手。|我数到六十才敢动。|对{someone}来说那只是{thing}。",
	ends: "你们说呢？|明天再接着讲。|就这样吧。|今天够了。|没人问，我知道。|先喝茶。|我笑出了声。|剩下的以后再说。|留给{place}吧。|反正不后悔。|记得带灯。|都怪{someone}。",
	words: map[string]string{
		"place":   "渡口|老戏台|茶馆后院|城隍庙|米市街|气象站|旧书摊|石桥头|竹器铺|望江楼|花市|渔港|小学操场|染坊|山脚的碑亭|夜市尽头|药铺二楼|船厂|面馆门前|邮局",
		"thing":   "一只铜铃|半本账簿|一罐桂花蜜|断了弦的月琴|旧船票|一把油纸伞|蓝印花布|缺口的砚台|两颗核桃|纸糊的灯笼|一封没寄的信|竹笛|老座钟|一包陈皮|木头鸭子|干枯的标本|铁皮饼干盒|毛边的地图|腌柠檬|一枚棋子",
		"someone": "卖糖葫芦的老伯|隔壁的双胞胎|新来的大夫|摆渡人|我姑妈|一个穿黄雨衣的人|图书馆的阿姨|退休的法官|磨刀师傅|放风筝的小孩|房东太太|琴行老板|值夜的门卫|远方来的游客",
		"did":     "错过了末班船|半夜刷了一扇门|唱错了词|游到浮标又游回来|把自行车送了人|睡过了整场暴雨|修好了喷泉|打赌输了|给整条街蒸了馒头|掉进了河里|买了一头驴|一声不响地走了|还了九年前借的书|在码头跳起舞来",
		"time":    "今早|昨夜|天没亮|雨停以后|回家路上|午饭时|钟响的时候|退潮时|周日|两班车之间|初霜那天|傍晚|正午|水开之前",
		"mood":    "坐立不安|莫名高兴|想家|有点倔|格外清醒|略微惭愧|轻松了些|疑心重重|心软|累得踏实|好奇|闷闷不乐|说不出话|满怀希望",
	},
}
