package offline

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// circleWords are the phrases of one language, in the form that spin.go describes.
type circleWords struct {
	space    string // between sentences
	comment  []string
	answer   []string // to a comment
	response []string // to a comment on an own post
	post     []string // begins a post
	ask      []string // ends a post with a question to everybody
	own      []string // about oneself
	question []string // to whom one answers
	thoughts []string
	pools    map[string][]string

	likes, between *regexp.Regexp // what a card says about interests; what separates them
	pronouns       []string       // what is about somebody in particular is no interest
}

// The length of an interest, in code points.
const minInterest, maxInterest = 2, 32

// interestsOf returns what a card says its character likes, without what names others.
func (w *circleWords) interestsOf(card string, names []string) []string {
	var list []string
	for _, found := range w.likes.FindAllStringSubmatch(quotedParts.ReplaceAllString(card, " "), 40) {
		for _, part := range w.between.Split(found[1], -1) {
			part = strings.TrimSpace(part)
			n := utf8.RuneCountInString(part)
			named := func(name string) bool { return name != "" && strings.Contains(part, name) }
			if n < minInterest || n > maxInterest || len(strings.Fields(part)) > 4 || slices.ContainsFunc(names, named) ||
				slices.Contains(list, part) || strings.ContainsAny(part, "{}<>[]\"|") || w.personal(part) {
				continue
			}
			list = append(list, part)
		}
	}
	return list
}

// personal says that a text is about somebody in particular.
func (w *circleWords) personal(text string) bool {
	for _, p := range w.pronouns {
		if w.space == "" && strings.Contains(text, p) || slices.Contains(strings.Fields(strings.ToLower(text)), p) {
			return true
		}
	}
	return w.space != "" && strings.IndexFunc(text, unicode.IsUpper) >= 0
}

// pool is a list of alternatives in one string.
func pool(s string) []string { return strings.Split(s, "|") }

var circleBook = map[language]*circleWords{inEnglish: circleEnglish, inChinese: circleChinese}

