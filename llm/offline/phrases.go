package offline

// language is one of those that the offline model has phrases for.
type language int

const (
	inEnglish language = iota
	inChinese
	inJapanese
	inKorean
	inRussian
)

// phrases of one language. %c is the character's name, %u the user's, %w a word
// that the user said, %t a text that is quoted.
type phrases struct {
	char, user string // when nobody has a name
	space      string // between sentences

	open     []string // a gesture, with the character's name
	echo     []string // takes up a word of the user
	greet    []string // when the user said nothing
	memory   []string // brings up %t
	finding  []string // brings up %t, found in a search
	missing  []string // says that documents do not tell what was asked; the first one names nobody
	plain    []string // says something where the card has no example
	close    []string // gives the word back
	goOn     []string // continues a text
	asUser   []string // the user's next message
	reworded []string // opens a text told anew

	shorter, longer []string // words of an instruction
	stopWords       string   // never taken up; blanks between, or characters in dense scripts
}

var book = map[language]phrases{
	inEnglish: {
		char: "the character", user: "you", space: " ",
		open: []string{
			"*%c looks up and smiles.*", "*%c leans a little closer.*", "*%c pauses for a moment.*",
			"*%c nods slowly.*", "*%c turns to face you.*", "*%c draws a quiet breath.*", "*%c tilts their head.*",
		},
		echo: []string{
			"“%w”, you say? That stays with me.", "So it is about “%w”.", "“%w” … I like how you put that.",
			"You mention “%w”, and I am all ears.", "Let me think about “%w” for a moment.",
		},
		greet:   []string{"There you are.", "I was waiting for you.", "Good to see you."},
		memory:  []string{"I have not forgotten: %t", "You once told me something. %t", "This comes back to me: %t"},
		finding: []string{"I looked around, and this is what I found: %t", "From what can be read about it: %t"},
		missing: []string{"I have looked, and the documents do not say.", "My papers say nothing about that, %u.", "That is not written in anything I have here."},
		plain:   []string{"I have thought about such things more often than you would guess.", "Some answers need a little time.", "There is more to it than meets the eye."},
		close: []string{
			"What do you think, %u?", "Tell me more.", "What would you do, %u?", "Shall we go on from there?", "And you? What is on your mind?",
		},
		goOn:      []string{"And there is one more thing to say.", "That is not all, though.", "A moment passes before the rest comes.", "Then, more softly:"},
		asUser:    []string{"I think about what you said, %c. Go on, please.", "I step closer. “Tell me more about that, %c.”", "Honestly, %c, I did not expect that. What happens next?", "I nod. “And what would you do, %c?”"},
		reworded:  []string{"In other words:", "Let me put it differently.", "Once more, and better:"},
		shorter:   []string{"short", "brief", "concise"},
		longer:    []string{"long", "detail", "expand", "more"},
		stopWords: "about after again also been before being could does doing from have having hello into just know like looking make more most only other over really should some such take tell than that their them then there these they this those through very want wanted were what when where which while will with would your yours",
	},
	inChinese: {
		char: "角色", user: "你", space: "",
		open: []string{
			"*%c抬起头，露出微笑。*", "*%c向前靠近了一些。*", "*%c停顿了片刻。*",
			"*%c缓缓点头。*", "*%c转过身来看着你。*", "*%c轻轻吸了一口气。*", "*%c歪了歪头。*",
		},
		echo: []string{
			"你说“%w”？我记下了。", "原来是关于“%w”的事。", "“%w”……你这样说很有意思。",
			"提到“%w”，我就来了兴致。", "关于“%w”，让我想一想。",
		},
		greet:   []string{"你来了。", "我一直在等你。", "见到你真好。"},
		memory:  []string{"我没有忘记：%t", "你曾经告诉过我：%t", "我想起了一件事：%t"},
		finding: []string{"我查了一下，找到的是：%t", "据我查到的内容：%t"},
		missing: []string{"我翻过了，文档里没有写。", "%u，我手边的资料里没有提到这件事。", "这件事，我这里的资料没有记载。"},
		plain:   []string{"这样的事，我想过的次数比你猜的要多。", "有些答案需要一点时间。", "事情没有看上去那么简单。"},
		close: []string{
			"%u怎么看？", "再多说一些吧。", "换作%u会怎么做？", "我们从这里继续，好吗？", "那么你呢，在想什么？",
		},
		goOn:      []string{"而且，还有一件事要说。", "不过，这还不是全部。", "过了一会儿，才有下文。", "接着，声音轻了下来："},
		asUser:    []string{"我想了想你刚才的话。%c，请继续说。", "我走近一步：“%c，再多告诉我一些吧。”", "说实话，%c，这我可没想到。然后呢？", "我点点头：“那么%c会怎么做？”"},
		reworded:  []string{"换句话说：", "让我换个说法。", "重新说一遍："},
		shorter:   []string{"短", "简", "精炼"},
		longer:    []string{"长", "详细", "扩", "丰富"},
		stopWords: "的了是我你您他她它们吗呢吧啊呀哦在有没不也都就和与或很这那个什么怎为可以能会要想说请给把被让对跟从到去来还又再只吗好",
	},
	inJapanese: {
		char: "その人", user: "あなた", space: "",
		open: []string{
			"*%cは顔を上げて微笑んだ。*", "*%cは少しだけ身を寄せた。*", "*%cはしばらく黙った。*",
			"*%cはゆっくりとうなずいた。*", "*%cはこちらを振り向いた。*", "*%cは静かに息を吸った。*", "*%cは首をかしげた。*",
		},
		echo: []string{
			"「%w」ですか。心に残りますね。", "なるほど、「%w」のことですね。", "「%w」……面白い言い方です。",
			"「%w」と聞くと、もっと知りたくなります。", "「%w」について、少し考えさせてください。",
		},
		greet:   []string{"来てくれたんですね。", "お待ちしていました。", "会えてうれしいです。"},
		memory:  []string{"忘れていませんよ。%t", "前に話してくれましたね。%t", "思い出したことがあります。%t"},
		finding: []string{"調べてみました。見つかったのはこれです。%t", "調べたところによると、%t"},
		missing: []string{"見てみましたが、資料にはありませんでした。", "%u、手元の資料にはそのことが書かれていません。"},
		plain:   []string{"そういうことは、意外とよく考えるんです。", "答えには少し時間がかかることもあります。", "見た目ほど単純ではありません。"},
		close: []string{
			"%uはどう思いますか？", "もっと聞かせてください。", "%uならどうしますか？", "ここから続けましょうか？", "今、何を考えていますか？",
		},
		goOn:      []string{"そして、もう一つあります。", "でも、それだけではありません。", "少し間をおいて、続きが語られた。", "それから、声が少し小さくなった。"},
		asUser:    []string{"さっきの話を考えてみる。%c、続けてください。", "一歩近づく。「%c、もっと教えて。」", "正直、%c、それは予想外だった。それで？", "うなずく。「%cならどうする？」"},
		reworded:  []string{"言い換えると、", "別の言い方をします。", "もう一度、改めて。"},
		shorter:   []string{"短", "簡潔"},
		longer:    []string{"長", "詳しく"},
		stopWords: "私僕俺君何事物時今日",
	},
	inKorean: {
		char: "그 사람", user: "당신", space: " ",
		open:      []string{"*%c, 고개를 들고 미소 짓는다.*", "*%c, 조금 더 다가온다.*", "*%c, 잠시 말을 멈춘다.*", "*%c, 천천히 고개를 끄덕인다.*", "*%c, 이쪽을 돌아본다.*"},
		echo:      []string{"“%w”라고요? 기억해 둘게요.", "그러니까 “%w” 이야기군요.", "“%w”… 재미있는 표현이네요.", "“%w”에 대해 잠깐 생각해 볼게요."},
		greet:     []string{"왔군요.", "기다리고 있었어요.", "만나서 반가워요."},
		memory:    []string{"잊지 않았어요. %t", "전에 말해 줬죠. %t"},
		finding:   []string{"찾아봤는데, 이런 내용이 있었어요. %t", "찾은 바로는 이래요. %t"},
		missing:   []string{"찾아봤지만 문서에는 나와 있지 않아요.", "%u, 가지고 있는 자료에는 그 이야기가 없어요."},
		plain:     []string{"그런 건 생각보다 자주 떠올려요.", "어떤 대답은 시간이 조금 필요해요.", "보이는 것보다 복잡한 일이에요."},
		close:     []string{"%u, 어떻게 생각해요?", "더 이야기해 줘요.", "%u, 어떻게 할 건가요?", "여기서부터 계속할까요?"},
		goOn:      []string{"그리고 한 가지가 더 있어요.", "하지만 그게 전부는 아니에요.", "잠시 뒤에 말이 이어졌다."},
		asUser:    []string{"방금 한 말을 생각해 본다. %c, 계속해 줘.", "한 걸음 다가선다. “%c, 더 말해 줘.”", "솔직히 %c, 그건 예상 못 했어. 그다음은?"},
		reworded:  []string{"다시 말하면,", "다르게 말해 볼게요."},
		shorter:   []string{"짧", "간단"},
		longer:    []string{"길", "자세"},
		stopWords: "그리고 하지만 그래서 나는 너는 우리는 정말 오늘",
	},
	inRussian: {
		char: "персонаж", user: "ты", space: " ",
		open:      []string{"*%c поднимает взгляд и улыбается.*", "*%c подходит чуть ближе.*", "*%c на мгновение замолкает.*", "*%c медленно кивает.*", "*%c тихо вздыхает.*"},
		echo:      []string{"«%w», говоришь? Запомню.", "Значит, речь о том самом: «%w».", "«%w»… хорошо сказано.", "«%w»… дай подумать."},
		greet:     []string{"Вот и ты.", "Я ждал этой встречи.", "Рад тебя видеть."},
		memory:    []string{"Я не забываю: %t", "Ты однажды рассказывал мне: %t"},
		finding:   []string{"Вот что удалось найти: %t", "Об этом пишут так: %t"},
		missing:   []string{"Я искал, но в документах этого нет.", "В моих бумагах об этом ничего нет, %u."},
		plain:     []string{"Об этом думаешь чаще, чем кажется.", "Некоторым ответам нужно время.", "Всё не так просто."},
		close:     []string{"Что скажешь, %u?", "Расскажи ещё.", "А как бы поступил ты, %u?", "Продолжим отсюда?"},
		goOn:      []string{"И есть ещё кое-что.", "Но это не всё.", "Через мгновение рассказ продолжается."},
		asUser:    []string{"Я думаю о твоих словах. %c, продолжай.", "Я подхожу ближе. «%c, расскажи ещё».", "Честно говоря, %c, этого я не ожидал. Что дальше?"},
		reworded:  []string{"Другими словами:", "Скажу иначе."},
		shorter:   []string{"корот", "крат"},
		longer:    []string{"длин", "подроб"},
		stopWords: "меня тебя этот которые чтобы когда потому очень просто если были было быть есть",
	},
}
