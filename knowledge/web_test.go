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
		base := f.base("web")
		page, failure = &knowledge.WebPage{URL: "https://halden.example/a", Title: "The A/B light", Markdown: "first"}, nil
		first, err := f.svc.Fetch(background, f.call(), "https://halden.example/a#x", base.ID)
		f.must(err)
		f.equal("name", first.Name, "The A B light.md")
		f.equal("source", first.Source+" "+first.SourceURL, "web https://halden.example/a")
		f.equal("content", f.content(first.ID), "first")

		same, err := f.svc.Fetch(background, f.call(), "https://halden.example/a", "")
		f.must(err)
		f.equal("unchanged", []any{same.ID == first.ID, same.Version, same.Duplicate}, "[true 1 true]")

		page = &knowledge.WebPage{URL: page.URL, Title: "Another title", Markdown: "second"}
		next, err := f.svc.Fetch(background, f.call(), "https://halden.example/a", base.ID)
		f.must(err)
		f.equal("changed", []any{next.ID == first.ID, next.Version, next.Duplicate, next.Name}, "[true 2 false The A B light.md]")
		f.equal("content", f.content(first.ID), "second")

		f.set(first.ID, func(file *knowledge.File) {
			file.State, file.Error = knowledge.Failed, &knowledge.FileError{Code: "stalled"}
		})
		retried, err := f.svc.Fetch(background, f.call(), "https://halden.example/a", base.ID)
		f.must(err)
		f.equal("a failed one is processed again", []any{retried.ID == first.ID, retried.State}, "[true pending]")

		had := f.upload("mine.md", "copied")
		page = &knowledge.WebPage{URL: page.URL, Title: "Another title", Markdown: "copied"}
		copied, err := f.svc.Fetch(background, f.call(), "https://halden.example/a", base.ID)
		f.must(err)
		f.equal("content of another file", []any{copied.ID == had.ID, copied.Duplicate}, "[true true]")
		f.equal("the page stays as it was", f.content(first.ID), "second")

		page = &knowledge.WebPage{URL: "https://halden.example/b/c", Markdown: "third"}
		untitled, err := f.svc.Fetch(background, f.call(), page.URL, "")
		f.must(err)
		f.equal("name", untitled.Name, "halden.example b c.md")

		theirs, err := f.other().svc.Fetch(background, f.other().call(), page.URL, "")
		f.must(err)
		f.equal("another user's", theirs.ID != untitled.ID, true)

		page = &knowledge.WebPage{URL: page.URL}
		_, err = f.svc.Fetch(background, f.call(), page.URL, "")
		f.wants(err, fault.PageUnreadable)
		failure = fault.Wrap(errors.New("no"), fault.PageUnreadable, "the page cannot be read")
		_, err = f.svc.Fetch(background, f.call(), page.URL, "")
		f.wants(err, fault.PageUnreadable)
		_, err = f.svc.Fetch(background, f.call(), page.URL, "foreign")
		f.wants(err, fault.NotFound)
		_, err = knowledge.New(f.db.Knowledge(), knowledge.Options{}).Fetch(background, f.call(), page.URL, "")
		f.wants(err, fault.NotConfigured)
	})
}
