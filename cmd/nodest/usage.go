package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a command line that the program cannot act on: exit code 2.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// exitCode prints what is wrong and returns the exit code of the process.
func exitCode(err error, out io.Writer) int {
	if err == nil {
		return 0
	}
	if !errors.Is(err, errSaid) {
		fmt.Fprintln(out, "nodest:", visible(oneLine(err)))
	}
	var wrong *usageError
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
			var wrong *usageError
			if err == nil || errors.As(err, &wrong) {
				return err
			}
			return usage("wrong number of arguments; usage: %s", c.UseLine())
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
		meant = near(args[0], known)
	}
	suggestion := didYouMean(meant)
	if suggestion == "" {
		suggestion = fmt.Sprintf("; run %s --help for a list of commands", c.CommandPath())
	}
	return usage("unknown command %q for %q%s", args[0], c.CommandPath(), suggestion)
}

func flagError(c *cobra.Command, err error) error {
	suggestion := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		suggestion = didYouMean(near("--"+unknown.GetSpecifiedName(), known))
	}
	if suggestion == "" {
		suggestion = fmt.Sprintf("; run %s --help for a list of flags", c.CommandPath())
	}
	return usage("%v%s", err, suggestion)
}

// didYouMean is the end of a message that suggests words, "" for none.
func didYouMean(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(words, ", ") + "?"
}

// near returns at most three words that a mistyped word may have meant, the closest
// first: few letters differ, or one is part of the other.
func near(word string, words []string) []string {
	type candidate struct {
		word string
		far  int
	}
	var found []candidate
	asked := strings.ToLower(word)
	for _, w := range words {
		if w == "" { // something without a name
			continue
		}
		lower := strings.ToLower(w)
		family, _, _ := strings.Cut(lower, ":") // of models: qwen3:8b
		far := min(editDistance(asked, lower), editDistance(asked, family))
		if strings.Contains(lower, asked) || strings.Contains(asked, lower) {
			far = min(far, 1)
		}
		if far <= max(1, 2*min(len([]rune(asked)), len([]rune(family)))/5) {
			found = append(found, candidate{w, far})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.far - b.far })
	var near []string
	for _, c := range found[:min(3, len(found))] {
		near = append(near, c.word)
	}
	return near
}

// editDistance counts the letters to insert, delete, replace or swap with the
// next one that turn a into b.
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range t {
		rows[0][j+1] = j + 1
	}
	for i := range s {
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			best := min(rows[i][j+1]+1, rows[i+1][j]+1, rows[i][j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				best = min(best, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = best
		}
	}
	return rows[len(s)][len(t)]
}
