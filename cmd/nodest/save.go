package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// saveCommand is nodest save: save points without the chat.
func (p *program) saveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "save", Short: "Create, list, restore, export and import save points of a chat",
		Long: "Manage save points of a chat. CHAT is a title, an id, or a character with only one chat; default: the most recently\n" +
			"changed chat. SAVE is a description or an id. The beginning of a name is enough where only one fits, except for delete.",
		Example: "  nodest save create --description 'before the storm'\n  nodest save list Seraphina\n  nodest save restore 'before the storm'",
	}
	cmd.AddCommand(p.saveCreate(), p.saveList(), p.saveShow(), p.saveRestore(), p.saveDelete(), p.saveExport(), p.saveImport())
	return cmd
}

func (p *program) saveCreate() *cobra.Command {
	var description string
	cmd := &cobra.Command{
		Use: "create [CHAT]", Short: "Create a save point of the current state of a chat", Args: cobra.MaximumNArgs(1),
		Example: "  nodest save create Seraphina --description 'before the storm'",
	}
	cmd.Flags().StringVarP(&description, "description", "d", "", "description of the save point")
	cmd.RunE = p.inConversation(func(ctx context.Context, c *cli.Client, path string) error {
		var save json.RawMessage
		if err := c.Call(ctx, http.MethodPost, path+"/saves", map[string]any{"description": description}, &save); err != nil {
			return err
		}
		return p.printSave(save)
	})
	return p.withJSON(cmd, "print JSON")
}

func (p *program) saveList() *cobra.Command {
	var automatic bool
	cmd := &cobra.Command{
		Use: "list [CHAT]", Short: "List save points, newest first", Args: cobra.MaximumNArgs(1),
		Example: "  nodest save list Seraphina --automatic",
	}
	cmd.Flags().BoolVar(&automatic, "automatic", false, "include save points created automatically before a restore")
	cmd.RunE = p.inConversation(func(ctx context.Context, c *cli.Client, path string) error {
		items, err := cli.All[json.RawMessage](ctx, c, fmt.Sprintf("%s/saves?automatic=%t", path, automatic))
		for _, raw := range items {
			err = cmp.Or(err, p.printSave(raw))
		}
		return err
	})
	return p.withJSON(cmd, "print JSON, one object per line")
}

func (p *program) saveShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show SAVE", Short: "Print the last messages of a save point without restoring it", Args: cobra.ExactArgs(1),
		Example: "  nodest save show 'before the storm' -n 20",
	}
	n := cmd.Flags().IntP("messages", "n", 10, "number of messages, 1 to 200")
	p.savePoint(cmd, false, func(ctx context.Context, c *cli.Client, path string) error {
		var save struct {
			chatSave
			Messages []struct{ Sender, Text string } `json:"messages"`
		}
		return p.answer(ctx, c, http.MethodGet, fmt.Sprintf("%s?limit=%d", path, *n), nil, &save, func() error {
			fmt.Fprintln(p.out, lineOf(save.chatSave))
			for _, m := range save.Messages {
				fmt.Fprintf(p.out, "\n%s: %s\n", m.Sender, m.Text)
			}
			return nil
		})
	})
	return p.withJSON(cmd, "print JSON")
}

func (p *program) saveRestore() *cobra.Command {
	cmd := &cobra.Command{
		Use: "restore SAVE", Short: "Restore a chat to a save point", Args: cobra.ExactArgs(1),
		Long:    "Restore a chat to a save point. The current state is kept as an automatic save point and as a branch.",
		Example: "  nodest save restore 'before the storm'",
	}
	p.savePoint(cmd, false, func(ctx context.Context, c *cli.Client, path string) error {
		var out struct {
			Conversation cli.Item
			Before       *chatSave
		}
		return p.answer(ctx, c, http.MethodPost, path+"/restore", map[string]any{}, &out, func() error {
			fmt.Fprintf(p.out, "chat %s restored\n", out.Conversation.ID)
			if out.Before != nil {
				fmt.Fprintf(p.out, "to undo: nodest save restore %s\n", out.Before.ID)
			}
			return nil
		})
	})
	return p.withJSON(cmd, "print JSON")
}

