package rights

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Export writes everything of a user to w. Each chat, character and document is as it was at one moment; one that
// is deleted meanwhile is not in it. Secrets are never in it.
//
// Errors: Busy while a reply is being written.
func (s *Service) Export(ctx context.Context, userID, username string, w io.Writer) error {
	out := newWriter(w, s.opts.TempDir)
	err := s.store.Bundles(ctx, userID, func(b Bundle) error {
		return out.add(b, func(lines io.Writer, file func(name string) io.Writer) (Counts, error) {
			return s.store.ReadBundle(ctx, userID, b, lines, file)
		})
	})
	if err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	return out.close(&manifest{Format: format, FormatVersion: formatVersion, Program: s.opts.Program, CreatedAt: now, Username: username})
}

// Imported says what an import did, or would do.
type Imported struct {
	DryRun bool   `json:"dryRun"`
	Added  Counts `json:"added"` // rows by table
	Kept   Counts `json:"kept"`  // that the user had already and that stay as they are, by the table that names them
}

// Text says it in words for people.
func (i *Imported) Text() string {
	say := func(what string, counts Counts) string {
		var parts []string
		for _, table := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("%d %s", counts[table], strings.ReplaceAll(table, "_", " ")))
		}
		if len(parts) == 0 {
			return what + " nothing"
		}
		return what + " " + strings.Join(parts, ", ")
	}
	added := say("added", i.Added)
	if i.DryRun {
		added = say("would add", i.Added)
	}
	return added + "; " + say("kept", i.Kept)
}

// Import stores what a file has and the user lacks: characters, chats, documents and others, each as a whole. What the
// user has stays as it is. So the same file can be imported again, also after an import that was cut off. With dryRun
// the file is only checked.
//
// Errors: TooLarge; UnsupportedMedia; NewerVersion; InvalidImport, and then nothing is stored, unless the file
// refers to what neither it nor the user has; QuotaExceeded.
func (s *Service) Import(ctx context.Context, c *op.Call, body io.ReaderAt, size int64, dryRun bool) (*Imported, error) {
	f, err := open(body, size)
	if err != nil {
		return nil, err
	}
	tables, err := s.store.BundleTables(ctx)
	if err == nil {
		err = f.order(tables)
	}
	if err != nil {
		return nil, err
	}
	counts, has := Counts{}, map[*Content]Counts{}
	for _, b := range f.bundles {
		if has[b], err = s.store.CheckBundle(ctx, b); err != nil {
			return nil, err
		}
		counts.add(has[b])
	}
	if err := f.counted(counts); err != nil {
		return nil, err
	}
	missing, result, err := s.compare(ctx, c.UserID, f, dryRun)
	if err != nil {
		return nil, err
	}
	if dryRun {
		for _, b := range missing {
			result.Added.add(has[b])
		}
		return result, nil
	}
	err = s.write(ctx, c.UserID, missing, result)
	if len(result.Added) == 0 {
		return result, err
	}
	if err := s.opts.Imported(ctx, c.UserID); err != nil { // a sweep does it later
		s.opts.Log.WarnContext(ctx, "what an import needs is not made yet", "user", c.UserID, "err", err)
	}
	note := audit.Entry{Action: audit.Imported, Detail: "everything"}
	told := s.store.Tell(ctx, c.UserID, note, op.Event(c.UserID, "account.imported", c.By(), result))
	if err = cmp.Or(err, told); err != nil {
		return nil, err
	}
	return result, nil
}

// write stores bundles and notes it in result.
func (s *Service) write(ctx context.Context, userID string, missing []*Content, result *Imported) error {
	for _, b := range missing {
		added, err := s.store.WriteBundle(ctx, userID, b)
		if err != nil {
			return err
		}
		if added == nil {
			result.Kept[b.Table]++
		}
		result.Added.add(added)
	}
	return nil
}

// compareAtOnce is how many bundles are looked up together.
const compareAtOnce = 500

// compare returns the bundles of a file that the user lacks.
func (s *Service) compare(ctx context.Context, userID string, f *opened, dryRun bool) (missing []*Content, result *Imported, err error) {
	result = &Imported{dryRun, Counts{}, Counts{}}
	purged := dryRun
	for some := range chunks(f.bundles) {
		var ids []string
		for _, b := range some {
			ids = append(ids, b.ID)
		}
		found, err := s.store.Presence(ctx, userID, some[0].Table, ids)
		if err != nil {
			return nil, nil, err
		}
		for _, b := range some {
			if found[b.ID] == Present {
				result.Kept[b.Table]++
				continue
			}
			missing = append(missing, b)
			if found[b.ID] == Deleted && !purged {
				purged = true
				if err := s.store.PurgeDeleted(ctx, userID); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	return missing, result, nil
}

// chunks gives the bundles in pieces of one table.
func chunks(all []*Content) func(yield func([]*Content) bool) {
	return func(yield func([]*Content) bool) {
		for len(all) > 0 {
			n := slices.IndexFunc(all, func(c *Content) bool { return c.Table != all[0].Table })
			if n < 0 {
				n = len(all)
			}
			n = min(n, compareAtOnce)
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// PurgeChat deletes a conversation so that nothing of it can be brought back, also one that was deleted before. What
// memory has made of it goes by the rules of memory.
//
// Errors: NotFound; Busy while it is being copied.
func (s *Service) PurgeChat(ctx context.Context, c *op.Call, id string) error {
	deleted, err := s.store.Presence(ctx, c.UserID, "conversations", []string{id})
	if err != nil {
		return err
	}
	switch deleted[id] {
	case Absent:
		return fault.New(fault.NotFound, "no such conversation")
	case Present:
		if err := s.opts.DeleteChat(ctx, c, id); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	case Deleted:
	}
	return s.store.PurgeChat(ctx, c.UserID, id)
}
