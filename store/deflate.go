package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"nodest/store/sqldb"
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

// deflate makes of a text without control characters of its own, such as JSON, what is stored.
func (d *deflater) deflate(text string) []byte {
	rest, ids := takeIDs(sqldb.PackText(text))
	b := bytes.NewBuffer(make([]byte, 0, 128+len(ids)+len(rest)/4))
	b.WriteByte(d.number)
	b.Write(binary.AppendUvarint(b.AvailableBuffer(), uint64(len(ids))))
	b.Write(ids)
	w := d.writers.Get().(*flate.Writer)
	defer d.writers.Put(w)
	w.Reset(b)
	_, _ = w.Write(rest) // a buffer has no errors
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
	size, n := binary.Uvarint(stored[1:])
	if n <= 0 || size > uint64(len(stored)-1-n) { //nolint:gosec // not below 0
		return "", errDeflated
	}
	ids, rest := stored[1+n:][:size], stored[1+n:][size:]
	r := d.readers.Get().(io.ReadCloser)
	defer d.readers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(rest), d.words); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxInflated))
	if err != nil {
		return "", fmt.Errorf("store: inflate a text: %w", err)
	}
	packed, err := putIDs(text, ids)
	return sqldb.UnpackText(packed), err
}

// takeIDs takes the bytes of the ids out of a packed text, in which their marks stay. Of an id that
// begins like the one before it only the end is kept, behind the number of bytes that are left out.
func takeIDs(packed []byte) (text, ids []byte) {
	text = make([]byte, 0, len(packed))
	for last := []byte(nil); ; {
		i := bytes.IndexAny(packed, sqldb.IDMarks)
		if i < 0 {
			return append(text, packed...), ids
		}
		text, packed = append(text, packed[:i+1]...), packed[i+1:]
		id := packed[:sqldb.IDSize(text[len(text)-1])]
		same := 0
		for same < min(len(id), len(last)) && id[same] == last[same] {
			same++
		}
		ids = append(append(ids, byte(same)), id[same:]...)
		last, packed = id, packed[len(id):]
	}
}

// putIDs is the reverse.
func putIDs(text, ids []byte) (packed []byte, err error) {
	packed = make([]byte, 0, len(text)+2*len(ids))
	for last := []byte(nil); ; {
		i := bytes.IndexAny(text, sqldb.IDMarks)
		if i < 0 {
			return append(packed, text...), nil
		}
		packed, text = append(packed, text[:i+1]...), text[i+1:]
		size := sqldb.IDSize(packed[len(packed)-1])
		if len(ids) == 0 || int(ids[0]) > min(size, len(last)) || len(ids)-1 < size-int(ids[0]) {
			return nil, errDeflated
		}
		same := int(ids[0])
		packed = append(append(packed, last[:same]...), ids[1:1+size-same]...)
		last, ids = packed[len(packed)-size:], ids[1+size-same:]
	}
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
