// Package researchtool has deep research for the turns of a chat: a message, or the model, begins one, and when it is
// over the character tells what came of it. It must not know how a research works.
package researchtool

import (
	"nodest/framework"
	"nodest/nodest"
)

// texts are what models are told in a language.
type texts struct {
	begun   string // instead of an answer: a research has begun
	open    string // one is at work already
	failed  string // it could not be begun
	tell    string // the instruction for the message with the result
	sorry   string // that for the message of a research without a result
	rules   string // for the use of the tool
	answer  string // heading of the result
	sources string // heading of its sources
	left    string // heading of what was left open
	plain   string // the message of a research without a result, where there is no model
}

var textsOf = map[framework.Language]texts{
	framework.English: {
		begun: "[{{char}} has just begun to look into this for {{user}}. It takes some minutes, and the result comes as a message of its own. " +
			"Write {{char}}'s reply: {{char}} says so in one or two sentences, in character, and answers nothing yet.]",
		open:   "[{{char}} is still looking into something for {{user}} and cannot begin anything else before that is done. Write {{char}}'s reply: {{char}} says so, in character.]",
		failed: "[{{char}} cannot look into this at the moment. Write {{char}}'s reply: {{char}} says so, in character, and does not make up a result.]",
		tell: "[{{char}} has looked into something for {{user}}; the result is in <websearch>. Write {{char}}'s next message: {{char}} tells {{user}} what came of it, " +
			"in {{char}}'s own voice. Keep facts, numbers and names exactly as they are there, add none, cite each as [^n] with the number of its source, and say what was left open.]",
		sorry: "[{{char}} wanted to look into something for {{user}}, and it did not work out. Write {{char}}'s next message: {{char}} says so, in character, and does not make up a result.]",
		rules: "You can begin a deep research with deepResearch: many searches and pages, for some minutes. Do so only if the user asks you to look into something thoroughly. " +
			"The result comes later, as a message of its own: say that you have begun, and do not guess it. Stay in character and do not mention the tool.",
		answer: "Result of the research on:", sources: "Sources:", left: "Left open:", plain: "The research did not work out: ",
	},
	framework.Chinese: {
		begun:  "[{{char}}刚刚开始为{{user}}深入查证这件事，需要几分钟，结果会另发一条消息。写出{{char}}的回复：{{char}}以自己的口吻用一两句话说明这一点，先不作答。]",
		open:   "[{{char}}还在为{{user}}查证另一件事，完成之前不能开始新的。写出{{char}}的回复：{{char}}以自己的口吻说明这一点。]",
		failed: "[{{char}}现在无法查证这件事。写出{{char}}的回复：{{char}}以自己的口吻说明这一点，不编造结果。]",
		tell: "[{{char}}为{{user}}查证了一件事，结果在<websearch>中。写出{{char}}的下一条消息：{{char}}以自己的口吻告诉{{user}}结果。" +
			"事实、数字和名称必须与其中完全一致，不得添加，每一处以[^n]标注来源编号，并说明哪些尚未查明。]",
		sorry: "[{{char}}想为{{user}}查证一件事，但没有成功。写出{{char}}的下一条消息：{{char}}以自己的口吻说明这一点，不编造结果。]",
		rules: "你可以用deepResearch开始一次深入研究：多次检索并阅读网页，需要几分钟。仅当用户要求深入查证某事时才使用。" +
			"结果会另发一条消息：说明已经开始，不要猜测结果。保持角色，不要提及工具。",
		answer: "研究结果，问题：", sources: "来源：", left: "尚未查明：", plain: "这次研究没有成功：",
	},
}

func textsFor(q *nodest.Question) texts { return textsIn(q.Setup.Docs.Language) }

func textsIn(l framework.Language) texts {
	if l == framework.Chinese {
		return textsOf[l]
	}
	return textsOf[framework.English]
}
