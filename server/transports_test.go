package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/server/api"
)

// transportCase is one command. $name in data stands for an id from an earlier
// result.
type transportCase struct {
	command string
	data    string
	code    string            // code of the error on both transports; "" = it succeeds
	key     string            // "" = a new one
	replay  bool              // the result is that of an earlier case with this key
	keep    map[string]string // name -> path in the result

	embedded bool // repeat until the memories have been embedded in the background
}

type kept = map[string]string

// transportCases goes through everything that can be done with two conversations,
// and what can go wrong. Both transports run all cases in this order.
var transportCases = []transportCase{
	{command: "chat.create", data: `{}`, code: "invalid_field"},
	{command: "chat.create", data: `{"characterId":"$char","settings":{"temperature":3}}`, code: "invalid_field"},
	{command: "chat.create", data: `{"characterId":"$char","personaId":"nobody"}`, code: "not_found"},
	{command: "chat.create", data: `{"characterId":"$char","title":"A walk"}`, key: "first", keep: kept{"conv": "id"}},
	{command: "chat.create", data: `{"characterId":"$char","title":"A walk"}`, key: "first", replay: true},
	{command: "chat.create", data: `{"characterId":"$char","title":"A run"}`, key: "first", code: "key_reused"},

	{command: "chat.send", data: `{"conversationId":"$conv","text":" \n "}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"$conv","text":42}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"hi","x":1,"y":2}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"hi","options":{"temperature":9,"topP":-1}}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"hi","options":{"maxTokens":1.5}}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"hi","whenBusy":"shout"}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"hi","attachments":["f"]}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"hi","parentId":"nobody"}`, code: "not_found"},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"Where are we?","clientMsgId":"c-1"}`, key: "sent",
		keep: kept{"user": "userMessage.id", "reply": "message.id", "gen": "generationId"}},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"Where are we?","clientMsgId":"c-1"}`, key: "sent", replay: true},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"Where else?","clientMsgId":"c-1"}`, key: "sent", code: "key_reused"},
	{command: "chat.send", data: `{"conversationId":"$conv","text":"Again","clientMsgId":"c-1"}`, code: "conflict"},

	{command: "gen.attach", data: `{"generationId":"$gen"}`, keep: kept{"prompt": "generation.promptId"}},
	{command: "gen.attach", data: `{"generationId":"$gen","off":2}`},
	{command: "gen.attach", data: `{"generationId":"$gen","off":-1}`, code: "invalid_field"},
	{command: "gen.cancel", data: `{"generationId":"$gen"}`},
	{command: "gen.cancel", data: `{"generationId":"nobody"}`, code: "not_found"},
	{command: "gen.regenerate", data: `{"messageId":"$reply","wish":"shorter"}`, keep: kept{"gen2": "generationId"}},
	{command: "gen.regenerate", data: `{"messageId":"$reply","wish":7}`, code: "invalid_field"},
	{command: "gen.regenerate", data: `{"messageId":"$user"}`, code: "invalid_field"},
	{command: "gen.regenerate", data: `{"messageId":"nobody"}`, code: "not_found"},
	{command: "gen.attach", data: `{"generationId":"$gen2"}`, keep: kept{"prompt2": "generation.promptId"}},
	{command: "gen.continue", data: `{"messageId":"$reply"}`},
	{command: "gen.continue", data: `{"messageId":"nobody"}`, code: "not_found"},
	{command: "gen.continue", data: `{"messageId":"$reply","options":{"contextTokens":1}}`, code: "invalid_field"},
	{command: "gen.impersonate", data: `{"conversationId":"$conv"}`},
	{command: "gen.impersonate", data: `{"conversationId":"nobody"}`, code: "not_found"},

	{command: "message.swipe", data: `{"messageId":"$reply","swipe":"prev"}`},
	{command: "message.swipe", data: `{"messageId":"$reply","swipe":"next"}`},
	{command: "message.swipe", data: `{"messageId":"$reply"}`, code: "invalid_field"},
	{command: "message.swipe", data: `{"messageId":"$reply","swipe":"next","generateIfLast":true}`},
	{command: "message.swipe", data: `{"messageId":"$reply","swipe":"prev","ifRev":1}`, code: "conflict"},
	{command: "message.delete", data: `{"messageId":"$reply","scope":"swipe"}`},
	{command: "message.edit", data: `{"messageId":"$user","text":"Where exactly are we?","ifRev":1}`},
	{command: "message.edit", data: `{"messageId":"$user","text":"Where, then?","ifRev":1}`, code: "conflict"},
	{command: "message.edit", data: `{"messageId":"$user","text":"Where, then?","regenerate":true,"ifRev":1}`, code: "conflict"},
	{command: "message.edit", data: `{"messageId":"$user","text":"Where, then?","regenerate":true}`, keep: kept{"reply": "reply.id"}},
	{command: "message.edit", data: `{"messageId":"$reply","text":"x","regenerate":true}`, code: "invalid_field"},

	{command: "chat.send", data: `{"conversationId":"$conv","text":"A note","reply":false}`, keep: kept{"note": "userMessage.id"}},
	{command: "chat.history", data: `{"conversationId":"$conv"}`},
	{command: "chat.history", data: `{"conversationId":"$conv","limit":2}`, keep: kept{"before": "nextCursor"}},
	{command: "chat.history", data: `{"conversationId":"$conv","limit":2,"before":"$before"}`},
	{command: "chat.history", data: `{"conversationId":"$conv","limit":0}`, code: "invalid_field"},
	{command: "chat.history", data: `{"conversationId":"$conv","limit":"many"}`, code: "invalid_field"},
	{command: "chat.history", data: `{"conversationId":"$conv","before":"nobody"}`, code: "not_found"},

	{command: "gen.regenerate", data: `{"messageId":"$reply","wish":"longer"}`, keep: kept{"sibling": "message.id"}}, // $note follows it
	{command: "message.edit", data: `{"messageId":"$sibling","text":"We are lost.","mode":"branch"}`},
	{command: "message.edit", data: `{"messageId":"$user","text":"Who are you?","mode":"branch","regenerate":true}`,
		keep: kept{"user2": "message.id", "reply2": "reply.id"}},
	{command: "message.edit", data: `{"messageId":"nobody","text":"x","mode":"branch"}`, code: "not_found"},
	{command: "message.delete", data: `{"messageId":"$reply2"}`},
	{command: "message.delete", data: `{"messageId":"nobody"}`, code: "not_found"},
	{command: "message.restore", data: `{"messageId":"$reply2"}`},
	{command: "message.restore", data: `{"messageId":"nobody"}`, code: "not_found"},

	{command: "chat.branches", data: `{"conversationId":"$conv"}`},
	{command: "chat.branches", data: `{"conversationId":"$conv","limit":0}`, code: "invalid_field"},
	{command: "chat.tree", data: `{"conversationId":"$conv"}`},
	{command: "chat.search", data: `{"q":"note","conversationId":"$conv"}`},
	{command: "chat.search", data: `{"q":"note","conversationId":"$conv","cursor":"nonsense"}`, code: "invalid_field"},
	{command: "chat.fork", data: `{"conversationId":"$conv","messageId":"$note"}`, key: "forked", keep: kept{"fork": "id"}},
	{command: "chat.fork", data: `{"conversationId":"$conv","messageId":"$note"}`, key: "forked", replay: true},
	{command: "chat.fork", data: `{"conversationId":"$conv","messageId":"$note","title":"x"}`, key: "forked", code: "key_reused"},
	{command: "chat.fork", data: `{"conversationId":"$conv","messageId":"nobody"}`, code: "not_found"},
	{command: "save.create", data: `{"conversationId":"$fork","description":"here"}`, key: "saved", keep: kept{"save": "id"}},
	{command: "save.create", data: `{"conversationId":"$fork","description":"here"}`, key: "saved", replay: true},
	{command: "save.create", data: `{"conversationId":"$fork","description":"there"}`, key: "saved", code: "key_reused"},
	{command: "save.create", data: `{"conversationId":"$fork","description":"x","mood":1}`, code: "invalid_field"},
	{command: "chat.reset", data: `{"conversationId":"$fork"}`},
	{command: "chat.reset", data: `{"conversationId":"nobody"}`, code: "not_found"},
	{command: "save.get", data: `{"saveId":"$save"}`},
	{command: "save.get", data: `{"saveId":"nobody"}`, code: "not_found"},
	{command: "save.preview", data: `{"saveId":"$save","text":"And then?"}`},
	{command: "save.preview", data: `{"saveId":"$save","options":{"temperature":9}}`, code: "invalid_field"},
	{command: "save.restore", data: `{"saveId":"$save"}`, key: "restored", keep: kept{"before": "before.id"}},
	{command: "save.restore", data: `{"saveId":"$save"}`, key: "restored", replay: true},
	{command: "save.restore", data: `{"saveId":"$before"}`, key: "restored", code: "key_reused"},
	{command: "save.restore", data: `{"saveId":"nobody"}`, code: "not_found"},
	{command: "save.list", data: `{"conversationId":"$fork","automatic":true}`},
	{command: "save.list", data: `{"conversationId":"$fork","automatic":"yes"}`, code: "invalid_field"},
	{command: "save.delete", data: `{"saveId":"$save"}`},
	{command: "save.delete", data: `{"saveId":"$save"}`, code: "not_found"},

	{command: "memory.create", data: `{"characterId":"$char","text":"Mia keeps bees.","kind":"profile"}`, key: "bees", keep: kept{"mem": "id"}},
	{command: "memory.create", data: `{"characterId":"$char","text":"Mia keeps bees.","kind":"profile"}`, key: "bees", replay: true},
	{command: "memory.create", data: `{"characterId":"$char","text":"Mia keeps hens.","kind":"profile"}`, key: "bees", code: "key_reused"},
	{command: "memory.create", data: `{"characterId":"$char","text":" "}`, code: "invalid_field"},
	{command: "memory.create", data: `{"characterId":"$char","text":"x","kind":"rumour","importance":2}`, code: "invalid_field"},
	{command: "memory.create", data: `{"characterId":"$char","text":"x","mood":"good"}`, code: "invalid_field"},
	{command: "memory.create", data: `{"characterId":"nobody","text":"x"}`, code: "not_found"},
	{command: "memory.search", data: `{"characterId":"$char"}`},
	{command: "memory.search", data: `{"characterId":"$char","kind":"profile","subject":"user","status":"any","pinned":false,"limit":1}`},
	{command: "memory.search", data: `{"characterId":"$char","q":"who keeps bees","layer":"fact","mode":"recall","limit":3}`, embedded: true},
	{command: "memory.search", data: `{"characterId":"$char","q":"bees","kind":"profile"}`, embedded: true},
	{command: "memory.search", data: `{"characterId":"$char","q":"bees","limit":101}`, code: "invalid_field"},
	{command: "memory.search", data: `{"characterId":"$char","limit":201}`, code: "invalid_field"},
	{command: "memory.search", data: `{"characterId":"$char","kind":"rumour"}`, code: "invalid_field"},
	{command: "memory.search", data: `{"characterId":"$char","q":"bees","layer":"fact,dream"}`, code: "invalid_field"},
	{command: "memory.search", data: `{"characterId":"nobody","q":"bees"}`, code: "not_found"},
	{command: "memory.pin", data: `{"characterId":"$char","memoryId":"$mem","pinned":true}`, key: "pinned"},
	{command: "memory.pin", data: `{"characterId":"$char","memoryId":"$mem","pinned":true}`, key: "pinned", replay: true},
	{command: "memory.pin", data: `{"characterId":"$char","memoryId":"nobody","pinned":true}`, code: "not_found"},
	{command: "memory.edit", data: `{"characterId":"$char","memoryId":"$mem","text":"Mia keeps hens.","importance":0.9}`, keep: kept{"mem2": "id"}},
	{command: "memory.edit", data: `{"characterId":"$char","memoryId":"$mem","importance":1.1}`, code: "invalid_field"},
	{command: "memory.edit", data: `{"characterId":"$char","memoryId":"nobody","text":"x"}`, code: "not_found"},
	{command: "memory.edit", data: `{"characterId":"$char","memoryId":"$mem","text":"Mia keeps ducks.","ifVersion":7}`, code: "precondition_failed"},
	{command: "memory.restore", data: `{"characterId":"$char","memoryId":"$mem"}`, key: "back", keep: kept{"mem3": "id"}},
	{command: "memory.restore", data: `{"characterId":"$char","memoryId":"$mem"}`, key: "back", replay: true},
	{command: "memory.restore", data: `{"characterId":"$char","memoryId":"nobody"}`, code: "not_found"},
	{command: "memory.delete", data: `{"characterId":"$char","memoryId":"$mem3"}`},
	{command: "memory.delete", data: `{"characterId":"$char","memoryId":"nobody"}`, code: "not_found"},
	{command: "memory.forget", data: `{"characterId":"$char","query":"bees","dryRun":true}`},
	{command: "memory.forget", data: `{"characterId":"$char"}`, code: "invalid_field"},
	{command: "memory.forget", data: `{"characterId":"$char","ids":["nobody"]}`, code: "not_found"},
	{command: "memory.forget", data: `{"characterId":"$char","ids":["$mem"]}`},
	{command: "memory.restore", data: `{"characterId":"$char","memoryId":"$mem"}`, code: "not_found"},
	{command: "memory.delete", data: `{"characterId":"$char","memoryId":"$mem","purge":true}`, code: "not_found"},
	{command: "summary.list", data: `{"conversationId":"$made"}`},
	{command: "summary.list", data: `{"conversationId":"nobody"}`, code: "not_found"},
	{command: "summary.delete", data: `{"conversationId":"$made","summaryId":"$summary"}`},
	{command: "summary.delete", data: `{"conversationId":"$made","summaryId":"$summary"}`, code: "not_found"},
	{command: "summary.create", data: `{"conversationId":"$made"}`, key: "sum"},
	{command: "summary.create", data: `{"conversationId":"$made"}`, key: "sum", replay: true},
	{command: "summary.create", data: `{"conversationId":"$made","to":"nobody"}`, code: "not_found"},
	{command: "summary.create", data: `{"conversationId":"$conv"}`, code: "conflict"},
	{command: "summary.create", data: `{"conversationId":"nobody"}`, code: "not_found"},

	{command: "knowledge.search", data: `{"query":"light"}`},
	{command: "knowledge.search", data: `{"query":"light","topK":1,"mode":"lexical","folder":"lore","types":["pdf"],"updatedAfter":"2026-01-31T12:00:00.000Z"}`},
	{command: "knowledge.search", data: `{"query":" "}`, code: "invalid_field"},
	{command: "knowledge.search", data: `{"query":"light","topK":0}`, code: "invalid_field"},
	{command: "knowledge.search", data: `{"query":"light","mode":"loud"}`, code: "invalid_field"},
	{command: "knowledge.search", data: `{"query":"light","knowledgeBaseIds":["nobody"]}`, code: "not_found"},

	{command: "research.start", data: `{"question":" "}`, code: "invalid_field"},
	{command: "research.start", data: `{"question":"Why?","budget":{"tokens":0}}`, code: "invalid_field"},
	{command: "research.start", data: `{"question":"Why?","conversationId":"nobody"}`, code: "not_found"},
	{command: "research.start", data: `{"question":"When was the light automated?"}`, key: "light", keep: kept{"research": "research.id"}},
	{command: "research.start", data: `{"question":"When was the light automated?"}`, key: "light", replay: true},
	{command: "research.start", data: `{"question":"When was the light built?"}`, key: "light", code: "key_reused"},
	{command: "research.get", data: `{"id":"$research"}`},
	{command: "research.get", data: `{"id":"nobody"}`, code: "not_found"},
	{command: "research.cancel", data: `{"id":"$research"}`},
	{command: "research.cancel", data: `{"id":"nobody"}`, code: "not_found"},
	{command: "research.run", data: `{"id":"$research"}`, code: "conflict"},
	{command: "research.run", data: `{"id":"nobody"}`, code: "not_found"},
	{command: "research.start", data: `{"question":"When was the light built?"}`, keep: kept{"research2": "research.id"}},
	{command: "research.run", data: `{"id":"$research2"}`, key: "run"},

	{command: "circle.feed", data: `{}`},
	{command: "circle.post", data: `{"text":"Who wants to go sailing?"}`, key: "sailing", keep: kept{"post": "id"}},
	{command: "circle.post", data: `{"text":"Who wants to go sailing?"}`, key: "sailing", replay: true},
	{command: "circle.post", data: `{"text":"Who wants to swim?"}`, key: "sailing", code: "key_reused"},
	{command: "circle.post", data: `{"text":" "}`, code: "invalid_field"},
	{command: "circle.post", data: `{"text":"` + longText + `"}`, code: "too_large"},
	{command: "circle.post", data: `{"text":"x","images":["a","b","c","d","e"]}`, code: "invalid_field"},
	{command: "circle.post", data: `{"images":["nobody"]}`, code: "not_found"},
	{command: "circle.post", data: `{"text":"x","authorId":"nobody"}`, code: "not_found"},
	{command: "circle.post", data: `{"text":"x","authorId":"$char"}`, code: "conflict"},
	{command: "circle.comment", data: `{"postId":"$post","text":"I do!"}`, key: "do", keep: kept{"comment": "id"}},
	{command: "circle.comment", data: `{"postId":"$post","text":"I do!"}`, key: "do", replay: true},
	{command: "circle.comment", data: `{"postId":"$post","text":"Me too.","replyTo":"$comment"}`, keep: kept{"answer": "id"}},
	{command: "circle.comment", data: `{"postId":"$post","text":"x","replyTo":"nobody"}`, code: "not_found"},
	{command: "circle.comment", data: `{"postId":"nobody","text":"x"}`, code: "not_found"},
	{command: "circle.comment", data: `{"postId":"$post","text":"` + longText + `"}`, code: "too_large"},
	{command: "circle.like", data: `{"postId":"$post"}`, key: "liked"},
	{command: "circle.like", data: `{"postId":"$post"}`, key: "liked", replay: true},
	{command: "circle.like", data: `{"postId":"$post"}`},
	{command: "circle.like", data: `{"postId":"nobody"}`, code: "not_found"},
	{command: "circle.unlike", data: `{"postId":"$post"}`},
	{command: "circle.unlike", data: `{"postId":"nobody"}`, code: "not_found"},
	{command: "circle.forward", data: `{"postId":"$post","characterId":"$char","text":"Look."}`, key: "fwd"},
	{command: "circle.forward", data: `{"postId":"$post","characterId":"$char","text":"Look."}`, key: "fwd", replay: true},
	{command: "circle.forward", data: `{"postId":"$post","characterId":"nobody"}`, code: "not_found"},
	{command: "circle.feed", data: `{"favorites":true}`},
	{command: "circle.feed", data: `{"thoughts":true,"limit":1}`},
	{command: "circle.feed", data: `{"limit":0}`, code: "invalid_field"},
	{command: "circle.feed", data: `{"authorId":"nobody"}`, code: "not_found"},
	{command: "circle.delete", data: `{"postId":"$post","commentId":"$comment"}`},
	{command: "circle.delete", data: `{"postId":"$post","commentId":"$comment"}`, code: "not_found"},
	{command: "circle.comment", data: `{"postId":"$post","text":"x","replyTo":"$comment"}`, code: "not_found"},
	{command: "circle.feed", data: `{}`},
	{command: "circle.delete", data: `{"postId":"$post"}`},
	{command: "circle.delete", data: `{"postId":"$post"}`, code: "not_found"},
	{command: "circle.comment", data: `{"postId":"$post","text":"x"}`, code: "not_found"},

	{command: "chat.head", data: `{"conversationId":"$conv","messageId":"$note"}`},
	{command: "chat.head", data: `{"conversationId":"$conv"}`, code: "not_found"},
	{command: "chat.update", data: `{"conversationId":"$conv","title":"A long walk","archived":true}`},
	{command: "chat.update", data: `{"conversationId":"$conv","archived":"yes"}`, code: "invalid_field"},
	{command: "chat.update", data: `{"conversationId":"$conv","tags":[" slow burn","Slow Burn","茶"]}`, key: "tagged"},
	{command: "chat.update", data: `{"conversationId":"$conv","tags":[]}`, key: "tagged", code: "key_reused"},
	{command: "chat.update", data: `{"conversationId":"$conv","tags":["a\nb"]}`, code: "invalid_field"},
	{command: "chat.update", data: `{"conversationId":"$conv","settings":{"heat":1}}`, code: "invalid_field"},
	{command: "chat.update", data: `{"conversationId":"nobody","title":"x"}`, code: "not_found"},

	{command: "prompt.preview", data: `{"conversationId":"$conv","text":"And now?"}`},
	{command: "prompt.preview", data: `{"conversationId":"nobody"}`, code: "not_found"},
	{command: "prompt.get", data: `{"promptId":"$prompt"}`},
	{command: "prompt.get", data: `{"promptId":"nobody"}`, code: "not_found"},
	{command: "prompt.diff", data: `{"promptId":"$prompt","with":"$prompt2"}`},
	{command: "prompt.diff", data: `{"promptId":"$prompt","with":"nobody"}`, code: "not_found"},
	{command: "card.lint", data: `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","first_mes":"{{usr}}"}}`},
	{command: "card.lint", data: `42`, code: "unsupported_card"},
	{command: "ack", data: `{"seq":1,"read":{"$conv":"$note"}}`},
	{command: "ack", data: `{"seq":-1}`, code: "invalid_field"},
	{command: "ack", data: `{"read":{"$conv":"nobody"}}`, code: "not_found"},
	{command: "chat.delete", data: `{"conversationId":"$conv"}`},
	{command: "chat.delete", data: `{"conversationId":"$conv"}`, code: "not_found"},
	{command: "chat.delete", data: `{"conversationId":"$conv","purge":true}`},
	{command: "chat.delete", data: `{"conversationId":"$conv","purge":true}`, code: "not_found"},

	{command: "chat.create", data: `{"characterId":"$char","title":"Tea"}`, keep: kept{"tea": "id", "welcome": "headId"}},
	{command: "chat.create", data: `{"characterId":"nobody"}`, code: "not_found"},
	{command: "chat.create", data: `{"characterId":"$char","colour":"red"}`, code: "invalid_field"},
	{command: "chat.create", data: `{"characterId":"$char","title":7}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"$tea","text":"Hello","clientMsgId":"mine","reply":false}`, keep: kept{"said": "userMessage.id"}},
	{command: "chat.send", data: `{"conversationId":"$tea","text":""}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"$tea","text":"` + longText + `"}`, code: "too_large"},
	{command: "chat.send", data: `{"conversationId":"$tea","text":"Hi","options":{"temperature":7}}`, code: "invalid_field"},
	{command: "chat.send", data: `{"conversationId":"nobody","text":"Hi"}`, code: "not_found"},
	{command: "message.edit", data: `{"messageId":"$said","text":"Hello there"}`},
	{command: "message.edit", data: `{"messageId":"$said","text":"Late","ifRev":1}`, code: "conflict"},
	{command: "message.edit", data: `{"messageId":"$said","text":"x","mode":"odd"}`, code: "invalid_field"},
	{command: "message.hide", data: `{"messageId":"$said","hidden":true}`},
	{command: "message.hide", data: `{"messageId":"$said","hidden":false}`},
	{command: "message.hide", data: `{"messageId":"$said"}`, code: "invalid_field"},
	{command: "message.hide", data: `{"messageId":"nobody","hidden":true}`, code: "not_found"},
	{command: "message.edit", data: `{"messageId":"$said","text":"Other words","mode":"branch"}`, keep: kept{"other": "message.id"}},
	{command: "message.edit", data: `{"messageId":"$welcome","text":"Well met","regenerate":true}`, code: "invalid_field"},
	{command: "chat.branches", data: `{"conversationId":"$tea"}`},
	{command: "chat.branches", data: `{"conversationId":"nobody"}`, code: "not_found"},
	{command: "chat.tree", data: `{"conversationId":"nobody"}`, code: "not_found"},
	{command: "chat.head", data: `{"conversationId":"$tea","messageId":"$said"}`},
	{command: "chat.head", data: `{"conversationId":"$tea","messageId":"$welcome","toEnd":true}`},
	{command: "chat.head", data: `{"conversationId":"$tea","messageId":"nobody","toEnd":true}`, code: "not_found"},
	{command: "chat.head", data: `{"conversationId":"$tea","messageId":"nobody"}`, code: "not_found"},
	{command: "chat.history", data: `{"conversationId":"$tea","limit":1}`},
	{command: "chat.history", data: `{"conversationId":"$tea","limit":201}`, code: "invalid_field"},
	{command: "chat.history", data: `{"conversationId":"$tea","before":"$said"}`},
	{command: "chat.history", data: `{"conversationId":"$tea","after":"$welcome","limit":1}`},
	{command: "chat.history", data: `{"conversationId":"$tea","after":"$other"}`, code: "not_found"}, // on another branch
	{command: "chat.history", data: `{"conversationId":"$tea","after":"$welcome","before":"$said"}`, code: "invalid_field"},
	{command: "message.swipe", data: `{"messageId":"$welcome","swipe":"nonsense"}`, code: "not_found"},
	{command: "chat.update", data: `{"conversationId":"$tea","title":"Coffee"}`},
	{command: "chat.update", data: `{"conversationId":"$tea","title":"Late","ifVersion":1}`, code: "precondition_failed"},
	{command: "message.delete", data: `{"messageId":"$said","scope":"one"}`},
	{command: "message.delete", data: `{"messageId":"$said","scope":"all"}`, code: "invalid_field"},
	{command: "message.restore", data: `{"messageId":"$said"}`},
	{command: "prompt.preview", data: `{"conversationId":"$tea","text":"Well?"}`},
	{command: "prompt.get", data: `{"promptId":"nobody"}`, code: "not_found"},
	{command: "prompt.diff", data: `{"promptId":"nobody"}`, code: "invalid_field"},
	{command: "chat.fork", data: `{"conversationId":"$tea","messageId":"$other","title":"Tea with milk"}`, keep: kept{"milk": "id", "milkHead": "headId"}},
	{command: "chat.fork", data: `{"conversationId":"$milk","messageId":"$said"}`, code: "not_found"},
	{command: "chat.search", data: `{"q":"other WORDS","conversationId":"$milk"}`},
	{command: "chat.search", data: `{"q":" "}`, code: "invalid_field"},
	{command: "chat.search", data: `{"q":"tea","limit":201}`, code: "invalid_field"},
	{command: "save.create", data: `{"conversationId":"$milk","description":"before the milk"}`, keep: kept{"then": "id"}},
	{command: "save.create", data: `{"conversationId":"nobody","description":"x"}`, code: "not_found"},
	{command: "save.create", data: `{"conversationId":"$milk","description":1}`, code: "invalid_field"},
	{command: "chat.reset", data: `{"conversationId":"$milk"}`},
	{command: "chat.reset", data: `{"conversationId":"nobody"}`, code: "not_found"},
	{command: "save.get", data: `{"saveId":"$then"}`},
	{command: "save.get", data: `{"saveId":"$then","limit":1}`},
	{command: "save.get", data: `{"saveId":"$then","before":"$milkHead","limit":5}`},
	{command: "save.get", data: `{"saveId":"$then","limit":0}`, code: "invalid_field"},
	{command: "save.preview", data: `{"saveId":"$then","text":"Well?"}`},
	{command: "save.preview", data: `{"saveId":"nobody"}`, code: "not_found"},
	{command: "save.restore", data: `{"saveId":"$then"}`, keep: kept{"automatic": "before.id"}},
	{command: "save.restore", data: `{"saveId":"nobody"}`, code: "not_found"},
	{command: "save.list", data: `{"conversationId":"$milk"}`},
	{command: "save.list", data: `{"conversationId":"$milk","automatic":true}`},
	{command: "save.list", data: `{"conversationId":"nobody"}`, code: "not_found"},
	{command: "save.delete", data: `{"saveId":"$then"}`},
	{command: "save.delete", data: `{"saveId":"$then"}`, code: "not_found"},
	{command: "save.get", data: `{"saveId":"$then"}`, code: "not_found"},
	{command: "card.lint", data: `{"name":"Alice","first_mes":"Hi"}`},
	{command: "gen.attach", data: `{"generationId":"nobody","off":0}`, code: "not_found"},
	{command: "ack", data: `{"seq":3,"read":{"$tea":"$said"}}`},
	{command: "chat.delete", data: `{"conversationId":"$tea"}`},
	{command: "chat.delete", data: `{"conversationId":"$tea"}`, code: "not_found"},
}

