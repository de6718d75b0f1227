package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/internal/setup"
	"nodest/knowledge/parse"
)

// more lists the commands besides serve, config and version.
func (p *program) more() []*cobra.Command {
	return []*cobra.Command{
		p.chatCommand(), p.listCommand(), p.importCommand(), p.exportCommand(), p.bindCommand(), p.unbindCommand(),
		p.saveCommand(), p.lintCommand(), p.promptCommand(), p.searchCommand(), p.readCommand(), p.researchCommand(), p.circleCommand(), p.extractionsCommand(), p.kbCommand(), p.signinCommand(), p.backupCommand(), p.restoreCommand(),
		p.migrateCommand(), p.tokenCommand(), p.userCommand(), p.auditCommand(), p.doctorCommand(), benchCommand(), p.parseWorkerCommand(),
	}
}

// benchCommand says where the benchmarks are, which this program had once.
func benchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "bench", Short: "Says where the benchmarks are", Hidden: true, DisableFlagParsing: true, Example: "  nodest-bench chat",
		RunE: func(*cobra.Command, []string) error {
			return cli.Usage("the benchmarks are a program of their own: nodest-bench (in the source code: go run ./cmd/nodest-bench)")
		},
	}
}

// parseWorkerCommand is what the server runs to parse a foreign file. It reads neither the
// configuration nor the database.
func (p *program) parseWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "parse-worker", Short: "Parse one file from standard input", Hidden: true, Args: cobra.NoArgs,
		Example: "  nodest parse-worker < request",
		RunE:    func(cmd *cobra.Command, _ []string) error { return parse.Work(cmd.Context(), p.in, p.data) },
	}
}

// withJSON gives a command whose output is data the flag --json.
func (p *program) withJSON(cmd *cobra.Command, help string) *cobra.Command {
	cmd.Flags().BoolVar(&p.json, "json", false, help)
	return cmd
}

// printJSON prints one JSON document on a line.
func (p *program) printJSON(v any) error { return json.NewEncoder(p.data).Encode(v) }

// command is RunE of a command that uses the running server, or one of its own.
func (p *program) command(f func(ctx context.Context, c *cli.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return p.withClient(cmd.Context(), func(c *cli.Client) error { return f(cmd.Context(), c, args) })
	}
}

// onItem is what a command does with the thing that its first argument names; rest are the others.
type onItem = func(ctx context.Context, c *cli.Client, found cli.Item, rest []string) error

// named is command for one whose first argument names a thing of a kind.
func (p *program) named(k *cli.Kind, f onItem) func(*cobra.Command, []string) error {
	return p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		found, err := c.Find(ctx, args[0], k)
		if err != nil {
			return err
		}
		return f(ctx, c, found, args[1:])
	})
}

// inFull is named for a name that must be whole.
func (p *program) inFull(k *cli.Kind, f onItem) func(*cobra.Command, []string) error {
	return p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		found, err := c.Whole().Find(ctx, args[0], k)
		if err != nil {
			return err
		}
		return f(ctx, c, found, args[1:])
	})
}

// deleting completes a command that deletes a thing, named in full, once a person or --yes confirms
// it. target says in words what will be done, and to which path.
func (p *program) deleting(cmd *cobra.Command, k *cli.Kind, target func(found cli.Item) (what, path string)) *cobra.Command {
	yes := cmd.Flags().BoolP("yes", "y", false, "do not ask for confirmation")
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = p.inFull(k, func(ctx context.Context, c *cli.Client, found cli.Item, _ []string) error {
		what, path := target(found)
		if !*yes {
			if err := p.confirm(what); err != nil {
				return err
			}
		}
		return c.Call(ctx, http.MethodDelete, path, nil, nil)
	})
	return cmd
}

// answer sends a request and prints the answer: with --json as it came, else by say,
// which finds it in to.
func (p *program) answer(ctx context.Context, c *cli.Client, method, path string, body, to any, say func() error) error {
	var raw json.RawMessage
	if err := c.Call(ctx, method, path, body, &raw); err != nil {
		return err
	}
	if p.json {
		return p.printJSON(raw)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return err
	}
	return say()
}

// withClient runs f against the running server, or one of its own.
func (p *program) withClient(ctx context.Context, f func(c *cli.Client) error) error {
	c, closeAll, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	return f(c)
}

