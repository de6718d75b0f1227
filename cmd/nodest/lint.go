package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"nodest/card"
	"nodest/character"
	"nodest/internal/cli"
)

func (p *program) lintCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lint FILE|NAME…", Short: "Check cards, world books, presets and regex scripts for problems", Args: cobra.MinimumNArgs(1),
		Long: "Check cards, world books, presets and regex scripts for problems. Checking files needs no server. A name or\n" +
			"id that is not a file is looked up in your characters, books, presets and scripts.\n" +
			"Prints nothing if all is well. Exits with 1 if there are findings or a file cannot be read.",
		Example: "  nodest lint card.png book.json\n  nodest lint Seraphina",
		RunE: func(cmd *cobra.Command, words []string) error {
			found := map[string][]card.Warning{}
			bad := false
			for _, word := range words {
				findings, err := p.lint(cmd.Context(), word)
				if err != nil { // the others can still be checked
					fmt.Fprintln(p.err, "nodest:", oneLine(err))
					bad = true
					continue
				}
				found[word] = findings
				bad = bad || len(findings) > 0
				for _, f := range findings {
					if !p.json {
						fmt.Fprintf(p.out, "%s: %s: %s: %s\n", word, f.Path, f.Code, f.Detail)
					}
				}
			}
			if p.json {
				if err := p.printJSON(found); err != nil {
					return err
				}
			}
			if bad {
				return errSaid
			}
			return nil
		},
	}
	return p.withJSON(cmd, "print the findings as JSON, keyed by file or name")
}

// lint checks a file, or what is stored under a name.
func (p *program) lint(ctx context.Context, word string) ([]card.Warning, error) {
	data, err := os.ReadFile(word)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && (!missing || filepath.Base(word) != word || filepath.Ext(word) != "") {
		return nil, err
	}
	if missing {
		var findings []card.Warning
		err := p.withClient(ctx, func(c *cli.Client) (err error) {
			findings, err = lintStored(ctx, c, word)
			return err
		})
		var wrong *cli.UsageError
		if err != nil && !errors.As(err, &wrong) {
			err = fmt.Errorf("no file %s; as a name: %s", word, oneLine(err))
		}
		return findings, err
	}
	findings, err := character.Lint(data, word, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", word, oneLine(err))
	}
	return findings, nil
}

// lintStored checks a stored document in its own form.
func lintStored(ctx context.Context, c *cli.Client, word string) ([]card.Warning, error) {
	found, err := c.Find(ctx, word, cli.Characters, cli.Books, cli.Presets, cli.Scripts)
	if err != nil {
		return nil, err
	}
	path := found.Path + "/export"
	if found.Kind == cli.Characters {
		path += "?format=json&spec=nodest"
	}
	var document json.RawMessage
	if err := c.Call(ctx, http.MethodGet, path, nil, &document); err != nil {
		return nil, err
	}
	var out struct {
		Findings []card.Warning `json:"findings"`
	}
	err = c.Call(ctx, http.MethodPost, "/api/v1/lint", document, &out)
	return out.Findings, err
}
