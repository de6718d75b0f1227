package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flag lets a setting be given on the command line: NODEST_LOG_LEVEL becomes
// --log-level.
func (p *program) flag(set *pflag.FlagSet, env string) {
	for _, s := range settings {
		if s.env == env {
			set.Var(&settingFlag{p, s}, s.flag(), s.help)
			return
		}
	}
	panic("no setting " + env) // a typo in this package; every command would panic
}

// settingFlag writes a flag's value where loadConfig looks for it.
type settingFlag struct {
	p *program
	s setting
}

func (f *settingFlag) String() string     { return f.s.def }
func (f *settingFlag) Type() string       { return "text" }
func (f *settingFlag) Set(v string) error { f.p.flags[f.s.env] = v; return nil }

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Print the effective configuration, with secrets masked", Args: cobra.NoArgs,
		Example: "  nodest config --json",
		RunE: p.configured(func(_ context.Context, cfg *config, _ []string) error {
			if p.json {
				return p.configJSON(cfg)
			}
			var rows [][]string
			for _, s := range settings {
				rows = append(rows, []string{s.env, s.shown(cfg.get(s.env)), "(" + cfg.from[s.env] + ")"})
			}
			return table(p.out, rows)
		}),
	}
	p.jsonFlag(cmd, "print JSON")
	return cmd
}

func (p *program) configJSON(cfg *config) error {
	all := map[string]string{}
	for _, s := range settings {
		all[s.env] = s.shown(cfg.get(s.env))
	}
	enc := json.NewEncoder(p.data)
	enc.SetIndent("", "  ")
	return enc.Encode(all)
}
