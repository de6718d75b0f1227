package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nodest/llm"
)

// The actions of a step.
const (
	actSearch  = "search"
	actVisit   = "visit"
	actReflect = "reflect"
	actAnswer  = "answer"
	actCode    = "coding"
)

// Limits of what the model may ask for at once.
const (
	maxQueries   = 5
	maxQuestions = 2
	maxClusters  = 5
	maxWords     = 300 // code points of a query or a sub-question
)

// choice is a step as the model wants it.
type choice struct {
	Action, Think, Answer, Code string
	Queries, Questions          []string
	Targets                     []int // numbers in the list of pages, from 1
	URLs                        []string
}

// objectIn finds the object with a key in a reply, also one that breaks off or has small mistakes; any object
// will do where key is empty.
func objectIn(reply, key string) (llm.Object, error) {
	if key != "" {
		if o, err := llm.ReadObject(reply, key); err == nil {
			return o, nil
		}
	}
	reply = llm.WithoutThoughts(reply)
	if o := llm.ObjectOf(reply, key); o != nil {
		return o, nil
	}
	if o := llm.ObjectOf(mend(reply), key); o != nil {
		return o, nil
	}
	if key == "" {
		return nil, errors.New("it has no JSON object")
	}
	return nil, fmt.Errorf("it has no JSON object with %q", key)
}

// mend makes JSON of what begins like an object: it escapes line breaks in strings, leaves out commas behind
// the last member, and closes what is open at the end.
func mend(text string) string {
	at := strings.IndexByte(text, '{')
	if at < 0 {
		return ""
	}
	var m mender
	for i := at; i < len(text) && (i == at || len(m.open) > 0); i++ {
		if m.quoted {
			m.inString(text[i])
		} else {
			m.outside(text[i])
		}
	}
	if m.quoted {
		m.out.WriteByte('"')
	}
	for _, c := range slices.Backward(m.open) {
		m.out.WriteByte(c)
	}
	return m.out.String()
}

// mender is how far mend has come.
type mender struct {
	out     strings.Builder
	open    []byte // closes the objects and lists that are open
	quoted  bool   // within a string
	escaped bool   // behind a backslash in it
	comma   bool   // behind a comma that is not written yet
}

func (m *mender) inString(c byte) {
	switch {
	case m.escaped:
		m.escaped = false
		m.out.Write([]byte{'\\', c})
		return
	case c == '\\':
		m.escaped = true
		return
	case c < ' ':
		fmt.Fprintf(&m.out, `\u%04x`, c)
		return
	}
	m.quoted = c != '"'
	m.out.WriteByte(c)
}

func (m *mender) outside(c byte) {
	switch c {
	case ' ', '\n', '\r', '\t':
		return
	case ',':
		m.comma = true
		return
	case '}', ']':
		m.open = m.open[:len(m.open)-1]
	default:
		if m.comma {
			m.out.WriteByte(',')
		}
	}
	m.comma = false
	switch c {
	case '"':
		m.quoted = true
	case '{':
		m.open = append(m.open, '}')
	case '[':
		m.open = append(m.open, ']')
	}
	m.out.WriteByte(c)
}

// readChoice reads a step. An action that is not allowed is an error for the model.
func readChoice(reply string, allowed []string) (*choice, error) {
	o, err := objectIn(reply, "action")
	if err != nil {
		if o, err = objectIn(reply, ""); err != nil {
			return nil, err
		}
	}
	c := &choice{Action: strings.ToLower(o.Text("action")), Think: short(o.Text("think"))}
	if inner := llm.ObjectOf(string(o[c.Action]), ""); inner != nil {
		o = inner // {"action":"search","search":{…}}
	}
	c.Queries = texts(o, "searchRequests", maxQueries)
	c.Questions = texts(o, "questionsToAnswer", maxQuestions)
	c.Answer, c.Code = o.Text("answer"), o.Text("codingIssue")
	for _, n := range o.Integers("URLTargets") {
		c.Targets = append(c.Targets, int(n))
	}
	if c.Action == "" {
		c.Action = c.implied()
	}
	missing := map[string]bool{
		actSearch:  len(c.Queries) == 0,
		actReflect: len(c.Questions) == 0,
		actAnswer:  c.Answer == "",
	}
	switch {
	case c.Action == actCode: // refused later, with a reason
	case !slices.Contains(allowed, c.Action):
		return nil, fmt.Errorf("the action must be one of %s", strings.Join(allowed, ", "))
	case missing[c.Action]:
		return nil, fmt.Errorf("the member of the action %s is missing", c.Action)
	}
	return c, nil
}

