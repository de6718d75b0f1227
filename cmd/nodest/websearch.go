package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
)

// searchResults is the answer of POST /websearch.
type searchResults struct {
	Results []struct {
		Title       string     `json:"title"`
		URL         string     `json:"url"`
		Description string     `json:"description"`
		Date        *time.Time `json:"date,omitempty"`
	} `json:"results"`
	Provider string `json:"provider"`
	Cached   bool   `json:"cached"`
	Ms       int64  `json:"ms"`
}

func (p *program) searchCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "search QUERY…", Short: "Search the web with the server's search providers", Args: cobra.MinimumNArgs(1),
		Example: `  nodest search "lighthouse keeper memoirs"`,
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			var found searchResults
			in := map[string]any{"query": strings.Join(args, " "), "limit": limit}
			return p.answer(ctx, c, http.MethodPost, "/api/v1/websearch", in, &found, func() error { return p.showResults(&found) })
		}),
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 10, "maximum number of results, 1 to 20")
	return p.withJSON(cmd, "print the results as JSON")
}

func (p *program) showResults(found *searchResults) error {
	for i, r := range found.Results {
		date := ""
		if r.Date != nil {
			date = " (" + r.Date.Format(time.DateOnly) + ")"
		}
		fmt.Fprintf(p.out, "%2d. %s%s\n    %s\n", i+1, r.Title, date, r.URL)
		if r.Description != "" {
			fmt.Fprintf(p.out, "    %s\n", r.Description)
		}
	}
	kept := ""
	if found.Cached {
		kept = ", kept from an earlier search"
	}
	_, err := fmt.Fprintf(p.err, "%d results from %s in %d ms%s\n", len(found.Results), found.Provider, found.Ms, kept)
	return err
}

// webPage is the answer of POST /websearch/read.
type webPage struct {
	URL      string   `json:"url"`
	Title    string   `json:"title"`
	Markdown string   `json:"markdown"`
	Snippets []string `json:"snippets"`
}

func (p *program) readCommand() *cobra.Command {
	var question string
	cmd := &cobra.Command{
		Use: "read URL", Short: "Read a web page as Markdown", Args: cobra.ExactArgs(1),
		Example: "  nodest read https://go.dev/doc/effective_go\n  nodest read https://go.dev/doc/effective_go --question \"how do I name an interface?\"",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			var page webPage
			in := map[string]any{"url": args[0], "question": question}
			return p.answer(ctx, c, http.MethodPost, "/api/v1/websearch/read", in, &page, func() error {
				text := page.Markdown
				if question != "" {
					text = strings.Join(page.Snippets, "\n\n…\n\n")
				}
				_, err := fmt.Fprintf(p.out, "%s\n%s\n\n%s\n", page.Title, page.URL, text)
				return err
			})
		}),
	}
	cmd.Flags().StringVarP(&question, "question", "q", "", "print only the passages that answer this question")
	return p.withJSON(cmd, "print the page as JSON")
}
