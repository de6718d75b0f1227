package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nodest/internal/backup"
	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/internal/setup"
	"nodest/llm"
)

func (p *program) doctorCommand() *cobra.Command {
	var health, offlineOnly bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check configuration, database and providers, and suggest fixes", Args: cobra.NoArgs,
		Example: "  nodest doctor",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if health {
				return p.health(cmd.Context())
			}
			return p.doctor(cmd.Context(), !offlineOnly)
		},
	}
	cmd.Flags().BoolVar(&health, "health", false, "check only whether the server responds (for container health checks)")
	cmd.Flags().BoolVar(&offlineOnly, "no-network", false, "do not contact the providers")
	return p.withJSON(cmd, "print the checks as JSON")
}

// health succeeds if the server of this configuration is ready.
func (p *program) health(ctx context.Context) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	c := cli.New(reachable(cfg.Get("NODEST_ADDR")), "")
	return c.Call(ctx, http.MethodGet, "/readyz", nil, nil)
}

// check is one line of the doctor's report.
type check struct {
	name   string
	detail string
	fix    string // the remedy; "" = all is well
}

// MarshalJSON is a check as --json shows it.
func (c check) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name   string `json:"name"`
		OK     bool   `json:"ok"`
		Detail string `json:"detail"`
		Fix    string `json:"fix,omitempty"`
	}{c.name, c.fix == "", c.detail, c.fix})
}

// doctor prints one line per check and fails if any check did.
func (p *program) doctor(ctx context.Context, network bool) error {
	checks := p.examine(ctx, network)
	if p.json {
		if err := p.printJSON(checks); err != nil {
			return err
		}
	}
	failed := 0
	for _, c := range checks {
		mark := "✓"
		if c.fix != "" {
			mark = "✗"
			failed++
		}
		if p.json {
			continue
		}
		fmt.Fprintf(p.out, "%s %s: %s\n", mark, c.name, c.detail)
		if c.fix != "" {
			fmt.Fprintf(p.out, "    %s\n", c.fix)
		}
	}
	if failed > 0 {
		return errSaid
	}
	return nil
}

// examine makes the checks. Without a configuration there is nothing else to look
// at.
func (p *program) examine(ctx context.Context, network bool) []check {
	cfg, err := p.config()
	if err != nil {
		return []check{{"configuration", "invalid", err.Error()}}
	}
	log := setup.NewLog(p.err, cfg)
	checks := []check{{name: "configuration", detail: strings.Join(append([]string{"valid"}, setup.Unknown(os.Environ())...), "; ")}, p.checkFolder(cfg), p.checkDatabase(ctx, cfg)}
	if checks[2].fix == "" {
		checks = append(checks, checkDocuments(ctx, cfg, log), checkCounters(ctx, cfg, log), checkBackups(ctx, cfg, log))
	}
	checks = append(checks, checkRetention(cfg), checkParser(ctx))
	m, err := setup.NewModels(cfg, log, func(context.Context, string) (map[string]string, error) { return nil, nil })
	if err != nil {
		return append(checks, check{"providers", "misconfigured", oneLine(err)})
	}
	return slices.Concat(checks, modelChecks(ctx, cfg, m, network), checkSearch(ctx, cfg, network), checkToolServers(ctx, cfg, network), checkRerank(cfg))
}

