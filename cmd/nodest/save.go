package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"
)

// saveCommand is nodest save: save points without the chat.
func (p *program) saveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "save", Short: "Make, list, restore, export and import save points", Args: cobra.NoArgs,
		Long:    "Save points of a conversation. Where CONVERSATION is left out it is the one that changed last.",
		Example: "  nodest save create --description 'before the storm'\n  nodest save list\n  nodest save restore 0199…",
	}
	cmd.AddCommand(p.saveCreate(), p.saveList(), p.saveShow(), p.saveRestore(), p.saveDelete(), p.saveExport(), p.saveImport())
	return cmd
}

func (p *program) saveCreate() *cobra.Command {
	var description string
	cmd := &cobra.Command{
		Use: "create [CONVERSATION]", Short: "Make a save point of what a conversation shows now", Args: cobra.MaximumNArgs(1),
		Example: "  nodest save create 0199… --description 'before the storm'",
	}
	cmd.Flags().StringVarP(&description, "description", "d", "", "what it is")
	asJSON := jsonFlag(cmd, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.inConversation(cmd.Context(), args, func(c *client, path string) error {
			var raw json.RawMessage
			if err := c.call(cmd.Context(), http.MethodPost, path+"/saves", map[string]any{"description": description}, &raw); err != nil {
				return err
			}
			return p.printSave(raw, *asJSON)
		})
	}
	return cmd
}

func (p *program) saveList() *cobra.Command {
	var automatic bool
	cmd := &cobra.Command{
		Use: "list [CONVERSATION]", Short: "List save points, the newest first", Args: cobra.MaximumNArgs(1),
		Example: "  nodest save list 0199… --automatic",
	}
	cmd.Flags().BoolVar(&automatic, "automatic", false, "also those that a restore made of what was shown before it")
	asJSON := jsonFlag(cmd, "as JSON, one object a line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.inConversation(cmd.Context(), args, func(c *client, path string) error {
			items, err := all[json.RawMessage](cmd.Context(), c, fmt.Sprintf("%s/saves?automatic=%t", path, automatic))
			if err != nil {
				return err
			}
			for _, raw := range items {
				if err := p.printSave(raw, *asJSON); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

func (p *program) saveShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show SAVE", Short: "Print the end of what a save point holds, without restoring it", Args: cobra.ExactArgs(1),
		Example: "  nodest save show 0199… -n 20",
	}
	n := cmd.Flags().IntP("messages", "n", 10, "how many messages, 1 to 200")
	asJSON := jsonFlag(cmd, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withClient(cmd.Context(), func(c *client) error {
			var raw json.RawMessage
			if err := c.call(cmd.Context(), http.MethodGet, fmt.Sprintf("%s?limit=%d", savePath(args[0]), *n), nil, &raw); err != nil {
				return err
			}
			if *asJSON {
				return p.printJSON(raw)
			}
			var save struct {
				chatSave
				Messages []struct{ Sender, Text string } `json:"messages"`
			}
			if err := json.Unmarshal(raw, &save); err != nil {
				return err
			}
			fmt.Fprintln(p.out, lineOf(save.chatSave))
			for _, m := range save.Messages {
				fmt.Fprintf(p.out, "\n%s: %s\n", m.Sender, m.Text)
			}
			return nil
		})
	}
	return cmd
}

func (p *program) saveRestore() *cobra.Command {
	cmd := &cobra.Command{
		Use: "restore SAVE", Short: "Set a conversation back to a save point", Args: cobra.ExactArgs(1),
		Long:    "Set a conversation back to a save point. What it showed until now is kept as an automatic save point, and as a branch.",
		Example: "  nodest save restore 0199…",
	}
	asJSON := jsonFlag(cmd, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withClient(cmd.Context(), func(c *client) error {
			var raw json.RawMessage
			if err := c.call(cmd.Context(), http.MethodPost, savePath(args[0])+"/restore", map[string]any{}, &raw); err != nil {
				return err
			}
			if *asJSON {
				return p.printJSON(raw)
			}
			var out struct {
				Conversation chatConversation `json:"conversation"`
				Before       *chatSave        `json:"before"`
			}
			if err := json.Unmarshal(raw, &out); err != nil {
				return err
			}
			fmt.Fprintf(p.out, "conversation %s is as it was\n", out.Conversation.ID)
			if out.Before != nil {
				fmt.Fprintf(p.out, "what it showed until now: nodest save restore %s\n", out.Before.ID)
			}
			return nil
		})
	}
	return cmd
}

func (p *program) saveDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete SAVE", Short: "Delete a save point; the chat stays as it is", Args: cobra.ExactArgs(1),
		Example: "  nodest save delete 0199…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withClient(cmd.Context(), func(c *client) error {
				return c.call(cmd.Context(), http.MethodDelete, savePath(args[0]), nil, nil)
			})
		},
	}
}

func (p *program) saveExport() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "export SAVE", Short: "Write a save point as one JSON file", Args: cobra.ExactArgs(1),
		Example: "  nodest save export 0199… -o storm.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withClient(cmd.Context(), func(c *client) error {
				return p.download(cmd.Context(), c, savePath(args[0])+"/export", file)
			})
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write; default standard output")
	return cmd
}

func (p *program) saveImport() *cobra.Command {
	var conversation string
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Read a save point from a file; the chat stays as it is until it is restored", Args: cobra.ExactArgs(1),
		Example: "  nodest save import storm.json --conversation 0199…",
	}
	cmd.Flags().StringVar(&conversation, "conversation", "", "which conversation gets it; default the one that changed last")
	asJSON := jsonFlag(cmd, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		data, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		var named []string
		if conversation != "" {
			named = []string{conversation}
		}
		return p.inConversation(cmd.Context(), named, func(c *client, path string) error {
			var out struct {
				Save json.RawMessage `json:"save"`
			}
			if err := c.upload(cmd.Context(), path+"/saves/import", args[0], data, nil, &out); err != nil {
				return err
			}
			return p.printSave(out.Save, *asJSON)
		})
	}
	return cmd
}

func savePath(id string) string { return "/api/v1/saves/" + url.PathEscape(id) }

// inConversation runs f with the path of the conversation that args name, or of
// the one that changed last.
func (p *program) inConversation(ctx context.Context, args []string, f func(c *client, path string) error) error {
	const path = "/api/v1/conversations"
	return p.withClient(ctx, func(c *client) error {
		if len(args) > 0 {
			return f(c, path+"/"+url.PathEscape(args[0]))
		}
		var newest pageOf[chatConversation]
		if err := c.call(ctx, http.MethodGet, path+"?limit=1", nil, &newest); err != nil {
			return err
		}
		if len(newest.Items) == 0 {
			return errors.New("there is no conversation yet: nodest chat begins one")
		}
		return f(c, path+"/"+newest.Items[0].ID)
	})
}

func (p *program) printSave(raw json.RawMessage, asJSON bool) error {
	if asJSON {
		return p.printJSON(raw)
	}
	var s chatSave
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, "%s  %s\n", s.ID, lineOf(s))
	return err
}

// download writes the answer of a path to a file, "" = standard output. The file
// appears when all of it is there.
func (p *program) download(ctx context.Context, c *client, path, file string) error {
	res, err := c.send(ctx, http.MethodGet, path, nil, "*/*")
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if file == "" {
		_, err = io.Copy(p.out, res.Body)
		return err
	}
	part := file + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		_ = os.Remove(part) // the failure before this one is told
	}
	return err
}
