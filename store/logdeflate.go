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

const logDictionary = 1

var (
	logReaders = sync.Pool{New: func() any { return flate.NewReader(nil) }}
	logWriters = sync.Pool{New: func() any {
		w, _ := flate.NewWriterDict(nil, flate.BestSpeed, []byte(logWords)) // fails for an unknown level only
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

// logWords are pieces of summaries and of events, the most frequent last.
const logWords = `","isMemorySummary":true,"timestamp":179,"originalMessagesRange":{"start":3,"end":},"id":"","messageIds":{"start":"","end":"","startSeq":4,"endSeq":},"count":,"generation":,"method":"llm","model":"","method":"extractive","baseId":"","digest":"` +
	`memory.summary	memory.changed	character.created	character.updated	chat.created	save.created	message.deleted	message.restored	gen.failed	chat.read	summaryId":","state":"","action":"created","ids":["factId":"` +
	`"error":{"code":"","status":,"title":"","detail":"","retry":"","retryAfterMs":null},"reasoning":"","blocks":[{"part":"mem","text":"","at":0}]"wish":""editedAt":""interrupted"cancelled"error"narrator"system"greeting":true,"authorId":""tools":{"calls":[` +
	`chat.updated	{"conversation":{"id":"","characterId":"","title":"","headId":"","settings":{},"archived":false,"tags":[],"version":,"lastMessage":{"id":"","role":"assistant","text":"","createdAt":"2026-","updatedAt":"2026-` +
	`gen.references	gen.started	=	{"kind":"regenerate{"kind":"continue{"kind":"reply","provider":"openai","model":"gemini-","provider":"google","promptId":"","budget":{"context":32768,"used":,"reserve":4096}}` + "\n" +
	`gen.context	=	=	=	=	{"memories":[],"profile":[],"lore":[{"id":"Alist","name":"Character Attributes List","why":"key","key":""why":"constant"}],"dropped":[{"source":"history","reason":"budget","count":],"search":[],"warnings":[""]}` + "\n" +
	`message.created	message.updated	=	=	=	=	{"message":{"id":"","conversationId":"","parentId":null,"parentId":"","clientMsgId":"","seq":,"role":"user","name":"User","text":"` + "\x01 t ,\x01" + `","swipes":[{"id":"","rev":1,"text":` + "\x01 r " + `,"createdAt":"2026-11-T:.Z"}],"swipeIndex":0,"rev":1,"status":"complete","references":[],"memoryIds":[],"createdAt":"2026-` +
	`}}` + "\n" + `=	=	{"message":{"id":"","conversationId":"","parentId":"","seq":,"role":"assistant","name":"","text":"","swipes":[],"swipeIndex":0,"rev":1,"status":"pending","generationId":"","references":[],"memoryIds":[],"createdAt":"2026-` + "}}\n" +
	`","model":"","finish":"stop","usage":{"promptTokens":,"completionTokens":},"generationId":"","createdAt":"2026-}],"swipeIndex":0,"rev":2,"status":"complete","generationId":"","references":[],"memoryIds":[""],"model":"","usage":{"promptTokens":,"completionTokens":},"createdAt":"2026-` + "}}\n" +
	`gen.done	=	=	=	=	{"status":"done","finish":"stop","usage":{"promptTokens":,"completionTokens":},"ms":{"build":,"firstToken":,"total":}}` + "\n"
