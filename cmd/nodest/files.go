package main

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
)

func (p *program) exportCommand() *cobra.Command {
	var format, spec, file, as, folder string
	var chat, all bool
	cmd := &cobra.Command{
		Use: "export NAME", Short: "Export a character, chat, world book, preset or set of regex scripts, or everything of yours",
		Long: "Export a character, given by the beginning of its name or by id, as a card that other apps can read. With --chat, NAME is a\n" +
			"chat; --as selects other types. With --all instead of a NAME, everything of yours is exported as one zip file; with\n" +
			"--sillytavern, a new folder gets all that SillyTavern has a place for, as its folder data/default-user.",
		Example: "  nodest export Seraphina --format png -o seraphina.png\n  nodest export Seraphina --chat --format jsonl -o glade.jsonl\n" +
			"  nodest export Eldoria --as book -o eldoria.json\n" +
			"  nodest export --all -o account.zip\n  nodest export --sillytavern default-user",
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if all || folder != "" {
			return cobra.NoArgs(cmd, args)
		}
		return cobra.ExactArgs(1)(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if chat {
			as = cli.Chats.Noun
		}
		of, err := kindsFor(as, []*cli.Kind{cli.Characters, cli.Chats, cli.Books, cli.Presets, cli.Scripts, cli.Templates})
		if err != nil {
			return err
		}
		if as == "" {
			of = []*cli.Kind{cli.Characters}
		}
		return p.withClient(cmd.Context(), func(c *cli.Client) error {
			if folder != "" {
				n, err := c.ExportFolder(cmd.Context(), folder)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.out, "%d files are in %s. NodeST/report.json lists them, and says what SillyTavern has no place for.\n", n, folder)
				return err
			}
			if all {
				return p.download(cmd.Context(), c, "/api/v1/me/export", file)
			}
			found, err := c.Find(cmd.Context(), args[0], of...)
			if err != nil {
				return err
			}
			query := url.Values{}
			switch of[0] {
			case cli.Characters:
				query = url.Values{"format": {format}, "spec": {spec}}
			case cli.Chats:
				query = url.Values{"format": {format}}
			}
			return p.download(cmd.Context(), c, found.Path+"/export?"+query.Encode(), file)
		})
	}
	cmd.Flags().StringVar(&format, "format", "json", "for a character: png, json or charx; for a chat: json (everything, with all branches and save points) or jsonl (the current branch, for SillyTavern)")
	cmd.Flags().StringVar(&spec, "spec", "v3", "card version of a character: v2, v3, or nodest with --format json")
	cmd.Flags().BoolVar(&chat, "chat", false, "NAME is a chat; the same as --as chat")
	cmd.Flags().StringVar(&as, "as", "", "type of NAME: character (default), chat, book, preset, script or template")
	cmd.Flags().BoolVar(&all, "all", false, "everything of yours, for nodest import --all")
	cmd.Flags().StringVar(&folder, "sillytavern", "", "a new or empty folder for everything that SillyTavern has a place for")
	cmd.MarkFlagsMutuallyExclusive("all", "sillytavern")
	cmd.Flags().StringVarP(&file, "output", "o", "", "output file; - or default: standard output")
	return cmd
}
