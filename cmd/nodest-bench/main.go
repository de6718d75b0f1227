// Command nodest-bench measures NodeST on this machine: streaming, long chats, memories, documents,
// the circle. It must not be needed to run NodeST: the program that users get has none of it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"nodest/internal/bench"
	"nodest/knowledge/parse"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodest-bench:", err)
		os.Exit(1)
	}
}

// program is what the commands share.
type program struct {
	getenv   func(string) string
	out, err io.Writer
	flags    map[string]string // settings given as flags, by environment name
}

// run is the program without its process.
func run(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) error {
	p := &program{getenv: getenv, out: out, err: errOut, flags: map[string]string{}}
	root := &cobra.Command{
		Use: "nodest-bench", Short: "Measure NodeST on this machine", Example: "  nodest-bench chat",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(p.chatCommand(), p.historyCommand(), p.yearCommand(), p.retrievalCommand(), p.circleCommand(), p.dreamCommand(), p.feedbackCommand(), p.kbCommand(), p.frameworkCommand(), &cobra.Command{
		Use: "references", Short: "Measure citing sources: matching, picking parts of pages, cutting texts", Args: cobra.NoArgs, Example: "  nodest-bench references",
		RunE: func(cmd *cobra.Command, _ []string) error { return bench.References(cmd.Context(), p.out) },
	}, p.floorCommand(), &cobra.Command{
		Use: "parse-worker", Short: "Parse one file from standard input", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return parse.Work(cmd.Context(), os.Stdin, os.Stdout) },
	})
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	return root.ExecuteContext(ctx)
}