var longText = strings.Repeat("a", 32_001)

func TestBothTransportsGiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	rest, socket := h.restTransport(), h.socketTransport()
	for i, c := range transportCases {
		name := fmt.Sprintf("case %d, %s %.80s", i, c.command, c.data)
		if a, b := rest.run(t, name, c), socket.run(t, name, c); a != b {
			t.Errorf("%s:\nREST      %s\nWebSocket %s", name, a, b)
		}
		if t.Failed() {
			return // the later cases depend on this one
		}
	}
}

func TestEveryCommandHasTransportCases(t *testing.T) {
	t.Parallel()
	works, fails := map[string]bool{}, map[string]bool{}
	for _, c := range transportCases {
		works[c.command] = works[c.command] || c.code == ""
		fails[c.command] = fails[c.command] || c.code != ""
	}
	for command := range api.ByCommand() {
		if command != "typing" && (!works[command] || !fails[command]) { // typing has no REST route
			t.Errorf("%s: succeeds in a case: %v, fails in one: %v", command, works[command], fails[command])
		}
	}
}

// transport sends commands in one way, as a user of its own.
type transport struct {
	h       *testServer
	userID  string
	token   string
	ask     func(command, key, data string) (result, failure json.RawMessage, replay bool)
	ids     map[string]string // $name -> id
	aliases map[string]string // id -> name used in the comparison
	keys    int
}

