package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
)

func (p *program) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List your characters, chats, world books, presets, regex scripts or personas", Aliases: []string{"ls"},
		Long: "List your data, newest first. Other commands accept these names and ids. The beginning of a\n" +
			"name or id is enough where only one fits; commands that delete want the whole name.",
		Example:    "  nodest list characters\n  nodest list chats --character Seraphina\n  nodest list books --json",
		SuggestFor: []string{"show"},
	}
	for _, k := range kinds {
		cmd.AddCommand(p.listOf(k))
	}
	return cmd
}

func (p *program) listOf(k *kind) *cobra.Command {
	what := map[*kind]string{books: "world books", scripts: "sets of regex scripts"}[k]
	cmd := p.listCommandOf(k, "List your "+cmp.Or(what, k.list), "  nodest list "+k.list)
	cmd.Use, cmd.Aliases = k.list, []string{k.noun}
	return cmd
}

// listCommandOf is a command that lists things of a kind.
func (p *program) listCommandOf(k *kind, short, example string) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: short, Args: cobra.NoArgs, Example: example + "\n" + example + " --json"}
	var with, tag string
	if k == chats || k == characters {
		cmd.Flags().StringVar(&tag, "tag", "", "only those with this tag")
	}
	if k == chats {
		cmd.Flags().StringVar(&with, "character", "", "only chats with this character (name or id)")
	}
	cmd.RunE = p.command(func(ctx context.Context, c *client, _ []string) error {
		only := url.Values{}
		if tag != "" {
			only.Set("tag", tag)
		}
		if with != "" {
			ch, err := c.find(ctx, with, characters)
			if err != nil {
				return err
			}
			only.Set("characterId", ch.ID)
		}
		path := k.path
		if len(only) > 0 {
			path += "?" + only.Encode()
		}
		return p.showList(ctx, c, k, path)
	})
	return p.withJSON(cmd, "print JSON, one object per line")
}

// showList prints a list as a table, or as JSON, one object per line.
func (p *program) showList(ctx context.Context, c *client, k *kind, path string) error {
	list, err := all[json.RawMessage](ctx, c, path)
	if err != nil {
		return err
	}
	if p.json {
		for _, raw := range list {
			fmt.Fprintln(p.out, string(raw))
		}
		return nil
	}
	items := make([]item, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &items[i]); err != nil {
			return err
		}
		items[i].kind = k
	}
	if len(items) == 0 && path != k.path {
		_, err := fmt.Fprintf(p.err, "no such %s\n", k.noun)
		return err
	}
	if len(items) == 0 {
		_, err := fmt.Fprintf(p.err, "no %s yet; add one with: %s\n", k.noun, k.first)
		return err
	}
	rows, err := c.rows(ctx, items)
	if err != nil {
		return err
	}
	return table(p.out, rows)
}
