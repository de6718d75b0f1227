package tools

import (
	"nodest/framework"
	"nodest/internal/markup"
)

// words are what a model is told about its calls, in one language.
type words struct {
	write    string // behind the last results: no more calls
	repeated string // behind a search that was not carried out
	limit    string // the answer to a call beyond the limit of its tool
}

var wordsIn = map[framework.Language]words{
	framework.English: {
		write:    "No more tools can be called for this message. Write the reply now, from what you have.",
		repeated: "This search was made already. Read what it has found, search for something else, or write the reply.",
		limit:    "This tool cannot be called again for this message. Use what you have.",
	},
	framework.Chinese: {
		write:    "本条消息不能再调用工具。请根据已有内容直接写出回复。",
		repeated: "这个检索已经做过。请阅读已找到的内容、换一个检索，或直接写出回复。",
		limit:    "本条消息不能再调用这个工具。请使用已有内容。",
	},
}

func wordsFor(l framework.Language) words {
	if w, ok := wordsIn[l]; ok {
		return w
	}
	return wordsIn[framework.English]
}

func failed(text string) string { return "<error>" + markup.Escape(text) + "</error>" }
