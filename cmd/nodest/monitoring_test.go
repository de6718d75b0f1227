package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/internal/metrics"
	"nodest/llm/llmtest"
)

// series are the values of a scrape, by name and labels.
type series map[string]float64

var sampleLine = regexp.MustCompile(`(?m)^([a-z_]+(?:\{.*\})?) (\S+)$`)

func scrape(t *testing.T, p *process) (all series, text string) {
	t.Helper()
	text, all = getBody(t, p.client, "/metrics"), series{}
	for _, m := range sampleLine.FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(m[0])
		}
		all[m[1]] = value
	}
	return all, text
}

// troubles are answers of the fake by the words of the message that asks for them.
var troubles = map[string]llmtest.Reply{
	"refuse the key": llmtest.Fail(http.StatusUnauthorized), "run out of credit": llmtest.Fail(http.StatusPaymentRequired),
	"reject": llmtest.Fail(http.StatusBadRequest),
	"break":  {Parts: []llmtest.Part{{Text: "Half a"}}, End: llmtest.Cut},
}

// newTroubled is a server whose model fails as the user asks it to.
func newTroubled(t *testing.T, env ...string) *process {
	t.Helper()
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("m")
	fake.Always(func(r llmtest.Request) llmtest.Reply {
		for _, m := range slices.Backward(r.Messages) {
			for words, reply := range troubles {
				if strings.Contains(m.Text, words) {
					return reply
				}
			}
		}
		return llmtest.Say("Clara ", "keeps ", "bees.")
	})
	return newInstallation(t, "", append([]string{"NODEST_PROVIDER=openai", "NODEST_MODEL=m", "OPENAI_BASE_URL=" + fake.URL, "OPENAI_API_KEY=sk-of-the-owner"}, env...)...).start(t)
}

// turn sends a message in a chat of its own, whose answer comes with the end of the reply: failed tells if it failed.
func turn(t *testing.T, c *cli.Client, character, text string) (failed error) {
	t.Helper()
	return c.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+newConversation(t, c, character)+"/messages", map[string]any{"text": text}, nil)
}

// TestMetricsTellWhatUsersNotice makes turns that succeed and that fail, and reads what each promised metric says.
func TestMetricsTellWhatUsersNotice(t *testing.T) {
	t.Parallel()
	p := newTroubled(t, "NODEST_QUOTA_ITEMS=50", "NODEST_BACKUP_FOLDER="+t.TempDir())
	character := sampleCharacter(t, p.client)
	before, _ := scrape(t, p)
	if err := turn(t, p.client, character, "My sister Clara keeps bees in Lyon."); err != nil {
		t.Fatal(err)
	}
	for words := range troubles {
		if err := turn(t, p.client, character, "Please "+words+"."); err == nil {
			t.Errorf("the model does not %s", words)
		}
	}
	eventually(t, "memories are recalled", func() error {
		if err := turn(t, p.client, character, "Where does Clara keep her bees?"); err != nil {
			return err
		}
		if now, _ := scrape(t, p); now[`nodest_recalls_total{result="memories"}`] == 0 {
			return errNotYet
		}
		return nil
	})
	mia := p.member(t, "mia")
	refused := error(nil)
	for range 51 {
		refused = mia.Call(t.Context(), http.MethodPost, "/api/v1/characters", map[string]any{"roleCard": map[string]any{"name": "Mira"}}, nil)
	}
	if !fault.Is(refused, fault.QuotaExceeded) {
		t.Fatalf("one character too many: %v", refused)
	}
	var me cli.Item
	api(t, p, http.MethodGet, "/me", nil, &me)
	var text string
	for _, moves := range []string{
		`nodest_generations_total{code="ok",status="done"}`, `nodest_generations_total{code="upstream_auth",status="failed"}`,
		`nodest_generations_total{code="upstream_quota",status="failed"}`, `nodest_generations_total{code="upstream_bad_answer",status="failed"}`,
		`nodest_provider_requests_total{code="ok",operation="reply",provider="openai"}`, `nodest_provider_requests_total{code="upstream_auth",operation="reply",provider="openai"}`,
		`nodest_provider_requests_total{code="upstream_quota",operation="reply",provider="openai"}`, `nodest_provider_first_token_seconds_count{provider="openai"}`,
		`nodest_provider_seconds_count{operation="reply",provider="openai"}`, `nodest_tokens_total{direction="prompt",provider="openai"}`,
		`nodest_tokens_total{direction="completion",provider="openai"}`, "nodest_first_token_seconds_count", "nodest_generation_seconds_count",
		`nodest_recalls_total{result="none"}`, "nodest_recall_seconds_count", `nodest_quota_refusals_total{quota="characters"}`, `nodest_errors_total{code="quota_exceeded"}`,
		`nodest_http_requests_total{method="POST",route="/api/v1/characters",status="429"}`, `nodest_backup_last_success_timestamp_seconds`,
	} {
		eventually(t, moves+" moves", func() error {
			var now series
			if now, text = scrape(t, p); now[moves] <= before[moves] {
				return fmt.Errorf("it is %v, and was %v", now[moves], before[moves])
			}
			return nil
		})
	}
	eventually(t, "attempts at jobs are counted", func() error {
		if _, text = scrape(t, p); !strings.Contains(text, `outcome="done"} `) || !strings.Contains(text, "nodest_job_seconds_count{kind=") {
			return errNotYet
		}
		return nil
	})
	after, _ := scrape(t, p)
	for name, want := range map[string]float64{
		"nodest_database_up": 1, "nodest_connections_limit": 10_000, "nodest_connections": 0, "nodest_jobs_failed": 0, "nodest_relay_dropped_total": 0, "nodest_backup_failed": 0,
	} {
		if got, found := after[name]; !found || got != want {
			t.Errorf("%s is %v (there: %v), not %v", name, got, found, want)
		}
	}
	// A failed request of a user is one request to the provider: it is not repeated, and counted once.
	if n := after[`nodest_provider_requests_total{code="upstream_auth",operation="reply",provider="openai"}`]; n != 1 {
		t.Errorf("%v requests with a refused key", n)
	}
	for _, secret := range []string{me.ID, character, "mia", "Clara", "Lyon", "sk-of", "Mira", `"m"`} {
		if secret == "" || strings.Contains(text, secret) {
			t.Errorf("the metrics have %q", secret)
		}
	}
	checkNames(t, text)
	p.stop(t)
}

