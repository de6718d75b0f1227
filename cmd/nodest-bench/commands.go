package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nodest/card"
	"nodest/internal/bench"
	"nodest/internal/bench/circle"
	"nodest/internal/bench/kb"
	"nodest/internal/bench/learning"
	"nodest/internal/fault"
	"nodest/internal/setup"
)

func (p *program) chatCommand() *cobra.Command {
	cmd, o := p.servers(bench.Chat)
	cmd.Use, cmd.Short = "chat", "Measure streaming, idle connections, start-up and storage with real processes"
	cmd.Long = "Starts servers of nodest on SQLite in a temporary folder, with a local fake model,\n" +
		"and a bare proxy as the baseline for streaming. It takes about five minutes."
	cmd.Example = "  nodest-bench chat\n  nodest-bench chat --only idle"
	cmd.Flags().StringVar(&o.Only, "only", "", strings.Join(bench.ChatParts, ", "))
	cmd.Flags().DurationVar(&o.FirstToken, "first-token", 20*time.Millisecond, "time of the model to its first token")
	return cmd
}

func (p *program) historyCommand() *cobra.Command {
	cmd, _ := p.servers(bench.History)
	cmd.Use, cmd.Short = "history", "Measure save points, branches, forks and search in long chats"
	cmd.Long = "Starts a server of nodest on SQLite in a temporary folder, with chats of 100, 10,000 and\n" +
		"100,000 messages, one after another. It takes about five minutes."
	cmd.Example = "  nodest-bench history\n  nodest-bench history --json"
	return cmd
}

func (p *program) yearCommand() *cobra.Command {
	var o bench.YearOptions
	cmd, s := p.servers(func(ctx context.Context, out io.Writer, s bench.ServerOptions) error {
		o.ServerOptions = s
		return bench.Year(ctx, out, o)
	})
	cmd.Use, cmd.Short = "year", "Measure a long life with a character: disk per turn, turns, memories, search"
	cmd.Long = "Starts servers of nodest on SQLite in a temporary folder, with a local fake model. Makes a user with a\n" +
		"long chat, and others with shorter ones, from generated English and Chinese texts. It takes about two minutes\n" +
		"with 20,000 messages."
	cmd.Example = "  nodest-bench year\n  nodest-bench year --messages 20000 --json"
	cmd.Flags().IntVar(&o.Messages, "messages", 200_000, "messages of the long chat")
	cmd.Flags().IntVar(&o.Users, "users", 10, "users who take turns, each with a chat of their own")
	cmd.Flags().IntVar(&o.Texts, "texts", 0, "messages of each of these chats (default 15 % of --messages)")
	cmd.Flags().IntVar(&o.Scopes, "scopes", 10, "memories to search before the memory of the server is read: that of the long chat and those of other users")
	cmd.Flags().IntVar(&o.Turns, "turns", 0, "turns whose size on disk is measured (default 200, fewer if there are fewer messages)")
	cmd.Flags().StringVar(&s.Database, "database", "", "URL of a PostgreSQL, in which only the size of a turn is measured, in a schema that is dropped")
	cmd.Flags().DurationVar(&o.Limit, "limit", time.Minute, "time after which a series of measurements ends early")
	cmd.Flags().DurationVar(&o.Wait, "wait", 10*time.Minute, "maximum time to wait until all texts have vectors")
	return cmd
}

// findProgram returns the program nodest: that in a folder, or one that is built from the source code
// around the current folder and removed by remove.
func findProgram(ctx context.Context, folder string) (path string, remove func() error, err error) {
	path = filepath.Join(folder, "nodest")
	if _, err := os.Stat(path); err == nil {
		return path, func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "nodest-bench-")
	if err != nil {
		return "", nil, err
	}
	path, remove = filepath.Join(dir, "nodest"), func() error { return os.RemoveAll(dir) }
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "nodest/cmd/nodest")
	if out, err := build.CombinedOutput(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("there is no nodest in %s, and it cannot be built here (--program names another one): %w: %s", folder, err, bytes.TrimSpace(out)), remove())
	}
	return path, remove, nil
}

