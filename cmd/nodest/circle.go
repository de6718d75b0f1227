package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

const circlePath = "/api/v1/circle"

// circlePost is a post as the feed has it.
type circlePost struct {
	ID           string          `json:"id"`
	Author       cli.Member      `json:"author"`
	Text         string          `json:"text"`
	ImageNames   []string        `json:"imageNames"`
	Thoughts     string          `json:"thoughts"`
	Favorite     bool            `json:"favorite"`
	Likes        []circleLike    `json:"likes"`
	CommentCount int             `json:"commentCount"`
	Comments     []circleComment `json:"comments"` // oldest first
	CreatedAt    time.Time       `json:"createdAt"`
}

type circleComment struct {
	ID       string     `json:"id"`
	Author   cli.Member `json:"author"`
	ReplyTo  string     `json:"replyTo"`
	Depth    int        `json:"depth"`
	Text     string     `json:"text"`
	Thoughts string     `json:"thoughts"`
	Deleted  bool       `json:"deleted"`
}

type circleLike struct {
	Author cli.Member `json:"author"`
}

// circleCommand is nodest circle: the feed without the page.
func (p *program) circleCommand() *cobra.Command {
	var author string
	var favorites, thoughts bool
	var limit int
	cmd := &cobra.Command{
		Use: "circle", Short: "Read the feed of your characters, post, comment and like", Args: cobra.NoArgs,
		Long: "Print the feed, newest first, with the latest comments of each post. Characters that take part (enable) react at their own\n" +
			"pace, within minutes to hours; turns shows what is planned. POST is the id of a post, or the beginning of an id or of a\n" +
			"text if only one post matches; delete needs the whole text or an id.",
		Example: "  nodest circle\n  nodest circle enable Seraphina\n  nodest circle post 'The first snow!' --image garden.jpg\n  nodest circle comment 'The first' 'It is cold, too.'",
		RunE: p.command(func(ctx context.Context, c *cli.Client, _ []string) error {
			query := url.Values{
				"limit": {strconv.Itoa(limit)}, "favorites": {strconv.FormatBool(favorites)}, "thoughts": {strconv.FormatBool(thoughts)},
			}
			if author != "" {
				id, err := circleAuthor(ctx, c, author)
				if err != nil {
					return err
				}
				query.Set("authorId", id)
			}
			var page cli.PageOf[circlePost]
			return p.answer(ctx, c, http.MethodGet, cli.Posts.Path+"?"+query.Encode(), nil, &page, func() error {
				for i := range page.Items {
					p.showPost(&page.Items[i])
				}
				if len(page.Items) == 0 {
					fmt.Fprintln(p.err, "no posts; let characters take part with: nodest circle enable CHARACTER, and write with: nodest circle post TEXT")
				}
				return nil
			})
		}),
	}
	cmd.Flags().StringVar(&author, "author", "", "only posts by this character (name or id), or by me")
	cmd.Flags().BoolVar(&favorites, "favorites", false, "only your favourites")
	cmd.Flags().BoolVar(&thoughts, "thoughts", false, "also print what the authors thought and did not say")
	cmd.Flags().IntVarP(&limit, "limit", "n", 10, "maximum number of posts, 1 to 200")
	cmd.AddCommand(p.circleShow(), p.circlePost(), p.circleComment(), p.circleLike(), p.circleDelete(), p.circleTurns(),
		p.circleRelationships(), p.membership("enable", true), p.membership("disable", false), p.circleCost())
	return p.withJSON(cmd, "print JSON")
}

// circleAuthor is the id of an author by a word for it.
func circleAuthor(ctx context.Context, c *cli.Client, word string) (string, error) {
	if strings.EqualFold(word, "me") {
		var me struct{ ID string }
		err := c.Call(ctx, http.MethodGet, "/api/v1/me", nil, &me)
		return me.ID, err
	}
	found, err := c.Find(ctx, word, cli.Characters)
	return found.ID, err
}

// showPost prints a post with the comments that it has.
func (p *program) showPost(post *circlePost) {
	marks := ""
	if post.Favorite {
		marks += ", favourite"
	}
	fmt.Fprintf(p.out, "%s  %s  %s (likes: %d, comments: %d%s)\n", post.ID, cli.ShortTime(post.CreatedAt), post.Author.Called(), len(post.Likes), post.CommentCount, marks)
	p.indented("    ", post.Text)
	for _, name := range post.ImageNames {
		p.indented("    ", "[image: "+name+"]")
	}
	if post.Thoughts != "" {
		p.indented("    ", "["+post.Author.Called()+" thought: "+post.Thoughts+"]")
	}
	for _, c := range asThreads(post.Comments) {
		text := c.Author.Called() + ": " + c.Text
		if c.Deleted {
			text = "(deleted)"
		}
		if c.Thoughts != "" {
			text += " [thought: " + c.Thoughts + "]"
		}
		p.indented(strings.Repeat("  ", 3+min(max(c.Depth, 1), 6)), c.ID+"  "+text)
	}
	fmt.Fprintln(p.out)
}