func (h *testServer) newTransport(username string) *transport {
	h.t.Helper()
	u, err := h.accounts.CreateUser(context.Background(), h.user, account.NewUser{Username: username, Password: "a long enough password"})
	h.must(err)
	d := &transport{h: h, userID: u.ID, token: h.newToken(u.ID), ids: map[string]string{}, aliases: map[string]string{}}
	ch, err := h.characters.Create(context.Background(), &op.Call{UserID: u.ID}, character.Input{RoleCard: json.RawMessage(alicesCard)})
	h.must(err)
	d.ids["char"] = ch.ID
	d.ids["made"] = h.newChatOf(u.ID) // a second conversation, with a summary
	d.ids["summary"] = h.makeSummaryAs(u.ID, d.ids["made"])
	return d
}

// run runs one case, checks what must hold on every transport, and returns the
// result in a form that can be compared.
func (d *transport) run(t *testing.T, name string, c transportCase) string {
	t.Helper()
	data := c.data
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(d.ids))) { // $prompt2 before $prompt
		data = strings.ReplaceAll(data, "$"+id, d.ids[id])
	}
	key := c.key
	if key == "" {
		d.keys++
		key = fmt.Sprintf("transport-%d", d.keys)
	}
	result, failure, replay := d.ask(c.command, key, data)
	for end := time.Now().Add(testTimeout); c.embedded && !strings.Contains(string(result), `"spelling"`) && time.Now().Before(end); {
		<-time.After(20 * time.Millisecond)
		result, failure, replay = d.ask(c.command, key, data)
	}
	if replay != c.replay {
		t.Errorf("%s: replay %v, want %v", name, replay, c.replay)
	}
	var f struct{ Code string }
	if failure != nil {
		d.h.must(json.Unmarshal(failure, &f))
	}
	if f.Code != c.code {
		t.Errorf("%s: %s, want %q", name, failure, c.code)
	}
	var started struct{ GenerationID string }
	if json.Unmarshal(api.OrObject(result), &started) == nil && started.GenerationID != "" {
		_, err := d.h.engine.Wait(context.Background(), d.userID, started.GenerationID) // the next case needs its end
		d.h.must(err)
	}
	if len(c.keep) > 0 && c.code == "" {
		var answer map[string]any
		d.h.must(json.Unmarshal(result, &answer))
		keepIDs(t, c.keep, answer, d.ids)
	}
	return fmt.Sprintf("%s %s %v", d.normalize(result), d.normalize(failure), replay)
}