// servers is a measurement that starts servers.
func (p *program) servers(measure func(context.Context, io.Writer, bench.ServerOptions) error) (*cobra.Command, *bench.ServerOptions) {
	o := &bench.ServerOptions{}
	cmd := &cobra.Command{Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) (err error) {
		if o.Bench, err = os.Executable(); err != nil {
			return err
		}
		remove := func() error { return nil }
		if o.Program == "" {
			if o.Program, remove, err = findProgram(cmd.Context(), filepath.Dir(o.Bench)); err != nil {
				return err
			}
		}
		if v := p.getenv("GORACE"); v != "" {
			o.Env = append(o.Env, "GORACE="+v)
		}
		return errors.Join(measure(cmd.Context(), p.out, *o), remove())
	}}
	cmd.Flags().StringVar(&o.Program, "program", "", "program to measure (default: nodest beside this program, else built from the source code)")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&o.Small, "small", false, "use small sizes, for a quick try")
	return cmd, o
}

func (p *program) retrievalCommand() *cobra.Command {
	var o bench.RetrievalOptions
	embeddings := "offline"
	cmd := &cobra.Command{
		Use: "retrieval", Short: "Measure how well memories are found", Args: cobra.NoArgs,
		Long: "Reads conversations and questions about them (one JSON object per line), imports them into a database in\n" +
			"a temporary folder, and searches the memory for each question. Prints how many of the items with the\n" +
			"answer are among the first results, and how long a search takes.\n\n" +
			"With --chat it needs no file: it fills an English and a Chinese memory and prints for how many turns of a chat\n" +
			"the prompt would contain the right memories (none for small talk).\n\n" +
			"With --probes the lines of a file are said in one chat of one user, in the order of their days, between 480\n" +
			"turns of noise, and imported: facts are extracted by rules. Each question is then the message of a turn in a new\n" +
			"chat, at noon on Saturday, 2026-11-28. For each kind of probe it prints:\n" +
			"  n       probes\n" +
			"  good    the answer is in the memory block or in the profile, no stale value is above it or in the profile, and\n" +
			"          at most five lines are above it; where there is nothing to find: there is no block\n" +
			"  half    the answer is there, but not good\n" +
			"  wrong   the others\n" +
			"  blocks  probes for which there is a block\n" +
			"  first   probes whose answer is in the first line of the block\n" +
			"  stale   probes whose stale value is in the profile\n" +
			"  lines   mean number of lines of a block, where there is one",
		Example: "  nodest-bench retrieval --locomo dev.json\n  nodest-bench retrieval --memorybank dev_zh.json --json\n  nodest-bench retrieval --chat --misses\n" +
			"  nodest-bench retrieval --probes ../shared/data/probes/en.txt -v\n  nodest-bench retrieval --probes en.txt --noise locomo/dev.json --embeddings random --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Random = embeddings == "random"; !o.Random && embeddings != "offline" {
				return fmt.Errorf("--embeddings must be offline or random, not %q", embeddings)
			}
			return bench.Retrieval(cmd.Context(), p.out, o)
		},
	}
	cmd.Flags().StringVar(&o.LoCoMo, "locomo", "", "LoCoMo file (one item per turn)")
	cmd.Flags().StringVar(&o.MemoryBank, "memorybank", "", "MemoryBank file (one item per exchange); several, separated by commas")
	cmd.Flags().StringVar(&o.Probes, "probes", "", "file of probes (see shared/data/probes/README.md); several, separated by commas")
	cmd.Flags().StringVar(&o.Noise, "noise", "", "with --probes, file with the turns between the probes, in the form of --locomo\n(default: beside the folder of the probes, madial/madial_zh.jsonl for Chinese ones, else locomo/dev.json)")
	cmd.Flags().StringVar(&embeddings, "embeddings", embeddings, "offline, or random: a configured embedding model whose vectors mean nothing")
	cmd.Flags().BoolVar(&o.Lexical, "lexical", false, "search by words only, without embeddings")
	cmd.Flags().BoolVar(&o.Prompt, "prompt", false, "measure what reaches the prompt: at most 10 items and 1,500 characters")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&o.Chat, "chat", false, "instead of a file, measure recall in built-in English and Chinese chats, compared with BM25")
	cmd.Flags().BoolVarP(&o.Misses, "misses", "v", false, "with --chat or --probes, print the turns with wrong results")
	cmd.Flags().IntVar(&o.Items, "items", 0, "instead of a file, measure the speed with this number of generated items")
	return cmd
}

