package main

import (
	"github.com/spf13/cobra"

	"nodest/knowledge/parse"
)

// parseWorkerCommand is what the server runs to parse a foreign file. It reads neither the
// configuration nor the database.
func (p *program) parseWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "parse-worker", Short: "Parse one file from standard input", Hidden: true, Args: cobra.NoArgs,
		Example: "  nodest parse-worker < request",
		RunE:    func(cmd *cobra.Command, _ []string) error { return parse.Work(cmd.Context(), p.in, p.data) },
	}
}
