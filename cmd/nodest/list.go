package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
)

func (p *program) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List your characters, chats, world books, presets, regex scripts or personas", Aliases: []string{"ls"},
		Long: "List your data, newest first. Other commands accept these names and ids. The beginning of a\n" +
			"name or id is enough where only one fits; commands that delete want the whole name.",
		Example:    "  nodest list characters\n  nodest list chats --character Seraphina\n  nodest list books --json",
		SuggestFor: []string{"show"},
	}
	for _, k := range cli.Kinds {
		cmd.AddCommand(p.listOf(k))
	}
	return cmd
}

func (p *program) listOf(k *cli.Kind) *cobra.Command {
	what := map[*cli.Kind]string{cli.Books: "world books", cli.Scripts: "sets of regex scripts"}[k]
	cmd := p.listCommandOf(k, "List your "+cmp.Or(what, k.List), "  nodest list "+k.List)
	cmd.Use, cmd.Aliases = k.List, []string{k.Noun}
	return cmd
}

// listCommandOf is a command that lists things of a kind.
func (p *program) listCommandOf(k *cli.Kind, short, example string) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: short, Args: cobra.NoArgs, Example: example + "\n" + example + " --json"}
	var with, tag string
	if k == cli.Chats || k == cli.Characters {
		cmd.Flags().StringVar(&tag, "tag", "", "only those with this tag")
	}
	if k == cli.Chats {
		cmd.Flags().StringVar(&with, "character", "", "only chats with this character (name or id)")
	}
	cmd.RunE = p.command(func(ctx context.Context, c *cli.Client, _ []string) error {
		only := url.Values{}
		if tag != "" {
			only.Set("tag", tag)
		}
		if with != "" {
			ch, err := c.Find(ctx, with, cli.Characters)
			if err != nil {
				return err
			}
			only.Set("characterId", ch.ID)
		}
		path := k.Path
		if len(only) > 0 {
			path += "?" + only.Encode()
		}
		return p.showList(ctx, c, k, path)
	})
	return p.withJSON(cmd, "print JSON, one object per line")
}

// showList prints a list as a table, or as JSON, one object per line.
func (p *program) showList(ctx context.Context, c *cli.Client, k *cli.Kind, path string) error {
	list, err := cli.All[json.RawMessage](ctx, c, path)
	if err != nil {
		return err
	}
	if p.json {
		for _, raw := range list {
			fmt.Fprintln(p.out, string(raw))
		}
		return nil
	}
	items := make([]cli.Item, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &items[i]); err != nil {
			return err
		}
		items[i].Kind = k
	}
	if len(items) == 0 && path != k.Path {
		_, err := fmt.Fprintf(p.err, "no such %s\n", k.Noun)
		return err
	}
	if len(items) == 0 {
		_, err := fmt.Fprintf(p.err, "no %s yet; add one with: %s\n", k.Noun, k.First)
		return err
	}
	rows, err := c.Rows(ctx, items)
	if err != nil {
		return err
	}
	return cli.Table(p.out, rows)
}
