package knowledge

import (
	"bytes"
	"context"
	"net/url"
	"strings"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge/filename"
)

// Fetch stores a page of the web as a Markdown file. A page that the user has already is read
// again: its file gets the new content if it has changed, and is returned with Duplicate if
// not. A page that was read a short time ago is not fetched again.
//
// Errors: NotConfigured; Invalid for the address; PageUnreadable; RateLimited; PreconditionFailed if the file was
// changed meanwhile; those of Upload.
func (s *Service) Fetch(ctx context.Context, c *op.Call, address, baseID string) (*File, error) {
	if s.opts.ReadPage == nil {
		return nil, fault.New(fault.NotConfigured, "this server does not read pages of the web")
	}
	if f, known, err := op.Earlier[*File](ctx, s.store, c); known || err != nil {
		return f, err
	}
	if baseID != "" { // before anything is fetched
		_, err := op.Read(ctx, s.store, c.UserID, func(tx Tx) (*Base, error) { return writableBase(tx, baseID) })
		if err != nil {
			return nil, err
		}
	}
	p, err := s.opts.ReadPage(ctx, c.UserID, address)
	if err != nil {
		return nil, err
	}
	if c.Room != nil { // while it is stored
		if err := c.Room(len(p.Markdown), 0); err != nil {
			return nil, err
		}
	}
	if strings.TrimSpace(p.Markdown) == "" {
		return nil, fault.New(fault.PageUnreadable, "the page has no text")
	}
	in := newPage(p, baseID)
	old, err := op.Read(ctx, s.store, c.UserID, func(tx Tx) (*File, error) { return tx.FileByURL(p.URL) })
	if err != nil {
		return nil, err
	}
	if old == nil {
		return s.Upload(ctx, c, in)
	}
	return s.refetch(ctx, c, old, in)
}

// refetch gives the file of a page what the page is now, unless another file has that already. What
// was changed since the page was asked for stays: PreconditionFailed.
func (s *Service) refetch(ctx context.Context, c *op.Call, old *File, in NewFile) (*File, error) {
	next := in
	next.Name = "" // the user's file keeps its name
	f, err := s.Replace(ctx, c.Part("content"), old.ID, old.Version, next)
	if fault.Is(err, fault.Conflict) {
		return s.Upload(ctx, c, in)
	}
	if err != nil {
		return nil, err
	}
	return op.Once(ctx, s.store, c, func(tx Tx) (*File, error) {
		if in.BaseID != "" {
			b, err := writableBase(tx, in.BaseID)
			if err != nil {
				return nil, err
			}
			if err := addFile(tx, c, b, f, false); err != nil {
				return nil, err
			}
		}
		if f.State == Failed {
			if f, err = again(tx, c, f.ID); err != nil { // it was deleted meanwhile
				return nil, err
			}
		}
		f.Duplicate = f.Version == old.Version
		return f, nil
	})
}

// newPage is a page as a file.
func newPage(p *WebPage, baseID string) NewFile {
	text := []byte(p.Markdown)
	name := strings.ReplaceAll(p.Title, "/", " ")
	if strings.TrimSpace(name) == "" {
		name = "page"
		if u, err := url.Parse(p.URL); err == nil && u.Host != "" {
			name = u.Host + " " + strings.Trim(strings.ReplaceAll(u.Path, "/", " "), " ")
		}
	}
	return NewFile{
		Name: op.Truncate(strings.TrimSpace(name), filename.Longest-3) + ".md", Type: "text/markdown", Source: SourceWeb, SourceURL: p.URL,
		Body: bytes.NewReader(text), Size: int64(len(text)), BaseID: baseID,
	}
}