// asThreads puts each comment below the one that it answers and the earlier answers to that.
func asThreads(comments []circleComment) []circleComment {
	var shown []circleComment
	for _, c := range comments {
		at := len(shown)
		if i := slices.IndexFunc(shown, func(to circleComment) bool { return to.ID == c.ReplyTo }); i >= 0 {
			for at = i + 1; at < len(shown) && shown[at].Depth > shown[i].Depth; at++ {
			}
		}
		shown = slices.Insert(shown, at, c)
	}
	return shown
}

func (p *program) indented(by, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(p.out, by+strings.TrimRight(line, "\n"))
	}
}

func (p *program) circleShow() *cobra.Command {
	var thoughts bool
	cmd := &cobra.Command{
		Use: "show POST", Short: "Print a post with all of its comments", Args: cobra.ExactArgs(1),
		Example: "  nodest circle show 'The first snow' --thoughts",
		RunE: p.named(cli.Posts, func(ctx context.Context, c *cli.Client, post cli.Item, _ []string) error {
			return p.answerPost(ctx, c, http.MethodGet, fmt.Sprintf("%s?thoughts=%t", post.Path, thoughts), nil)
		}),
	}
	cmd.Flags().BoolVar(&thoughts, "thoughts", false, "also print what the authors thought and did not say")
	return p.withJSON(cmd, "print JSON")
}

// answerPost is answer for a post.
func (p *program) answerPost(ctx context.Context, c *cli.Client, method, path string, body any) error {
	var post circlePost
	return p.answer(ctx, c, method, path, body, &post, func() error {
		p.showPost(&post)
		return nil
	})
}

func (p *program) circlePost() *cobra.Command {
	var as string
	var images []string
	cmd := &cobra.Command{
		Use: "post TEXT…", Short: "Write a post, as yourself or as one of your characters", Args: cobra.ArbitraryArgs,
		Example: "  nodest circle post 'The first snow!' --image garden.jpg --image cat.png\n  nodest circle post 'I kept the light on.' --as Seraphina",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			if len(args) == 0 && len(images) == 0 {
				return cli.Usage("a post needs a TEXT or an --image")
			}
			in := map[string]any{"text": strings.Join(args, " ")}
			if as != "" {
				author, err := c.Find(ctx, as, cli.Characters)
				if err != nil {
					return err
				}
				in["authorId"] = author.ID
			}
			if len(images) > 0 {
				ids, err := uploadImages(ctx, c, images)
				if err != nil {
					return err
				}
				in["images"] = ids
			}
			return p.answerPost(ctx, c, http.MethodPost, cli.Posts.Path, in)
		}),
	}
	cmd.Flags().StringVar(&as, "as", "", "the character (name or id) that writes it; default: you")
	cmd.Flags().StringArrayVar(&images, "image", nil, "an image file: PNG, JPEG, WebP or GIF; up to four times")
	return p.withJSON(cmd, "print JSON")
}

// uploadImages uploads files and returns the ids of their attachments.
func uploadImages(ctx context.Context, c *cli.Client, files []string) ([]string, error) {
	ids := make([]string, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var made struct{ ID string }
		if err := c.Upload(ctx, "/api/v1/attachments", file, data, nil, &made); err != nil {
			public := fault.Public(err)
			return nil, fault.New(public.Code, "%s: %s", file, public.Message)
		}
		ids[i] = made.ID
	}
	return ids, nil
}

func (p *program) circleComment() *cobra.Command {
	var replyTo string
	cmd := &cobra.Command{
		Use: "comment POST TEXT…", Short: "Comment on a post, or reply to a comment", Args: cobra.MinimumNArgs(2),
		Example: "  nodest circle comment 'The first snow' 'It is cold, too.'\n  nodest circle comment 'The first snow' 'Bring a coat.' --reply-to 019a1f0c-7d1e-7b2a-9c3d-2f4e5a6b7c8d",
		RunE: p.named(cli.Posts, func(ctx context.Context, c *cli.Client, post cli.Item, words []string) error {
			in := map[string]any{"text": strings.Join(words, " ")}
			if replyTo != "" {
				in["replyTo"] = replyTo
			}
			var made struct{ ID, Text string }
			return p.answer(ctx, c, http.MethodPost, post.Path+"/comments", in, &made, func() error {
				_, err := fmt.Fprintf(p.out, "%s  %s\n", made.ID, made.Text)
				return err
			})
		}),
	}
	cmd.Flags().StringVar(&replyTo, "reply-to", "", "id of the comment to reply to; nodest circle show POST prints it")
	return p.withJSON(cmd, "print JSON")
}

