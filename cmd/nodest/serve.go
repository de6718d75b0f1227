package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"nodest/internal/cli"
	"nodest/internal/instance"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/setup"
	"nodest/store/sqldb"
)

func (p *program) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the server", Args: cobra.NoArgs, SuggestFor: []string{"start", "run", "server"},
		Long: "Run the server. The first start creates the data folder and the database, and prints how to sign in.\n" +
			"Ctrl-C stops it after running replies have finished.",
		Example: "  nodest serve --addr 127.0.0.1:9000",
		RunE:    p.configured(func(ctx context.Context, cfg *setup.Config, _ []string) error { return p.serve(ctx, cfg) }),
	}
	for _, s := range setup.Settings {
		// The other settings that are not secret are flags of every command; a secret
		// in a command line could be read by everybody on the machine.
		if !s.Secret && !slices.Contains(everywhere, s.Env) {
			p.flag(cmd.Flags(), s.Env)
		}
	}
	return cmd
}

// databaseWait is how long a server waits for a PostgreSQL that is started
// together with it.
const databaseWait = 30 * time.Second

// serve runs until ctx ends or the listener fails. It returns nil after an
// orderly stop.
func (p *program) serve(ctx context.Context, cfg *setup.Config) error {
	// Invalid settings are refused before anything is created.
	addr := cfg.Get("NODEST_ADDR")
	if !cfg.OnlyHere() && cfg.Get("NODEST_ADMIN_TOKEN") == "" && cfg.Get("NODEST_DATABASE_URL") == "" && !hasDatabase(cfg) {
		return account.NobodyCanSignIn()
	}
	listener, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // the HTTP server has closed it, if it came to that
	log := setup.NewLog(p.err, cfg)
	for _, note := range setup.Unknown(os.Environ()) {
		log.Warn(note)
	}
	if u := cfg.Get("NODEST_DATABASE_URL"); u != "" {
		err := sqldb.WaitForPostgres(ctx, u, databaseWait, log)
		if ctx.Err() != nil { // a stop signal: nothing has begun
			return nil
		}
		if err != nil {
			return err
		}
	}
	r, err := p.open(ctx, cfg)
	if err != nil {
		return err
	}
	defer r.Close()
	link, err := r.Accounts.Bootstrap(ctx, cfg.OnlyHere())
	if err != nil {
		return err
	}
	if _, err := r.EnsureTokenFile(ctx, cfg.Get("NODEST_DATA")); err != nil {
		return err
	}
	r.Answer(ctx, listener)
	r.Stay(ctx)
	r.Background.Go(func() { r.Models.Prepare(ctx) })
	p.welcome(r, link)

	select {
	case err = <-r.Failed:
	case <-ctx.Done():
		log.Info("stopping", "cause", context.Cause(ctx))
	}
	return errors.Join(err, r.Stop(cfg.Duration("NODEST_GRACE")))
}

// welcome prints how to sign in and which model answers.
func (p *program) welcome(r *instance.Instance, link string) {
	base := "http://" + reachable(r.Addr)
	fmt.Fprintf(p.out, "NodeST %s listens on %s\n", version, base)
	if link != "" {
		fmt.Fprintf(p.out, "\n  Sign in once with:  %s\n", signInURL(r.Cfg, base, link))
		program := again(r.Cfg)
		fmt.Fprintf(p.out, "  Or in a terminal:   %s import --sample && %s chat\n\n", program, program)
	}
	if r.Models.Default() == "offline" {
		fmt.Fprintln(p.out, "No provider key is set, so the offline demo model replies. See \"A real model\" in the README.")
	}
}

// again is the command that runs this program in another terminal, in the same folder,
// with the settings that the other terminal lacks.
func again(cfg *setup.Config) string {
	words := []string{shellWord(os.Args[0])}
	for _, s := range setup.Settings {
		if value := cfg.Get(s.Env); (s.Env == "NODEST_ADDR" || s.Env == "NODEST_DATA") && value != s.Default {
			words = append(words, "--"+s.Flag(), shellWord(value))
		}
	}
	return strings.Join(words, " ")
}

// shellWord is a word as a shell reads it.
func shellWord(word string) string {
	if strings.ContainsFunc(word, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("./:_-", c)
	}) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// listen listens on an address. If it is in use, the error says by what.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if !errors.Is(err, syscall.EADDRINUSE) {
		if err != nil {
			err = fmt.Errorf("cannot listen on %s: %w", addr, fault.DialCause(err))
		}
		return ln, err
	}
	who := "another program"
	c := cli.New(reachable(addr), "")
	if err := c.Greet(ctx); err == nil || fault.Is(err, fault.Unauthenticated) {
		who = "another NodeST server"
	}
	return nil, fmt.Errorf("cannot listen on %s: %s uses this address. Stop it, or choose another address with --addr", addr, who)
}

// open opens the server of a configuration.
func (p *program) open(ctx context.Context, cfg *setup.Config) (*instance.Instance, error) {
	return instance.Open(ctx, cfg, instance.Options{Version: version, Log: setup.NewLog(p.err, cfg)})
}

// startOwn runs a server in this process for one command.
func (p *program) startOwn(ctx context.Context, cfg *setup.Config) (*cli.Client, func(), error) {
	r, err := p.open(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	closeAll := func() {
		if err := r.Stop(cfg.Duration("NODEST_GRACE")); err != nil {
			fmt.Fprintln(p.err, "nodest:", oneLine(err))
		}
		r.Close()
	}
	ln, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	r.Answer(ctx, ln)
	token, err := r.EnsureTokenFile(ctx, cfg.Get("NODEST_DATA"))
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return cli.New(r.Addr, token), closeAll, nil
}
