package server

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// whileFull runs f while the user's memory is used up, and checks that f waits for it.
func (h *testServer) whileFull(f func()) {
	h.t.Helper()
	who, all := holder{user: h.user.ID}, h.server.memory.each-mib
	h.must(h.server.memory.take(h.t.Context(), who, all, false))
	done := make(chan bool)
	go func() {
		defer close(done)
		f()
	}()
	h.eventually("it waits", func() bool {
		h.server.memory.mu.Lock()
		defer h.server.memory.mu.Unlock()
		return h.server.memory.freed != nil
	})
	h.server.memory.give(who, all)
	await(h.t, done, "the end")
	h.wantNothingHeld()
}

// A card of a few KiB can contain as many values as one of many MiB.
func TestTheValuesOfAPackedCardAreCounted(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	var text bytes.Buffer
	text.WriteString("zTXtchara\x00\x00")
	packed := zlib.NewWriter(&text)
	_, err := packed.Write([]byte(`{"spec":"chara_card_v2","data":{"name":"Ada","extensions":{"x":[` + strings.Repeat("{},", 50_000) + `{}]}}}`))
	h.must(err)
	h.must(packed.Close())
	chunk := binary.BigEndian.AppendUint32(nil, uint32(text.Len()-4))
	chunk = binary.BigEndian.AppendUint32(append(chunk, text.Bytes()...), crc32.ChecksumIEEE(text.Bytes()))
	end := len(onePixel) - 12
	card := append(append(append([]byte{}, onePixel[:end]...), chunk...), onePixel[end:]...)
	for path, status := range map[string]int{"/characters/import": 201, "/import": 201, "/lint": 200} {
		h.whileFull(func() {
			if got := h.upload("POST", path, "ada.png", card); got.status != status {
				t.Errorf("%s of %d bytes: %d %s", path, len(card), got.status, got.body)
			}
		})
	}
}

// A page takes some MiB while it is made, over either transport.
func TestPagesAreCountedWhileTheyAreMade(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(nil)
	h.whileFull(func() {
		id := p.send("chat.history", "", map[string]any{"conversationId": chat})
		h.rest("GET", "/conversations/"+chat, "").wants(t, 200) // takes little
		if f := p.answer(id); !*f.OK {
			t.Errorf("%+v", f.Error)
		}
	})
	h.whileFull(func() { h.rest("GET", "/conversations/"+chat+"/messages", "").wants(t, 200) })

	// Lists continue while a large import of the user fills all but the user's own reserve.
	m := &h.server.memory
	large := &hold{s: h.server, g: m, who: holder{user: h.user.ID}}
	h.must(large.take(t.Context(), m.all))
	p.ok("chat.history", "", map[string]any{"conversationId": chat})
	large.release()

	// They also continue while large requests of others fill all but the reserve.
	for name := range strings.FieldsSeq("a b") {
		if n := m.all / 8 * 3; !m.try(holder{user: name}, n) {
			t.Fatal("no room")
		}
	}
	p.ok("chat.history", "", map[string]any{"conversationId": chat})
}

// Files that are unpacked take more memory while they hold some. Those of one user must not
// wait for each other until all of them are refused.
func TestPackedFilesOfAUserDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{opts: Options{TempDir: t.TempDir()}}
		s.memory = gate{all: 32 * mib, each: 16 * mib}
		s.disk = gate{all: 64 * mib, each: 64 * mib}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				h := &hold{s: s, g: &s.memory, who: holder{user: "ann"}}
				defer h.release()
				file := &spill{memory: h, disk: hold{s: s, g: &s.disk, who: h.who}}
				defer file.drop()
				_, err := file.Write(append([]byte("PK\x03\x04"), make([]byte, largeBody)...))
				if err == nil {
					_, err = file.load(t.Context())
				}
				for range 4 {
					<-time.After(time.Millisecond) // unpacking
					if err == nil {
						err = h.take(t.Context(), 2*mib)
					}
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(s.memory.turns) > 0 || s.memory.inUse() > 0 {
			t.Errorf("%v, %d bytes are not given back", s.memory.turns, s.memory.inUse())
		}
	})
}

// Requests that may keep a processor busy run one after the other for each user: large documents that
// are read, stored, tested or checked, and prompts that are only shown. Others do not wait for them.
func TestLargeDocumentsOfAUserAreWorkedOnOneAfterTheOther(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	book := func(bytes int) string {
		return `{"document":{"entries":{},"x":"` + strings.Repeat("b", bytes) + `"}}`
	}
	const test = `{"document":{"entries":{}},"messages":[{"role":"user","text":"x"}]}`
	const large = largeBody + largeBody/8
	id := stringAt(h.rest("POST", "/worldbooks", book(large)).wants(t, 201), "id")
	tom := h.newMember("tom")
	character := h.newCharacter()
	for name, request := range map[string]func() int{
		"a document is read":    func() int { return h.rest("GET", "/worldbooks/"+id, "").status },
		"a large one is stored": func() int { return h.rest("PUT", "/worldbooks/"+id, book(large)).status },
		"a large one is checked": func() int {
			return h.rest("POST", "/lint", `{"name":"Ada","description":"`+strings.Repeat("d", large)+`"}`).status
		},
		"a book is tested": func() int {
			return h.rest("POST", "/worldbooks/test", test).status
		},
		"a prompt is only shown": func() int { return h.rest("POST", "/conversations/"+chat+"/prompt", `{"text":"hello"}`).status },
		"memories may be removed": func() int {
			return h.rest("POST", "/characters/"+character+"/memories/forget", `{"query":"x","dryRun":true}`).status
		},
	} {
		t.Run(name, func(t *testing.T) {
			other := &hold{s: h.server, g: &h.server.memory, who: holder{user: h.user.ID}}
			h.must(other.takeTurn(t.Context(), name == "a document is read"))
			done := make(chan int, 1)
			go func() { done <- request() }()
			h.eventually("it waits", func() bool {
				h.server.memory.mu.Lock()
				defer h.server.memory.mu.Unlock()
				return h.server.memory.freed != nil
			})
			h.rest("PUT", "/worldbooks/"+id, book(9)).wants(t, 200)
			h.as(tom, func() { h.rest("POST", "/worldbooks/test", test).wants(t, 200) })
			other.release()
			if status := await(t, done, "the answer"); status != 200 {
				t.Errorf("status %d", status)
			}
			h.wantNothingHeld()
		})
	}
}
