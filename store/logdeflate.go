package store

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"nodest/store/sqldb"
)

// The entries of a row of the log are deflated with a dictionary of what events have in common; so
// are summaries and parts of prompts, which have less of it.
// Before that, ids are written as their bytes. The first byte names the dictionary: one that
// rows were written with never changes, a better one gets another number.

const logDictionary = 2

var (
	logReaders = sync.Pool{New: func() any { return flate.NewReader(nil) }}
	logWriters = sync.Pool{New: func() any {
		w, _ := flate.NewWriterDict(nil, 5, []byte(logWords)) // fails for an unknown level only
		return w
	}}
)

// deflate makes of entries, or of JSON, what is stored.
func deflate(entries string) []byte {
	packed := sqldb.PackText(entries)
	b := bytes.NewBuffer(make([]byte, 0, 128+len(packed)/4))
	b.WriteByte(logDictionary)
	w := logWriters.Get().(*flate.Writer)
	defer logWriters.Put(w)
	w.Reset(b)
	_, _ = w.Write(packed) // a buffer has no errors
	_ = w.Close()
	return b.Bytes()
}

// inflate is the reverse.
func inflate(stored []byte) (string, error) {
	if len(stored) == 0 || stored[0] != logDictionary {
		return "", fmt.Errorf("store: a text with an unknown dictionary")
	}
	r := logReaders.Get().(io.ReadCloser)
	defer logReaders.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(stored[1:]), []byte(logWords)); err != nil {
		return "", err
	}
	packed, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("store: inflate a text: %w", err)
	}
	return sqldb.UnpackText(packed), nil
}

// logWords are pieces of events, the most frequent last. \x11 to \x14 are the marks of package stream
// for the ids of an event and its time, \x03 is that of an id, whose bytes are not here.
const logWords = `memory.changed	character.created	character.updated	chat.created	save.created	message.deleted	message.restored	gen.failed	chat.read	resource.updated	","state":"","action":"created","ids":["factId":"` +
	`"error":{"code":"","status":,"title":"","detail":"","retry":"","retryAfterMs":null},"reasoning":"","blocks":[{"part":"mem","text":"","at":0}]"wish":""editedAt":""interrupted"cancelled"error"narrator"system"greeting":true,"authorId":""tools":{"calls":[` +
	`gen.references	{"kind":"regenerate{"kind":"continue","provider":"google","model":"gemini-"key","key":""dropped":[{"source":"history","reason":"budget","count":],"warnings":[""]}` +
	"chat.updated	\x03	=	=	=	{\"conversation\":{\"id\":\"\x11\",\"characterId\":\"\x03\",\"title\":\"\",\"headId\":\"\x12\",\"headId\":\"\x03\",\"settings\":{},\"archived\":false,\"tags\":[],\"version\":,\"lastMessage\":{\"id\":\"\x12\",\"lastMessage\":{\"id\":\"\x03\",\"role\":\"assistant\",\"text\":\"\",\"createdAt\":\"2026-12-T:.Z\"},\"createdAt\":\"2026-11-T:.Z\",\"updatedAt\":\"2026-11-T:.Z\"}}\n" +
	"memory.summary	=	=	=	=	{\"op\":\"created\",\"summaryId\":\"\x03\",\"range\":{\"start\":3,\"end\":},\"method\":\"extractive\"},\"method\":\"llm\"}\n" +
	"gen.started	\x03	\x03	\x03	{\"kind\":\"reply\",\"provider\":\"openai\",\"model\":\"\",\"promptId\":\"\x03\",\"budget\":{\"context\":32768,\"used\":,\"reserve\":4096}}\n" +
	"gen.context	=	=	=	=	{\"memories\":[\"\x03\"],\"profile\":[],\"lore\":[{\"id\":\"Alist\",\"name\":\"Character Attributes List\",\"why\":\"constant\"}],\"dropped\":[],\"search\":[],\"warnings\":[]}\n" +
	"message.created	\x03	\x03	=	{\"message\":{\"id\":\"\x12\",\"conversationId\":\"\x11\",\"parentId\":null,\"parentId\":\"\x03\",\"clientMsgId\":\"\",\"seq\":,\"role\":\"user\",\"name\":\"User\",\"text\":\x01\x03 t 1\x01,\"swipes\":[{\"id\":\"\x03\",\"rev\":1,\"text\":\x01\x03 t 1\x01,\"createdAt\":\"\x14\"}],\"swipeIndex\":0,\"rev\":1,\"status\":\"complete\",\"references\":[],\"memoryIds\":[],\"createdAt\":\"\x14\"}}\n" +
	"=	=	\x03	\x03	=	{\"message\":{\"id\":\"\x12\",\"conversationId\":\"\x11\",\"parentId\":\"\x03\",\"seq\":,\"role\":\"assistant\",\"name\":\"\",\"text\":\"\",\"swipes\":[],\"swipeIndex\":0,\"rev\":1,\"status\":\"pending\",\"generationId\":\"\x13\",\"references\":[],\"memoryIds\":[],\"createdAt\":\"\x14\"}}\n" +
	"message.updated	\x03	\x03	\x03	{\"message\":{\"id\":\"\x12\",\"conversationId\":\"\x11\",\"parentId\":\"\x03\",\"seq\":,\"role\":\"assistant\",\"name\":\"\",\"text\":\x01\x03 t 1\x01,\"swipes\":[{\"id\":\"\x03\",\"rev\":1,\"text\":\x01\x03 t 1\x01,\"model\":\"\",\"finish\":\"stop\",\"usage\":{\"promptTokens\":,\"completionTokens\":},\"generationId\":\"\x13\",\"createdAt\":\"\x14\"}],\"swipeIndex\":0,\"rev\":2,\"status\":\"complete\",\"generationId\":\"\x13\",\"references\":[],\"memoryIds\":[\"\x03\",\"\x03\"],\"model\":\"\",\"usage\":{\"promptTokens\":,\"completionTokens\":},\"createdAt\":\"2026-11-T:.Z\"}}\n" +
	"gen.done	=	=	=	=	{\"status\":\"done\",\"finish\":\"stop\",\"usage\":{\"promptTokens\":,\"completionTokens\":},\"ms\":{\"build\":,\"firstToken\":,\"total\":}}\n"