func (p *program) promptCommand() *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use: "prompt CHAT", Short: "Show the request that a message would send to the model", Args: cobra.ExactArgs(1),
		Long: "Show the request that a message would send to the model, where each part comes from and what was left out. CHAT is a\n" +
			"title, an id, or a character with only one chat. Nothing is sent or stored.",
		Example: "  nodest prompt Seraphina --text 'Hello'",
		RunE: p.named(cli.Chats, func(ctx context.Context, c *cli.Client, conv cli.Item, _ []string) error {
			return p.showPrompt(ctx, c, conv, text)
		}),
	}
	cmd.Flags().StringVar(&text, "text", "", "the message; default: show the request for continuing the last reply")
	return p.withJSON(cmd, "print JSON")
}

// showPrompt prints the messages of a request and where each entry came from.
func (p *program) showPrompt(ctx context.Context, c *cli.Client, conv cli.Item, text string) error {
	var prompt struct {
		Messages []struct{ Role, Content string }
		Entries  []struct {
			Source, Name, Why, Role string
			Tokens                  int
		}
		Dropped   []struct{ Source, Name, Reason string }
		Tokens    int
		Budget    int
		Tokenizer string
	}
	return p.answer(ctx, c, http.MethodPost, conv.Path+"/prompt", map[string]any{"text": text}, &prompt, func() error {
		for _, m := range prompt.Messages {
			fmt.Fprintf(p.out, "[%s]\n%s\n\n", m.Role, m.Content)
		}
		rows := [][]string{{"TOKENS", "ROLE", "SOURCE", "NAME", "WHY"}}
		for _, e := range prompt.Entries {
			rows = append(rows, []string{strconv.Itoa(e.Tokens), e.Role, e.Source, e.Name, e.Why})
		}
		for _, d := range prompt.Dropped {
			rows = append(rows, []string{"–", "", d.Source, d.Name, "left out: " + d.Reason})
		}
		if err := cli.Table(p.out, rows); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.out, "%d of %d tokens (%s)\n", prompt.Tokens, prompt.Budget, prompt.Tokenizer)
		return err
	})
}

func (p *program) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "migrate", Short: "Create or upgrade the database (serve also does this)", Args: cobra.NoArgs,
		Long:    "Create or upgrade the database in the data folder or at NODEST_DATABASE_URL. nodest serve also does this when it starts.",
		Example: "  nodest migrate",
		RunE: p.configured(func(ctx context.Context, cfg *setup.Config, _ []string) error {
			r, err := p.open(ctx, cfg)
			if err != nil {
				return err
			}
			defer r.Close()
			if err := r.Stop(cfg.Duration("NODEST_GRACE")); err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.out, "the database is up to date")
			return err
		}),
	}
}

func (p *program) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Create, list and revoke your bearer tokens", Example: "  nodest token create --name phone"}
	var name, expires string
	var quiet bool
	create := &cobra.Command{
		Use: "create", Short: "Create a token; it is shown only once", Args: cobra.NoArgs, Example: "  nodest token create --name phone --expires 720h",
		RunE: p.command(func(ctx context.Context, c *cli.Client, _ []string) error {
			body := map[string]any{"name": name}
			if expires != "" {
				body["expiresIn"] = expires
			}
			var out struct{ Token, ID string }
			return p.answer(ctx, c, http.MethodPost, cli.Tokens.Path, body, &out, func() error {
				if !quiet {
					fmt.Fprintf(p.err, "token %s; it is shown only once:\n", out.ID)
				}
				_, err := fmt.Fprintln(p.out, out.Token)
				return err
			})
		}),
	}
	create.Flags().StringVar(&name, "name", "", "what the token is for")
	create.Flags().StringVar(&expires, "expires", "", "lifetime, such as 720h; default: unlimited")
	create.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the token")
	p.withJSON(create, "print JSON")
	list := p.listCommandOf(cli.Tokens, "List your tokens", "  nodest token list")
	revoke := &cobra.Command{
		Use: "revoke TOKEN", Short: "Revoke a token, given by name or id, immediately", Args: cobra.ExactArgs(1), Example: "  nodest token revoke phone",
		RunE: p.inFull(cli.Tokens, func(ctx context.Context, c *cli.Client, found cli.Item, _ []string) error {
			return c.Call(ctx, http.MethodDelete, found.Path, nil, nil)
		}),
	}
	cmd.AddCommand(create, list, revoke)
	return cmd
}

