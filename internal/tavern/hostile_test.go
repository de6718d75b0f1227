package tavern_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/tavern"
	"nodest/store/storetest"
)

// archiveOf makes an archive with entries that the caller writes.
func archiveOf(t *testing.T, write func(z *zip.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	write(z)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func put(t *testing.T, z *zip.Writer, h *zip.FileHeader, data string) {
	t.Helper()
	w, err := z.CreateHeader(h)
	if err == nil {
		_, err = io.WriteString(w, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func linkTo(name string) *zip.FileHeader {
	h := &zip.FileHeader{Name: name}
	h.SetMode(fs.ModeSymlink | 0o777)
	return h
}

// Each bad entry is a line of the report; what is good comes in.
func TestBadEntriesAreNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t))
	good := line("Bo", false, "Hello.", "")
	huge := strings.Repeat("a", 100<<20)
	archive := archiveOf(t, func(z *zip.Writer) {
		put(t, z, &zip.FileHeader{Name: "chats/Bo/good.jsonl", Method: zip.Deflate}, good)
		put(t, z, linkTo("chats/Bo/link.jsonl"), "/etc/passwd")
		put(t, z, linkTo("characters/link.png"), "../../secret.png")
		put(t, z, &zip.FileHeader{Name: "../chats/Bo/up.jsonl"}, good)
		put(t, z, &zip.FileHeader{Name: "/chats/Bo/absolute.jsonl"}, good)
		put(t, z, &zip.FileHeader{Name: `C:\chats\Bo\drive.jsonl`}, good)
		put(t, z, &zip.FileHeader{Name: "chats/Bo/" + strings.Repeat("n", 5000) + ".jsonl"}, good)
		put(t, z, &zip.FileHeader{Name: "chats/Bo/null\x00.jsonl"}, good)
		put(t, z, &zip.FileHeader{Name: "chats/Bo/good.jsonl"}, good+good)
		put(t, z, &zip.FileHeader{Name: "chats/Bo/bomb.jsonl", Method: zip.Deflate}, huge)
		put(t, z, &zip.FileHeader{Name: "worlds/bomb.json", Method: zip.Deflate}, huge)
		put(t, z, &zip.FileHeader{Name: "worlds/deep.json"}, strings.Repeat("[", 100_000))
		put(t, z, &zip.FileHeader{Name: "worlds/nested.zip"}, "PK")
		put(t, z, &zip.FileHeader{Name: "chats/Bo/empty.jsonl"}, "")
		put(t, z, &zip.FileHeader{Name: "chats/Bo/\xb2\xe2\xca\xd4.jsonl", NonUTF8: true}, line("Bo", false, "In the characters of a country.", ""))
	})
	imp := w.imported(archive, false)
	sum := imp.Counts.Sum()
	if imp.State != jobs.Done || imp.Found != 15 || sum.Taken != 2 || sum.Taken+sum.Kept+sum.NotTaken != 15 {
		t.Errorf("%+v", imp)
	}
	page, err := w.service().Files(t.Context(), w.user, imp.ID, tavern.Filter{}, "", 50)
	w.must(err)
	for _, f := range page.Items {
		if f.Outcome == tavern.NotTaken && (f.Reason == "" || strings.Contains(f.Reason, "internal")) {
			t.Errorf("%.60s: %q", f.Path, f.Reason)
		}
		if f.Outcome == tavern.Taken && f.Path != "chats/Bo/good.jsonl" && f.Path != "chats/Bo/测试.jsonl" {
			t.Errorf("%.60q was taken", f.Path)
		}
	}
}

// liar is an archive whose directory says less than an entry has.
func liar(t *testing.T, name string, says uint32, data []byte) []byte {
	t.Helper()
	whole := archiveOf(t, func(z *zip.Writer) { put(t, z, &zip.FileHeader{Name: name, Method: zip.Deflate}, string(data)) })
	at := bytes.Index(whole, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(whole[at+24:], says)
	return whole
}

func TestWhatAnArchiveSaysOfItselfIsNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t))
	long := []byte(strings.Repeat(line("Bo", false, "Hello.", ""), 10_000))
	imp := w.imported(liar(t, "chats/Bo/liar.jsonl", 50, long), false)
	if f := w.files(imp.ID)["chats/Bo/liar.jsonl"]; f.Outcome != tavern.NotTaken || !strings.Contains(f.Reason, "damaged") {
		t.Errorf("%+v", f)
	}
	imp = w.imported(liar(t, "chats/Bo/liar.jsonl", 2<<30, long), false)
	if f := w.files(imp.ID)["chats/Bo/liar.jsonl"]; f.Outcome != tavern.NotTaken || !strings.Contains(f.Reason, "more than 64 MB") {
		t.Errorf("a chat of 2 GB: %+v", f)
	}
}

func TestArchivesThatAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t))
	many := archiveOf(t, func(z *zip.Writer) {
		for i := range 200_001 {
			put(t, z, &zip.FileHeader{Name: fmt.Sprintf("chats/a/%d.jsonl", i)}, "")
		}
	})
	damaged := archiveOf(t, func(z *zip.Writer) { put(t, z, &zip.FileHeader{Name: "chats/a/b.jsonl"}, "x") })
	damaged = damaged[:len(damaged)-10]
	for name, tt := range map[string]struct {
		archive []byte
		code    fault.Code
	}{
		"too many files": {many, fault.TooLarge},
		"damaged":        {damaged, fault.UnsupportedMedia},
		"no archive":     {[]byte("hello"), fault.UnsupportedMedia},
		"empty":          {nil, fault.UnsupportedMedia},
		"no folder":      {archiveOf(t, func(z *zip.Writer) { put(t, z, &zip.FileHeader{Name: "a/b.txt"}, "x") }), fault.InvalidImport},
	} {
		_, err := w.send(tt.archive, false)
		if !fault.Is(err, tt.code) {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
	if page, err := w.service().List(t.Context(), w.user, "", 0); err != nil || len(page.Items) != 0 {
		t.Errorf("%v imports are there, %v", page, err)
	}
}
