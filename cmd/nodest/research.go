package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
	"nodest/internal/cli/watch"
)

func (p *program) researchCommand() *cobra.Command {
	order, budget := map[string]any{}, map[string]any{}
	var tokens, seconds int
	var only bool
	cmd := &cobra.Command{
		Use: "research QUESTION…", Short: "Research a question on the web and answer it with sources", Args: cobra.MinimumNArgs(1),
		Long: "Searches, reads and answers within a budget, and shows what it does. Ctrl-C cancels the run on the server.",
		Example: `  nodest research "who keeps the lighthouse of Halden Point, and since when?"
  nodest research --budget 20000 --seconds 120 "which of the two bridges is older?"
  nodest research --plan "what would this cost?"`,
	}
	cmd.RunE = p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		if cmd.Flags().Changed("budget") {
			budget["tokens"] = tokens
		}
		if cmd.Flags().Changed("seconds") {
			budget["seconds"] = seconds
		}
		order["question"], order["budget"] = strings.Join(args, " "), budget
		return p.research(ctx, c, order, only)
	})
	cmd.Flags().IntVar(&tokens, "budget", 60_000, "tokens that the run may use, 2000 to 1000000; without it the setting of the server")
	cmd.Flags().IntVar(&seconds, "seconds", 600, "seconds that the run may take, 10 to 3600; without it the setting of the server")
	cmd.Flags().BoolVar(&only, "plan", false, "only show the plan and the estimate")
	return p.withJSON(cmd, "print the run as JSON")
}

// research plans a run, starts it, shows what it does, and prints its answer.
func (p *program) research(ctx context.Context, c *cli.Client, order map[string]any, only bool) error {
	var made struct{ Research json.RawMessage }
	if err := c.Call(ctx, http.MethodPost, watch.Path, order, &made); err != nil {
		return err
	}
	var run watch.Run
	if err := json.Unmarshal(made.Research, &run); err != nil {
		return err
	}
	if only {
		if err := c.Call(ctx, http.MethodDelete, watch.Path+"/"+run.ID, nil, nil); err != nil {
			return err
		}
		if p.json {
			return p.printJSON(made.Research)
		}
		return watch.ShowPlan(p.out, &run)
	}
	if err := watch.ShowPlan(p.err, &run); err != nil {
		return err
	}
	if err := watch.Start(ctx, c, run.ID, p.err); err != nil {
		return err
	}
	ended, raw, err := watch.Get(ctx, c, run.ID)
	switch {
	case err != nil:
		return err
	case ended.State == "failed" && ended.Error != nil:
		return errors.New(ended.Error.Detail)
	case ended.State == "cancelled":
		return errors.New("the run was cancelled")
	case p.json:
		return p.printJSON(raw)
	}
	return watch.ShowAnswer(p.out, p.err, ended)
}