func (p *program) saveDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete SAVE", Short: "Delete a save point; the chat does not change", Args: cobra.ExactArgs(1),
		Long:    "Delete a save point, by its whole description or its id; the chat does not change.",
		Example: "  nodest save delete 'before the storm'",
	}
	p.savePoint(cmd, true, func(ctx context.Context, c *cli.Client, path string) error {
		return c.Call(ctx, http.MethodDelete, path, nil, nil)
	})
	return cmd
}

func (p *program) saveExport() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "export SAVE", Short: "Write a save point as one JSON file", Args: cobra.ExactArgs(1),
		Example: "  nodest save export 'before the storm' -o storm.json",
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "output file; - or default: standard output")
	p.savePoint(cmd, false, func(ctx context.Context, c *cli.Client, path string) error {
		return p.download(ctx, c, path+"/export", file)
	})
	return cmd
}

func (p *program) saveImport() *cobra.Command {
	var conversation string
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Import a save point from a file; the chat does not change until you restore it", Args: cobra.ExactArgs(1),
		Example: "  nodest save import storm.json --conversation Seraphina",
	}
	cmd.Flags().StringVar(&conversation, "conversation", "", "the chat (title or id) that gets the save point; default: the most recently changed")
	cmd.RunE = p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		data, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		path, err := conversationPath(ctx, c, conversation)
		if err != nil {
			return err
		}
		var out struct {
			Save json.RawMessage `json:"save"`
		}
		if err := c.Upload(ctx, path+"/saves/import", args[0], data, nil, &out); err != nil {
			return err
		}
		return p.printSave(out.Save)
	})
	return p.withJSON(cmd, "print JSON")
}

// savePoint gives a command the save point of its argument: SAVE by id, or by
// description or the beginning of its id among those of a chat. Unless wholeNames is
// set, the beginning of a description will do.
func (p *program) savePoint(cmd *cobra.Command, wholeNames bool, f func(ctx context.Context, c *cli.Client, path string) error) {
	conversation := cmd.Flags().String("conversation", "", "the chat of SAVE (title or id); default: the most recently changed")
	cmd.RunE = p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		c.WholeNames = wholeNames
		path, err := savePath(ctx, c, args[0], *conversation)
		if err != nil {
			return err
		}
		return f(ctx, c, path)
	})
}

func savePath(ctx context.Context, c *cli.Client, word, conversation string) (string, error) {
	if cli.IsID(word) {
		return cli.Item{ID: strings.ToLower(word)}.As(cli.Saves).Path, nil
	}
	path, err := conversationPath(ctx, c, conversation)
	if err != nil {
		return "", err
	}
	list, err := cli.All[chatSave](ctx, c, path+"/saves?automatic=true")
	if err != nil {
		return "", err
	}
	items := make([]cli.Item, len(list))
	for i, s := range list {
		items[i] = cli.Item{ID: s.ID, Title: s.Description, UpdatedAt: time.UnixMilli(s.Timestamp)}.As(cli.Saves)
	}
	found, err := c.Choice(ctx, word, items, cli.Saves)
	return found.Path, err
}

// inConversation is RunE of a command that takes the path of the conversation that its
// argument names, or of the one that changed last.
func (p *program) inConversation(f func(ctx context.Context, c *cli.Client, path string) error) func(*cobra.Command, []string) error {
	return p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		path, err := conversationPath(ctx, c, strings.Join(args, ""))
		if err != nil {
			return err
		}
		return f(ctx, c, path)
	})
}

// conversationPath is the path of a conversation by a word for it, "" = the one that
// changed last.
func conversationPath(ctx context.Context, c *cli.Client, word string) (string, error) {
	if word != "" {
		conv, err := c.Find(ctx, word, cli.Chats)
		return conv.Path, err
	}
	newest, err := newestChat(ctx, c, "")
	if err == nil && newest.ID == "" {
		err = fault.New(fault.NotFound, "no chat yet; start one with: %s", cli.Chats.First)
	}
	return newest.Path, err
}

func (p *program) printSave(raw json.RawMessage) error {
	if p.json {
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
func (p *program) download(ctx context.Context, c *cli.Client, path, file string) error {
	res, err := c.Send(ctx, http.MethodGet, path, nil, "*/*")
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if file == "" || file == "-" {
		_, err = io.Copy(p.data, res.Body)
		return err
	}
	part := file + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		_ = os.Remove(part) // the earlier failure is reported
	}
	return err
}