func (p *program) feedbackCommand() *cobra.Command {
	var o learning.FeedbackOptions
	cmd := &cobra.Command{
		Use: "feedback", Short: "Measure what evaluations do to the rank of memories", Args: cobra.NoArgs,
		Long: "Simulated users evaluate what a real recall finds, one time in ten wrongly, in worlds in which a quarter, half and\n" +
			"three quarters of the sources help; a helpful one turns wrong in the middle. Prints the bounds of the factor,\n" +
			"what it gains over no feedback and over permuted labels (bootstrap by user), the share of places for what was\n" +
			"never shown, and how soon wrong sources fall.",
		RunE: func(cmd *cobra.Command, _ []string) error { return learning.Feedback(cmd.Context(), p.out, o) },
	}
	cmd.Flags().IntVar(&o.Users, "users", 60, "simulated users of each world")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "seed of the simulation")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func (p *program) circleCommand() *cobra.Command {
	var o circle.Options
	cmd := &cobra.Command{
		Use: "circle", Short: "Let a social circle live for some days in virtual time", Args: cobra.NoArgs,
		Long: "Simulates a user with characters that post and react, with a scripted model and with the offline model, on\n" +
			"SQLite in a temporary folder. Prints how lively the circle was, how much it repeated itself, and what it cost.\n\n" +
			"With --database two processes work on the circle at the same time, on PostgreSQL.",
		Example: "  nodest-bench circle\n  nodest-bench circle --days 7 --characters 5 --seed 3 --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return circle.Measure(cmd.Context(), p.out, o) },
	}
	cmd.Flags().IntVar(&o.Days, "days", 30, "days to simulate")
	cmd.Flags().IntVar(&o.Characters, "characters", 20, "characters that take part")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "of the user and the scripted model; ids are random, so figures differ a little from run to run")
	cmd.Flags().StringVar(&o.Database, "database", "", "URL of a PostgreSQL, in which the simulation makes, and drops, a schema of its own")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func (p *program) dreamCommand() *cobra.Command {
	var o learning.DreamOptions
	cmd := &cobra.Command{
		Use: "dream", Short: "Let a character dream for some nights in virtual time", Args: cobra.NoArgs,
		Long: "A scripted model rewrites, shrinks, invents and says things twice. Prints what became of the documents of the\n" +
			"memory: lines of the user, junk, the lowest size, and the calls of a night.",
		Example: "  nodest-bench dream --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return learning.Dream(cmd.Context(), p.out, o) },
	}
	cmd.Flags().IntVar(&o.Nights, "nights", 30, "nights to simulate")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func (p *program) kbCommand() *cobra.Command {
	var o kb.Options
	var embeddings string
	cmd := &cobra.Command{
		Use: "kb", Short: "Measure how well questions find documents and passages", Args: cobra.NoArgs,
		Long: "Parses, cuts and embeds the documents of a folder, and asks the questions of a file:\n" +
			"one JSON object per line with id, lang, question, answerable, file, quote and cross_lingual. Prints how often the\n" +
			"right document and the right passage are among the first results, with plain BM25 beside it, and the speed.\n\n" +
			"With --loop scripted a character also answers the questions in real chats, with a scripted model that searches,\n" +
			"reads and cites: how often the right passage is cited, and what that takes, with tools and without. With\n" +
			"--loop live the default model of the configuration answers; each question costs it several requests.\n\n" +
			"With --synthetic it needs no files: it prints how fast that number of generated chunks is searched.",
		Example: "  nodest-bench kb --corpus docs --queries queries.jsonl --json\n  nodest-bench kb --synthetic 100000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.liveKB(cmd.Context(), &o, embeddings); err != nil {
				return err
			}
			return kb.Run(cmd.Context(), p.out, o)
		},
	}
	cmd.Flags().StringVar(&o.Corpus, "corpus", "", "folder of documents")
	cmd.Flags().StringVar(&o.Queries, "queries", "", "file of questions")
	cmd.Flags().StringVar(&o.Mode, "mode", "hybrid", "hybrid, lexical or vector")
	cmd.Flags().StringVar(&o.Rerank, "rerank", "local", "local or none")
	cmd.Flags().IntVar(&o.Every, "every", 1, "ask every nth question only")
	cmd.Flags().StringVar(&embeddings, "embeddings", "offline", "offline, or configured: the embedding model of the configuration")
	cmd.Flags().StringVar(&o.Loop, "loop", "", "scripted or live: also measure chats in which a model answers the questions")
	cmd.Flags().IntVar(&o.LoopEvery, "loop-every", 1, "with --loop, answer every nth question only")
	cmd.Flags().IntVar(&o.Synthetic, "synthetic", 0, "instead of files, measure the speed with this number of generated chunks")
	cmd.Flags().BoolVarP(&o.Misses, "misses", "v", false, "print the questions whose document or passage is not found")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&o.Gate, "gate", "", "fail if a figure is below the one in this file, which has the form of the JSON output")
	return cmd
}