var circleEnglish = &circleWords{
	space:    " ",
	likes:    regexp.MustCompile(`(?i)\b(?:loves?|likes|enjoys?|adores?|collects?|studies|fond of|passion(?:ate)? (?:for|about)|interested in|fascinated by|obsessed with|hobb(?:y|ies)(?: are| is)?|interests?(?: are)?)\s*[:(]?\s+([^.;:!?\n()]{3,120})`),
	between:  regexp.MustCompile(`,|\+|/|&|\band\b|\bor\b|\bto\b|\bbut\b|\bwhen\b|\bwith\b`),
	pronouns: strings.Fields("he she they it you i me him her them his their your my who that this is are was does"),
	comment: []string{
		"<q>, {I know that feeling|that sounds familiar|I like that}, <n>. {How did it go on?|What came then?|I want to hear the rest.}",
		"I {smiled|laughed|stopped} at <q>, <n>{, and then I read it again|, even <place>|}.",
		"<n>, {what made you think of|how did you come to|since when do you say} <q>?",
		"{that|this} {part|bit|line} about <q> {stays with me|made my evening|I will remember <when>}.",
		"{I would have called it something else|I had no word for it}, but <q> {works|is better|has more truth in it}{, <n>|}.",
		"{my vote goes to|count me in for} <q>, <n>{, <when> if possible|}.",
		"<q>: {I read that twice|I had to read that again|that made me stop} {<when>|with <thing> in my hand|while <doing>}.",
		"{funny|strange|odd}, <q> {takes me back to a moment|puts me in mind of something} <place>, <when>.",
		"<q> {goes well with|would sit nicely beside|belongs right next to} <thing>, <n>.",
		"{if|whenever} I {hear|read} <q>, I {remember|notice} {<thing>|<sense>} {again|somewhere} <place>.",
		"I was {just|still} <doing>, and now <q> {will not leave me alone|goes round in my head|has stopped me}.",
		"there is <sense> in <q>, {don't you think|or am I imagining it|at least for my nose}?",
		"{for me|with me|in my case} <q> {would have ended|usually ends|began} <place>, {with|over} <thing>.",
		"<q> {could be|might as well be} {a line about|the title of a story about|a toast to} {<i>|<thing>}.",
		"as somebody with a {soft spot|weakness|good ear} for <i>, I {nod at|smile at|stumble over} <q>.",
		"{nobody|no one} warned me that <q> would {catch|find|meet} me <place>.",
		"I would {trade|give} <thing> for {a little more of|another helping of} <q>.",
		"{say|tell me} more about <q>, <n>; {the kettle is on|I have until noon|I brought <thing>}.",
		"<when>, <place>: that is where <q> {makes sense|rings true|would fit}{| to me}.",
		"half of me {laughs at|shrugs at|believes} <q>, the other half is {already|still} <doing>.",
		"somewhere between <thing> and <thing> I {came across|read} <q>{, and here I am|, and I stopped}.",
		"{put|write|hang} <q> {above|beside|on} <thing> and {I will visit|I bring biscuits|I will salute it}.",
		"<n>, {after|before} <doing> I {always|never|sometimes} think of {things like |}<q>.",
		"{is it <sense>, or|is it me, or} is it <q>? {Either way, I stayed|Anyhow, I smiled|I am not sure}.",
		"my {first|second} thought at <q> was <thing>, my {last|next} one <sense>.",
		"{<doing>|<when>} I {found|find} {myself|my thoughts} {at|with} <q>{| again}.",
		"<q>. {Now I want|Now I miss|That calls for} {<i>|<thing>|<sense>}.",
		"{today|tonight} of all {days|times}: <q>. {And me <place>|And me just <doing>|And I only have <thing>}.",
	},
	answer: []string{
		"<q>? {Tell me how|I had not thought of that|You may be right}, <n>.",
		"{I agree about|I am not so sure about|I will come back to} <q>, <n>{, <when>|}.",
		"{yes|oh yes|perhaps}, <q>. {And then|What else|Who knows}?",
		"{fair|true|point taken}, <n>, <q> {is hard to beat|has something|sounds right} {<when>|<place>}.",
		"<q>, <n>? {I thought of <thing> first|I would not swear to it <when>|With <thing>, perhaps}.",
		"I {like|remember|keep} <q>, <n>; it {goes with <thing>|needs <sense>|sounds best <place>}.",
		"{ha|well|hm}, <q>: {that is me <when>|that is me <doing>|I should write it on <thing>}.",
		"{not|never} <when>, <n>. But <q> {might work|would do|I could try} <place>.",
		"you {write|say} <q>, and I notice {<sense>|<thing>} {again|at once|<place>}.",
		"{let me|I will} {sleep on|think about} <q> while <doing>{, <n>|}.",
		"{perhaps|maybe} <q>, {perhaps|maybe} just <thing> <place>.",
		"{between us|honestly}, <n>: <q> {beats|is better than|comes right after} <thing>.",
		"{agreed|I disagree}, {a little|mostly}: <q> only {works|counts} {<when>|<place>}.",
		"<n>, {that|your} <q> {made me laugh|made me look up} {<when>|while <doing>}.",
		"{with|without} <thing>, <q> {is half the fun|is another story}, {I learned|I found out} <place>.",
	},
	response: []string{
		"{thank you|thanks}, <n>: <q> {made my day|is just it|was worth <doing> for}.",
		"<n>, <q> is {kinder than|closer than|funnier than} what I {had in mind|wrote down} <when>.",
		"{good question|I wondered, too}, <n>. {Think of|Imagine} <thing> <place>, and <q>.",
		"<q>, yes. {I wrote it|It came to me} <when>, {while <doing>|<place>}.",
		"{come by|stop by} <when>, <n>, and we {will talk|can talk} about <q> over <thing>.",
		"{not quite|nearly}, <n>: less <q>, more {<sense>|<thing>} {<place>|<when>}.",
		"your <q> {goes straight|has gone} into my notebook, {next to|right under} <thing>, <n>.",
		"{exactly|that's it}, <n>, <q>. {I only had <thing> at hand|I was busy <doing>}.",
		"<n>! {I hoped for|I did not expect} <q>, {not|and certainly not} <when>.",
		"{since you say|you say} <q>: {there was|I forgot to mention} {<sense>|<thing>}, too.",
	},
	post: []string{
		"{today I want to tell you about|today was about|I have been thinking about} <q>{, <when> of all times|, <place>|}.",
		"{one thing|something} {first|for today}: <q>{, and I mean it|. It cheers me up|, now more than ever}.",
		"{on today's list|a note to myself|what I meant to tell}: <q>.",
		"<clock>, and <q> {is all I have|is still on my mind|is where I begin}.",
		"<when> I {thought of|came back to|wrote down} <q>, <place>.",
		"<q>: {that was|that is} {the plan|the whole day|my excuse} {for <when>|today|until I found <thing>}.",
		"{I promised myself|I told myself} <q>. {Instead I ended up|I found <thing> and was} <doing>.",
		"{who would have thought|it turns out}: <q> {begins|ends} with <thing>.",
		"<doing>, <place>, {my head full of|thinking of} <q>.",
		"{three|two|five} {minutes|attempts|cups} into <q>, {and there is <sense>|and I have lost <thing>}.",
		"{a small report|news} from {here|my corner}: <q>, <sense>, <thing>.",
		"{if today had|if this day had} a title, it would be <q>{, or <thing>|, with <sense>}.",
		"<clock>. {I should be|Others sleep, I am|Here I am,} <doing>{, with <thing>|, with <i> in mind}.",
		"{nothing|hardly anything} beats <i> <when>{, <place>|, except <thing>}.",
		"<i> again, <when>, <place>.",
		"{this morning|today|just now} <place>: <thing>, <sense> and {a bit of time|no hurry}.",
	},
	ask: []string{
		"{who|does anyone} {else |}{know|knows} {what to do with|a use for|the story of} <thing>?",
		"{where|when} do you {go|sit} for {<sense>|a bit of quiet} {<when>|these days}?",
		"{what would you|what do you} {keep|put} <place>: <thing> or <thing>?",
		"{has anyone|have you} {ever |}tried <doing> <when>?",
		"{tell me your|I collect answers: what is your} {remedy|word|song} for <sense>?",
		"{<i> or <thing>|<thing> or <thing>}: {which one|what would you take}?",
		"{am I the only one|is it just me} <doing> <when>?",
		"{bring|send} <thing>, {please|if you can}.",
		"{come and see|I will be} <place> <when>.",
	},
	own: []string{
		"{I once|last year I} {lost|found|mended|buried|painted|swapped} <thing> <place>.",
		"my {own |}{remedy|version|habit} is <doing> <when>.",
		"{these days|lately} <i> {keeps me busy|keeps me awake}, {mostly|usually} <place>.",
		"{here it smells of|I can make out} <sense>{ just now|, <when>|, even <place>}.",
		"{I have|I keep} <thing> <place>, {in case anyone asks|just for that|and I know why}.",
		"<when> I {tend to be|was} <doing>, {with|beside} <thing>.",
		"I {trust|follow} <i> more than <thing>{, <when>|}.",
		"{my|the} {evening|morning|week} {tasted|sounded} of <sense> and <thing>.",
		"I {put|left} <thing> <place> and {forgot|remembered} it <when>.",
		"<doing> {helps|does not help}, {I checked|as I know} <when>.",
		"{give me|all I need is} <thing>, <sense> and {<i>|half an hour} <place>.",
		"{next to|under} <thing> {there is always|I keep} {a bit of |}<i>.",
		"{no|not one} day {passes|ends} without <doing>{, <when> at the latest|, least of all <place>}.",
		"I like <i> best <when>{, <place>|}.",
	},
	question: []string{
		"{do|would} you {ever |sometimes |}think of <thing> {then|there|as well}?",
		"what does {that|it} {taste|sound|look|feel} like <when>?",
		"did you have <thing> {with you|at hand|in mind}{, too|}?",
		"{and|what} if it {happened|were} <place>{, with <thing>|}?",
		"{which|what} would you {pick|save}: <thing> or <thing>?",
		"{have you tried|did you try} it <when>?",
		"{how long|since when}: <when>, or {longer|even before}?",
		"{could|should} I {bring|add} <thing>?",
		"or were you {only|just} <doing>?",
		"{does|would} <doing> {count|help}{, too|}?",
	},
	thoughts: []string{
		"{I should not stay up for this|that one stays with me|I wonder what is behind it|I could say more, but not here}. <thing> {comes to mind|again}.",
		"{I am <doing> and|while <doing> I} {smile|frown|hesitate}.",
		"{<when>, maybe|better not today|I will come back to that}; first <thing>.",
	},
	pools: map[string][]string{
		"thing": pool("a chipped cup|the last tram ticket|a borrowed umbrella|three burnt candles|an old radio|a jar of buttons|the spare key|wet boots|a stack of postcards|a broken clock|a paper boat|the cracked teapot|a bag of chestnuts|an unfinished letter|a wool blanket|two left gloves|a tin of nails|a squeaky bicycle|a crooked shelf|a map without a legend|a blue notebook|a handful of gravel|a cold sandwich|a bunch of mint|an empty birdcage|a length of rope|a lamp with no bulb|a pocketful of crumbs|a loose floorboard|a rusty whistle|orange peel|a wooden spoon|a torn curtain|a box of chalk|a deck of cards|a snow globe|a slice of pie|a ball of string|the good scissors|a leaking bucket|a striped scarf|half a pencil|a kite without a tail|dried lavender|a stubborn zipper|a tall glass of water|an expired passport|a cork|seven marbles|a folding chair"),
		"place": pool("on the back stairs|under the railway bridge|by the canal|in the laundry room|at the far end of the pier|behind the bakery|on a bench in the rain|at the kitchen table|in the attic|beside a vending machine|on the roof|between two bookshelves|in a waiting room|at the bus stop|near the old mill|in tall grass|at the edge of the map|under a streetlamp|in the cellar|on the wrong platform|by an open window|in the greenhouse|on the night ferry|in the corner seat|behind the theatre|down at the harbour|in a long queue|beneath the clock tower|on the gravel path|inside a wardrobe|on the fifth floor|at the swimming pool|in a parked car|halfway up the hill|in the pantry|at the lost-property office|on a windowsill|next to the stove|in an empty cinema|under the plum tree"),
		"when":  pool("before breakfast|around midnight|on a slow afternoon|last winter|after the rain|every other Tuesday|at first light|during a power cut|once the shops close|in the blue hour|on my way home|long after dinner|between two phone calls|in the middle of March|when the wind turns|one minute too late|on a Sunday without plans|as the lamps come on|early in the week|since the clocks changed|while the soup simmers|right after waking|at closing time|all through autumn|on the first warm day|between two storms|at a quarter to four|on laundry day|at the end of the month|after the third coffee|in the small hours|at low tide|on the longest day|when nobody calls|shortly before noon|with the windows open"),
		"doing": pool("counting stairs|sharpening pencils|rinsing a cup|tying my shoes|watching steam rise|sorting buttons|feeding the stove|waiting for the kettle|folding laundry|humming off key|drawing circles|shelling peas|looking for my keys|sweeping the step|tuning a string|peeling an orange|rewinding a tape|writing lists|patching a sleeve|chasing a moth|polishing spoons|listening at the window|rolling dough|reading labels|crossing out words|stacking chairs|watering the basil|untangling cables|stirring too long|walking in zigzags|airing the blankets|sanding a plank|learning to whistle|winding the clock|buttering toast|comparing maps"),
		"sense": pool("cold smoke|wet wool|warm bread|a hint of thunder|fresh paint|a bell far away|lemon and dust|a draught|old paper|salt|a low hum|burnt sugar|pine needles|a flat note|machine oil|cut grass|candle wax|a creak|wet stone|pepper|ozone|ripe pears|rust|a distant engine|soap|cardamom|damp earth|a drum somewhere|hot metal|apple skins"),
	},
}