func keepIDs(t *testing.T, keeps map[string]string, answer map[string]any, names map[string]string) {
	t.Helper()
	for name, path := range keeps {
		var v any = answer
		for _, member := range strings.Split(path, ".") {
			object, _ := v.(map[string]any)
			v = object[member]
		}
		id, ok := v.(string)
		if !ok || id == "" {
			t.Fatalf("no %s in %v", path, answer)
		}
		names[name] = id
	}
}

var (
	idPattern   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	agePattern  = regexp.MustCompile(`"timestamp": ?\d{13}`)
	tookPattern = regexp.MustCompile(`("(?:accepted|asked|committed|firstToken|lastToken)":)\d+|("(?:gather|build|took)":)\[\d+,\d+\]`)
	hashPattern = regexp.MustCompile(`"(hash|digest)": ?"[0-9a-f]+"`)
)

// normalize numbers ids in order of appearance and removes what must differ:
// times, the request id, and type, which only REST has.
func (d *transport) normalize(doc json.RawMessage) string {
	var v map[string]any
	if doc == nil || json.Unmarshal(doc, &v) != nil {
		return string(doc)
	}
	delete(v, "requestId")
	delete(v, "type")
	text, err := json.Marshal(v) // sorted by name
	d.h.must(err)
	text = timePattern.ReplaceAll(text, []byte("TIME"))
	text = agePattern.ReplaceAll(text, []byte("MS"))
	text = tookPattern.ReplaceAll(text, []byte("$1${2}0"))
	text = hashPattern.ReplaceAll(text, []byte("HASH"))
	text = scorePattern.ReplaceAllFunc(text, rounded)
	return string(idPattern.ReplaceAllFunc(text, func(id []byte) []byte {
		if d.aliases[string(id)] == "" {
			d.aliases[string(id)] = fmt.Sprintf("ID%d", len(d.aliases)+1)
		}
		return []byte(d.aliases[string(id)])
	}))
}