func (p *program) checkFolder(cfg *setup.Config) check {
	dir := cfg.Get("NODEST_DATA")
	f, err := os.CreateTemp(dir, "doctor-*")
	if errors.Is(err, os.ErrNotExist) {
		return check{name: "data folder", detail: dir + " does not exist yet; nodest serve creates it"}
	}
	if err != nil {
		return check{"data folder", dir + " is not writable", "make it writable for the user who runs the server: " + reason(err)}
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	secret := filepath.Join(dir, backup.SecretFile)
	if info, err := os.Stat(secret); err == nil && info.Mode().Perm()&0o077 != 0 {
		return check{"data folder", backup.SecretFile + " is readable by other users", "chmod 600 " + secret}
	}
	return check{name: "data folder", detail: dir}
}

// checkDatabase asks the running server; without one it opens the database.
func (p *program) checkDatabase(ctx context.Context, cfg *setup.Config) check {
	var nobody *cli.NobodyError
	switch c, err := p.reach(ctx, cfg); {
	case err == nil:
		if err := c.Call(ctx, http.MethodGet, "/readyz", nil, nil); err != nil {
			return check{"database", "the running server is not ready", oneLine(err)}
		}
		return check{name: "database", detail: "the running server is ready"}
	case !errors.As(err, &nobody):
		return check{"server", reachable(cfg.Get("NODEST_ADDR")) + " is not usable", oneLine(err)}
	}
	kind := "SQLite"
	if cfg.Get("NODEST_DATABASE_URL") != "" {
		kind = "PostgreSQL"
	}
	if !hasDatabase(cfg) {
		return check{name: "database", detail: kind + "; created at the first start"}
	}
	r, err := p.open(ctx, cfg)
	if err != nil {
		return check{"database", kind + " cannot be opened", oneLine(err)}
	}
	defer r.Close()
	if err := r.Stop(time.Second); err != nil {
		return check{"database", kind + " did not shut down cleanly", oneLine(err)}
	}
	return check{name: "database", detail: kind + " opens and is up to date"}
}

// modelChecks asks each configured provider for its models.
func modelChecks(ctx context.Context, cfg *setup.Config, m *setup.Models, network bool) []check {
	var checks []check
	for _, name := range setup.ProviderNames {
		p := m.Client(name)
		if p == nil {
			continue
		}
		c := check{name: "provider " + name}
		named := name == m.Default() && cfg.Get("NODEST_MODEL") != ""
		if named || network || name == "offline" {
			model := p.DefaultModel(ctx)
			c.detail = "model " + model
			if by := setup.Transport(p, model); by != "" {
				c.detail += " through " + by
			}
		} else {
			c.detail = "model of the provider's list"
		}
		if name == m.Default() {
			c.detail += " (default)"
		}
		if network {
			c.ask(ctx, p, m.Fallbacks())
		}
		checks = append(checks, c)
	}
	if m.Client(m.Default()) == nil {
		checks = append(checks, check{name: "provider " + m.Default(), detail: "none of the built-in ones (" + strings.Join(setup.ProviderNames, ", ") +
			"): replies need a server that an owner adds by this name on the Models page, where Test checks it (default)"})
	}
	checks = append(checks, checkVectors(ctx, m, network))
	if m.Default() == "offline" {
		checks = append(checks, check{name: "note", detail: "with the settings of this terminal, only the offline demo model is configured; set a provider key to use a real model"})
	}
	return checks
}

// checkVectors has a text embedded, if the network may be used.
func checkVectors(ctx context.Context, m *setup.Models, network bool) check {
	name, e, why, err := m.Vectors(ctx, network)
	if err != nil {
		return check{"embeddings", name, oneLine(err)}
	}
	c := check{name: "embeddings", detail: e.ModelID()}
	if !network {
		return c
	}
	if why != nil {
		c.detail += ", because the server has no embeddings (" + fault.Public(why).Message + ")"
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := e.Embed(ctx, llm.Query, []string{"hello"}); err != nil {
		c.fix = cmp.Or(fault.Public(err).Message, "no response")
	}
	return c
}

// ask notes what is wrong with a provider and with the models that it is asked for.
func (c *check) ask(ctx context.Context, p llm.Provider, fallbacks []llm.Ref) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	offered, err := p.Models(ctx)
	switch {
	case setup.Unlisted(err):
		c.detail += "; not checked, because the server has no list of models (" + fault.Public(err).Message +
			"). If it does not answer in a chat either, check the base URL"
		return
	case err != nil:
		c.fix = fault.Public(err).Message
		return
	}
	var ids []string
	for _, m := range offered {
		ids = append(ids, m.ID)
	}
	if c.fix = missing(p.DefaultModel(ctx), ids, "Set NODEST_MODEL."); c.fix != "" {
		return
	}
	for _, ref := range fallbacks {
		if ref.Provider == p.Name() && ref.Model != "" && c.fix == "" {
			c.fix = missing(ref.Model, ids, "Correct NODEST_FALLBACKS.")
		}
	}
}

// missing says that a model is not among those offered, which are like it, and where
// to name another one.
func missing(model string, offered []string, remedy string) string {
	plain, _, _ := strings.Cut(model, ":") // OpenRouter takes more words behind it than it lists
	for _, id := range offered {
		if id == model || id == plain || id == model+":latest" || id == "models/"+model {
			return ""
		}
	}
	if len(offered) == 0 {
		return fmt.Sprintf("model %q is not available: the server lists no models", model)
	}
	fix := fmt.Sprintf("model %q is not among the models the server lists (%d)", model, len(offered))
	if meant := cli.DidYouMean(cli.Near(model, offered)); meant != "" {
		return fix + meant + " " + remedy
	}
	return fix + ". " + remedy
}
