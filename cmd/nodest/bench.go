package main

import (
	"github.com/spf13/cobra"

	"nodest/bench"
)

func (p *program) benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Print figures of this machine", Args: cobra.NoArgs, Example: "  nodest bench framework"}
	cmd.AddCommand(&cobra.Command{
		Use: "framework", Short: "Building a prompt from 1,000 messages and 500 entries", Args: cobra.NoArgs, Example: "  nodest bench framework",
		RunE: func(*cobra.Command, []string) error { return bench.Framework(p.out) },
	})
	return cmd
}
