package knowledge

import (
	"context"
	"fmt"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge/filename"
	"nodest/knowledge/unzip"
)

// Unzip stores the files of a zip archive, with its folders in their names. It returns those
// that were stored or were there already, and why others were not, by name: one bad entry
// keeps no other out. Folders, and files that systems leave in archives, are passed over. A
// client that repeats the call gets the same files.
//
// Errors: UnsupportedMedia for what is no zip archive; TooLarge for an archive of more than
// 100 MiB, 2,000 entries or 200 MiB unpacked; NotFound and Forbidden for the knowledge base;
// KeyReused for another archive under the same key.
func (s *Service) Unzip(ctx context.Context, c *op.Call, in NewFile) ([]*File, map[string]string, error) {
	if err := s.checkSize(in); err != nil {
		return nil, nil, err
	}
	if in.BaseID != "" {
		_, err := op.Read(ctx, s.store, c.UserID, func(tx Tx) (*Base, error) { return writableBase(tx, in.BaseID) })
		if err != nil {
			return nil, nil, err
		}
	}
	archive, err := unzip.Open(in.Body, in.Size)
	if err != nil {
		return nil, nil, err
	}
	defer archive.Close() //nolint:errcheck // its content is not needed any more
	// The key belongs to this archive, whatever becomes of its entries.
	if err := op.Do(ctx, s.store, c.Part("archive"), func(Tx) error { return nil }); err != nil {
		return nil, nil, err
	}
	files, refused := []*File{}, map[string]string{}
	for i, entry := range archive.Entries {
		name := filename.Clean(entry.Name)
		f, err := s.storeEntry(ctx, c.Part(fmt.Sprintf("entry %d", i)), NewFile{Name: name, BaseID: in.BaseID}, archive, entry)
		switch {
		case err == nil:
			files = append(files, f)
		case fault.Is(err, fault.Internal), fault.Is(err, fault.StorageFull), ctx.Err() != nil:
			return nil, nil, err // ours to fix, or the whole call's
		default:
			refused[name] = fault.Public(err).Message
		}
	}
	return files, refused, nil
}

// storeEntry stores one file of an archive.
func (s *Service) storeEntry(ctx context.Context, c *op.Call, in NewFile, archive *unzip.Archive, entry *unzip.Entry) (f *File, err error) {
	if in.Body, in.Size, err = archive.Unpack(entry); err != nil {
		return nil, err
	}
	return s.Upload(ctx, c, in)
}