func (p *program) circleLike() *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use: "like POST", Short: "Like a post, or take the like back", Args: cobra.ExactArgs(1),
		Example: "  nodest circle like 'The first snow'\n  nodest circle like 'The first snow' --undo",
		RunE: p.named(cli.Posts, func(ctx context.Context, c *cli.Client, post cli.Item, _ []string) error {
			method := http.MethodPut
			if undo {
				method = http.MethodDelete
			}
			return c.Call(ctx, method, post.Path+"/like", nil, nil)
		}),
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "take the like back")
	return cmd
}

func (p *program) circleDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete POST", Short: "Delete a post with its comments, or one comment",
		Long: "Delete a post, given by its whole text or id, with its comments and likes; or only one of its comments. Planned reactions\n" +
			"are cancelled. The command asks for confirmation; in a script, add --yes.",
		Example: "  nodest circle delete 019a1f0c-7d1e-7b2a-9c3d-2f4e5a6b7c8d --yes",
	}
	comment := cmd.Flags().String("comment", "", "id of the comment to delete; the post stays")
	return p.deleting(cmd, cli.Posts, func(post cli.Item) (what, path string) {
		if *comment != "" {
			return "delete the comment", post.Path + "/comments/" + url.PathEscape(*comment)
		}
		return "delete the post with its comments", post.Path
	})
}

// circleTurn is what a character will do or has done.
type circleTurn struct {
	CharacterID string
	PostID      string
	CommentID   string
	Slot        string
	Reason      string
	State       string
	Note        string
	Error       *struct{ Detail string }
	DueAt       time.Time
	EndedAt     *time.Time
}

func (t *circleTurn) row(names map[string]string) []string {
	what, at, why := "reaction", t.DueAt, t.Reason
	switch {
	case t.Slot != "":
		what = "post"
	case t.CommentID != "":
		what = "reply"
	}
	if t.EndedAt != nil {
		at = *t.EndedAt
	}
	if t.Note != "" {
		why += "; " + t.Note
	}
	if t.Error != nil {
		why += "; " + t.Error.Detail
	}
	return []string{cli.ShortTime(at), cli.Brief(names[t.CharacterID], 30), what, t.State, cli.Brief(why, 80)}
}

func (p *program) circleTurns() *cobra.Command {
	var state string
	var limit int
	cmd := &cobra.Command{
		Use: "turns [POST]", Short: "List what characters will do and have done, and why", Args: cobra.MaximumNArgs(1),
		Long: "List what characters will do and have done, newest first: reactions to posts, replies to comments, and posts of their own.\n" +
			"WHEN is the time at which a turn is due or was carried out. docs/circle.md explains the notes in the column WHY.",
		Example: "  nodest circle turns\n  nodest circle turns 'The first snow'\n  nodest circle turns --state failed",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			path := circlePath + "/turns?" + url.Values{"limit": {strconv.Itoa(limit)}, "state": {state}}.Encode()
			if len(args) > 0 {
				if state != "" {
					return cli.Usage("--state does not go with a POST")
				}
				post, err := c.Find(ctx, args[0], cli.Posts)
				if err != nil {
					return err
				}
				path = post.Path + "/turns?limit=" + strconv.Itoa(limit)
			}
			names, err := c.CharacterNames(ctx)
			if err != nil {
				return err
			}
			var page cli.PageOf[circleTurn]
			return p.answer(ctx, c, http.MethodGet, path, nil, &page, func() error {
				if len(page.Items) == 0 {
					fmt.Fprintln(p.err, "no turns; characters that take part decide within a minute whether they react to a post")
					return nil
				}
				rows := [][]string{{"WHEN", "CHARACTER", "WHAT", "STATE", "WHY"}}
				for i := range page.Items {
					rows = append(rows, page.Items[i].row(names))
				}
				return cli.Table(p.out, rows)
			})
		}),
	}
	cmd.Flags().StringVar(&state, "state", "", "only turns in this state: planned, done, nothing, left_out or failed")
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "maximum number of turns, 1 to 200")
	return p.withJSON(cmd, "print JSON")
}

