package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"nodest/internal/cli"
)

// exitCode prints what is wrong and returns the exit code of the process.
func exitCode(err error, out io.Writer) int {
	if err == nil {
		return 0
	}
	if !errors.Is(err, errSaid) {
		fmt.Fprintln(out, "nodest:", cli.Visible(oneLine(err)))
	}
	var wrong *cli.UsageError
	switch {
	case errors.As(err, &wrong):
		return 2
	case errors.Is(err, context.Canceled): // Ctrl-C
		return 130
	}
	return 1
}

// strict makes a command and those below it refuse what they do not know with a
// usage error that suggests what may have been meant.
func strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(flagError)
	check := cmd.Args
	if cmd.HasSubCommands() {
		check = knownSubcommand
		if !cmd.Runnable() {
			cmd.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	if check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			var wrong *cli.UsageError
			if err == nil || errors.As(err, &wrong) {
				return err
			}
			return cli.Usage("wrong number of arguments; usage: %s", c.UseLine())
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// strictHelp makes help about a command that does not exist an error too. It
// returns what was wrong with the last request for help.
func strictHelp(root *cobra.Command) (wrong func() error) {
	var err error
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c.HasSubCommands() {
			err = knownSubcommand(c, c.Flags().Args())
		}
		if err == nil {
			show(c, args)
		}
	})
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it has just been added
	help.Args = func(_ *cobra.Command, args []string) error {
		if about, rest, _ := root.Find(args); about.HasSubCommands() {
			return knownSubcommand(about, rest)
		}
		return nil
	}
	return func() error { return err }
}

func knownSubcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known, meant []string
	for _, sub := range c.Commands() {
		if sub.Hidden {
			continue
		}
		known = append(known, sub.Name())
		if slices.Contains(sub.SuggestFor, args[0]) {
			meant = append(meant, sub.Name())
		}
		for _, below := range sub.Commands() { // nodest characters: nodest list characters
			if below.Name() == args[0] {
				meant = append(meant, sub.Name()+" "+below.Name())
			}
		}
	}
	if meant == nil {
		meant = cli.Near(args[0], known)
	}
	suggestion := cli.DidYouMean(meant)
	if suggestion == "" {
		suggestion = fmt.Sprintf("; run %s --help for a list of commands", c.CommandPath())
	}
	return cli.Usage("unknown command %q for %q%s", args[0], c.CommandPath(), suggestion)
}

func flagError(c *cobra.Command, err error) error {
	suggestion := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		suggestion = cli.DidYouMean(cli.Near("--"+unknown.GetSpecifiedName(), known))
	}
	if suggestion == "" {
		suggestion = fmt.Sprintf("; run %s --help for a list of flags", c.CommandPath())
	}
	return cli.Usage("%v%s", err, suggestion)
}
