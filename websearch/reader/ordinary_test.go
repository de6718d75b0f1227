package reader

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nodest/internal/sharedtest"
	"nodest/websearch/miniweb"
)

// TestOrdinaryPagesAreNoWalls reads the saved articles and the pages of the closed web that are no wall: as
// they are, their text alone, and a short page that is only its beginning.
func TestOrdinaryPagesAreNoWalls(t *testing.T) {
	dir, now := sharedtest.Require(t, "data/articles"), time.Unix(1_700_000_000, 0)
	whole := map[string]string{}
	for _, a := range articles(t, dir) {
		whole[a.URL], _ = decode(a.html, "text/html")
	}
	saved := len(whole)
	for _, r := range miniweb.Start(t).Routes {
		if r.Outcome != "ok" || !strings.HasSuffix(r.File, ".html") {
			continue
		}
		body, err := os.ReadFile(filepath.Join(sharedtest.Require(t, "data/miniweb"), r.File))
		if err != nil {
			t.Fatal(err)
		}
		whole[r.URL], _ = decode(body, r.ContentType)
	}
	pages, walls := 0, 0
	read := func(name, body string) *Page {
		page, _, err := readHTML(body, mill, "", now)
		pages++
		if w := (*Error)(nil); errors.As(err, &w) && w.Outcome == Blocked {
			walls++
			t.Errorf("%s: %v", name, err)
		}
		return page
	}
	for at, body := range whole {
		page := read(at, body)
		if page == nil {
			continue
		}
		text := strings.Split(page.Markdown, "\n\n")
		for of, lines := range map[string][]string{"its text": text, "its beginning": text[:min(2, len(text))]} {
			short := "<!doctype html><title>" + html.EscapeString(page.Title) + "</title><main>"
			for _, p := range lines {
				short += "<p>" + html.EscapeString(p) + "</p>"
			}
			read(fmt.Sprintf("%s, %s", at, of), short+"</main>")
		}
	}
	t.Logf("%d pages of %d articles and %d pages of the closed web: %d taken for walls", pages, saved, len(whole)-saved, walls)
	if pages < 300 {
		t.Errorf("only %d pages were read", pages)
	}
}
