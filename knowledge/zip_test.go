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
	return newFile("all.zip", b.String())
}

func (f *fixture) unzip(in knowledge.NewFile) (names, refused []string) {
	f.Helper()
	files, why, err := f.svc.Unzip(background, f.call(), in)
	f.must(err)
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
		base := f.base("lore")
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
		f.equal("files", names, "[lore/a.md lore/deep/b.md etc/passwd win/c.txt 设定/雾渡城.md book.docx]")
		f.equal("refused", refused, "[bomb.txt old.zip]")
		got, err := f.svc.Base(background, f.user, base.ID)
		f.must(err)
		f.equal("files of the base", got.Files, 6)

		keyed := f.call()
		keyed.Key, keyed.Hash = "k", "one"
		_, _, err = f.svc.Unzip(background, keyed, archive(t, "nested.zip", "refused"))
		f.must(err)
		keyed.Hash = "two"
		_, _, err = f.svc.Unzip(background, keyed, archive(t, "nested.zip", "refused", "other.md", "theta"))
		f.wants(err, fault.KeyReused)

		again, _ := f.unzip(in)
		f.equal("again", again, names)
		page, err := f.svc.Files(background, f.user, "", "", 0)
		f.must(err)
		f.equal("all files", len(page.Items), 6)
	})
}

func TestArchivesStayWithinLimits(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		_, _, err := f.svc.Unzip(background, f.call(), newFile("a.zip", "no archive"))
		f.wants(err, fault.UnsupportedMedia)

		var many []string
		for i := range 2001 {
			many = append(many, fmt.Sprint(i), "")
		}
		_, _, err = f.svc.Unzip(background, f.call(), archive(t, many...))
		f.wants(err, fault.TooLarge)

		// A directory that lists more than is read.
		long := strings.Repeat("n", 60000)
		var huge []string
		for i := range 100 {
			huge = append(huge, fmt.Sprint(i, long), "")
		}
		_, _, err = f.svc.Unzip(background, f.call(), archive(t, huge...))
		f.wants(err, fault.TooLarge)

		// An entry that says it has 300 MiB.
		in := archive(t, "a.txt", strings.Repeat("text ", 100))
		data, err := io.ReadAll(io.NewSectionReader(in.Body, 0, in.Size))
		f.must(err)
		at := bytes.Index(data, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(data[at+24:], 300<<20)
		_, _, err = f.svc.Unzip(background, f.call(), newFile("a.zip", string(data)))
		f.wants(err, fault.TooLarge)

		// One that says it has less, and one that says it has more, than it has.
		for _, n := range []uint32{10, 600} {
			binary.LittleEndian.PutUint32(data[at+24:], n)
			names, refused := f.unzip(newFile("a.zip", string(data)))
			f.equal("files", len(names), 0)
			f.equal("refused", refused, "[a.txt]")
		}
	})
}