// scorePattern matches scores, which depend slightly on the age of a message.
var scorePattern = regexp.MustCompile(`\d\.\d+(e-\d+)?`)

func rounded(number []byte) []byte {
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return number
	}
	return fmt.Appendf(nil, "%.3f", f)
}

func (h *testServer) socketTransport() *transport {
	d := h.newTransport("socket")
	p, _, _ := h.dial(dialOptions{token: d.token})
	p.ok("hello", "", map[string]any{"protocol": 1, "deviceId": "device"})
	d.ask = func(command, key, data string) (result, failure json.RawMessage, replay bool) {
		f := p.do(command, key, json.RawMessage(data))
		if *f.OK {
			return f.Data, nil, f.Replay
		}
		failure, err := json.Marshal(f.Error)
		h.must(err)
		return nil, failure, f.Replay
	}
	return d
}

func (h *testServer) restTransport() *transport {
	d := h.newTransport("rest")
	d.ask = func(command, key, data string) (result, failure json.RawMessage, replay bool) {
		method, path, body := h.restRequest(command, data)
		a := h.rest(method, path, body, "Authorization: Bearer "+d.token, "Idempotency-Key: "+key, "Prefer: respond-async", "X-Device-Id: device")
		replay = a.header.Get("Idempotency-Replayed") == "true"
		h.checkStatus(command, a)
		switch {
		case a.status >= 400:
			return nil, a.body, replay
		case a.status == http.StatusNoContent:
			return json.RawMessage("{}"), nil, replay
		}
		return a.body, nil, replay
	}
	return d
}

