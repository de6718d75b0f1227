package rules

import "nodest/framework"

// Kind is what kind of post a character writes.
type Kind string

// Digest is the post that tells a user what happened while the circle slept. It is in no
// deck.
const Digest Kind = "digest"

// deck has the kinds that are dealt, with the words that ask a model for them.
var deck = [...]struct {
	kind   Kind
	en, zh string
}{
	{"moment", "Tell of one small thing that has just happened to you. Be concrete: a place, a thing, a gesture.",
		"讲一件刚刚发生在你身上的小事。写得具体：一个地点、一样东西、一个动作。"},
	{"opinion", "Say what you think about something, and why. Take a side.",
		"说说你对某件事的看法和理由。要有立场。"},
	{"question", "Ask the others something that you really want to know. Say briefly why you ask.",
		"问大家一个你真正想知道的问题，并简单说明为什么问。"},
	{"recollection", "Tell something from your past that has come to your mind, and what reminded you of it.",
		"讲一件你忽然想起的往事，以及是什么让你想起了它。"},
	{"intention", "Tell what you mean to do soon, and what you look forward to or worry about.",
		"说说你近期打算做的一件事，以及你期待或担心什么。"},
	{"discovery", "Share something that you have found or learned, and what surprised you about it.",
		"分享你新发现或新学到的东西，以及它让你意外的地方。"},
	{"grumble", "Grumble a little about something that annoys you. Keep it light.",
		"小小地抱怨一件让你心烦的事。语气轻松一点。"},
	{"gratitude", "Say what you are glad or thankful about, without big words.",
		"说说让你高兴或感激的事，不用大词。"},
	{"work", "Tell what you are working on or practising, and how it goes: one step, one difficulty.",
		"讲讲你正在做或正在练习的事，进展如何：一个步骤，一个难处。"},
	{"place", "Describe where you are right now: what you see, hear or smell there.",
		"描写你此刻所在的地方：看到、听到或闻到什么。"},
	{"tip", "Recommend something to the others: something to eat, do, read or see. Say who would like it.",
		"向大家推荐一样东西：吃的、做的、读的或看的。说说什么样的人会喜欢。"},
	{"thought", "Share a thought that does not let go of you today. It need not have a conclusion.",
		"分享一个今天一直在你脑中的念头。不必有结论。"},
}

// Words are the instruction for a post of the kind; "" for an unknown kind.
func (k Kind) Words(l framework.Language) string {
	en, zh := "", ""
	if k == Digest {
		en = "The user was away for some days. Tell in one post what you and the others did meanwhile."
		zh = "用户离开了几天。用一条动态讲讲这几天你和大家都做了些什么。"
	}
	for _, c := range deck {
		if c.kind == k {
			en, zh = c.en, c.zh
		}
	}
	if l == framework.Chinese {
		return zh
	}
	return en
}

// Deal returns the kind of a character's next post. latest are the kinds of its latest
// posts, newest first; the newest one that was dealt is enough. Each character deals from
// its own shuffled deck, so no kind comes again before all others were dealt.
func Deal(characterID string, latest []Kind) Kind {
	order := dice(Seed(characterID), "deck").Perm(len(deck))
	for _, k := range latest {
		for at, card := range order {
			if deck[card].kind == k {
				return deck[order[(at+1)%len(order)]].kind
			}
		}
	}
	return deck[order[0]].kind
}
