package logtool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory/lang"
	"nodest/nodest"
	"nodest/nodest/tools"
)

// Limits of the tool that sets goals.
const (
	maxGoalCalls = 3  // in a turn
	mostActive   = 20 // goals of a conversation
	toldGoals    = 5  // active goals that a model is told of
	toldGoal     = 100
)

// Goals lets the model set and end goals while it writes, where a setting of the character says so. limit is for reading
// those that are active.
func Goals(log *cognition.Service, goals *side.Service, limit time.Duration) nodest.Toolbox {
	return nodest.Toolbox{
		Name: "goals", Limit: limit,
		Warning: framework.Warning{Code: "goals_unavailable", Detail: "the model cannot set goals"},
		Wanted: func(q *nodest.Question) bool {
			return q.Setup.Docs.Settings.Cognition.Goals && q.Here.ConversationID != ""
		},
		Open: func(ctx context.Context, q *nodest.Question) (*nodest.Toolkit, error) {
			if !q.MayCall(ctx) {
				return nil, nil
			}
			g := &goalSetter{log: log, goals: goals, userID: q.UserID, conversationID: q.Here.ConversationID}
			active, err := g.active(ctx)
			if err != nil {
				return nil, err
			}
			w := wordsOf[q.Setup.Docs.Language == framework.Chinese]
			return &nodest.Toolkit{Tools: []tools.Tool{g.tool()}, Rules: w.rules + "\n" + list(w.active, w.none, active)}, nil
		},
	}
}

// wordsOf are the rules of the tool in English and, under true, in Chinese.
var wordsOf = map[bool]struct{ rules, active, none string }{
	false: {"You can keep goals of this conversation with goal: create one when the user sets out to reach something that takes several turns, complete it when it is reached, " +
		"abandon it when the user gives it up. Do not make goals of small talk or of single questions. Stay in character and do not mention the tool.", "Active goals:", "There is no active goal."},
	true: {"你可以用goal管理本次对话的目标：用户开始做一件需要多轮对话的事时创建，达成时标记完成，用户放弃时标记放弃。" +
		"闲聊和单个问题不要设为目标。保持角色，不要提及工具。", "进行中的目标：", "目前没有进行中的目标。"},
}

func list(heading, none string, active []*cognition.Goal) string {
	if len(active) == 0 {
		return none
	}
	for _, g := range active[:min(len(active), toldGoals)] {
		heading += "\n- " + llm.JSONLine(framework.Defuse(told(g)))
	}
	return heading
}

// told is the description that a model is told of a goal.
func told(g *cognition.Goal) string { return op.Truncate(g.Description, toldGoal) }

// goalSetter sets goals of a conversation in a turn.
type goalSetter struct {
	log                    *cognition.Service
	goals                  *side.Service
	userID, conversationID string

	calls sync.Mutex // is held by a call: those of one answer are carried out side by side
}

func (g *goalSetter) active(ctx context.Context) ([]*cognition.Goal, error) {
	page, err := g.log.Goals(ctx, g.userID, g.conversationID, cognition.GoalActive, "", mostActive)
	if err != nil {
		return nil, err
	}
	return page.Items, nil
}

func (g *goalSetter) tool() tools.Tool {
	return tools.Tool{
		Tool: llm.Tool{
			Name:        "goal",
			Description: "Create, complete or abandon a goal of this conversation. Name an existing goal by its description, word for word.",
			Parameters: json.RawMessage(`{"type":"object","required":["action","description"],"properties":{` +
				`"action":{"type":"string","enum":["create","complete","abandon"]},"description":{"type":"string","description":"The goal in one sentence."}}}`),
		},
		Limit: maxGoalCalls,
		Call: func(ctx context.Context, c tools.Call) (*tools.Answer, error) {
			var in struct{ Action, Description string }
			if err := json.Unmarshal(c.Arguments, &in); err != nil {
				return nil, err
			}
			said, err := g.do(ctx, strings.ToLower(strings.TrimSpace(in.Action)), in.Description)
			return &tools.Answer{Text: func(*tools.Sheet) string { return "<goal>" + framework.Defuse(said) + "</goal>" }}, err
		},
	}
}

// ends are the statuses that actions give to a goal.
var ends = map[string]string{"complete": cognition.GoalCompleted, "abandon": cognition.GoalAbandoned}

// do carries out a call and says what was done. A goal is ended only by its description, as it is or as the model is told
// it, also where it is the only one: other words may mean a goal that was never set.
func (g *goalSetter) do(ctx context.Context, action, description string) (string, error) {
	g.calls.Lock()
	defer g.calls.Unlock()
	active, err := g.active(ctx)
	if err != nil {
		return "", err
	}
	at := named(active, description)
	status, ends := ends[action]
	switch {
	case action == "create" && at >= 0:
		return "this goal is active already", nil
	case action == "create" && len(active) >= mostActive:
		return "", fault.New(fault.Conflict, "there are %d active goals; complete or abandon one first", len(active))
	case action == "create":
		made, err := g.goals.CreateGoal(ctx, &op.Call{UserID: g.userID}, cognition.Goal{ConversationID: g.conversationID, Description: op.Truncate(strings.TrimSpace(description), cognition.MostGoal)})
		if err != nil {
			return "", err
		}
		return "created: " + made.Description, nil
	case !ends:
		return "", fault.InvalidField("action", "value", "must be create, complete or abandon")
	case at < 0:
		return "", fault.New(fault.NotFound, "no active goal has this description. %s", list("Active goals:", "There is none.", active))
	}
	changed, err := g.goals.ChangeGoal(ctx, &op.Call{UserID: g.userID}, active[at].ID, side.GoalPatch{Status: &status})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s", changed.Status, changed.Description), nil
}

// named is the place of the goal that has a description; -1 = none has.
func named(active []*cognition.Goal, description string) int {
	hash := lang.ContentHash(description)
	at := slices.IndexFunc(active, func(g *cognition.Goal) bool { return lang.ContentHash(g.Description) == hash })
	if at < 0 {
		at = slices.IndexFunc(active, func(g *cognition.Goal) bool { return lang.ContentHash(told(g)) == hash })
	}
	return at
}
