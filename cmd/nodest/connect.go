package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"nodest/internal/backup"
	"nodest/internal/cli"
	"nodest/internal/instance"
	"os"
	"path/filepath"
	"strings"

	"nodest/internal/fault"
	"nodest/internal/setup"
	"nodest/store"
	"nodest/store/sqldb"
)

// connect returns a client of the server that the configuration means. Without a
// server it starts one in this process, on the database of the data folder: on
// one that is there already, or with --local on a new one. In every other case it
// says what is wrong and has created nothing.
func (p *program) connect(ctx context.Context) (c *cli.Client, closeAll func(), err error) {
	cfg, err := p.config()
	if err != nil {
		return nil, nil, err
	}
	if p.alone {
		return p.startOwn(ctx, cfg)
	}
	c, err = p.reach(ctx, cfg)
	var nobody *cli.NobodyError
	if errors.As(err, &nobody) {
		return p.instead(ctx, cfg, nobody)
	}
	return c, func() {}, err
}

// reach returns a client of the server that the configuration means: the one at NODEST_ADDR, if that is
// set, and the one that works on the data folder, whose lock knows its address.
//
// Errors: nobodyError; others with the reason in words.
func (p *program) reach(ctx context.Context, cfg *setup.Config) (*cli.Client, error) {
	configured := reachable(cfg.Get("NODEST_ADDR"))
	holder := ""
	if cfg.Get("NODEST_DATABASE_URL") == "" {
		holder = reachable(sqldb.FolderServer(cfg.DataFolder()))
	}
	if holder == "" || holder == configured || cfg.From("NODEST_ADDR") == "flag" {
		return p.greet(ctx, cfg, configured)
	}
	var nobody *cli.NobodyError
	if cfg.From("NODEST_ADDR") != "default" {
		if c, err := p.greet(ctx, cfg, configured); !errors.As(err, &nobody) {
			return c, err
		}
	}
	c, err := p.greet(ctx, cfg, holder)
	if err == nil {
		fmt.Fprintf(p.err, "using the server at %s, which works on the data folder %s\n", holder, cfg.DataFolder())
	}
	return c, err
}

// greet returns a client of the server at an address.
func (p *program) greet(ctx context.Context, cfg *setup.Config, addr string) (*cli.Client, error) {
	token, from, err := p.token(cfg)
	if err != nil {
		return nil, err
	}
	c := cli.New(addr, token)
	err = c.Greet(ctx)
	switch {
	case err == nil:
		return c, nil
	case !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.TokenExpired):
		return nil, err
	case token == "":
		return nil, fmt.Errorf("a NodeST server is running at %s, but there is no token for it: the data folder %s has no %s. "+
			"Set --data to the folder of that server, or NODEST_TOKEN to one of your tokens (see nodest token create)",
			addr, cfg.DataFolder(), instance.TokenFile)
	}
	return nil, fmt.Errorf("the NodeST server at %s rejected the token from %s: %s. "+
		"If this is the wrong server, set --addr and --data; if the account was deleted, restart the server, which writes a new token",
		addr, from, oneLine(err))
}

// instead starts a server of our own where none answers, if that is what the user
// means.
func (p *program) instead(ctx context.Context, cfg *setup.Config, nobody *cli.NobodyError) (*cli.Client, func(), error) {
	if p.getenv("NODEST_TOKEN") != "" || cfg.From("NODEST_ADDR") == "flag" || !setup.Loopback(nobody.Addr) {
		return nil, nil, fmt.Errorf("%w. Check the address (--addr or NODEST_ADDR), or add --local to work on the data folder %s without a server",
			nobody, cfg.DataFolder())
	}
	missing, database := "database", "the data folder "+cfg.DataFolder()
	if cfg.Get("NODEST_DATABASE_URL") != "" {
		missing, database = backup.SecretFile, "the PostgreSQL database at NODEST_DATABASE_URL"
	}
	if !hasDatabase(cfg) {
		return nil, nil, fmt.Errorf("%w, and the data folder %s has no %s. Start a server with nodest serve, "+
			"set --addr or --data for an existing one, or add --local to create a new one there", nobody, cfg.DataFolder(), missing)
	}
	c, closeAll, err := p.startOwn(ctx, cfg)
	if err == nil {
		fmt.Fprintf(p.err, "%v; working directly on %s\n", nobody, database)
	}
	if errors.Is(err, sqldb.ErrInUse) {
		err = fmt.Errorf("%w, and %w. Set NODEST_ADDR to the address of that process", nobody, err)
	}
	return c, closeAll, err
}

// token returns the token for the server, and where it comes from; "" for none.
func (p *program) token(cfg *setup.Config) (token, from string, err error) {
	if token := p.getenv("NODEST_TOKEN"); token != "" {
		return token, "NODEST_TOKEN", nil
	}
	path := filepath.Join(cfg.DataFolder(), instance.TokenFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg.Get("NODEST_ADMIN_TOKEN"), "NODEST_ADMIN_TOKEN", nil
	}
	return strings.TrimSpace(string(text)), path, err
}

// hasDatabase reports whether a server has worked with this data folder.
func hasDatabase(cfg *setup.Config) bool {
	if cfg.Get("NODEST_DATABASE_URL") == "" {
		return store.Exists(cfg.DataFolder())
	}
	for _, name := range []string{backup.SecretFile, instance.TokenFile} { // the folder holds the secrets alone
		if _, err := os.Stat(filepath.Join(cfg.DataFolder(), name)); err == nil {
			return true
		}
	}
	return false
}

// reachable turns an address to listen on into one to connect to.
func reachable(addr string) string {
	for _, all := range []string{"0.0.0.0:", "[::]:", ":"} {
		if port, ok := strings.CutPrefix(addr, all); ok {
			return "127.0.0.1:" + port
		}
	}
	return addr
}
