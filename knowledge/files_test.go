package knowledge_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/knowledge/knowledgetest"
)

var background = context.Background()

func TestUploadStoresAFileAndItsJobAndTellsOfIt(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		file := f.Upload("lore/harbour.md", "# The harbour")
		f.Equal("name", file.Name, "lore/harbour.md")
		f.Equal("state", file.State, knowledge.Pending)
		f.Equal("access", file.Access, knowledge.AccessOwner)
		f.Equal("hash", len(file.SHA256), 64)
		f.Equal("jobs", f.jobs(file.ID), "[knowledge.ingest queued]")
		f.Equal("events", f.take(), "[file.updated]")
		got, err := f.Svc.File(background, f.User, file.ID)
		f.Must(err)
		f.Equal("stored", *got, *file)
	})
}

func TestTheSameContentIsStoredOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		first := f.Upload("a.md", "same")
		f.set(first.ID, func(file *knowledge.File) { file.State = knowledge.Ready })
		base := f.Base("lore")
		again := f.UploadTo(base.ID, "b.md", "same")
		f.Equal("duplicate", again.Duplicate, true)
		f.Equal("id", again.ID, first.ID)
		f.Equal("state", again.State, knowledge.Ready)
		files, err := f.Svc.BaseFiles(background, f.User, base.ID, "", 0)
		f.Must(err)
		f.Equal("files of the base", len(files.Items), 1)

		f.set(first.ID, func(file *knowledge.File) {
			file.State, file.Error = knowledge.Failed, &knowledge.FileError{Code: "stalled", Retryable: true}
		})
		again = f.Upload("c.md", "same")
		f.Equal("state of one that had failed", again.State, knowledge.Pending)
		f.Equal("its error", again.Error == nil, true)

		theirs := f.other().Upload("a.md", "same")
		f.Equal("another user's", theirs.Duplicate, false)
	})
}

func TestTwoUploadsOfOneContentAtOnceMakeOneFile(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		content := strings.Repeat("a line of some length\n", 1<<17) // three parts
		var wait sync.WaitGroup
		ids := make([]string, 6)
		for i := range ids {
			wait.Go(func() {
				file, err := f.Svc.Upload(background, f.Call(), knowledgetest.NewFile("a.txt", content))
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = file.ID
			})
		}
		wait.Wait()
		for _, id := range ids {
			f.Equal("id", id, ids[0])
		}
		page, err := f.Svc.Files(background, f.User, "", "", 0)
		f.Must(err)
		f.Equal("files", len(page.Items), 1)
		f.Equal("original", f.content(ids[0]) == content, true)
	})
}

func (f *fixture) content(id string) string {
	f.Helper()
	_, r, err := f.Svc.Content(background, f.User, id)
	f.Must(err)
	defer r.Close() //nolint:errcheck // nothing to lose
	data, err := io.ReadAll(r)
	f.Must(err)
	return string(data)
}

func TestAnOriginalIsReadInParts(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		content := make([]byte, 5<<19) // two parts and a half
		for i := range content {
			content[i] = byte(i * 7 >> 3)
		}
		file := f.Upload("a.bin", string(content))
		f.Equal("whole", f.content(file.ID) == string(content), true)
		_, r, err := f.Svc.Content(background, f.User, file.ID)
		f.Must(err)
		for _, at := range []int64{0, 1<<20 - 3, 1 << 20, 2<<20 - 1, int64(len(content)) - 2, int64(len(content))} {
			_, err := r.Seek(at, io.SeekStart)
			f.Must(err)
			got := make([]byte, 5)
			n, err := io.ReadFull(r, got)
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				f.Fatal(err)
			}
			f.Equal("bytes", bytes.Equal(got[:n], content[at:min(int(at)+5, len(content))]), true)
		}
		_, err = r.Seek(-1, io.SeekStart)
		f.Equal("before the start", err != nil, true)
		end, err := r.Seek(0, io.SeekEnd)
		f.Must(err)
		f.Equal("end", end, len(content))
		f.Must(f.Svc.DeleteFile(background, f.Call(), file.ID))
		_, err = r.Seek(0, io.SeekStart)
		f.Must(err)
		_, err = r.Read(make([]byte, 1))
		f.Wants(err, fault.NotFound)

		empty := f.Upload("empty.txt", "")
		f.Equal("empty", f.content(empty.ID), "")
	})
}

func TestUploadsStayWithinLimits(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{MaxFile: 10, MaxFiles: 3, MaxBytes: 20}, func(f *fixture) {
		_, err := f.Svc.Upload(background, f.Call(), knowledgetest.NewFile("a", "01234567890"))
		f.Wants(err, fault.TooLarge)
		f.Upload("a", "0123456789")
		f.Upload("b", "012345678")
		_, err = f.Svc.Upload(background, f.Call(), knowledgetest.NewFile("c", "01"))
		f.Wants(err, fault.TooLarge)
		f.Upload("c", "0")
		_, err = f.Svc.Upload(background, f.Call(), knowledgetest.NewFile("d", ""))
		f.Wants(err, fault.TooLarge)
		f.other().Upload("a", "0123456789")
	})
}

func TestAShortBodyIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		in := knowledgetest.NewFile("a", "short")
		in.Size = 10
		_, err := f.Svc.Upload(background, f.Call(), in)
		f.Wants(err, fault.BadRequest)
	})
}

func TestARepeatedCallHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		call := func() *op.Call { return &op.Call{UserID: f.User, Key: "k", Hash: "h"} }
		first, err := f.Svc.Upload(background, call(), knowledgetest.NewFile("a", "text"))
		f.Must(err)
		f.Must(f.Svc.DeleteFile(background, f.Call(), first.ID))
		c := call()
		again, err := f.Svc.Upload(background, c, knowledgetest.NewFile("a", "text"))
		f.Must(err)
		f.Equal("replayed", c.Replayed, true)
		f.Equal("id", again.ID, first.ID)
		page, err := f.Svc.Files(background, f.User, "", "", 0)
		f.Must(err)
		f.Equal("files", len(page.Items), 0)
	})
}

func TestReplaceKeepsWhatIsSearched(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		file := f.Upload("a.md", "old")
		other := f.Upload("b.md", "other")
		f.set(file.ID, func(file *knowledge.File) {
			file.State, file.Edition, file.LastEdition, file.Chunks = knowledge.Ready, 1, 1, 5
		})
		_, err := f.Svc.Replace(background, f.Call(), file.ID, 7, knowledgetest.NewFile("", "new"))
		f.Wants(err, fault.PreconditionFailed)
		_, err = f.Svc.Replace(background, f.Call(), file.ID, 0, knowledgetest.NewFile("", "other"))
		f.Wants(err, fault.Conflict)
		f.Equal("the other one", f.content(other.ID), "other")

		f.Clock.Add(1000)
		next, err := f.Svc.Replace(background, f.Call(), file.ID, 1, knowledgetest.NewFile("c.md", "new"))
		f.Must(err)
		f.Equal("version", next.Version, 2)
		f.Equal("name", next.Name, "c.md")
		f.Equal("state", next.State, knowledge.Pending)
		f.Equal("edition", next.Edition, 1)
		f.Equal("changed", next.UpdatedAt.Sub(next.CreatedAt), time.Second)
		f.Equal("content", f.content(file.ID), "new")

		f.set(file.ID, func(file *knowledge.File) { file.State = knowledge.Ready })
		same, err := f.Svc.Replace(background, f.Call(), file.ID, 0, knowledgetest.NewFile("", "new"))
		f.Must(err)
		f.Equal("unchanged", same.Version, 2)
		f.Equal("its state", same.State, knowledge.Ready)
		f.Equal("content", f.content(file.ID), "new")

		named, err := f.Svc.Replace(background, f.Call(), file.ID, 0, knowledgetest.NewFile("d.md", "new"))
		f.Must(err)
		f.Equal("renamed", named.Version, 3)
		f.Equal("content", f.content(file.ID), "new")
	})
}

func TestOnlyAFileThatHasFailedIsRetried(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		file := f.Upload("a.md", "text")
		for _, state := range []string{knowledge.Pending, knowledge.Parsing, knowledge.Chunking, knowledge.Embedding, knowledge.Ready} {
			f.set(file.ID, func(file *knowledge.File) { file.State = state })
			_, err := f.Svc.Retry(background, f.Call(), file.ID)
			f.Wants(err, fault.Conflict)
		}
		f.set(file.ID, func(file *knowledge.File) {
			file.State, file.Error = knowledge.Failed, &knowledge.FileError{Code: "parse_timeout"}
		})
		got, err := f.Svc.Retry(background, f.Call(), file.ID)
		f.Must(err)
		f.Equal("state", got.State, knowledge.Pending)
		f.Equal("version", got.Version, 1)
	})
}

func TestADeletedFileIsGoneAtOnceAndPurgedLater(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		base, character := f.Base("lore"), f.Character()
		file := f.UploadTo(base.ID, "a.md", strings.Repeat("text", 1<<20))
		_, err := f.Svc.BindFile(background, f.Call(), character, file.ID, nil, nil)
		f.Must(err)
		f.take()
		f.Must(f.Svc.DeleteFile(background, f.Call(), file.ID))
		_, err = f.Svc.File(background, f.User, file.ID)
		f.Wants(err, fault.NotFound)
		bound, err := f.Svc.Bound(background, f.User, character)
		f.Must(err)
		f.Equal("bound files", len(bound.Files), 0)
		names, err := f.allowed(knowledge.Scope{FilesOnly: true})
		f.Must(err)
		f.Equal("allowed", names, "[]")
		f.Equal("jobs", f.jobs(file.ID), "[knowledge.ingest cancelled]")
		f.Equal("purge", f.jobs("all"), "[knowledge.purge queued]")
		f.Equal("events", f.take(), "[file.deleted]")
		f.Wants(f.Svc.DeleteFile(background, f.Call(), file.ID), fault.NotFound)

		f.purge()
		f.Upload("a.md", "text") // the content can come again
	})
}
