package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
)

func (p *program) bindCommand() *cobra.Command {
	return p.binding("bind", true, "Use a world book, preset, set of regex scripts or persona with characters",
		"Use a world book, preset, set of regex scripts or persona with one or more characters, or with all of them.\n"+
			"It takes effect from the next message in their chats. You can give names or ids.")
}

func (p *program) unbindCommand() *cobra.Command {
	return p.binding("unbind", false, "Stop using a world book, preset, set of regex scripts or persona with characters",
		"Stop using a world book, preset, set of regex scripts or persona with characters. It is not deleted.\n"+
			"--all unbinds it from all characters.")
}

// binding is bind or unbind.
func (p *program) binding(verb string, bind bool, short, long string) *cobra.Command {
	var everybody bool
	var as string
	var of []*cli.Kind
	cmd := &cobra.Command{
		Use: verb + " RESOURCE [CHARACTER…]", Short: short, Long: long,
		Example: fmt.Sprintf("  nodest %[1]s Eldoria Seraphina\n  nodest %[1]s \"Long replies\" --all", verb),
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < 2 && !everybody || len(args) == 0 {
			return cli.Usage("give a resource and a character, or --all: nodest %s Eldoria Seraphina", verb)
		}
		if everybody && len(args) > 1 {
			return cli.Usage("--all means every character; leave out %s, or leave out --all", strings.Join(args[1:], ", "))
		}
		var err error
		of, err = kindsFor(as, cli.Resources)
		return err
	}
	cmd.Flags().BoolVar(&everybody, "all", false, "all characters, including future ones")
	cmd.Flags().StringVar(&as, "as", "", "type of RESOURCE: book, preset, script or persona (default any)")
	cmd.RunE = p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		r, err := c.Find(ctx, args[0], of...)
		if err != nil {
			return err
		}
		var with []cli.Item
		for _, word := range args[1:] {
			ch, err := c.Find(ctx, word, cli.Characters)
			if err != nil {
				return err
			}
			with = append(with, ch)
		}
		raw, err := rebind(ctx, c, r, with, everybody, bind)
		if err == nil && bind && r.Kind == cli.Scripts {
			err = p.switchScriptsOn(ctx, c)
		}
		if err != nil {
			return err
		}
		if p.json {
			return p.printJSON(raw)
		}
		return p.sayBound(ctx, c, r.Kind, raw)
	})
	return p.withJSON(cmd, "print the resource as JSON")
}

// kindsFor returns the kind that as names, all for "".
func kindsFor(as string, all []*cli.Kind) ([]*cli.Kind, error) {
	if as == "" {
		return all, nil
	}
	var nouns []string
	for _, k := range all {
		if k.Noun == as || k.List == as {
			return []*cli.Kind{k}, nil
		}
		nouns = append(nouns, k.Noun)
	}
	return nil, cli.Usage("--as %s: must be one of %s", as, strings.Join(nouns, ", "))
}

// rebind binds a resource to characters, or unbinds it. It fails if the resource was
// changed at the same time.
func rebind(ctx context.Context, c *cli.Client, r cli.Item, with []cli.Item, everybody, bind bool) (json.RawMessage, error) {
	ids := append([]string{}, r.CharacterIDs...)
	for _, ch := range with {
		at := slices.Index(ids, ch.ID)
		switch {
		case bind && at < 0:
			ids = append(ids, ch.ID)
		case !bind && at >= 0:
			ids = slices.Delete(ids, at, at+1)
		case !bind && r.BindAll:
			return nil, cli.Usage("%s is bound to all characters; run nodest unbind %s --all", r.Name, r.ID)
		case !bind:
			return nil, cli.Usage("%s is not bound to %s", r.Name, ch.Name)
		}
	}
	change := map[string]any{"characterIds": ids, "ifVersion": r.Version}
	if everybody {
		change["bindAll"] = bind
		if !bind {
			change["characterIds"] = []string{}
		}
	}
	var raw json.RawMessage
	return raw, c.Call(ctx, http.MethodPatch, r.Path, change, &raw)
}

func (p *program) sayBound(ctx context.Context, c *cli.Client, k *cli.Kind, raw json.RawMessage) error {
	r := cli.Item{}
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	names, err := c.CharacterNames(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s %s is bound to %s\n", k.Noun, r.Name, cmp.Or(r.BoundTo(names), "no character"))
	return err
}

// switchScriptsOn makes bound regex scripts work, as the import of a card with
// scripts does.
func (p *program) switchScriptsOn(ctx context.Context, c *cli.Client) error {
	var settings map[string]any
	if err := c.Call(ctx, http.MethodGet, "/api/v1/settings", nil, &settings); err != nil || settings["globalRegexEnabled"] == true {
		return err
	}
	settings["globalRegexEnabled"] = true
	settings["ifVersion"] = settings["version"]
	if err := c.Call(ctx, http.MethodPut, "/api/v1/settings", settings, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.err, "regex scripts were off in your settings and have been turned on")
	return err
}
