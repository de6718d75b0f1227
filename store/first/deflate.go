package first

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
)

// Summaries were deflated with a dictionary, without the bytes of their ids: the number of the
// dictionary, the length of the ids, these, and the deflated rest, in which a mark stands for each.
// An id that begins like the one before it has only its end there, behind the number of bytes
// that are left out.
const (
	textNumber = 4

	idMarks   = "\x02\x03"
	madeID    = 3 // mark of an id whose last five bytes are zero, and left out
	madeBytes = 11

	maxText = 128 << 20 // bytes of a text
)

var errDeflated = errors.New("a text with an unknown dictionary, or a damaged one")

// inflate returns the text of which a summary was made.
func inflate(stored []byte) (string, error) {
	if len(stored) == 0 || stored[0] != textNumber {
		return "", errDeflated
	}
	size, n := binary.Uvarint(stored[1:])
	if n <= 0 || size > uint64(len(stored)-1-n) { //nolint:gosec // not below 0
		return "", errDeflated
	}
	ids, rest := stored[1+n:][:size], stored[1+n:][size:]
	text, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(bytes.NewReader(rest), []byte(textWords)), maxText))
	if err != nil {
		return "", fmt.Errorf("inflate a text: %w", err)
	}
	return putIDs(text, ids)
}

// putIDs puts the ids to their marks.
func putIDs(text, ids []byte) (string, error) {
	whole := make([]byte, 0, len(text)+4*len(ids))
	for last := []byte(nil); ; {
		i := bytes.IndexAny(text, idMarks)
		if i < 0 {
			return string(append(whole, text...)), nil
		}
		size := mostID
		if text[i] == madeID {
			size = madeBytes
		}
		whole, text = append(whole, text[:i]...), text[i+1:]
		if len(ids) == 0 || int(ids[0]) > min(size, len(last)) || len(ids)-1 < size-int(ids[0]) {
			return "", errDeflated
		}
		same := int(ids[0])
		last, ids = append(last[:same:same], ids[1:1+size-same]...), ids[1+size-same:]
		whole = append(whole, idOf(last)...)
	}
}

// textWords is the dictionary: pieces of summaries and of events, the most frequent last.
const textWords = `","isMemorySummary":true,"timestamp":179,"originalMessagesRange":{"start":3,"end":},"id":"","messageIds":{"start":"","end":"","startSeq":4,"endSeq":},"count":,"generation":,"method":"llm","model":"","method":"extractive","baseId":"","digest":"` +
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