// checkStatus checks the status of a REST response, and the fields that only REST
// errors have.
func (h *testServer) checkStatus(command string, a *restResponse) {
	h.t.Helper()
	var p problem
	want := cmp.Or(h.server.ops[command].Status, http.StatusOK)
	switch {
	case a.status >= 400:
		h.must(json.Unmarshal(a.body, &p))
		want = fault.Status(p.Code)
		if p.Type != "urn:nodest:error:"+string(p.Code) || p.RequestID == "" {
			h.t.Errorf("%s: %s", command, a.body)
		}
	case command == "summary.create" || a.header.Get("Preference-Applied") != "":
		want = http.StatusAccepted
	case command == "circle.delete":
		want = http.StatusNoContent
	}
	if a.status != want {
		h.t.Errorf("%s: status %d, want %d", command, a.status, want)
	}
}

// restRequest returns the REST request that is equivalent to a command.
func (h *testServer) restRequest(command, data string) (method, path, body string) {
	o := h.server.ops[command]
	switch command {
	case "card.lint":
		return http.MethodPost, "/lint", data
	case "ack":
		return http.MethodPut, "/devices/device/ack", data
	case "memory.pin":
		o = h.server.ops["memory.edit"]
	case "summary.create":
		o = &api.SummaryLater
	}
	var members map[string]json.RawMessage
	h.must(json.Unmarshal([]byte(data), &members))
	if command == "circle.delete" {
		o = &api.Operation{Route: "DELETE /circle/posts/:postId"}
		if members["commentId"] != nil {
			o.Route += "/comments/:commentId"
		}
	}
	method, path, _ = strings.Cut(o.Route, " ")
	for _, member := range routeOf(o).params {
		var id string
		h.must(json.Unmarshal(members[member], &id))
		delete(members, member)
		path = strings.Replace(path, ":"+member, url.PathEscape(id), 1)
	}
	if method != http.MethodGet && method != http.MethodDelete {
		rest, err := json.Marshal(members)
		h.must(err)
		return method, path, string(rest)
	}
	query := url.Values{}
	for name, value := range members {
		query.Set(name, strings.Trim(string(value), `"`))
	}
	return method, path + "?" + query.Encode(), ""
}
