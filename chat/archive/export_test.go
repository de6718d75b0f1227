package archive_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/nodest/nodesttest"
)

// heapMeter notes the highest number of bytes that live in memory while it is written to.
type heapMeter struct {
	written, next, step int
	peak                uint64
}

func (m *heapMeter) Write(p []byte) (int, error) {
	if m.written += len(p); m.written >= m.next {
		m.next = m.written + m.step
		m.peak = max(m.peak, livingBytes())
	}
	return len(p), nil
}

func livingBytes() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestAnExportHoldsAPartOfAConversationInMemory exports many texts, and many messages.
func TestAnExportHoldsAPartOfAConversationInMemory(t *testing.T) {
	t.Run("texts", func(t *testing.T) { testExportMemory(t, 8<<10, 100, 400, 1<<20) })
	t.Run("messages", func(t *testing.T) { testExportMemory(t, 50, 500, 5000, 400<<10) })
}

// testExportMemory exports conversations of few and of many messages with some bytes of text each,
// for which more may be held in memory.
func testExportMemory(t *testing.T, text, few, many int, more uint64) {
	h := nodesttest.NewWithoutModel(t)
	own, _ := h.NewChat(t, 1)
	needs := map[string][]uint64{}
	for _, n := range []int{few, many} {
		var log bytes.Buffer
		log.WriteString(`{"user_name":"unused","character_name":"unused"}` + "\n")
		for i := range n {
			fmt.Fprintf(&log, `{"name":"Ann","is_user":%t,"mes":"%d %s"}`+"\n", i%2 == 0, i, strings.Repeat("word ", text/5))
		}
		got, err := h.Archives.ImportChat(t.Context(), h.Call(), own.CharacterID, log.Bytes(), "log.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		conv := got.Conversation.ID
		save, err := h.Chats.CreateSave(t.Context(), h.Call(), chat.SaveInput{ConversationID: conv})
		if err != nil {
			t.Fatal(err)
		}
		for name, export := range map[string]func(io.Writer) (string, error){
			"log": func(w io.Writer) (string, error) { return h.Archives.ExportChat(t.Context(), nodesttest.Ann, conv, w) },
			"archive": func(w io.Writer) (string, error) {
				return h.Archives.ExportArchive(t.Context(), nodesttest.Ann, conv, w)
			},
			"save": func(w io.Writer) (string, error) {
				return h.Archives.ExportSave(t.Context(), nodesttest.Ann, save.ID, w)
			},
		} {
			m := &heapMeter{step: n * text / 8}
			livingBytes() // a second collection frees what pools have kept
			before := livingBytes()
			if _, err := export(m); err != nil {
				t.Fatal(err)
			}
			if m.written < n*text {
				t.Fatalf("%s: %d bytes written of %d messages", name, m.written, n)
			}
			needs[name] = append(needs[name], m.peak-min(m.peak, before))
		}
	}
	for name, need := range needs {
		t.Logf("%s: %d and %d bytes", name, need[0], need[1])
		if need[1] > need[0]+more {
			t.Errorf("%s: an export of %d messages instead of %d holds %d bytes instead of %d", name, many, few, need[1], need[0])
		}
	}
}
