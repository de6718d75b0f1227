package tavern_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"nodest/internal/tavern/taverntest"
	"nodest/nodest/nodesttest"
)

// live is how much the heap has without garbage.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// mostLive is the most that the heap has while something runs.
func mostLive(do func()) (most uint64) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	for {
		select {
		case <-done:
			return most
		default:
			most = max(most, live())
		}
	}
}

// muchIn imports a long chat and large cards, and returns the size of the chat.
func (m *mover) muchIn() int {
	long := strings.Repeat("It rains on the harbour, and on. ", 40)
	lines := make([]string, 15_000)
	for i := range lines {
		lines[i] = chatLine("Made 000", fmt.Sprint(i, " ", long), i%2 == 1, "")
	}
	files := taverntest.Files{
		"characters/Made 000.png": taverntest.Card("Made 000", "A guide.", ""),
		"chats/Made 000/a.jsonl":  chatLog(`{}`, lines...),
	}
	for i := range 30 {
		files[fmt.Sprintf("characters/Large %d.png", i)] = taverntest.Card(fmt.Sprint("Large ", i), strings.Repeat(long, 200), "")
	}
	m.in(nodesttest.Ann, files)
	return len(files["chats/Made 000/a.jsonl"])
}

// The memory of an export does not grow with a chat, nor with the number of cards.
func TestAnExportHoldsOneThingAtATime(t *testing.T) {
	m := newMover(t)
	size := m.muchIn()
	before, out := live(), 0
	most := mostLive(func() {
		count := writerFunc(func(p []byte) (int, error) { out += len(p); return len(p), nil })
		if err := m.Export(t.Context(), nodesttest.Ann, count); err != nil {
			t.Error(err)
		}
	})
	grown := int64(most) - int64(before) //nolint:gosec // far from the limits
	t.Logf("a chat of %d bytes, %d bytes written, the heap has grown by %d bytes", size, out, grown)
	if grown > 12<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
