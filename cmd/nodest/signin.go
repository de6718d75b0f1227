package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/internal/setup"
)

func (p *program) signinCommand() *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use: "signin", Short: "Print a new sign-in link for the running server", Args: cobra.NoArgs,
		Long: "Print a new sign-in link for the running server. The link works once, within 24 hours. The command uses the server at\n" +
			"NODEST_ADDR, with NODEST_TOKEN, NODEST_ADMIN_TOKEN or the token that the server keeps in its data folder.",
		Example: "  nodest signin\n  nodest signin --user alice\n  docker compose exec nodest nodest signin",
	}
	cmd.Flags().StringVar(&user, "user", "", "user whom the link signs in; default: the owner")
	cmd.RunE = p.configured(func(ctx context.Context, cfg *setup.Config, _ []string) error {
		c, err := p.reach(ctx, cfg)
		var nobody *cli.NobodyError
		if errors.As(err, &nobody) {
			return fmt.Errorf("%w. Start it with nodest serve, or give its address with --addr", nobody)
		}
		if err != nil {
			return err
		}
		var made struct {
			Link      string `json:"link"`
			Username  string `json:"username"`
			ExpiresIn int    `json:"expiresIn"`
		}
		if err := c.Call(ctx, http.MethodPost, "/api/v1/auth/links", map[string]any{"username": user}, &made); err != nil {
			if fault.Is(err, fault.NotFound) {
				return fmt.Errorf("no user %q; run nodest user list to see all", user)
			}
			return err
		}
		link := signInURL(cfg, c.Base, made.Link)
		if p.json {
			return p.printJSON(map[string]any{"url": link, "username": made.Username, "expiresIn": made.ExpiresIn})
		}
		until := time.Now().Add(time.Duration(made.ExpiresIn) * time.Second)
		fmt.Fprintf(p.err, "Sign in once as %s, until %s:\n", made.Username, until.Format("2 January 15:04"))
		_, err = fmt.Fprintln(p.out, link)
		return err
	})
	return p.withJSON(cmd, "print JSON")
}

// signInURL is where a browser opens a sign-in link.
func signInURL(cfg *setup.Config, base, link string) string {
	if public := cfg.Get("NODEST_PUBLIC_URL"); public != "" {
		base = strings.TrimSuffix(public, "/")
	}
	return base + "/signin#" + link
}

func (p *program) userPasswordCommand() *cobra.Command {
	return &cobra.Command{
		Use: "password [NAME]", Short: "Set your password, or as an owner another user's", Args: cobra.MaximumNArgs(1),
		Long: "Set your password, or as an owner another user's. It is read from the terminal, or from standard input,\n" +
			"one line each: the current password if you change your own and have one, then the new one. If an owner has forgotten\n" +
			"theirs, set NODEST_ADMIN_TOKEN on the server and NODEST_TOKEN here to the same value; then no current password is needed.",
		Example: "  nodest user password\n  nodest user password alice",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			return p.setPassword(ctx, c, strings.Join(args, ""))
		}),
	}
}

func (p *program) setPassword(ctx context.Context, c *cli.Client, name string) error {
	var u cli.Item
	if err := c.Call(ctx, http.MethodGet, "/api/v1/me", nil, &u); err != nil {
		return err
	}
	own := name == "" || strings.EqualFold(name, u.Username)
	if !own {
		var err error
		if u, err = c.Whole().Find(ctx, name, cli.Users); err != nil {
			return err
		}
	}
	var prompts []string
	isAdmin := c.Token != "" && c.Token == p.getenv("NODEST_ADMIN_TOKEN")
	if own && u.HasPassword && !isAdmin {
		prompts = append(prompts, "Current password: ")
	}
	answers, err := p.readSecrets(append(prompts, "New password: ")...)
	if err != nil {
		return err
	}
	body := map[string]any{"password": answers[len(answers)-1]}
	if len(answers) > 1 {
		body["currentPassword"] = answers[0]
	}
	if err := c.Call(ctx, http.MethodPatch, "/api/v1/users/"+url.PathEscape(u.ID), body, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s can sign in with the new password\n", u.Username)
	return err
}

func (p *program) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Show the newest entries of the audit log: sign-ins, and changes of accounts, rights and keys", Args: cobra.NoArgs,
		Example: "  nodest audit",
		RunE: p.command(func(ctx context.Context, c *cli.Client, _ []string) error {
			var page cli.AuditPage
			return p.answer(ctx, c, http.MethodGet, cli.AuditPath, nil, &page, func() error { return cli.Table(p.out, page.Rows()) })
		}),
	}
	return p.withJSON(cmd, "print the page as JSON")
}

// readSecrets reads one line per prompt: from a terminal without echo, from
// anything else as it is.
func (p *program) readSecrets(prompts ...string) ([]string, error) {
	answers := make([]string, len(prompts))
	f, ok := p.in.(*os.File)
	if ok && term.IsTerminal(int(f.Fd())) {
		for i, prompt := range prompts {
			fmt.Fprint(p.err, prompt)
			text, err := term.ReadPassword(int(f.Fd()))
			fmt.Fprintln(p.err)
			if err != nil {
				return nil, err
			}
			answers[i] = string(text)
		}
		return answers, nil
	}
	lines := bufio.NewReader(p.in)
	for i, prompt := range prompts {
		line, err := lines.ReadString('\n')
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			return nil, fmt.Errorf("standard input ended before the line for %q", strings.TrimSuffix(prompt, ": "))
		}
		answers[i] = strings.TrimRight(line, "\r\n")
	}
	return answers, nil
}
