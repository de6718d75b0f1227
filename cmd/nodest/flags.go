package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"nodest/internal/cli"
	"nodest/internal/setup"
)

// flag lets a setting be given on the command line: NODEST_LOG_LEVEL becomes
// --log-level.
func (p *program) flag(set *pflag.FlagSet, env string) {
	for _, s := range setup.Settings {
		if s.Env == env {
			set.Var(&settingFlag{p, s}, s.Flag(), s.Help)
			return
		}
	}
	panic("no setting " + env) // a typo in this package; every command would panic
}

// settingFlag writes a flag's value where loadConfig looks for it.
type settingFlag struct {
	p *program
	s setup.Setting
}

func (f *settingFlag) String() string     { return f.s.Default }
func (f *settingFlag) Type() string       { return "text" }
func (f *settingFlag) Set(v string) error { f.p.flags[f.s.Env] = v; return nil }

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Print the effective configuration, with secrets masked", Args: cobra.NoArgs,
		Example: "  nodest config --json",
		RunE: p.configured(func(_ context.Context, cfg *setup.Config, _ []string) error {
			if p.json {
				return p.configJSON(cfg)
			}
			var rows [][]string
			for _, s := range setup.Settings {
				rows = append(rows, []string{s.Env, s.Shown(cfg.Get(s.Env)), "(" + cfg.From(s.Env) + ")"})
			}
			return cli.Table(p.out, rows)
		}),
	}
	return p.withJSON(cmd, "print JSON")
}

func (p *program) configJSON(cfg *setup.Config) error {
	all := map[string]string{}
	for _, s := range setup.Settings {
		all[s.Env] = s.Shown(cfg.Get(s.Env))
	}
	enc := json.NewEncoder(p.data)
	enc.SetIndent("", "  ")
	return enc.Encode(all)
}
