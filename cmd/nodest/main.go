// Command nodest is the chat-character server and its tools: it serves the API, chats
// in the terminal, imports and exports documents, and manages users, tokens and backups.
// It must not measure anything: cmd/nodest-bench does.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/internal/setup"
)

// version is set by the Makefile.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err, os.Stderr))
}

// errSaid ends a command with exit code 1 without a message.
var errSaid = errors.New("already reported")

// oneLine is what the user of the command line sees of an error: of a coded one
// the public message, of others the text, since it is the user's own machine.
func oneLine(err error) string {
	if f := fault.Public(err); f.Code != fault.Internal {
		return f.Message
	}
	var file *fs.PathError
	if errors.As(err, &file) && (errors.Is(file, fs.ErrPermission) || errors.Is(file, syscall.EROFS)) {
		return fmt.Sprintf("cannot %s %s: %v. Check the owner and permissions of this file and of the folder %s",
			file.Op, file.Path, file.Err, filepath.Dir(file.Path))
	}
	return err.Error()
}

// reason is oneLine for a message that begins with the name of the file.
func reason(err error) string {
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return file.Err.Error()
	}
	return oneLine(err)
}

// program is what the commands share: everything from outside comes in here, so
// that a test can run any command in its own process.
type program struct {
	getenv func(string) string
	in     io.Reader
	out    io.Writer         // for texts, whose control characters it escapes
	data   io.Writer         // for files and JSON, as they are
	err    io.Writer         // as out
	screen io.Writer         // standard error itself, for progress
	flags  map[string]string // settings given as flags, by environment name
	alone  bool              // --local
	json   bool              // --json
}

// run is the program without its process.
func run(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out, errOut io.Writer) error {
	p := &program{getenv: getenv, in: in, data: out, screen: errOut, flags: map[string]string{}}
	shown, said := cli.NewVisibleWriter(out), cli.NewVisibleWriter(errOut)
	p.out, p.err = shown, said
	if cli.IsTerminal(out) { // escaped JSON is the same JSON
		p.data = p.out
	}
	root := p.root()
	wrongHelp := strictHelp(root)
	strict(root)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err := cmp.Or(root.ExecuteContext(ctx), wrongHelp())
	return cmp.Or(err, shown.Flush(), said.Flush())
}

// everywhere lists the settings that are flags of every command; those that are
// no secret are flags of serve.
var everywhere = []string{"NODEST_ADDR", "NODEST_DATA", "NODEST_DATABASE_URL", "NODEST_CONFIG", "NODEST_LOG_LEVEL"}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "nodest",
		Short: "A chat-character backend: prompt building, memory, WebSocket",
		Long: "A chat-character backend: prompt building, memory, WebSocket.\n\n" +
			"Commands use the server that works on the data folder, whatever its address is, or the one at NODEST_ADDR. If none is\n" +
			"running, they say so and work directly on the database in the data folder, if it exists. They create a new database only\n" +
			"with --local. The commands serve, migrate, backup and restore always work on the database themselves.",
		Example:       "  nodest serve\n  nodest import card.png && nodest chat",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("nodest {{.Version}}\n")
	root.PersistentFlags().BoolVar(&p.alone, "local", false, "work on the data folder without a server; create its database if needed")
	for _, name := range everywhere {
		p.flag(root.PersistentFlags(), name)
	}
	root.AddCommand(p.serveCommand(), p.configCommand(), p.versionCommand())
	root.AddCommand(p.more()...)
	return root
}

// config loads the configuration with the flags of the command line.
func (p *program) config() (*setup.Config, error) { return setup.Load(p.getenv, p.flags) }

// configured is RunE of a command that needs the configuration.
func (p *program) configured(f func(ctx context.Context, cfg *setup.Config, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := p.config()
		if err != nil {
			return err
		}
		return f(cmd.Context(), cfg, args)
	}
}

func (p *program) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  nodest version",
		RunE: func(*cobra.Command, []string) error {
			if p.json {
				return p.printJSON(map[string]string{"version": version})
			}
			_, err := fmt.Fprintln(p.out, "nodest", version)
			return err
		},
	}
	return p.withJSON(cmd, "print JSON")
}