var (
	helpLine   = regexp.MustCompile(`(?m)^# HELP ((?:nodest|go|process|promhttp)_\w+) `)
	documented = regexp.MustCompile("(?m)^\\| `(nodest_\\w+)` \\| (counter|gauge|histogram) \\| ")
	named      = regexp.MustCompile(`\b(nodest_\w+|go_\w+|process_\w+)\b`)
	suffix     = regexp.MustCompile(`_(bucket|count|sum)$`)
)

// checkNames compares the metrics of a server, after events of all kinds, with those that the page lists, and
// those that the dashboard and the alerts ask for.
func checkNames(t *testing.T, text string) {
	t.Helper()
	exist := map[string]bool{}
	for _, m := range helpLine.FindAllStringSubmatch(text, -1) {
		exist[m[1]] = true
	}
	for _, name := range whileOpen(t) {
		exist[name] = true
	}
	listed := map[string]bool{}
	for _, m := range documented.FindAllStringSubmatch(readDoc(t, "monitoring.md"), -1) {
		listed[m[1]] = true
		if !exist[m[1]] {
			t.Errorf("docs/monitoring.md lists %s, which does not exist", m[1])
		}
	}
	for name := range exist {
		if strings.HasPrefix(name, "nodest_") && !listed[name] {
			t.Errorf("docs/monitoring.md does not list %s", name)
		}
	}
	for what, queries := range map[string][]string{"the dashboard": dashboardQueries(t), "an alert": alertQueries(t)} {
		if len(queries) < 15 {
			t.Errorf("%s has %d queries", what, len(queries))
		}
		for _, query := range queries {
			names := named.FindAllString(query, -1)
			for _, name := range names {
				if !exist[name] && !exist[suffix.ReplaceAllString(name, "")] {
					t.Errorf("%s asks for %s, which does not exist: %s", what, name, query)
				}
			}
			if len(names) == 0 && !strings.HasPrefix(query, "up{") {
				t.Errorf("%s asks for no metric of ours: %s", what, query)
			}
		}
	}
}

// whileOpen are the metrics that exist only while something waits.
func whileOpen(t *testing.T) (names []string) {
	t.Helper()
	s := metrics.New()
	s.Watch(func(context.Context) (*metrics.Backlog, error) {
		one := map[string]metrics.Queue{"x": {Count: 1}}
		return &metrics.Backlog{Generations: one, Due: one, RunningJobs: map[string]int64{"x": 1}}, nil
	})
	families, err := s.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "nodest_generations_o") || strings.HasPrefix(name, "nodest_jobs_") {
			names = append(names, name)
		}
	}
	return names
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dashboardQueries are the queries of the dashboard. Its form is checked on the way: panels have ids of their own, lie
// on a grid of 24 columns and do not overlap, and name the data source that the importer chooses.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	var board struct {
		UID, Title    string
		SchemaVersion int
		Templating    struct{ List []struct{ Name, Type string } }
		Panels        []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct {
				RefID, Expr string
				Datasource  struct{ Type, UID string }
			}
		}
	}
	if err := json.Unmarshal([]byte(readDoc(t, "monitoring/grafana.json")), &board); err != nil {
		t.Fatal(err)
	}
	if board.UID == "" || board.Title == "" || board.SchemaVersion == 0 || len(board.Templating.List) == 0 || board.Templating.List[0].Type != "datasource" {
		t.Errorf("the dashboard is %+v", board)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.ID == 0 || !slices.Contains([]string{"row", "timeseries", "stat"}, p.Type) || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %d %q of type %s", p.ID, p.Title, p.Type)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if over := cells[[2]int{x, y}]; over != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q, or outside", p.Title, over)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			if target.RefID == "" || target.Datasource.Type != "prometheus" || target.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q: %+v", p.Title, target)
			}
			queries = append(queries, target.Expr)
		}
	}
	return queries
}

var alertExpr = regexp.MustCompile(`(?m)^        expr: (?:\|\n((?:          .*\n)+)|(.*)\n)`)

// alertQueries are the expressions of the alerts, which promtool checks where it is installed.
func alertQueries(t *testing.T) (queries []string) {
	t.Helper()
	text := readDoc(t, "monitoring/alerts.yml")
	for _, m := range alertExpr.FindAllStringSubmatch(text, -1) {
		queries = append(queries, strings.TrimSpace(m[1]+m[2]))
	}
	if n := strings.Count(text, "- alert: "); n != len(queries) || n != strings.Count(text, "summary: ") || n != strings.Count(text, "severity: ") {
		t.Errorf("%d alerts have %d expressions", n, len(queries))
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not installed (Debian: prometheus), so the rules are not checked by it")
		return queries
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "../../docs/monitoring/alerts.yml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	return queries
}