// implied is the action that a choice without a name must mean.
func (c *choice) implied() string {
	switch {
	case c.Answer != "":
		return actAnswer
	case len(c.Queries) > 0:
		return actSearch
	case len(c.Targets) > 0:
		return actVisit
	case len(c.Questions) > 0:
		return actReflect
	}
	return ""
}

// texts are the strings of a list, or a lone one. Objects count by their member q or question.
func texts(o llm.Object, key string, most int) (out []string) {
	var all []json.RawMessage
	if json.Unmarshal(o[key], &all) != nil {
		all = []json.RawMessage{o[key]}
	}
	for _, raw := range all {
		text := llm.Object{"x": raw}.Text("x")
		if inner := llm.ObjectOf(string(raw), ""); inner != nil {
			text = inner.Text("q") + inner.Text("question")
		}
		if text = short(text); text != "" && len(out) < most && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// short is a text of the model as one line of a bounded length.
func short(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if r := []rune(text); len(r) > maxWords {
		return string(r[:maxWords])
	}
	return text
}

// truth reads a member that says yes or no. ok is false if it does neither.
func truth(o llm.Object, key string) (yes, ok bool) {
	if json.Unmarshal(o[key], &yes) == nil && len(o[key]) > 0 && string(o[key]) != "null" {
		return yes, true
	}
	switch strings.ToLower(o.Text(key)) {
	case "true", "yes", "1", "是":
		return true, true
	case "false", "no", "0", "否":
		return false, true
	}
	return false, false
}

// query is a search as the model rewrote it.
type query struct {
	Text     string `json:"q"`
	Fresh    string `json:"tbs,omitempty"`
	Location string `json:"location,omitempty"`
}

// readQueries reads rewritten queries, none from a reply that cannot be read. Of several with the same words the
// widest stays.
func readQueries(reply string) (out []query) {
	o, _ := objectIn(reply, "queries")
	for _, raw := range o.List("queries") {
		q := query{Text: short(llm.Object{"x": raw}.Text("x"))}
		if inner := llm.ObjectOf(string(raw), ""); inner != nil {
			q = query{short(inner.Text("q")), inner.Text("tbs"), short(inner.Text("location"))}
		}
		if _, known := ages[q.Fresh]; !known {
			q.Fresh = ""
		}
		same := slices.IndexFunc(out, func(x query) bool { return sameWords(x.Text, q.Text) })
		switch {
		case q.Text == "":
		case same >= 0 && q.Fresh == "" && q.Location == "":
			out[same] = q
		case same < 0 && len(out) < maxQueries:
			out = append(out, q)
		}
	}
	return out
}

// cluster is a group of search results.
type cluster struct {
	Question, Insight string
	URLs              []string
}

// readClusters reads groups of results, none from a reply that cannot be read. Addresses that were not found are
// left out.
func readClusters(reply string, found func(string) bool) (out []cluster) {
	o, _ := objectIn(reply, "clusters")
	for _, raw := range o.List("clusters") {
		inner := llm.ObjectOf(string(raw), "insight")
		if inner == nil || len(out) == maxClusters {
			continue
		}
		c := cluster{short(inner.Text("question")), short(inner.Text("insight")), texts(inner, "urls", 20)}
		c.URLs = slices.DeleteFunc(c.URLs, func(u string) bool { return !found(u) })
		if c.Insight != "" && len(c.URLs) > 0 {
			out = append(out, c)
		}
	}
	return out
}
