package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"nodest/card"
)

// Files that go in and out: characters and chats.

func (p *program) importCommand() *cobra.Command {
	var sample bool
	var character string
	cmd := &cobra.Command{
		Use: "import FILE…", Short: "Import character cards (PNG, JSON, CHARX), or chats",
		Long: "Import character cards (PNG, JSON, CHARX). With --character the files are chats with that character: SillyTavern\n" +
			"JSONL, or the JSON of nodest export --chat with all its branches.",
		Example: "  nodest import seraphina.png\n  nodest import --sample\n  nodest import --character Seraphina glade.jsonl",
	}
	cmd.Flags().BoolVar(&sample, "sample", false, "import the built-in sample character")
	cmd.Flags().StringVar(&character, "character", "", "the files are chats with this character, by id or name")
	asJSON := jsonFlag(cmd, "as JSON: what each file became, one object a line")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		if len(files) == 0 && !sample {
			return errors.New("which file? nodest import card.png, or nodest import --sample")
		}
		return p.withClient(cmd.Context(), func(c *client) error {
			if sample {
				if err := p.importSample(cmd.Context(), c, *asJSON); err != nil {
					return err
				}
			}
			one := p.importCard
			if character != "" {
				ch, err := (&talk{c: c}).find(cmd.Context(), character)
				if err != nil {
					return err
				}
				one = p.importChat(ch.ID)
			}
			return p.importFiles(cmd.Context(), c, files, one, *asJSON)
		})
	}
	return cmd
}

// importer imports one file and prints what it became.
type importer func(ctx context.Context, c *client, file string, data []byte, asJSON bool) error

// importFiles imports each file and says what became of it; one that cannot be
// used does not keep the others out.
func (p *program) importFiles(ctx context.Context, c *client, files []string, one importer, asJSON bool) error {
	failed := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil {
			err = one(ctx, c, file, data, asJSON)
		}
		if err != nil {
			failed++
			fmt.Fprintf(p.err, "%s: %s\n", file, oneLine(err))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files were not imported", failed, len(files))
	}
	return nil
}

func (p *program) importCard(ctx context.Context, c *client, file string, data []byte, asJSON bool) error {
	var raw json.RawMessage
	if err := c.upload(ctx, "/api/v1/characters/import", file, data, nil, &raw); err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(raw)
	}
	var out struct {
		Character chatCharacter `json:"character"`
		Warnings  []struct {
			Path   string `json:"path"`
			Detail string `json:"detail"`
		} `json:"warnings"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s  %s\n", out.Character.ID, out.Character.Name)
	for _, w := range out.Warnings {
		fmt.Fprintf(p.out, "  note: %s %s\n", w.Path, w.Detail)
	}
	return nil
}

func (p *program) importChat(characterID string) importer {
	return func(ctx context.Context, c *client, file string, data []byte, asJSON bool) error {
		var raw json.RawMessage
		form := map[string]string{"characterId": characterID}
		if err := c.upload(ctx, "/api/v1/conversations/import", file, data, form, &raw); err != nil {
			return err
		}
		if asJSON {
			return p.printJSON(raw)
		}
		var out struct {
			Conversation chatConversation `json:"conversation"`
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.out, "%s  %s\n", out.Conversation.ID, out.Conversation.Title)
		return err
	}
}

func (p *program) importSample(ctx context.Context, c *client, asJSON bool) error {
	file, err := card.Export(card.Sample(), card.JSON, "v3")
	if err != nil {
		return err
	}
	return p.importCard(ctx, c, file.Name, file.Data, asJSON)
}

func (p *program) exportCommand() *cobra.Command {
	var format, spec, file string
	var chat bool
	cmd := &cobra.Command{
		Use: "export ID", Short: "Export a character, or with --chat a conversation, by id", Args: cobra.ExactArgs(1),
		Example: "  nodest export 0199… --format png -o seraphina.png\n  nodest export 0199… --chat --format jsonl -o glade.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withClient(cmd.Context(), func(c *client) error {
				path := fmt.Sprintf("/api/v1/characters/%s/export?format=%s&spec=%s", url.PathEscape(args[0]), url.QueryEscape(format), url.QueryEscape(spec))
				if chat {
					path = fmt.Sprintf("/api/v1/conversations/%s/export?format=%s", url.PathEscape(args[0]), url.QueryEscape(format))
				}
				return p.download(cmd.Context(), c, path, file)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "json", "a character: png, json or charx; a chat: json (everything, with all branches and save points) or jsonl (the shown branch, for SillyTavern)")
	cmd.Flags().StringVar(&spec, "spec", "v3", "of a character: v2 or v3")
	cmd.Flags().BoolVar(&chat, "chat", false, "ID is a conversation")
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write; default standard output")
	return cmd
}