// liveKB adds the models of the configuration that a measurement asks for.
func (p *program) liveKB(ctx context.Context, o *kb.Options, embeddings string) error {
	if embeddings != "offline" && embeddings != "configured" {
		return fmt.Errorf("--embeddings must be offline or configured, not %q", embeddings)
	}
	if embeddings == "offline" && o.Loop != kb.LoopLive {
		return nil
	}
	cfg, err := setup.Load(p.getenv, p.flags)
	if err != nil {
		return err
	}
	m, err := setup.NewModels(cfg, setup.NewLog(p.err, cfg), func(context.Context, string) (map[string]string, error) { return nil, nil })
	if err != nil {
		return err
	}
	if o.Loop == kb.LoopLive {
		o.Models = m
	}
	if embeddings == "configured" {
		if o.Embedder, err = m.Embedder(ctx, ""); err == nil && o.Embedder == nil {
			err = fault.New(fault.NotConfigured, "no embedding model is configured")
		}
	}
	return err
}

// floorCommand is the proxy that "nodest-bench chat" compares with.
func (p *program) floorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "floor UPSTREAM", Short: "Run the bare proxy that chat uses as a baseline", Hidden: true, Args: cobra.ExactArgs(1),
		Example: "  nodest-bench floor http://127.0.0.1:9999/v1",
		RunE:    func(cmd *cobra.Command, args []string) error { return bench.Floor(cmd.Context(), p.out, args[0]) },
	}
}

func (p *program) frameworkCommand() *cobra.Command {
	dialect := string(card.NodeST)
	cmd := &cobra.Command{
		Use: "framework", Short: "Measure building a prompt from 1,000 messages and 500 entries", Args: cobra.NoArgs,
		Example: "  nodest-bench framework --dialect sillytavern",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch card.Dialect(dialect) {
			case card.NodeST:
				return bench.Framework(cmd.Context(), p.out)
			case card.SillyTavern:
				return bench.FrameworkSillyTavern(cmd.Context(), p.out)
			}
			return fmt.Errorf("--dialect must be %s or %s", card.NodeST, card.SillyTavern)
		},
	}
	cmd.Flags().StringVar(&dialect, "dialect", dialect, "of the documents: nodest or sillytavern")
	return cmd
}