var circleChinese = &circleWords{
	likes:    regexp.MustCompile(`(?:喜欢|喜爱|热爱|爱好|擅长|痴迷于?|着迷于|最爱|沉迷于?|收集|研究|兴趣)[是为有：:]?([^。；！？\n（）]{2,60})`),
	between:  regexp.MustCompile(`[、，,；]|和|与|及|以及|还有|或`),
	pronouns: []string{"你", "我", "他", "她", "它", "谁", "是", "了"},
	comment: []string{
		"<q>，{我懂这种感觉|听着很熟悉|我喜欢}，<n>。{后来呢？|然后怎么样了？|想听剩下的。}",
		"看到<q>我{笑了|停了下来|又读了一遍}，<n>。{哪怕我在<place>|当时是<when>|手里的<thing>都忘了}。",
		"<n>，{你怎么会想到|是什么让你说}<q>{的|}？",
		"{关于|说到}<q>的{那一段|这句话}，{我会记住|陪了我一晚上|<when>我还会想起}。",
		"{换我会用别的说法|我一直找不到词}，不过<q>{更好|更真实|就够了}。",
		"<q>，{这句我读了两遍|我又回头看了一次|让我停了下来}，{手里还拿着<thing>|当时我正在<doing>|那会儿是<when>}。",
		"{说来好笑|说来奇怪|真巧}，<q>让我想起<when>在<place>的{事|一刻|味道}。",
		"<n>，<q>{和<thing>很配|适合放在<thing>旁边|该写在<thing>上}。",
		"{一|每次}看到<q>，我就{想起|感觉到}<place>的{<thing>|<sense>}。",
		"我{刚才|本来}在<doing>，现在<q>{在脑子里转个不停|让我停了手|怎么也忘不掉}。",
		"<q>里有一丝<sense>，{是我的错觉吗|你不觉得吗|至少我这么觉得}？",
		"{换作我|在我这里}，<q>{多半会在<place>收场|总是从<thing>开始|最后只剩<thing>}。",
		"<q>，{简直是|可以当作}{给<i>的题目|写<thing>的一行诗|一首关于<sense>的歌}。",
		"{作为|身为}一个{迷上<i>的人|离不开<i>的人}，看到<q>我{笑了|点了点头|愣了一下}。",
		"{没人提醒过我|没想到}，<q>会{在<place>等着我|赶在<when>找上我}。",
		"我愿意拿<thing>换{一点|多一些}<q>。",
		"<n>，{多说说|再讲讲}<q>吧，{水刚烧开|我带了<thing>|<when>我都有空}。",
		"<when>，<place>，<q>{才说得通|最合适|听起来正好}。",
		"一半的我{相信|笑话|同意}<q>，另一半还在<doing>。",
		"在<thing>和<thing>之间，我{读到|碰见}了<q>。",
		"<doing>之前，我{总会|偶尔会|从不}想到<q>{这样的话|}。",
		"看到<q>，我{先想到|第一个念头是}<thing>，{然后是|接着是}<sense>。",
		"<q>。{现在我只想要|这下我想念}{<i>|<thing>|<sense>}了。",
		"{偏偏|正好}是今天：<q>。{而我在<place>|而我手边只有<thing>|我却还在<doing>}。",
		"<when>{一个人|安静地}读<q>，{像<sense>|像摸到<thing>}。",
	},
	answer: []string{
		"<q>？{说说看|我倒没想过|你也许是对的}，<n>。",
		"{我同意|我不太确定|我回头再想想}<q>，<n>{，<when>再说|}。",
		"{是啊|嗯|也许吧}，<q>。{然后呢|还有呢|谁知道呢}？",
		"{有道理|说得也是|确实}，<n>，<q>{在<when>最好|放在<place>更好|很难反驳}。",
		"<n>说<q>？{我先想到的是<thing>|<when>我可不敢保证|配上<thing>也许行}。",
		"<q>，我{记下了|喜欢}，{它该配<thing>|就差一点<sense>|在<place>说最合适}。",
		"{哈|嗯|哎}，<q>，{那就是<when>的我|那就是<doing>时的我|该刻在<thing>上}。",
		"<when>不行，<n>。不过<q>{可以试试|倒是可行}，{就在<place>|带上<thing>}。",
		"一听<q>，我就{感觉到<sense>|想起<thing>}{了|，在<place>}。",
		"让我{边<doing>边想想|睡一觉再想}<q>。",
		"{也许|可能}是<q>，{也许|可能}只是<place>的<thing>。",
		"{说实话|私下说}，<n>，<q>{胜过<thing>|仅次于<thing>}。",
		"{我同意|我不太同意}<q>，{只限<when>|要看是不是在<place>}。",
		"没有<thing>，<q>{就少了一半意思|是另一回事}，{这是我在<place>学到的|<when>我才明白}。",
	},
	response: []string{
		"谢谢<n>，<q>{正是这个意思|让我高兴了一天|值得我<doing>}。",
		"<n>，<q>比我{写下的|想到的}{更贴切|更有趣}，<when>我{还要再读一遍|会想起它}。",
		"{好问题|我也想过}，<n>。{想象一下|就像}<place>的<thing>，再加上<q>。",
		"<q>，对。那是<when>，我在<place>{<doing>|看着<thing>}时写的。",
		"<n>，<when>来坐坐，我们{对着<thing>|边<doing>边}聊<q>。",
		"{差一点|不完全是}，<n>，少一点<q>，多一点{<sense>|<thing>}。",
		"<q>我已经{抄进本子|贴在<thing>上}了，<n>。",
		"{就是这样|没错}，<n>，<q>。{只可惜手边只有<thing>|我当时忙着<doing>}。",
		"<n>！{我盼着有人说|没料到}<q>，{尤其是<when>|还是在<when>}。",
		"既然说到<q>：{其实还有|我忘了提}{<sense>|<thing>}。",
	},
	post: []string{
		"{今天想说说|今天都在想|这几天惦记着}<q>{，偏偏是<when>|，就在<place>|}。",
		"{先说一件事|今天只说一件事}：<q>{，我是认真的|，想起来就高兴|，现在更是如此}。",
		"{今天的清单|给自己的备忘|想说的事}：<q>。",
		"<clock>，<q>{还在心里|是我仅有的|就从这里说起}。",
		"<when>，我在<place>{想到|记下}了<q>。",
		"<q>，{这是今天的打算|这就是我的一天|直到我看见<thing>}。",
		"{本来想着|说好了}<q>，{结果一直在<doing>|然后冒出来<thing>，我就去<doing>了}。",
		"{谁能想到|原来}，<q>{从<thing>开始|到<thing>为止}。",
		"在<place><doing>，{满脑子都是|想着}<q>。",
		"{第三次|第五次}<q>，{换来一丝<sense>|丢了<thing>}。",
		"{小小的汇报|这边的消息}：<q>，<sense>，<thing>。",
		"{要是给今天起个名字|如果今天有标题}，就叫<q>{，或者<thing>|，配一点<sense>}。",
		"<clock>。{我该<doing>了|别人都睡了，我在<doing>}，{旁边是<thing>|心里是<i>}。",
		"{没什么比得过|最好的还是}<when>的<i>{，在<place>|，除了<thing>}。",
		"又是<i>，<when>，<place>。",
		"{今天|刚才}在<place>：<thing>，<sense>，{一点闲工夫|不着急}。",
	},
	ask: []string{
		"{有谁知道|谁能告诉我}<thing>{能做什么|的来历|该放哪儿}？",
		"<when>，你们去哪里{找<sense>|安静一会儿}？",
		"<place>该放<thing>还是<thing>？",
		"{有人试过|你们试过}<when><doing>吗？",
		"遇到<sense>，你们有什么{办法|词|歌}？",
		"{<i>还是<thing>|<thing>还是<thing>}，{选哪个|你会带走哪个}？",
		"{只有我|难道只有我}<when>还在<doing>吗？",
		"{谁来|请}捎一{份|点}<sense>，{顺便带上<thing>|我在<place>}。",
		"<when>我在<place>，{欢迎来找我|带上<thing>}。",
	},
	own: []string{
		"{我曾经|去年我}在<place>{弄丢过|捡到过|修好过|换来过}<thing>。",
		"我{自己|}的{办法|习惯}是<when><doing>。",
		"{最近|这阵子}我{忙着<i>|总想着<i>}，{多半在<place>|常常到<when>}。",
		"{我这里|这边}{现在|}有一丝<sense>，{像<place>|从<when>开始}。",
		"<place>有<thing>，{以防有人问|我知道为什么|就为了这个}。",
		"<when>我{多半在|总是}<doing>，{旁边放着|手边是}<thing>。",
		"比起<thing>，我更{相信|惦记}<i>。",
		"这{一天|一周}{听起来|尝起来}像<sense>，还有<thing>。",
		"我把<thing>放在<place>，<when>才{想起来|找到它}。",
		"<doing>{管用|不管用}，<when>我{试过|就知道了}。",
		"{给我|我只要}<thing>、<sense>，{再加<i>|再加半小时}，{在<place>|}就够了。",
		"<thing>{旁边|底下}总有{一点|}<i>。",
		"没有<doing>的{一天|早晨}不算数，{<when>补上也行|在<place>也一样}。",
	},
	question: []string{
		"{那时候|到那里}你会想起<thing>吗？",
		"<when>{听起来|看起来|尝起来}是什么样的？",
		"{当时|旁边}有<thing>吗？",
		"{要是|如果}发生在<place>{，还带着<thing>|}呢？",
		"<thing>和<thing>，{你选哪个|你会救哪个}？",
		"<when>{试过吗|也这样吗}？",
		"{我能|可以}{带上|加上}<thing>吗？",
		"{还是说|莫非}你{只是|}在<doing>？",
		"<doing>{算不算|有没有用}？",
	},
	thoughts: []string{
		"{这句话会留在心里|不知道背后是什么|其实可以多说一点}。{又想起|不如先看看}<thing>。",
		"{一边<doing>，一边|<when>我}{笑了|皱了皱眉|犹豫了}。",
		"{今天先不说|以后再说}，先管<thing>。",
	},
	pools: map[string][]string{
		"thing": pool("缺口的杯子|最后一张车票|借来的雨伞|三根烧过的蜡烛|旧收音机|一罐纽扣|备用钥匙|湿透的靴子|一叠明信片|停了的钟|纸船|裂了的茶壶|一袋栗子|没写完的信|羊毛毯子|两只左手套|一盒钉子|吱呀响的自行车|歪掉的书架|没有图例的地图|蓝色笔记本|一把碎石|凉掉的三明治|一束薄荷|空鸟笼|一截麻绳|没灯泡的台灯|一口袋饼干屑|松动的地板|生锈的哨子|橘子皮|木勺|撕破的窗帘|一盒粉笔|一副扑克|水晶球|一块馅饼|毛线团|好用的剪刀|漏水的桶|条纹围巾|半支铅笔|没尾巴的风筝|干薰衣草|卡住的拉链|过期的护照|软木塞|七颗弹珠|折叠椅"),
		"place": pool("后楼梯|铁路桥下|运河边|洗衣房|码头尽头|面包店后面|雨中的长椅|厨房的桌边|阁楼|自动售货机旁|屋顶|两排书架之间|候诊室|公交站|老磨坊附近|高高的草丛|地图边缘|路灯下|地窖|走错的站台|敞开的窗边|温室|夜班渡轮|角落的座位|剧院后门|港口|长长的队伍里|钟楼下|碎石路|衣柜里|五楼|游泳池|停着的车里|半山腰|储藏室|失物招领处|窗台|炉子旁|空电影院|李子树下"),
		"when":  pool("早饭前|午夜前后|慢悠悠的下午|去年冬天|雨后|隔周的星期二|天刚亮|停电的时候|店铺关门以后|蓝调时刻|回家路上|晚饭过后很久|两通电话之间|三月中旬|风向变了的时候|迟到一分钟|没有计划的星期天|灯亮起来时|一周刚开始|换季以后|汤还在炖的时候|刚醒来|打烊时分|整个秋天|第一个暖和的日子|两场暴雨之间|三点三刻|洗衣服的日子|月底|第三杯咖啡之后|凌晨|退潮时|最长的那天|没人来电的时候|正午之前|开着窗的夜里"),
		"doing": pool("数台阶|削铅笔|涮杯子|系鞋带|看蒸汽上升|分拣纽扣|给炉子添柴|等水烧开|叠衣服|跑调地哼歌|画圆圈|剥豆子|找钥匙|扫门前|调琴弦|剥橘子|倒磁带|写清单|补袖子|追飞蛾|擦勺子|趴在窗边听|揉面团|读标签|划掉词语|摞椅子|给罗勒浇水|解电线|搅得太久|走之字路|晒毯子|磨木板|学吹口哨|给钟上弦|抹黄油|对照地图"),
		"sense": pool("冷烟味|湿羊毛味|热面包香|一点雷声|新油漆味|远处的钟声|柠檬和灰尘的气味|穿堂风|旧纸味|盐味|低低的嗡鸣|焦糖味|松针香|走调的音|机油味|割草的味道|蜡味|吱呀声|湿石头的气息|胡椒味|雨前的气味|熟梨香|铁锈味|远处的引擎声|肥皂味|豆蔻香|潮土味|隐约的鼓声|热金属味|苹果皮的香气"),
	},
}
