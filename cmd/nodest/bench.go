package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"nodest/bench"
)

func (p *program) benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure NodeST on this machine", Example: "  nodest bench chat"}
	cmd.AddCommand(p.benchChatCommand(), p.benchHistoryCommand(), p.benchRetrievalCommand(), p.benchFloorCommand(), &cobra.Command{
		Use: "framework", Short: "Building a prompt from 1,000 messages and 500 entries", Args: cobra.NoArgs, Example: "  nodest bench framework",
		RunE: func(*cobra.Command, []string) error { return bench.Framework(p.out) },
	})
	return cmd
}

func (p *program) benchChatCommand() *cobra.Command {
	var o bench.ChatOptions
	cmd := &cobra.Command{
		Use: "chat", Short: "Streaming, idle connections, start-up and storing, over real processes", Args: cobra.NoArgs,
		Long: "Starts servers of this program on SQLite in a temporary folder, with a model that costs nothing,\n" +
			"and for streaming a bare proxy beside them. It takes about three minutes and both cores.",
		Example: "  nodest bench chat\n  nodest bench chat --only idle",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			if v := p.getenv("GORACE"); v != "" {
				o.Env = append(o.Env, "GORACE="+v)
			}
			return bench.Chat(cmd.Context(), p.out, o)
		},
	}
	cmd.Flags().StringVar(&o.Only, "only", "", strings.Join(bench.ChatParts, ", "))
	cmd.Flags().BoolVar(&o.JSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&o.Small, "small", false, "small sizes, to try it out")
	return cmd
}

func (p *program) benchRetrievalCommand() *cobra.Command {
	var o bench.RetrievalOptions
	cmd := &cobra.Command{
		Use: "retrieval", Short: "How well memories are found again", Args: cobra.NoArgs,
		Long: "Reads conversations with questions about them, one JSON object per line, imports them into a database in\n" +
			"a temporary folder, and asks the memory of a chat. Prints how many of the items that hold the answer are\n" +
			"among the first ones, and how long a question takes.\n\n" +
			"With --chat it reads no file: it fills a memory in English and one in Chinese, and prints for how many turns\n" +
			"of a chat the right lines, or for small talk none, would be in the prompt.",
		Example: "  nodest bench retrieval --locomo dev.json\n  nodest bench retrieval --memorybank dev_zh.json --json\n  nodest bench retrieval --chat --misses",
		RunE:    func(cmd *cobra.Command, _ []string) error { return bench.Retrieval(cmd.Context(), p.out, o) },
	}
	cmd.Flags().StringVar(&o.LoCoMo, "locomo", "", "file where an item is a turn")
	cmd.Flags().StringVar(&o.MemoryBank, "memorybank", "", "file where an item is an exchange; several with commas")
	cmd.Flags().BoolVar(&o.Lexical, "lexical", false, "by words alone, without vectors")
	cmd.Flags().BoolVar(&o.Prompt, "prompt", false, "what a prompt gets of it: at most 10 items and 1,500 characters")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&o.Chat, "chat", false, "instead of a file: the turns of a chat in English and Chinese, as prompts get memories, beside BM25")
	cmd.Flags().BoolVarP(&o.Misses, "misses", "v", false, "with --chat: print the turns that went wrong")
	cmd.Flags().IntVar(&o.Items, "items", 0, "instead of a file: the times of a made-up scope of so many items")
	cmd.Flags().BoolVar(&o.Fit, "fit", false, "find weights instead, and try them with each conversation left out")
	return cmd
}

func (p *program) benchHistoryCommand() *cobra.Command {
	var o bench.HistoryOptions
	cmd := &cobra.Command{
		Use: "history", Short: "Save points, branches, forks and search in long chats", Args: cobra.NoArgs,
		Long: "Starts a server of this program on SQLite in a temporary folder, with chats of 100, 10,000 and\n" +
			"100,000 messages, one after the other. It takes about three minutes.",
		Example: "  nodest bench history\n  nodest bench history --json",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			if v := p.getenv("GORACE"); v != "" {
				o.Env = append(o.Env, "GORACE="+v)
			}
			return bench.History(cmd.Context(), p.out, o)
		},
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&o.Small, "small", false, "small sizes, to try it out")
	return cmd
}

// benchFloorCommand is the proxy that "bench chat" compares with.
func (p *program) benchFloorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "floor UPSTREAM", Short: "The bare proxy that bench chat compares with", Hidden: true, Args: cobra.ExactArgs(1),
		Example: "  nodest bench floor http://127.0.0.1:9999/v1",
		RunE:    func(cmd *cobra.Command, args []string) error { return bench.Floor(cmd.Context(), p.out, args[0]) },
	}
}