func (p *program) circleRelationships() *cobra.Command {
	cmd := &cobra.Command{
		Use: "relationships [CHARACTER]", Short: "List what members think of each other and of you", Args: cobra.MaximumNArgs(1),
		Example: "  nodest circle relationships Seraphina\n  nodest circle relationships --json",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			path := circlePath + "/relationships"
			if len(args) > 0 {
				of, err := c.Find(ctx, args[0], cli.Characters)
				if err != nil {
					return err
				}
				path += "?characterId=" + url.QueryEscape(of.ID)
			}
			var graph struct {
				Nodes []cli.Member `json:"nodes"`
				Edges []struct {
					CharacterID  string `json:"characterId"`
					TargetID     string `json:"targetId"`
					Strength     int    `json:"strength"`
					Type         string `json:"type"`
					Interactions int    `json:"interactions"`
					Description  string `json:"description"`
				} `json:"edges"`
			}
			return p.answer(ctx, c, http.MethodGet, path, nil, &graph, func() error {
				if len(graph.Edges) == 0 {
					fmt.Fprintln(p.err, "no relationships yet; one begins when somebody likes, or answers, what a character wrote")
					return nil
				}
				names := map[string]string{}
				for _, n := range graph.Nodes {
					names[n.ID] = n.Called()
				}
				rows := [][]string{{"MEMBER", "ABOUT", "STRENGTH", "TYPE", "INTERACTIONS", "DESCRIPTION"}}
				for _, e := range graph.Edges {
					rows = append(rows, []string{
						cli.Brief(names[e.CharacterID], 30), cli.Brief(names[e.TargetID], 30), strconv.Itoa(e.Strength), e.Type,
						strconv.Itoa(e.Interactions), cli.Brief(e.Description, 50),
					})
				}
				return cli.Table(p.out, rows)
			})
		}),
	}
	return p.withJSON(cmd, "print JSON")
}

// membership is the command enable or disable.
func (p *program) membership(name string, on bool) *cobra.Command {
	short := map[bool]string{true: "Let a character take part in the circle", false: "Take a character out of the circle; its posts stay"}[on]
	return &cobra.Command{
		Use: name + " CHARACTER", Short: short, Args: cobra.ExactArgs(1), Example: "  nodest circle " + name + " Seraphina",
		RunE: p.named(cli.Characters, func(ctx context.Context, c *cli.Client, ch cli.Item, _ []string) (err error) {
			said := "%s takes part in the circle\n"
			if on {
				err = c.Call(ctx, http.MethodPost, circlePath+"/characters/"+url.PathEscape(ch.ID)+"/init", nil, nil)
			} else {
				said = "%s no longer takes part in the circle\n"
				err = leaveCircle(ctx, c, ch)
			}
			if err == nil {
				_, err = fmt.Fprintf(p.err, said, ch.Name)
			}
			return err
		}),
	}
}

// leaveCircle changes one setting of a character and keeps the others; it fails if they
// have changed since the character was read.
func leaveCircle(ctx context.Context, c *cli.Client, ch cli.Item) error {
	path := ch.Path + "/settings"
	var set map[string]json.RawMessage
	if err := c.Call(ctx, http.MethodGet, path, nil, &set); err != nil {
		return err
	}
	circle := map[string]json.RawMessage{}
	if raw := set["circle"]; raw != nil {
		if err := json.Unmarshal(raw, &circle); err != nil {
			return err
		}
	}
	circle["enabled"] = json.RawMessage("false")
	raw, err := json.Marshal(circle)
	if err != nil {
		return err
	}
	set["circle"], set["ifVersion"] = raw, json.RawMessage(strconv.FormatInt(ch.Version, 10))
	return c.Call(ctx, http.MethodPut, path, set, nil)
}

func (p *program) circleCost() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cost", Short: "Show what the circle asked of the model on each day, and the limits", Args: cobra.NoArgs,
		Long: "Show what the circle asked of the model on each of your last 30 days, its limits, and how many reactions and posts were\n" +
			"left out because of them.",
		Example: "  nodest circle cost --json",
		RunE: p.command(func(ctx context.Context, c *cli.Client, _ []string) error {
			var cost struct {
				Today string
				Days  []struct {
					Day                    string
					Calls, Tokens, LeftOut int64
				}
				CallsPerDay, TokensPerDay int64
			}
			return p.answer(ctx, c, http.MethodGet, circlePath+"/spend", nil, &cost, func() error {
				rows := [][]string{{"DAY", "CALLS", "TOKENS", "LEFT OUT"}}
				for _, d := range cost.Days {
					rows = append(rows, []string{d.Day, strconv.FormatInt(d.Calls, 10), strconv.FormatInt(d.Tokens, 10), strconv.FormatInt(d.LeftOut, 10)})
				}
				if err := cli.Table(p.out, rows); err != nil {
					return err
				}
				_, err := fmt.Fprintf(p.out, "limits per day: %d calls, %d tokens\n", cost.CallsPerDay, cost.TokensPerDay)
				return err
			})
		}),
	}
	return p.withJSON(cmd, "print JSON")
}
