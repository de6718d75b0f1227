package knowledge_test

import (
	"context"
	"errors"
	"testing"

	"nodest/internal/fault"
	"nodest/knowledge"
)

func TestAPageIsStoredAndReadAgain(t *testing.T) {
	t.Parallel()
	var page *knowledge.WebPage
	var failure error
	o := knowledge.Options{ReadPage: func(context.Context, string, string) (*knowledge.WebPage, error) { return page, failure }}
	onBoth(t, o, func(f *fixture) {
		base := f.Base("web")
		page, failure = &knowledge.WebPage{URL: "https://halden.example/a", Title: "The A/B light", Markdown: "first"}, nil
		first, err := f.Svc.Fetch(background, f.Call(), "https://halden.example/a#x", base.ID)
		f.Must(err)
		f.Equal("name", first.Name, "The A B light.md")
		f.Equal("source", first.Source+" "+first.SourceURL, "web https://halden.example/a")
		f.Equal("content", f.content(first.ID), "first")

		same, err := f.Svc.Fetch(background, f.Call(), "https://halden.example/a", "")
		f.Must(err)
		f.Equal("unchanged", []any{same.ID == first.ID, same.Version, same.Duplicate}, "[true 1 true]")

		page = &knowledge.WebPage{URL: page.URL, Title: "Another title", Markdown: "second"}
		next, err := f.Svc.Fetch(background, f.Call(), "https://halden.example/a", base.ID)
		f.Must(err)
		f.Equal("changed", []any{next.ID == first.ID, next.Version, next.Duplicate, next.Name}, "[true 2 false The A B light.md]")
		f.Equal("content", f.content(first.ID), "second")

		f.set(first.ID, func(file *knowledge.File) {
			file.State, file.Error = knowledge.Failed, &knowledge.FileError{Code: "stalled"}
		})
		retried, err := f.Svc.Fetch(background, f.Call(), "https://halden.example/a", base.ID)
		f.Must(err)
		f.Equal("a failed one is processed again", []any{retried.ID == first.ID, retried.State}, "[true pending]")

		had := f.Upload("mine.md", "copied")
		page = &knowledge.WebPage{URL: page.URL, Title: "Another title", Markdown: "copied"}
		copied, err := f.Svc.Fetch(background, f.Call(), "https://halden.example/a", base.ID)
		f.Must(err)
		f.Equal("content of another file", []any{copied.ID == had.ID, copied.Duplicate}, "[true true]")
		f.Equal("the page stays as it was", f.content(first.ID), "second")

		page = &knowledge.WebPage{URL: "https://halden.example/b/c", Markdown: "third"}
		untitled, err := f.Svc.Fetch(background, f.Call(), page.URL, "")
		f.Must(err)
		f.Equal("name", untitled.Name, "halden.example b c.md")

		theirs, err := f.other().Svc.Fetch(background, f.other().Call(), page.URL, "")
		f.Must(err)
		f.Equal("another user's", theirs.ID != untitled.ID, true)

		page = &knowledge.WebPage{URL: page.URL}
		_, err = f.Svc.Fetch(background, f.Call(), page.URL, "")
		f.Wants(err, fault.PageUnreadable)
		failure = fault.Wrap(errors.New("no"), fault.PageUnreadable, "the page cannot be read")
		_, err = f.Svc.Fetch(background, f.Call(), page.URL, "")
		f.Wants(err, fault.PageUnreadable)
		_, err = f.Svc.Fetch(background, f.Call(), page.URL, "foreign")
		f.Wants(err, fault.NotFound)
		_, err = knowledge.New(f.DB.Knowledge(), knowledge.Options{}).Fetch(background, f.Call(), page.URL, "")
		f.Wants(err, fault.NotConfigured)
	})
}
