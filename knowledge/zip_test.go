package knowledge_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/simplifiedchinese"

	"nodest/internal/fault"
	"nodest/knowledge"
	"nodest/knowledge/knowledgetest"
)

// archive makes a zip archive of names and contents.
func archive(t *testing.T, entries ...string) knowledge.NewFile {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: entries[i], Method: zip.Deflate, NonUTF8: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, entries[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return knowledgetest.NewFile("all.zip", b.String())
}

func (f *fixture) unzip(in knowledge.NewFile) (names, refused []string) {
	f.Helper()
	files, why, err := f.Svc.Unzip(background, f.Call(), in)
	f.Must(err)
	for _, file := range files {
		names = append(names, file.Name)
	}
	return names, slices.Sorted(maps.Keys(why))
}

func TestAnArchiveBecomesFilesWithItsFolders(t *testing.T) {
	t.Parallel()
	chinese, err := simplifiedchinese.GB18030.NewEncoder().String("设定/雾渡城.md")
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		base := f.Base("lore")
		in := archive(t,
			"lore/", "",
			"lore/a.md", "alpha",
			"lore/deep/b.md", "beta",
			"../../etc/passwd", "gamma",
			`win\c.txt`, "delta",
			chinese, "epsilon",
			"__MACOSX/lore/._a.md", "junk",
			"lore/.DS_Store", "junk",
			"Thumbs.db", "junk",
			"old.zip", "zeta",
			"bomb.txt", strings.Repeat("0", 3<<20),
			"book.docx", "eta",
		)
		in.BaseID = base.ID
		names, refused := f.unzip(in)
		f.Equal("files", names, "[lore/a.md lore/deep/b.md etc/passwd win/c.txt 设定/雾渡城.md book.docx]")
		f.Equal("refused", refused, "[bomb.txt old.zip]")
		got, err := f.Svc.Base(background, f.User, base.ID)
		f.Must(err)
		f.Equal("files of the base", got.Files, 6)

		keyed := f.Call()
		keyed.Key, keyed.Hash = "k", "one"
		_, _, err = f.Svc.Unzip(background, keyed, archive(t, "nested.zip", "refused"))
		f.Must(err)
		keyed.Hash = "two"
		_, _, err = f.Svc.Unzip(background, keyed, archive(t, "nested.zip", "refused", "other.md", "theta"))
		f.Wants(err, fault.KeyReused)

		again, _ := f.unzip(in)
		f.Equal("again", again, names)
		page, err := f.Svc.Files(background, f.User, "", "", 0)
		f.Must(err)
		f.Equal("all files", len(page.Items), 6)
	})
}

func TestArchivesStayWithinLimits(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		_, _, err := f.Svc.Unzip(background, f.Call(), knowledgetest.NewFile("a.zip", "no archive"))
		f.Wants(err, fault.UnsupportedMedia)

		var many []string
		for i := range 2001 {
			many = append(many, fmt.Sprint(i), "")
		}
		_, _, err = f.Svc.Unzip(background, f.Call(), archive(t, many...))
		f.Wants(err, fault.TooLarge)

		// A directory that lists more than is read.
		long := strings.Repeat("n", 60000)
		var huge []string
		for i := range 100 {
			huge = append(huge, fmt.Sprint(i, long), "")
		}
		_, _, err = f.Svc.Unzip(background, f.Call(), archive(t, huge...))
		f.Wants(err, fault.TooLarge)

		// An entry that says it has 300 MiB.
		in := archive(t, "a.txt", strings.Repeat("text ", 100))
		data, err := io.ReadAll(io.NewSectionReader(in.Body, 0, in.Size))
		f.Must(err)
		at := bytes.Index(data, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(data[at+24:], 300<<20)
		_, _, err = f.Svc.Unzip(background, f.Call(), knowledgetest.NewFile("a.zip", string(data)))
		f.Wants(err, fault.TooLarge)

		// One that says it has less, and one that says it has more, than it has.
		for _, n := range []uint32{10, 600} {
			binary.LittleEndian.PutUint32(data[at+24:], n)
			names, refused := f.unzip(knowledgetest.NewFile("a.zip", string(data)))
			f.Equal("files", len(names), 0)
			f.Equal("refused", refused, "[a.txt]")
		}
	})
}