func (p *program) userCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Create, list and delete accounts, set passwords and limits", Example: "  nodest user create alice"}
	var owner bool
	create := &cobra.Command{
		Use: "create NAME", Short: "Create an account; prompts for the password", Args: cobra.ExactArgs(1),
		Example: "  nodest user create alice --owner",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			role := "member"
			if owner {
				role = "owner"
			}
			answers, err := p.readSecrets("Password: ")
			if err != nil {
				return err
			}
			var out struct{ ID, Username string }
			body := map[string]any{"username": args[0], "password": answers[0], "role": role}
			return p.answer(ctx, c, http.MethodPost, cli.Users.Path, body, &out, func() error {
				_, err := fmt.Fprintf(p.out, "%s  %s\n", out.ID, out.Username)
				return err
			})
		}),
	}
	create.Flags().BoolVar(&owner, "owner", false, "allow this user to manage users")
	p.withJSON(create, "print JSON")
	list := p.listCommandOf(cli.Users, "List the accounts", "  nodest user list")
	cmd.AddCommand(create, list, p.userDeleteCommand(), p.userPasswordCommand(), p.userLimitsCommand())
	return cmd
}

func (p *program) userDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete an account, given by name or id, and all its data",
		Long: "Delete an account, given by its whole name or id, with all its characters, chats and memories. This cannot be undone.\n" +
			"The command asks for confirmation; in a script, add --yes.",
		Example: "  nodest user delete alice",
	}
	return p.deleting(cmd, cli.Users, func(u cli.Item) (what, path string) {
		return fmt.Sprintf("delete the account %s and all its data", u.Username), u.Path
	})
}

// limits of a user; 0 = the server's default.
type limits struct {
	Bytes        int64   `json:"bytes"`
	TokensPerDay int64   `json:"tokensPerDay"`
	Generations  int64   `json:"generations"`
	USDPerMonth  float64 `json:"usdPerMonth"`
}

func (p *program) userLimitsCommand() *cobra.Command {
	var megabytes, tokens, generations int64
	var dollars float64
	cmd := &cobra.Command{
		Use: "limits NAME", Short: "Show or change what a user may store and use", Args: cobra.ExactArgs(1),
		Long: "Change the limits that are given as flags, then show all limits of the user with this name or id. Without flags\n" +
			"nothing changes. 0 is the server's default.",
		Example: "  nodest user limits alice\n  nodest user limits alice --megabytes 5120 --tokens-per-day 200000",
	}
	cmd.Flags().Int64Var(&megabytes, "megabytes", 0, "size of texts, cards, images and memories together, in MiB")
	cmd.Flags().Int64Var(&tokens, "tokens-per-day", 0, "tokens per day (UTC)")
	cmd.Flags().Int64Var(&generations, "generations", 0, "maximum concurrent replies")
	cmd.Flags().Float64Var(&dollars, "usd-per-month", 0, "cost of models per month (UTC) in US dollars, where the provider tells it")
	cmd.RunE = p.inFull(cli.Users, func(ctx context.Context, c *cli.Client, u cli.Item, _ []string) error {
		if megabytes < 0 || megabytes > math.MaxInt64>>20 {
			return cli.Usage("--megabytes must be from 0 to %d", int64(math.MaxInt64>>20))
		}
		changes := map[string]any{
			"bytes": given(cmd, "megabytes", megabytes<<20), "tokensPerDay": given(cmd, "tokens-per-day", tokens),
			"generations": given(cmd, "generations", generations), "usdPerMonth": given(cmd, "usd-per-month", dollars),
		}
		var now struct{ Limits limits }
		// A change of nothing returns the account as it is.
		return p.answer(ctx, c, http.MethodPatch, u.Path, map[string]any{"limits": changes}, &now, func() error {
			_, err := fmt.Fprintln(p.out, now.Limits)
			return err
		})
	})
	return p.withJSON(cmd, "print the account as JSON")
}

func (l limits) String() string {
	return fmt.Sprintf("storage: %s\ntokens per day: %s\nUS dollars per month: %s\nconcurrent replies: %s",
		orDefault(l.Bytes, fault.Size(int(l.Bytes))),
		orDefault(l.TokensPerDay, fmt.Sprint(l.TokensPerDay)),
		orDefault(l.USDPerMonth, fmt.Sprintf("%.2f", l.USDPerMonth)),
		orDefault(l.Generations, fmt.Sprint(l.Generations)))
}

// orDefault returns the text of a limit, or words for one that is not set.
func orDefault[N int64 | float64](limit N, text string) string {
	if limit == 0 {
		return "the server's default"
	}
	return text
}

// confirm asks the person at the terminal whether to do something that cannot be
// undone. Where there is none, it must be confirmed with --yes.
func (p *program) confirm(what string) error {
	if !p.interactive() {
		return cli.Usage("this would %s; add --yes to confirm", what)
	}
	fmt.Fprintf(p.err, "This will %s. It cannot be undone.\nContinue? [y/N] ", what)
	line, err := bufio.NewReader(p.in).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errors.New("nothing was deleted")
}
