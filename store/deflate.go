package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// A deflater compresses texts with a dictionary of what they have in common, without the bytes of
// their ids, which look random. The first byte of what is stored names the dictionary: one that rows
// were written with never changes, a better one gets another number. Behind it are the length of
// what takeIDs took, this, and the deflated rest.
type deflater struct {
	number           byte
	words            []byte
	readers, writers sync.Pool // with tables of several 100 KB, which are used again
}

// The entries of the log, and summaries; and prompts with their parts.
var (
	logTexts    = newDeflater(4, 5, logWords)
	promptTexts = newDeflater(3, 6, promptDictionary)
)

func newDeflater(number byte, level int, words string) *deflater {
	d := &deflater{number: number, words: []byte(words)}
	d.readers.New = func() any { return flate.NewReader(nil) }
	d.writers.New = func() any {
		w, _ := flate.NewWriterDict(nil, level, d.words) // fails for an unknown level only
		return w
	}
	return d
}

// deflate makes of a text what is stored.
func (d *deflater) deflate(text string) []byte {
	b := bytes.NewBuffer(make([]byte, 0, 128+len(text)/4))
	b.WriteByte(d.number)
	w := d.writers.Get().(*flate.Writer)
	defer d.writers.Put(w)
	w.Reset(b)
	_, _ = io.WriteString(w, text) // a buffer has no errors
	_ = w.Close()
	return b.Bytes()
}

// maxInflated bounds what a stored text may grow to when it is read, in bytes; what is beyond is
// missing.
const maxInflated = 128 << 20

var errDeflated = errors.New("store: a text with an unknown dictionary, or a damaged one")

// inflate is the reverse.
func (d *deflater) inflate(stored []byte) (string, error) {
	if len(stored) == 0 || stored[0] != d.number {
		return "", errDeflated
	}
	r := d.readers.Get().(io.ReadCloser)
	defer d.readers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(stored[1:]), d.words); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxInflated))
	if err != nil {
		return "", fmt.Errorf("store: inflate a text: %w", err)
	}
	return string(text), nil
}

// logWords are pieces of summaries and of events, the most frequent last. \x01 and \x11 to \x14 are the
// marks of package stream for what is kept in place of data, the ids of an event and its time; \x03 is that
// of an id, whose bytes are not here.
const logWords = `","isMemorySummary":true,"timestamp":179,"originalMessagesRange":{"start":3,"end":},"id":"","messageIds":{"start":"","end":"","startSeq":4,"endSeq":},"count":,"generation":,"method":"llm","model":"","method":"extractive","baseId":"","digest":"` +
	`memory.changed	character.created	character.updated	chat.created	save.created	message.deleted	message.restored	gen.failed	chat.read	resource.updated	","state":"","action":"created","ids":["factId":"` +
	`"error":{"code":"","status":,"title":"","detail":"","retry":"","retryAfterMs":null},"swipeIndex":1,"editedAt":"","status":"interrupted"cancelled"error"2026-11-` +
	`gen.references	{"kind":"regenerate{"kind":"continue","provider":"google","model":"gemini-"key","key":""dropped":[{"source":"history","reason":"budget","count":],"warnings":[""]}` +
	"chat.updated	\x03	=	=	=	\x01{\"conversation\":{\"id\":\"\x11\",\"characterId\":\"\x03\",\"title\":\"\",\"headId\":\"\x03\",\"settings\":{},\"tags\":[],\"version\":,\"lastMessage\":{\"id\":\"\x03\",\"role\":\"assistant\",\"text\":\"\",\"revisionId\":\"\x03\",\"createdAt\":\"2026-12-T:.Z\"},\"createdAt\":\"2026-11-T:.Z\",\"updatedAt\":\"\x14\"},\"size\":}\n" +
	"memory.summary	=	=	=	=	{\"op\":\"created\",\"summaryId\":\"\x03\",\"range\":{\"start\":3,\"end\":},\"method\":\"extractive\"},\"method\":\"llm\"}\n" +
	"chat.updated	\x03	=	=	=	{\"conversation\":{\"id\":\"\x11\",\"characterId\":\"\x03\",\"title\":\"\",\"headId\":\"\x03\",\"settings\":{},\"archived\":false,\"tags\":[],\"version\":,\"lastMessage\":{\"id\":\"\x03\",\"role\":\"assistant\",\"text\":\"\",\"createdAt\":\"2026-11-T:.Z\"},\"createdAt\":\"2026-11-T:.Z\",\"updatedAt\":\"\x14\"}}\nmemory.summary	=	=	=	=	{\"op\":\"created\",\"summaryId\":\"\x03\n" +
	"gen.started	\x03	\x03	\x03	{\"kind\":\"reply\",\"provider\":\"openai\",\"model\":\"\",\"promptId\":\"\x03\",\"budget\":{\"context\":32768,\"used\":,\"reserve\":4096}}\n" +
	"gen.context	=	=	=	=	{\"memories\":[\"\x03\",\"\x03\"],\"profile\":[\"\x03\"],\"profile\":[],\"lore\":[{\"id\":\"Alist\",\"name\":\"Character Attributes List\",\"why\":\"constant\"}],\"dropped\":[],\"search\":[],\"warnings\":[]}\n" +
	"message.created	\x03	\x03	=	\x01{\"rev\":1,\"status\":\"complete\",\"revisions\":[\"\x03\"],\"size\":}\n" +
	"=	=	\x03	\x03	=	\x01{\"rev\":1,\"status\":\"pending\",\"generationId\":\"\x13\"}\n" +
	"message.updated	\x03	\x03	\x03	\x01{\"rev\":2,\"status\":\"complete\",\"generationId\":\"\x13\",\"revisions\":[\"\x03\"],\"size\":}\n" +
	"gen.done	=	=	=	=	{\"status\":\"done\",\"finish\":\"stop\",\"usage\":{\"promptTokens\":,\"completionTokens\":},\"ms\":{\"build\":,\"firstToken\":,\"total\":}}\n"
