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
)

var background = context.Background()

func TestUploadStoresAFileAndItsJobAndTellsOfIt(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		file := f.upload("lore/harbour.md", "# The harbour")
		f.equal("name", file.Name, "lore/harbour.md")
		f.equal("state", file.State, knowledge.Pending)
		f.equal("access", file.Access, knowledge.AccessOwner)
		f.equal("hash", len(file.SHA256), 64)
		f.equal("jobs", f.jobs(file.ID), "[knowledge.ingest queued]")
		f.equal("events", f.take(), "[file.updated]")
		got, err := f.svc.File(background, f.user, file.ID)
		f.must(err)
		f.equal("stored", *got, *file)
	})
}

func TestTheSameContentIsStoredOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		first := f.upload("a.md", "same")
		f.set(first.ID, func(file *knowledge.File) { file.State = knowledge.Ready })
		base := f.base("lore")
		again := f.uploadTo(base.ID, "b.md", "same")
		f.equal("duplicate", again.Duplicate, true)
		f.equal("id", again.ID, first.ID)
		f.equal("state", again.State, knowledge.Ready)
		files, err := f.svc.BaseFiles(background, f.user, base.ID, "", 0)
		f.must(err)
		f.equal("files of the base", len(files.Items), 1)

		f.set(first.ID, func(file *knowledge.File) {
			file.State, file.Error = knowledge.Failed, &knowledge.FileError{Code: "stalled", Retryable: true}
		})
		again = f.upload("c.md", "same")
		f.equal("state of one that had failed", again.State, knowledge.Pending)
		f.equal("its error", again.Error == nil, true)

		theirs := f.other().upload("a.md", "same")
		f.equal("another user's", theirs.Duplicate, false)
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
				file, err := f.svc.Upload(background, f.call(), newFile("a.txt", content))
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = file.ID
			})
		}
		wait.Wait()
		for _, id := range ids {
			f.equal("id", id, ids[0])
		}
		page, err := f.svc.Files(background, f.user, "", "", 0)
		f.must(err)
		f.equal("files", len(page.Items), 1)
		f.equal("original", f.content(ids[0]) == content, true)
	})
}

func (f *fixture) content(id string) string {
	f.Helper()
	_, r, err := f.svc.Content(background, f.user, id)
	f.must(err)
	defer r.Close() //nolint:errcheck // nothing to lose
	data, err := io.ReadAll(r)
	f.must(err)
	return string(data)
}

func TestAnOriginalIsReadInParts(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		content := make([]byte, 5<<19) // two parts and a half
		for i := range content {
			content[i] = byte(i * 7 >> 3)
		}
		file := f.upload("a.bin", string(content))
		f.equal("whole", f.content(file.ID) == string(content), true)
		_, r, err := f.svc.Content(background, f.user, file.ID)
		f.must(err)
		for _, at := range []int64{0, 1<<20 - 3, 1 << 20, 2<<20 - 1, int64(len(content)) - 2, int64(len(content))} {
			_, err := r.Seek(at, io.SeekStart)
			f.must(err)
			got := make([]byte, 5)
			n, err := io.ReadFull(r, got)
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				f.Fatal(err)
			}
			f.equal("bytes", bytes.Equal(got[:n], content[at:min(int(at)+5, len(content))]), true)
		}
		_, err = r.Seek(-1, io.SeekStart)
		f.equal("before the start", err != nil, true)
		end, err := r.Seek(0, io.SeekEnd)
		f.must(err)
		f.equal("end", end, len(content))
		f.must(f.svc.DeleteFile(background, f.call(), file.ID))
		_, err = r.Seek(0, io.SeekStart)
		f.must(err)
		_, err = r.Read(make([]byte, 1))
		f.wants(err, fault.NotFound)

		empty := f.upload("empty.txt", "")
		f.equal("empty", f.content(empty.ID), "")
	})
}

func TestUploadsStayWithinLimits(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{MaxFile: 10, MaxFiles: 3, MaxBytes: 20}, func(f *fixture) {
		_, err := f.svc.Upload(background, f.call(), newFile("a", "01234567890"))
		f.wants(err, fault.TooLarge)
		f.upload("a", "0123456789")
		f.upload("b", "012345678")
		_, err = f.svc.Upload(background, f.call(), newFile("c", "01"))
		f.wants(err, fault.TooLarge)
		f.upload("c", "0")
		_, err = f.svc.Upload(background, f.call(), newFile("d", ""))
		f.wants(err, fault.TooLarge)
		f.other().upload("a", "0123456789")
	})
}

func TestAShortBodyIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		in := newFile("a", "short")
		in.Size = 10
		_, err := f.svc.Upload(background, f.call(), in)
		f.wants(err, fault.BadRequest)
	})
}

func TestARepeatedCallHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		call := func() *op.Call { return &op.Call{UserID: f.user, Key: "k", Hash: "h"} }
		first, err := f.svc.Upload(background, call(), newFile("a", "text"))
		f.must(err)
		f.must(f.svc.DeleteFile(background, f.call(), first.ID))
		c := call()
		again, err := f.svc.Upload(background, c, newFile("a", "text"))
		f.must(err)
		f.equal("replayed", c.Replayed, true)
		f.equal("id", again.ID, first.ID)
		page, err := f.svc.Files(background, f.user, "", "", 0)
		f.must(err)
		f.equal("files", len(page.Items), 0)
	})
}

func TestReplaceKeepsWhatIsSearched(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		file := f.upload("a.md", "old")
		other := f.upload("b.md", "other")
		f.set(file.ID, func(file *knowledge.File) {
			file.State, file.Edition, file.LastEdition, file.Chunks = knowledge.Ready, 1, 1, 5
		})
		_, err := f.svc.Replace(background, f.call(), file.ID, 7, newFile("", "new"))
		f.wants(err, fault.PreconditionFailed)
		_, err = f.svc.Replace(background, f.call(), file.ID, 0, newFile("", "other"))
		f.wants(err, fault.Conflict)
		f.equal("the other one", f.content(other.ID), "other")

		f.clock.Add(1000)
		next, err := f.svc.Replace(background, f.call(), file.ID, 1, newFile("c.md", "new"))
		f.must(err)
		f.equal("version", next.Version, 2)
		f.equal("name", next.Name, "c.md")
		f.equal("state", next.State, knowledge.Pending)
		f.equal("edition", next.Edition, 1)
		f.equal("changed", next.UpdatedAt.Sub(next.CreatedAt), time.Second)
		f.equal("content", f.content(file.ID), "new")

		f.set(file.ID, func(file *knowledge.File) { file.State = knowledge.Ready })
		same, err := f.svc.Replace(background, f.call(), file.ID, 0, newFile("", "new"))
		f.must(err)
		f.equal("unchanged", same.Version, 2)
		f.equal("its state", same.State, knowledge.Ready)
		f.equal("content", f.content(file.ID), "new")

		named, err := f.svc.Replace(background, f.call(), file.ID, 0, newFile("d.md", "new"))
		f.must(err)
		f.equal("renamed", named.Version, 3)
		f.equal("content", f.content(file.ID), "new")
	})
}

func TestOnlyAFileThatHasFailedIsRetried(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		file := f.upload("a.md", "text")
		for _, state := range []string{knowledge.Pending, knowledge.Parsing, knowledge.Chunking, knowledge.Embedding, knowledge.Ready} {
			f.set(file.ID, func(file *knowledge.File) { file.State = state })
			_, err := f.svc.Retry(background, f.call(), file.ID)
			f.wants(err, fault.Conflict)
		}
		f.set(file.ID, func(file *knowledge.File) {
			file.State, file.Error = knowledge.Failed, &knowledge.FileError{Code: "parse_timeout"}
		})
		got, err := f.svc.Retry(background, f.call(), file.ID)
		f.must(err)
		f.equal("state", got.State, knowledge.Pending)
		f.equal("version", got.Version, 1)
	})
}

func TestADeletedFileIsGoneAtOnceAndPurgedLater(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		base, character := f.base("lore"), f.character()
		file := f.uploadTo(base.ID, "a.md", strings.Repeat("text", 1<<20))
		_, err := f.svc.BindFile(background, f.call(), character, file.ID, nil, nil)
		f.must(err)
		f.take()
		f.must(f.svc.DeleteFile(background, f.call(), file.ID))
		_, err = f.svc.File(background, f.user, file.ID)
		f.wants(err, fault.NotFound)
		bound, err := f.svc.Bound(background, f.user, character)
		f.must(err)
		f.equal("bound files", len(bound.Files), 0)
		names, err := f.allowed(knowledge.Scope{FilesOnly: true})
		f.must(err)
		f.equal("allowed", names, "[]")
		f.equal("jobs", f.jobs(file.ID), "[knowledge.ingest cancelled]")
		f.equal("purge", f.jobs("all"), "[knowledge.purge queued]")
		f.equal("events", f.take(), "[file.deleted]")
		f.wants(f.svc.DeleteFile(background, f.call(), file.ID), fault.NotFound)

		f.purge()
		f.upload("a.md", "text") // the content can come again
	})
}
